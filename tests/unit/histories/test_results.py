"""What became of each history: kept by seed, added up over runs and families."""

from __future__ import annotations

from pathlib import Path

from binlane.model import Flavor
from lab.histories.results import Result, Results
from lab.histories.trial import Verdict


def test_a_run_goes_on_with_the_first_seed_not_tried_and_the_last_verdict_of_a_seed_counts(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    assert results.next_seed(Flavor.MYSQL) == 1
    for seed, verdict in ((1, Verdict.EQUAL), (2, Verdict.FAILED), (3, Verdict.REFUSED), (2, Verdict.EQUAL)):
        results.add(Result(Flavor.MYSQL, seed, verdict, "abc"))
    results.add(Result(Flavor.MARIADB, 9, Verdict.NATIVE_TOO, "abc"))
    again = Results(tmp_path / "results.jsonl")
    assert (again.next_seed(Flavor.MYSQL), again.next_seed(Flavor.MARIADB)) == (4, 1)
    assert again.of(Flavor.MYSQL)[2] == Result(Flavor.MYSQL, 2, Verdict.EQUAL, "abc")
    assert again.total(Flavor.MYSQL) == (
        "mysql, all runs: 3 histories: 2 equal, 1 refused before the first write, "
        "0 the server's own replica does not do better, 0 failed"
    )
