"""Reads the board's data: the target's state, and a window's files while they are kept."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias, TypeVar

from binlane.apply.target_state import SchemaChecks, target_state
from binlane.binlog.row_values import Change
from binlane.board import answers, models
from binlane.board.gate import as_user_may_read, gated
from binlane.board.host import EDIT, READ, Host
from binlane.config import ChannelConfig, DeclaredChannel, declared_channels, load_channel
from binlane.connections import Endpoint, resolve_endpoints
from binlane.errors import BinlaneError, PlanError
from binlane.health.airflow_runs import AirflowRuns
from binlane.health.health import Health
from binlane.health.look import LAST_WINDOWS, TARGET_SECONDS, Look, look_at, look_at_all
from binlane.lazy_dataclass import dataclass
from binlane.model import BlockHeader, Flavor, RowCounts, TableKey
from binlane.orchestration.airflow.dag_shape import dag_id
from binlane.orchestration.commands.inspection.rows import LoggedTable, cells, named, part_changes
from binlane.orchestration.plan_file import read_plan
from binlane.plan.segment.reader import RoutedTransaction, changed_rows
from binlane.plan.transaction.parts import StatementPart
from binlane.plan.window_plan import LaneFile, WindowPlan
from binlane.schema.model import Schema
from binlane.servers.catalog import TableReader, read_schema
from binlane.state.orders.skips import read_skip
from binlane.state.positions import LanePosition, lane_positions
from binlane.state.records.history import (
    DEFAULT_WINDOWS,
    PastWindow,
    Snapshot,
    read_history,
    read_past_window,
)
from binlane.state.records.verifications import Suspect, read_drifted
from binlane.state.window_folders import WindowFolders
from binlane.state.windows import read_open_window
from binlane.work.files import WorkFolder
from binlane.work.lane_files import BlockOutline, block_outlines
from binlane.work.plan_inputs import read_context, read_inputs
from binlane.work.planned import read_transactions

log: Final = logging.getLogger(__name__)
Found = TypeVar("Found")

_STATEMENT_LENGTH: Final = 2_000
_DRIFTED: Final = 50
"""Rows that are known to differ, on a channel's page."""
_READING: Final = threading.Lock()
"""Held while a window's file is read as a whole: until its digest is compared it may be another one, of a gigabyte."""
_LONGEST_WAIT: Final = 5.0
"""Seconds for the files of other windows: a work folder that does not answer keeps its own pages waiting alone."""
_MOST_OUTLINES: Final = 20_000
"""Blocks that are remembered, of all lane files; a file with more is read for each request."""
_MOST_FILES: Final = 64
_Drifted: TypeAlias = tuple[tuple[Suspect, ...], list[models.DriftedRow]]
"""What was read of a channel, and how the page shows it."""


@dataclass(frozen=True, slots=True)
class Place:
    """A channel that a user may read."""

    declared: DeclaredChannel
    channel: ChannelConfig
    may_edit: bool

    @property
    def dag_id(self) -> str:
        """The id of the channel's DAG."""
        return dag_id(self.channel.name)


class NotFound(LookupError):  # noqa: N818 -- an answer, not an error of the program
    """The channel, window, lane or block does not exist, or the user may not read it."""


class BusyError(BinlaneError):
    """Files of another window are being read; the same request may be answered later."""

    retryable = True


