"""Settles rows that were compared: equal, drift, or pending, by the source's log behind the watermark.

The target is at the watermark, the source is ahead. Rows are read before that log is read to its end, so every change
that they show is in the log (a commit is logged before it is visible). A row that the log does not change must be
equal. For one that it changes, ``judge`` asks the log's images; rows without a key are counted (``row_counts``).
Tables whose changes row events do not show are pending where they differ: the next verification compares them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import field

from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition, TableKey
from binlane.state.channels import Channel
from binlane.state.records.verifications import DRIFT, PENDING, WITHOUT_KEY, Suspect
from binlane.verify.changes import Changes
from binlane.verify.definitions.comparison import NAMED, DefinitionDifference
from binlane.verify.judge import Proof, Verdict, judge
from binlane.verify.log_reader import ChangeReader
from binlane.verify.rows.column_text import Key, Row, key_shape
from binlane.verify.rows.keys import KeySet, in_order
from binlane.verify.rows.pairing import Tables
from binlane.verify.rows.row_counts import LaterRows, RowCounts
from binlane.verify.rows.row_states import FirstStates, Keys, LastStates, Recorder, RowState, Unknown
from binlane.verify.rows.sides import Difference, Pair
from binlane.work.files import WorkFolder


@dataclass(slots=True)
class Compare:
    """What was read since the log was last read to its end."""

    keys: dict[TableKey, KeySet] = field(default_factory=dict)
    """Compared by key."""
    ranges: set[TableKey] = field(default_factory=set)
    """Tables of which ranges were compared."""
    rows: dict[TableKey, dict[Key, Difference]] = field(default_factory=dict)
    """The rows that differ."""
    others: list[Difference] = field(default_factory=list)
    """Of tables without a usable key, and of tables that cannot be compared."""
    wholes: set[TableKey] = field(default_factory=set)
    """Tables without a usable key that were compared."""
    definitions: list[DefinitionDifference] = field(default_factory=list)

    def differ(self, found: Iterable[Difference]) -> None:
        """Add differences."""
        for one in found:
            if one.key == ():
                self.others.append(one)
            else:
                self.rows.setdefault(one.table, {})[one.key] = one

    @property
    def wanted(self) -> Keys:
        """The keys whose changes behind the watermark matter."""
        found: dict[TableKey, Set[Key] | None] = dict.fromkeys(self.ranges)
        for table in {*self.keys, *self.rows} - self.ranges:
            keys, rows = self.keys.get(table, KeySet()), self.rows.get(table, {})
            found[table] = keys | rows.keys() if rows else keys
        return found


@dataclass(frozen=True, slots=True)
class SettleResult:
    """What became of the compared rows."""

    suspects: tuple[Suspect, ...] = ()
    logged: int = 0
    """Rows of which a column is proved by the windows' log alone."""
    definitions: tuple[DefinitionDifference, ...] = ()
    """Those that are drift."""


