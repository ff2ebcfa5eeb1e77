"""Tries one history: plays it on the source, applies it to the target by binlane's windows, compares both."""

from __future__ import annotations

import contextlib
import random
import re
import shutil
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final

from binlane.choices import Writer
from binlane.errors import WindowOpenError
from binlane.model import Flavor
from lab.histories import native
from lab.histories.channel import Channel, StoppedError
from lab.histories.content import content_of, differences, is_about_next
from lab.histories.history import BOTH, WINDOW, Event, History
from lab.histories.play import Stage
from lab.histories.servers import empty, make_folder, prepare, start
from lab.histories.sessions import GLOBALS
from lab.histories.spark import SparkJobs
from lab.refusals import refusal_of
from lab.servers import PrivateServer

_LAST_WINDOWS: Final = 6
_NOT_BY_SQL: Final = re.compile(
    r"\[sql-writer\]|\[new-triggers\]|given it system versioning|its triggers would fire|statements cannot give"
)
"""Errors of rows that statements cannot write and BINLOG can: of tables with triggers, versions, generated columns."""
_NEXT_ASKED: Final = 8
"""Of this many histories in which only AUTO_INCREMENT differs, one is judged: rolled-back rows advance the source's
counter."""


class Verdict(Enum):
    """The verdict on a history."""

    EQUAL = "equal"
    REFUSED = "refused before the first write"
    NATIVE_TOO = "the server's own replica does not do better"
    FAILED = "failed"


@dataclass(slots=True)
class Outcome:
    """The verdict and its reason."""

    verdict: Verdict
    kind: str = ""
    """The text by which outcomes are counted: a refusal or failure without names and numbers."""
    details: list[str] = field(default_factory=list)
    statements: int = 0
    refused_by_source: int = 0


@dataclass(slots=True)
class Trials:
    """The servers of a run, started once. A context manager."""

    flavor: Flavor
    folder: Path
    asks_native: bool = True
    source: PrivateServer = field(init=False)
    target: PrivateServer = field(init=False)
    _spark: SparkJobs = field(init=False)
    _replica: PrivateServer | None = None
    _globals: dict[str, str] = field(default_factory=dict)
    _count: int = 0
    _halves: bool = False
    """Whether the history has XA transactions."""

    def __enter__(self) -> Trials:
        make_folder(self.folder)
        self._spark = SparkJobs(self.folder)
        self.source, self.target = self._start("source"), self._start("target")
        self._globals = {name: str(self._ask(f"@@GLOBAL.{name}")) for name in GLOBALS[self.flavor]}
        return self

    def __exit__(self, *_: object) -> None:
        self._spark.close()
        for server in (self.source, self.target, self._replica):
            if server is not None:
                server.kill()
                server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def judge(self, history: History) -> Outcome:
        """Remove the previous history's objects, then play this history, apply its windows and compare."""
        self._clean()
        self._count += 1
        place = self.folder / f"h{self._count}"
        try:
            with Stage(self.source, self.folder) as stage:
                outcome = self._try(history, stage, place)
                outcome.statements, outcome.refused_by_source = stage.played, stage.failed.total()
        finally:
            shutil.rmtree(place, ignore_errors=True)
        if history.settings.writer == Writer.SQL and any(map(_NOT_BY_SQL.search, outcome.details)):
            return self.judge(replace(history, settings=replace(history.settings, writer=Writer.BINLOG)))
        return outcome

    def _try(self, history: History, stage: Stage, place: Path) -> Outcome:
        first = [event for event in history.events if event.session == BOTH]
        for server in (self.source, self.target):
            prepare(server, first)
        self._halves = any(event.sql.startswith("XA PREPARE") for event in history.events)
        start = native.place_of(self.source)
        submit = self._spark.run if history.settings.spark else None
        channel = Channel.begin(f"history_{self._count}", self.source, self.target, place, history.settings, submit)
        stopped = _played(stage, channel, [event for event in history.events if event.session != BOTH], history.seed)
        if stopped is not None and not stopped.wrote and _is_expected(stopped):
            return _refused(stopped)
        expected = content_of(self.source)
        if stopped is not None:
            return self._asked(expected, first, start, kind_of(str(stopped)), [str(stopped)])
        found = [*differences(expected, content_of(self.target)), *self._corrected(channel)]
        if all(map(is_about_next, found)) and (not found or self._count % _NEXT_ASKED):
            return Outcome(Verdict.EQUAL)
        return self._asked(expected, first, start, kind_of(_worst(found)), found)

    def _corrected(self, channel: Channel) -> list[str]:
        """Rows that ``on_conflict = "overwrite"`` has found to be others than the log says: nobody else writes here."""
        query = "SELECT kind, database_name, table_name, seqno FROM binlane.conflicts WHERE channel = %s"
        return [
            f"rows corrected in {database}.{table}: {kind} at seqno {seqno}"
            for kind, database, table, seqno in self.target.query(query, (channel.config.name,))
        ]

    def _asked(
        self, expected: dict[str, Any], first: list[Event], start: native.Place, kind: str, details: list[str]
    ) -> Outcome:
        """The verdict by the result of the server's own replica on the same log."""
        if not self.target.is_running():
            self.target.restart()
            return Outcome(Verdict.FAILED, "the target's server has ended", details)
        if not self.asks_native:
            return Outcome(Verdict.FAILED, kind, details)
        if self._replica is None:
            self._replica = self._start("replica")
        empty(self._replica)
        prepare(self._replica, first)
        error = native.replicate(self.source, self._replica, start)
        if error is not None:
            return Outcome(Verdict.NATIVE_TOO, f"stops: {kind_of(error)}", [*details, f"replica: {error}"])
        other = content_of(self._replica)
        found = differences(expected, other)
        # what a replica has prepared, and what the source has rolled back, advances counters
        ours = {_subject(each) for each in details if not (self._halves and is_about_next(each))}
        if all(map(is_about_next, details)):
            # rolled-back rows advance the source's counter but are not logged; except XA PREPARE before XA ROLLBACK
            apart = differences(other, content_of(self.target))
            if self._halves or not [each for each in apart if is_about_next(each)]:
                return Outcome(Verdict.EQUAL)
            return Outcome(Verdict.FAILED, kind, [*details, *(f"replica: {each}" for each in found)])
        differs = any(not is_about_next(each) for each in found)
        if kind.startswith("difference"):
            # binlane's own result has to be the replica's, not only another one than the source's
            ahead = {_subject(each) for each in differences(other, content_of(self.target)) if not is_about_next(each)}
            differs = differs and ours <= set(map(_subject, found)) and not ours & ahead
        if differs:
            return Outcome(Verdict.NATIVE_TOO, f"differs: {kind}", [*details, *(f"replica: {each}" for each in found)])
        return Outcome(Verdict.FAILED, kind, [*details, *(f"replica: {each}" for each in found)])

    def _start(self, name: str) -> PrivateServer:
        return start(self.flavor, self.folder, name)

    def _ask(self, expression: str) -> Any:
        return self.source.query(f"SELECT {expression}")[0][0]

    def _clean(self) -> None:
        for name, value in self._globals.items():
            if str(self._ask(f"@@GLOBAL.{name}")) != value:
                self.source.query(f"SET GLOBAL {name} = {value if value.isdigit() else repr(value)}")
        for server in (self.source, self.target):
            empty(server)
        if self._count % 50 == 49:
            for server in (self.source, self.target):
                server.query("FLUSH BINARY LOGS")
                server.query("PURGE BINARY LOGS BEFORE NOW()")


