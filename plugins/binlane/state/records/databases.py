"""Where each database of a channel is: its lane, its last transactions, its row changes in the newest windows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Engine, Row, Select, func, or_, select
from sqlalchemy.dialects.mysql import insert

from binlane.lazy_dataclass import dataclass
from binlane.plan.database_activity import DatabaseActivity, WindowActivity
from binlane.rename_rules import lower
from binlane.state.channels import is_table, read_channel
from binlane.state.json_columns import text_of, value_of
from binlane.state.positions import LanePosition, lane_positions
from binlane.state.records.bootstraps import other_copies, read_copied
from binlane.state.records.verifications import DRIFT, PENDING, EndedVerification, count_suspects, ended_verifications
from binlane.state.tables import channels, databases, suspects
from binlane.state.windows import Window, read_open_window

RECENT: Final = 8
"""Windows whose figures are kept of each database."""
_BATCH: Final = 500
_VERIFICATIONS: Final = 64
"""Verifications that are looked at, more than windows whose figures are kept."""
_Figures = tuple[tuple[int, int, int, int, float], ...]
_INSERTED: Final = insert(databases)
_UPSERT: Final = _INSERTED.on_duplicate_key_update(
    {each: _INSERTED.inserted[each] for each in ("lane", "seqno", "row_changes", "recent")}
)
"""One text for any number of rows, which the driver joins: rendering each row's parameters takes longer than sending
them."""


@dataclass(frozen=True, slots=True)
class InWindow:
    """A database in one window."""

    number: int
    transactions: int
    rows: int
    seqno: int
    """Its last transaction, and when the source committed it, in seconds since the epoch."""
    time: float


@dataclass(frozen=True, slots=True)
class DatabaseRecord:
    """A database of a channel, by its name on the target."""

    name: str
    lane: int | None
    """In the newest window; None if its transactions were all serialized, or shared with other databases."""
    rows: int
    """Row changes of ``recent``."""
    recent: tuple[InWindow, ...]
    """The newest windows that change it, newest first; the open one with its plan's figures."""
    drifted: int = 0
    """Rows and definitions of it that are known to differ."""
    pending: int = 0
    """Rows of it that differed and that the source has changed since."""


class Order(StrEnum):
    """How databases are ordered."""

    NAME = "name"
    ROWS = "rows"
    """Most row changes first."""
    APPLIED = "applied"
    """The last transaction first."""
    LANE = "lane"


@dataclass(frozen=True, slots=True)
class Search:
    """Which databases, and in which order."""

    pattern: str = "*"
    """With ``*`` and ``?``."""
    lane: int | None = None
    drifted: bool = False
    """Only those that are known to differ."""
    order: Order = Order.NAME


_ORDERS: Final[Mapping[Order, tuple[ColumnElement[Any], ...]]] = {
    Order.NAME: (databases.c.database_name.asc(),),
    Order.ROWS: (databases.c.row_changes.desc(), databases.c.database_name.asc()),
    Order.APPLIED: (databases.c.seqno.desc(), databases.c.database_name.asc()),
    Order.LANE: (databases.c.lane.asc(), databases.c.database_name.asc()),
}


def record_databases(connection: Connection, channel: str, number: int, found: Mapping[str, DatabaseActivity]) -> None:
    """Add what the window of this number changes."""
    for names in _batches(sorted(found)):
        known = select(databases.c.database_name, databases.c.recent).where(
            databases.c.channel == channel, databases.c.database_name.in_(names)
        )
        before = {row.database_name: _recent(row.recent) for row in connection.execute(known)}
        values = [_values(channel, name, number, found[name], before.get(name, ())) for name in names]
        connection.execute(_UPSERT, values)


