"""The inputs of a window's plan, read from the window's folder, and the segments' bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, lru_cache, partial
from typing import Final

from blake3 import blake3

from binlane.binlog.reader import LogReader
from binlane.binlog.wire import Buffer
from binlane.choices import Reduce
from binlane.errors import PlanError
from binlane.extension import is_class_path
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.plan.block.bound_statements import BoundStatements
from binlane.plan.block.computed_modes import ComputedModes
from binlane.plan.block.keyless_chains import KeylessTables
from binlane.plan.block.reduce import Reducer
from binlane.plan.block.reducible_tables import table_rules
from binlane.plan.critical_databases import critical_databases
from binlane.plan.manifest import Manifest, Segment
from binlane.plan.routing import Routing
from binlane.plan.settings import PlanSettings
from binlane.plan.window_plan import WindowPlan
from binlane.schema.codec import schema_from_json
from binlane.work import files
from binlane.work.files import Digests, WorkFolder, digest_of
from binlane.work.folder_formats import check_formats
from binlane.work.memory_map import mapped
from binlane.work.prepared_groups import SegmentGroups

INPUTS: Final = (files.MANIFEST, files.CHANNEL, files.SCHEMA)
"""The files of a window's folder that its plan is made of, besides the segments."""


class Inputs:
    """The inputs of a window's plan. ``key`` names the plan's folder, so each input has a folder of its own."""

    def __init__(self, folder: WorkFolder, data: Mapping[str, bytes]) -> None:
        self.manifest = Manifest.from_json(data[files.MANIFEST], f"{folder.uri}/{files.MANIFEST}")
        self.settings = PlanSettings.from_json(data[files.CHANNEL], f"{folder.uri}/{files.CHANNEL}")
        self.schema = schema_from_json(data[files.SCHEMA], f"{folder.uri}/{files.SCHEMA}")
        self.is_critical = critical_databases(self.settings, self.schema)
        self.key = _key(data)
        self.digests: Digests = {name: digest_of(each) for name, each in data.items()}

    def reducer(self, routing: Routing) -> Reducer | None:
        """The reducer of blocks; None if the channel sends row events as logged."""
        if self.settings.reduce == Reduce.OFF:
            return None
        rules = table_rules(self.schema, routing.excluded)
        return Reducer(rules, self.settings.payload_bytes, self.settings.largest_bytes)

    def modes(self, routing: Routing) -> ComputedModes | None:
        """The tables whose rows are applied in their sessions' modes; None if the log has none for rows."""
        is_mysql = any(each.flavor is Flavor.MYSQL for each in self.manifest.segments)
        return ComputedModes(self.schema, routing.excluded) if is_mysql else None

    def bound(self, routing: Routing) -> BoundStatements | None:
        """The tables whose statements keep their ends; None if there is none."""
        servers = {Flavor(self.settings.target), *(each.flavor for each in self.manifest.segments)}
        rules = BoundStatements(self.schema, routing.excluded) if servers == {Flavor.MARIADB} else None
        return rules if rules is not None and rules.any else None

    def chains(self, routing: Routing) -> KeylessTables | None:
        """The tables whose changes must not meet each other in one event; None if the target makes them in turn."""
        if self.settings.target != Flavor.MYSQL or not self.manifest.segments:
            return None
        return KeylessTables(self.manifest.segments[0].flavor, self.schema, routing.excluded)

    @cached_property
    def _places(self) -> Mapping[str, int]:
        """Places of the segments and behind them of the carried XA transactions, by name."""
        return {segment.name: n for n, segment in enumerate((*self.manifest.segments, *self.manifest.carried))}

    def ordinal(self, name: str) -> int:
        """The place of a segment in the window, from 0."""
        return self._places[name]

    def segment(self, name: str) -> Segment:
        """The manifest's entry of a segment, or of a carried XA transaction."""
        at, segments = self._places[name], self.manifest.segments
        return segments[at] if at < len(segments) else self.manifest.carried[at - len(segments)]

    def groups(self, folder: WorkFolder, routing: Routing, segment: Segment, data: Buffer) -> SegmentGroups:
        """The prepared transactions that the XA COMMITs of a segment commit."""
        log_format = LogReader(data, segment.source_file, verify=False).format
        return SegmentGroups(
            routing,
            log_format,
            Flavor(self.settings.target),
            self.segment,
            partial(segment_bytes, folder),
            self.settings.rules,
        )


def _input_files(folder: WorkFolder) -> dict[str, bytes]:
    return {name: folder.read(name) for name in INPUTS}


def _key(data: Mapping[str, bytes]) -> str:
    return hashlib.sha256(b"\0".join(data.values())).hexdigest()[:16]


def plan_digest(work: str) -> str | None:
    """The digest of the plan in a window's folder, None if there is no plan. Raises PlanError for files of another
    release that this one cannot read."""
    folder = WorkFolder.of_window(work)
    plans = folder.plans(_inputs_in(folder).key)
    if not plans.exists(files.PLAN):
        return None
    check_formats(plans)
    return WindowPlan.from_json(plans.read(files.PLAN), f"{plans.uri}/{files.PLAN}").digest


@lru_cache(maxsize=2)
def inputs_of(uri: str, key: str) -> Inputs:
    """The inputs named by ``key``, for a worker. Raises PlanError if the folder holds other inputs by now."""
    inputs = _inputs_in(WorkFolder.of_window(uri))
    if inputs.key != key:
        raise PlanError(
            f"{uri}: expected the inputs {key}, found {inputs.key}: another run has replaced them; "
            "run the plan job again"
        )
    # the job's driver may be of another release than its workers
    check_formats(WorkFolder.of_window(uri).plans(key))
    return inputs


