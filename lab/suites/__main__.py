"""``make suites``: run the tests of the servers' own suites that have no result yet, then write docs/suites.md."""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from binlane.model import Flavor
from lab.commit import commit
from lab.priority import in_background
from lab.programs import LabError, series_of, server_binary
from lab.refusals import REFUSALS
from lab.suites import driver, report
from lab.suites.installation import SUITES, Installation, install, suites_folder
from lab.suites.judging import Verdict
from lab.suites.kinds import kind_of
from lab.suites.results import Key, Result, Results
from lab.suites.service import Judge, listening
from lab.suites.verdict import Outcome, worse

ROOT: Final = Path(__file__).parents[2]
RESULTS: Final = Path(__file__).parent / "results.jsonl"
DOCUMENT: Final = ROOT / "docs" / "suites.md"
FORMATS: Final = ("row", "mixed", "statement")
_BATCH: Final = 24
_FAILS: Final = "the test itself fails here"
_DETAIL: Final = 4000


def main(arguments: Sequence[str]) -> int:
    """Exit code 1: a test differs or fails in the middle of a window although the server's own replica is equal, or is
    refused for a reason that docs/conformance.md does not list."""
    asked = _parse(arguments)
    work = ROOT / ".binlane" / "suites"
    if not asked.report:
        end = time.monotonic() + asked.seconds if asked.seconds else float("inf")
        trials = _trials(asked.family, suites_folder(), work)
        try:
            _run(trials, asked, end)
        finally:
            for trial in trials:
                trial.close()
    results = Results(asked.results)
    results.name_kinds(_reasons(work))
    results.compact()
    DOCUMENT.write_text(report.document(results.all()))
    bad = [each for each in results.all() if _is_bad(each)]
    for each in bad:
        print(f"{each.family} {each.format} {each.test}: {each.outcome}: {each.kind}")
    return 1 if bad else 0


def _is_bad(result: Result) -> bool:
    named = {refusal.kind for refusal in REFUSALS}
    return result.outcome in (Outcome.FAILED, Outcome.DIFFERS) or (
        result.outcome is Outcome.REFUSED and result.kind not in named
    )


