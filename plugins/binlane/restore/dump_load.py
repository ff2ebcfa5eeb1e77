"""Loads databases of a dump into a target under other names.

A dump is input: only the statements that dump programs write for databases run, and each of them with names of the
databases that are restored. What a dump says of other databases, of accounts and of the server is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Final

from binlane.apply.refusals import target_errors
from binlane.apply.session.retry_verdicts import error_code
from binlane.binlog.query import Query
from binlane.binlog.types.collations import UTF8MB4_GENERAL_CI
from binlane.binlog.types.literals import identifier
from binlane.bootstrap.definition_copy import LACKS_FOR_VIEW
from binlane.bootstrap.sessions import Session
from binlane.errors import ConfigError, PlanError, TargetError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SessionContext
from binlane.plan.transaction.decode import statement_facts
from binlane.plan.transaction.parts import StatementPart
from binlane.plan.transaction.rename_statement import Unsafe, renamed_statement
from binlane.shards.renaming import Renaming
from binlane.sql.charset import dialect_in
from binlane.sql.parse.facts import StatementKind
from binlane.sql.scheduled_event import disabled

_HEAD: Final = 400
_WRAPPER: Final = re.compile(rb"/\*M?!\d*|\*/")
_QUOTED: Final = rb"(?:`((?:[^`]|``)+)`|(\w+))"
_USE: Final = re.compile(rb"USE\s+" + _QUOTED + rb"\s*", re.IGNORECASE)
_DATABASE: Final = re.compile(
    rb"(CREATE|ALTER|DROP)\s+(?:DATABASE|SCHEMA)\s+(?:IF\s+(?:NOT\s+)?EXISTS\s+)?" + _QUOTED, re.IGNORECASE
)
_NAME_OF_DATABASE: Final = re.compile(
    rb"((?:/\*!\d* *)?(?:CREATE|ALTER)\s+(?:DATABASE|SCHEMA)\s+(?:/\*!\d* *)?(?:IF\s+(?:NOT\s+)?EXISTS\s*)?(?:\*/)?\s*)"
    rb"(?:`(?:[^`]|``)+`|\w+)",
    re.IGNORECASE,
)
_ROWS: Final = re.compile(
    rb"(?:INSERT|REPLACE)\s+(?:IGNORE\s+)?INTO\s+`(?:[^`]|``)+`\s*"
    rb"(?:\((?:\s*`(?:[^`]|``)+`\s*,?)+\)\s*)?VALUES?\b",
    re.IGNORECASE,
)
OBJECT: Final = re.compile(
    rb"(?:CREATE|ALTER)\s+(?:OR\s+REPLACE\s+)?(?:ALGORITHM\s*=\s*\w+\s+)?"
    rb"(?:DEFINER\s*=\s*(?:`(?:[^`]|``)*`@`(?:[^`]|``)*`|\S+)\s+)?"
    rb"(?:SQL\s+SECURITY\s+\w+\s+)?(?:AGGREGATE\s+)?(TABLE|VIEW|TRIGGER|PROCEDURE|FUNCTION|EVENT|SEQUENCE|PACKAGE)\b",
    re.IGNORECASE,
)
"""A definition, and its kind."""
_KEYS: Final = re.compile(rb"ALTER\s+TABLE\s+`(?:[^`]|``)+`\s+(?:DIS|EN)ABLE\s+KEYS\s*", re.IGNORECASE)
_DROP: Final = re.compile(
    rb"DROP\s+(?:TABLE|VIEW|TRIGGER|PROCEDURE|FUNCTION|EVENT|SEQUENCE|PACKAGE(?:\s+BODY)?)\s+IF\s+EXISTS\s+"
    rb"`(?:[^`]|``)+`\s*",
    re.IGNORECASE,
)
_SETVAL: Final = re.compile(rb"(?:DO|SELECT)\s+SETVAL\(`(?:[^`]|``)+`,\s*-?\d+,\s*[01](?:,\s*\d+)?\)\s*", re.IGNORECASE)
_SET: Final = re.compile(rb"SET\s+(?:SESSION\s+)?(@@SESSION\.|@)?(\w+)", re.IGNORECASE)
_SESSION: Final = frozenset(
    {
        *(b"NAMES", b"CHARACTER_SET_CLIENT", b"CHARACTER_SET_RESULTS", b"COLLATION_CONNECTION", b"TIME_ZONE"),
        *(b"SQL_MODE", b"SQL_NOTES", b"UNIQUE_CHECKS", b"FOREIGN_KEY_CHECKS"),
    }
)
"""Variables that a dump sets for its own statements."""
_PASSED_OVER: Final = re.compile(
    rb"(?:LOCK\s+TABLES|UNLOCK\s+TABLES|SET\s|COMMIT|START\s+TRANSACTION|CHANGE\s+(?:MASTER|REPLICATION)|GRANT|"
    rb"(?:CREATE|ALTER|DROP)\s+(?:OR\s+REPLACE\s+)?(?:USER|ROLE|SERVER|TABLESPACE|LOGFILE)|FLUSH|INSTALL|"
    rb"(?:START|STOP)\s+(?:SLAVE|REPLICA|ALL))",
    re.IGNORECASE,
)
_CLIENT: Final = re.compile(rb"SET\s+character_set_client\s*=\s*(\w+)", re.IGNORECASE)
_MODES: Final = re.compile(rb"SET\s+sql_mode\s*=\s*'([A-Z_,]*)'", re.IGNORECASE)
_UTF8MB4: Final = "utf8mb4"


@dataclass(slots=True)
class DumpLoad:
    """One load. ``renaming``: from the dump's names to those on the target, for the databases to restore."""

    session: Session
    name: str
    """The dump, for messages."""
    databases: Mapping[str, str]
    """Names in the dump, and names on the target."""
    notes: list[str] = field(default_factory=list)
    """Views that were not made, and why."""
    seen: set[str] = field(default_factory=set)
    """The databases that the dump has."""
    size: int = 0
    """Bytes of the statements that ran."""
    _current: str | None = None
    _is_header: bool = True
    _client: str = _UTF8MB4
    _modes: str = ""

    def run(self, statements: Iterator[bytes]) -> None:
        """Load. Raises ConfigError for a statement that no dump program writes there, PlanError for one that cannot be
        renamed, and driver errors."""
        for statement in statements:
            made = self.statement(statement)
            if made is not None:
                self._execute(made)
                self.size += len(made)

    def _execute(self, statement: bytes) -> None:
        made = OBJECT.match(_WRAPPER.sub(b" ", statement[:_HEAD]).strip())
        if made is None or made[1].upper() != b"VIEW":
            self.session.execute(statement)
            return
        try:
            with target_errors(_shown(statement)):
                self.session.execute(statement)
        except TargetError as exc:
            if exc.__cause__ is None or error_code(exc.__cause__) not in LACKS_FOR_VIEW:
                raise
            self.notes.append(f"{exc}: it was not made, because an object that it needs is not there")

    def statement(self, statement: bytes) -> bytes | None:
        """The statement for the target; None if it does not run there."""
        head = _WRAPPER.sub(b" ", statement[:_HEAD]).strip()
        if (use := _USE.fullmatch(head)) is not None:
            return self._use(_text(use[1], use[2]))
        if (database := _DATABASE.match(head)) is not None:
            return self._database(statement, database[1].upper(), _text(database[2], database[3]))
        if not self._is_header and self._current not in self.databases:
            return None
        if (setting := _SET.match(head)) is not None:
            return self._set(statement, head, setting)
        if self._current is None:
            if _PASSED_OVER.match(head) is not None or not head:
                return None
            raise self._unknown(head, "behind USE of a database: dump with --databases or --all-databases")
        if any(each.match(head) is not None for each in (_ROWS, _SETVAL)):
            return statement
        if any(each.fullmatch(head) is not None for each in (_KEYS, _DROP)):
            return statement
        if (made := OBJECT.match(head)) is not None:
            return self._object(statement, made[1].upper())
        if _PASSED_OVER.match(head) is not None or not head:
            return None
        raise self._unknown(head, "that a dump program writes")

    def _use(self, name: str) -> bytes | None:
        self._current, self._is_header = name, False
        if name not in self.databases:
            return None
        self.seen.add(name)
        return f"USE {identifier(self.databases[name])}".encode()

    def _database(self, statement: bytes, verb: bytes, name: str) -> bytes | None:
        if name not in self.databases or verb == b"DROP":
            return None
        made = identifier(self.databases[name]).encode()
        return _NAME_OF_DATABASE.sub(lambda found: found[1] + made, statement, count=1)

    def _set(self, statement: bytes, head: bytes, setting: re.Match[bytes]) -> bytes | None:
        if setting[1] == b"@":
            return statement
        if setting[2].upper() not in _SESSION:
            return None
        if (client := _CLIENT.match(head)) is not None:
            self._client = client[1].decode()
        if (modes := _MODES.match(head)) is not None:
            self._modes = modes[1].decode()
        return statement

    def _object(self, statement: bytes, kind: bytes) -> bytes:
        made = renamed(statement, self._current, self.databases, self.session.flavor, self.name)
        if kind == b"EVENT":
            made = disabled(made, self._client, dialect_in(self._modes, self.session.flavor))
        return made

    def _unknown(self, head: bytes, expected: str) -> ConfigError:
        shown = head[:60].decode("utf-8", "replace")
        return ConfigError(
            f"--from {self.name}: expected a statement {expected}, found {shown!r}; nothing of it was run"
        )


