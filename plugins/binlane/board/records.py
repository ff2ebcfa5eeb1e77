"""Reads what is on the target beside windows: databases, repairs, first copies, restores; and finds a transaction's
block."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any, Final, NamedTuple

from binlane.apply.target_state import SchemaChecks
from binlane.board import record_models as models
from binlane.board.board_reader import BoardReader, NotFound, folder_of, outlines_of, plan_of
from binlane.board.gate import HIDDEN, as_user_may_read, gated
from binlane.board.host import Host
from binlane.config import ChannelConfig, DeclaredChannel, load_channel
from binlane.errors import BinlaneError
from binlane.health.databases import Database, databases_of
from binlane.health.first_copy import FirstCopy, read_first_copy
from binlane.health.restores import RestoreStanding, left_out, restore_standing
from binlane.state.records.audit import AuditEntry, read_entries
from binlane.state.records.bootstraps import CopyRecord, CopyResult, read_copy
from binlane.state.records.databases import DatabasePage, Search, read_databases
from binlane.state.records.drills import EQUAL, Drill, read_drills
from binlane.state.records.history import clock_of, seconds_of, seconds_since
from binlane.state.records.repairs import PastRepair, read_repairs
from binlane.state.records.restores import newest_restores
from binlane.state.window_folders import WindowFolders

log = logging.getLogger(__name__)

_THREADS: Final = 16
_REPAIRS: Final = 20
_COMMANDS: Final = 50
_RESTORES: Final = 20
_DRILLS: Final = 10
_TO_SECONDS: Final = len("2026-01-31 12:03:04")


class _Read(NamedTuple):
    repairs: tuple[PastRepair, ...]
    copy: CopyRecord | None
    unfinished: FirstCopy | None
    commands: tuple[AuditEntry, ...] | None
    drills: tuple[Drill, ...]
    clock: float


class Records:
    """The answers for a user."""

    def __init__(self, host: Host) -> None:
        self._reading = BoardReader(host)

    def may_edit(self, user: Any, name: str) -> bool:
        """Whether the user may edit the channel's DAG."""
        return self._reading.may_edit(user, name)

    @as_user_may_read
    def databases(self, user: Any, name: str, search: Search, after: int, limit: int) -> models.Databases:
        """A page of a channel's databases."""
        page = self._page(self._reading.place(user, name).channel, search, after, limit)
        found = [_database(name, each) for each in databases_of(page)]
        more = after + limit if page.count > after + len(found) else None
        return models.Databases(databases=found, count=page.count, next_after=more, problems=[])

    def find(self, user: Any, search: Search, limit: int) -> models.Databases:
        """The databases of every channel whose DAG the user may read, ``limit`` of each channel at the most."""
        checks = SchemaChecks()

        def ask(one: DeclaredChannel) -> tuple[list[models.Database], int, str]:
            try:
                page = self._page(load_channel(one), search, 0, limit, checks)
                return [_database(one.name, each) for each in databases_of(page)], page.count, ""
            except Exception as exc:
                if not isinstance(exc, BinlaneError):
                    log.error("channel %s cannot be asked", one.name, exc_info=exc)
                said = gated(f": {exc}", "", may_edit=self.may_edit(user, one.name))
                return [], 0, f"{one.name}: not asked: {type(exc).__name__}{said}"

        with ThreadPoolExecutor(_THREADS) as pool:
            answers = list(pool.map(ask, self._reading.readable(user)))
        return models.Databases(
            databases=[each for found, _, _ in answers for each in found],
            count=sum(count for _, count, _ in answers),
            next_after=None,
            problems=[problem for _, _, problem in answers if problem],
        )

    def _page(
        self, channel: ChannelConfig, search: Search, after: int, limit: int, checks: SchemaChecks | None = None
    ) -> DatabasePage:
        with self._reading.engine(channel, checks) as engine:
            return read_databases(engine, channel.name, search, offset=after, limit=limit)

    @as_user_may_read
    def records(self, user: Any, name: str) -> models.Records:
        """The channel's repairs, its first copy, restores and drills, and the commands of its audit."""
        place = self._reading.place(user, name)

        def read(connection: Any) -> _Read:
            repairs = read_repairs(connection, name, limit=_REPAIRS + 1)
            commands = read_entries(connection, name, limit=_COMMANDS) if place.may_edit else None
            first_copy = read_copy(connection, name), read_first_copy(connection, name)
            drills = read_drills(connection, name, _DRILLS)
            return _Read(repairs, *first_copy, commands, drills, clock_of(connection))

        with self._reading.engine(place.channel) as engine:
            with engine.connect() as connection:
                repairs, copy, unfinished, commands, drills, clock = read(connection)
            restores = _restores(engine, place.channel)
        return models.Records(
            repairs=[_repair(each, may_edit=place.may_edit) for each in repairs[:_REPAIRS]],
            more_repairs=len(repairs) > _REPAIRS,
            first_copy=None if copy is None else _copy(copy, unfinished, may_edit=place.may_edit),
            restores=[_restore(each, may_edit=place.may_edit) for each in restores],
            drills=[_drill(each, clock, may_edit=place.may_edit) for each in drills],
            commands=None if commands is None else list(map(_command, commands)),
        )

    @as_user_may_read
    def locate(self, user: Any, name: str, window_id: str, lane: int, seqno: int) -> models.TransactionPlace:
        """The block of a lane that has a transaction."""
        place = self._reading.place(user, name)
        window = self._reading.window_of(place.channel, window_id)
        plan, folder = plan_of(folder_of(place.channel, window), window)
        if lane in plan.all_lanes:
            for file in plan.files[lane]:
                if file.first_seqno <= seqno <= file.last_seqno:
                    with contextlib.closing(outlines_of(folder, file)) as outlines:
                        for header in (each.header for each in outlines):
                            if header.first_seqno <= seqno <= header.last_seqno:
                                return models.TransactionPlace(
                                    lane=lane, first_seqno=header.first_seqno, transactions=header.transactions,
                                    rows_shown=place.may_edit,
                                )  # fmt: skip
        raise NotFound(f"window {window_id}: lane {lane} has no block with seqno {seqno}")


