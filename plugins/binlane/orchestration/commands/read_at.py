"""``binlane read-at``: a command that reads the target where it rests at a known place of the source's log.

The command's snapshot is that state if the target was in it before the command began and still is when its snapshot is
seen: positions only grow, and every row commits with its lane's position (docs/consistency.md).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import IO, Final

import psutil

from binlane.activity import resting
from binlane.apply.target_state import target_state
from binlane.errors import SnapshotError
from binlane.lazy_dataclass import dataclass
from binlane.orchestration.commands.channel import load
from binlane.orchestration.report import moment
from binlane.orchestration.terminal import Terminal
from binlane.safe_text import one_line
from binlane.servers.snapshots import Address, TargetReader
from binlane.state.consistent_view import ConsistentState

_LOCK_SECONDS: Final = 5
_PAUSE: Final = 0.2
"""Between two looks at a target that moves: its lanes must not wait for a reader that has no use for their rest."""
_LOOK: Final = 0.02
_STDERR: Final = 2
_TERMINATED: Final = 143
"""The exit code of a shell for a program that SIGTERM has ended."""
_END_SECONDS: Final = 10
"""So long a command that must end may take from SIGTERM to SIGKILL."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What to run, and when."""

    command: str
    """For the shell."""
    until_output: str | None = None
    """Text of the command's standard error that says that it has its snapshot; None: it is looked for."""
    wait: int = 3600
    """Seconds to wait for a place at which the target rests."""


def read_at(name: str, folder: Path, reading: ReadRequest, console: Terminal) -> int:
    """Run the command; its exit code. Says on ``console`` which state of the source it has read.

    Raises SnapshotError if the target does not rest in time, or goes on before the command has its snapshot: the
    command is ended then.
    """
    channel, endpoints = load(name, folder)
    with contextlib.ExitStack() as stack:
        with target_state(endpoints.target) as engine, TargetReader.opened(engine, channel.name) as reader:
            state = _rest(reader, reading.wait)
            for line in _told(channel.name, state):
                console.print(line)
            stack.enter_context(resting())
            child = stack.enter_context(_Child.running(reading, state))
            how = _hold(reader, state, child)
        console.print(f"channel {channel.name}: {how}")
        with resting():
            return child.wait()


def _rest(reader: TargetReader, wait: int) -> ConsistentState:
    """Wait until the target rests. Raises SnapshotError if it does not within ``wait`` seconds."""
    end = time.monotonic() + wait
    while (state := reader.resting(_LOCK_SECONDS)) is None:
        if time.monotonic() > end:
            raise SnapshotError(
                f"channel {reader.channel}: the target was at no known place of the source's log within {wait} s: in a "
                'window it is only at the ends of epochs (lanes.consistency = "epoch"), and lanes that were stopped at '
                "different seqnos stay there; look at `binlane status CHANNEL`, and run again; nothing was run"
            )
        time.sleep(_PAUSE)
    return state


def _hold(reader: TargetReader, state: ConsistentState, child: _Child) -> str:
    """Wait for the command's snapshot, or for its end, while the target stays in the state. Returns what was seen.

    Raises SnapshotError if the target goes on before.
    """
    while True:
        # asked before the state is read: then the snapshot lies between two reads of the same state
        has_said, has_ended = child.has_said, child.has_ended
        has_read = has_said or has_ended or reader.sees_snapshot(child.clients)
        if not reader.is_in(state):
            raise SnapshotError(
                f"channel {reader.channel}: the target went on from seqno {state.seqno:,} before the snapshot of the "
                "command was seen, and the command was ended: what it has written is of no known state. Run again; if "
                "the command needs longer, raise lanes.reader_wait, or run it between windows"
            )
        if has_said:
            return "the command has said that it has its snapshot; the target was in this state until then"
        if has_ended:
            return "the target was in this state until the command's end"
        if has_read:
            return "the command has its snapshot of this state"
        time.sleep(_LOOK)


def _told(channel: str, state: ConsistentState) -> Iterator[str]:
    yield f"channel {channel}: the target is at seqno {state.seqno:,} of {one_line(state.source_identity)}"
    yield f"source file and offset: {one_line(str(state.source))}"
    yield f"GTID set: {one_line(state.gtid_set) or 'none'}"
    yield f"last commit: {moment(state.source_time)}"
    if state.skipped:
        yield f"skipped transactions: {state.skipped:,}"


@dataclass(slots=True)
class _Child:
    """The command, in a session of its own."""

    process: subprocess.Popen[bytes]
    until_output: str | None
    _said: threading.Event = field(default_factory=threading.Event)
    _pump: threading.Thread | None = None

    @classmethod
    @contextlib.contextmanager
    def running(cls, reading: ReadRequest, state: ConsistentState) -> Iterator[_Child]:
        """Started; ended with the context, if it has not ended by then."""
        pipe = None if reading.until_output is None else subprocess.PIPE
        process = subprocess.Popen(
            reading.command, shell=True, stderr=pipe, start_new_session=True, env={**os.environ, **_environment(state)}
        )
        child = cls(process, reading.until_output)
        before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
        if process.stderr is not None:
            child._pump = threading.Thread(target=child._copy, args=(process.stderr,), daemon=True)
            child._pump.start()
        try:
            yield child
        finally:
            child._end()
            signal.signal(signal.SIGTERM, before)

    @property
    def has_said(self) -> bool:
        """Whether it has printed the text."""
        return self._said.is_set()

    @property
    def has_ended(self) -> bool:
        """Whether the command has ended."""
        return self.process.poll() is not None

    @property
    def clients(self) -> list[Address]:
        """The TCP connections of the command and its children; none if a text tells of the snapshot."""
        if self.until_output is not None:
            return []
        found = list[Address]()
        with contextlib.suppress(psutil.Error):
            top = psutil.Process(self.process.pid)
            for each in (top, *top.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    connections = each.net_connections(kind="tcp")
                    found += [(one.laddr.ip, one.laddr.port) for one in connections if one.status == "ESTABLISHED"]
        return found

    def wait(self) -> int:
        """The command's exit code; that of the shell for a signal, 128 and its number."""
        code = self.process.wait()
        if self._pump is not None:
            self._pump.join()
        return 128 - code if code < 0 else code

    def _copy(self, pipe: IO[bytes]) -> None:
        """Pass on what the command says."""
        assert self.until_output is not None
        wanted, tail = self.until_output.encode(), b""
        while piece := os.read(pipe.fileno(), 1 << 16):
            os.write(_STDERR, piece)
            tail = (tail + piece)[-len(piece) - len(wanted) :]
            if wanted in tail:
                self._said.set()

    def _end(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.has_ended:
                return
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_END_SECONDS)


def _environment(state: ConsistentState) -> dict[str, str]:
    """The place, for a command that notes it beside what it writes."""
    return {
        "BINLANE_SEQNO": str(state.seqno),
        "BINLANE_SOURCE_FILE": state.source.file,
        "BINLANE_SOURCE_OFFSET": str(state.source.offset),
        "BINLANE_GTID_SET": state.gtid_set,
    }
