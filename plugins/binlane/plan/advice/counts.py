"""Counts of a log, segment by segment, and what other settings would make of the same log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from binlane.binlog.wire import Buffer
from binlane.choices import Assigner, Divide, Reduce
from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass
from binlane.model import FILTERED_SHARD, SPECIAL_SHARDS, Flavor, TableKey
from binlane.plan.advice.blocks import BlockCounts, WriteSets
from binlane.plan.advice.hot_keys import HotKey
from binlane.plan.advice.table_keys import TableKeys
from binlane.plan.advice.tenants import pattern_of
from binlane.plan.block.size_choice import SizeChoice
from binlane.plan.critical_databases import critical_databases
from binlane.plan.manifest import Manifest, Segment
from binlane.plan.routing import Routing
from binlane.plan.segment.columns import INSERT, segment_columns
from binlane.plan.segment.load import Load, Loads
from binlane.plan.segment.map import ScanSummary, scan_columns
from binlane.plan.settings import PlanSettings
from binlane.plan.transaction.route_key import TransactionClass
from binlane.plan.window.merge import EMPTY, merge_scans
from binlane.schema.model import Schema
from binlane.shards.shard_list import HashMethod, ShardList, parse_shard_list


@dataclass(frozen=True, slots=True)
class ShardCount:
    """A shard's part of the log; transactions of several shards are listed under all their names."""

    name: str
    lane: int
    load: Load


@dataclass(frozen=True, slots=True)
class TableCount:
    """Where a table's row changes go if its shard is divided."""

    table: str
    rows: int
    lane: int | None
    """None: each row by its primary key."""
    reason: str


@dataclass(frozen=True, slots=True)
class Lanes:
    """What lanes and barriers a shard list makes."""

    bytes: tuple[int, ...]
    """By lane, the serialized lane last."""
    barriers: int
    serialized: int
    """Transactions inside barriers."""
    causes: Mapping[str, int]
    """Transactions that need a barrier, by cause."""

    @property
    def busiest(self) -> float:
        """The share of the lane with the most bytes."""
        return max(self.bytes) / max(sum(self.bytes), 1)

    def span(self, transactions: int) -> float:
        """How long all lanes take, as a share of the time of one lane: barriers one after another, then the busiest
        lane."""
        return span(self.busiest, self.serialized / max(transactions, 1))


@dataclass(frozen=True, slots=True)
class Tenants:
    """What the assigner "pattern" makes of databases that transactions change together."""

    pattern: str
    lanes: Lanes
    """By load."""


@dataclass(frozen=True, slots=True)
class DividedShard:
    """The biggest shard, divided over all lanes."""

    shard: str
    tables: tuple[TableCount, ...]
    """Its tables, the busiest first."""
    busiest: float
    """The share of the lane with the most row changes: of its tables, or of one hot key."""
    barriers: int
    serialized: int

    def span(self, transactions: int) -> float:
        """As ``Lanes.span``."""
        return span(self.busiest, self.serialized / max(transactions, 1))


def span(busiest: float, serialized: float) -> float:
    """The time of all lanes for one unit of work, of which ``serialized`` is done in barriers and of the rest
    ``busiest`` by one lane."""
    return serialized + (1 - serialized) * busiest


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a log."""

    settings: PlanSettings
    has_schema: bool
    """False: the log alone tells of keys."""
    transactions: int
    shards: tuple[ShardCount, ...]
    """The one with the most bytes first."""
    as_set: Lanes
    by_load: Lanes
    tenants: Tenants | None
    """None: no pattern puts most transactions over several databases into one shard, or the channel's assigner is
    another one than "database"."""
    divided: DividedShard | None
    """Each lane commits its shares alone."""
    together: DividedShard | None
    """The same, with shares that commit together; None as ``divided`` is."""
    why_not_divided: str
    size: SizeChoice | None
    """What "auto" would choose for the channel's blocks."""
    blocks: tuple[BlockCounts, ...]
    hot_keys: tuple[HotKey, ...]
    missed: int
    """A key may have been changed so many times more than told."""
    unkeyed: tuple[str, ...]
    """Tables whose rows are compared as a whole."""
    unknown: tuple[str, ...]
    """Tables of which not all keys are known."""

    @property
    def total(self) -> Load:
        """All shards."""
        return sum((shard.load for shard in self.shards), Load())