def _database(channel: str, found: Database) -> models.Database:
    return models.Database(channel=channel, **asdict(found))


def _repair(found: PastRepair, *, may_edit: bool) -> models.Repair:
    values = asdict(found) | {"plan": gated(found.plan, HIDDEN, may_edit=may_edit)}
    ended = values.pop("ended_at")
    return models.Repair(
        **{**values, "started_at": seconds_of(found.started_at)}, ended_at=None if ended is None else seconds_of(ended)
    )


def _restores(engine: Any, channel: ChannelConfig) -> list[RestoreStanding]:
    """The newest restores onto the channel's target of databases that the channel copies: who may read it knows
    these."""
    with engine.connect() as connection:
        newest = newest_restores(connection, _RESTORES)
    # the DAG's restores have their windows in the channel's work folder
    return [
        restore_standing(engine, each, WindowFolders(channel.work.uri, each.name))
        for each in newest
        if left_out(channel, dict(each.definition.databases), each.definition.tables) is None
    ]


def _restore(found: RestoreStanding, *, may_edit: bool) -> models.Restore:
    definition, step = found.found.definition, found.step
    return models.Restore(
        name=found.found.name,
        databases=[models.RestoredDatabase(name=old, final=final) for old, final in definition.databases],
        tables=list(definition.tables),
        base=gated(definition.base, None, may_edit=may_edit),
        asked=gated(definition.asked, None, may_edit=may_edit),
        end=str(definition.end),
        reached=None if found.reached is None else str(found.reached),
        stage=found.found.stage,
        state=found.state,
        step=None if step is None else step.text,
        share=None if step is None else step.share,
        seconds_left=None if step is None else step.left,
        by=found.by,
        began_at=seconds_of(found.found.began_at),
        error=gated(found.error, None, may_edit=may_edit),
    )


def _drill(found: Drill, clock: float, *, may_edit: bool) -> models.Drill:
    ended = seconds_of(found.ended_at) if found.ended_at else None
    return models.Drill(
        id=found.id,
        state=found.state,
        by=found.by,
        started_at=seconds_of(found.started_at),
        ended_at=ended,
        age=None if ended is None else seconds_since(ended, clock),
        databases=len(found.tenants),
        equal=sum(each.state == EQUAL for each in found.tenants),
        log_bytes=found.log_bytes,
        error=gated(found.error, None, may_edit=may_edit),
    )


def _command(found: AuditEntry) -> models.Command:
    return models.Command(
        id=found.number,
        at=found.at[:_TO_SECONDS],
        command=found.command,
        arguments=", ".join(f"{name}={value}" for name, value in found.arguments),
        by=found.by,
        account=found.account,
        result=found.result,
        error=found.error,
        digest=found.digest,
    )


def _progress(found: FirstCopy) -> models.CopyProgress:
    standing = found.standing
    return models.CopyProgress(
        is_running=found.connection is not None,
        tables=standing.tables,
        finished=standing.finished,
        rows=standing.rows,
        bytes=standing.bytes,
        all_bytes=standing.all_bytes,
        bytes_per_second=standing.bytes_per_second or None,
        seconds_left=standing.seconds_left,
    )


def _outcome(found: CopyResult, notes: Iterable[str]) -> models.CopyOutcome:
    return models.CopyOutcome(
        databases=found.databases,
        tables=found.tables,
        kept=found.kept,
        resumed=found.resumed,
        rows=found.rows,
        others=found.others,
        accounts=found.accounts,
        attempts=found.attempts,
        notes=list(notes),
    )


def _copy(found: CopyRecord, unfinished: FirstCopy | None, *, may_edit: bool) -> models.Copy:
    # they quote statements
    notes = () if found.result is None else gated(found.result.notes, (), may_edit=may_edit)
    state = "finished" if found.is_finished else "copied" if found.result is not None else "unfinished"
    return models.Copy(
        databases=list(found.databases),
        state=state,
        attempts=found.attempts,
        order=found.order,
        file=found.snapshot.source.file,
        offset=found.snapshot.source.offset,
        gtid_set=found.snapshot.gtid_set,
        updated_at=seconds_of(found.updated_at),
        outcome=None if found.result is None else _outcome(found.result, notes),
        objects=[
            models.CopiedObjects(kind=kind, state=which, count=count, rows=rows)
            for kind, which, count, rows in found.objects
        ],
        progress=None if unfinished is None else _progress(unfinished),
    )