def _played(stage: Stage, channel: Channel, events: list[Event], seed: int) -> StoppedError | None:
    """Play the events, and apply windows at their places and at the end; the error of a failed window, if any.

    After a refusal before the first write the remaining events are not played.
    """
    dice = random.Random(seed)
    stopped: StoppedError | None = None
    for event in events:
        if event.session != WINDOW:
            stage.play(event)
        elif stopped is None:
            try:
                with contextlib.suppress(WindowOpenError):
                    channel.window(event.sql, dice)
            except StoppedError as exc:
                stopped = exc
                if not exc.wrote and _is_expected(exc):
                    return stopped
    stage.end_sessions()
    if stopped is not None:
        return stopped
    try:
        with contextlib.suppress(WindowOpenError):
            return _last_windows(channel, dice)
        # both halves of an XA transaction with statements are in one window
        stage.commit_prepared()
        return _last_windows(channel, dice)
    except WindowOpenError as exc:
        return StoppedError("advance", exc)
    except StoppedError as exc:
        return exc


def _last_windows(channel: Channel, dice: random.Random) -> StoppedError | None:
    for _ in range(_LAST_WINDOWS):
        if not channel.window("window", dice):
            return None
    return StoppedError("advance", AssertionError("windows without an end"))


def kind_of(text: str) -> str:
    """The text of an error or difference without names, numbers and values."""
    lines = text.split("\n")
    # a precheck has one line for each finding
    text = lines[1] if "PrecheckError" in lines[0] and len(lines) > 1 else lines[0]
    text = re.sub(r"^(\w+: \w+): channel .*?source [^ :]+:\d+: ", r"\1: ", text)
    text = re.sub(r"binlog\.\d+(:\d+)?|[`'\"][^`'\"]*[`'\"]|(?<![\w/])/\S+", "*", text)
    text = re.sub(r"[^\s:;,()*]+\.[^\s:;,()]+", "*", text)
    return re.sub(r"\d[\d,.]*", "N", text)[:200]


def _is_expected(stopped: StoppedError) -> bool:
    """Whether the error is one of binlane's refusals, by its type."""
    return type(stopped.cause).__module__.startswith("binlane.")


def _refused(stopped: StoppedError) -> Outcome:
    """REFUSED, or FAILED if docs/conformance.md has no row for this refusal."""
    refusal = refusal_of(f"{type(stopped.cause).__name__}: {stopped.cause}")
    if refusal is not None:
        return Outcome(Verdict.REFUSED, refusal.kind, [str(stopped)])
    return Outcome(Verdict.FAILED, f"refused and not named: {kind_of(str(stopped))}", [str(stopped)])


def _worst(found: list[str]) -> str:
    ranked = sorted(found, key=lambda each: (is_about_next(each), not each.startswith("rows")))
    return "difference of " + ranked[0].split(" ")[0]


def _subject(difference: str) -> str:
    return difference.split(": ")[0]