def read_inputs(folder: WorkFolder, classes: Collection[str] = ()) -> Inputs:
    """Manifest, settings and schema, as the folder has them now.

    ``classes``: of the site's own that a folder without known digests may name. Raises PlanError for files that are not
    those of the digests, and, where no digests are known, for settings that name other code to call.
    """
    inputs = _inputs_in(folder)
    if folder.digests is None:
        _require_no_code(folder, inputs.settings, classes)
    return inputs


def require_no_code(folder: WorkFolder, classes: Collection[str]) -> None:
    """Raises PlanError for settings that name other code than ``classes``, in a folder whose digests the target does
    not know: whoever has answered them may have chosen the file, too."""
    _require_no_code(folder, _inputs_in(folder).settings, classes)


def _require_no_code(folder: WorkFolder, settings: PlanSettings, classes: Collection[str]) -> None:
    """Who can write to the work folder must not choose the code that the reader's process runs."""
    named = {"lanes.consistency": settings.consistency, "lanes.assigner": settings.assigner}
    for key, word in named.items():
        if is_class_path(word) and word not in classes:
            raise PlanError(
                f"{folder.uri}/{files.CHANNEL}: {key}: expected one of binlane's own words in a file whose digest is "
                f"not known here, found the code {word}, which is not called: who can write to the work folder could "
                "name any. A window that `binlane run CHANNEL` or the DAG plans has its digests; a spark-submit of "
                "your own gets them by --digests"
            )


def _inputs_in(folder: WorkFolder) -> Inputs:
    """Parsed once, if they are asked for again before another window's: the steps of a command, and a page of a window,
    ask several times."""
    check_formats(folder)
    data = _input_files(folder)
    key = folder.uri, _key(data)
    inputs = _NEWEST.get(key)
    if inputs is None:
        inputs = Inputs(folder, data)
        _NEWEST.clear()
        _NEWEST[key] = inputs
    return inputs


_NEWEST: Final[dict[tuple[str, str], Inputs]] = {}
"""No more than one: of a folder and a key."""


@dataclass(frozen=True, slots=True)
class WorkerInputs:
    """What a worker gets of a window besides its files: names by which it knows that these are the driver's."""

    uri: str
    """The window's folder."""
    key: str
    """Of the inputs (``Inputs.key``)."""
    context: str
    """SHA-256 of context.json."""

    @classmethod
    def of(cls, folder: WorkFolder, key: str, context: bytes) -> WorkerInputs:
        """Of a window's folder, and the bytes of context.json as the driver has written them."""
        return cls(folder.uri, key, digest_of(context))

    @property
    def plans(self) -> WorkFolder:
        """The plan's folder."""
        return WorkFolder.of_window(self.uri, {f"{self.key}/{files.CONTEXT}": self.context}).plans(self.key)


def read_context(plans: WorkFolder) -> Routing:
    """The window's routes, as written by the merge of scans into the plan's folder."""
    return Routing.from_json(plans.read(files.CONTEXT), f"{plans.uri}/{files.CONTEXT}")


@lru_cache(maxsize=2)
def routing_of(planning: WorkerInputs) -> Routing:
    """``read_context``, for a worker."""
    return read_context(planning.plans)


@lru_cache(maxsize=2)
def reducer_of(planning: WorkerInputs) -> Reducer | None:
    """``Inputs.reducer`` by the window's routes: a worker makes the rules of a fleet's tables once."""
    return inputs_of(planning.uri, planning.key).reducer(routing_of(planning))


@lru_cache(maxsize=2)
def modes_of(planning: WorkerInputs) -> ComputedModes | None:
    """``Inputs.modes`` by the window's routes, as ``reducer_of``."""
    return inputs_of(planning.uri, planning.key).modes(routing_of(planning))


@lru_cache(maxsize=2)
def bound_of(planning: WorkerInputs) -> BoundStatements | None:
    """``Inputs.bound`` by the window's routes, as ``reducer_of``."""
    return inputs_of(planning.uri, planning.key).bound(routing_of(planning))


@lru_cache(maxsize=2)
def chains_of(planning: WorkerInputs) -> KeylessTables | None:
    """``Inputs.chains`` by the window's routes, as ``reducer_of``."""
    return inputs_of(planning.uri, planning.key).chains(routing_of(planning))


@contextmanager
def segment_bytes(folder: WorkFolder, segment: Segment, *, verifies: bool = True) -> Iterator[Buffer]:
    """A segment's bytes: usually about 64 MB, but at least as many as its largest transaction has.

    Raises PlanError if the file's size is not the manifest's; if ``verifies``, also if its digest is not. The events'
    own checksums were compared when that digest was taken.
    """
    _check(folder, segment, folder.size(segment.name))
    with mapped(folder, segment.name) as data:
        _check(folder, segment, len(data))
        if verifies and blake3(data).hexdigest() != segment.blake3:
            raise PlanError(
                f"{folder.uri}/{segment.name}: expected BLAKE3 {segment.blake3} as in the manifest, found another: the "
                "file was changed or is damaged; remove the window's folder and run the extract step again: it reads "
                "the same part of the log"
            )
        yield data


def _check(folder: WorkFolder, segment: Segment, size: int) -> None:
    if size != segment.bytes:
        raise PlanError(
            f"{folder.uri}/{segment.name}: expected {segment.bytes:,} bytes as in the manifest, found {size:,}; "
            "remove the window's folder and run the extract step again: it reads the same part of the log"
        )