class BoardReader:
    """Reads the answers for a user; caches only plans, which never change, and the rows last known to differ."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._drift: dict[str, _Drifted] = {}

    def may_edit(self, user: Any, name: str) -> bool:
        """Whether the user may edit the channel's DAG."""
        return self._host.may(user, EDIT, dag_id(name))

    def channels(self, user: Any) -> list[models.Card]:
        """Every channel whose DAG the user may read. Targets are queried in parallel."""
        return [
            answers.card_of(look, dag := dag_id(look.health.channel), may_act=self._host.may(user, EDIT, dag))
            for look in self._looks(user, DEFAULT_WINDOWS)
        ]

    def healths(self, user: Any) -> list[Health]:
        """The health of every channel whose DAG the user may read."""
        return [look.health for look in self._looks(user)]

    def _looks(self, user: Any, last_windows: int = LAST_WINDOWS) -> list[Look]:
        readable, silent = self.readable(user), self._host.scheduler_silent()

        def runs_of(name: str) -> AirflowRuns:
            return replace(self._host.runs(dag_id(name)), scheduler_silent=silent)

        return look_at_all(readable, self._host.resolve, runs_of=runs_of, last_windows=last_windows)

    def readable(self, user: Any) -> list[DeclaredChannel]:
        """The channels whose DAG the user may read."""
        declared = declared_channels(self._host.channels())
        return [each for each in declared if self._host.may(user, READ, dag_id(each.name))]

    @as_user_may_read
    def channel(self, user: Any, name: str) -> models.Channel:
        """Everything about one channel."""
        place = self.place(user, name)
        runs = replace(self._host.runs(place.dag_id), scheduler_silent=self._host.scheduler_silent())
        card, snapshot = self._summary(place, runs)
        if snapshot is None:
            return models.Channel(card=card)
        return models.Channel(
            card=card,
            source_identity=snapshot.status.channel.source_identity,
            target=gated(str(self._target(place.channel)), None, may_edit=place.may_edit),
            clock=snapshot.clock,
            lanes=answers.lanes_of(snapshot),
            errors=answers.errors_of(snapshot, may_edit=place.may_edit),
            undecided=answers.undecided_of(snapshot, may_edit=place.may_edit),
            skips=answers.skips_of(snapshot, may_edit=place.may_edit),
            more_skips=snapshot.more_skips,
            verifications=answers.verifications_of(snapshot),
            coverage=answers.coverage_of(snapshot),
            verified_through=dict(snapshot.status.verified),
            history=[answers.row_of(window) for window in snapshot.history],
            heat=answers.heat_of(snapshot.history),
            **self._drifted(place, snapshot),
        )

    def _drifted(self, place: Place, snapshot: Snapshot) -> dict[str, Any]:
        """The rows that are known to differ, for those who may see values."""
        if not place.may_edit:
            return {}
        if not any(snapshot.status.suspects.values()):
            return {"drifted": []}

        found, rows = self.on_target(place.channel, partial(self._drifted_rows, place.channel.name))
        return {"drifted": rows, "more_drifted": len(found) > _DRIFTED}

    def _drifted_rows(self, name: str, connection: Any) -> _Drifted:
        """The known ones until others are known to differ: a page asks every few seconds, and definitions are dear."""
        found = read_drifted(connection, name, _DRIFTED + 1)
        known = self._drift.get(name)
        if known is None or known[0] != found:
            shown, tables = found[:_DRIFTED], TableReader(connection)
            definitions = {key: tables.read(key) for key in {one.table for one in shown if not one.of_definition}}
            rows = [answers.drifted_of(one, definitions.get(one.table), name) for one in shown]
            known = self._drift[name] = found, rows
        return known

    def skipped_events(self, user: Any, name: str, seqno: int) -> bytes:
        """A skipped transaction's events as a binlog file; only for those who may edit the DAG."""
        place = self.place(user, name, edit=True)
        log: bytes = self.on_target(place.channel, lambda connection: read_skip(connection, name, seqno)[1])
        return log

    @as_user_may_read
    def windows(self, user: Any, name: str, before: int | None, limit: int) -> list[models.WindowRow]:
        """A page of the history, newest first."""
        rows = self.on_target(
            self.place(user, name).channel,
            lambda connection: read_history(connection, name, limit=limit, before=before),
        )
        return [answers.row_of(window) for window in rows]

    @as_user_may_read
    def window(self, user: Any, name: str, window_id: str) -> models.Window:
        """One window."""
        return answers.window_of(self._window(self.place(user, name).channel, window_id)[0])

    def open_window(self, place: Place) -> str | None:
        """The id of the channel's unfinished window. Raises PositionError if the channel is not on the target."""
        window = self.on_target(place.channel, lambda connection: read_open_window(connection, place.channel.name))
        return None if window is None else str(window.bounds.window_id)

    @as_user_may_read
    def blocks(self, user: Any, name: str, window_id: str, lane: int, after: int, limit: int) -> models.Blocks:
        """A page of a lane's blocks, from the window's files."""
        channel = self.place(user, name).channel
        window, position = self._window(channel, window_id, lane)
        plan, folder = plan_of(folder_of(channel, window), window)
        if lane not in plan.all_lanes:
            raise NotFound(f"window {window_id} has no lane {lane}")
        found: list[models.Block] = []
        for file in plan.files[lane]:
            if file.last_seqno <= after:
                continue
            with contextlib.closing(outlines_of(folder, file)) as outlines:
                behind = (each for each in outlines if each.header.last_seqno > after)
                page = itertools.islice(behind, limit + 1 - len(found))
                found += [_block(each.header, each, window, position) for each in page]
            if len(found) > limit:
                break
        facts = window.facts
        planned = None if facts is None else facts.lane(lane)
        lane_name = f"lane {lane}" if planned is None else planned.name
        more = found[limit - 1].last_seqno if len(found) > limit else None
        return models.Blocks(lane=lane, name=lane_name, blocks=found[:limit], next_after=more)

    @as_user_may_read
    def transactions(
        self, user: Any, name: str, window_id: str, lane: int, first_seqno: int, after: int, limit: int
    ) -> models.Transactions:
        """A page of a block's transactions, read again from the source's own events."""
        place = self.place(user, name)
        window, _ = self._window(place.channel, window_id)
        work = folder_of(place.channel, window)
        plan, folder = plan_of(work, window)
        header = _header(plan, folder, lane, first_seqno)
        with contextlib.closing(_found(work, lane, header, after + 1)) as read:
            found = [_transaction(each, may_edit=place.may_edit) for each in itertools.islice(read, limit + 1)]
        more = found[limit - 1].seqno if len(found) > limit else None
        return models.Transactions(transactions=found[:limit], rows_shown=place.may_edit, next_after=more)

    def rows(
        self, user: Any, name: str, window_id: str, lane: int, first_seqno: int, seqno: int, after: int, limit: int
    ) -> models.Rows:
        """A page of a transaction's row changes, decoded from the source's events. For those who may edit the DAG."""
        place = self.place(user, name, edit=True)
        window, _ = self._window(place.channel, window_id)
        work = folder_of(place.channel, window)
        plan, folder = plan_of(work, window)
        header = _header(plan, folder, lane, first_seqno)
        with contextlib.closing(_found(work, lane, header, seqno)) as read:
            found = next(read, None)
        if found is None or found.seqno != seqno:
            raise NotFound(f"window {window_id}: the block at seqno {first_seqno} of lane {lane} has no seqno {seqno}")
        page = list(itertools.islice(part_changes(found.parts, found.log, after), limit + 1))
        nameless = {key for key, table, _ in page if any(column.name is None for column in table.columns)}
        schema = self.on_target(place.channel, partial(_schema_of, nameless)) if nameless else None
        return models.Rows(
            seqno=seqno,
            gtid=found.transaction.gtid,
            shard=found.route.shard,
            target_names=schema is not None,
            rows=[_row_change(*each, found.log.format.flavor, schema) for each in page[:limit]],
            next_after=after + limit if len(page) > limit else None,
        )

    def place(self, user: Any, name: str, *, edit: bool = False) -> Place:
        """The channel. Raises NotFound if there is none or the user may not read its DAG; PermissionError if ``edit``
        and the user may not edit it."""
        found = next((each for each in declared_channels(self._host.channels()) if each.name == name), None)
        if found is None or not self._host.may(user, READ, dag_id(name)):
            raise NotFound(f"no channel {name!r}")
        may_edit = self._host.may(user, EDIT, dag_id(name))
        if edit and not may_edit:
            raise PermissionError(f"Airflow does not let you edit the DAG {dag_id(name)}")
        return Place(found, load_channel(found), may_edit)

    def _summary(self, place: Place, runs: AirflowRuns) -> tuple[models.Card, Snapshot | None]:
        """The channel's card and snapshot; for an unreadable target, a card with the problem and None."""
        look = look_at(place.channel, self._host.resolve, runs=runs, last_windows=DEFAULT_WINDOWS)
        return answers.card_of(look, place.dag_id, may_act=place.may_edit), look.snapshot

    def _target(self, channel: ChannelConfig) -> Endpoint:
        return resolve_endpoints(channel, self._host.resolve).target

    def engine(self, channel: ChannelConfig, checks: SchemaChecks | None = None) -> AbstractContextManager[Any]:
        """The channel's target, which is given a few seconds to answer. ``checks``: as for ``target_state``."""
        return target_state(self._target(channel), timeout=TARGET_SECONDS, checks=checks)

    def on_target(self, channel: ChannelConfig, read: Callable[[Any], Found]) -> Found:
        """What ``read`` makes of a connection to the channel's target."""
        with self.engine(channel) as engine, engine.connect() as connection:
            return read(connection)

    def window_of(self, channel: ChannelConfig, window_id: str) -> PastWindow:
        """A window of the channel. Raises NotFound."""
        return self._window(channel, window_id)[0]

    def _window(
        self, channel: ChannelConfig, window_id: str, lane: int | None = None
    ) -> tuple[PastWindow, LanePosition | None]:
        def read(connection: Any) -> tuple[PastWindow | None, tuple[LanePosition, ...]]:
            return read_past_window(connection, channel.name, window_id), lane_positions(connection, channel.name)

        window, positions = self.on_target(channel, read)
        if window is None:
            raise NotFound(f"channel {channel.name}: no window {window_id!r}")
        return window, next((each for each in positions if each.lane == lane), None)


