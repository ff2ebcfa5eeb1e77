"""Converts state rows to answers. No I/O: ``reading`` reads the rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from binlane.board import models
from binlane.board.gate import HIDDEN, gated
from binlane.health import coverage
from binlane.health.airflow_runs import AirflowRuns, Run
from binlane.health.channel_facts import ALIVE_SECONDS
from binlane.health.health import Finding, Health
from binlane.health.look import Look
from binlane.health.ways_out import way_out
from binlane.plan.window_facts import serialization
from binlane.schema.model import Table
from binlane.state.positions import LanePosition
from binlane.state.records.history import PastWindow, Snapshot, seconds_of
from binlane.state.records.journal import WHOLE_WINDOW
from binlane.state.records.verifications import Suspect
from binlane.state.windows import FINISHED
from binlane.verify.rows.pairing import with_way_out
from binlane.verify.rows.row_text import changed_values, key_values

HEAT_SHARDS: Final = 24
VALUE_LENGTH: Final = 1_000
"""Characters of a value that are shown."""


def card_of(look: Look, dag_id: str, *, may_act: bool) -> models.Card:
    """A channel in the list. One whose file is wrong has nothing of it, and nobody may act on it."""
    snapshot, channel = look.snapshot, look.channel
    run = None if look.runs is None else look.runs.last
    history = () if snapshot is None else snapshot.history
    stage = None if look.health.facts is None else look.health.facts.stage
    return models.Card(
        name=look.health.channel,
        dag_id=dag_id,
        description="" if channel is None else channel.description,
        tags=[] if channel is None else list(channel.tags),
        owner="" if channel is None else channel.owner,
        schedule=None if channel is None else channel.window.schedule,
        state=look.health.state,
        findings=findings_of(look.health, may_edit=may_act),
        may_act=may_act and channel is not None,
        run=None if run is None else run_of(run),
        is_paused=look.runs is not None and look.runs.is_paused,
        stopped=None if snapshot is None else snapshot.status.channel.stopped,
        mark=None if snapshot is None else mark_of(snapshot),
        progress=None if snapshot is None else progress_of(snapshot),
        stage=None if stage is None else models.Stage(**asdict(stage)),
        behind=[row.behind for row in map(row_of, reversed(history)) if row.behind is not None],
        run_before=_run_before(look.runs),
    )


def _run_before(runs: AirflowRuns | None) -> models.Run | None:
    """The run that ended before the active one."""
    if runs is None or runs.active is None or not runs.ended:
        return None
    return run_of(runs.ended[0])


def findings_of(health: Health, *, may_edit: bool) -> list[models.Finding]:
    """All that holds."""
    return [
        models.Finding(
            state=each.state,
            severity=each.severity.name.lower(),
            text=_text(each, may_edit=may_edit),
            next_step=each.next_step,
        )
        for each in health.findings
    ]


def _text(finding: Finding, *, may_edit: bool) -> str:
    brief = finding.without_values
    return finding.text if brief is None else gated(finding.text, f"{brief}; its text is {HIDDEN}", may_edit=may_edit)


def run_of(run: Run) -> models.Run:
    """Airflow's run."""
    return models.Run(
        run_id=run.run_id,
        state=run.state,
        started_at=run.started_at,
        ended_at=run.ended_at,
        failed_tasks=list(run.failed_tasks),
    )


def mark_of(snapshot: Snapshot) -> models.Mark:
    """The watermark. A source time of 0 means that nothing has been applied yet."""
    mark = snapshot.status.channel.watermark
    applied = mark.source_time > 0
    return models.Mark(
        seqno=mark.seqno,
        file=mark.source.file,
        offset=mark.source.offset,
        gtid_set=mark.gtid_set,
        source_time=mark.source_time if applied else None,
        behind=max(0.0, snapshot.clock - mark.source_time) if applied else None,
    )


def progress_of(snapshot: Snapshot) -> models.Progress | None:
    """The open window; None if there is none."""
    window = snapshot.status.window
    if window is None:
        return None
    bounds, opened = window.bounds, snapshot.open_window
    if opened is None:
        # it was dropped while the channel was read
        return None
    return models.Progress(
        window_id=bounds.window_id,
        number=window.number,
        first_seqno=bounds.first_seqno,
        last_seqno=bounds.last_seqno,
        transactions=bounds.last_seqno - bounds.first_seqno + 1,
        applied=sum(lane.transactions for lane in snapshot.open_positions),
        planned=window.plan_digest is not None,
        stop_at=window.stop_at,
        opened_at=opened.created_at,
        low_water=snapshot.status.low_water if window.plan_digest is not None else bounds.first_seqno - 1,
        high_water=snapshot.status.high_water if window.plan_digest is not None else bounds.first_seqno - 1,
    )


