"""Records of verifications and of the rows that they found different."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, case, delete, func, insert, literal_column, or_, select, update

from binlane.choices import VerifyScope
from binlane.lazy_dataclass import dataclass
from binlane.model import CLOCKS_DIFFER, LogPosition, TableKey
from binlane.state.json_columns import optional_value_of, text_of, value_of
from binlane.state.tables import NOW, UTC_NOW, suspects, verifications, windows

RUNNING, CLEAN, PENDING, DRIFT = "running", "clean", "pending", "drift"
INCOMPLETE = "incomplete"
"""No drift, but an account does not see everything that was to be compared."""
BY_STATEMENTS: Final = "statements change the rows of this table, and the log does not show which"
BY_FOREIGN_KEYS: Final = "foreign keys change the rows of this table, and the log does not show which"
"""Notes of pending rows that the next verification may find pending again, for as long as this goes on."""
WITHOUT_KEY: Final = "the table has no key that tells its rows apart, and the source adds or removes equal ones"
"""The note of pending rows that are known by their values alone: the log behind the watermark may be the reason."""
AS_BEFORE: Final = (
    "it differs as at an earlier verification, whose log the target has by now; but the source's log still changes "
    "rows of this table without showing which, so that this row may have changed and changed back"
)
"""The note of rows that are drift by their values alone. No image proves it, so no repair writes them."""
BEING_COPIED: Final = (
    "binlane recopy leaves out the log's changes of the table, and has not copied its rows: run it again"
)
"""The note of a table whose rows are not those of the watermark until a recopy has ended."""
_NOTES: Final = (BY_STATEMENTS, BY_FOREIGN_KEYS, WITHOUT_KEY)

_Texts = tuple[str, ...]
_Row = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a full verification has come."""

    table: str
    after: tuple[str, ...] | None
    """The end of its last chunk; None: the table is finished."""
    key: str
    """The definition of the table's primary key then."""


@dataclass(frozen=True, slots=True)
class Verification:
    """A verification's row."""

    id: int
    kind: str
    through_seqno: int
    tables: int
    chunks: int
    rows: int
    progress: Progress | None
    equal: int = 0
    logged: int = 0
    seconds: float = 0.0
    continued_since: str = ""
    """When its first part began (UTC), if this is a later one."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a verification has done so far."""

    tables: int = 0
    chunks: int = 0
    rows: int = 0
    equal: int = 0
    """Keys proved equal by the source's rows, or by its log's images of them before a change."""
    logged: int = 0
    """Keys of which a column is proved by the log's image after a change alone."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Suspect:
    """A row, or a part of a definition, that differs; fields as in ``tables.suspects``."""

    table: TableKey
    key: tuple[str, ...]
    state: str
    seqno: int
    columns: tuple[str, ...]
    source: tuple[str | None, ...] | None
    target: tuple[str | None, ...] | None
    note: str
    drifted: int | None = None
    """The first watermark at which it was drift, since it was last equal; it can be pending again."""
    since: str | None = None
    """When it was first found different, since it was last equal: UTC, by the target's clock. None: now."""
    log_end: str | None = None
    """The end of the source's log when it was compared; a pending row is settled at a watermark behind it."""
    shape: str | None = None
    """The definition of the table's primary key when it was compared. None: no row's, or not known."""
    reached: str | None = field(default=None, compare=False)
    """The watermark's place in the source's log when it was compared; not stored."""

    @property
    def identity(self) -> tuple[object, ...]:
        """What is the same in two comparisons: a row by its key, or as a whole if its table has none; a part of a
        definition."""
        if self.of_definition:
            return self.table, self.key, self.columns
        return (self.table, self.key) if self.key else (self.table, self.source, self.target)

    def settled_by(self, before: Suspect | None) -> Suspect:
        """This suspect as drift, if it is pending, was found different before, and both servers' rows have the values
        of then, although the target has reached the log's end of then (``AS_BEFORE``: values are no proof).

        So it is if it was drift at this very watermark and the target's row has not changed: what the source does
        later cannot make it equal there. The source's row is then that of the watermark, not the one that was read.
        """
        if before is None or self.state != PENDING or not self.key or self.of_definition:
            return self
        was_drift = before.state == DRIFT and not before.of_definition
        if was_drift and (self.seqno, self.target, self.shape) == (before.seqno, before.target, before.shape):
            return replace(self, state=DRIFT, note=before.note, columns=before.columns, source=before.source)
        is_same = (self.source, self.target, self.shape) == (before.source, before.target, before.shape)
        has_passed = (
            before.log_end is not None and self.reached is not None and _has_reached(self.reached, before.log_end)
        )
        return replace(self, state=DRIFT, note=AS_BEFORE) if is_same and has_passed else self

    def known_since(self, before: Suspect | None) -> Suspect:
        """This suspect with the times of the stored one of the same identity: drift stays known until the rows are
        found equal, also while the source changes them."""
        if before is not None and before.shape not in (None, self.shape):
            before = None  # another row's: its key had this text under another primary key
        drifted = None if before is None else before.drifted
        if drifted is None and self.state == DRIFT:
            drifted = self.seqno
        return replace(self, drifted=drifted, since=None if before is None else before.since)

    @property
    def of_definition(self) -> bool:
        """Whether the suspect is a definition: ``key`` is the object's kind, ``columns`` its differing part, ``note``
        the details. Rows with a key have its shape, too, and may have a note why they are not settled."""
        return self.note != "" and self.key != () and self.shape is None


