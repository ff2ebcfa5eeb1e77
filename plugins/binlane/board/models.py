"""The answers of the board's API. Times are seconds since the epoch, UTC; durations are seconds."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from binlane.health.health import State


def encodable(value: Any) -> Any:
    """A text of a log or of the state may have half of a surrogate pair, which no encoding has: as ``\\ud800`` it can
    be shown, and so can the channel."""
    match value:
        case str() if not value.isascii():
            return value.encode("utf-8", "backslashreplace").decode()
        case list():
            return [encodable(each) for each in value]
        case dict():
            return {encodable(key): encodable(each) for key, each in value.items()}
    return value


class Answer(BaseModel):
    """Base of all answers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="after")
    @classmethod
    def has_an_encoding(cls, value: Any) -> Any:
        """Every text of every answer."""
        return encodable(value)


class Finding(Answer):
    """A state that holds of a channel."""

    state: State
    severity: str
    """ok, warning, critical or unknown."""
    text: str
    next_step: str
    """Empty if there is nothing to do."""


class Session(Answer):
    """The user of the request."""

    user: str
    token: str
    """The user, and the token to send as X-Binlane-Token with each POST that is authenticated by cookie."""


class Run(Answer):
    """The run of the channel's DAG that applies windows, or the last that says something of them."""

    run_id: str
    state: str
    started_at: float | None
    ended_at: float | None
    failed_tasks: list[str]


class Mark(Answer):
    """The watermark: the target holds everything up to it."""

    seqno: int
    file: str
    offset: int
    gtid_set: str
    source_time: float | None
    behind: float | None
    """Seconds between the last applied commit on the source and now."""


class Progress(Answer):
    """The open window."""

    window_id: str
    number: int
    first_seqno: int
    last_seqno: int
    transactions: int
    applied: int
    """Transactions that are on the target."""
    planned: bool
    stop_at: int | None
    opened_at: float
    low_water: int
    high_water: int


class Stage(Answer):
    """The step of the window that takes time now."""

    step: str
    """extract, plan or apply."""
    text: str
    share: float | None
    """From 0 to 1; None: not known."""
    left: float | None
    """Seconds that the step will still take; None: not known."""


class Lane(Answer):
    """One lane of the open window."""

    lane: int
    name: str
    serialized: bool
    seqno: int
    applied: int
    transactions: int
    rows_applied: int
    rows: int
    blocks_applied: int
    blocks: int
    holder: str | None
    beat_age: float | None
    """Seconds since the holder's last heartbeat."""
    alive: bool
    done: bool


class LaneError(Answer):
    """An error that stopped a lane."""

    id: int
    at: float
    window_id: str
    current: bool
    """Whether the error is of the open window."""
    lane: int | None
    """None: the window was refused as a whole, before it had a plan."""
    seqno: int
    gtid: str
    file: str
    offset: int
    code: int
    text: str
    way_out: str


class UndecidedDdl(Answer):
    """A DDL that may have run; an operator has to decide."""

    seqno: int
    lane: int
    statement: str | None
    """None for those who may not edit the DAG."""


class SkippedTransaction(Answer):
    """A transaction that an operator ordered to skip."""

    seqno: int
    state: str
    """requested, skipped or replayed."""
    state_at: float
    gtid: str
    file: str
    offset: int
    commit_time: float
    window_id: str
    lane: int
    summary: str | None
    """A description of its changes; None for those who may not edit the DAG."""
    bytes: int
    """Size in bytes of its events, which are kept as a binlog file."""
    reason: str
    by: str
    at: float


class Verification(Answer):
    """A comparison of source and target."""

    id: int
    kind: str
    """full (every row of every table) or window (what the last window touched)."""
    scope: list[str]
    """The databases and tables that were asked for; empty: all."""
    state: str
    """running, clean, pending or drift."""
    through_seqno: int
    """The watermark when the verification began."""
    started_at: float
    ended_at: float | None
    tables: int
    chunks: int
    rows: int
    drift: int
    """Rows that differ."""
    pending: int
    """Rows that the source has changed since; the next verification compares them again."""


class ColumnPair(Answer):
    """A column's values on both servers, for display; None: NULL, or no such row."""

    name: str
    source: str | None
    target: str | None


