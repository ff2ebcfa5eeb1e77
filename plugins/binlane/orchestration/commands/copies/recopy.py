"""``binlane recopy``: brings the target to the place of a source's snapshot, and copies tables from that snapshot."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from binlane.activity import doing
from binlane.apply.refusals import driver_errors, target_errors
from binlane.apply.target_state import target_state
from binlane.bootstrap.kept_sessions import kept_open, take_lease
from binlane.bootstrap.sessions import Session, write_session
from binlane.bootstrap.snapshot import shared_snapshot
from binlane.choices import FilterKind, FilterPolicy, OnConflict
from binlane.config import ChannelConfig
from binlane.connections import Endpoints, Resolver
from binlane.errors import BinlaneError, ConfigError, PositionError, WindowBusyError
from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition, plural
from binlane.orchestration.audited import audited, whoami
from binlane.orchestration.commands.channel import load, proven
from binlane.orchestration.commands.copies.missing_tables import (
    MissingTable,
    fill_empty,
    going_on,
    make_missing,
    missing_tables,
    note_missing,
    without,
)
from binlane.orchestration.commands.run import announced_window
from binlane.orchestration.effective_rules import rules_of
from binlane.orchestration.request import NOW, WindowRequest
from binlane.orchestration.terminal import Terminal
from binlane.repair.recopy import Recopier, RecopyResult, chosen_tables, named_tables
from binlane.schema.model import Schema
from binlane.servers.catalog import read_schema
from binlane.servers.engines import engine_of
from binlane.source.server import translated
from binlane.state.channels import Channel, read_channel
from binlane.state.leases import recopy_lease
from binlane.state.records.restores import has_restore
from binlane.state.windows import read_open_window
from binlane.verify.definitions.definition_reader import read_sequences
from binlane.verify.rows.column_text import ComparedTable
from binlane.verify.rows.pairing import pair
from binlane.verify.rows.sides import source_side

_ATTEMPTS: Final = 3
"""Snapshots that are taken while other runs apply windows beyond them."""
_LEASE_SECONDS: Final = 10
_UP_TO_NOW: Final = WindowRequest(NOW, of_recopy=True)
_DELETES: Final = (FilterKind.DELETE, FilterKind.TRUNCATE)


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments of ``binlane recopy``."""

    tables: tuple[str, ...]
    """The target's names."""
    engine: str
    """Of the plan job."""
    lock_seconds: int = 30


@dataclass(frozen=True, slots=True)
class _Servers:
    """Definitions of source and target, and the chosen tables."""

    source: Schema
    target: Schema
    tables: tuple[ComparedTable, ...]
    """Those that both servers have."""
    missing: tuple[MissingTable, ...]


def recopy(name: str, folder: Path, options: Options, console: Terminal, *, resolve: Resolver | None = None) -> str:
    """Copy tables again, consistent with the watermark; a message with the result.

    Windows are applied up to the snapshot, as `binlane run` does. Raises ConfigError for a table that cannot be copied,
    before anything is written; WindowBusyError if other runs keep the channel busy; as ``steps`` and ``Recopier.run``.
    """
    channel, endpoints = load(name, folder, resolve)
    if endpoints.source is None:
        raise ConfigError(f"{channel.file}: source: expected a live server to copy from, the channel has an archive")
    tables = ", ".join(options.tables)
    with target_state(endpoints.target), audited(endpoints.target, name, "recopy", {"--table": tables}):
        return _recopied(channel, endpoints, options, console)


def _recopied(channel: ChannelConfig, endpoints: Endpoints, options: Options, console: Terminal) -> str:
    name = channel.name
    with target_state(endpoints.target) as engine, driver_errors():
        with engine.connect() as connection:
            uuid = read_channel(connection, name).uuid
            if has_restore(connection, name):
                raise ConfigError(
                    f"channel {name}: is a restore, whose tables are of its end and not of the source's present; "
                    "nothing was copied: restore its databases once more, under other names (`binlane restore`)"
                )
        # before it is asked which tables are missing: another recopy may make and fill them
        with _lease(endpoints, name, uuid):
            return _copied(channel, endpoints, options, console)


def _copied(channel: ChannelConfig, endpoints: Endpoints, options: Options, console: Terminal) -> str:
    """Called under the lease, which lets no other run open a window."""
    name, engine = channel.name, engine_of(endpoints.target)
    with engine.connect() as connection:
        begun = read_channel(connection, name)
        window = read_open_window(connection, name)
    missing = _read(channel, proven(endpoints, begun), options).missing
    note_missing(engine, begun, missing)
    brought = without(channel, missing)
    with going_on(name, options.tables, missing):
        if missing and window is not None and window.plan_digest is not None:
            _finish_begun(channel, endpoints, window.bounds.window_id, options, console)
        # so that the snapshot, and its lock on the source's definitions, lasts no longer than a short window
        console.line(("windows up to now", "bold"))
        announced_window(brought, endpoints, _UP_TO_NOW, options.engine, console)
    with engine.connect() as connection:
        endpoints = proven(endpoints, read_channel(connection, name))
    assert endpoints.source is not None
    for _ in range(_ATTEMPTS):
        with shared_snapshot(endpoints.source, 2, options.lock_seconds, _nothing) as (snapshot, _):
            console.line((f"windows up to the source's snapshot at {snapshot.position}", "bold"))
            with going_on(name, options.tables, missing):
                at = _brought_to(brought, endpoints, snapshot.position, options, console)
            if at is None:
                continue
            make_missing(endpoints, snapshot.readers[0], _read(channel, endpoints, options).missing)
            found = _read(channel, endpoints, options)
            console.line((f"rows of {', '.join(str(each.target) for each in found.tables)}", "bold"))
            recopier = Recopier(at, engine, snapshot, found.target, found.tables, whoami())
            busy = contextlib.suppress(WindowBusyError, PositionError)  # another run has opened a window
            with busy, doing("copying rows"):
                return _text(at, recopier.run())
    raise WindowBusyError(
        f"channel {name}: other runs have applied {_ATTEMPTS} windows beyond the snapshots that were taken for the "
        "copy; nothing was copied, run the command again"
    )


