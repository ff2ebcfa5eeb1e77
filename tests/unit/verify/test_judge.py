"""The verdict on a row that the source changes behind the watermark, for every kind of image that its log can have."""

import pytest

from binlane.schema.model import Column
from binlane.verify.judge import Proof, judge
from binlane.verify.rows.row_states import Cells, RowState, Unknown

SAME, LOST = Unknown.UNCHANGED, Unknown.LOST
COLUMNS = tuple(
    Column(name, place, kind) for place, (name, kind) in enumerate((("id", "int"), ("n", "int"), ("f", "double")), 1)
)
ROW = ("1", "5", "0.5")


@pytest.mark.parametrize(
    ("first", "source", "target", "last", "proof", "columns"),
    [
        pytest.param(None, ROW, None, None, Proof.EQUAL, (), id="inserted behind the watermark"),
        pytest.param(None, ROW, ROW, None, Proof.DIFFERS, (), id="equal to the source only now"),
        pytest.param(ROW, None, ROW, None, Proof.EQUAL, (), id="deleted behind the watermark"),
        pytest.param(ROW, ROW, None, None, Proof.DIFFERS, (), id="lacking"),
        pytest.param(ROW, ("1", "6", "0.5"), ("1", "6", "0.5"), None, Proof.DIFFERS, ("n",), id="ahead of the source"),
        pytest.param(("1", "5", "5e-1"), None, ROW, None, Proof.EQUAL, (), id="a double in another spelling"),
        pytest.param(("1", LOST, SAME), ROW, ROW, None, Proof.OPEN, (), id="changed without an image"),
        pytest.param(("1", "5", SAME), ROW, ROW, None, Proof.EQUAL, (), id="a column that stays, as it was read"),
        pytest.param(
            ("1", "5", SAME), ("1", "6", "1.5"), ROW, None, Proof.DIFFERS, ("f",), id="a drifted column stays"
        ),
        pytest.param(("1", "5", SAME), None, ROW, None, Proof.OPEN, (), id="a column that stays, of a row not read"),
        pytest.param(("1", LOST, SAME), ROW, ROW, ("1", "5", LOST), Proof.LOGGED, (), id="as the windows leave it"),
        pytest.param(("1", LOST, SAME), ROW, ROW, ("1", "4", LOST), Proof.DIFFERS, ("n",), id="not as they leave it"),
        pytest.param(("1", LOST, SAME), ROW, ROW, ("1", LOST, "0.5"), Proof.OPEN, (), id="nor do the windows show it"),
    ],
)
def test_each_verdict(
    first: RowState,
    source: tuple[str, ...] | None,
    target: tuple[str, ...] | None,
    last: Cells | None,
    proof: Proof,
    columns: tuple[str, ...],
) -> None:
    verdict = judge(COLUMNS, first, source, target, last)
    assert (verdict.proof, verdict.columns) == (proof, columns)


def test_a_row_that_the_source_had_is_never_shown_as_one_that_only_the_target_has() -> None:
    """A repair would delete it."""
    verdict = judge(COLUMNS, ("1", LOST, SAME), None, ROW, ("1", "4", LOST))
    assert verdict.source == ("1", "4", "0.5")


def test_what_the_log_lost_of_a_drifted_row_is_shown_as_it_was_read() -> None:
    assert judge(COLUMNS, ("1", LOST, "9"), ("1", "7", "0.5"), ROW).source == ("1", "7", "9")