class DriftedRow(Answer):
    """A row or a part of a definition that is known to differ."""

    table: str
    key: list[list[str | None]]
    """Name and value of each column of the primary key; empty: no key, or a definition."""
    missing_on: str | None
    """The server that does not have the row: source or target."""
    columns: list[ColumnPair]
    """Those that differ; where one server has no row, all but the key's."""
    note: str
    """Of a definition, what differs; of a row, why it is not settled, or empty."""


class FullRound(Answer):
    """An unfinished verification of all rows, which may be read in slices."""

    begun_at: float
    rows: int
    expected: int
    """Approximate rows of all tables; 0: not known."""
    share: float | None
    reading: float
    """Seconds that its slices have taken."""
    reading_left: float | None
    """Seconds that the rows that are left will take to be read; None: not known."""
    left: float | None
    """Seconds to its end, pauses between slices included, at the pace since its beginning; None: not known."""


class Coverage(Answer):
    """What verifications have proved."""

    through: int
    """Every change up to this seqno was compared."""
    rows_after: int
    rows_through: int
    """The rows of all windows in this range were compared, too."""
    full_through: int | None
    full_at: float | None
    """All rows of all tables were compared, at this watermark or later ones; None: never."""
    equal_rows: int
    """Rows that the last verification has proved equal."""
    pending: int
    pending_since: float | None
    """When the oldest pending row was first found different."""
    pending_without_key: int
    """Pending rows in tables whose rows only their values tell apart."""
    unshown: list[str]
    """For each reason why some of them are, or will be, pending again: which, why, and what to do."""
    drilled: str | None
    """The state of the newest drill that has ended and was not interrupted; None: there is none."""
    drilled_at: float | None
    """When the last drill ended that found restores equal; None: never."""
    round: FullRound | None


class Card(Answer):
    """A channel in the list."""

    name: str
    dag_id: str
    description: str
    tags: list[str]
    owner: str
    schedule: str | None
    state: State
    """The most serious one."""
    findings: list[Finding]
    """All that holds, the most serious first."""
    may_act: bool
    run: Run | None
    is_paused: bool
    """The DAG is paused in Airflow."""
    stopped: str | None
    """Where and by whom, if the channel was asked to stop."""
    mark: Mark | None
    progress: Progress | None
    stage: Stage | None
    behind: list[float]
    """Seconds behind at the end of the last windows, the oldest first."""
    run_before: Run | None
    """While ``run`` is active: the run that ended before it."""


class WindowRow(Answer):
    """A window in the history."""

    window_id: str
    number: int
    state: str
    first_seqno: int
    last_seqno: int
    transactions: int
    end_file: str
    end_offset: int
    end_gtid_set: str
    end_time: float
    opened_at: float
    finished_at: float | None
    seconds: float | None
    """Seconds from the window's opening to its end."""
    behind: float | None
    """Seconds between the window's last commit on the source and its end."""
    lanes: int | None
    read: int | None
    written: int | None
    reduction: float | None
    """Row changes read for each one written."""
    barriers: int | None
    serialized: int | None
    causes: dict[str, int]
    serialization: str | None
    """What barriers cost the window, with the remedies; None where they cost little."""
    has_files: bool
    """Whether the window's folder is kept, so that its blocks can be shown."""


class Heat(Answer):
    """Transactions by shard and window: the busiest shards."""

    windows: list[int]
    """Numbers of the windows, newest first."""
    window_ids: list[str]
    shards: list[str]
    transactions: list[list[int | None]]
    """One row for each shard; None where a window's summary does not list the shard."""


class Channel(Answer):
    """Everything about a channel."""

    card: Card
    source_identity: str | None = None
    target: str | None = None
    clock: float | None = None
    """The time by the target's clock."""
    lanes: list[Lane] = Field(default_factory=list)
    errors: list[LaneError] = Field(default_factory=list)
    undecided: list[UndecidedDdl] = Field(default_factory=list)
    skips: list[SkippedTransaction] = Field(default_factory=list)
    """The newest skips by seqno, newest first."""
    more_skips: bool = False
    verifications: list[Verification] = Field(default_factory=list)
    """The last verifications, newest first."""
    coverage: Coverage | None = None
    drifted: list[DriftedRow] | None = None
    """The first rows and definitions that are known to differ; None for those who may not edit the DAG."""
    more_drifted: bool = False
    verified_through: dict[str, int] = Field(default_factory=dict)
    """By kind, the highest seqno up to which both servers were found equal."""
    history: list[WindowRow] = Field(default_factory=list)
    heat: Heat | None = None