def _finish_begun(
    channel: ChannelConfig, endpoints: Endpoints, window_id: str, options: Options, console: Terminal
) -> None:
    """Finish a window that has begun to write: it keeps its plan, with the rows of the tables that the target lacks.

    So they are made and filled first, and rows that are not as the log expects them are overwritten.
    """
    assert endpoints.source is not None
    console.line((f"window {window_id}, which has begun, and overwrites rows that are not as the log has them", "bold"))
    with shared_snapshot(endpoints.source, 1, options.lock_seconds, _nothing) as (snapshot, _):
        [reader] = snapshot.readers
        found = _read(channel, endpoints, options)
        make_missing(endpoints, reader, found.missing)
        fill_empty(endpoints, reader, found.missing, found.source)
    overwriting = replace(channel, apply=replace(channel.apply, on_conflict=OnConflict.OVERWRITE))
    announced_window(overwriting, endpoints, _UP_TO_NOW, options.engine, console)


def _read(channel: ChannelConfig, endpoints: Endpoints, options: Options) -> _Servers:
    """Raises ConfigError for a table that cannot be copied."""
    assert endpoints.source is not None
    named, source = str(endpoints.source), engine_of(endpoints.source)
    with translated(named), source.connect() as asked:
        ours = read_schema(asked)
    with engine_of(endpoints.target).connect() as asked:
        theirs = read_schema(asked)
    rules = rules_of(channel, theirs)
    left_out = [kind for kind in _DELETES if rules.selection.policy(kind) == FilterPolicy.IGNORE]
    if left_out:
        raise ConfigError(
            f"{channel.file}: filter.kinds: expected deletions to be applied, found them ignored ("
            f"{', '.join(left_out)}): the target's rows are meant to differ from the source's"
        )
    with source_side(source, named) as side:
        sequences = read_sequences(side, ours.flavor)
    triggers = channel.apply.allow_triggers
    paired = pair(ours, theirs, rules)
    typed = named_tables(options.tables, paired)
    missing = missing_tables(channel, engine_of(endpoints.target), typed, (ours, theirs), rules)
    absent = {each.target for each in missing if not each.is_made}
    listed = dict.fromkeys((*typed, *(each.target for each in missing)))
    there = [each for each in listed if each not in absent]
    tables = chosen_tables(there, paired, (ours, theirs), sequences, triggers, typed)
    return _Servers(ours, theirs, tables, missing)


@contextlib.contextmanager
def _lease(endpoints: Endpoints, name: str, uuid: str) -> Iterator[None]:
    """No run opens a new window in this context; the lock ends with its connection."""
    with contextlib.closing(write_session(endpoints.target)) as session:
        busy = f"channel {name}: another `binlane recopy` of this channel is running"
        take_lease(session, recopy_lease(uuid), _LEASE_SECONDS, busy)
        try:
            with kept_open(session):
                yield
        finally:
            # the server notices a while later that the connection has ended
            with contextlib.suppress(BinlaneError), target_errors(str(endpoints.target)):
                session.texts(f"SELECT RELEASE_LOCK('{recopy_lease(uuid)}')")


def _brought_to(
    channel: ChannelConfig, endpoints: Endpoints, position: LogPosition, options: Options, console: Terminal
) -> Channel | None:
    """The channel at ``position`` of the source's log, with no transaction left before it; None if it is beyond.

    An open window of another run is applied first.
    """
    request = WindowRequest(until_position=position, of_recopy=True)
    while True:
        with engine_of(endpoints.target).connect() as connection:
            found = read_channel(connection, channel.name)
            window = read_open_window(connection, channel.name)
        if found.watermark.source.is_behind(position):
            return None
        if window is None and found.watermark.source == position:
            return found
        done = announced_window(channel, endpoints, request, options.engine, console)
        if done.get("empty"):
            return found


def _nothing(_lock: Session) -> None:
    return None


def _text(at: Channel, copied: Sequence[RecopyResult]) -> str:
    lines = [f"channel {at.name}: copied again at seqno {at.watermark.seqno:,}, {at.watermark.source}:"]
    lines += [
        f"  {each.table}: {plural(each.deleted, 'row')} deleted, {each.inserted:,} inserted, equal on both servers"
        for each in copied
    ]
    return "\n".join(lines)
