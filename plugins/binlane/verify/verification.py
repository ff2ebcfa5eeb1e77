"""One verification: compares the rows that windows touched, or all rows in chunks, and settles what was compared.

A verification proceeds in steps. A step compares rows while the target stands at its watermark, then settles them by
the source's log behind it (``settle``), and stores what differs together with the progress in one transaction: one
that is killed repeats its last step and loses nothing. Windows may be applied between two steps of a full verification
that is continued later: every step has the watermark of its own rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Final

from sqlalchemy import Connection, Engine

from binlane.activity import Activity, doing
from binlane.choices import VerifyScope
from binlane.errors import PlanError, WindowBusyError
from binlane.garbage import uncollected
from binlane.lazy_dataclass import dataclass
from binlane.model import FolderRecord, LogPosition, SchemaObject, TableKey
from binlane.plan.transaction.channel_rules import AS_LOGGED, ChannelRules
from binlane.plan.transaction.rename import name_of, renamed_schema
from binlane.schema.model import Schema
from binlane.servers.names import among, literals
from binlane.source.identity import Start
from binlane.source.protocol import EventSource
from binlane.state.carried.prepared import read_chunks, read_open_xa
from binlane.state.channels import Channel, read_channel
from binlane.state.records.coverage import (
    FinishedWindow,
    cover_all,
    cover_windows,
    note_table,
    read_covered,
    tables_of,
    windows_to_verify,
)
from binlane.state.records.journal import read_status, standing
from binlane.state.records.verifications import (
    CLEAN,
    DRIFT,
    INCOMPLETE,
    PENDING,
    RUNNING,
    Counts,
    Progress,
    Suspect,
    Verification,
    begin_verification,
    end_verification,
    read_suspects,
    replace_suspects,
    save_progress,
    with_times,
)
from binlane.state.stored_values import unexpected
from binlane.state.window_folders import WindowFolders
from binlane.state.windows import Window, latest_time, read_open_window
from binlane.verify.changes import Changes
from binlane.verify.definitions.accounts import KIND as ACCOUNT
from binlane.verify.definitions.comparison import DefinitionDifference, Definitions
from binlane.verify.definitions.visibility import UnseenObjects, Visibility
from binlane.verify.history import HISTORY, history_difference
from binlane.verify.key_batches import KeyComparison
from binlane.verify.log_reader import ChangeReader
from binlane.verify.outcome import Options, Outcome
from binlane.verify.range_check import RangeCheck
from binlane.verify.rows.column_text import ComparedTable, Key, is_key, is_of, key_shape
from binlane.verify.rows.keys import KeySet, in_order
from binlane.verify.rows.pairing import Tables, pair
from binlane.verify.rows.row_states import Recorder
from binlane.verify.rows.sides import BATCH, Difference, Pair
from binlane.verify.settle import Compare, Settler, SettleResult
from binlane.verify.throttle import Throttle

_OF_WINDOWS: Final = "the rows that windows have changed"
"""What a verification is doing, for somebody who waits."""


@dataclass(slots=True)
class Verifier:
    """One verification of a channel whose servers are connected."""

    folders: WindowFolders
    engine: Engine
    """The target's engine, for the state tables."""
    source: EventSource
    pair: Pair
    schemas: tuple[Schema, Schema]
    """Source and target."""
    standing: Channel
    """The channel as it was before ``schemas`` were read: these are of its watermark as long as it stands there."""
    options: Options
    rules_digest: str = ""
    """Of the channel's filter and renames: what is compared counts under these alone."""
    rules: ChannelRules = AS_LOGGED
    """The channel's filter and renames: excluded tables are not compared, renamed ones with their counterpart."""
    visibility: Visibility = field(default_factory=Visibility)
    unseen: UnseenObjects = field(default_factory=UnseenObjects)
    """What ``schemas`` have not because an account does not see it."""
    clock: Callable[[], float] = time.monotonic
    _windows: tuple[FinishedWindow, ...] = ()
    _tables: Tables = field(default_factory=lambda: Tables({}, {}))
    _definitions: Definitions = field(init=False)
    _drifted: tuple[DefinitionDifference, ...] = ()
    _throttle: Throttle = field(init=False)
    _range_check: RangeCheck = field(init=False)
    _counts: Counts = field(default_factory=Counts)
    _compare: Compare = field(default_factory=Compare)
    """What was compared in this step."""
    _began: float = 0.0
    _step_began: float = 0.0
    _rows_before: int = 0
    """Rows that earlier parts have compared."""
    _step_rows: int = 0
    """Rows that this step has compared."""
    _again: set[tuple[TableKey, Key]] = field(default_factory=set)
    """Rows that are compared only because they were found different before."""

    @property
    def channel(self) -> str:
        """The channel's name."""
        return self.folders.channel

    def run(self) -> Outcome:
        """Verify. Raises WindowBusyError if a window has begun or begins during the comparison, PlanError if the last
        window's files are gone, ConfigError for a wrong scope; SourceError, BinlogError."""
        self.options.scope.check()
        self.standing = self._stand()
        self._tables = self._in_scope(pair(*self.schemas, self.rules))
        self._definitions = Definitions(self.pair, self.schemas, self.rules, self.visibility, self.options.accounts)
        self._throttle = Throttle(self.pair, self.options.rows_per_second, self.options.threads_running)
        self._range_check = RangeCheck(self.pair, self._throttle, self.options.chunk_rows)
        with self.engine.connect() as connection:
            self._windows = windows_to_verify(connection, self.channel, self.rules_digest, self._has_files)
        verification = self._begin()
        self._counts = Counts(
            verification.tables, verification.chunks, verification.rows,
            verification.equal, verification.logged, verification.seconds,
        )  # fmt: skip
        self._began = self._step_began = self.clock()
        self._rows_before = verification.rows
        if self.options.full:
            with doing("tables") as activity:
                return self._full(verification, activity)
        with doing(_OF_WINDOWS) as activity:
            self._compare_windows(activity)
        return self._end(verification)

    def _has_files(self, window: str, record: FolderRecord) -> bool:
        return self.folders.found(window, record) is not None

    def _in_scope(self, tables: Tables) -> Tables:
        has = self.options.scope.has
        return Tables(
            {key: table for key, table in tables.compared.items() if has(key)},
            {key: note for key, note in tables.not_comparable.items() if has(key)},
        )

    def _stand(self) -> Channel:
        """The channel, at its watermark. Raises WindowBusyError if a window has begun."""
        with self.engine.connect() as connection:
            return self._require_standing(connection)

    def _require_standing(self, connection: Connection, *, for_update: bool = False) -> Channel:
        """``_stand``; ``for_update``: no window can open or be finished before the transaction ends."""
        channel = read_channel(connection, self.channel, for_update=for_update)
        window = read_open_window(connection, self.channel)
        # an empty window moves the watermark into another file, and changes no row
        moved = _stands_at(channel) != _stands_at(self.standing)
        # without a plan a window has written nothing: it may have been refused
        is_begun = window is not None and window.plan_digest is not None
        if is_begun or moved:
            raise WindowBusyError(
                f"channel {self.channel}: {_busy(self.engine, self.channel, window)}; rows can be compared only "
                "while the target stands at its watermark: verify again when the window is finished; a full "
                "verification continues from the last compared chunk"
            )
        return channel

    def _begin(self) -> Verification:
        window, expected, kind = "", 0, VerifyScope.FULL
        if self.options.full:
            expected = self._size(self._tables.compared)
        else:
            kind, window = VerifyScope.WINDOW, self._window_to_name()
        seqno, scope = self.standing.watermark.seqno, self.options.scope.words
        with self.engine.begin() as connection:
            return begin_verification(
                connection, self.channel, kind, window, seqno, scope, expected, anew=self.options.anew,
                rules=self.rules_digest,
            )  # fmt: skip

    def _window_to_name(self) -> str:
        """The id of the last finished window; empty if there is none. Raises PlanError if its folder is gone."""
        if not self._windows:
            return ""
        last = self._windows[-1]
        if last.work.is_removed:
            raise PlanError(
                f"channel {self.channel}: the work folder of its last window, {last.window_id}, was removed, so the "
                "rows that the window wrote are unknown; verify with --full, and keep more windows "
                "(work.keep_windows)"
            )
        return last.window_id

    def _compare_windows(self, activity: Activity) -> None:
        """Compare the rows that the log of the windows names."""
        with uncollected():
            wrote = self._reader().read_windows([self.folders.of(each.window_id, each.work) for each in self._windows])
        self._compare.others += [
            Difference(key, (), None, None, note=note)
            for key, note in self._tables.not_comparable.items()
            if wrote.covers(key, ())
        ]
        some = list[tuple[ComparedTable, KeySet]]()
        for key, table in self._tables.compared.items():
            if wrote.covers_table(key):
                for _ in self._chunks(key):
                    pass
            elif keys := wrote.keys.get(key):
                some.append((table, keys))
        compared = 0
        with uncollected():
            for rows, found in KeyComparison(self.pair, self._throttle).compare(some):
                self._compare.differ(found)
                self._add(chunks=1, rows=rows)
                compared += rows
                activity.text = f"{_OF_WINDOWS}: {compared:,} compared"
        self._compare.keys = {table.target: each for table, each in some}
        self._add(tables=len(some))
        self._stand()

    def _chunks(self, name: TableKey, begin: Key | None = None) -> Iterator[Key]:
        """Compare all rows of a table behind a key, chunk by chunk; the end of each chunk but the last.

        A table whose ranges do not show all of its rows is compared by a scan instead, as one without a key.
        """
        table, after = self._tables.compared[name], begin
        check = self._range_check
        is_partitioned = bool(table.key) and check.is_partitioned(table)
        ends = check.ends(table, begin) if table.has_ranges and is_partitioned else None
        walked, counts = list[Key](), [0, 0]
        if ends is None or check.show_all(table, begin, ends):
            while (end := self._chunk(table, after, ends, counts)) is not None:
                walked.append(end)
                after = end
                yield end
            differing = self._compare.rows.get(name, {}).values()
            if (ends is not None or check.have_shown_all(table, begin, walked, counts)) and (
                not is_partitioned or check.is_found(table, differing)
            ):
                return
            self._add(tables=-1, chunks=-len(walked) - 1, rows=-counts[1])
        self._tables.compared[name] = table = replace(table, key=())
        self._compare.rows.pop(name, None)
        self._compare.ranges.discard(name)
        self._chunk(table, None, None, [0, 0])

    def _chunk(
        self, table: ComparedTable, after: Key | None, ends: Mapping[Key | None, Key] | None, counts: list[int]
    ) -> Key | None:
        """Compare the chunk behind a key, or a whole table that has no usable key; the chunk's end, None for the
        table's last. ``ends``: the chunks' ends, if they are known. ``counts``: the compared rows of both servers."""
        self._throttle.begin()
        end = None
        if table.has_ranges:
            rows = self.options.chunk_rows
            end = self.pair.end_of_chunk(table, after, rows) if ends is None else ends.get(after)
        rows, found = self.pair.in_range(table, after, end) if table.key else self.pair.whole(table)
        (self._compare.ranges if table.key else self._compare.wholes).add(table.target)
        is_range = after is not None or end is not None
        self._compare.differ(self.pair.by_their_keys(table, found) if table.key and is_range else found)
        counts[0] += rows + sum(one.target is None for one in found) - sum(one.source is None for one in found)
        counts[1] += rows
        self._add(tables=int(end is None), chunks=1, rows=rows)
        self._throttle.end(rows)
        return end

    def _compare_history(self, name: TableKey) -> None:
        """Compare the past rows of a table that is system-versioned."""
        table = self.schemas[1].table(name)
        if table is None or not table.system_versioned:
            return
        with self.engine.connect() as connection:
            seconds = latest_time(connection, self.standing)
        found = history_difference(self.pair, self._tables.compared[name], self.schemas, seconds)
        self._compare.differ(() if found is None else (found,))

    def _add(self, tables: int = 0, chunks: int = 0, rows: int = 0) -> None:
        had = self._counts
        self._step_rows += rows
        self._counts = replace(had, tables=had.tables + tables, chunks=had.chunks + chunks, rows=had.rows + rows)

    def _full(self, verification: Verification, activity: Activity) -> Outcome:
        """Compare all tables, continuing at the stored progress, until the end or until the time is up."""
        with self.engine.connect() as connection:
            done = set(tables_of(connection, self.channel, verification.id))
        reached = verification.progress
        names = [key for key in self._tables.compared if key not in done]
        if reached is not None:
            names.sort(key=lambda key: str(key) != reached.table)
        finished: list[TableKey] = []
        activity.total = len(self._tables.compared)
        for place, name in enumerate(names):
            activity.text, activity.done = f"{name}; tables", len(done) + place
            table, begin = self._tables.compared[name], None
            is_begun = reached is not None and (str(name), key_shape(table)) == (reached.table, reached.key)
            if reached is not None and is_begun and table.has_ranges:
                begin = reached.after
                if begin is not None:
                    _require_key(table, begin, "verifications.progress")
            for after in self._chunks(name, begin):
                if self._is_step_over():
                    self._step(verification, finished, Progress(str(name), after, key_shape(table)))
                    finished = []
                    if self._is_time_up():
                        return self._part(verification, names[place:])
            self._compare_history(name)
            finished.append(name)
            if self._is_step_over() and place + 1 < len(names):
                self._step(verification, finished, Progress(str(name), None, key_shape(table)))
                finished = []
                if self._is_time_up():
                    return self._part(verification, names[place + 1 :])
        notes = self._tables.not_comparable.items()
        self._compare.others += [Difference(key, (), None, None, note=note) for key, note in notes]
        if self.options.scope.is_all:
            with doing("definitions"):
                self._compare.definitions += self._definitions.differences()
        activity.text, activity.total = "storing what was compared", 0
        return self._end(verification, finished)

    def _is_step_over(self) -> bool:
        return self._is_time_up() or self.clock() - self._step_began >= self.options.step_seconds

    def _is_time_up(self) -> bool:
        return self.options.seconds is not None and self.clock() - self._began >= self.options.seconds

    def _step(self, verification: Verification, finished: Sequence[TableKey], progress: Progress) -> None:
        """Settle what was compared, and store it with the progress."""
        stored = self._stored()
        # of a range only the rows that differ are known; all others are compared again at the end
        again = {(table, key) for table, rows in self._compare.rows.items() for key in rows}
        again |= {(one.table, ()) for one in self._compare.others}
        found = self._settled(stored)
        again |= {(one.table, one.key) for one in found}
        # several of one key: rows of a table without a primary key, parts of one object's definition
        judged = [one for one in stored if (one.table, one.key) in again]
        with self.engine.begin() as connection:
            self._require_standing(connection, for_update=True)
            replace_suspects(connection, self.channel, judged, found)
            save_progress(connection, verification.id, self._counts, progress)
            for table in finished:
                note_table(connection, self.channel, table, verification.id, self.standing.watermark.seqno)
        self._compare, self._step_began, self._step_rows = Compare(), self.clock(), 0

    def _end(self, verification: Verification, finished: Sequence[TableKey] = ()) -> Outcome:
        """Compare the stored rows of its tables again, settle everything, and record the end."""
        has = self.options.scope.has
        before = [one for one in self._stored() if has(one.table)]
        self._look_again(one for one in before if self._is_seen(one))
        # what an account does not see any more is as it was found last
        stored = [one for one in before if self._is_seen(one)]
        compared = self._settled(stored)
        suspects = (*compared, *(one for one in before if one not in stored))
        states = {one.state for one in suspects}
        is_whole = not self.unseen.is_gap
        state = DRIFT if DRIFT in states else INCOMPLETE if not is_whole else PENDING if suspects else CLEAN
        drift = sum(one.state == DRIFT for one in suspects)
        seqno = self.standing.watermark.seqno
        with self.engine.begin() as connection:
            self._require_standing(connection, for_update=True)
            replace_suspects(connection, self.channel, stored, compared)
            save_progress(connection, verification.id, self._counts, None)
            for table in finished:
                note_table(connection, self.channel, table, verification.id, seqno)
            end_verification(connection, verification.id, state, drift, len(suspects) - drift, has_gap=not is_whole)
            if self.options.scope.is_all and is_whole:
                if self.options.full:
                    cover_all(connection, self.channel, verification.through_seqno, self.rules_digest, verification.id)
                elif self._windows:
                    first = self._windows[0].first_seqno
                    cover_windows(connection, self.channel, first - 1, seqno, self.rules_digest)
        return self._outcome(verification, state, suspects)

    def _part(self, verification: Verification, left: Sequence[TableKey]) -> Outcome:
        asked = [one for one in self._stored() if self.options.scope.has(one.table)]
        return self._outcome(verification, RUNNING, asked, len(left), self._size(left))

    def _size(self, tables: Collection[TableKey]) -> int:
        """The target's own estimate of the rows of some tables."""
        databases = literals({table.database for table in tables})
        rows = self.pair.target.texts(
            "SELECT table_schema, table_name, COALESCE(table_rows, 0) FROM information_schema.tables "
            f"WHERE {among('table_schema', databases)}"
        )
        return sum(int(count or 0) for schema, name, count in rows if TableKey(schema or "", name or "") in tables)

    def _outcome(
        self,
        verification: Verification,
        state: str,
        suspects: Sequence[Suspect],
        tables_left: int = 0,
        rows_left: int = 0,
    ) -> Outcome:
        with self.engine.connect() as connection:
            covered = read_covered(connection, self.channel, self.rules_digest)
        rate = (self._counts.rows - self._rows_before) / max(self.clock() - self._began, 0.001)
        compared = self._definitions
        return Outcome(
            self.channel, verification.kind, state, verification.through_seqno, self._counts, tuple(suspects),
            self.schemas[1], not self.unseen.is_gap, 0 if self.options.full else len(self._windows), covered,
            compared.counted[0], (*self.unseen.reasons, *sorted(compared.unseen)), self._drifted, tables_left,
            rows_left, rate, self.options.scope.words, self._rows_before, verification.continued_since,
        )  # fmt: skip

    def _stored(self) -> tuple[Suspect, ...]:
        with self.engine.connect() as connection:
            return read_suspects(connection, self.channel)

    def _is_seen(self, one: Suspect) -> bool:
        """Whether both accounts see what was found different before."""
        if not one.of_definition:
            return not self.unseen.hides(one.table, self._tables.compared)
        obj = SchemaObject(one.key[0], one.table.database, one.table.table)
        return self._definitions.shows(obj, one.columns[0])

    def _look_again(self, stored: Iterable[Suspect]) -> None:
        """Compare rows that were found different before."""
        by_table: dict[TableKey, set[tuple[Key, str | None]]] = {}
        objects: set[SchemaObject] = set()
        for one in stored:
            if one.note.startswith(HISTORY):
                if one.table in self._tables.compared and not any(
                    each.table == one.table for each in self._compare.others
                ):
                    self._compare_history(one.table)
            elif one.of_definition:
                objects.add(SchemaObject(one.key[0], one.table.database, one.table.table))
            else:
                by_table.setdefault(one.table, set()).add((one.key, one.shape))
        for key, keys in sorted(by_table.items(), key=lambda entry: str(entry[0])):
            self._rows_again(key, keys)
        if self._compare.definitions and not self.options.accounts:
            objects = {obj for obj in objects if obj.kind.startswith(ACCOUNT)}
        if objects and not (self._compare.definitions and self.options.accounts):
            self._compare.definitions += self._definitions.differences(objects)

    def _rows_again(self, name: TableKey, keys: Collection[tuple[Key, str | None]]) -> None:
        """``keys``: with the definition of the primary key that each belongs to."""
        table, compare = self._tables.compared.get(name), self._compare
        if table is None or not table.key:
            if name in compare.wholes or any(one.table == name for one in compare.others):
                return
            if name in self._tables.not_comparable:
                compare.differ([Difference(name, (), None, None, note=self._tables.not_comparable[name])])
            elif table is not None:
                compare.wholes.add(name)
                compare.differ(self.pair.whole(table)[1])
            return
        known = compare.keys.get(name, KeySet()), compare.rows.get(name, {})
        own = {key for key, shape in keys if is_of(table, shape)}
        for key in own:
            _require_key(table, key, "suspects.row_key")
        exact = in_order(table, (key for key in own if not any(key in each for each in known)))
        self._again |= {(name, key) for key in exact}
        for at in range(0, len(exact), BATCH):
            compare.differ(self.pair.of_keys(table, exact[at : at + BATCH])[1])
        if name in compare.ranges:
            return
        compare.keys.setdefault(name, KeySet()).update(exact)
        if not all(is_of(table, shape) for _, shape in keys):
            # the table had another primary key when its rows were stored
            compare.ranges.add(name)
            compare.differ(self.pair.in_range(table, None, None)[1])

    def _settled(self, stored: Iterable[Suspect]) -> tuple[Suspect, ...]:
        """Settle what was compared in this step, and count what is proved."""
        compare, settled = self._compare, SettleResult()
        # the log is read from here: the file in which the watermark stood before may be purged
        self.standing = self._stand()
        if compare.wanted or compare.wholes or compare.others or compare.definitions:
            places = (self.folders.found(each.window_id, each.work) for each in self._windows)
            folders = [place for place in places if place is not None]
            settler = Settler(
                self.standing, self._tables, self.pair, self._read_later, self._reader, folders,
                self.options.is_of_copy,
            )  # fmt: skip
            settled = settler.settle(compare)
            self._drifted = settled.definitions
            self._stand()
        left = sum(self._was_read(one) for one in settled.suspects)
        had = self._counts
        self._counts = replace(
            had,
            equal=had.equal + max(0, self._step_rows - settled.logged - left),
            logged=had.logged + settled.logged,
            seconds=had.seconds + self.clock() - self._step_began,
        )
        return with_times(settled.suspects, stored)

    def _was_read(self, one: Suspect) -> bool:
        """Whether a suspect's row is one of those that this step counts: not one that the log alone has led to."""
        if one.of_definition or (one.table, one.key) in self._again:
            return False
        compare = self._compare
        return one.table not in compare.ranges or one.key in compare.rows.get(one.table, {})

    def _reader(self, recorder: Recorder | None = None) -> ChangeReader:
        source, target = self.schemas
        renamed = renamed_schema(source, partial(name_of, self.rules.renaming))
        return ChangeReader(renamed, target, self._tables.compared, self.rules.renaming, recorder)

    def _read_later(self, recorder: Recorder) -> tuple[Changes, LogPosition | None]:
        """The changes of the source's log from the watermark to its present end, which is returned, too."""
        mark = self.standing.watermark
        with self.engine.connect() as connection:
            prepared = read_open_xa(connection, self.channel)
            files = [
                (str(each.source), b"".join(read_chunks(connection, self.channel, each.seqno)))
                for each in prepared
                if each.segment is not None
            ]
        reader = self._reader(recorder)
        identity = self.standing.source_identity
        start = Start(mark.seqno, mark.source, mark.gtid_set, mark.source_time, identity, mark.fingerprint)
        changes = reader.read_source(self.source, start, files)
        if len(files) < len(prepared):
            # the target has the changes of a transaction that the source has not ended; nobody knows which
            changes.everything = changes.unplaced = True
        return changes, reader.reached


def _require_key(table: ComparedTable, key: Key, column: str) -> None:
    """Raise StateSchemaError for texts of a column of binlane's tables that are not the primary key of a row."""
    if not is_key(table, key):
        raise unexpected(f"binlane.{column}", f"the primary key of a row of {table.target}", key)


def _stands_at(channel: Channel) -> tuple[str, int, int]:
    return channel.uuid, channel.windows, channel.watermark.seqno


def _busy(engine: Engine, channel: str, window: Window | None) -> str:
    """Why the target is not at its watermark: a window is being applied, or is unfinished."""
    if window is None:
        return "a window was applied in the meantime"
    return standing(read_status(engine, channel), window)
