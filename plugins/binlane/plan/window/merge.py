"""Merges the scans of all segments into the window's routes, and the summaries of all maps into its plan."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from binlane.errors import PlanError
from binlane.model import (
    ANY_TABLE,
    FILTERED_SHARD,
    GLOBAL_SHARD,
    SPECIAL_SHARDS,
    UNKNOWN_SHARD,
    Epoch,
    RowCounts,
    TableKey,
)
from binlane.plan.block.reducible_tables import Exclusions
from binlane.plan.critical_databases import critical_databases
from binlane.plan.division import Division
from binlane.plan.manifest import Manifest
from binlane.plan.routing import Route, Routing, first_appearance
from binlane.plan.row_accounting import Tally
from binlane.plan.segment.map import ScanSummary
from binlane.plan.settings import PlanSettings
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.transaction.route_key import TransactionClass
from binlane.plan.transaction.unseen_tables import judge
from binlane.plan.transaction.xa import Pairs, pair
from binlane.plan.window.barrier_rules import BarrierRules
from binlane.plan.window.filter_guard import check_views
from binlane.plan.window.known_tables import may_be_permanent
from binlane.plan.window.mapped import MappedWindow
from binlane.plan.window.placement import placements
from binlane.plan.window.reduce import FoldedLane
from binlane.plan.window.scanned import ScannedWindow
from binlane.plan.window.size_choice import size_choice
from binlane.plan.window.xa_ends import check_halves, check_names, settle
from binlane.plan.window_plan import LaneFile, TableCounts, WindowPlan
from binlane.schema.dependencies import SchemaFacts
from binlane.schema.model import Schema
from binlane.shards.assigners import AssignerRules, Shards
from binlane.shards.event_filter import EventMetadataFilter, TransactionShards
from binlane.shards.renaming import AS_THEY_ARE, Renaming
from binlane.shards.shard_list import Partitioner, parse_shard_list
from binlane.sql.parse.facts import StatementKind

EMPTY = "(empty)"
"""Shard name of transactions without rows and statements."""


def merge_scans(
    manifest: Manifest,
    scans: Iterable[ScanSummary],
    settings: PlanSettings,
    schema: Schema,
    carried: Iterable[ScanSummary] = (),
) -> Routing:
    """See ``merge_window``: without the tables, and of any stretch of a log, which may end inside an XA transaction."""
    window, earlier = ScannedWindow.of(scans), ScannedWindow.of(carried)
    pairs = pair(window.prepared, window.resolved, earlier.prepared, manifest.done)
    return _merged(manifest, window, earlier, pairs, settings, schema)[0]


def merge_window(
    manifest: Manifest,
    scans: Iterable[ScanSummary],
    settings: PlanSettings,
    schema: Schema,
    carried: Iterable[ScanSummary] = (),
) -> tuple[Routing, frozenset[TableKey]]:
    """The window's routes and barriers, and the tables whose kind of engine decides what its XA transactions have left
    (``XaEnds.of_one_kind``). ``carried``: scans of the XA transactions that earlier windows prepared, which are asked
    for behind ``scans``.

    Raises ConfigError for a shard list that does not fit, UnsupportedEventError for an XA transaction whose other half
    is missing.
    """
    window, earlier = ScannedWindow.of(scans), ScannedWindow.of(carried)
    pairs = pair(window.prepared, window.resolved, earlier.prepared, manifest.done)
    check_halves(window, pairs)
    check_names(window, pairs, schema)
    return _merged(manifest, window, earlier, pairs, settings, schema)


def _merged(
    manifest: Manifest,
    window: ScannedWindow,
    earlier: ScannedWindow,
    pairs: Pairs,
    settings: PlanSettings,
    schema: Schema,
) -> tuple[Routing, frozenset[TableKey]]:
    ends = settle(window, pairs, schema)
    window.add(_ended(ends.classes, critical_databases(settings, schema)))
    routing = _Fold(manifest, window, settings, schema, earlier).routing()
    transactions = manifest.last_seqno - manifest.first_seqno + 1
    size = size_choice(settings, transactions, window.changes, routing)
    routing = dataclasses.replace(
        routing,
        prepared=ends.groups,
        at_prepare=ends.at_prepare,
        carried_in=pairs.carried_in,
        carried_out=tuple(each.group for each in pairs.carried_out),
        size=size,
    )
    return routing, ends.of_one_kind


def _ended(classes: Mapping[int, TransactionClass], is_critical: Callable[[str], bool]) -> ScanSummary:
    """The scan of the halves of XA transactions at which their changes are applied."""
    databases: dict[str, int] = {}
    numbers: dict[TransactionClass, int] = {}
    members: list[tuple[int, int]] = []
    for seqno, described in classes.items():
        plain = described.plain_database
        if plain is not None and not is_critical(plain):
            databases.setdefault(plain, seqno)
        else:
            members.append((seqno, numbers.setdefault(described, len(numbers))))
    return ScanSummary(databases, tuple(numbers), tuple(members))


class _Fold:
    def __init__(
        self,
        manifest: Manifest,
        scans: ScannedWindow,
        settings: PlanSettings,
        schema: Schema,
        carried: ScannedWindow,
    ) -> None:
        self._settings = settings
        self._scans, self._carried = scans, carried
        self._manifest, self._schema = manifest, schema
        facts = self._known = self._schema_facts(schema)
        check_views(settings.selection, settings.renaming, manifest.segments, scans, facts)
        scans.temporary, self._unseen = judge(
            scans.temporary,
            manifest.older_sessions,
            manifest.restarted,
            may_be_permanent(scans, schema),
            schema.letter_case,
            ((drop.session, settings.renaming.table(drop.key)) for drop in manifest.later_drops),
            frozenset(map(settings.renaming.table, manifest.absent)),
        )
        shard_list = parse_shard_list(settings.shard_list, settings.shard_list_path, lanes=settings.lanes)
        rules = AssignerRules(shard_list, settings.renaming, facts.letter_case)
        shards = Shards(settings.assigner, rules, facts.foreign_key_groups)
        self._filter = EventMetadataFilter(manifest.segments[0].flavor, facts, shards.shard_of)
        self._classes: dict[TransactionClass, tuple[frozenset[str], str | None]] = {}
        for described in scans.classes:
            decided = self._decide(described)
            self._classes[described] = (decided.shards, decided.cause)
        self._databases = {name: self._filter.shard_of(name) for name in scans.databases}
        self._partitioner = Partitioner(
            shard_list,
            settings.lanes,
            first_appearance(self._appearances()),
            shards.joined,
            settings.renaming,
            facts.letter_case,
            self._loads(),
        )

    def _schema_facts(self, schema: Schema) -> SchemaFacts:
        """The schema at any time of the window: the target's at its start, and everything that the window creates.

        Statements before the window's own DDL are judged by the schema after it too: this may serialize a transaction
        that needs no barrier, and never misses one that does.
        """
        return schema.known().after(
            *(statement.facts for described in self._scans.classes for statement in described.statements)
        )

    def _decide(self, described: TransactionClass) -> TransactionShards:
        return self._filter.assign(described.row_databases, described.statements)

    def _appearances(self) -> Iterator[tuple[int, str]]:
        """Shards that have a lane, with the first seqno of each of their databases and classes."""
        for name, seqno in self._scans.databases.items():
            if name != FILTERED_SHARD:
                yield seqno, self._databases[name]
        for described, seqno in self._scans.classes.items():
            for shard in self._classes[described][0]:
                if shard not in {GLOBAL_SHARD, UNKNOWN_SHARD}:
                    yield seqno, shard

    def _loads(self) -> Mapping[str, int]:
        """Bytes of each shard; a transaction of several shards counts for each of them."""
        found: Counter[str] = Counter()
        loads = self._scans.loads
        for name, load in loads.databases.items():
            if name in self._databases:
                found[self._databases[name]] += load.bytes
        for described, load in loads.classes.items():
            found.update(dict.fromkeys(self._classes.get(described, (frozenset[str](), None))[0], load.bytes))
        return found

    def routing(self) -> Routing:
        rules = BarrierRules(
            self._manifest,
            self._scans,
            self._settings,
            self._schema,
            self._known,
            self._partitioner,
            self._classes,
            frozenset(self._databases.values()),
            self._division,
        )
        return Routing(
            lanes=self._settings.lanes,
            databases={name: Route(shard, rules.home({shard})) for name, shard in sorted(self._databases.items())},
            classes={
                described.key: Route("+".join(sorted(shards)) or EMPTY, rules.home(shards))
                for described, (shards, _) in self._classes.items()
            },
            barriers=tuple(rules.barriers()),
            excluded=self._excluded(),
            division=self._division,
            unseen=self._unseen,
        )

    @cached_property
    def _row_shards(self) -> Mapping[str, str]:
        """The shard of each database with row changes."""
        named = {name for described in self._classes for name in described.row_databases} | self._databases.keys()
        return {name: self._filter.shard_of(name) for name in sorted(named - {FILTERED_SHARD})}

    @cached_property
    def _division(self) -> Division | None:
        """How the parallel lanes share the window; None if no shard of it is divided, or one lane applies all of it."""
        shards = self._row_shards
        divided = {shard for shard in shards.values() if self._partitioner.is_divided(shard)}
        if not divided:
            return None
        together = self._settings.commits_together
        critical = {shard for shard in shards.values() if self._partitioner.is_critical(shard)}
        dealt = divided | critical if together else divided
        lanes = {
            name: None if shard in dealt else self._partitioner.lane_of(shard)
            for name, shard in shards.items()
            if together or shard not in critical
        }
        found, ranged = placements(
            (self._scans, self._carried), self._settings, self._schema, self._known, self._excluded()
        )
        folds = self._known.letter_case.folds
        return Division(self._settings.lanes, tuple(sorted(divided)), lanes, found, folds, ranged, together)

    def _excluded(self) -> Exclusions:
        """Tables and databases not to be folded: the window's DDL names them, or their keys differ from the
        source's."""
        tables = {TableKey(*names): "its keys differ between source and target" for names in self._settings.not_reduced}
        databases: dict[str, str] = {}
        for described in self._classes:
            for statement in described.statements:
                facts = statement.facts
                if not facts.commits_implicitly:
                    continue
                if facts.may_define_any:
                    return Exclusions(
                        tables, databases, "a statement of the window that could not be read may alter it"
                    )
                if facts.kind is StatementKind.DDL and facts.tables:
                    tables |= dict.fromkeys(facts.tables, "a DDL of the window names it")
                elif facts.kind is StatementKind.DDL:
                    databases |= dict.fromkeys(facts.databases, "a DDL of the window is about its database")
        return Exclusions(tables, databases)


