"""Reports of a window: its plan and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from binlane.model import plural
from binlane.orchestration.terminal import Grid, View
from binlane.plan.division import Division
from binlane.plan.transaction.xa import PreparedGroup
from binlane.plan.window_facts import barrier_causes, lane_name, serialization
from binlane.plan.window_plan import TableCounts, WindowPlan
from binlane.safe_text import one_line
from binlane.state.carried.prepared import OpenXa

_TOP: Final = 12
"""Rows of a list; the rest is summed up in one row."""
_BY_LOAD: Final = "by load: those without an entry, the biggest first, each to the lane that has the fewest bytes"


def plan_view(plan: WindowPlan, plan_engine: str = "", *, by_load: bool = False) -> View:
    """The plan as tables: lanes, barriers, busiest tables. ``plan_engine``: what made the plan; ``by_load``: its
    shards are placed by load."""
    parts = (_lanes, _barriers, _divided, _tables, _filtered, _renamed)
    return [_head(plan, plan_engine, by_load), *(grid for part in parts if (grid := part(plan)) is not None)]


def moment(seconds: float) -> str:
    """A source time, UTC, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if seconds else "never"


def conflicts_text(counts: Mapping[str, int]) -> str:
    """Numbers of corrected rows by kind of conflict."""
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items())


def summary_note(plan: WindowPlan, conflicts: Mapping[str, int]) -> str:
    """The window in one line, for a run's note. ``conflicts``: numbers of corrected rows by kind."""
    transactions = plan.last_seqno - plan.first_seqno + 1
    drift = f"; drifted rows that were corrected: {conflicts_text(conflicts)}" if conflicts else ""
    return (
        f"seqno {plan.first_seqno:,} to {plan.last_seqno:,}: {plural(transactions, 'transaction')}, "
        f"{plural(plan.rows.total, 'row change')}, {plural(len(plan.shards), 'shard')} over "
        f"{plural(plan.lanes, 'lane')}, {plural(len(plan.barriers), 'barrier')}; "
        f"the target holds everything up to {plan.end} ({moment(plan.end_time)}){drift}"
    )


def _head(plan: WindowPlan, plan_engine: str, by_load: bool) -> Grid:
    grid = Grid.of_facts(f"window {plan.window_id} of {plan.channel}")
    transactions = plan.last_seqno - plan.first_seqno + 1
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(plan.kinds.items(), key=lambda kind: -kind[1]))
    for name, value in (
        ("transactions", f"{transactions:,} (seqno {plan.first_seqno:,} to {plan.last_seqno:,})"),
        ("of these", kinds),
        ("row changes", str(plan.rows)),
        *([] if plan.size is None else [("blocks", str(plan.size))]),
        *([] if (said := _serialization(plan)) is None else [("in series", said)]),
        *([("shards", _BY_LOAD)] if by_load else []),
        *([] if plan.division is None else [("shares", _shares(plan, plan.division))]),
        *_prepared(plan),
        ("ends at", f"{plan.end}, GTID set {plan.end_gtid_set or '-'}, {moment(plan.end_time)}"),
        ("digest", plan.digest),
        *((("plan job by", plan_engine),) if plan_engine else ()),
    ):
        grid.row(name, value)
    return grid


def _serialization(plan: WindowPlan) -> str | None:
    transactions = plan.last_seqno - plan.first_seqno + 1
    return serialization(transactions, plan.serialized_transactions, barrier_causes(plan))


def _shares(plan: WindowPlan, division: Division) -> str:
    """When the shares of divided shards are committed, and what follows from that for readers and barriers."""
    count = plural(max(sum(file.blocks for file in files) for files in plan.files[: plan.lanes]), "block")
    if division.commits_together:
        return (
            f'commit together (lanes.commit was "together" when the window was planned): {count}, each committed when '
            "all lanes have executed it; rows alone need no barrier; a transaction is seen in part for milliseconds"
        )
    of_all = sum(len(barrier.participants) == len(plan.all_lanes) for barrier in plan.barriers)
    barriers = f"at {plural(of_all, 'barrier')} of all lanes and " if of_all else ""
    return (
        f'commit alone (lanes.commit was "alone" when the window was planned): {count}, each lane at its own pace; a '
        f"transaction is seen in part until the lanes meet, {barriers}at the window's end"
    )


def _prepared(plan: WindowPlan) -> list[tuple[str, str]]:
    """XA transactions whose halves are in different windows."""
    carried = (("carried in", plan.carried_in), ("carried out", plan.carried_out))
    return [(f"XA {name}", few([_xa(each) for each in groups])) for name, groups in carried if groups]


