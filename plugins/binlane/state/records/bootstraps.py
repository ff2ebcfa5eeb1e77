"""First copies: their snapshot, the objects that they create on the target, and their results."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pymysql.converters import escape_string
from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Row,
    Table,
    case,
    delete,
    func,
    insert,
    literal_column,
    or_,
    select,
    text,
    type_coerce,
    update,
)

from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition, SchemaObject
from binlane.state.channels import Watermark, is_named_in
from binlane.state.json_columns import optional_value_of, text_of, value_of
from binlane.state.tables import NOW, bootstrap_objects, bootstraps, channels

Key = tuple[str, ...]
"""The texts of a primary key's values, as ``verify.column_text`` has them."""
PLANNED, DONE = "planned", "done"
TABLE, VIEW = "table", "view"
_ACCOUNT: Final = "account"
TABLES: Final[tuple[Table, ...]] = (bootstrap_objects, bootstraps)
"""Tables whose rows stay when the channel's row is created: the copy's own record is updated after that."""


_MOST_NOTES: Final = 400
_LONGEST_NOTE: Final = 1_500
"""Characters; JSON makes twelve of each at most, and the column has 8 MiB."""


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What a first copy was asked for, and what it has copied."""

    databases: int
    tables: int
    kept: int
    """Finished tables of an earlier attempt."""
    rows: int
    others: int
    """Views, routines, triggers, events and sequences."""
    accounts: int
    notes: tuple[str, ...]
    attempts: int
    asked: tuple[tuple[str, ...], bool]
    """The names or patterns of databases, and whether accounts were to be copied."""
    resumed: int = 0
    """Tables that were continued behind the rows of an earlier attempt."""
    channel_uuid: str = ""
    """Of the channel's row that the copy makes: one of another uuid is somebody else's."""


def bounded_notes(notes: Sequence[str]) -> tuple[str, ...]:
    """The notes of a copy as its record has room for: the first ones, and how many more there are."""
    kept = [one if len(one) <= _LONGEST_NOTE else f"{one[:_LONGEST_NOTE]} ..." for one in notes[:_MOST_NOTES]]
    return (*kept, *([f"and {len(notes) - _MOST_NOTES:,} more notes"] if len(notes) > _MOST_NOTES else ()))


@dataclass(frozen=True, slots=True)
class CompleteCopy:
    """A first copy that is complete, with or without the channel's row."""

    databases: tuple[str, ...]
    snapshot: Watermark
    result: CopyResult
    finished_for: str | None
    """The order whose attempt reported the result (empty: the command line); None: not reported yet."""


class Size(NamedTuple):
    """The source's estimate of a table's size."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ObjectProgress:
    """How far an object of a first copy has come."""

    state: str
    rows: int
    """Committed rows of the table."""
    reached: Key | None
    """Every row up to this key is committed; None: no key is known."""
    reached_rows: int
    """Committed rows up to ``reached``."""
    size: Size

    @property
    def bytes(self) -> int:
        """The copied part of ``size.bytes``."""
        return copied_bytes(self.size, self.rows, is_done=self.state == DONE)


def copied_bytes(size: Size, rows: int, *, is_done: bool) -> int:
    """The copied part of a table's bytes, by its copied rows. The estimate of the rows may be too low, so only a
    finished table counts as whole."""
    return size.bytes if is_done else int(size.bytes * min(rows / max(size.rows, 1), _ALMOST))


_ALMOST: Final = 0.99
_OPEN_TABLES: Final = 10


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """An unfinished first copy."""

    databases: tuple[str, ...]
    source_identity: str
    snapshot: Watermark
    attempts: int
    made: dict[SchemaObject, ObjectProgress]
    """The objects that the copy may have created."""
    replaced_for: str
    """The order that dropped the databases before the copy; empty if they were not dropped."""
    attempt_seconds: float
    """Since the last attempt began to copy rows."""
    attempt_bytes: int
    """Bytes of the source's tables that were copied before it."""

    @property
    def objects(self) -> frozenset[SchemaObject]:
        """The objects in databases: all that may have been created but accounts."""
        return frozenset(obj for obj in self.made if obj.kind != _ACCOUNT)

    def has_account(self, name: str) -> bool:
        """Whether the copy may have created the account or role, by its name in SQL."""
        return account_object(name) in self.made

    @property
    def done(self) -> frozenset[SchemaObject]:
        """The tables with all rows of ``snapshot``."""
        return frozenset(obj for obj, copying in self.made.items() if copying.state == DONE)


