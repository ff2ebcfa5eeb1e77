"""Drills: when each ran, what was restored in it, and whether that was equal to the live copy.

A drill takes some of the databases, so each remembers what the ones before have found: a database that was not equal
once is named until a newer drill has found it equal, or the channel has it no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, Row, and_, insert, select, update

from binlane.lazy_dataclass import dataclass
from binlane.state.json_columns import text_of, value_of
from binlane.state.stored_values import VALUES
from binlane.state.tables import NOW, drills

RUNNING: Final = "running"
EQUAL: Final = "equal"
"""Every row and definition was compared, and none differs."""
DIFFERENT: Final = "different"
INCOMPLETE: Final = "incomplete"
"""None differs, as far as they were compared."""
FAILED: Final = "failed"
"""Something could not be restored, or compared."""
INTERRUPTED: Final = "interrupted"
HAS_RESULT: Final = and_(drills.c.ended_at.is_not(None), drills.c.state != INTERRUPTED)
"""Of a row: the drill has ended, and says something about restores. One that was killed does not."""

_LONGEST: Final = 1 << 14
"""Characters of a database's error, and of its differences, where not all of them have room."""
_SHOWN: Final = 5
"""Databases that are named."""
_ORDER: Final = (EQUAL, INCOMPLETE, DIFFERENT, FAILED)
"""From the best to the worst."""


@dataclass(frozen=True, slots=True)
class TenantResult:
    """One database of a drill."""

    database: str
    restored_as: str
    moment: str
    """The random time up to which it was restored first, as it was asked for."""
    place: str
    """Where in the log that was; empty if it was not reached."""
    compared_at: str
    """The place of the log at which it was compared with the live copy; empty if it was not."""
    rows: int
    tables: int
    definitions: int
    seconds: float
    state: str
    differences: tuple[str, ...]
    """What differs, or was not compared; of many the first ones."""
    error: str
    """Empty if there was none."""


@dataclass(frozen=True, slots=True)
class UnprovedDatabase:
    """A database whose newest result is not equal."""

    database: str
    state: str
    drill: int
    """The number of the drill that has found it so."""

    def __str__(self) -> str:
        return f"{self.database} ({self.state}, drill {self.drill})"


@dataclass(frozen=True, slots=True)
class DrillMemory:
    """What was known when a drill began."""

    unproved: tuple[UnprovedDatabase, ...] = ()
    equal_at: str = ""
    """When the newest drill ended that found everything equal and counts; empty: none did."""
    is_partial: bool = False
    """The drill itself was asked for fewer databases than the channel's file says, so that its end proves nothing of
    the others."""


NOTHING_KNOWN: Final = DrillMemory()


@dataclass(frozen=True, slots=True)
class DrillResults:
    """The databases of a drill, in the order in which they were restored."""

    tenants: tuple[TenantResult, ...]
    memory: DrillMemory = NOTHING_KNOWN


@dataclass(frozen=True, slots=True)
class Drill:
    """A drill's row."""

    id: int
    channel: str
    seed: int
    base: str
    log: str
    log_bytes: int
    state: str
    tenants: tuple[TenantResult, ...]
    error: str
    by: str
    started_at: str
    """UTC, by the target's clock, as ``ended_at``."""
    ended_at: str
    """Empty until it ends."""


def worst(states: Sequence[str]) -> str:
    """The state of a drill of these databases; FAILED without any."""
    return max(states, key=_ORDER.index, default=FAILED)


def begin_drill(
    connection: Connection, channel: str, seed: int, base: str, log: str, by: str, memory: DrillMemory = NOTHING_KNOWN
) -> int:
    """Record a new drill; its number. Those that a kill has left running are interrupted from now on. ``memory``: that
    of the channel, as this drill takes it over."""
    stale = update(drills).where(drills.c.channel == channel, drills.c.state == RUNNING)
    connection.execute(stale.values(state=INTERRUPTED, ended_at=NOW))
    added = connection.execute(
        insert(drills).values(
            channel=channel, seed=seed, base=base, log=log, log_bytes=0, state=RUNNING,
            results=text_of(DrillResults((), memory)), requested_by=by[:255], started_at=NOW,
        )
    )  # fmt: skip
    [number] = added.inserted_primary_key or (0,)
    return int(number)


