"""When a database was last found equal, and that no older verification hides a later difference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.health.databases import LastVerification, databases_of
from binlane.state.records.databases import DatabasePage, DatabaseRecord, InWindow
from binlane.state.records.verifications import EndedVerification

AT = "1970-01-01 00:00:10"
RECENT = (InWindow(5, 1, 1, 50, 0.0), InWindow(3, 1, 1, 30, 0.0))
"""The database is changed by windows 3 and 5, last at the seqnos 30 and 50."""


def window(state: str, number: int) -> EndedVerification:
    return EndedVerification(state, "window", number, 10 * number, AT, suspects=0 if state == "clean" else 3)


def full(state: str, through: int, *scope: str) -> EndedVerification:
    return EndedVerification(state, "full", None, through, AT, scope, suspects=0 if state == "clean" else 3)


def verified(
    *newest_first: EndedVerification, drifted: int = 0, pending: int = 0, suspects: int = 0
) -> tuple[str, int] | None:
    """``suspects``: of the channel now; its verifications that are not clean had 3 at their end."""
    record = DatabaseRecord("tenant_1", 0, 2, RECENT, drifted, pending)
    (found,) = databases_of(DatabasePage((record,), 1, None, (), newest_first, suspects))
    return None if found.verified is None else (found.verified.kind, found.verified.seqno)


@pytest.mark.parametrize(
    ("newest_first", "found"),
    [
        pytest.param((), None, id="no verification"),
        pytest.param((full("clean", 60),), ("full", 60), id="every row"),
        pytest.param((window("clean", 6), window("clean", 5)), ("window", 50), id="a window that changes it"),
        pytest.param((full("clean", 60, "tenant_1"),), None, id="some tables alone"),
        pytest.param((full("drift", 60), full("clean", 40)), None, id="drift of all tables since"),
        pytest.param((window("drift", 5), full("clean", 40)), None, id="drift of a window that changes it since"),
        pytest.param((window("drift", 6), full("clean", 40)), None, id="drift of later windows, with its own"),
        pytest.param((window("drift", 6), full("clean", 50)), ("full", 50), id="drift of rows of other databases"),
        pytest.param((window("clean", 5), full("drift", 40)), ("window", 50), id="equal again since"),
        pytest.param((full("drift", 60, "tenant_1"), full("clean", 40)), None, id="drift of its own tables"),
        pytest.param((full("drift", 60, "tenant_*.t"), full("clean", 40)), None, id="drift of tables by a pattern"),
        pytest.param((full("drift", 60, "crm.t"), full("clean", 40)), ("full", 40), id="drift of other tables"),
        pytest.param((window("drift", 5), window("clean", 5)), None, id="the same rows, equal before"),
        pytest.param((window("clean", 6), full("pending", 60), full("clean", 40)), ("full", 40), id="once pending"),
    ],
)
def test_the_newest_verification_that_proves_it_equal(
    newest_first: tuple[EndedVerification, ...], found: tuple[str, int] | None
) -> None:
    assert verified(*newest_first) == found
    assert verified(*newest_first, drifted=1) is None


@pytest.mark.parametrize("state", ["pending", "drift"])
def test_the_last_verification_proves_it_equal_while_only_other_databases_differ(state: str) -> None:
    found = (full(state, 60), full("clean", 40))
    assert verified(*found, suspects=3) == ("full", 60)
    assert verified(*found, suspects=3, pending=1) == (("full", 40) if state == "pending" else None)
    assert verified(*found, suspects=3, drifted=1) is None
    # a repair has removed suspects since: they may have been its own
    assert verified(*found, suspects=2) == (("full", 40) if state == "pending" else None)
    assert verified(full(state, 60, "crm"), suspects=3) is None
    # what the account did not see of it is in no record
    assert verified(replace(found[0], has_gap=True), suspects=3) is None


def test_the_end_is_a_time() -> None:
    page = DatabasePage((DatabaseRecord("a", 0, 2, RECENT),), 1, None, (), (full("clean", 60),))
    assert databases_of(page)[0].verified == LastVerification("full", None, 60, 10.0)
