"""Lets readers of the target take their snapshots at the ends of epochs (docs/consistency.md).

The serialized lane holds a named lock while lanes move. At the end of an epoch, where all other lanes wait for it, it
releases the lock and takes it again; a reader that waits in GET_LOCK has the lock in between. The lock only decides
when a reader gets its snapshot; whether that is a state of the source, ``binlane.consistent`` says.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from binlane.lazy_dataclass import dataclass
from binlane.state.leases import pass_on, reader_lock, take

if TYPE_CHECKING:
    from binlane.apply.session.connection import LaneSession

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ReaderLock:
    """The lock, on the connection of one attempt."""

    session: LaneSession
    channel: str
    wait: float
    """Most seconds that lanes wait for readers at the end of an epoch."""
    _is_held: bool = False
    _slow: int | None = None
    """The connection of a reader that has kept the lock for longer: lanes do not wait for it again."""

    def hold(self) -> None:
        """Take the lock, unless a reader has it."""
        if not self._is_held:
            self._is_held = take(self.session.cursor, reader_lock(self.channel))

    def let_in(self) -> None:
        """Let waiting readers have the lock, and wait for its return."""
        reader, self._is_held = pass_on(self.session.cursor, reader_lock(self.channel), self.wait, self._slow)
        if not self._is_held and reader is not None and reader != self._slow:
            _log.warning(
                "channel %s: a reader, connection %d of the target, has kept the lock %s for more than "
                "lanes.reader_wait = %g s; the lanes go on", self.channel, reader, reader_lock(self.channel), self.wait,
            )  # fmt: skip
        self._slow = None if self._is_held else reader
