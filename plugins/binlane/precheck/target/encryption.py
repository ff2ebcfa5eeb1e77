"""Tables that the window's statements encrypt, by keys that the target may not have.

No log holds a key. MySQL has one master key, MariaDB a key of each number, which only its use shows: a table that lives
for this question alone, in the session, asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from binlane.apply.session.retry_verdicts import error_code, is_lost
from binlane.model import Flavor
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.schema.compare import Severity
from binlane.sql.requirements import ENCRYPTED
from binlane.state.carried.temporary_tables import REHEARSAL
from binlane.state.tables import SCHEMA

_MOST_FINDINGS: Final = 20
_WRONG_OPTIONS: Final = frozenset({1005, 1478})
_KEYRINGS: Final = (
    "SELECT 1 FROM performance_schema.keyring_component_status"
    " WHERE status_key = 'Component_status' AND status_value = 'Active'"
)
_PLUGINS: Final = (
    "SELECT 1 FROM information_schema.plugins WHERE plugin_name LIKE 'keyring%' AND plugin_status = 'ACTIVE'"
)
_SINCE_COMPONENTS: Final = (8, 0, 24)
_UNREAD: Final = (
    "SELECT denied on performance_schema.keyring_component_status",
    "GRANT SELECT ON performance_schema.keyring_component_status TO the account on the target",
)
_TODO: Final = (
    "give the target a keyring ({keyring}), or let the source do without: ALTER ... {plain}, with a window that ends "
    "before this statement, the same statement without the option on the target, and the channel begun behind it"
)
_OF_FAMILY: Final = {
    Flavor.MYSQL: _TODO.format(keyring="component_keyring_file, for example", plain="ENCRYPTION = 'N'"),
    Flavor.MARIADB: _TODO.format(
        keyring="file_key_management, with the keys of the source", plain="ENCRYPTED = DEFAULT"
    ),
}


def check_encryption(situation: Situation) -> Iterator[Finding]:
    """Encrypted tables, databases and tablespaces that a target without their keys cannot make."""
    target = situation.target
    if target.flavor is not situation.plan.flavor:
        return  # the option is one of the other family
    asked = {
        (each.subject, each.detail): seqno
        for each, seqno in situation.plan.requirements.items()
        if each.feature == ENCRYPTED
    }
    if target.flavor is Flavor.MARIADB:
        answers = {options: target.ask(_refusal, options) for _, options in asked}
        found = [
            (subject, seqno, missing) for (subject, detail), seqno in asked.items() if (missing := answers[detail])
        ]
    else:
        wanted = [*((subject, seqno) for (subject, _), seqno in asked.items()), *_by_database(situation)]
        missing = _missing_keyring(situation) if wanted else None
        found = [] if missing is None else [(subject, seqno, missing) for subject, seqno in wanted]
    for subject, seqno, (what, todo) in islice(found, _MOST_FINDINGS):
        where = f"{subject}: encrypted, in the statement of seqno {seqno}"
        yield Finding(Severity.FATAL, where, "a target that has the key", what, todo, seqno)


def _missing_keyring(situation: Situation) -> tuple[str, str] | None:
    """What stands against encryption on a MySQL target, and what to do."""
    target = situation.target
    if target.rows(_PLUGINS):
        return None
    if target.number < _SINCE_COMPONENTS:
        return "no keyring", _OF_FAMILY[Flavor.MYSQL]
    try:
        is_there = bool(target.rows(_KEYRINGS))
    except DBAPIError as exc:
        if is_lost(exc):
            raise
        return _UNREAD
    return None if is_there else ("no keyring", _OF_FAMILY[Flavor.MYSQL])


def _by_database(situation: Situation) -> Iterator[tuple[str, int]]:
    """Tables that a MySQL target encrypts because their database says so."""
    letters = situation.tables.letter_case
    for each in situation.every_text:
        key = each.facts.first
        if each.words[:2] != ("CREATE", "TABLE") or key is None or "ENCRYPTION" in each.words:
            continue
        if letters.name(key.database) in letters.names(situation.target.encrypting_databases):
            yield str(key), each.seqno


def _refusal(connection: Connection, options: str) -> tuple[str, str] | None:
    """What stands against these options of MariaDB, and what to do."""
    connection.execute(text("START TRANSACTION READ WRITE"))
    try:
        connection.execute(text(f"CREATE TEMPORARY TABLE {SCHEMA}.{REHEARSAL} (n INT) ENGINE = InnoDB {options}"))
    except DBAPIError as exc:
        if error_code(exc) not in _WRONG_OPTIONS:
            raise
        return f"{options}, which the server refuses ({error_code(exc)})", _OF_FAMILY[Flavor.MARIADB]
    connection.execute(text(f"DROP TEMPORARY TABLE {SCHEMA}.{REHEARSAL}"))
    return None