def _has_reached(reached: str, end: str) -> bool:
    """Whether a place in the source's log is known to be ``end`` or later; places are written as ``LogPosition``."""
    return reached == end or _place(reached).is_behind(_place(end))


def _place(text: str) -> LogPosition:
    file, _, offset = text.rpartition(":")
    return LogPosition(file, int(offset))


def with_times(found: Iterable[Suspect], stored: Iterable[Suspect]) -> tuple[Suspect, ...]:
    """Suspects with the times of those that were stored before them.

    A row without a key that is pending again because no log shows its changes has other values by now: it waits for as
    long as such rows of its table.
    """
    before, waiting = dict[tuple[object, ...], Suspect](), dict[tuple[TableKey, str], str]()
    for one in stored:
        if one.source is None is one.target and one.note == WITHOUT_KEY:
            continue  # of a whole table, whose later changes are others each time
        before[one.identity] = one
        if one.key == () and one.note in (BY_STATEMENTS, BY_FOREIGN_KEYS) and one.since is not None:
            waiting[one.table, one.note] = min(one.since, waiting.get((one.table, one.note), one.since))
    known = (one.settled_by(before.get(one.identity)).known_since(before.get(one.identity)) for one in found)
    return tuple(
        replace(one, since=waiting.get((one.table, one.note))) if one.key == () and one.since is None else one
        for one in known
    )


@dataclass(frozen=True, slots=True)
class PastVerification:
    """A finished or running verification; fields as in ``tables.verifications``."""

    id: int
    kind: str
    window_id: str
    through_seqno: int
    state: str
    started_at: str
    """UTC, by the target's clock, as ``ended_at``."""
    ended_at: str | None
    tables: int
    chunks: int
    rows: int
    drift: int
    pending: int
    scope: tuple[str, ...] = ()
    """The tables that were asked for; empty: all."""
    equal: int = 0
    logged: int = 0
    expected: int = 0
    """Approximate rows of all its tables; 0: not known."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class EndedVerification:
    """A verification that has ended."""

    state: str
    """clean, pending or drift."""
    kind: str
    number: int | None
    """Of the window whose rows were compared; None for kind full, and for a window that is not kept any more."""
    through_seqno: int
    ended_at: str
    """UTC, by the target's clock."""
    scope: tuple[str, ...] = ()
    """The databases and tables that were asked for, as patterns; empty: all."""
    suspects: int = 0
    """Of the channel at its end: rows and definitions that differed, drift and pending."""
    has_gap: bool = False
    """The account did not see everything."""


def ended_verifications(connection: Connection, channel: str, limit: int) -> tuple[EndedVerification, ...]:
    """The newest ``limit``; of older ones the newest that found every table equal, and the newest that found drift. The
    newest first."""
    window = (windows.c.channel == verifications.c.channel) & (windows.c.window_id == verifications.c.window_id)
    c = verifications.c
    ended = (
        select(
            c.id, c.state, c.kind, c.through_seqno, c.ended_at, c.scope, c.drift, c.pending, c.has_gap, windows.c.number
        )
        .join(windows, window, isouter=True)
        .where(c.channel == channel, c.ended_at.is_not(None))
        .order_by(c.id.desc())
    )
    found = list(connection.execute(ended.limit(limit)))
    if len(found) == limit:
        older = ended.where(c.id < found[-1].id).limit(1)
        equal = older.where(c.state == CLEAN, c.kind == VerifyScope.FULL, c.scope.is_(None))
        rows = (*connection.execute(equal), *connection.execute(older.where(c.state == DRIFT)))
        found += sorted(rows, key=lambda row: -row.id)
    return tuple(
        EndedVerification(
            row.state, row.kind, row.number, row.through_seqno, str(row.ended_at),
            optional_value_of(_Texts, row.scope, c.scope) or (), row.drift + row.pending,
            bool(row.has_gap),
        )
        for row in found
    )  # fmt: skip


