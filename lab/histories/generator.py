"""Generates a history from a seed; the same seed always gives the same history."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from binlane.model import Flavor
from lab.histories.history import BOTH, WINDOW, Event, History, Settings
from lab.histories.sessions import Habits, Session
from lab.histories.tables import new_table
from lab.histories.values import value
from lab.histories.world import Dice, Table, World, quoted

_NAMES: Final = ("d0", "d1", "D2", "d-3", "dä")
_SETS: Final = ("utf8mb4", "latin1", "utf8mb4 COLLATE utf8mb4_bin", "utf8mb4 COLLATE utf8mb4_unicode_ci")


def generate(flavor: Flavor, seed: int) -> History:
    """The history of a seed."""
    dice = Dice(f"{flavor.value} {seed}")
    world = World(flavor, dice)
    # with dice of their own: other seeds keep their events
    daily, edges = Dice(f"{flavor.value} {seed} daily").one_in(2), Dice(f"{flavor.value} {seed} edges").one_in(3)
    habits = replace(_habits(dice), daily=daily, edges=edges)
    events = _beginning(world)
    sessions = [Session(name, world, habits) for name in "abcd"[: dice.randint(1, 4)]]
    length, at = dice.randint(25, 130), 0
    windows = {dice.randrange(length) for _ in range(dice.choice((0, 0, 1, 1, 2, 3)))}
    while at < length:
        session = dice.choice(sessions)
        for _ in range(dice.choice((1, 1, 2, 5))):
            events.append(Event(session.name, session.next()))
            if at in windows:
                events.append(Event(WINDOW, dice.choice(("window", "window", "killed", "cut connections"))))
            at += 1
    return History(flavor, seed, _with_lanes(_settings(dice), Dice(f"{flavor.value} {seed} lanes")), tuple(events))


def _settings(dice: Dice) -> Settings:
    return Settings(
        lanes=dice.choice((1, 3, 3, 7)),
        fold_gap=dice.choice((0, 0, None)),
        block=dice.choice((1, 3, 1000)),
        reduce=dice.choice(("off", "block", "window")),
        segment_bytes=dice.choice((1, 600, 4096, 1 << 20)),
        spark=dice.one_in(10),
    )


def _with_lanes(settings: Settings, dice: Dice) -> Settings:
    """How lanes meet and share, and how rows are sent: with dice of its own, so that events stay those of a seed."""
    divide = dice.choice(("", "key", "key", "table")) if settings.reduce != "off" else ""
    commit = dice.choice(("alone", "together")) if divide and settings.reduce != "window" else "alone"
    return replace(
        settings,
        consistency=dice.choice(("eventual", "epoch")) if divide else dice.choice(("eventual", "epoch", "any_time")),
        divide=divide,
        commit=commit,
        writer=dice.choice(("binlog", "binlog", "binlog", "sql")),
        on_conflict=dice.choice(("stop", "stop", "overwrite")),
        row_images=dice.choice(("auto", "auto", "full")),
    )


def _habits(dice: Dice) -> Habits:
    return Habits(
        formats=dice.choice((("ROW",), ("ROW", "MIXED"), ("ROW", "ROW", "MIXED", "STATEMENT"), ("MIXED", "STATEMENT"))),
        definitions=dice.choice((3, 5, 8, 20)),
        settings=dice.choice((4, 10, 30)),
        xa=dice.one_in(3),
        temporary=dice.one_in(5),
    )


def _beginning(world: World) -> list[Event]:
    """Databases and tables with some rows: either on both servers before the channel begins, or in its log."""
    dice = world.dice
    session = dice.choice((BOTH, BOTH, "a"))
    events = []
    if dice.one_in(3):
        metadata = dice.choice(("FULL", "MINIMAL"))
        events.append(Event("a", f"SET GLOBAL binlog_row_metadata = {metadata}"))
    if dice.one_in(5):
        events.append(Event("a", f"SET GLOBAL binlog_checksum = {dice.choice(('NONE', 'CRC32'))}"))
    world.databases = list(_NAMES[: dice.randint(2, len(_NAMES))])
    for name in world.databases:
        events.append(Event(session, f"CREATE DATABASE {quoted(name)} CHARACTER SET {dice.choice(_SETS)}"))
    for _ in range(dice.randint(2, 6)):
        table = new_table(world, world.database())
        world.tables.append(table)
        events.append(Event(session, table.create()))
        events += [Event(session, _row(world, table)) for _ in range(dice.choice((0, 2, 6)))]
    return events


def _row(world: World, table: Table) -> str:
    columns = [column for column in table.plain if not world.dice.one_in(5)]
    names = ", ".join(["`id`", *(quoted(column.name) for column in columns)])
    values = ", ".join([str(world.dice.randint(1, 14)), *(value(world.dice, column) for column in columns)])
    return f"INSERT INTO {table.full} ({names}) VALUES ({values})"
