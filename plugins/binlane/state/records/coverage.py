"""The changes of a channel that verifications have covered: the rows of windows, and all rows of all tables.

A verification extends what it has compared and nothing else: the rows of windows that follow the covered ones, or, if
it has compared every table, all changes up to the watermark at which it began. What differed stays in ``suspects``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Select, delete, insert, select, update

from binlane.lazy_dataclass import dataclass
from binlane.model import FolderRecord, TableKey
from binlane.state.json_columns import optional_value_of
from binlane.state.records.verifications import RUNNING
from binlane.state.tables import NOW, verifications, verified, verified_tables, windows
from binlane.state.windows import FINISHED, folder_record


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """Through which seqno the target was compared; 0 is the channel's beginning."""

    rows_after: int = 0
    rows_through: int = 0
    """The rows of all windows after ``rows_after``, through this seqno, were compared."""
    full_through: int | None = None
    """All rows of all tables were compared, at this watermark or later ones; None: never."""
    full_at: str | None = None
    """When that ended: UTC, by the target's clock."""
    rules: str = ""
    """The digest of the channel's filter and renames then; empty: not known."""
    crashed: str = ""
    """The last file of the log in which the source has crashed, if its log may lack transactions for that and all rows
    have not been compared since."""

    def under(self, rules: str) -> CoverageRow:
        """What is covered under these rules, which may take other tables than those of then. Empty: any."""
        is_same = "" in (rules, self.rules) or rules == self.rules
        return self if is_same else CoverageRow(rules=rules, crashed=self.crashed)

    @property
    def through(self) -> int:
        """The seqno through which every change was compared."""
        full = self.full_through or 0
        return max(full, self.rows_through) if self.rows_after <= full else full

    def with_windows(self, after: int, through: int) -> CoverageRow:
        """The rows of the windows in (``after``, ``through``] have been compared, too."""
        begins = min(self.rows_after, after) if after <= self.rows_through else after
        return replace(self, rows_after=begins, rows_through=max(self.rows_through, through))


@dataclass(frozen=True, slots=True)
class FinishedWindow:
    """A finished window whose rows can be compared."""

    window_id: str
    first_seqno: int
    last_seqno: int
    work: FolderRecord


def read_covered(connection: Connection, channel: str, rules: str = "") -> CoverageRow:
    """What the verifications of a channel have covered under these rules; empty: under any."""
    row = connection.execute(select(verified).where(verified.c.channel == channel)).one_or_none()
    if row is None:
        return CoverageRow()
    at = None if row.full_at is None else str(row.full_at)
    crashed = "" if row.crashed_at is None else row.crashed_file or ""
    return CoverageRow(row.rows_after, row.rows_through, row.full_through, at, row.rules or "", crashed).under(rules)


def cover_windows(connection: Connection, channel: str, after: int, through: int, rules: str = "") -> None:
    """The rows of the windows in (``after``, ``through``] have been compared."""
    covered = read_covered(connection, channel, rules).with_windows(after, through)
    _store(connection, channel, covered, rules, covered.full_at)


def cover_all(connection: Connection, channel: str, through: int, rules: str = "", verification: int = 0) -> None:
    """All rows of all tables have been compared; ``through``: the watermark when that began."""
    covered = replace(read_covered(connection, channel, rules), full_through=through)
    _store(connection, channel, covered, rules, NOW)
    begun = select(verifications.c.started_at).where(verifications.c.id == verification)
    _note_uncovered(connection, channel, covered.through, connection.execute(begun).scalar_one_or_none())
    # rows that a verification has read before the crash are not compared since
    compared = (verified.c.channel == channel, verified.c.crashed_at < begun.scalar_subquery())
    connection.execute(update(verified).where(*compared).values(crashed_at=None))


def note_crash(connection: Connection, channel: str, file: str) -> None:
    """The source has crashed in a file of its log, which may lack transactions for that. Nothing changes if that is
    known: a file may be read again."""
    known = connection.execute(select(verified.c.crashed_file).where(verified.c.channel == channel)).scalar()
    if known != file:
        _put(connection, channel, crashed_file=file, crashed_at=NOW)


def note_uncovered(connection: Connection, channel: str) -> None:
    """Remember when the first change was applied that no verification has covered, before rows of windows are
    deleted."""
    _note_uncovered(connection, channel, read_covered(connection, channel).through, None)


def _note_uncovered(connection: Connection, channel: str, through: int, begun: object) -> None:
    """``begun``: when the verification began, and so before changes that are not covered; None: none has ended now."""
    known = connection.execute(select(verified.c.uncovered_seqno).where(verified.c.channel == channel)).scalar()
    if known is not None and known > through:
        return
    found = connection.execute(_behind(channel, through)).first()
    if found is None:
        return
    seqno, at = found.last_seqno, found.finished_at
    if found.first_seqno > through + 1 and begun is not None:
        seqno, at = through + 1, begun
    _put(connection, channel, uncovered_seqno=seqno, uncovered_at=at)


def _behind(channel: str, through: int) -> Select[Any]:
    """The first window with a transaction behind a seqno."""
    return (
        select(windows.c.first_seqno, windows.c.last_seqno, windows.c.finished_at)
        .where(windows.c.channel == channel, windows.c.state == FINISHED, windows.c.last_seqno > through)
        .order_by(windows.c.number)
        .limit(1)
    )


def _store(connection: Connection, channel: str, covered: CoverageRow, rules: str, full_at: object) -> None:
    _put(
        connection,
        channel,
        rows_after=covered.rows_after,
        rows_through=covered.rows_through,
        full_through=covered.full_through,
        full_at=full_at,
        rules=rules or None,
    )