def unfinished_round(connection: Connection, channel: str) -> PastVerification | None:
    """The unfinished verification of all rows of all tables, which the next one continues."""
    c = verifications.c
    mine = (c.channel == channel, c.kind == VerifyScope.FULL, c.state == RUNNING, c.scope.is_(None))
    row = connection.execute(select(verifications).where(*mine).order_by(c.id.desc()).limit(1)).one_or_none()
    return None if row is None else _past(row)


def read_verifications(connection: Connection, channel: str, limit: int) -> tuple[PastVerification, ...]:
    """The channel's last verifications, newest first."""
    mine = select(verifications).where(verifications.c.channel == channel)
    return tuple(map(_past, connection.execute(mine.order_by(verifications.c.id.desc()).limit(limit))))


def last_ended(connection: Connection, channel: str) -> PastVerification | None:
    """The verification that ended last: of those whose end the target's clock has reached, if there are any."""
    ended = select(verifications).where(verifications.c.channel == channel, verifications.c.ended_at.is_not(None))
    at = verifications.c.ended_at
    is_ahead = case((at > literal_column(f"{UTC_NOW} + INTERVAL {CLOCKS_DIFFER:.0f} SECOND"), 1), else_=0)
    row = connection.execute(ended.order_by(is_ahead, at.desc()).limit(1)).one_or_none()
    return None if row is None else _past(row)


def _past(row: Row[Any]) -> PastVerification:
    return PastVerification(
        id=row.id,
        kind=row.kind,
        window_id=row.window_id,
        through_seqno=row.through_seqno,
        state=row.state,
        started_at=str(row.started_at),
        ended_at=None if row.ended_at is None else str(row.ended_at),
        tables=row.tables,
        chunks=row.chunks,
        rows=row.compared_rows,
        drift=row.drift,
        pending=row.pending,
        scope=optional_value_of(_Texts, row.scope, verifications.c.scope) or (),
        equal=row.equal_rows or 0,
        logged=row.logged_rows or 0,
        expected=row.expected_rows or 0,
        seconds=row.seconds or 0.0,
    )


def begin_verification(
    connection: Connection,
    channel: str,
    kind: str,
    window: str,
    seqno: int,
    scope: _Texts = (),
    expected: int = 0,
    *,
    anew: bool = False,
    rules: str = "",
) -> Verification:
    """Record a new verification; for kind ``full``, resume the unfinished one of the same scope if there is one, or
    forget it: ``anew``, or if it has compared tables under other ``rules``, the digest of filter and renames."""
    asked = None if scope == () else text_of(scope)
    if kind == VerifyScope.FULL:
        of_scope = (
            verifications.c.channel == channel,
            verifications.c.kind == VerifyScope.FULL,
            verifications.c.state == RUNNING,
            verifications.c.scope.is_(None) if asked is None else verifications.c.scope == asked,
        )
        if anew:
            connection.execute(delete(verifications).where(*of_scope))
        # its tables were compared with others of the source
        connection.execute(delete(verifications).where(*of_scope, func.coalesce(verifications.c.rules, "") != rules))
        unfinished = connection.execute(select(verifications).where(*of_scope)).first()
        if unfinished is not None:
            counts = (unfinished.tables, unfinished.chunks, unfinished.compared_rows)
            kept = optional_value_of(tuple[str, _Texts | None], unfinished.progress, verifications.c.progress)
            progress = None if kept is None else Progress(*kept, unfinished.progress_key or "")
            proved = (unfinished.equal_rows or 0, unfinished.logged_rows or 0, unfinished.seconds or 0.0)
            began = str(unfinished.started_at)
            return Verification(unfinished.id, kind, unfinished.through_seqno, *counts, progress, *proved, began)
    added = connection.execute(
        insert(verifications).values(
            channel=channel,
            kind=kind,
            window_id=window,
            through_seqno=seqno,
            state=RUNNING,
            started_at=NOW,
            tables=0,
            chunks=0,
            compared_rows=0,
            drift=0,
            pending=0,
            scope=asked,
            expected_rows=expected,
            rules=rules or None,
        )
    )
    [number] = added.inserted_primary_key or (0,)
    return Verification(number, kind, seqno, 0, 0, 0, None)


