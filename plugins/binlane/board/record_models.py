"""The answers about databases, repairs, first copies and restores. Times are seconds since the epoch, UTC."""

from __future__ import annotations

from binlane.board.models import Answer


class InWindow(Answer):
    """A database in one window."""

    number: int
    transactions: int
    rows: int
    """Row changes in the log."""
    seqno: int
    """Its last transaction, and when the source committed it."""
    time: float


class LastVerification(Answer):
    """The newest verification that found a database equal, unless a later one may have found it different."""

    kind: str
    """full: every row of the database; window: the rows that window #`number` touched."""
    number: int | None
    seqno: int
    at: float


class Database(Answer):
    """A database by its name on the target."""

    channel: str
    name: str
    lane: int | None
    """In the newest window that changes it; None if its transactions were all serialized, or shared with others."""
    applied: InWindow | None
    """Its last applied transaction, with the window's figures."""
    is_waiting: bool
    """The open window has transactions of it that are not all applied."""
    verified: LastVerification | None
    drifted: int
    """Rows and definitions that are known to differ."""
    pending: int
    """Rows that differed and that the source has changed since."""
    rows: int
    """Row changes in the windows of `recent`."""
    recent: list[InWindow]
    """The newest windows that change it, newest first."""


class Databases(Answer):
    """A page of databases."""

    databases: list[Database]
    count: int
    """Of all that were found."""
    next_after: int | None
    """The value of `after` for the next page; None also if several channels were searched."""
    problems: list[str]
    """Channels that could not be asked, and why."""


class Repair(Answer):
    """A repair of the target's rows by the plan of a verification."""

    id: int
    state: str
    """running, which an interrupted one stays, or done."""
    by: str
    seqno: int
    """The watermark at which it was planned and applied."""
    inserted: int
    updated: int
    deleted: int
    equal: int
    """Rows of the plan that were equal already."""
    changed: int
    """Rows left alone because the source has changed them since."""
    started_at: float
    ended_at: float | None
    digest: str
    plan: str
    """Where the plan is stored; for readers without the place."""


class CopiedObjects(Answer):
    """Objects of an unfinished first copy."""

    kind: str
    state: str
    """planned, or done: a table with all of its rows."""
    count: int
    rows: int


class CopyProgress(Answer):
    """How far an unfinished first copy is. Bytes are those of the source's tables, by its own estimate."""

    is_running: bool
    """False: interrupted; a repeated run continues it."""
    tables: int
    finished: int
    rows: int
    bytes: int
    all_bytes: int
    bytes_per_second: float | None
    """Of the running attempt."""
    seconds_left: float | None


class CopyOutcome(Answer):
    """What a first copy has copied. Without the channel's uuid: the names of its lanes' locks are made of that."""

    databases: int
    tables: int
    kept: int
    """Finished tables of an earlier attempt."""
    resumed: int
    """Tables that were continued behind the rows of an earlier attempt."""
    rows: int
    others: int
    """Views, routines, triggers, events and sequences."""
    accounts: int
    attempts: int
    notes: list[str]


class Copy(Answer):
    """The channel's first copy."""

    databases: list[str]
    state: str
    """finished, copied (only the channel's row is missing) or unfinished."""
    attempts: int
    order: str
    """The run that finished it; empty: the command line."""
    file: str
    offset: int
    gtid_set: str
    updated_at: float
    outcome: CopyOutcome | None
    objects: list[CopiedObjects]
    progress: CopyProgress | None
    """None if it is finished."""


class Command(Answer):
    """A command that has changed data or decisions, from its row in the audit."""

    id: int
    at: str
    """UTC, by the target's clock."""
    command: str
    arguments: str
    by: str
    account: str
    """On the target."""
    result: str
    """begun, which a killed one stays, done or failed."""
    error: str
    """The kind of error that it failed with."""
    digest: str
    """Of the plan that it has carried out."""


class RestoredDatabase(Answer):
    """A database of a restore."""

    name: str
    """In the log."""
    final: str
    """On the target, when the restore is complete."""


class Restore(Answer):
    """A restore onto the channel's target, of databases that the channel copies."""

    name: str
    databases: list[RestoredDatabase]
    tables: list[str]
    """Of the only database; empty: all of it."""
    base: str | None
    """The dump's path; empty: the log alone. None for readers."""
    asked: str | None
    """The end as it was asked for, which may be a statement; None for readers."""
    end: str
    """Its place in the log, as `reached`."""
    reached: str | None
    """None until the base is loaded."""
    stage: str
    state: str
    """running, interrupted or complete."""
    step: str | None
    """What takes time now: how much is done of how much."""
    share: float | None
    """Of the step, from 0 to 1."""
    seconds_left: float | None
    """Of the step, at its rate so far."""
    by: str
    began_at: float
    error: str | None
    """At which an interrupted one stands; empty: none is known. None for readers."""


class Drill(Answer):
    """A drill of the channel: random databases restored to random moments, and compared with the live copy."""

    id: int
    state: str
    """running, equal, different, incomplete, failed or interrupted."""
    by: str
    started_at: float
    ended_at: float | None
    age: float | None
    """Seconds since it ended."""
    databases: int
    equal: int
    """Databases of it that were equal to the live copy."""
    log_bytes: int
    """Of log that were proved to be whole."""
    error: str | None
    """Empty: none. None for readers."""


class Records(Answer):
    """Repairs, the first copy, restores, drills and the commands of a channel."""

    repairs: list[Repair]
    """The newest first."""
    more_repairs: bool
    first_copy: Copy | None
    restores: list[Restore]
    """The newest first."""
    drills: list[Drill]
    """The newest first."""
    commands: list[Command] | None
    """The newest first; None for a user who may not edit the DAG, since arguments name tables and accounts."""


class TransactionPlace(Answer):
    """The block of a transaction."""

    lane: int
    first_seqno: int
    transactions: int
    rows_shown: bool
    """Whether the user may see its rows."""