def folder_of(channel: ChannelConfig, window: PastWindow) -> WorkFolder:
    """The window's folder. Raises NotFound if its files were removed, or are recorded at another place."""
    if window.work.is_removed or window.plan_digest is None:
        raise NotFound(
            f"window {window.window_id}: its files have been removed; work.keep_windows is the number "
            "of windows whose files are kept"
        )
    try:
        return WindowFolders(channel.work.uri, channel.name).of(window.window_id, window.work)
    except PlanError as exc:
        log.warning("board: %s", exc)
        raise NotFound(
            f"window {window.window_id}: its files are not in the channel's work folder; the web server's log says "
            "where they are expected"
        ) from exc


def plan_of(work: WorkFolder, window: PastWindow) -> tuple[WindowPlan, WorkFolder]:
    """The window's plan and the plan's folder. Raises NotFound if its files were removed."""
    folder = _plans(work)
    assert window.plan_digest is not None, "a window with a folder to show has a plan"
    if not folder.exists("plan.json"):
        log.warning("board: window %s: no plan in %s", window.window_id, folder.uri)
        raise NotFound(f"window {window.window_id}: its plan cannot be read; the web server's log says why")
    return _cached_plan(folder, window.plan_digest), folder


def _plans(work: WorkFolder) -> WorkFolder:
    try:
        with _reading():
            return work.plans(read_inputs(work).key)
    except PlanError as exc:
        # its text has paths, and values of a damaged file
        log.warning("board: %s", exc)
        raise NotFound("the window's files cannot be read; the web server's log says why") from exc


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    if not _READING.acquire(timeout=_LONGEST_WAIT):
        raise BusyError("the files of another window are still being read; reload the page in a minute")
    try:
        yield
    finally:
        _READING.release()


