"""What is left to run of a DDL that may have been running when the server or its connection was lost."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from binlane.apply.ddl.column_moves import moves_columns
from binlane.apply.ddl.fingerprint import Fingerprint, why_incomparable
from binlane.apply.ddl.text import in_parts, repeated
from binlane.errors import UndecidableError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, Item, SessionContext
from binlane.plan.transaction.decode import statement_facts
from binlane.safe_text import shown
from binlane.servers.names import among, folded_values, values_of
from binlane.state.positions import PlanKey
from binlane.state.records.ddl_intents import REFUSED, SHOWN, DdlIntent, ask_operator

if TYPE_CHECKING:
    from binlane.apply.session.connection import LaneSession

_VISIBLE: Final = re.compile(
    rb"\s*(?:CREATE|ALTER|DROP|RENAME|TRUNCATE)\s+(?:OR\s+REPLACE\s+)?(?:ONLINE\s+|OFFLINE\s+|UNIQUE\s+|FULLTEXT\s+|SPATIAL\s+)*"
    rb"(?:IGNORE\s+)?(?:TABLE|INDEX|DATABASE|SCHEMA)\b|\s*TRUNCATE\s+\w"
    rb"|\s*(?:CREATE|ALTER|DROP)\s+(?!USER|ROLE)(?:\S+\s+){0,6}?(?:VIEW|TRIGGER|PROCEDURE|FUNCTION|EVENT)\b",
    re.I,
)
"""Statements whose effect shows in definitions or table ids: an unchanged fingerprint means that they have not
run."""
_HARMLESS: Final = re.compile(
    rb"\s*(?:GRANT\b|SET\s+PASSWORD\b|ALTER\s+USER\b(?!(?s:.*)\bRETAIN\b)|ALTER\s+(?:DATABASE|SCHEMA)\b|FLUSH\b|ANALYZE\b|OPTIMIZE\b|TRUNCATE\b|CREATE\s+OR\s+REPLACE\b"
    rb"|(?:CREATE|DROP)\s(?:(?!\bDO\b)[^;(])*?\b(?:TABLES?|VIEW|SEQUENCE|INDEX|DATABASE|SCHEMA|TRIGGER|PROCEDURE|FUNCTION"
    rb"|PACKAGE|BODY|EVENT|USER|ROLE|SERVER)\s+IF\s+(?:NOT\s+)?EXISTS\b)",
    re.I,
)
"""Statements that may run twice without harm. ALTER ... IF EXISTS is none: a key without a name would be there
twice."""
_SEVERAL: Final = re.compile(rb"DROP\s+(?:TEMPORARY\s+)?(?:TABLE|VIEW|USER|ROLE)\b.*,", re.I | re.S)
"""Statements that are not atomic on every server: a changed fingerprint may mean that they have run in part."""
_RENAMES_SEVERAL: Final = re.compile(rb"RENAME\s+TABLES?\b.*,", re.I | re.S)
"""Two tables may change their names. In part as ``_SEVERAL``, on MySQL, if a table is not InnoDB's."""
_NEW_TABLE: Final = re.compile(rb"\s*CREATE\s+TABLE\b\s*(?:IF\s+NOT\s+EXISTS\b\s*)?", re.I)
"""In front of the table's name, which may stand in quotes without a blank (``CREATE TABLE`t```)."""
_FILLS_ATOMICALLY: Final = (10, 6, 1)
"""The first MariaDB whose recovery drops a table that a killed CREATE TABLE .. SELECT was filling (MDEV-24576)."""
_CREATES_TABLE: Final = re.compile(rb"\s*CREATE\s+TABLE\b", re.I)
"""A table that is not there has not been made, whatever engine it gets."""
_ALTERS_TABLE: Final = re.compile(
    rb"\s*ALTER\s+(?:ONLINE\s+|OFFLINE\s+|IGNORE\s+)*TABLE\b(?![^;]*\bCONVERT\s+TABLE\b)", re.I
)
"""ALTER TABLE, but for the one that makes a table a partition of another."""
_EXCHANGES: Final = re.compile(rb"ALTER\b.*\bTABLE\b.*\bEXCHANGE\b", re.I | re.S)
"""Rows of a table and of a partition that change places."""
_RENAMES_ACCOUNTS: Final = re.compile(rb"RENAME\s+USER\b", re.I | re.S)
"""No definition has it, and the statement fails if it has run."""
_REVOKES: Final = re.compile(rb"\s*REVOKE\b", re.I)
_NOT_GRANTED: Final = frozenset({1141, 1147, 1403, 1962})
"""MariaDB's errors for a REVOKE of what is not granted. It has revoked the rest: the same from another account."""
_CREATES_DATABASE: Final = re.compile(rb"\s*CREATE\s+(?:DATABASE|SCHEMA)\s+(?:IF\s+NOT\s+EXISTS\s+)?", re.I)