def _table_counts(tally: Tally, key: TableKey) -> TableCounts:
    taken, saved = tally.tables.get(key, RowCounts()), tally.saved.get(key, RowCounts())
    filtered = tally.filtered.get(key, RowCounts())
    return TableCounts(read=taken + filtered, filtered=filtered, folded=-saved.total, written=taken + saved)


def _renamed(tally: Tally, renaming: Renaming, routes: Mapping[str, Route]) -> dict[str, str]:
    """The renamed databases of a window: source name -> target name. ``routes``: of its databases."""
    of_several = {route.shard for name, route in routes.items() if route.shard != name}
    named = {name for shard in tally.shards for name in shard.split("+")} - of_several | routes.keys()
    named |= {key.database for key in (*tally.tables, *tally.loaded, *tally.undone - {ANY_TABLE})} | tally.defined_in
    named = {name for name in named if name not in SPECIAL_SHARDS and name != EMPTY}
    sources = {name: renaming.source(name) for name in named} if renaming else {}
    return {source: name for name, source in sorted(sources.items()) if source is not None and source != name}


def _lane_files(
    mapped: MappedWindow, lanes: range, folded: Sequence[FoldedLane] | None
) -> Mapping[int, Sequence[LaneFile]]:
    """The files of each lane; what ``folded`` lanes write is counted in the window's tally."""
    files: dict[int, Sequence[LaneFile]] = {lane: mapped.files.get(lane, ()) for lane in lanes}
    if folded is not None:
        mapped.tally.lane_rows = {each.lane: each.rows for each in folded}
    for each in folded or ():
        files[each.lane] = each.files
        for key, rows in each.saved.items():
            mapped.tally.add_saved(key, rows)
    return files


