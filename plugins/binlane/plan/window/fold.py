"""Folds the scans of all segments into the window's routes, and the summaries of all maps into its plan."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from binlane.errors import PlanError
from binlane.extension import chosen
from binlane.model import FILTERED_SHARD, GLOBAL_SHARD, UNKNOWN_SHARD, Barrier, RowCounts, TableKey
from binlane.plan.barriers import BarrierRequest, fold
from binlane.plan.block.reducible_tables import Excluded
from binlane.plan.critical_databases import critical_databases
from binlane.plan.division import Division
from binlane.plan.manifest import Manifest
from binlane.plan.routing import Route, Routing, first_appearance
from binlane.plan.row_accounting import Tally, total
from binlane.plan.segment.map import MapSummary, ScanSummary
from binlane.plan.settings import FilterSettings
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.transaction.route_key import TransactionClass
from binlane.plan.transaction.temporary_stretches import stretches
from binlane.plan.transaction.temporary_tables import lives
from binlane.plan.transaction.xa import Pairs, pair
from binlane.plan.window.filter_guard import check_views
from binlane.plan.window.placement import placements
from binlane.plan.window.reduce import FoldedLane
from binlane.plan.window_plan import LaneFile, TableCounts, WindowPlan
from binlane.schema.dependencies import SchemaFacts
from binlane.schema.model import Schema
from binlane.shards.assigners import ASSIGNERS
from binlane.shards.event_filter import EventMetadataFilter, TransactionShards
from binlane.shards.renaming import AS_THEY_ARE, Renaming
from binlane.shards.shard_list import Partitioner, critical_shards, parse_shard_list
from binlane.sql.parse.facts import StatementKind

EPOCH = "epoch"
CRITICAL = "reference shard"
CROSS_LANE = "several lanes"
TEMPORARY = "temporary tables"
UNREAD = "unknown: a definition that could not be read may join databases by a foreign key"
DIVIDED = "statement of a divided shard"
EMPTY = "(empty)"
"""Shard name of transactions without rows and statements."""


def fold_scans(
    manifest: Manifest,
    scans: Sequence[ScanSummary],
    settings: FilterSettings,
    schema: Schema,
    carried: Sequence[ScanSummary] = (),
) -> Routing:
    """The window's routes and barriers. ``carried``: scans of the XA transactions that earlier windows prepared.

    Raises ConfigError for a shard list that does not fit, UnsupportedEventError for an XA transaction whose other half
    is missing.
    """
    pairs = pair(
        (half for scan in scans for half in scan.prepared),
        (half for scan in scans for half in scan.resolved),
        (half for scan in carried for half in scan.prepared),
        manifest.done,
    )
    committed = _committed(pairs, critical_databases(settings, schema))
    routing = _Fold(manifest, [*scans, committed], settings, schema, carried).routing()
    return dataclasses.replace(
        routing, prepared=pairs.commits, carried_in=pairs.carried_in, carried_out=pairs.carried_out
    )


def _committed(pairs: Pairs, is_critical: Callable[[str], bool]) -> ScanSummary:
    """The scan of the XA COMMITs, as if their changes had been logged there."""
    databases: dict[str, int] = {}
    numbers: dict[TransactionClass, int] = {}
    members: list[tuple[int, int]] = []
    for seqno, described in pairs.classes.items():
        plain = described.plain_database
        if plain is not None and not is_critical(plain):
            databases.setdefault(plain, seqno)
        else:
            members.append((seqno, numbers.setdefault(described, len(numbers))))
    return ScanSummary(databases, tuple(numbers), tuple(members), ())


class _Fold:
    def __init__(
        self,
        manifest: Manifest,
        scans: Sequence[ScanSummary],
        settings: FilterSettings,
        schema: Schema,
        carried: Sequence[ScanSummary],
    ) -> None:
        self._settings = settings
        self._scans, self._carried = scans, carried
        self._window = (manifest.first_seqno, manifest.last_seqno)
        self._restarts = manifest.restarts
        self._fold_gap = min(settings.fold_gap, _transactions_of(settings.block_bytes, manifest))
        self._schema = schema
        self._serialized = settings.lanes
        facts = self._known = self._schema_facts(schema)
        check_views(settings.selection, settings.renaming, manifest.segments, scans, facts)
        self._filter = EventMetadataFilter(manifest.segments[0].flavor, facts)
        shard_list = parse_shard_list(settings.shard_list, settings.shard_list_path, lanes=settings.lanes)
        groups = facts.foreign_key_groups
        self._critical = critical_shards(shard_list, groups, settings.renaming, facts.letter_case)
        self._assigner = chosen(ASSIGNERS, settings.assigner, "lanes.assigner")()
        self._classes: dict[TransactionClass, tuple[frozenset[str], str | None]] = {}
        for scan in scans:
            for described in scan.classes:
                if described not in self._classes:
                    decided = self._decide(described)
                    self._classes[described] = (frozenset(map(self._shard, decided.shards)), decided.cause)
        self._databases = {name: self._shard(self._filter.group_of(name)) for scan in scans for name in scan.databases}
        self._partitioner = Partitioner(
            shard_list,
            settings.lanes,
            first_appearance(self._appearances()),
            groups,
            settings.renaming,
            facts.letter_case,
        )

    def _schema_facts(self, schema: Schema) -> SchemaFacts:
        """The schema at any time of the window: the target's at its start, and everything that the window creates.

        Statements before the window's own DDL are judged by the schema after it too: this may serialize a transaction
        that needs no barrier, and never misses one that does.
        """
        return schema.known().after(
            *(
                statement.facts
                for scan in self._scans
                for described in scan.classes
                for statement in described.statements
            )
        )

    def _decide(self, described: TransactionClass) -> TransactionShards:
        return self._filter.assign(described.row_databases, described.statements)

    def _shard(self, group: str) -> str:
        """The shard of a group of databases. Critical groups and those with a ``#`` are their own shard."""
        return group if group.startswith("#") or group in self._critical else self._assigner.shard_of(group)

    def _appearances(self) -> Iterator[tuple[int, str]]:
        """Shards that have a lane, with the seqno of their first transaction in each segment."""
        for scan in self._scans:
            for name, seqno in scan.databases.items():
                if name != FILTERED_SHARD:
                    yield seqno, self._databases[name]
            for seqno, number in scan.members:
                for shard in self._classes[scan.classes[number]][0]:
                    if shard not in {GLOBAL_SHARD, UNKNOWN_SHARD}:
                        yield seqno, shard

    def routing(self) -> Routing:
        return Routing(
            lanes=self._settings.lanes,
            databases={name: Route(shard, self._home({shard})) for name, shard in sorted(self._databases.items())},
            classes={
                described.key: Route("+".join(sorted(shards)) or EMPTY, self._home(shards))
                for described, (shards, _) in self._classes.items()
            },
            barriers=tuple(self._barriers()),
            excluded=self._excluded(),
            division=self._division,
        )

    @cached_property
    def _row_shards(self) -> Mapping[str, str]:
        """The shard of each database with row changes."""
        named = {name for described in self._classes for name in described.row_databases} | self._databases.keys()
        return {name: self._shard(self._filter.group_of(name)) for name in sorted(named - {FILTERED_SHARD})}

    @cached_property
    def _division(self) -> Division | None:
        """How the parallel lanes share the window; None if no shard of it is divided, or one lane applies all of it."""
        shards = self._row_shards
        divided = {shard for shard in shards.values() if self._partitioner.is_divided(shard)}
        if not divided:
            return None
        lanes = {
            name: None if shard in divided else self._partitioner.lane_of(shard)
            for name, shard in shards.items()
            if not self._partitioner.is_critical(shard)
        }
        found = placements([*self._scans, *self._carried], self._settings, self._schema, self._known, self._excluded())
        return Division(self._settings.lanes, tuple(sorted(divided)), lanes, found, self._known.letter_case.folds)

    def _barriers(self) -> Iterator[Barrier]:
        """Barriers of temporary tables, and between them those of the requests, or one barrier over everything."""
        requests, serial = list(self._requests()), self._why_serial()
        first, last = self._window
        for stretch in (*self._of_temporary_tables(), None):
            end = last if stretch is None else stretch.first - 1
            if serial is not None and first <= end:
                yield self._serial(first, end, serial)
            elif serial is None:
                between = (request for request in requests if first <= request.seqno <= end)
                yield from fold(between, serialized=self._serialized, fold_gap=self._fold_gap)
            if stretch is not None:
                yield stretch
                first = stretch.last + 1

    def _serial(self, first: int, last: int, cause: str) -> Barrier:
        return Barrier(first, last, self._serialized, tuple(range(self._serialized + 1)), {cause: last - first + 1})

    def _of_temporary_tables(self) -> Iterator[Barrier]:
        """Barriers for open temporary tables. Raises UnsupportedEventError for uses that cannot be replayed exactly."""
        steps = [step for scan in self._scans for step in scan.temporary]
        if not steps:
            return
        found = lives(steps, self._restarts, self._known_tables())
        commits = self._commits() if found else []
        for life in found:
            for stretch in stretches(life, steps, commits):
                yield dataclasses.replace(
                    self._serial(stretch.first, stretch.last, TEMPORARY),
                    together=stretch.together,
                    leftovers=tuple(
                        (each.thread_id, each.table.database, each.table.table) for each in stretch.leftovers
                    ),
                    temporary=stretch.copies,
                )

    def _commits(self) -> list[int]:
        """Seqnos of transactions that commit implicitly."""
        return sorted(
            seqno
            for scan in self._scans
            for seqno, number in scan.members
            if any(statement.facts.commits_implicitly for statement in scan.classes[number].statements)
        )

    def _known_tables(self) -> Callable[[TableKey], bool]:
        """Predicate for tables and views that are on the target, or that a DDL of the window names."""
        named = {
            table
            for described in self._classes
            for statement in described.statements
            if statement.facts.kind is not StatementKind.DML and not statement.facts.temporary
            for table in statement.facts.tables | statement.facts.views
        }
        known = {str(table).casefold() for table in (*self._schema.tables, *self._schema.views, *named)}
        return lambda table: str(table).casefold() in known

    def _excluded(self) -> Excluded:
        """Tables and databases not to be folded: the window's DDL names them, or their keys differ from the
        source's."""
        tables = {TableKey(*names): "its keys differ between source and target" for names in self._settings.not_reduced}
        databases: dict[str, str] = {}
        for described in self._classes:
            for statement in described.statements:
                facts = statement.facts
                if not facts.commits_implicitly:
                    continue
                if facts.kind is StatementKind.UNKNOWN:
                    return Excluded(tables, databases, "a statement of the window that could not be read may alter it")
                if facts.kind is StatementKind.DDL and facts.tables:
                    tables |= dict.fromkeys(facts.tables, "a DDL of the window names it")
                elif facts.kind is StatementKind.DDL:
                    databases |= dict.fromkeys(facts.databases, "a DDL of the window is about its database")
        return Excluded(tables, databases)

    def _why_serial(self) -> str | None:
        """Why the whole window goes through the serialized lane; None if it does not."""
        if self._settings.level.serial:
            return self._settings.consistency
        if self._known.may_join:
            return UNREAD
        if any(self._partitioner.is_critical(shard) for shard in self._databases.values()):
            # the scan did not know that they are critical, so it has not listed their transactions
            return "reference shard joined by a foreign key of this window"
        return None

    @property
    def _all_lanes(self) -> frozenset[int]:
        return frozenset(range(self._settings.lanes))

    def _home(self, shards: frozenset[str] | set[str]) -> int:
        """The lane that applies transactions of these shards: the owner of their barrier if they need one."""
        if FILTERED_SHARD in shards:
            return 0
        critical = [self._partitioner.lane_of(shard) for shard in shards if self._partitioner.is_critical(shard)]
        if critical:
            return max(critical)
        return min((self._partitioner.lane_of(shard) for shard in shards), default=0)

    def _requests(self) -> Iterator[BarrierRequest]:
        """Barrier requests, ascending by seqno: of transactions, and of the first transaction of each epoch."""
        found = self._epoch_requests()
        for scan in self._scans:
            for seqno, number in scan.members:
                request = self._request(seqno, scan.classes[number])
                if request is not None:
                    found[seqno] = request
        yield from (found[seqno] for seqno in sorted(found))

    def _request(self, seqno: int, described: TransactionClass) -> BarrierRequest | None:
        shards, cause = self._classes[described]
        if self._division is not None:
            return self._request_of_all(seqno, described)
        if any(self._partitioner.is_critical(shard) for shard in shards):
            return BarrierRequest(seqno, self._all_lanes, self._home(shards), cause or CRITICAL)
        lanes = frozenset(self._partitioner.lane_of(shard) for shard in shards)
        return BarrierRequest(seqno, lanes, min(lanes), CROSS_LANE) if len(lanes) > 1 else None

    def _request_of_all(self, seqno: int, described: TransactionClass) -> BarrierRequest | None:
        """As ``_request``, in a window whose parallel lanes share one queue of blocks: each barrier is of all lanes."""
        shards, cause = self._classes[described]
        if any(self._partitioner.is_critical(shard) for shard in shards):
            cause = cause or CRITICAL
        elif len({self._partitioner.lane_of(shard) for shard in shards}) > 1:
            cause = CROSS_LANE
        elif any(self._partitioner.is_divided(shard) for shard in shards) and (described.statements or len(shards) > 1):
            cause = DIVIDED if described.statements else CROSS_LANE
        else:
            return None
        return BarrierRequest(seqno, self._all_lanes, self._serialized, cause)

    def _epoch_requests(self) -> dict[int, BarrierRequest]:
        first: dict[int, int] = {}
        for scan in self._scans:
            for epoch, seqno in scan.epochs:
                first.setdefault(epoch, seqno)
        # all lanes stand at the window's start, so its first epoch needs no barrier
        return {
            seqno: BarrierRequest(seqno, self._all_lanes, self._serialized, EPOCH)
            for seqno in first.values()
            if seqno != self._window[0]
        }