class _Outlines:
    """The blocks of the lane files that were read last, as many as there is room for in all: none changes, a page asks
    each few seconds, and the digest is compared over the whole file."""

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[WorkFolder, LaneFile], tuple[BlockOutline, ...]] = OrderedDict()
        self._changing = threading.Lock()

    def of(self, folder: WorkFolder, file: LaneFile) -> Generator[BlockOutline]:
        """The blocks of a lane file in order. Raises PlanError as ``block_outlines`` does."""
        key = folder, file
        with self._changing:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
        if found is not None:
            yield from found
            return
        with contextlib.closing(block_outlines(folder, file)) as outlines:
            # before the first one is given out: a page ends the reading behind some of them
            known = tuple(itertools.islice(outlines, _MOST_OUTLINES + 1))
            self._keep(key, known)
            yield from known
            yield from outlines

    def _keep(self, key: tuple[WorkFolder, LaneFile], known: tuple[BlockOutline, ...]) -> None:
        if len(known) > _MOST_OUTLINES:
            return
        with self._changing:
            self._found[key] = known
            while sum(map(len, self._found.values())) > _MOST_OUTLINES or len(self._found) > _MOST_FILES:
                self._found.popitem(last=False)


outlines_of = _Outlines().of


@lru_cache(maxsize=16)
def _cached_plan(folder: WorkFolder, digest: str) -> WindowPlan:
    """The plan in a folder; cached, since plans never change. ``digest``: the one stored on the target."""
    with _reading():
        return read_plan(folder, digest)


