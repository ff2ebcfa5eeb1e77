"""Changes of non-transactional tables on a MySQL target that enforces GTID consistency: each by itself, exactly once.

With ``enforce_gtid_consistency = ON`` MySQL refuses to change a non-transactional table in a transaction that has
changed another table (1785). Every block does: its first statement moves the lane's position. So a transaction of the
source that meets this error runs outside of a target transaction: each of its statements and rows events commits by
itself under a GTID of the channel's own. As long as the server runs, it knows which of them have run; the position
follows in a transaction of its own, as after a DDL (``apply.ddl``). A server that is killed may have made a change of
MyISAM and not logged it, and the other way round. So each has a note before it, with the start of the server, and the
operator decides about the one that a note of another start names (``apply.change_notes``).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final

import pymysql

from binlane.apply.change_notes import ChangeNote, ask, running_server, write_note
from binlane.apply.rows.binlog import BinlogRows
from binlane.apply.rows.cross_family import FamilyRows, rows_events
from binlane.apply.session.connection import AUTOMATIC
from binlane.apply.session.retry_verdicts import error_code
from binlane.errors import ApplyError, BinlaneError, UndecidableError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, Item, ItemKind, RowCounts
from binlane.state.records.ddl_intents import (
    AGAIN,
    ASKED,
    BEGUN,
    DONE,
    HALF_RUN,
    DdlIntent,
    forget_intent,
    read_intent,
    write_intent,
)

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
    return error_code(error) == _REFUSED and takes_gtids(session)


def takes_gtids(session: LaneSession) -> bool:
    """Whether the target refuses such changes beside others, so that each is made under a GTID.

    It does so only for what it logs: without a binlog nothing is refused, whatever its GTIDs are set to.
    """
    if session.flavor is not Flavor.MYSQL:
        return False
    query = "SELECT @@gtid_mode = 'ON' AND @@enforce_gtid_consistency = 'ON' AND @@log_bin AND @@sql_log_bin"
    return bool(session.value(query))


def gtid_uuid(channel_uuid: str, number: int, attempt: int = 0) -> str:
    """UUID of the GTIDs of statement ``number``, from 0, of any transaction; the seqno is their sequence number.

    ``attempt``: how often an operator has let it run again.
    """
    again = f" again {attempt}" if attempt else ""
    return str(uuid.uuid5(uuid.UUID(channel_uuid), f"statement {number}{again}"))


@dataclass(frozen=True, slots=True)
class NontransactionalChanges:
    """One transaction of the source, applied without a transaction of the target."""

    session: LaneSession
    writer: BlockWriter
    place: DdlPlace
    units: tuple[_Unit, ...]
    may_change: Callable[[Item], bool]
    """Whether an item may change a table without transactions."""

    @classmethod
    def of(
        cls,
        session: LaneSession,
        writer: BlockWriter,
        items: Iterable[Item],
        place: DdlPlace,
        may_change: Callable[[Item], bool] = lambda _: True,
    ) -> NontransactionalChanges:
        """Reads all items into memory. Raises ApplyError for items that cannot be applied like this."""
        units = tuple(_units(items, session.flavor if writer.guard is None else writer.guard.source))
        if any(unit[0].kind is ItemKind.ROWS for unit in units):
            _check_writer(writer, units)
        return cls(session, writer.with_rows(BinlogRows(session, writer.guard)), place, units, may_change)

    def write(self) -> RowCounts:
        """Run the units that have not run before; returns the row changes of all.

        Raises UndecidableError if a unit has failed half-way before, or may have run in part, and the errors of the
        units.
        """
        stored = read_intent(self.session.cursor, self.place.key.channel, self.place.seqno)
        self._check_decided(stored)
        number, attempt = self._next(ChangeNote.of(stored))
        server = running_server(self.session)
        while number < len(self.units):
            self._run(number, attempt, server)
            number, attempt = number + 1, 0
        return sum((item.rows for unit in self.units for item in unit), RowCounts())

    def has_begun(self) -> bool:
        """Whether a unit has run, in full or in part: then the transaction cannot be withdrawn."""
        return bool(self._done())

    def _next(self, note: ChangeNote | None) -> tuple[int, int]:
        """The first unit to run, and its attempt. Raises UndecidableError."""
        if note is None:
            return max(self._done(), default=-1) + 1, 0
        if note.unit < 0:
            # from before the target had GTIDs
            if note.state not in (DONE, AGAIN):
                raise ask(self.session, self.place, note, chain.from_iterable(self.units))
            return (len(self.units), 0) if note.state == DONE else (0, 0)
        number, attempt = note.unit, note.attempt
        is_logged = self._is_logged(number, attempt)
        if note.state == DONE:
            if not is_logged:
                self._log(self._gtid(number, attempt))
            return number + 1, 0
        if note.state == AGAIN:
            return number, attempt + 1 if is_logged else attempt
        # a server that was killed may have made a change and not logged it, or have logged one and lost its rows
        if note.server != running_server(self.session) and any(map(self.may_change, self.units[number])):
            raise ask(self.session, self.place, note, self.units[number])
        return (number + 1, 0) if is_logged else (number, attempt)

    def _done(self) -> list[int]:
        """Units that have run. A unit that is missing here, with a later one present, has changed nothing."""
        gtids = [self._gtid(number) for number in range(len(self.units))]
        query = "SELECT GTID_SUBTRACT(%s, @@global.gtid_executed)"
        missing = str(self.session.value(query, (",".join(gtids),)) or "") if gtids else ""
        return [number for number, gtid in enumerate(gtids) if gtid.partition(":")[0] not in missing]

    def _is_logged(self, number: int, attempt: int) -> bool:
        query = "SELECT GTID_SUBSET(%s, @@global.gtid_executed)"
        return bool(self.session.value(query, (self._gtid(number, attempt),)))

    def _gtid(self, number: int, attempt: int = 0) -> str:
        return f"{gtid_uuid(self.place.channel_uuid, number, attempt)}:{int(self.place.seqno)}"

    def _log(self, gtid: str) -> None:
        """Count the GTID as used."""
        self.session.next_gtid(gtid)
        try:
            self.session.execute("BEGIN")
            self.session.commit()
        finally:
            self.session.next_gtid(AUTOMATIC)

    def _run(self, number: int, attempt: int, server: str) -> None:
        note = ChangeNote(number, attempt, server, BEGUN)
        write_note(self.session, self.place, note, self.units[number])
        try:
            is_statement = self.units[number][0].kind is not ItemKind.ROWS
            with self.session.under_gtid(self._gtid(number, attempt), begins=is_statement):
                self.writer.write(self.units[number], self.place.seqno)
        except (pymysql.err.MySQLError, BinlaneError) as exc:
            if not _LOST[0] <= error_code(exc) < _LOST[1]:
                self._failed(note)
            raise

    def _failed(self, note: ChangeNote) -> None:
        """Record a failed unit that has used its GTID: it has changed rows before it failed. Another has changed
        nothing."""
        self.writer.context.leave()
        place, unit = self.place, self.units[note.unit]
        if self._is_logged(note.unit, note.attempt):
            text = unit[0].payload if unit[0].kind is not ItemKind.ROWS else f"rows event {note.unit + 1}".encode()
            self.session.own_clock()
            write_intent(self.session.cursor, place.key.channel, place.seqno, place.lane, text, HALF_RUN, ASKED)
        elif note.attempt:
            write_note(self.session, place, replace(note, state=AGAIN), unit)
        else:
            forget_intent(self.session.cursor, place.key.channel, place.seqno)

    def _check_decided(self, stored: DdlIntent | None) -> None:
        place = self.place
        if stored is not None and stored.fingerprint == HALF_RUN and stored.state != DONE:
            raise UndecidableError(
                f"channel {place.key.channel}, lane {place.lane}, seqno {place.seqno}: a statement of this "
                "transaction failed on the target, and a non-transactional table keeps the rows that were "
                "changed before the failure; give that statement's rows (`binlane status "
                f"{place.key.channel}` shows the statement) the source's values, then `binlane decide "
                f"{place.key.channel} {place.seqno} --ran` and run the lane again"
            )


def _check_writer(writer: BlockWriter, units: Iterable[_Unit]) -> None:
    """Raises ApplyError unless all rows are written by BINLOG statements, without a comparison before them: only these
    write an event's rows at once."""
    rows = writer.rows if writer.comparison is None else None
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