def lanes_of(snapshot: Snapshot) -> list[models.Lane]:
    """Every lane of the open window; none before it has a plan."""
    window = snapshot.status.window
    if window is None:
        return []
    opened = snapshot.open_window
    facts = None if opened is None else opened.facts
    holders = {beat.lane: beat.holder for beat in snapshot.status.heartbeats}
    lanes = []
    for position in snapshot.open_positions:
        planned = facts.lane(position.lane) if facts is not None else None
        age = snapshot.silence(position.lane)
        lanes.append(
            models.Lane(
                lane=position.lane,
                name=f"lane {position.lane}" if planned is None else planned.name,
                serialized=position.lane == window.lanes,
                seqno=position.seqno,
                applied=position.transactions,
                transactions=0 if planned is None else planned.transactions,
                rows_applied=position.rows.total,
                rows=0 if planned is None else planned.rows,
                blocks_applied=position.blocks,
                blocks=0 if planned is None else planned.blocks,
                holder=None if age is None else holders[position.lane],
                beat_age=age,
                alive=age is not None and age <= ALIVE_SECONDS,
                done=position.seqno >= window.bounds.last_seqno,
            )
        )
    return lanes


def errors_of(snapshot: Snapshot, *, may_edit: bool) -> list[models.LaneError]:
    """The last errors, newest first."""
    return [
        models.LaneError(
            id=error.id,
            at=seconds_of(error.at),
            window_id=error.window_id,
            current=error.id in snapshot.status.unsolved,
            lane=None if error.lane == WHOLE_WINDOW else error.lane,
            seqno=error.seqno,
            gtid=error.gtid,
            file=error.source.file,
            offset=error.source.offset,
            code=error.code,
            text=gated(error.text, HIDDEN, may_edit=may_edit),
            way_out=way_out(error.code),
        )
        for error in snapshot.status.errors
    ]


def undecided_of(snapshot: Snapshot, *, may_edit: bool) -> list[models.UndecidedDdl]:
    """DDL that wait for an operator's decision."""
    return [
        models.UndecidedDdl(seqno=intent.seqno, lane=intent.lane, statement=gated(intent.text, None, may_edit=may_edit))
        for intent in snapshot.status.undecided
    ]


def skips_of(snapshot: Snapshot, *, may_edit: bool) -> list[models.SkippedTransaction]:
    """Transactions that were or will be skipped."""
    return [
        models.SkippedTransaction(
            seqno=skip.seqno,
            state=skip.state,
            state_at=seconds_of(skip.state_at),
            gtid=skip.gtid,
            file=skip.source.file,
            offset=skip.source.offset,
            commit_time=skip.commit_time,
            window_id=skip.window_id,
            lane=skip.lane,
            summary=gated(skip.summary, None, may_edit=may_edit),
            bytes=skip.bytes,
            reason=skip.reason,
            by=skip.by,
            at=seconds_of(skip.at),
        )
        for skip in snapshot.skips
    ]


def verifications_of(snapshot: Snapshot) -> list[models.Verification]:
    """The last comparisons of source and target."""
    return [
        models.Verification(
            id=each.id,
            kind=each.kind,
            scope=list(each.scope),
            state=each.state,
            through_seqno=each.through_seqno,
            started_at=seconds_of(each.started_at),
            ended_at=None if each.ended_at is None else seconds_of(each.ended_at),
            tables=each.tables,
            chunks=each.chunks,
            rows=each.rows,
            drift=each.drift,
            pending=each.pending,
        )
        for each in snapshot.verifications
    ]


def drifted_of(one: Suspect, table: Table | None, channel: str) -> models.DriftedRow:
    """A row or a part of a definition that is known to differ. ``table``: its definition on the target."""
    key = () if one.of_definition else key_values(table, one.key) or tuple(("key", text) for text in one.key)
    changes = () if one.of_definition else changed_values(table, one.source, one.target, one.columns)
    missing = {one.source is None: "source", one.target is None: "target"}
    return models.DriftedRow(
        table=str(one.table),
        key=[[name, cut(text)] for name, text in key],
        missing_on=None if one.note else missing.get(True),
        columns=[
            models.ColumnPair(name=name, source=cut(source), target=cut(target)) for name, target, source in changes
        ],
        note=with_way_out(one.note, one.table, channel),
    )


