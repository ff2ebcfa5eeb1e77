"""What the standing trials may be refused: of kinds that docs/conformance.md names."""

from __future__ import annotations

import pytest

from lab.refusals import REFUSALS, Refusal, refusal_of
from lab.suites.__main__ import RESULTS
from lab.suites.results import Results
from lab.suites.verdict import Outcome
from tests.conformance.rows import Verdict
from tests.conformance.table import rows


def test_each_kind_has_a_name_of_its_own() -> None:
    assert len({refusal.kind for refusal in REFUSALS}) == len(REFUSALS)


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.kind)
def test_each_kind_is_a_refusal_of_the_conformance_page(refusal: Refusal) -> None:
    named = [row for row in rows() if row.what.startswith(refusal.row)]
    assert [row.verdict for row in named] == [Verdict.REFUSED]
    assert named[0].error is not None
    assert named[0].error in refusal.pattern


def test_every_refusal_that_the_suites_met_is_of_one_of_them() -> None:
    kinds = {each.kind for each in Results(RESULTS).all() if each.outcome is Outcome.REFUSED}
    assert kinds <= {refusal.kind for refusal in REFUSALS}


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("WindowOpenError: a:4: the temporary table a.t of connection 7 is made here", "open at the log's end"),
        ("PrecheckError: 127.0.0.1:1: is a replica with log_slave_updates OFF: switch", "leaves changes out"),
        ("PrecheckError: the target cannot\n  mysql.user: table: expected one, found none", "server's own tables"),
        ("UnsupportedEventError: a:4: QUERY: a statement of a kind (SYSTEM TABLES): 'ALTER'", "server's own tables"),
        ("UnsupportedEventError: a:4: QUERY: a statement of a kind (SHUTDOWN): 'SHUTDOWN'", None),
        ("UnsupportedEventError: a:4: QUERY: a statement that failed on a lock of another session", "half-way"),
        (
            "UnsupportedEventError: a:4: QUERY: a statement that was rolled back, whose changes cannot be determined: ",
            "half-way",
        ),
        ("UnsupportedEventError: a:4: QUERY: a statement that was interrupted on the source (error 1317)", "half-way"),
        (
            "UnsupportedEventError: a:4: a statement that was rolled back, whose changes cannot be determined, x",
            "half-way",
        ),
        ("PrecheckError: x\nshop: database, at seqno 6: expected one [read-only-databases]", "READ ONLY"),
        ("PrecheckError: x\na:4: statement of seqno 6, DO f(): expected no [temporary-tables]", "routine leaves"),
        ("UnsupportedEventError: a:4: copies, so copies of the table are needed: it is a sequence", "no copy"),
        ("PrecheckError: mysql: the account lacks SELECT", None),
        ("ApplyError: 1032 in mysql.user: table: x", None),
    ],
)
def test_a_refusal_is_told_by_its_error(reason: str, kind: str | None) -> None:
    found = refusal_of(reason)
    assert (found is None) == (kind is None)
    assert found is None or kind is None or kind in found.kind
