"""Statements of the source on what every server has of its own: they are left out and counted.

The schema of binlane's state: every target has it, and a source too if it is or was the target of another channel. Its
rows are left out as well; a statement that names other databases, too, is refused.

The tables in which a MariaDB server keeps its place as a replica: an administrator tells it to keep them in another
engine (``ALTER TABLE mysql.gtid_slave_pos ENGINE = InnoDB``), and this is logged. What it writes there as a replica is
not.

Triggers that the source does not have: a server logs DROP TRIGGER IF EXISTS of any account where it finds no such
trigger, because it asks for privileges on the trigger's table alone. The target's own must not go by it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from binlane.model import OWN_SCHEMA, Flavor, SessionContext, TableKey
from binlane.schema.letter_case import LetterCase
from binlane.shards.selection import OWN, Selection, Undecided
from binlane.sql.charset import decoded, dialect_of
from binlane.sql.parse.cursor import END, is_symbol
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.sql.parse.lexer import Token, TokenKind, Unreadable, lex

_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)
_GRANTS: Final = ("GRANT", "REVOKE")
REPLICA_STATE: Final = "mysql.gtid_slave_pos is each server's own"
NO_SUCH_TRIGGER: Final = "the source has no such trigger"
_TABLE: Final = "gtid_slave_pos"
"""With ``gtid_pos_auto_engines`` there is one for each engine, such as gtid_slave_pos_InnoDB."""


def own_schema(
    selection: Selection,
    sql: bytes | memoryview,
    facts: StatementFacts,
    listed: Iterable[str] | None,
    context: SessionContext,
    flavor: Flavor,
) -> str | None:
    """The rule that leaves out a statement on that schema alone; None if the statement does not name it.

    ``listed``: as in ``Selection.statement``. Raises Undecided for a statement that names other databases as well, and
    for one that may name the schema: a stored program with the name in its body, a statement that cannot be parsed.
    """
    if facts.kind is StatementKind.TRANSACTION:
        return None
    # for server-wide statements MySQL lists the database mysql, and the session's
    databases = facts.databases | frozenset(listed or () if facts.kind is not StatementKind.GLOBAL else ()) - {""}
    own = sorted(filter(selection.is_own, databases))
    others = sorted(databases.difference(own))
    if own and others:
        raise Undecided(f"a statement over {others[0]} and {own[0]} ({OWN})")
    if own and facts.kind is not StatementKind.UNKNOWN:
        return OWN
    if not own and not _may_hide(selection, sql, facts, context):
        return None
    tokens: list[Token] = []
    try:
        lex(decoded(bytes(sql), context), dialect_of(context, flavor), tokens)
    except Unreadable as unreadable:
        raise Undecided(
            f"a statement that cannot be parsed ({unreadable}) and may concern {OWN_SCHEMA} ({OWN})"
        ) from None
    if facts.kind is StatementKind.UNKNOWN:
        if own or selection.is_own(context.database or "") or any(map(selection.is_own, _names(tokens))):
            raise Undecided(f"a statement that cannot be parsed ({facts.reason}) and may concern {OWN_SCHEMA} ({OWN})")
        return None
    is_named = any(map(selection.is_own, qualifiers(tokens)))
    if facts.kind is StatementKind.GLOBAL:
        return OWN if is_named or _is_about_default(selection, tokens, context) else None
    if is_named:
        raise Undecided(f"a stored program whose body names {OWN_SCHEMA} ({OWN})")
    return None


def _may_hide(selection: Selection, sql: bytes | memoryview, facts: StatementFacts, context: SessionContext) -> bool:
    """Whether the statement may name the schema although ``facts`` does not: a quick check."""
    is_read = facts.kind in (StatementKind.DML, StatementKind.LOAD_DATA)
    if is_read or (facts.kind is StatementKind.DDL and facts.tables - facts.triggered):
        return False
    default = "" if facts.kind is StatementKind.DDL else context.database or ""
    text = bytes(sql)
    # a letter beyond ASCII may be one of these in lower case
    is_hidden = selection.folds_names and not text.isascii()
    return is_hidden or OWN_SCHEMA.encode() in text.lower() or selection.is_own(default)


def _names(tokens: Sequence[Token]) -> Iterator[str]:
    """All names, except those of accounts."""
    for token, behind in pairwise((*tokens, END)):
        if token.kind in _NAMES and behind.kind is not TokenKind.VARIABLE:
            yield token.text


def qualifiers(tokens: Sequence[Token]) -> Iterator[str]:
    """Names that are followed by a dot and not preceded by one."""
    for number, token in enumerate(tokens[:-1]):
        is_first = number == 0 or not is_symbol(tokens[number - 1], ".")
        if token.kind in _NAMES and is_first and is_symbol(tokens[number + 1], "."):
            yield token.text


def _is_about_default(selection: Selection, tokens: Sequence[Token], context: SessionContext) -> bool:
    """Whether it grants or revokes privileges on objects of the default database, which is binlane's schema."""
    if tokens[0].upper not in _GRANTS or not selection.is_own(context.database or ""):
        return False
    on = next((number for number, token in enumerate(tokens) if token.upper == "ON"), len(tokens))
    return on < len(tokens) and not any(is_symbol(token, ".") for token in tokens[on:])


def replica_state(facts: StatementFacts, flavor: Flavor, letters: LetterCase) -> str | None:
    """The rule that leaves out a statement of a ``flavor`` server that changes tables of its place as a
    replica, and names no other ones. ``letters``: how it compares names."""
    is_read = facts.kind in (StatementKind.DDL, StatementKind.DML) and not facts.routines_used
    if flavor is not Flavor.MARIADB or not is_read:
        return None
    named = letters.tables(facts.tables | facts.views)
    if not named:
        return None
    is_alone = all(map(_is_replica_s, named)) and letters.names(facts.databases) == {key.database for key in named}
    return REPLICA_STATE if is_alone else None


def drops_no_trigger(facts: StatementFacts, flavor: Flavor, listed: Collection[str] | None) -> str | None:
    """The rule that leaves out a DROP TRIGGER IF EXISTS that has dropped nothing on a ``flavor`` server. ``listed``:
    the databases that MySQL has logged with it; None if there is no list.

    MySQL since 5.6 lists the database of a trigger's table, and none if it finds no trigger
    (``Sql_cmd_drop_trigger::execute``, sql/sql_trigger.cc). MariaDB logs both alike.
    """
    is_nothing = flavor is Flavor.MYSQL and facts.drops_if_exists and not listed
    return NO_SUCH_TRIGGER if is_nothing and facts.dropped_triggers else None


def _is_replica_s(key: TableKey) -> bool:
    return key.database == "mysql" and (key.table == _TABLE or key.table.startswith(f"{_TABLE}_"))