def _transactions_of(size: int, manifest: Manifest) -> int:
    """Average number of this window's transactions in ``size`` bytes of log."""
    return size * manifest.transactions // max(sum(segment.bytes for segment in manifest.segments), 1)


def _table_counts(tally: Tally, key: TableKey) -> TableCounts:
    taken, saved = tally.tables.get(key, RowCounts()), tally.saved.get(key, RowCounts())
    filtered = tally.filtered.get(key, RowCounts())
    return TableCounts(read=taken + filtered, filtered=filtered, folded=-saved.total, written=taken + saved)


def _renamed(tally: Tally, renaming: Renaming) -> dict[str, str]:
    """The renamed databases of a window: source name -> target name."""
    named = {name for shard in tally.shards for name in shard.split("+")}
    named |= {key.database for key in (*tally.tables, *tally.altered, *tally.loaded, *tally.undone)}
    named = {name for name in named if not name.startswith("#") and name != EMPTY}
    sources = {name: renaming.source(name) for name in named} if renaming else {}
    return {source: name for name, source in sorted(sources.items()) if source is not None and source != name}


def files_of(lane: int, summaries: Sequence[MapSummary]) -> tuple[LaneFile, ...]:
    """A lane's files, in the order of the segments."""
    return tuple(summary.files[lane] for summary in summaries if lane in summary.files)