def _header(plan: WindowPlan, folder: WorkFolder, lane: int, first_seqno: int) -> BlockHeader:
    if lane in plan.all_lanes:
        for file in plan.files[lane]:
            if file.first_seqno <= first_seqno <= file.last_seqno:
                with contextlib.closing(outlines_of(folder, file)) as outlines:
                    for each in outlines:
                        if each.header.first_seqno == first_seqno:
                            return each.header
    raise NotFound(f"window {plan.window_id}: lane {lane} has no block that begins at seqno {first_seqno}")


def _found(folder: WorkFolder, lane: int, header: BlockHeader, first: int) -> Generator[RoutedTransaction]:
    """The block's transactions from seqno ``first`` on."""
    with _reading():
        inputs = read_inputs(folder)
        routing = read_context(folder.plans(inputs.key))
    first = max(header.first_seqno, first)
    for each in read_transactions(folder, inputs, routing, first, header.last_seqno, header, verifies=False):
        if each.lane == lane:
            yield each


def _schema_of(tables: Collection[TableKey], connection: Any) -> Schema:
    return read_schema(connection, {key.database for key in tables})


def _row_change(
    key: TableKey, table: LoggedTable, change: Change, source: Flavor, schema: Schema | None
) -> models.RowChange:
    columns = table.columns if schema is None else named(table, source, schema, key)
    before, after = (
        None if image is None else [answers.cut(text) for text in cells(table, image)]
        for image in (change.before, change.after)
    )
    return models.RowChange(
        table=str(key),
        kind=change.kind.value,
        columns=[column.label for column in columns],
        before=before,
        after=after,
    )


def _block(header: BlockHeader, outline: Any, window: PastWindow, position: LanePosition | None) -> models.Block:
    return models.Block(
        first_seqno=header.first_seqno,
        last_seqno=header.last_seqno,
        transactions=header.transactions,
        file=header.source.file,
        offset=header.source.offset,
        gtid=header.gtid,
        commit_time=header.commit_time,
        kinds=sorted(kind.value for kind in outline.kinds),
        items=outline.items,
        inserts=outline.rows.inserts,
        updates=outline.rows.updates,
        deletes=outline.rows.deletes,
        applied=answers.is_applied(window, position, header.last_seqno),
    )


def _transaction(found: RoutedTransaction, *, may_edit: bool) -> models.Transaction:
    header = found.header
    return models.Transaction(
        seqno=found.seqno,
        gtid=header.gtid,
        file=header.source.file,
        offset=header.source.offset,
        bytes=found.end_offset - header.source.offset,
        commit_time=header.commit_time,
        shard=found.route.shard,
        barrier=found.in_barrier,
        tables=[_changed(str(key), counts) for key, counts in changed_rows(found.parts).items()],
        statements=[
            models.Statement(kind=part.facts.kind.value, text=gated(_text(part.sql), None, may_edit=may_edit))
            for part in found.parts
            if isinstance(part, StatementPart)
        ],
    )


def _changed(name: str, counts: RowCounts) -> models.ChangedTable:
    return models.ChangedTable(name=name, inserts=counts.inserts, updates=counts.updates, deletes=counts.deletes)


def _text(sql: bytes) -> str:
    text = sql[: _STATEMENT_LENGTH + 1].decode("utf-8", errors="replace")
    return text if len(sql) <= _STATEMENT_LENGTH else text[:_STATEMENT_LENGTH] + " ..."
