"""``python -m lab.histories``: hostile histories for some seconds, with binlane and the server's own replica."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final

import typer

from binlane.model import Flavor
from lab.commit import commit
from lab.histories.generator import generate
from lab.histories.history import History
from lab.histories.results import Result, Results
from lab.histories.shrink import shrunk
from lab.histories.trial import Outcome, Trials, Verdict
from lab.priority import in_background
from lab.programs import has_mysql

_MEMORY: Final = Path("/dev/shm")
_SHRUNK_A_KIND: Final = 2
"""Failures of one kind that are shortened; further ones are only counted."""
_SHOWN_EVERY: Final = 50
RESULTS: Final = Path(__file__).parent / "results.jsonl"


@dataclass(slots=True)
class Score:
    """The results of a run's histories."""

    flavor: Flavor
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    kinds: Counter[tuple[Verdict, str]] = field(default_factory=Counter)
    statements: int = 0
    refused_by_source: int = 0
    began: float = field(default_factory=time.monotonic)

    def add(self, outcome: Outcome) -> int:
        """Count an outcome; the number of outcomes of its kind."""
        self.verdicts[outcome.verdict] += 1
        self.kinds[outcome.verdict, outcome.kind] += 1
        self.statements += outcome.statements
        self.refused_by_source += outcome.refused_by_source
        return self.kinds[outcome.verdict, outcome.kind]

    def show(self) -> None:
        """Print the results."""
        total, seconds = self.verdicts.total(), time.monotonic() - self.began
        say(
            f"{self.flavor.value}: {total} histories in {seconds:.0f} s, {60 * total / seconds:.1f} a minute; "
            f"{self.statements} statements, {self.refused_by_source} of them refused by the source"
        )
        for verdict in Verdict:
            say(f"  {self.verdicts[verdict]:6} {verdict.value}")
            for (of, kind), count in self.kinds.most_common():
                if of is verdict and kind:
                    say(f"         {count:6} {kind}")


def main(
    family: Annotated[Flavor | None, typer.Option(help="Of source, target and replica; default: both.")] = None,
    seconds: Annotated[float, typer.Option(help="For how long.")] = 60,
    seed: Annotated[int, typer.Option(help="The first history's seed; the others follow. 0: the first not tried.")] = 0,
    count: Annotated[int, typer.Option(help="So many histories, however long it takes.")] = 0,
    shrink_seconds: Annotated[float, typer.Option(help="For making a failing history shorter.")] = 120,
    keep: Annotated[Path | None, typer.Option(help="Folder for the failing histories.")] = None,
    file: Annotated[Path | None, typer.Option(help="Try the history of this file instead.")] = None,
    spark: Annotated[bool, typer.Option(help="One history in ten goes through spark-submit.")] = True,
    results: Annotated[Path, typer.Option(help="File of what became of each seed.")] = RESULTS,
    show: Annotated[bool, typer.Option(help="Print each history and what became of it.")] = False,
) -> None:
    """Try histories; ends with 1 if one of them failed."""
    given = None if file is None else History.from_text(file.read_text())
    if given is not None:
        family, count = given.flavor, 1
    if family is None:
        sys.exit(_both())
    logging.disable(logging.CRITICAL)
    known, score, build = Results(results), Score(family), commit()
    seed = seed or known.next_seed(family)
    place = tempfile.mkdtemp(prefix="binlane-histories-", dir=_MEMORY if _MEMORY.is_dir() else None)
    with Trials(family, Path(place)) as trials:
        while score.verdicts.total() < count if count else time.monotonic() - score.began < seconds:
            history = given or generate(family, seed + score.verdicts.total())
            if not spark:
                history = replace(history, settings=replace(history.settings, spark=False))
            if show:
                say(history.to_text())
            outcome = trials.judge(history)
            alike = score.add(outcome)
            if given is None:
                known.add(Result(family, history.seed, outcome.verdict, build))
            if outcome.verdict is Verdict.FAILED:
                _report(trials, history, outcome, shrink_seconds if alike <= _SHRUNK_A_KIND else 0, keep)
            elif show or outcome.verdict is not Verdict.EQUAL:
                say(f"seed {history.seed}: {outcome.verdict.value}: {outcome.kind}")
                say(*(f"  {each[:300]}" for each in (outcome.details if show else outcome.details[:2])))
            if score.verdicts.total() % _SHOWN_EVERY == 0:
                score.show()
        score.show()
    say(known.total(family))
    if score.verdicts[Verdict.FAILED]:
        raise typer.Exit(1)


def say(*lines: str) -> None:
    """Print without buffering, since runs are long."""
    for line in lines:
        print(line, flush=True)


def _both() -> int:
    """Run both families in parallel, one process each."""
    families = [each for each in Flavor if each is not Flavor.MYSQL or has_mysql()]
    command = [sys.executable, "-m", "lab.histories", *sys.argv[1:], "--family"]
    running = [subprocess.Popen([*command, each.value]) for each in families]
    try:
        return max(each.wait() for each in running)
    finally:
        for each in running:
            each.terminate()
            each.wait()


def _report(trials: Trials, history: History, outcome: Outcome, seconds: float, keep: Path | None) -> None:
    say(f"FAILED: seed {history.seed}, {history.flavor.value}: {history.settings}: {outcome.kind}")
    say(*(f"  {each[:900]}" for each in outcome.details[:6]))
    if seconds:

        def fails(candidate: History) -> bool:
            found = trials.judge(candidate)
            return found.verdict is Verdict.FAILED and found.kind == outcome.kind

        history = shrunk(history, fails, seconds)
        say(history.to_text())
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        said = [f"# {line}" for each in outcome.details for line in each.splitlines()]
        path = keep / f"{history.flavor.value}-{history.seed}.txt"
        path.write_text("\n".join([history.to_text(), *said]) + "\n")


def _end(_number: int, _frame: object) -> None:
    """SIGTERM: end the servers and the Spark session, too."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    in_background()
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(main)
    app()