def _put(connection: Connection, channel: str, **values: object) -> None:
    found = connection.execute(select(verified.c.channel).where(verified.c.channel == channel).with_for_update())
    if found.first() is None:
        connection.execute(insert(verified).values(channel=channel, **{"rows_after": 0, "rows_through": 0, **values}))
    else:
        connection.execute(update(verified).where(verified.c.channel == channel).values(**values))


def windows_to_verify(
    connection: Connection, channel: str, rules: str, has_files: Callable[[str, FolderRecord], bool]
) -> tuple[FinishedWindow, ...]:
    """The last finished window, and those before it whose rows no verification has compared, as far as their folders
    are there without a gap; oldest first. ``has_files``: whether a window's folder is there; that of the last one is
    noted as removed if it is not."""
    through = read_covered(connection, channel, rules).through
    rows = connection.execute(
        select(windows.c.window_id, windows.c.first_seqno, windows.c.last_seqno, windows.c.work, windows.c.files)
        .where(windows.c.channel == channel, windows.c.state == FINISHED)
        .order_by(windows.c.number.desc())
    )
    found: list[FinishedWindow] = []
    for row in rows:
        if found and row.last_seqno <= through:
            break
        record = folder_record(row.work, row.files)
        if not has_files(row.window_id, record):
            if found:
                break
            record = FolderRecord("")
        found.append(FinishedWindow(row.window_id, row.first_seqno, row.last_seqno, record))
        if record.is_removed:
            break
    return tuple(reversed(found))


def first_uncovered(connection: Connection, channel: str, through: int) -> str | None:
    """When the first window with a transaction behind seqno ``through`` was finished; None: there is none."""
    window = connection.execute(_behind(channel, through)).first()
    kept = select(verified.c.uncovered_at).where(verified.c.channel == channel, verified.c.uncovered_seqno > through)
    known = (None if window is None else window.finished_at, connection.execute(kept).scalar_one_or_none())
    return min((str(at) for at in known if at is not None), default=None)


def note_table(connection: Connection, channel: str, table: TableKey, verification: int, seqno: int) -> None:
    """Every row of a table has been compared; ``seqno``: the watermark at the last of them."""
    this = (
        verified_tables.c.channel == channel,
        verified_tables.c.table_schema == table.database,
        verified_tables.c.table_name == table.table,
    )
    values = {"verification": verification, "through_seqno": seqno, "at": NOW}
    if connection.execute(update(verified_tables).where(*this).values(**values)).rowcount == 0:
        key = {"channel": channel, "table_schema": table.database, "table_name": table.table}
        connection.execute(insert(verified_tables).values(**key, **values))


def forget_compared(connection: Connection, channel: str, is_replaced: Callable[[TableKey], bool]) -> None:
    """Let the channel's unfinished full verifications begin these tables again: their names stand for other rows now.

    In the transaction that moves the watermark behind the DDL.
    """
    unfinished = select(verifications.c.id, verifications.c.progress).where(
        verifications.c.channel == channel, verifications.c.state == RUNNING
    )
    for number, progress in connection.execute(unfinished).all():
        for table in tables_of(connection, channel, number):
            if is_replaced(table):
                connection.execute(
                    delete(verified_tables).where(
                        verified_tables.c.channel == channel,
                        verified_tables.c.table_schema == table.database,
                        verified_tables.c.table_name == table.table,
                    )
                )
        kept = optional_value_of(tuple[str, tuple[str, ...] | None], progress, verifications.c.progress)
        # its name as text: either part may contain dots
        dots = () if kept is None else (at for at, letter in enumerate(kept[0]) if letter == ".")
        if kept is not None and any(is_replaced(TableKey(kept[0][:at], kept[0][at + 1 :])) for at in dots):
            this = update(verifications).where(verifications.c.id == number)
            connection.execute(this.values(progress=None, progress_key=None))


def forget_verified(connection: Connection, channel: str) -> None:
    """Forget all verifications of the channel: the target is another server, of which nothing was compared. The rows
    that were known to differ stay, until they are found equal, and so does a crash of the source: its log is the
    same."""
    for table in (verified_tables, verifications):
        connection.execute(delete(table).where(table.c.channel == channel))
    this = verified.c.channel == channel
    connection.execute(delete(verified).where(this, verified.c.crashed_at.is_(None)))
    nothing = dict.fromkeys(("full_through", "full_at", "rules", "uncovered_seqno", "uncovered_at"))
    connection.execute(update(verified).where(this).values(rows_after=0, rows_through=0, **nothing))


def hand_over_coverage(connection: Connection, former: str, name: str, seqno: int) -> None:
    """The channel ``name`` goes on for the ``former`` one behind ``seqno``, with another source, with which nothing was
    compared: as ``forget_verified``. It also keeps since when the former has had changes that no verification covered:
    the windows that tell it stay behind. A crash stays because the new source may be the former one, its log begun
    anew."""
    uncovered = first_uncovered(connection, former, read_covered(connection, former).through)
    connection.execute(update(verified).where(verified.c.channel == former).values(channel=name))
    forget_verified(connection, name)
    if uncovered is not None:
        _put(connection, name, uncovered_seqno=seqno, uncovered_at=dt.datetime.fromisoformat(uncovered))


def tables_of(connection: Connection, channel: str, verification: int) -> frozenset[TableKey]:
    """The tables that a verification has finished."""
    query = select(verified_tables.c.table_schema, verified_tables.c.table_name)
    rows = connection.execute(
        query.where(verified_tables.c.channel == channel, verified_tables.c.verification == verification)
    )
    return frozenset(TableKey(row.table_schema, row.table_name) for row in rows)