@dataclass(frozen=True, slots=True)
class CopySums:
    """An unfinished first copy, for people who look at it: sums, however many objects it has."""

    snapshot: Watermark
    attempts: int
    tables: int
    finished: int
    """Tables with all of their rows."""
    rows: int
    """Committed rows of all tables."""
    bytes: int
    """The copied part of ``all_bytes``."""
    all_bytes: int
    """The source's estimate of all tables' bytes."""
    open_tables: tuple[tuple[SchemaObject, ObjectProgress], ...]
    """The largest tables with some of their rows."""
    attempt_seconds: float
    """As ``Bootstrap`` has them, and ``attempt_bytes``."""
    attempt_bytes: int


@dataclass(frozen=True, slots=True)
class CopyRecord:
    """A first copy, finished or not, for people who look at it."""

    databases: tuple[str, ...]
    snapshot: Watermark
    attempts: int
    is_finished: bool
    """The channel's row exists."""
    order: str
    """The order that finished it; empty: the command line, or not finished."""
    result: CopyResult | None
    """None before all is copied."""
    updated_at: str
    """UTC, by the target's clock."""
    objects: tuple[tuple[str, str, int, int], ...]
    """Of an unfinished copy by kind and state: kind, state, number of objects, copied rows."""


def read_copy(connection: Connection, channel: str) -> CopyRecord | None:
    """The channel's first copy; None if it had none."""
    row = connection.execute(select(bootstraps).where(bootstraps.c.channel == channel)).one_or_none()
    if row is None:
        return None
    c = bootstrap_objects.c
    counted = (
        select(c.kind, c.state, func.count(), func.sum(c.copied_rows))
        .where(c.channel == channel)
        .group_by(c.kind, c.state)
        .order_by(c.kind, c.state)
    )
    return CopyRecord(
        databases=_databases(row),
        snapshot=_snapshot(row),
        attempts=row.attempts,
        is_finished=row.finished_for is not None,
        order=row.finished_for or "",
        result=optional_value_of(CopyResult, row.outcome, bootstraps.c.outcome),
        updated_at=str(row.updated_at),
        objects=tuple((kind, state, int(count), int(rows)) for kind, state, count, rows in connection.execute(counted)),
    )


def _unfinished(connection: Connection, channel: str) -> Row[Any] | None:
    seconds = func.timestampdiff(text("MICROSECOND"), bootstraps.c.attempt_at, NOW).label("attempt_micros")
    row = connection.execute(select(bootstraps, seconds).where(bootstraps.c.channel == channel)).one_or_none()
    return None if row is None or row.finished_for is not None else row


def read_sums(connection: Connection, channel: str) -> CopySums | None:
    """The channel's unfinished first copy; None if there is none. One row, and some of open tables: who looks at a
    fleet's copy has no room for all of its objects."""
    row = _unfinished(connection, channel)
    if row is None:
        return None
    c = bootstrap_objects.c
    of_tables = c.channel == channel, c.kind == TABLE
    # as ``copied_bytes``; with decimal numbers the servers would round the quotient
    part = c.copied_rows * literal_column("1e0") / func.greatest(func.coalesce(c.source_rows, 0), 1)
    part = func.floor(c.source_bytes * func.least(part, literal_column(f"{_ALMOST}e0")))
    copied = type_coerce(case((c.state == DONE, c.source_bytes), else_=part), Float)
    finished = case((c.state == DONE, 1), else_=0)
    summed = select(
        func.count(), func.sum(finished), func.sum(c.copied_rows), func.sum(copied), func.sum(c.source_bytes)
    ).where(*of_tables)
    tables, *sums = connection.execute(summed).one()
    done, rows, copied_now, everything = (int(one or 0) for one in sums)
    names = (c.kind, c.object_schema, c.object_name, c.state, c.copied_rows, c.source_rows, c.source_bytes)
    still_open = select(*names).where(*of_tables, c.state != DONE, c.copied_rows != 0)
    found = connection.execute(still_open.order_by(c.source_bytes.desc()).limit(_OPEN_TABLES))
    open_tables = tuple(
        (
            SchemaObject(one.kind, one.object_schema, one.object_name),
            ObjectProgress(one.state, one.copied_rows, None, 0, Size(one.source_rows or 0, one.source_bytes or 0)),
        )
        for one in found
    )
    return CopySums(
        _snapshot(row), row.attempts, int(tables), done, rows, copied_now, everything, open_tables,
        (row.attempt_micros or 0) / 1e6, row.attempt_bytes or 0,
    )  # fmt: skip


