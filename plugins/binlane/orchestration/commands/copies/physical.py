"""``binlane bootstrap --from-clone`` and ``--from-backup``: a channel begins at a copy by the servers' own tools."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

from binlane.apply.refusals import target_errors
from binlane.apply.target_state import require_own_target
from binlane.bootstrap.physical import copied_gtids, read_backup, read_clone, require_restored
from binlane.bootstrap.sessions import answering, read_session, write_session
from binlane.connections import Resolver
from binlane.errors import ConfigError, PrecheckError
from binlane.orchestration.audited import audited
from binlane.orchestration.commands.channel import load
from binlane.orchestration.effective_rules import selection_of
from binlane.orchestration.extraction.window_reading import source_of
from binlane.orchestration.readiness import require_ready_to_begin
from binlane.rename_rules import is_system
from binlane.servers.catalog import read_schema
from binlane.servers.engines import engine_of
from binlane.shards.selection import Extent
from binlane.source.copy_times import contradiction
from binlane.source.older_sessions import highest_older_session
from binlane.source.start_position import begin
from binlane.state.channels import Watermark, create_channel, has_channel
from binlane.state.leases import beginning
from binlane.state.migrations.upgrade import create
from binlane.state.target_record import record_target
from binlane.state.windows import applied_by_former, forgetting_windows


def begin_at_copy(name: str, folder: Path, backup: Path | None, *, resolve: Resolver | None = None) -> str:
    """Create the channel at the place that a physical copy of the source has recorded: MySQL's CLONE on the target, or
    the tool in the folder ``backup``. Returns a message with the watermark.

    Raises ConfigError or PrecheckError before anything is written if the target is not that copy.
    """
    channel, endpoints = load(name, folder, resolve)
    if endpoints.source is None:
        raise ConfigError(f"{channel.file}: source: expected a live server, the channel has an archive")
    if channel.rename:
        raise ConfigError(f"{channel.file}: rename: expected no [rename], because a physical copy keeps all names")
    endpoints = replace(endpoints, source=answering(endpoints.source))
    assert endpoints.source is not None
    source = source_of(channel, endpoints)
    engine = engine_of(endpoints.target)

    def require_new() -> None:
        with engine.connect() as connection:
            if has_channel(connection, name):
                raise PrecheckError(
                    f"channel {name}: expected a target without it, found its watermark there (copied from the source, "
                    "or of an earlier channel); see `Begin a channel again` in docs/recovery.md"
                )
            if former := applied_by_former(connection, name):
                # lanes write as the target itself: no GTID and no place tells their changes from the copy's
                raise PrecheckError(
                    f"channel {name}: expected a target as it was copied, found the windows of an earlier channel "
                    f"there ({', '.join(former)}), which the log would apply again: copy again, then run this; if no "
                    "window was applied since the copy (the source was a target once, and its rows were copied), on "
                    f"the target: {forgetting_windows(former)}"
                )

    with (
        target_errors(str(endpoints.target)),
        contextlib.closing(read_session(endpoints.source)) as ours,
        contextlib.closing(write_session(endpoints.target)) as theirs,
    ):
        require_own_target(endpoints.target, engine)
        require_new()
        with engine.connect() as connection:
            selection = selection_of(channel, read_schema(connection, ()))

        def includes(database: str) -> bool:
            return not is_system(database) and selection.database(database)[0] is not Extent.NONE

        recorded = read_clone(theirs) if backup is None else read_backup(backup)
        start = begin(source, str(recorded.position), copied_gtids(recorded, theirs))
        if not recorded.gtid_set and (why := contradiction(source, start, recorded.times)):
            raise PrecheckError(
                f"{recorded.where}: expected {recorded.position} in the log of the copied server, found another log in "
                f"{source.name}: {why}: the copy is of another server, or the source's log was reset since; nothing "
                "was written. Point source.connection at the copied server, or copy again"
            )
        require_restored(recorded, start, ours, theirs, includes)
        require_ready_to_begin(channel, endpoints, source)
        create(engine, channel.work.uri)
        mark = Watermark(0, start.position, start.gtid_set, start.time, start.fingerprint)
        older = highest_older_session(source, start.position)
        option = "--from-clone" if backup is None else "--from-backup"
        with beginning(engine, name), audited(endpoints.target, name, f"bootstrap {option}", {"folder": backup}):
            require_new()
            state = create_channel(engine, name, start.identity, mark, older_sessions=older)
        record_target(channel.work.uri, state)
    believed = "" if recorded.gtid_set else ", which is believed to be of this log: the copy has no GTIDs that show it"
    return f"channel {name}: begins at {recorded.where}; watermark at seqno 0, {mark.source}{believed}"
