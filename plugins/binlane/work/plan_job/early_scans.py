"""Scans of a window's segments while the log behind them is still being read, by processes of this machine.

A scan needs no more of a window's inputs than the channel's settings (``scan_segment``), and these are known before the
log is read. The inputs are written when it has been read: a result counts only if it is of that very segment, and was
made with those very settings. What is missing then, for whatever reason, the plan job scans itself.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from types import TracebackType

from binlane.garbage import uncollected
from binlane.plan.critical_databases import critical_databases
from binlane.plan.manifest import Segment
from binlane.plan.segment.map import ScanSummary, scan_segment
from binlane.plan.settings import PlanSettings
from binlane.schema.model import Schema
from binlane.shards.shard_list import parse_shard_list
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import segment_bytes
from binlane.work.plan_job.fork_server import begin_fork_server
from binlane.work.plan_job.processes import ForkedProcesses, end_with_parent
from binlane.work.plan_job.wire import to_wire

log = logging.getLogger(__name__)

SettingsNow = Callable[[Segment], PlanSettings]
"""The settings of a window of this source, as far as they are known before its log has been read."""


class EarlyScans:
    """The scans of one window at a time; a context manager, which ends its processes.

    ``processes``: how many are at work at once. One core is the reader's. ``most``: no more segments than these are
    scanned; None: all.
    """

    def __init__(self, processes: int, most: int | None = None) -> None:
        self._processes, self._most = max(processes, 1), most
        self._pool: ProcessPoolExecutor | None = None
        self._context = ForkedProcesses()
        self._begin()

    def _begin(self, uri: str = "") -> None:
        self._uri = uri
        self._held: Segment | None = None
        self._settings: PlanSettings | None = None
        self._is_off = False
        # in a queue of its own: a pool that loses a process must have no future that was cancelled (Python 3.11)
        self._waiting = deque[Segment]()
        self._futures: dict[Segment, Future[bytes]] = {}

    def __enter__(self) -> EarlyScans:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._pool is not None:
            # what is still at work is of no use to anybody
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._context.end()
        self._pool = None
        self._begin()

    def told(self, settings_now: SettingsNow, folder: WorkFolder, segment: Segment) -> None:
        """A segment of the window in ``folder`` is complete: scan the one before it. The last one of a window is not
        scanned early, because the plan job is about to begin. Raises what ``settings_now`` raises."""
        if folder.uri != self._uri:
            self._begin(folder.uri)
        held, self._held = self._held, segment
        if held is None or self._is_off or len(self._futures) + len(self._waiting) == self._most:
            return
        if self._settings is None:
            settings = _comparable(settings_now(held))
            # who is critical depends on the target's foreign keys, too, which are read behind the log
            self._is_off = bool(
                parse_shard_list(settings.shard_list, settings.shard_list_path, lanes=settings.lanes).critical
            )
            if self._is_off:
                return
            self._settings = settings
        self._waiting.append(held)
        while self._waiting and sum(not future.done() for future in self._futures.values()) < self._processes:
            self._submit(self._waiting.popleft(), self._settings)

    def _submit(self, segment: Segment, settings: PlanSettings) -> None:
        if self._pool is None:
            begin_fork_server()
            self._context = ForkedProcesses()
            self._pool = ProcessPoolExecutor(self._processes, mp_context=self._context, initializer=end_with_parent)
        try:
            self._futures[segment] = self._pool.submit(early_scan, self._uri, segment, settings)
        except RuntimeError as exc:
            # a pool that has lost a process takes nothing more
            log.debug("no early scans: %s", exc)
            self._is_off = True

    def rows(self, settings: PlanSettings) -> Mapping[Segment, bytes]:
        """The results of ``scan_task`` that are there or at work, by their segments. ``settings``: of the window's
        inputs."""
        self._waiting.clear()
        if self._settings is None or _comparable(settings) != self._settings:
            return {}
        found: dict[Segment, bytes] = {}
        for segment, future in self._futures.items():
            try:
                found[segment] = future.result()
            except Exception as exc:
                # the plan job meets it again, and says what is to be done
                log.debug("%s: no early scan: %s", segment.name, exc)
        return found


def _comparable(settings: PlanSettings) -> PlanSettings:
    """The settings without what is read from the source behind the log; the scan does not use it."""
    return replace(settings, not_reduced=[])


@uncollected()
def early_scan(uri: str, segment: Segment, settings: PlanSettings) -> bytes:
    """As ``scan_task``, without the window's inputs; only for channels without critical shards."""
    with segment_bytes(WorkFolder.of_window(uri), segment) as data:
        nothing = Schema(segment.flavor, segment.server_version)
        scanned = scan_segment(data, segment, settings, critical_databases(settings, nothing))
        return to_wire(ScanSummary, scanned)