def _xa(group: PreparedGroup) -> str:
    if group.seqno == 0:
        return f"{group.xid}, recorded as already on the target"
    return f"{group.xid} of seqno {group.seqno:,}, {group.source}, {plural(group.rows, 'row change')}"


def few(lines: list[str]) -> str:
    """The first lines of a list, and the number of the others."""
    lines = [one_line(line) for line in lines]
    more = [f"{len(lines) - _TOP:,} more"] if len(lines) > _TOP else []
    return "\n".join([*lines[:_TOP], *more])


def open_xa_text(prepared: Sequence[OpenXa]) -> list[str]:
    """A line for each XA transaction that is prepared at the watermark."""
    return [
        f"{each.xid}: seqno {each.seqno:,}, {each.source}, {plural(each.rows, 'row change')}, stored {each.at} UTC"
        if each.segment is not None
        else f"{each.xid}: recorded by an operator at {each.at} UTC as already on the target"
        for each in prepared
    ]


def _lanes(plan: WindowPlan) -> Grid:
    grid = Grid("lanes").columns("lane").columns("transactions", "blocks", "row changes", "bytes", justify="right")
    for lane in plan.all_lanes:
        files = plan.files[lane]
        grid.row(
            lane_name(plan, lane),
            f"{sum(file.transactions for file in files):,}",
            f"{sum(file.blocks for file in files):,}",
            f"{plan.lane_rows[lane].total:,}",
            f"{sum(file.bytes for file in files):,}",
        )
    return grid


def _barriers(plan: WindowPlan) -> Grid | None:
    if not plan.barriers:
        return None
    held = f"{plural(len(plan.barriers), 'barrier')} over {plural(plan.serialized_transactions, 'seqno')}"
    title = f"{held}; the transactions that need one, by cause"
    grid = Grid(title).columns("cause").columns("transactions", justify="right")
    for cause, count in barrier_causes(plan).most_common():
        grid.row(cause, f"{count:,}")
    return grid


def _divided(plan: WindowPlan) -> Grid | None:
    """The lane of each table of a divided shard, the busiest first."""
    division = plan.division
    if division is None:
        return None
    grid = Grid(f"divided shards: {', '.join(division.shards)}").columns("table")
    grid.columns("lane", "row changes", justify="right").columns("because")
    tables = [(key, counts) for key, counts in plan.tables.items() if division.databases.get(key.database, 0) is None]
    ordered = sorted(tables, key=lambda entry: (-entry[1].read.total, str(entry[0])))
    for key, counts in ordered[:_TOP]:
        placement = division.placed(key)
        grid.row(
            str(key),
            "by key" if placement.lane is None else str(placement.lane),
            f"{counts.written.total:,}",
            placement.reason,
        )
    if len(ordered) > _TOP:
        grid.row(f"{len(ordered) - _TOP:,} more", "", "", "")
    return grid


def _filtered(plan: WindowPlan) -> Grid | None:
    if not plan.filtered:
        return None
    grid = Grid("left out by the filter").columns("rule").columns("row changes", "statements", justify="right")
    for rule, counts in plan.filtered.items():
        grid.row(rule, f"{counts.rows:,}", f"{counts.statements:,}")
    return grid


def _renamed(plan: WindowPlan) -> Grid | None:
    if not plan.renamed:
        return None
    grid = Grid("renamed databases").columns("source", "target")
    ordered = sorted(plan.renamed.items())
    for names in ordered[:_TOP]:
        grid.row(*names)
    if len(ordered) > _TOP:
        grid.row(f"{len(ordered) - _TOP:,} more", "")
    return grid


def _tables(plan: WindowPlan) -> Grid | None:
    """Row changes of each table: read, left out, folded away, written."""
    if not plan.tables:
        return None
    numbers_of = ("inserts", "updates", "deletes", "left out", "folded", "written")
    grid = Grid("tables").columns("table").columns(*numbers_of, justify="right", no_wrap=True)
    ordered = sorted(plan.tables.items(), key=lambda entry: (-entry[1].read.total, str(entry[0])))
    for key, counts in ordered[:_TOP]:
        grid.row(str(key), *(f"{number:,}" for number in _account(counts)))
    rest = [_account(counts) for _, counts in ordered[_TOP:]]
    if rest:
        grid.row(f"{len(rest):,} more", *(f"{sum(numbers):,}" for numbers in zip(*rest, strict=True)))
    return grid


def _account(counts: TableCounts) -> tuple[int, ...]:
    read = counts.read
    kinds = (read.inserts, read.updates, read.deletes)
    return (*kinds, counts.filtered.total, counts.folded, counts.written.total)