def other_writers(connection: Connection, channel: str, names: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Databases of ``names`` that windows of other channels of this target have changed, or that are of their first
    copies, also of unfinished ones, each with the channel; names that differ only in letter case are taken for equal.
    """
    of, wanted = databases.c, list(map(lower, names))
    query = (
        select(of.database_name, of.channel)
        # the rows of a channel that was removed by hand say nothing
        .join(channels, channels.c.channel == of.channel)
        .where(of.channel != channel, func.lower(of.database_name).in_(wanted))
        .order_by(of.database_name, of.channel)
    )
    written = {(row.database_name, row.channel) for row in connection.execute(query)}
    copied = {each for each in other_copies(connection, channel) if lower(each[0]) in wanted}
    return tuple(sorted(written | copied))


def writers_of(connection: Connection, channel: str, names: Collection[str]) -> tuple[tuple[str, str], ...]:
    """As ``other_writers``; the target need not have the schema."""
    return other_writers(connection, channel, names) if is_table(channels, connection) else ()


def known_databases(connection: Connection, channel: str) -> frozenset[str]:
    """The databases that the channel has written, its first copy included, by the target's names."""
    copied = read_copied(connection, channel)
    query = select(databases.c.database_name).where(databases.c.channel == channel)
    written = frozenset(connection.execute(query).scalars())
    return written if copied is None else written | frozenset(copied.databases)


def forgetting(channel: str, database: str) -> str:
    """The statements by which an operator forgets that a channel has written or copied a database, given as an SQL
    literal."""
    # in the text that JSON_SEARCH looks for, as in LIKE, these stand for any others
    name = database.replace("%", r"\%").replace("_", r"\_")
    place = f"JSON_SEARCH(database_names, 'one', {name})"
    return (
        f"DELETE FROM binlane.`databases` WHERE channel = '{channel}' AND database_name = {database}; "
        f"UPDATE binlane.bootstraps SET database_names = JSON_REMOVE(database_names, JSON_UNQUOTE({place})) "
        f"WHERE channel = '{channel}' AND {place} IS NOT NULL"
    )


def recorder(found: WindowActivity) -> Callable[[Connection, Window], None]:
    """For ``set_plan``: add what the window changes."""

    def record(connection: Connection, window: Window) -> None:
        record_databases(connection, window.bounds.channel, window.number, found.databases)

    return record


def _batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for at in range(0, len(names), _BATCH):
        yield names[at : at + _BATCH]


def _values(
    channel: str, name: str, number: int, activity: DatabaseActivity, before: Sequence[InWindow]
) -> dict[str, Any]:
    added = InWindow(number, activity.transactions, activity.rows, activity.seqno, activity.time)
    recent = (added, *(each for each in before if each.number < number))[:RECENT]
    figures = tuple((each.number, each.transactions, each.rows, each.seqno, each.time) for each in recent)
    return {
        "channel": channel,
        "database_name": name,
        "lane": activity.lane,
        "seqno": activity.seqno,
        "row_changes": sum(each.rows for each in recent),
        "recent": text_of(figures),
    }


@dataclass(frozen=True, slots=True)
class DatabasePage:
    """A page of what a search finds, with the state that it is judged by."""

    found: tuple[DatabaseRecord, ...]
    count: int
    """Of all that the search finds."""
    window: Window | None
    """The open window."""
    positions: tuple[LanePosition, ...]
    verifications: tuple[EndedVerification, ...]
    """The newest that have ended, the newest first."""
    suspects: int = 0
    """Rows and definitions of the channel that are known to differ, or differed and are pending."""


def read_databases(
    engine: Engine, channel: str, search: Search, *, offset: int = 0, limit: int | None = None
) -> DatabasePage:
    """A page of what a search finds. Raises PositionError if there is no such channel."""
    with engine.begin() as connection:
        read_channel(connection, channel)
        found, count = find_databases(connection, channel, search, offset=offset, limit=limit)
        return DatabasePage(
            found,
            count,
            read_open_window(connection, channel),
            lane_positions(connection, channel),
            ended_verifications(connection, channel, _VERIFICATIONS),
            sum(count_suspects(connection, channel).values()),
        )


def find_databases(
    connection: Connection, channel: str, search: Search, *, offset: int = 0, limit: int | None = None
) -> tuple[tuple[DatabaseRecord, ...], int]:
    """A page of the databases that a search finds, and the number of all that it finds."""
    matching = _matching(select(databases), channel, search)
    count = connection.execute(_matching(select(func.count()).select_from(databases), channel, search)).scalar_one()
    page = matching.order_by(*_ORDERS[search.order]).offset(offset).limit(2**31 if limit is None else limit)
    rows = connection.execute(page).all()
    names = [row.database_name for row in rows]
    drifted = _suspects(connection, channel, names, _DIFFERS)
    pending = _suspects(connection, channel, names, suspects.c.state == PENDING)
    return tuple(
        _record(row, drifted.get(row.database_name, 0), pending.get(row.database_name, 0)) for row in rows
    ), int(count)


def _matching(query: Select[Any], channel: str, search: Search) -> Select[Any]:
    query = query.where(databases.c.channel == channel)
    if search.pattern != "*":
        query = query.where(databases.c.database_name.like(_like(search.pattern), escape="!"))
    if search.lane is not None:
        query = query.where(databases.c.lane == search.lane)
    if search.drifted:
        differing = select(suspects.c.table_schema).where(suspects.c.channel == channel, _DIFFERS)
        query = query.where(databases.c.database_name.in_(differing))
    return query


_DIFFERS: Final = or_(suspects.c.state == DRIFT, suspects.c.drifted_seqno.is_not(None))


def _like(pattern: str) -> str:
    """A pattern with * and ? as LIKE has it."""
    special = {"*": "%", "?": "_", "%": "!%", "_": "!_", "!": "!!"}
    return "".join(special.get(each, each) for each in pattern)


def _suspects(connection: Connection, channel: str, names: Sequence[str], which: ColumnElement[bool]) -> dict[str, int]:
    """The number of suspects by database."""
    found: dict[str, int] = {}
    for batch in _batches(names):
        query = select(suspects.c.table_schema, func.count()).where(
            suspects.c.channel == channel, suspects.c.table_schema.in_(batch), which
        )
        found |= {name: int(count) for name, count in connection.execute(query.group_by(suspects.c.table_schema))}
    return found


def _record(row: Row[Any], drifted: int, pending: int) -> DatabaseRecord:
    return DatabaseRecord(row.database_name, row.lane, row.row_changes, _recent(row.recent), drifted, pending)


def _recent(text: str) -> tuple[InWindow, ...]:
    return tuple(InWindow(*each) for each in value_of(_Figures, text, databases.c.recent))