def cut(text: str | None) -> str | None:
    """A value that is not too long for a page."""
    return (
        text if text is None or len(text) <= VALUE_LENGTH else f"{text[:VALUE_LENGTH]} ... ({len(text):,} characters)"
    )


def coverage_of(snapshot: Snapshot) -> models.Coverage:
    """What verifications have proved."""
    found = coverage.coverage_of(snapshot)
    full = None if found.round is None else models.FullRound(**asdict(found.round), share=found.round.share)
    return models.Coverage(**{**asdict(found), "unshown": list(found.unshown), "round": full})


def row_of(window: PastWindow) -> models.WindowRow:
    """A window in the history."""
    facts, end = window.facts, window.finished_at
    return models.WindowRow(
        window_id=window.window_id,
        number=window.number,
        state=window.state,
        first_seqno=window.first_seqno,
        last_seqno=window.last_seqno,
        transactions=window.last_seqno - window.first_seqno + 1,
        end_file=window.end.file,
        end_offset=window.end.offset,
        end_gtid_set=window.end_gtid_set,
        end_time=window.end_time,
        opened_at=window.created_at,
        finished_at=end,
        seconds=None if end is None else max(0.0, end - window.created_at),
        behind=None if end is None or not window.end_time else max(0.0, end - window.end_time),
        lanes=window.lanes,
        read=None if facts is None else facts.read,
        written=None if facts is None else facts.written,
        reduction=None if facts is None else facts.reduction,
        barriers=None if facts is None else facts.barriers,
        serialized=None if facts is None else facts.serialized,
        causes={} if facts is None else dict(facts.causes),
        serialization=None if facts is None else serialization(facts.transactions, facts.serialized, facts.causes),
        has_files=not window.work.is_removed and facts is not None,
    )


def window_of(window: PastWindow) -> models.Window:
    """One window with its plan's summary."""
    facts = window.facts
    return models.Window(
        row=row_of(window),
        plan_digest=window.plan_digest,
        plan_engine="" if facts is None else facts.plan_engine,
        summary=window.summary,
        kinds={} if facts is None else dict(facts.kinds),
        lanes=[]
        if facts is None
        else [
            models.PlannedLane(
                lane=number,
                name=lane.name,
                serialized=number == window.lanes,
                transactions=lane.transactions,
                blocks=lane.blocks,
                rows=lane.rows,
                bytes=lane.bytes,
            )
            for number, lane in enumerate(facts.lanes)
        ],
        shards=[]
        if facts is None
        else [
            models.ShardRow(name=shard.name, lane=shard.lane, transactions=shard.transactions, rows=shard.rows)
            for shard in facts.shards
        ],
        more_shards=0 if facts is None else facts.more_shards,
        tables=[]
        if facts is None
        else [
            models.TableRow(
                name=table.name, read=table.read, folded=table.folded, filtered=table.filtered, written=table.written
            )
            for table in facts.tables
        ],
        more_tables=0 if facts is None else facts.more_tables,
        rules=[]
        if facts is None
        else [models.RuleRow(rule=each.rule, rows=each.rows, statements=each.statements) for each in facts.rules],
        size=None if facts is None else facts.size,
    )


def heat_of(history: tuple[PastWindow, ...]) -> models.Heat:
    """Transactions by shard and window, for the shards with the most transactions over all windows."""
    planned = [window for window in history if window.facts is not None]
    totals: dict[str, int] = {}
    cells: list[dict[str, int]] = []
    for window in planned:
        assert window.facts is not None
        counts = {shard.name: shard.transactions for shard in window.facts.shards}
        cells.append(counts)
        for name, count in counts.items():
            totals[name] = totals.get(name, 0) + count
    names = sorted(totals, key=lambda name: (-totals[name], name))[:HEAT_SHARDS]
    return models.Heat(
        windows=[window.number for window in planned],
        window_ids=[window.window_id for window in planned],
        shards=names,
        transactions=[
            # in a window that lists all its shards, a missing shard has 0 transactions
            [_cell(counts, name, window) for counts, window in zip(cells, planned, strict=True)]
            for name in names
        ],
    )


def _cell(counts: dict[str, int], name: str, window: PastWindow) -> int | None:
    assert window.facts is not None
    return counts.get(name, None if window.facts.more_shards else 0)


def is_applied(window: PastWindow, position: LanePosition | None, last_seqno: int) -> bool | None:
    """Whether a block that ends at ``last_seqno`` is on the target; None if that is not known."""
    if window.state == FINISHED:
        return True
    if position is None or position.window_id != window.window_id:
        return False if window.plan_digest is None else None
    return position.seqno >= last_seqno
