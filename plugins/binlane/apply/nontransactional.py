"""Changes of non-transactional tables on a MySQL target that enforces GTID consistency: each by itself, exactly once.

With ``enforce_gtid_consistency = ON`` MySQL refuses to change a non-transactional table in a transaction that has
changed another table (1785). Every block does: its first statement moves the lane's position. So a transaction of the
source that meets this error runs outside of a target transaction: each of its statements and rows events commits by
itself under a GTID of the channel's own. After a crash the target knows which of them have run; the position follows in
a transaction of its own, as after a DDL (``apply.ddl``).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pymysql

from binlane.apply.rows.binlog import BinlogRows
from binlane.apply.rows.cross_family import FamilyRows, rows_events
from binlane.apply.session.retry_verdicts import error_code
from binlane.errors import ApplyError, BinlaneError, UndecidableError
from binlane.model import Flavor, Item, ItemKind, RowCounts
from binlane.state.records.ddl_intents import DONE, HALF_RUN, read_intent, write_intent

if TYPE_CHECKING:
    from binlane.apply.ddl.outcome import DdlPlace
    from binlane.apply.rows.writers import BlockWriter
    from binlane.apply.session.connection import LaneSession

_REFUSED: Final = 1785
"""ER_GTID_UNSAFE_NON_TRANSACTIONAL_TABLE. Nothing of the statement has run."""
_LOST: Final = (2000, 3000)
"""The client's own errors: the outcome of the statement is unknown."""
_Unit = tuple[Item, ...]
"""Items that commit together: a statement, a LOAD DATA with the blocks of its file, or one rows event."""


def is_refused(error: BaseException, session: LaneSession) -> bool:
    """Whether the target refuses a change only because it shares the position's transaction."""
    if session.flavor is not Flavor.MYSQL or error_code(error) != _REFUSED:
        return False
    return bool(session.value("SELECT @@gtid_mode") == "ON")


def gtid_uuid(channel_uuid: str, number: int) -> str:
    """UUID of the GTIDs of statement ``number``, from 0, of any transaction; the seqno is their sequence number."""
    return str(uuid.uuid5(uuid.UUID(channel_uuid), f"statement {number}"))


@dataclass(frozen=True, slots=True)
class NontransactionalChanges:
    """One transaction of the source, applied without a transaction of the target."""

    session: LaneSession
    writer: BlockWriter
    place: DdlPlace
    units: tuple[_Unit, ...]

    @classmethod
    def of(
        cls, session: LaneSession, writer: BlockWriter, items: Iterable[Item], place: DdlPlace
    ) -> NontransactionalChanges:
        """Reads all items into memory. Raises ApplyError for items that cannot be applied like this."""
        units = tuple(_units(items, session.flavor if writer.guard is None else writer.guard.source))
        if any(unit[0].kind is ItemKind.ROWS for unit in units):
            _check_writer(writer, units)
        return cls(session, writer.with_rows(BinlogRows(session, writer.guard)), place, units)

    def write(self) -> RowCounts:
        """Run the units that have not run before; returns the row changes of all.

        Raises UndecidableError if a unit has failed half-way before, and the errors of the units.
        """
        self._check_decided()
        first = max(self._done(), default=-1) + 1
        for number in range(first, len(self.units)):
            self._run(number)
        return sum((item.rows for unit in self.units for item in unit), RowCounts())

    def has_begun(self) -> bool:
        """Whether a unit has run, in full or in part: then the transaction cannot be withdrawn."""
        return bool(self._done())

    def _done(self) -> list[int]:
        """Units that have run. A unit that is missing here, with a later one present, has changed nothing."""
        gtids = [self._gtid(number) for number in range(len(self.units))]
        query = "SELECT GTID_SUBTRACT(%s, @@global.gtid_executed)"
        missing = str(self.session.value(query, (",".join(gtids),)) or "") if gtids else ""
        return [number for number, gtid in enumerate(gtids) if gtid.partition(":")[0] not in missing]

    def _gtid(self, number: int) -> str:
        return f"{gtid_uuid(self.place.channel_uuid, number)}:{int(self.place.seqno)}"

    def _run(self, number: int) -> None:
        try:
            is_statement = self.units[number][0].kind is not ItemKind.ROWS
            with self.session.under_gtid(self._gtid(number), begins=is_statement):
                self.writer.write(self.units[number], self.place.seqno)
        except (pymysql.err.MySQLError, BinlaneError) as exc:
            if not _LOST[0] <= error_code(exc) < _LOST[1]:
                self._note_half(number)
            raise

    def _note_half(self, number: int) -> None:
        """Record a failed unit that has used its GTID: it has changed rows before it failed."""
        self.writer.context.leave()
        if number not in self._done():
            return
        item, place = self.units[number][0], self.place
        text = item.payload if item.kind is not ItemKind.ROWS else f"rows event {number + 1}".encode()
        self.session.own_clock()
        write_intent(self.session.cursor, place.key.channel, place.seqno, place.lane, text, HALF_RUN)

    def _check_decided(self) -> None:
        place = self.place
        stored = read_intent(self.session.cursor, place.key.channel, place.seqno)
        if stored is not None and stored.fingerprint == HALF_RUN and stored.state != DONE:
            raise UndecidableError(
                f"channel {place.key.channel}, lane {place.lane}, seqno {place.seqno}: a statement of this "
                "transaction failed on the target, and a non-transactional table keeps the rows that were "
                "changed before the failure; give that statement's rows (`binlane status` shows the statement) "
                f"the source's values, then `binlane decide {place.key.channel} {place.seqno} --ran` and run the "
                "lane again"
            )


def _check_writer(writer: BlockWriter, units: Iterable[_Unit]) -> None:
    """Raises ApplyError unless all rows are written by BINLOG statements: only these write an event's rows at once."""
    rows = writer.rows
    if isinstance(rows, BinlogRows):
        return
    if isinstance(rows, FamilyRows) and not any(rows.are_by_sql(unit[0].payload) for unit in units):
        return
    raise ApplyError(
        "rows of a non-transactional table are written exactly once only by BINLOG statements on a target with "
        'enforce_gtid_consistency = ON (1785); set apply.writer = "binlog" and on_conflict = "stop", or '
        "ALTER TABLE .. ENGINE=InnoDB on the target"
    )


def _units(items: Iterable[Item], source: Flavor) -> Iterator[_Unit]:
    load: tuple[Item, ...] = ()
    for item in items:
        if item.kind is ItemKind.FILE:
            load += (item,)
            continue
        if load:
            yield load
            load = ()
        if item.kind is ItemKind.LOAD:
            load = (item,)
        elif item.kind is ItemKind.ROWS:
            yield from ((Item(ItemKind.ROWS, *part, item.context),) for part in rows_events(item.payload, source))
        elif not _is_savepoint(item):
            yield (item,)
    if load:
        yield load


def _is_savepoint(item: Item) -> bool:
    """SAVEPOINT or RELEASE. Raises ApplyError for ROLLBACK TO, which needs one transaction around what it undoes."""
    verb = item.payload[:40].upper().split()[:1]
    if verb == [b"ROLLBACK"]:
        raise ApplyError(
            "a transaction that changes a non-transactional table and was rolled back in part would have to be "
            "one transaction, which a target with enforce_gtid_consistency = ON refuses (1785); write its rows "
            "to the target by hand and skip the transaction"
        )
    return verb in ([b"SAVEPOINT"], [b"RELEASE"])
