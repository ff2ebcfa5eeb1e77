"""Whether a changed filter may take what the former one left out."""

from __future__ import annotations

import pytest

from binlane.shards.selection import EVERYTHING, Selection

SCRATCH = Selection(exclude_databases=("scratch",))
MORE = [
    pytest.param(SCRATCH, EVERYTHING, id="an exclusion is gone"),
    pytest.param(SCRATCH, Selection(exclude_databases=("other",)), id="or is another one"),
    pytest.param(Selection(exclude_tables=("a.t",)), EVERYTHING, id="the same of tables"),
    pytest.param(Selection(include_databases=("a",)), Selection(include_databases=("a", "b")), id="one more"),
    pytest.param(Selection(include_tables=("a.*",)), EVERYTHING, id="everything instead of some"),
    pytest.param(SCRATCH, Selection(exclude_databases=("scratch",), folds_names=True), id="other spellings"),
    pytest.param(Selection(kinds=(("create_table", "ignore"),)), EVERYTHING, id="a kind of statements"),
]
NOT_MORE = [
    pytest.param(EVERYTHING, SCRATCH, id="an exclusion is new"),
    pytest.param(EVERYTHING, Selection(include_databases=("a",), folds_names=True), id="some instead of everything"),
    pytest.param(Selection(include_databases=("a", "b")), Selection(include_databases=("a",)), id="one less"),
    pytest.param(SCRATCH, Selection(exclude_databases=("scratch", "other")), id="one more exclusion"),
    pytest.param(Selection(kinds=(("delete", "refuse"),)), EVERYTHING, id="what was refused was not left out"),
]


@pytest.mark.parametrize(("former", "now"), MORE)
def test_more_is_taken(former: Selection, now: Selection) -> None:
    assert now.takes_more_than(former)


@pytest.mark.parametrize(("former", "now"), NOT_MORE)
def test_no_more_is_taken(former: Selection, now: Selection) -> None:
    assert not now.takes_more_than(former)