class PlannedLane(Answer):
    """A lane of any planned window."""

    lane: int
    name: str
    serialized: bool
    transactions: int
    blocks: int
    rows: int
    bytes: int


class ShardRow(Answer):
    """A shard of a window."""

    name: str
    lane: int
    transactions: int
    rows: int


class TableRow(Answer):
    """A table of a window."""

    name: str
    read: int
    folded: int
    filtered: int
    written: int


class RuleRow(Answer):
    """The number of changes that one rule of the channel's filter leaves out of a window."""

    rule: str
    rows: int
    statements: int


class Window(Answer):
    """One window with its plan's summary."""

    row: WindowRow
    plan_digest: str | None
    plan_engine: str
    """What ran the plan job; empty: not planned yet."""
    summary: str | None
    kinds: dict[str, int]
    lanes: list[PlannedLane]
    shards: list[ShardRow]
    more_shards: int
    tables: list[TableRow]
    more_tables: int
    rules: list[RuleRow]
    """The rules of the filter that left something out."""
    size: str | None
    """What was chosen for the channel's ``blocks``, and why; None if its file says it."""


class Block(Answer):
    """Transactions of one lane that commit together."""

    first_seqno: int
    last_seqno: int
    transactions: int
    file: str
    offset: int
    gtid: str
    commit_time: float
    kinds: list[str]
    items: int
    inserts: int
    updates: int
    deletes: int
    applied: bool | None
    """Whether the block is applied; None if the lane's position is unknown and the window is not finished."""


class Blocks(Answer):
    """A page of a lane's blocks."""

    lane: int
    name: str
    blocks: list[Block]
    next_after: int | None
    """The value of `after` for the next page."""


class Statement(Answer):
    """A statement of a transaction."""

    kind: str
    text: str | None
    """None for those who may not edit the DAG; cut after 2,000 characters."""


class ChangedTable(Answer):
    """A table's row changes in one transaction."""

    name: str
    inserts: int
    updates: int
    deletes: int


class RowChange(Answer):
    """One row change, values as text: strings quoted, long ones cut, NULL as None, "" for what the log leaves out."""

    table: str
    kind: str
    columns: list[str]
    before: list[str | None] | None
    after: list[str | None] | None


class Transaction(Answer):
    """One transaction of the source."""

    seqno: int
    gtid: str
    file: str
    offset: int
    bytes: int
    commit_time: float
    shard: str
    barrier: bool
    tables: list[ChangedTable]
    statements: list[Statement]


class Transactions(Answer):
    """A page of a block's transactions."""

    transactions: list[Transaction]
    rows_shown: bool
    """Whether the user may see row values: those who may edit the DAG."""
    next_after: int | None


class Rows(Answer):
    """A page of a transaction's row changes."""

    seqno: int
    gtid: str
    shard: str
    target_names: bool
    """Whether columns that the log does not name have the names of the target's table today."""
    rows: list[RowChange]
    next_after: int | None
    """Number of row changes to skip for the next page."""


class StopRequest(Answer):
    """Body of stop."""

    now: bool = False
    """Stop each lane at its next block, at different seqnos."""


class VerifyRequest(Answer):
    """Body of verify."""

    full: bool = False
    """Compare every row of every table, instead of the rows that the last window touched."""


class DecideRequest(Answer):
    """Body of decide."""

    seqno: int = Field(ge=1)
    ran: bool


class SkipRequest(Answer):
    """Body of skip: one of seqno, gtid and range, and why."""

    seqno: int | None = Field(default=None, ge=1)
    gtid: str | None = Field(default=None, max_length=200)
    range: str | None = Field(default=None, max_length=50)
    """FIRST-LAST seqno."""
    reason: str = Field(max_length=2_000)


class CancelSkipRequest(Answer):
    """Body of cancel-skip."""

    seqno: int = Field(ge=1)


class ActionResult(Answer):
    """The message of an action."""

    message: str