def save_progress(connection: Connection, number: int, counts: Counts, progress: Progress | None) -> None:
    """Store progress."""
    text = None if progress is None else text_of((progress.table, progress.after))
    connection.execute(
        update(verifications)
        .where(verifications.c.id == number)
        .values(
            tables=counts.tables,
            chunks=counts.chunks,
            compared_rows=counts.rows,
            equal_rows=counts.equal,
            logged_rows=counts.logged,
            seconds=counts.seconds,
            progress=text,
            progress_key=None if progress is None else progress.key,
        )
    )


def end_verification(
    connection: Connection, number: int, state: str, drift: int, pending: int, *, has_gap: bool
) -> None:
    """Record the end of a verification; ``drift`` and ``pending``: numbers of the remaining suspects."""
    connection.execute(
        update(verifications)
        .where(verifications.c.id == number)
        .values(state=state, drift=drift, pending=pending, has_gap=int(has_gap), ended_at=NOW)
    )


def verified_through(connection: Connection, channel: str) -> dict[str, int]:
    """By kind, the highest seqno up to which a verification, not of some tables only, found both servers equal."""
    rows = connection.execute(
        select(verifications.c.kind, func.max(verifications.c.through_seqno))
        .where(verifications.c.channel == channel, verifications.c.state == CLEAN, verifications.c.scope.is_(None))
        .group_by(verifications.c.kind)
    )
    return {kind: int(seqno) for kind, seqno in rows}


def count_suspects(connection: Connection, channel: str) -> dict[str, int]:
    """Number of suspects by state."""
    rows = connection.execute(
        select(suspects.c.state, func.count()).where(suspects.c.channel == channel).group_by(suspects.c.state)
    )
    return {state: int(count) for state, count in rows}


_KNOWN_TO_DIFFER: Final = or_(suspects.c.state == DRIFT, suspects.c.drifted_seqno.is_not(None))
"""Was drift once, and has not been found equal since."""


def count_drifted(connection: Connection, channel: str) -> int:
    """The rows and definitions that were drift once and have not been found equal since."""
    counted = select(func.count()).where(suspects.c.channel == channel, _KNOWN_TO_DIFFER)
    return int(connection.execute(counted).scalar_one())


def read_drifted(connection: Connection, channel: str, limit: int) -> tuple[Suspect, ...]:
    """The first of the rows and definitions that ``count_drifted`` counts."""
    query = select(suspects).where(suspects.c.channel == channel, _KNOWN_TO_DIFFER).order_by(suspects.c.id)
    return tuple(map(_suspect, connection.execute(query.limit(limit))))


def oldest_pending(connection: Connection, channel: str) -> str | None:
    """When the oldest of the suspects that are pending now was first found different; UTC, by the target's clock."""
    found = select(func.min(func.coalesce(suspects.c.since, suspects.c.at)))
    since = connection.execute(found.where(suspects.c.channel == channel, suspects.c.state == PENDING)).scalar_one()
    return None if since is None else str(since)


@dataclass(frozen=True, slots=True)
class Unshown:
    """The pending rows of one table whose changes no log shows, and that were pending before, too; of a table without a
    key all that are pending."""

    table: TableKey
    note: str
    """BY_STATEMENTS, BY_FOREIGN_KEYS or WITHOUT_KEY."""
    rows: int
    since: str
    """When the oldest of them was first found different; UTC, by the target's clock. Empty: now."""


def unshown_among(pending: Iterable[Suspect]) -> tuple[Unshown, ...]:
    """Of one verification's pending rows, by table, the most rows first."""
    found: dict[tuple[TableKey, str], list[str | None]] = {}
    for one in pending:
        if one.note == WITHOUT_KEY or (one.note in _NOTES and one.since is not None):
            found.setdefault((one.table, one.note), []).append(one.since)
    return _most_first(
        Unshown(*of, len(since), min((each for each in since if each is not None), default=""))
        for of, since in found.items()
    )


