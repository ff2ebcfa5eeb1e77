"""One verification: compares chunks, stores differing rows, and then classifies every stored row.

The target is at the watermark, the source is ahead. So a differing row is *pending* if the source's log changes it
after the watermark, otherwise *drift*. Rows are read before that log is read to its end, so every change that they show
is in the log (a commit is logged before it is visible). Differing rows are stored together with the progress, so a
verification that is killed loses none of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from sqlalchemy import Engine

from binlane.choices import VerifyScope
from binlane.errors import PlanError, WindowBusyError
from binlane.model import SchemaObject, TableKey
from binlane.plan.transaction.channel_rules import AS_LOGGED, ChannelRules
from binlane.plan.transaction.rename import name_of, renamed_schema
from binlane.schema.model import Schema
from binlane.source.protocol import EventSource
from binlane.state.carried.prepared import read_open_xa
from binlane.state.channels import Channel, read_channel
from binlane.state.records.journal import read_status, standing
from binlane.state.records.verifications import (
    CLEAN,
    DRIFT,
    PENDING,
    Progress,
    Suspect,
    Verification,
    add_suspects,
    begin_verification,
    end_verification,
    last_finished,
    read_suspects,
    replace_suspects,
    save_progress,
)
from binlane.state.windows import Window, read_open_window
from binlane.verify.changes import ChangeReader, Changes
from binlane.verify.column_text import Compared, Key
from binlane.verify.definitions import NAMED, DefinitionDifference, Definitions, Sees
from binlane.verify.pairing import Tables, pair
from binlane.verify.rows import Difference, Pair
from binlane.work.files import WorkFolder


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a verification."""

    full: bool = False
    chunk_rows: int = 5_000
    rows_per_second: int | None = None
    """Limit of rows read from the target; None: no limit."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a verification."""

    channel: str
    kind: str
    state: str
    through_seqno: int
    tables: int
    chunks: int
    rows: int
    suspects: tuple[Suspect, ...]
    target: Schema
    """The target's definitions, which say what the suspects' values are."""
    definitions: int = 0
    """Tables, views, routines, triggers, events and databases whose definitions were compared; of kind full only."""
    unseen: tuple[str, ...] = ()
    """Definitions that were not compared, with the reason."""
    differences: tuple[DefinitionDifference, ...] = ()
    """The parts of definitions that have drifted, with the statements that mend them."""

    def of_state(self, state: str) -> tuple[Suspect, ...]:
        """The suspects of one state: drift, or pending."""
        return tuple(one for one in self.suspects if one.state == state)


def _everything(_is_source: bool, _privilege: str, _database: str) -> bool:
    return True