class Trial:
    """One family's suites."""

    def __init__(self, flavor: Flavor, suites: Path, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.flavor, self.folder = flavor, folder
        self.installed: Installation = install(flavor, suites, folder / "base")
        self.version = series_of(server_binary(flavor))
        self.judge = Judge(flavor, self.installed.program, folder / "var" / driver.TEMPLATES[flavor])
        self.build = commit()
        self._now: dict[str, Outcome] = {}

    def close(self) -> None:
        """End the trial's processes."""
        self.judge.close()

    def runnable(self, binlog_format: str, tests: list[str]) -> list[str]:
        """The tests that these servers can run, by the requirements in the tests' files."""
        return [test for test in tests if self.installed.unmet(test, binlog_format) is None]

    def run(self, results: Results, binlog_format: str, tests: list[str], *, keeps: bool) -> list[str]:
        """One call of the driver; returns the tests that fail without a verdict. ``keeps``: keep dropped objects aside.

        Tests that the driver did not reach have no result, and the next run tries them again.
        """
        self._now = {}

        def answered(test: str, verdict: Verdict) -> None:
            if test not in self._now or worse(verdict.outcome, self._now[test]):
                self._add(results, binlog_format, test, verdict, kept=keeps)

        path, failed = self.folder / "ask", ""
        lines = driver.lines(self.installed, self.folder / "var", binlog_format, tests, path, keeps=keeps)
        # closed explicitly, so that an interrupted run does not leave the driver and its servers behind
        with listening(path, self.flavor, self.judge, answered), contextlib.closing(lines):
            for line in lines:
                said, fault = driver.said(line), driver.fault(line)
                if said is not None and said.test in tests and said.test not in self._now:
                    self._add(results, binlog_format, said.test, _unjudged(said), kept=keeps)
                    failed = said.test if said.result == "fail" else ""
                elif failed and fault is not None:
                    verdict = Verdict(Outcome.INCOMPARABLE, reason=f"{_FAILS}: {fault}")
                    self._add(results, binlog_format, failed, verdict, kept=keeps)
                    failed = ""
        return [test for test, outcome in self._now.items() if outcome is Outcome.INCOMPARABLE]

    def _add(self, results: Results, binlog_format: str, test: str, verdict: Verdict, *, kept: bool) -> None:
        kind = kind_of(verdict.outcome, verdict.reason)
        self._now[test] = verdict.outcome
        results.add(
            Result(
                self.flavor.value,
                self.version,
                binlog_format,
                test,
                verdict.outcome,
                kind,
                verdict.given.allow_unsafe,
                kept,
                self.build,
                bool(verdict.given.functions),
            )
        )
        detail: dict[str, object] = {
            "family": self.flavor.value,
            "format": binlog_format,
            "test": test,
            "outcome": verdict.outcome,
        }
        detail |= {"reason": verdict.reason[:_DETAIL], "native": verdict.native[:_DETAIL], "seconds": verdict.seconds}
        with (self.folder / "details.jsonl").open("a") as file:
            file.write(json.dumps(detail) + "\n")
        print(f"{self.flavor.value} {binlog_format} {test}: {verdict.outcome} {kind}", flush=True)


def _trials(families: Sequence[Flavor], suites: Path, work: Path) -> list[Trial]:
    """The trials of the given families; by default of all that can run here. Raises LabError if there is none."""
    trials, missing = [], []
    for flavor in families or Flavor:
        try:
            trials.append(Trial(flavor, suites, work / flavor.value))
        except LabError as exc:
            missing.append(str(exc))
    if missing and (families or not trials):
        raise LabError("; ".join(missing))
    for message in missing:
        print(f"suites: {message}", file=sys.stderr)
    return trials


@dataclass(slots=True)
class _Queue:
    """The remaining tests of one family in one format."""

    trial: Trial
    binlog_format: str
    waiting: list[list[str]]
    as_they_are: list[str] = field(default_factory=list)
    """Tests that fail if dropped objects are kept; they are run again without that, many at a time, since each call of
    the driver installs its servers again."""

    def run(self, results: Results) -> bool:
        """One call of the driver; False if nothing is left."""
        if self.waiting and len(self.as_they_are) < _BATCH:
            self.as_they_are += self.trial.run(results, self.binlog_format, self.waiting.pop(0), keeps=True)
            return True
        batch = next(driver.batches(self.as_they_are, _BATCH), [])
        self.as_they_are = [each for each in self.as_they_are if each not in batch]
        if batch:
            self.trial.run(results, self.binlog_format, batch, keeps=False)
        return bool(batch)


def _run(trials: list[Trial], asked: argparse.Namespace, end: float) -> None:
    """Run batches of all families and formats in turn, so that a short run covers a part of each."""
    queues = [_queue(trial, binlog_format, asked) for trial in trials for binlog_format in asked.format]
    while queues:
        for queue in list(queues):
            if time.monotonic() > end:
                return
            if not queue.run(Results(asked.results)):
                queues.remove(queue)


def _queue(trial: Trial, binlog_format: str, asked: argparse.Namespace) -> _Queue:
    results = Results(asked.results)
    suites = tuple(each for each in SUITES[trial.flavor] if not asked.suite or each in asked.suite)
    names = [each for each in trial.installed.names(suites) if not asked.only or each.split(".")[1] in asked.only]
    random.Random(asked.seed).shuffle(names)
    number, parts = asked.part
    names = names[number - 1 :: parts]
    left = names if asked.only else results.left(trial.flavor.value, binlog_format, names, asked.again)
    return _Queue(trial, binlog_format, list(driver.batches(trial.runnable(binlog_format, left), _BATCH)))


def _reasons(work: Path) -> dict[Key, str]:
    """The last reason of each test that was run on this machine."""
    details = [json.loads(line) for file in work.glob("*/details.jsonl") for line in file.read_text().splitlines()]
    return {(each["family"], each["format"], each["test"]): each["reason"] for each in details}


def _unjudged(said: driver.Said) -> Verdict:
    if said.result in ("skipped", "disabled"):
        return Verdict(Outcome.SKIPPED, reason=said.comment or said.result)
    if said.result == "pass":
        return Verdict(Outcome.INCOMPARABLE, reason="the test ends before its verdict")
    return Verdict(Outcome.INCOMPARABLE, reason=_FAILS)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make suites", description=__doc__)
    parser.add_argument("--family", nargs="*", type=Flavor, default=[])
    parser.add_argument("--format", nargs="*", choices=FORMATS, default=[])
    parser.add_argument("--suite", nargs="*", default=[], help="rpl, binlog ...; without it, all")
    parser.add_argument("--only", nargs="*", default=[], help="tests by name, whether they have a result or not")
    parser.add_argument("--again", nargs="*", type=Outcome, default=[], help="outcomes that are tried again")
    parser.add_argument("--seconds", type=float, default=0, help="begin no further batch after so long")
    parser.add_argument("--seed", type=int, default=1, help="of the tests' order")
    parser.add_argument(
        "--part",
        type=_part,
        default=(1, 1),
        help="2/4: the second quarter of the tests; each part in a checkout of its own",
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="another file of results")
    parser.add_argument("--report", action="store_true", help="run nothing, write docs/suites.md")
    asked = parser.parse_args(arguments)
    asked.format = asked.format or list(FORMATS)
    return asked


def _part(text: str) -> tuple[int, int]:
    """Number and count of parts. Raises ValueError."""
    number, parts = map(int, text.split("/"))
    if not 1 <= number <= parts:
        raise ValueError(text)
    return number, parts


def _end(_number: int, _frame: object) -> None:
    """SIGTERM and SIGINT: end the driver and the servers, too; installed since a shell's background jobs ignore
    SIGINT."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    in_background()
    try:
        sys.exit(main(sys.argv[1:]))
    except LabError as exc:
        print(f"suites: {exc}", file=sys.stderr)
        sys.exit(3)
    except KeyboardInterrupt:
        print("suites: ended; the next run continues", file=sys.stderr)
        sys.exit(130)