def unshown_rows(connection: Connection, channel: str) -> tuple[Unshown, ...]:
    """By table, the most rows first."""
    c = suspects.c
    since = func.min(func.coalesce(c.since, c.at)).label("since")
    rows = connection.execute(
        select(c.table_schema, c.table_name, c.note, func.count().label("rows"), since)
        .where(c.channel == channel, c.state == PENDING, c.note.in_(_NOTES))
        .where(or_(c.note == WITHOUT_KEY, c.since < c.at))
        .group_by(c.table_schema, c.table_name, c.note)
    )
    found = (Unshown(TableKey(row[0], row[1]), row.note, int(row.rows), str(row.since)) for row in rows)
    return _most_first(found)


def without_key(found: Iterable[Unshown]) -> int:
    """How many of these rows belong to tables without a key."""
    return sum(each.rows for each in found if each.note == WITHOUT_KEY)


def _most_first(found: Iterable[Unshown]) -> tuple[Unshown, ...]:
    return tuple(sorted(found, key=lambda each: (-each.rows, str(each.table))))


def read_suspects(connection: Connection, channel: str) -> tuple[Suspect, ...]:
    """The channel's suspects, in the order in which they were stored."""
    rows = connection.execute(select(suspects).where(suspects.c.channel == channel).order_by(suspects.c.id))
    return tuple(map(_suspect, rows))


def read_tables_being_copied(connection: Connection, channel: str) -> frozenset[TableKey]:
    """The tables that a recopy has not finished."""
    is_copied = (suspects.c.channel == channel) & (suspects.c.note == BEING_COPIED)
    rows = connection.execute(select(suspects.c.table_schema, suspects.c.table_name).where(is_copied))
    return frozenset(TableKey(database, table) for database, table in rows)


def _suspect(row: Row[Any]) -> Suspect:
    return Suspect(
        table=TableKey(row.table_schema, row.table_name),
        key=value_of(_Texts, row.row_key, suspects.c.row_key),
        state=row.state,
        seqno=row.seqno,
        columns=value_of(_Texts, row.column_names, suspects.c.column_names),
        source=optional_value_of(_Row, row.source_row, suspects.c.source_row),
        target=optional_value_of(_Row, row.target_row, suspects.c.target_row),
        note=row.note,
        drifted=row.seqno if row.drifted_seqno is None and row.state == DRIFT else row.drifted_seqno,
        since=str(row.at if row.since is None else row.since),
        log_end=row.log_end,
        shape=row.key_shape,
    )


def replace_suspects(connection: Connection, channel: str, judged: Iterable[Suspect], found: Sequence[Suspect]) -> None:
    """Replace the suspects that a verification has judged by those that it has found.

    The others stay, among them those that another verification has stored since this one has read what it judged. So
    does the note of a table that a recopy has not filled, as long as anything of the table differs: by the note alone
    the recopy knows, when it goes on, that the rows are not to be changed by windows.
    """
    differing = {one.table for one in found}
    kept = {one for one in judged if one.note == BEING_COPIED and one.table in differing}
    gone, again = set(judged) - kept, {one.identity for one in found}
    left = [one for one in read_suspects(connection, channel) if one not in gone and one.identity not in again]
    connection.execute(delete(suspects).where(suspects.c.channel == channel))
    add_suspects(connection, channel, (*left, *found))


def add_suspects(connection: Connection, channel: str, found: Iterable[Suspect]) -> None:
    """Store further suspects."""
    rows = [
        {
            "channel": channel,
            "table_schema": one.table.database,
            "table_name": one.table.table,
            "row_key": text_of(one.key),
            "state": one.state,
            "seqno": one.seqno,
            "drifted_seqno": one.drifted,
            "column_names": text_of(one.columns),
            "source_row": None if one.source is None else text_of(one.source),
            "target_row": None if one.target is None else text_of(one.target),
            "note": one.note,
            "log_end": one.log_end,
            "key_shape": one.shape,
            "known_since": one.since,
        }
        for one in found
    ]
    if rows:
        given: dict[str, Any] = {name: bindparam(name) for name in rows[0] if name != "known_since"}
        since = func.coalesce(bindparam("known_since", type_=suspects.c.since.type), NOW)
        connection.execute(insert(suspects).values(**given, at=NOW, since=since), rows)