def renamed(statement: bytes, default: str | None, databases: Mapping[str, str], flavor: Flavor, where: str) -> bytes:
    """A definition with the target's names of its databases. Raises PlanError if they cannot be determined."""
    context = SessionContext(database=default, charset_client=UTF8MB4_GENERAL_CI)
    facts = statement_facts(statement, context, flavor)
    foreign = sorted(facts.references - databases.keys())
    if foreign:
        raise PlanError(
            f"{where}: {_shown(statement)}: has a foreign key into {foreign[0]}, which is not restored; restore it, "
            f"too: --database {foreign[0]}"
        )
    names = {database for database in databases if database.encode() in statement}
    if not names:
        return statement
    renaming = Renaming(tuple(databases.items()))
    query = Query(default or "", statement, context)
    try:
        if facts.kind is StatementKind.UNKNOWN:
            raise Unsafe(facts.reason or "it is not parsed")
        part = renamed_statement(
            StatementPart(statement, context, facts, query),
            renaming,
            flavor,
            lambda sql, session: statement_facts(sql, session, flavor),
        )
    except Unsafe as exc:
        raise PlanError(
            f"{where}: {_shown(statement)}: expected names that can be changed to {', '.join(databases.values())}, "
            f"found {exc}; take the object out of a copy of the dump, restore, and make it by hand"
        ) from exc
    return part.sql


def _text(quoted: bytes | None, plain: bytes | None) -> str:
    return quoted.replace(b"``", b"`").decode() if quoted is not None else (plain or b"").decode()


def _shown(statement: bytes) -> str:
    return repr(b" ".join(_WRAPPER.sub(b" ", statement[:_HEAD]).split())[:90].decode("utf-8", "replace"))
