"""The windows of a restore: up to its end, around the files that the archive's index rules out.

In front of such files a window ends, and the watermark passes over them to the file behind them, as an empty window
moves it (decision 19): nothing of the databases is in between. From then on the target says where the log goes on, so
what becomes of the index changes no window.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.errors import BinlaneError, BinlogError, SourceError, StopRequestedError, WindowOpenError
from binlane.model import LogPosition, plural, size_text
from binlane.orchestration.commands.run import apply_window
from binlane.orchestration.extraction.window_reading import source_of, start_of
from binlane.orchestration.lane_processes import LaneProcesses
from binlane.orchestration.request import WindowRequest
from binlane.orchestration.terminal import Terminal
from binlane.restore.archive_index import IndexedFile
from binlane.restore.ruled_out import RuledOut
from binlane.servers.engines import engine_of
from binlane.source.proved import read_through
from binlane.state.channels import Channel, read_channel
from binlane.state.records.restores import RestoreDefinition
from binlane.state.windows import note_empty


def apply_windows(
    channel: ChannelConfig, endpoints: Endpoints, definition: RestoreDefinition, console: Terminal
) -> None:
    """Raises StopRequestedError if the channel was stopped."""
    end, name = definition.end, channel.name
    ruled_out = RuledOut(source_of(channel, endpoints), frozenset(old for old, _ in definition.databases))
    nothing_up_to: LogPosition | None = None
    with _continued(name), LaneProcesses() as lanes:
        while (state := _state(channel, endpoints)).watermark.source != end:
            run = next(ruled_out.runs(state.watermark.source, end.file), None)
            until = end if run is None else ruled_out.begin_of(run)
            if until is None:
                continue
            if run is not None and until in (state.watermark.source, nothing_up_to):
                if not _pass_over(channel, endpoints, state, run, ruled_out, console):
                    ruled_out.refuse(run)
                continue
            try:
                request = WindowRequest(until_position=until, of_restore=True)
                done = apply_window(channel, endpoints, request, "local", console, {}, lanes)
            except WindowOpenError:
                if run is None:
                    raise
                # something is open there that ends behind these files
                ruled_out.refuse(run)
                continue
            if done.get("is_open"):
                raise StopRequestedError(
                    f"restore {name}: was stopped; `binlane resume {name} --channels {channel.file.rpartition('/')[0]}"
                    f"`, then `binlane restore --continue {name}`"
                )
            if "note" not in done:
                if run is None:
                    break
                nothing_up_to = until


@contextlib.contextmanager
def _continued(name: str) -> Iterator[None]:
    """Errors of windows name the command that goes on with a restore: `binlane run` does not."""
    try:
        yield
    except BinlaneError as exc:
        said = str(exc).replace(f"`binlane run {name}`", f"`binlane restore --continue {name}`")
        exc.args = (said, *exc.args[1:])
        raise


def _state(channel: ChannelConfig, endpoints: Endpoints) -> Channel:
    with engine_of(endpoints.target).connect() as connection:
        return read_channel(connection, channel.name)


def _pass_over(
    channel: ChannelConfig, endpoints: Endpoints, state: Channel, run: Sequence[IndexedFile], ruled_out: RuledOut,
    console: Terminal,
) -> bool:  # fmt: skip
    """Move the watermark behind these files, or the first of them; False if they have to be read."""
    passage = ruled_out.passage(run)
    if passage is None:
        return False
    mark = state.watermark
    try:
        read = read_through(
            source_of(channel, endpoints), start_of(mark, state.source_identity), passage.begin.position
        )
    except (SourceError, BinlogError):
        # reading them says what is wrong
        return False
    is_here = read.transactions == 0 and read.end == passage.begin.position
    if not is_here or read.gtid_set != passage.begin.gtid_set:
        return False
    behind = passage.behind
    reached = replace(
        read, channel=channel.name, end=behind.position, gtid_set=behind.gtid_set, fingerprint=behind.fingerprint
    )
    note_empty(engine_of(endpoints.target), mark, reached, None, moves=True)
    size = size_text(sum(each.bytes for each in passage.files))
    said = f" {plural(len(passage.files), 'file')} passed over, {size}: {passage.names[0]} to {passage.names[-1]}"
    console.line(("✓", "green"), (said, ""))
    return _state(channel, endpoints).watermark.source == behind.position