def read_bootstrap(connection: Connection, channel: str) -> Bootstrap | None:
    """The channel's unfinished first copy with each of its objects, for who copies; None if there is none."""
    row = _unfinished(connection, channel)
    if row is None:
        return None
    objects = connection.execute(select(bootstrap_objects).where(bootstrap_objects.c.channel == channel))
    return Bootstrap(
        _databases(row),
        row.source_identity,
        _snapshot(row),
        row.attempts,
        {SchemaObject(one.kind, one.object_schema, one.object_name): _copying(one) for one in objects},
        row.replaced_for,
        (row.attempt_micros or 0) / 1e6,
        row.attempt_bytes or 0,
    )


def _copying(row: Row[Any]) -> ObjectProgress:
    reached = optional_value_of(tuple[str, ...], row.reached, bootstrap_objects.c.reached)
    size = Size(row.source_rows or 0, row.source_bytes or 0)
    return ObjectProgress(row.state, row.copied_rows, reached, row.reached_rows or 0, size)


def has_bootstrap(connection: Connection, channel: str) -> bool:
    """Whether a first copy of the channel has begun on this target; it need not have the schema."""
    return is_named_in(bootstraps, connection, channel)


def _databases(row: Row[Any]) -> tuple[str, ...]:
    return value_of(tuple[str, ...], row.database_names, bootstraps.c.database_names)


def _snapshot(row: Row[Any]) -> Watermark:
    place = LogPosition(row.source_file, row.source_offset)
    return Watermark(0, place, row.gtid_set, row.source_time, row.fingerprint)


def read_copied(connection: Connection, channel: str) -> CompleteCopy | None:
    """The channel's complete first copy; None if there is none."""
    row = connection.execute(select(bootstraps).where(bootstraps.c.channel == channel)).one_or_none()
    if row is None or row.outcome is None:
        return None
    result = value_of(CopyResult, row.outcome, bootstraps.c.outcome)
    return CompleteCopy(_databases(row), _snapshot(row), result, row.finished_for)


def other_copies(connection: Connection, channel: str) -> Iterator[tuple[str, str]]:
    """The databases of other channels' first copies, finished or not, each with the channel. A finished copy whose
    channel was removed by hand says nothing."""
    of = bootstraps.c
    query = (
        select(of.channel, of.database_names)
        .outerjoin(channels, channels.c.channel == of.channel)
        .where(of.channel != channel, or_(of.finished_for.is_(None), channels.c.channel.is_not(None)))
    )
    for row in connection.execute(query):
        names = value_of(tuple[str, ...], row.database_names, bootstraps.c.database_names)
        yield from ((name, row.channel) for name in names)


def account_object(name: str) -> SchemaObject:
    """An account or role, by its name in SQL, as it is recorded: its name may be longer than an object's."""
    return SchemaObject(_ACCOUNT, "", hashlib.sha256(name.encode()).hexdigest())


def save_snapshot(
    connection: Connection,
    channel: str,
    databases: Collection[str],
    identity: str,
    snapshot: Watermark,
    replaced_for: str = "",
) -> int:
    """Store the snapshot of which all recorded rows are now; the attempt's number. ``replaced_for``: stored by the
    first attempt only."""
    before = read_bootstrap(connection, channel)
    values = {
        "database_names": text_of(sorted(databases)),
        "source_identity": identity,
        "source_file": snapshot.source.file,
        "source_offset": snapshot.source.offset,
        "gtid_set": snapshot.gtid_set,
        "source_time": snapshot.source_time,
        "fingerprint": snapshot.fingerprint,
        "outcome": None,
        "attempts": 1 if before is None else before.attempts + 1,
        "attempt_at": NOW,
        "attempt_bytes": 0 if before is None else sum(each.bytes for each in before.made.values()),
        "updated_at": NOW,
    }
    if before is None:
        forget_bootstrap(connection, channel)  # the finished copy of an earlier channel of this name
        connection.execute(insert(bootstraps).values(channel=channel, replaced_for=replaced_for, **values))
        return 1
    connection.execute(update(bootstraps).where(bootstraps.c.channel == channel).values(**values))
    return before.attempts + 1


