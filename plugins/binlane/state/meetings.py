"""Signals between the lanes that commit the shares of a block together: named locks of the lanes' own connections.

Nobody writes a row for them, so a meeting costs no commit; and they end with the connection, as its transaction does.
Of a lane that stands at a seqno, its connection holds

- ``working`` while the lane is on its way to its share of the next block, or executes it;
- ``ready`` once the share is executed, and until the lane has executed the next one. Then it does not hold ``working``:
  who waits for the lane waits in GET_LOCK for that one, and so wakes without asking again and again.

It holds ``gives way`` instead of both while the lane waits in front of its share because the target is busy: nobody
begins a share then, and who has executed one rolls it back.

``alone`` is held by the lane that applies a whole block by itself: all others roll their shares back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final

from binlane.lazy_dataclass import dataclass
from binlane.state.leases import lease_name

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

_ALL: Final = ("ready", "working", "gives way")
_AT_ONCE: Final = 4
"""Lanes that one statement waits for: it ends within that many seconds."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The other lanes at one moment, as far as they stand at the seqno that was asked for."""

    ready: frozenset[int]
    working: frozenset[int]
    is_alone: bool
    """Another connection applies the block by itself."""
    gives_way: frozenset[int] = frozenset()
    """Lanes that wait for a busy target, wherever they stand."""


@dataclass(slots=True)
class Signals:
    """The signals of one connection, for the lanes that it moves. Each method is one statement or none."""

    cursor: Cursor
    connection_id: int
    channel_uuid: str
    lanes: range
    """All lanes that have shares."""
    _held: dict[int, dict[str, str]] = field(default_factory=dict)
    """Lane -> signal -> the lock's name."""

    def arrive(self, lane: int, seqno: int) -> None:
        """``lane``, which stands at ``seqno``, is on its way to its next share."""
        name = self._name("working", lane, seqno)
        if self._held.get(lane, {}).get("working") != name:
            self._run([*self._dropping(lane, _ALL), _take(name, 1)])
            self._held[lane] = {"working": name}

    def report(self, lane: int, seqno: int, following: int | None) -> Seen:
        """The lane's share behind ``seqno`` is executed, and leaves the lane at ``following``: waits for the others.
        None: whether the lane goes on to its next share is not known yet."""
        held = {"ready": self._name("ready", lane, seqno)}
        if following is not None:
            held["working"] = self._name("working", lane, following)
        # in this order: who wakes finds the lane ready
        calls = [*(_take(name, 0) for name in held.values()), *self._dropping(lane, _ALL)]
        self._held[lane] = held
        return self._look(calls, lane, seqno, [other for other in self.lanes if other != lane])

    def give_way(self, lane: int) -> None:
        """The lane waits for a busy target, until it arrives at its share."""
        if "gives way" not in self._held.get(lane, {}):
            name = self._name("gives way", lane)
            # in this order: who wakes sees why the lane does not come
            self._run([_take(name, 1), *self._dropping(lane, _ALL)])
            self._held[lane] = {"gives way": name}

    def wait(self, lane: int, seqno: int, others: Sequence[int]) -> Seen:
        """Wait until the first of ``others`` is ready, at most some seconds."""
        return self._look([], lane, seqno, others)

    def look(self, lane: int, seqno: int) -> Seen:
        """The others, without a wait."""
        return self._look([], lane, seqno, ())

    def withdraw(self, lane: int, seqno: int) -> None:
        """The lane is not ready any more, and will execute its share behind ``seqno`` again."""
        name = self._name("working", lane, seqno)
        self._run([*self._dropping(lane, _ALL), _take(name, 1)])
        self._held[lane] = {"working": name}

    def leave(self, lane: int) -> None:
        """The connection does not move the lane any more."""
        self._run(self._dropping(lane, _ALL))
        self._held.pop(lane, None)

    def begin_alone(self, lane: int) -> bool:
        """Apply the block by this connection; False if another one does. Who waits for ``lane`` wakes and sees it."""
        calls = [_take(self.alone, 0), *self._dropping(lane, _ALL)]
        self._held.pop(lane, None)
        return self._run(calls)[0] == 1

    def end_alone(self) -> None:
        """The others may go on."""
        self._run([_release(self.alone)])

    @property
    def alone(self) -> str:
        """The name of the lock of the lane that applies a block by itself."""
        return self._name("alone")

    def _look(self, calls: list[str], lane: int, seqno: int, awaited: Sequence[int]) -> Seen:
        others = [other for other in self.lanes if other != lane]
        for other in awaited[:_AT_ONCE]:
            name = self._name("working", other, seqno)
            calls += [_take(name, 1), _release(name)]
        skipped = len(calls)
        for other in others:
            leased = lease_name(self.channel_uuid, other)
            at = (self._name(signal, other, seqno) for signal in ("ready", "working"))
            calls += [f"IS_USED_LOCK('{name}')" for name in (leased, *at, self._name("gives way", other))]
        row = self._run([*calls, f"IS_USED_LOCK('{self.alone}')"])[skipped:]
        found = {other: row[4 * place : 4 * place + 4] for place, other in enumerate(others)}
        # who waits for a lane holds its signal for a moment: only that of the lane's own connection says something
        ready, working, gives_way = (
            frozenset(other for other, (mine, *held) in found.items() if mine and held[signal] == mine)
            for signal in range(3)
        )
        return Seen(ready, working, row[-1] is not None and row[-1] != self.connection_id, gives_way)

    def _run(self, calls: Sequence[str]) -> tuple[int | None, ...]:
        if not calls:
            return ()
        self.cursor.execute(f"SELECT {', '.join(calls)}")
        row = self.cursor.fetchone()
        assert row is not None
        return tuple(row)

    def _dropping(self, lane: int, signals: Iterable[str]) -> list[str]:
        held = self._held.get(lane, {})
        return [_release(held[signal]) for signal in signals if signal in held]

    def _name(self, signal: str, lane: int = 0, seqno: int = 0) -> str:
        return "binlane:" + hashlib.sha256(f"{self.channel_uuid}/{signal}/{lane}/{seqno}".encode()).hexdigest()[:40]


def _take(name: str, seconds: int) -> str:
    # whole seconds: MySQL rounds the others
    return f"GET_LOCK('{name}', {seconds})"


def _release(name: str) -> str:
    return f"RELEASE_LOCK('{name}')"
