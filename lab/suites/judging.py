"""One test's verdict, in a process that is reused: starting Python for each test would take most of the time."""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from pymysql.err import MySQLError

from binlane.model import Flavor
from lab.programs import LabError
from lab.servers import PrivateServer
from lab.suites.comparing import differences, everything
from lab.suites.replica import replicate
from lab.suites.servers import ServersBeside, Source, source_at, with_ended_sessions
from lab.suites.verdict import Outcome, Run, judged
from lab.suites.window import bring

Held: TypeAlias = Mapping[str, str]
"""See ``everything``."""

_OPEN: Final = "WindowOpenError"
_UNSAFE: Final = "allow_unsafe"
_FUNCTION: Final = re.compile(r"statement of seqno \d+, (CREATE [^:]*?SONAME \"[^\"]+\"): expected the library")
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Question:
    """A test at its end."""

    flavor: Flavor
    test: str
    port: int
    """The port of the test's source."""
    program: Path
    template: Path
    """The data folder that the driver's servers start from."""
    folder: Path
    """The folder for the project of binlane's channel; removed afterwards."""


@dataclass(frozen=True, slots=True)
class Help:
    """What binlane refuses a log without, and asks a person for."""

    allow_unsafe: bool = False
    """``apply.allow_unsafe``."""
    functions: tuple[str, ...] = ()
    """Loadable functions that are made on the target by hand, as statements."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a test, with its reasons."""

    outcome: Outcome
    binlog_format: str = ""
    reason: str = ""
    """Why the test is not equal: the error that stopped binlane, or the differences."""
    native: str = ""
    """The reason of the server's own replica; empty if it is equal or was not run."""
    given: Help = Help()
    """What binlane refused the log without; the outcome is that of a run with it."""
    seconds: float = 0.0


def judge(question: Question, servers: ServersBeside) -> Verdict:
    """Apply the log to a fresh target and compare; if they differ, apply it by the server's own replica, too."""
    begun = time.monotonic()
    question.folder.mkdir(parents=True, exist_ok=True)
    try:
        source = source_at(question.flavor, question.port)
        if not source.logs:
            return Verdict(Outcome.INCOMPARABLE, reason="the source writes no binary log")
        outcome, run, native, given = _judge(question, source, servers)
    except (LabError, MySQLError, OSError) as exc:
        return Verdict(Outcome.INCOMPARABLE, reason=f"{type(exc).__name__}: {exc}")
    finally:
        shutil.rmtree(question.folder, ignore_errors=True)
    seconds = round(time.monotonic() - begun, 1)
    return Verdict(outcome, source.binlog_format, _told(run), _told(native), given, seconds)


def _judge(question: Question, source: Source, servers: ServersBeside) -> tuple[Outcome, Run, Run | None, Help]:
    held, given = everything(source.server), Help()
    run = _by_binlane(question, source, held, servers, given)
    if run.refused and _OPEN in run.stopped:
        # sessions are ended first, so that the log has the end of their temporary tables
        source = with_ended_sessions(source)
        held = everything(source.server)
        run = _by_binlane(question, source, held, servers, given)
    if run.refused and _UNSAFE in run.stopped:
        given = replace(given, allow_unsafe=True)
        run = _by_binlane(question, source, held, servers, given)
    if run.refused and (functions := tuple(_FUNCTION.findall(run.stopped))):
        given = replace(given, functions=functions)
        run = _by_binlane(question, source, held, servers, given)
    native = None if run.equal else _by_replica(question, source, held, servers)
    return judged(run, native), run, native, given


def _by_binlane(question: Question, source: Source, held: Held, servers: ServersBeside, given: Help) -> Run:
    with servers.server("target", source, question.program, question.template) as target:
        if given.functions:
            with contextlib.closing(target.connect(autocommit=True)) as connection, connection.cursor() as cursor:
                for statement in ("SET SESSION sql_log_bin = 0", *given.functions):
                    cursor.execute(statement)
        project = Path(tempfile.mkdtemp(dir=question.folder))
        run = bring(source.server, target, project, allow_unsafe=given.allow_unsafe)
        if run.stopped:
            return replace(run, ended=not _answers(target))
        return _compared(held, target)


def _answers(server: PrivateServer) -> bool:
    try:
        server.connect().close()
    except MySQLError:
        return False
    return True


def _by_replica(question: Question, source: Source, held: Held, servers: ServersBeside) -> Run:
    with servers.server("replica", source, question.program, question.template) as replica:
        stopped = replicate(source, replica)
        return Run(stopped) if stopped else _compared(held, replica)


def _compared(held: Held, server: PrivateServer) -> Run:
    return Run(different=differences(held, everything(server)))


def _told(run: Run | None) -> str:
    if run is None:
        return ""
    return run.stopped or "; ".join([f"{name}: {text}" for name, text in run.different.items()][:_SHOWN])