@dataclass(frozen=True, slots=True)
class Settler:
    """Settles what was compared while the target was at one watermark."""

    standing: Channel
    tables: Tables
    pair: Pair
    read_later: Callable[[Recorder], tuple[Changes, LogPosition | None]]
    """Reads the source's log behind the watermark to its present end."""
    reader: Callable[[LastStates], ChangeReader]
    windows: Sequence[WorkFolder]
    """The last windows, oldest first, whose log tells the rows' last images."""
    is_of_copy: bool = False
    """The source's rows are those of a copy, which has nothing that its own watermark does not have."""

    def settle(self, compare: Compare) -> SettleResult:
        """Raises SourceError, BinlogError, PlanError; the driver's errors for the target."""
        first, counts = FirstStates(compare.wanted), {one.table: RowCounts() for one in compare.others if one.is_row}
        later, end = self.read_later(LaterRows(first, counts))
        at = None if end is None else str(end)
        suspects = [self._of_table(one, later, counts.get(one.table), at) for one in compare.others]
        waiting = {one.table for one in suspects if one.state == PENDING}
        # of equal rows, too, nobody knows whether the source was read before such a change or behind it
        changed = [] if self.is_of_copy else sorted((compare.wholes & later.touched) - waiting, key=str)
        suspects += [self._suspect(Difference(name, (), None, None), PENDING, at, WITHOUT_KEY) for name in changed]
        defined = [(one, self._of_definition(one, later, at)) for one in compare.definitions]
        suspects += [suspect for _, suspect in defined]
        logged, open_rows = 0, dict[TableKey, dict[Key, tuple[RowState, Row | None, Row | None]]]()
        for name, keys in compare.wanted.items():
            table, differing = self.tables.compared[name], compare.rows.get(name, {})
            touched = first.rows.get(name, {})
            if is_covered := later.covers_table(name):
                # proved are rows that the log shows completely before anything of the table may have changed unseen
                touched = (
                    {key: one for key, one in touched.items() if _is_whole(one)} if later.shows_first(name) else {}
                )
            untouched = PENDING if is_covered else DRIFT
            why = later.unshown(name) if is_covered else ""
            suspects += [self._suspect(one, untouched, at, why) for key, one in differing.items() if key not in touched]
            found = self.pair.target_rows(table, in_order(table, touched))
            for key, state in touched.items():
                target = found.get(key)
                if key in differing:
                    source = differing[key].source
                elif keys is not None:
                    source = target  # they were equal when both were read
                elif state is not None and Unknown.UNCHANGED in state:
                    continue  # a range that was equal; which of its rows were read before the change is not known
                else:
                    source = None
                verdict = judge(table.columns, state, source, target)
                if verdict.proof is Proof.OPEN:
                    open_rows.setdefault(name, {})[key] = (state, source, target)
                elif verdict.proof is Proof.DIFFERS:
                    suspects.append(self._drifted(name, key, verdict, target, at))
        for name, key, verdict, target in self._by_windows(open_rows):
            if verdict.proof is Proof.DIFFERS:
                suspects.append(self._drifted(name, key, verdict, target, at))
            elif verdict.proof is Proof.OPEN:
                suspects.append(self._suspect(Difference(name, key, None, target), PENDING, at))
            else:
                logged += 1
        return SettleResult(tuple(suspects), logged, tuple(one for one, suspect in defined if suspect.state == DRIFT))

    def _by_windows(
        self, rows: dict[TableKey, dict[Key, tuple[RowState, Row | None, Row | None]]]
    ) -> Iterable[tuple[TableKey, Key, Verdict, Row | None]]:
        """The verdicts on rows whose first images are partial, by their last images in the windows."""
        if not rows:
            return
        last = LastStates({name: set(found) for name, found in rows.items()})
        windows = self.reader(last).read_windows(self.windows) if self.windows else Changes(everything=True)
        for name, found in rows.items():
            usable = not windows.covers_table(name) and not windows.prepares
            states = last.rows.get(name, {}) if usable else {}
            for key, (state, source, target) in found.items():
                columns = self.tables.compared[name].columns
                yield name, key, judge(columns, state, source, target, states.get(key)), target

    def _of_table(self, one: Difference, later: Changes, counts: RowCounts | None, at: str | None) -> Suspect:
        is_later = later.covers(one.table, one.key) or (one.is_of_history and one.table in later.touched)
        if not is_later and one.is_row and counts is not None:
            is_later = counts.take_back(self.tables.compared[one.table].columns, one)
        why = later.unshown(one.table) or WITHOUT_KEY if is_later and one.is_row else ""
        return self._suspect(one, PENDING if is_later else DRIFT, at, why)

    def _of_definition(self, one: DefinitionDifference, later: Changes, at: str | None) -> Suspect:
        changed = later.covers_definition(one.schema_object.key, is_named=one.schema_object.kind in NAMED)
        changed |= one.table is not None and later.covers_definition(one.table, is_named=True)
        source, target = (None if side is None else (side,) for side in (one.source, one.target))
        obj, seqno = one.schema_object, self.standing.watermark.seqno
        state = PENDING if changed else DRIFT
        return Suspect(obj.key, (obj.kind,), state, seqno, (one.what,), source, target, str(one), log_end=at)

    def _drifted(self, table: TableKey, key: Key, verdict: Verdict, target: Row | None, at: str | None) -> Suspect:
        return self._suspect(Difference(table, key, verdict.source, target, verdict.columns), DRIFT, at)

    def _suspect(self, one: Difference, state: str, at: str | None, why: str = "") -> Suspect:
        seqno = self.standing.watermark.seqno
        shape = key_shape(self.tables.compared[one.table]) if one.key else None
        note = one.note or why
        return Suspect(
            one.table, one.key, state, seqno, one.columns, one.source, one.target, note, log_end=at, shape=shape,
            reached=str(self.standing.watermark.source),
        )  # fmt: skip


def _is_whole(state: RowState) -> bool:
    """Whether all columns of a row's state are known, or that there is no such row."""
    return state is None or not any(isinstance(cell, Unknown) for cell in state)