def make_plan(
    manifest: Manifest,
    routing: Routing,
    mapped: MappedWindow,
    folded: Sequence[FoldedLane] | None = None,
    renaming: Renaming = AS_THEY_ARE,
    known: Collection[TableKey] = (),
    of_one_kind: Collection[TableKey] = (),
) -> WindowPlan:
    """The window's plan, not yet sealed, from its mapped segments. ``folded``: the lanes, if they were folded across
    segments.

    ``renaming``: the channel's. ``known``: the target's tables, since a temporary table may have the name of one.
    ``of_one_kind``: see ``merge_window``.
    """
    mapped.tally.undone.update(of_one_kind)
    tally, lanes = mapped.tally, range(routing.lanes + 1)
    only_temporary = tally.names_of_temporary().difference(known)
    files = _lane_files(mapped, lanes, folded)
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
        defined_in=frozenset(tally.defined_in),
        spelled=frozenset(tally.spelled - only_temporary),
        loaded=frozenset(tally.loaded - only_temporary),
        written=frozenset(tally.written - only_temporary),
        unsafe=dict(sorted({**tally.unsafe, **routing.unseen.unsafe}.items())),
        undone=frozenset(tally.undone - only_temporary),
        time_zones=frozenset(tally.time_zones),
        carried_in=routing.carried_in,
        carried_out=routing.carried_out,
        requirements=dict(sorted(tally.requirements.items())),
        filtered=dict(sorted(tally.rules.items())),
        widest=tally.widest,
        longest_statement=tally.longest_statement,
        renamed=_renamed(tally, renaming, routing.databases),
        division=routing.division,
        epochs=_met(manifest, routing),
        size=routing.size,
    )
    _check_shares(plan)
    return plan


def _met(manifest: Manifest, routing: Routing) -> tuple[Epoch, ...]:
    """The epochs at whose end all lanes meet: not those in a stretch of temporary tables, which is one transaction."""
    begins = {barrier.first for barrier in routing.barriers if len(barrier.participants) == routing.lanes + 1}
    return tuple(epoch for epoch in manifest.epochs if epoch.seqno + 1 in begins)


def _check_shares(plan: WindowPlan) -> None:
    """Raises PlanError if the lanes together do not write what the tables' row counts say (docs/invariants.md, 5)."""
    written = sum((counts.written for counts in plan.tables.values()), RowCounts())
    if plan.division is not None and written != plan.rows:
        raise PlanError(
            f"plan of {plan.channel}, window {plan.window_id}: the lanes' shares of divided shards do not agree: "
            f"expected {written}, as by table, found {plan.rows} in the lanes; report this as a bug, and set "
            'lanes.divide = "table", or remove (divided) from the shard list, to go on'
        )