@dataclass(frozen=True, slots=True)
class DdlPlace:
    """Identifies a DDL: the plan, the lane and the seqno of its transaction."""

    key: PlanKey
    channel_uuid: str
    lane: int
    seqno: int


def keeps_definitions(item: Item) -> bool:
    """Whether the definitions may be the same before and after a statement that does harm if it runs twice."""
    _, statement = in_parts(item)
    kinds = (_RENAMES_SEVERAL, _EXCHANGES, _RENAMES_ACCOUNTS)
    return any(kind.match(statement) is not None for kind in kinds) or _moves_columns(item, statement)


def _moves_columns(item: Item, statement: bytes) -> bool:
    """Whether two columns may have each other's name and place: nothing shows it, not even a table's id."""
    return moves_columns(statement, item.context or SessionContext())


def drops_several(item: Item) -> bool:
    """Whether a part of the statement may have run and be logged, and the whole of it may run again."""
    return _SEVERAL.match(in_parts(item)[1]) is not None


def is_revoked(item: Item, code: int) -> bool:
    """Whether the error of a statement that runs again on MariaDB says that nothing is left of what it revokes."""
    return code in _NOT_GRANTED and _REVOKES.match(in_parts(item)[1]) is not None


def after_crash(session: LaneSession, item: Item, begun: DdlIntent, now: Fingerprint, place: DdlPlace) -> Item | None:
    """What is left to run of a statement that MariaDB was executing when its connection was lost; None if it has run.

    Found by killing the server at each of its file operations (``tests/chaos/test_killed_in_ddl.py``). ALTER, its like
    and CREATE DATABASE may have run, and a DROP in part, whether or not they were logged; some statements are logged
    before they are durable. What has left the definitions as they were may run again: ``keeps_definitions`` has the
    others.
    """
    if begun.fingerprint == REFUSED:
        return repeated(item)
    changed, (_, statement) = now.has_changed(begun.fingerprint), in_parts(item)
    in_its_place = _in_place_of_unfilled(session, item)
    if changed is not False and in_its_place is not None:
        if changed is None or not now.has_more_tables(begun.fingerprint):
            raise _question(session, statement, begun, now, place)
        return in_its_place
    if _CREATES_DATABASE.match(statement) is not None and changed is not False:
        return _replacing_database(session, item)
    if changed is False or _HARMLESS.match(statement) or _is_damaged(statement, begun, now):
        return repeated(item)
    if changed is None or now.unreadable:
        raise _question(session, statement, begun, now, place)
    return None


def left_to_run(session: LaneSession, item: Item, stored: DdlIntent, now: Fingerprint, place: DdlPlace) -> Item | None:
    """What is left to run of a statement with an intent row; None if it has run. Raises UndecidableError if the outcome
    is unknown."""
    _, statement = in_parts(item)
    changed, shows_swaps = now.has_changed(stored.fingerprint), now.shows_swaps(stored.fingerprint)
    if changed and _CREATES_DATABASE.match(statement) is not None:
        return _replacing_database(session, item)
    divides = session.flavor is Flavor.MYSQL and not shows_swaps
    in_its_place = _in_place_of_unfilled(session, item)
    if in_its_place is not None and changed and now.has_more_tables(stored.fingerprint):
        return in_its_place
    fills_in_part = in_its_place is not None or (divides and _filled_table(session, item) is not None)
    fills_in_part &= changed is not False
    if _HARMLESS.match(statement) and not fills_in_part:
        return item
    in_part = fills_in_part or _SEVERAL.match(statement) or (divides and _RENAMES_SEVERAL.match(statement))
    if changed and not in_part and _is_damaged(statement, stored, now):
        return item
    if changed and not in_part and not now.unreadable:
        return None
    if changed is False and shows_swaps and _VISIBLE.match(statement) and not _moves_columns(item, statement):
        return item
    if changed is False and _CREATES_TABLE.match(statement):
        return item
    raise _question(session, statement, stored, now, place)