def plan_objects(
    connection: Connection, channel: str, objects: Iterable[SchemaObject], sizes: Mapping[SchemaObject, Size]
) -> None:
    """Record that ``objects`` are about to be created, and the sizes of tables."""
    rows = [
        {
            "channel": channel,
            "kind": obj.kind,
            "object_schema": obj.database,
            "object_name": obj.name,
            "state": PLANNED,
            "copied_rows": 0,
            "source_rows": sizes.get(obj, Size(0, 0)).rows,
            "source_bytes": sizes.get(obj, Size(0, 0)).bytes,
        }
        for obj in objects
    ]
    if rows:
        connection.execute(insert(bootstrap_objects), rows)


def forget_objects(connection: Connection, channel: str, objects: Iterable[SchemaObject]) -> None:
    """Record that ``objects`` were dropped."""
    for obj in objects:
        connection.execute(delete(bootstrap_objects).where(*_is(channel, obj)))


def unplan_rows(connection: Connection, channel: str, objects: Iterable[SchemaObject]) -> None:
    """Record that no row of these tables can be kept, before the tables are dropped."""
    for obj in objects:
        values = {"state": PLANNED, "copied_rows": 0, "reached": None, "reached_rows": None}
        connection.execute(update(bootstrap_objects).where(*_is(channel, obj)).values(**values))


def count_rows(
    execute: Callable[[str], object],
    channel: str,
    obj: SchemaObject,
    rows: int,
    *,
    reached: tuple[Key, int] | None = None,
    are_reached: bool = False,
) -> None:
    """Count the rows that the open transaction of ``execute``'s session has added or, below 0, removed.

    ``reached``: the key up to which other transactions have committed every row, and the number of these rows.
    ``are_reached``: the counted rows are up to the recorded key.
    """
    values = f"copied_rows = copied_rows + {rows}"
    if reached is not None:
        values += f", reached = '{escape_string(text_of(list(reached[0])))}', reached_rows = {reached[1]}"
    elif are_reached:
        values += f", reached_rows = reached_rows + {rows}"
    own = {"channel": channel, "kind": obj.kind, "object_schema": obj.database, "object_name": obj.name}
    where = " AND ".join(f"{name} = '{escape_string(value)}'" for name, value in own.items())
    execute(f"UPDATE {bootstrap_objects.fullname} SET {values} WHERE {where}")


def finish_table(connection: Connection, channel: str, obj: SchemaObject) -> None:
    """Record that the table has all of its rows."""
    connection.execute(update(bootstrap_objects).where(*_is(channel, obj)).values(state=DONE))


def save_result(connection: Connection, channel: str, result: CopyResult) -> None:
    """Record that only the channel's row is left to create."""
    ours = bootstraps.c.channel == channel
    connection.execute(update(bootstraps).where(ours).values(outcome=text_of(result), updated_at=NOW))


def finish_bootstrap(connection: Connection, channel: str, order: str) -> None:
    """Record that the channel's row exists and that ``order`` got the result."""
    connection.execute(delete(bootstrap_objects).where(bootstrap_objects.c.channel == channel))
    connection.execute(
        update(bootstraps).where(bootstraps.c.channel == channel).values(finished_for=order, updated_at=NOW)
    )


def forget_bootstrap(connection: Connection, channel: str) -> None:
    """Delete the record of a first copy."""
    for table in TABLES:
        connection.execute(delete(table).where(table.c.channel == channel))


def _is(channel: str, obj: SchemaObject) -> tuple[ColumnElement[bool], ...]:
    c = bootstrap_objects.c
    return c.channel == channel, c.kind == obj.kind, c.object_schema == obj.database, c.object_name == obj.name