@dataclass(slots=True)
class WindowCounter:
    """Reads a window's segments one after another, each once. ``schema``: the target's; None: it is not known."""

    settings: PlanSettings
    schema: Schema | None
    first_seqno: int
    _scans: list[ScanSummary] = field(default_factory=list)
    _carried: list[ScanSummary] = field(default_factory=list)
    _loads: Loads = field(default_factory=Loads)
    _tables: Counter[TableKey] = field(default_factory=Counter)
    _sets: WriteSets = field(init=False)
    _is_critical: Callable[[str], bool] = field(init=False)
    _measured: PlanSettings = field(init=False)

    def __post_init__(self) -> None:
        self._sets = WriteSets(TableKeys(self.schema), self.first_seqno)
        # a shard that is divided below may be critical now, so the scan lists nothing more than it would anyway
        self._is_critical = critical_databases(self.settings, self._known)
        self._measured = replace(self.settings, divide=Divide.KEY, reduce=Reduce.AUTO, block_transactions=None)

    @property
    def _known(self) -> Schema:
        return self.schema or Schema(Flavor(self.settings.target), self.settings.target_version)

    def add(self, data: Buffer, segment: Segment) -> None:
        """Count the next segment. Raises BinlogError for anything in it that cannot be applied exactly."""
        columns = segment_columns(data, segment, self.settings)
        scan = scan_columns(columns, self._measured, self._is_critical, measures_load=True)
        assert scan.loads is not None
        self._loads.merge(scan.loads)
        # without a schema a temporary table cannot be told from one that was there before
        temporary = () if self.schema is None else scan.temporary
        self._scans.append(replace(scan, loads=None, temporary=temporary))
        with_statements = {n for n, described in enumerate(scan.classes) if described.statements}
        self._sets.add(columns, [seqno for seqno, number in scan.members if number in with_statements])
        rows = np.bincount(columns.number[columns.role >= INSERT], columns.rows[columns.role >= INSERT])
        for table, count in zip(columns.tables, rows.tolist(), strict=False):
            self._tables[TableKey(table.database, table.table)] += int(count)

    def add_carried(self, data: Buffer, segment: Segment) -> None:
        """Note an XA transaction that an earlier window has prepared."""
        columns = segment_columns(data, segment, self.settings)
        self._carried.append(scan_columns(columns, self._measured, self._is_critical, measures_load=False))

    def finish(self, manifest: Manifest) -> Counts:
        """The counts of all segments. Raises ConfigError for a shard list that does not fit."""
        settings, manifest = self.settings, replace(manifest, done=(*manifest.done, *self._unseen()))
        listed = parse_shard_list(settings.shard_list, settings.shard_list_path, lanes=settings.lanes)
        as_set = self._merged(manifest, settings)
        by_load = self._merged(manifest, _with(settings, replace(listed, hash_method=HashMethod.LOAD, default=None)))
        shards = self._shards(as_set)
        (divided, together), why_not = self._divided(manifest, listed, shards, as_set)
        return Counts(
            settings,
            self.schema is not None,
            manifest.transactions,
            shards,
            self._lanes(as_set),
            self._lanes(by_load),
            self._tenants(manifest, listed),
            divided,
            together,
            why_not,
            self._merged(manifest, self._measured).size,
            self._sets.finish(manifest.last_seqno),
            self._sets.hot.first(),
            self._sets.hot.missed,
            tuple(sorted(map(str, self._sets.unkeyed))),
            tuple(sorted(map(str, self._sets.unknown))),
        )

    def _unseen(self) -> list[str]:
        """The XIDs of XA transactions that end here and were prepared before the log begins, as an archive's may be."""
        scans = [*self._scans, *self._carried]
        known = {str(each.name) for scan in scans for each in scan.prepared}
        return sorted({str(each.name) for scan in scans for each in scan.resolved if each.commits} - known)

    def _merged(self, manifest: Manifest, settings: PlanSettings) -> Routing:
        scans = [replace(self._scans[0], loads=self._loads), *self._scans[1:]] if self._scans else []
        return merge_scans(manifest, scans, settings, self._known, self._carried)

    def _routes(self, routing: Routing) -> list[tuple[str, int, Load]]:
        """Shard, lane and load of each database of plain transactions, and of each class of others."""
        plain = {TransactionClass(frozenset({name}), ()): load for name, load in self._loads.databases.items()}
        found = [
            (route.shard, route.lane, load)
            for described, load in (*plain.items(), *self._loads.classes.items())
            if (route := routing.find(described)) is not None
        ]
        return [each for each in found if each[0] not in (FILTERED_SHARD, EMPTY)]

    def _shards(self, routing: Routing) -> tuple[ShardCount, ...]:
        found: dict[str, ShardCount] = {}
        for shard, lane, load in self._routes(routing):
            before = found.get(shard, ShardCount(shard, lane, Load()))
            found[shard] = replace(before, load=before.load + load)
        return tuple(sorted(found.values(), key=lambda each: (-each.load.bytes, each.name)))

    def _lanes(self, routing: Routing) -> Lanes:
        size = [0] * (routing.lanes + 1)
        for _, lane, load in self._routes(routing):
            size[lane] += load.bytes
        causes: Counter[str] = Counter()
        for barrier in routing.barriers:
            causes.update(barrier.causes)
        return Lanes(tuple(size), len(routing.barriers), _serialized(routing), dict(causes.most_common()))

    def _tenants(self, manifest: Manifest, listed: ShardList) -> Tenants | None:
        """A pattern for the databases that transactions change together, and what it makes of the log."""
        source = self.settings.renaming.source
        common: Counter[frozenset[str]] = Counter()
        for described, load in self._loads.classes.items():
            named = described.row_databases.union(*(each.facts.databases for each in described.statements))
            names = frozenset(source(name) or name for name in named if not self._is_critical(name))
            if len(names) > 1:
                common[names] += load.transactions
        pattern = pattern_of(common) if common and self.settings.assigner == Assigner.DATABASE else None
        if pattern is None:
            return None
        changed = replace(listed, pattern=pattern, hash_method=HashMethod.LOAD, default=None)
        settings = replace(_with(self.settings, changed), assigner=Assigner.PATTERN)
        try:
            return Tenants(pattern, self._lanes(self._merged(manifest, settings)))
        except ConfigError:
            return None  # the list has entries for databases of the tenants, whose shards it would have to name

    def _divided(
        self, manifest: Manifest, listed: ShardList, shards: Sequence[ShardCount], as_set: Routing
    ) -> tuple[tuple[DividedShard | None, DividedShard | None], str]:
        """The biggest shard divided, or those that are, by shares that commit alone and together; or why this cannot
        be told."""
        none = None, None
        if as_set.division is not None:
            return self._both(manifest, self.settings), ""
        if self.schema is None:
            return none, "the target's keys decide how tables are divided, and they are not in the log"
        name = next(
            (shard.name for shard in shards if shard.name not in SPECIAL_SHARDS and "+" not in shard.name), None
        )
        if name is None:
            return none, "no shard has transactions of its own"
        changed = _dividing(listed, self.settings.renaming.source(name) or name)
        if changed is None:
            return none, f"{name!r} cannot be written in (divided)"
        try:
            found = self._both(manifest, replace(_with(self.settings, changed), divide=Divide.KEY))
        except ConfigError as exc:
            return none, str(exc)
        return found, f"{name} has no row changes, only statements" if found == none else ""

    def _both(self, manifest: Manifest, settings: PlanSettings) -> tuple[DividedShard | None, DividedShard | None]:
        alone = self._of_division(self._merged(manifest, replace(settings, commits_together=False)))
        return alone, self._of_division(self._merged(manifest, replace(settings, commits_together=True)))

    def _of_division(self, routing: Routing) -> DividedShard | None:
        division = routing.division
        if division is None:
            return None
        rows, tables = np.zeros(routing.lanes), []
        for key, count in self._tables.items():
            if key.database not in division.databases:
                continue
            home = division.databases[key.database]
            if home is None:
                placed = division.placed(key)
                tables.append(TableCount(str(key), count, placed.lane, placed.reason))
                home = placed.lane
            if home is None:
                rows += count / routing.lanes
            else:
                rows[home] += count
        tables.sort(key=lambda each: (-each.rows, each.table))
        by_key = {each.table for each in tables if each.lane is None}
        # all changes of one key are in one lane
        hottest = max((each.changes for each in self._sets.hot.first() if each.table in by_key), default=0)
        busiest = max(float(rows.max()), hottest) / max(float(rows.sum()), 1.0)
        return DividedShard(
            ", ".join(division.shards), tuple(tables), busiest, len(routing.barriers), _serialized(routing)
        )


def _serialized(routing: Routing) -> int:
    return sum(barrier.last - barrier.first + 1 for barrier in routing.barriers)


def _with(settings: PlanSettings, listed: ShardList) -> PlanSettings:
    return replace(settings, shard_list=listed.text())


def _dividing(listed: ShardList, name: str) -> ShardList | None:
    """The list with one shard divided, without the entries that contradict this; None if it cannot name the shard."""
    found = replace(
        listed,
        divided=frozenset({name}),
        explicit={
            key: entry
            for key, entry in listed.explicit.items()
            if key != name and key not in SPECIAL_SHARDS and key not in listed.critical
        },
        critical=listed.critical - {name},
    )
    return (
        found if parse_shard_list(found.text(), "", lanes=1 << 30).divided == {name} and found.divides(name) else None
    )