def _question(
    session: LaneSession, statement: bytes, stored: DdlIntent, now: Fingerprint, place: DdlPlace
) -> UndecidableError:
    ask_operator(session.cursor, place.key.channel, place.seqno)
    changed = now.has_changed(stored.fingerprint)
    seen = f"have {'changed' if changed else 'not changed'} since"
    if changed is None:
        seen = why_incomparable(stored.fingerprint, now)
    return UndecidableError(
        f"channel {place.key.channel}, lane {place.lane}, seqno {place.seqno}: the statement below was started "
        "and its outcome is unknown; the definitions on the target "
        f"{seen}, which proves neither outcome. Look at the target, "
        f"record whether the statement has run (`binlane decide {place.key.channel} {place.seqno} --ran`, or "
        "--not-ran), and run the lane again (a target with a binlog, on MySQL with GTIDs, shows the outcome of most "
        "statements on tables of InnoDB by itself; so do its tables' ids, for which the account needs PROCESS). "
        "binlane.ddl on the target has the whole statement:\n"
        + shown(statement.decode("utf-8", "backslashreplace"), SHOWN)
    )


def _replacing_database(session: LaneSession, item: Item) -> Item | None:
    """What is left to run of a CREATE DATABASE that has made the database; None if that is whole.

    What a killed MariaDB leaves may be a folder without its character set.
    """
    front, statement = in_parts(item)
    created = _CREATES_DATABASE.match(statement)
    if created is None or session.flavor is not Flavor.MARIADB or not _is_empty(session, item):
        return None
    return replace(item, payload=front + b"CREATE OR REPLACE DATABASE " + statement[created.end() :])


def _filled_table(session: LaneSession, item: Item) -> re.Match[bytes] | None:
    """What stands in front of the table's name in a CREATE TABLE that fills the table (SELECT, VALUES, TABLE), or that
    is not read; None for any other statement.

    As ``_RENAMES_SEVERAL``; with IF NOT EXISTS it would pass over a table without its rows.
    """
    created = _NEW_TABLE.match(in_parts(item)[1])
    if created is None:
        return None
    facts = statement_facts(item.payload, item.context or SessionContext(), session.flavor)
    return created if facts.may_change_rows or not facts.is_read else None


def _in_place_of_unfilled(session: LaneSession, item: Item) -> Item | None:
    """The statement, in the place of its table, if a killed server may have left that without its rows; else None.

    For a table that has come with the statement: all that is in it is the statement's own.
    """
    if session.flavor is Flavor.MYSQL or session.version >= _FILLS_ATOMICALLY:
        return None
    created = _filled_table(session, item)
    if created is None:
        return None
    front, statement = in_parts(item)
    return replace(item, payload=front + b"CREATE OR REPLACE TABLE " + statement[created.end() :])


def _is_damaged(statement: bytes, begun: DdlIntent, now: Fingerprint) -> bool:
    """Whether a table is missing or cannot be opened that ALTER TABLE or CREATE TABLE leaves: then the server says so
    if it is run again."""
    if _CREATES_TABLE.match(statement) is not None:
        return now.unreadable
    if _ALTERS_TABLE.match(statement) is None:
        return False
    return now.unreadable or now.has_fewer_tables(begun.fingerprint)


def _is_empty(session: LaneSession, item: Item) -> bool:
    """Whether the databases that the statement names have no objects."""
    databases = tuple(statement_facts(item.payload, item.context or SessionContext(), session.flavor).databases)
    values, folded = values_of(databases), folded_values(databases)
    marks = [f"({', '.join(['%s'] * len(each))})" for each in (values, folded)]
    kinds = (("tables", "table"), ("routines", "routine"), ("events", "event"))
    return bool(databases) and not any(
        session.rows(
            f"SELECT 1 FROM information_schema.{view} WHERE {among(f'{kind}_schema', *marks)} LIMIT 1",
            (*values, *values, *folded),
        )
        for view, kind in kinds
    )