def save_drill(
    connection: Connection, number: int, log_bytes: int, tenants: Sequence[TenantResult], state: str = RUNNING,
    error: str = "", memory: DrillMemory = NOTHING_KNOWN,
) -> None:  # fmt: skip
    """Store what is known; any other state than RUNNING ends the drill. ``memory``: with which it has begun."""
    values: dict[str, Any] = {} if state == RUNNING else {"state": state, "ended_at": NOW, "error": error or None}
    results = _fitting(tenants, memory)
    connection.execute(
        update(drills).where(drills.c.id == number).values(results=results, log_bytes=log_bytes, **values)
    )


def _fitting(tenants: Sequence[TenantResult], memory: DrillMemory) -> str:
    """The results as their column holds them, with as much of their errors and differences as there is room for."""
    most, found = VALUES[drills.name][drills.c.results.name].most, text_of(DrillResults(tuple(tenants), memory))
    characters = _LONGEST
    while len(found) > most and characters:
        characters //= 2
        found = text_of(DrillResults(tuple(_shortened(one, characters) for one in tenants), memory))
    return found


def _shortened(one: TenantResult, characters: int) -> TenantResult:
    left, differences = characters, list[str]()
    for each in one.differences:
        differences += [each[:left]] if left > 0 else []
        left -= len(each)
    return replace(one, differences=tuple(differences), error=one.error[:characters])


def read_drills(connection: Connection, channel: str, limit: int) -> tuple[Drill, ...]:
    """The channel's drills, newest first."""
    query = select(drills).where(drills.c.channel == channel).order_by(drills.c.id.desc()).limit(limit)
    return tuple(_of(row) for row in connection.execute(query))


def drill_memory(connection: Connection, channel: str) -> DrillMemory:
    """What the channel's drills have found so far, by the newest one, whatever has become of it."""
    query = select(drills).where(drills.c.channel == channel).order_by(drills.c.id.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    if row is None:
        return NOTHING_KNOWN
    results = value_of(DrillResults, row.results, drills.c.results)
    memory, judged = results.memory, {each.database for each in results.tenants}
    is_proof = row.state == EQUAL and not memory.is_partial
    return DrillMemory(
        (
            *(each for each in memory.unproved if each.database not in judged),
            *(UnprovedDatabase(one.database, one.state, row.id) for one in results.tenants if one.state != EQUAL),
        ),
        str(row.ended_at) if is_proof else memory.equal_at,
    )


def drilled_databases(connection: Connection, channel: str, seed: int) -> tuple[str, ...] | None:
    """The databases of the channel's newest drill with that seed, in their order; None: there is no such drill."""
    query = select(drills.c.results).where(drills.c.channel == channel, drills.c.seed == seed)
    results = connection.scalar(query.order_by(drills.c.id.desc()).limit(1))
    if results is None:
        return None
    return tuple(each.database for each in value_of(DrillResults, results, drills.c.results).tenants)


def unproved_text(found: Sequence[str]) -> str:
    """Databases whose newest result is not equal, for people."""
    more = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    return f"not equal when last restored: {', '.join(found[:_SHOWN])}{more}"


@dataclass(frozen=True, slots=True)
class LastDrills:
    """What the drills of a channel say. Times are UTC, by the target's clock."""

    state: str
    """Of the newest with a result; INTERRUPTED, if none of them has one."""
    equal_at: str | None
    """When the newest ended that found everything equal, of as many databases as the channel's file says; None: none
    did."""
    unproved: tuple[UnprovedDatabase, ...] = ()
    """Databases whose newest result is not equal."""


def last_drills(connection: Connection, channel: str) -> LastDrills | None:
    """Those of the channel; None if none says anything."""
    query = select(drills.c.state).where(drills.c.channel == channel, HAS_RESULT)
    state, memory = connection.scalar(query.order_by(drills.c.id.desc()).limit(1)), drill_memory(connection, channel)
    if state is None and not memory.unproved:
        return None
    return LastDrills(state or INTERRUPTED, memory.equal_at or None, memory.unproved)


def _of(row: Row[tuple[Any, ...]]) -> Drill:
    return Drill(
        row.id, row.channel, row.seed, row.base, row.log, row.log_bytes, row.state,
        value_of(DrillResults, row.results, drills.c.results).tenants, row.error or "", row.requested_by,
        str(row.started_at), "" if row.ended_at is None else str(row.ended_at),
    )  # fmt: skip