def make_plan(
    manifest: Manifest,
    routing: Routing,
    summaries: Sequence[MapSummary],
    folded: Sequence[FoldedLane] | None = None,
    renaming: Renaming = AS_THEY_ARE,
) -> WindowPlan:
    """The window's plan, from the summaries of its segments in order.

    ``folded``: the lanes, if they were folded across segments. ``renaming``: the channel's.
    """
    tally = total(summary.tally for summary in summaries)
    lanes = range(routing.lanes + 1)
    files = {lane: files_of(lane, summaries) for lane in lanes}
    if folded is not None:
        tally.lane_rows = {each.lane: each.rows for each in folded}
        files |= {each.lane: each.files for each in folded}
        for each in folded:
            for key, rows in each.saved.items():
                tally.add_saved(key, rows)
    plan = WindowPlan(
        channel=manifest.channel,
        window_id=manifest.window,
        digest="",
        first_seqno=manifest.first_seqno,
        last_seqno=manifest.last_seqno,
        lanes=routing.lanes,
        barriers=routing.barriers,
        source=manifest.identity,
        end=manifest.end,
        end_gtid_set=manifest.gtid_set,
        end_time=manifest.end_time,
        lane_rows=tuple(tally.lane_rows.get(lane, RowCounts()) for lane in lanes),
        tables={key: _table_counts(tally, key) for key in dict.fromkeys((*tally.tables, *tally.filtered))},
        files=tuple(files[lane] for lane in lanes),
        shards=dict(sorted(tally.shards.items())),
        kinds=dict(sorted(tally.kinds.items())),
        flavor=manifest.segments[0].flavor,
        table_maps={key: dict(sorted(maps.items())) for key, maps in tally.table_maps.items()},
        altered=Alterations(
            {key: tuple(sorted(seqnos)) for key, seqnos in tally.altered.items()}, tuple(sorted(tally.unread))
        ),
        loaded=frozenset(tally.loaded),
        written=frozenset(tally.written - tally.temporary),
        unsafe=dict(sorted(tally.unsafe.items())),
        undone=frozenset(tally.undone),
        time_zones=frozenset(tally.time_zones),
        carried_in=routing.carried_in,
        carried_out=routing.carried_out,
        requirements=dict(sorted(tally.requirements.items())),
        filtered=dict(sorted(tally.rules.items())),
        widest=tally.widest,
        longest_statement=tally.longest_statement,
        renamed=_renamed(tally, renaming),
        division=routing.division,
    )
    _check_shares(plan)
    return dataclasses.replace(plan, digest=hashlib.sha256(plan.to_json()).hexdigest())


def _check_shares(plan: WindowPlan) -> None:
    """Raises PlanError if the lanes together do not write what the tables' row counts say (docs/invariants.md, 5)."""
    written = sum((counts.written for counts in plan.tables.values()), RowCounts())
    if plan.division is not None and written != plan.rows:
        raise PlanError(
            f"plan of {plan.channel}, window {plan.window_id}: the lanes' shares of divided shards do not agree: "
            f"expected {written}, as by table, found {plan.rows} in the lanes; report this as a bug, and set "
            'lanes.divide = "table", or remove (divided) from the shard list, to go on'
        )