@dataclass(slots=True)
class Verifier:
    """One verification of a channel whose servers are connected."""

    channel: str
    engine: Engine
    """The target's engine, for the state tables."""
    source: EventSource
    pair: Pair
    schemas: tuple[Schema, Schema]
    """Source and target."""
    options: Options
    rules: ChannelRules = AS_LOGGED
    """The channel's filter and renames: excluded tables are not compared, renamed ones with their counterpart."""
    sees: Sees = _everything
    """Whether the account of a server may see objects of a database."""
    _standing: Channel | None = None
    _tables: Tables = field(default_factory=lambda: Tables({}, {}))
    _definitions: Definitions = field(init=False)
    _drifted: list[DefinitionDifference] = field(default_factory=list)
    _counts: list[int] = field(default_factory=lambda: [0, 0, 0])
    """Tables, chunks, rows."""

    def run(self) -> Outcome:
        """Verify. Raises WindowBusyError if a window is open or opens during the comparison, PlanError if the last
        window's files are gone; SourceError, BinlogError."""
        self._standing = self._stand()
        self._tables = pair(*self.schemas, self.rules)
        self._definitions = Definitions(self.pair, self.schemas, self.rules, self.sees)
        verification = self._begin()
        self._counts = [verification.tables, verification.chunks, verification.rows]
        if self.options.full:
            self._full(verification)
        else:
            self._window(verification)
        suspects = self._judged()
        states = {one.state for one in suspects}
        state = DRIFT if DRIFT in states else PENDING if suspects else CLEAN
        drift = sum(one.state == DRIFT for one in suspects)
        with self.engine.begin() as connection:
            replace_suspects(connection, self.channel, suspects)
            save_progress(connection, verification.id, self._counted, None)
            end_verification(connection, verification.id, state, drift, len(suspects) - drift)
        compared = self._definitions
        return Outcome(
            self.channel, verification.kind, state, verification.through_seqno, *self._counted, suspects,
            self.schemas[1], compared.counted[0], tuple(sorted(compared.unseen)), tuple(self._drifted),
        )  # fmt: skip

    @property
    def _counted(self) -> tuple[int, int, int]:
        tables, chunks, rows = self._counts
        return tables, chunks, rows

    def _stand(self) -> Channel:
        """The channel, at its watermark. Raises WindowBusyError if a window is open."""
        with self.engine.connect() as connection:
            channel = read_channel(connection, self.channel)
            window = read_open_window(connection, self.channel)
        before = self._standing
        if window is not None or (
            before is not None
            and (channel.windows, channel.watermark)
            != (
                before.windows,
                before.watermark,
            )
        ):
            raise WindowBusyError(
                f"channel {self.channel}: {_busy(self.engine, self.channel, window)}; rows can be compared only "
                "while the target stands at its watermark: verify again when the window is finished; a full "
                "verification continues from the last compared chunk"
            )
        return channel

    def _begin(self) -> Verification:
        assert self._standing is not None
        window = ""
        if not self.options.full:
            window = self._last_window()[0]
        kind = VerifyScope.FULL if self.options.full else VerifyScope.WINDOW
        with self.engine.begin() as connection:
            return begin_verification(connection, self.channel, kind, window, self._standing.watermark.seqno)

    def _last_window(self) -> tuple[str, str]:
        with self.engine.connect() as connection:
            found = last_finished(connection, self.channel)
        if found is None:
            return "", ""
        if found[1] == "":
            raise PlanError(
                f"channel {self.channel}: the work folder of its last window, {found[0]}, was removed, so the "
                "rows that the window wrote are unknown; verify with --full, and keep more windows "
                "(work.keep_windows)"
            )
        return found

    def _full(self, verification: Verification) -> None:
        """Compare all tables, continuing at the stored progress."""
        reached = verification.progress
        begin, after = (None, None) if reached is None else (reached.table, reached.after)
        self._found((Difference(key, (), None, None, note=note) for key, note in self._tables.not_comparable.items()))
        self._store(self._defined(one, PENDING) for one in self._definitions.differences())
        for table in self._tables.compared.values():
            if begin is None or str(table.target) >= begin:
                resumed = after if str(table.target) == begin else None
                if begin != str(table.target) or resumed is not None:
                    self._table(table, verification, resumed)

    def _window(self, verification: Verification) -> None:
        """Compare the rows that the last finished window's log names."""
        _, work = self._last_window()
        if work == "":
            return
        wrote = self._reader().read_window(WorkFolder(work))
        for key, note in self._tables.not_comparable.items():
            if wrote.covers(key, ()):
                self._found([Difference(key, (), None, None, note=note)])
        for table in self._tables.compared.values():
            keys = sorted(wrote.keys.get(table.target, ()))
            if wrote.covers_table(table.target):
                self._table(table, verification, None)
            elif keys:
                self._stand()
                self._count(*self.pair.of_keys(table, keys))
                self._counts[0] += 1
                self._stand()

    def _reader(self) -> ChangeReader:
        source, target = self.schemas
        renamed = renamed_schema(source, partial(name_of, self.rules.renaming))
        return ChangeReader(renamed, target, self._tables.compared, self.rules.renaming)

    def _table(self, table: Compared, verification: Verification, after: Key | None) -> None:
        """Compare a table chunk by chunk; the progress is stored after each chunk."""
        while True:
            started = time.monotonic()
            self._stand()
            end = self.pair.end_of_chunk(table, after, self.options.chunk_rows) if table.key else None
            rows, found = self.pair.in_range(table, after, end) if table.key else self.pair.whole(table)
            self._stand()
            self._counts[0] += end is None
            self._count(rows, found, verification, Progress(str(table.target), end))
            if end is None:
                return
            after = end
            if self.options.rows_per_second is not None:
                time.sleep(max(0.0, rows / self.options.rows_per_second - (time.monotonic() - started)))

    def _count(
        self,
        rows: int,
        found: Sequence[Difference],
        verification: Verification | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._counts[1] += 1
        self._counts[2] += rows
        with self.engine.begin() as connection:
            add_suspects(connection, self.channel, map(self._unjudged, found))
            if verification is not None:
                save_progress(connection, verification.id, self._counted, progress)

    def _found(self, found: Iterable[Difference]) -> None:
        self._store(map(self._unjudged, found))

    def _store(self, found: Iterable[Suspect]) -> None:
        suspects = tuple(found)
        with self.engine.begin() as connection:
            add_suspects(connection, self.channel, suspects)

    def _defined(self, one: DefinitionDifference, state: str) -> Suspect:
        assert self._standing is not None
        source, target = (None if side is None else (side,) for side in (one.source, one.target))
        obj, seqno = one.schema_object, self._standing.watermark.seqno
        return Suspect(obj.key, (obj.kind,), state, seqno, (one.what,), source, target, str(one))

    def _unjudged(self, found: Difference) -> Suspect:
        return self._suspect(found, PENDING)

    def _suspect(self, one: Difference, state: str) -> Suspect:
        assert self._standing is not None
        seqno = self._standing.watermark.seqno
        return Suspect(one.table, one.key, state, seqno, one.columns, one.source, one.target, one.note)

    def _judged(self) -> tuple[Suspect, ...]:
        """Compare all stored rows again; rows that are equal now are removed."""
        with self.engine.connect() as connection:
            stored = read_suspects(connection, self.channel)
        by_table: dict[TableKey, set[Key]] = {}
        objects: set[SchemaObject] = set()
        for one in stored:
            if one.of_definition:
                objects.add(SchemaObject(one.key[0], one.table.database, one.table.table))
            else:
                by_table.setdefault(one.table, set()).add(one.key)
        found: list[Difference] = []
        for key, keys in sorted(by_table.items(), key=lambda entry: str(entry[0])):
            found += self._look_again(key, keys)
        known = {(one.table, one.key): one.drifted for one in stored if one.drifted is not None}
        defined = tuple(self._definitions.differences(objects)) if objects else ()
        self._stand()
        if not found and not defined:
            return ()
        changed = self._changed_since()
        self._stand()
        suspects = [self._suspect(one, PENDING if changed.covers(one.table, one.key) else DRIFT) for one in found]
        for each in defined:
            later = changed.covers_definition(each.schema_object.key, is_named=each.schema_object.kind in NAMED)
            later |= each.table is not None and changed.covers_definition(each.table, is_named=True)
            suspects.append(self._defined(each, PENDING if later else DRIFT))
            self._drifted += [] if later else [each]
        return tuple(_remembered(one, known.get((one.table, one.key))) for one in suspects)

    def _look_again(self, key: TableKey, keys: set[Key]) -> list[Difference]:
        if key in self._tables.not_comparable:
            return [Difference(key, (), None, None, note=self._tables.not_comparable[key])]
        table = self._tables.compared.get(key)
        if table is None:
            return []  # neither server has the table any more
        if not table.key:
            return self.pair.whole(table)[1]
        exact = sorted(one for one in keys if len(one) == len(table.key))
        if len(exact) == len(keys):
            return self.pair.of_keys(table, exact)[1]
        # the table had another primary key when its rows were stored
        return self.pair.in_range(table, None, None)[1]

    def _changed_since(self) -> Changes:
        """The changes of the source's log from the watermark to its present end."""
        assert self._standing is not None
        mark = self._standing.watermark
        with self.engine.connect() as connection:
            prepared = read_open_xa(connection, self.channel)
        changes = self._reader().read_source(self.source, mark.source, mark.gtid_set)
        # the changes of prepared transactions were logged before the watermark, and become visible behind it
        return replace(changes, everything=True) if prepared else changes


def _remembered(one: Suspect, drifted: int | None) -> Suspect:
    """What has drifted stays known until it is found equal, also while the source changes it."""
    return replace(one, drifted=one.seqno if drifted is None and one.state == DRIFT else drifted)


def _busy(engine: Engine, channel: str, window: Window | None) -> str:
    """Why the target is not at its watermark: a window is being applied, or is unfinished."""
    if window is None:
        return "a window was applied in the meantime"
    return standing(read_status(engine, channel), window)
