"""The check ``unlogged-lengths``: values whose length no log tells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from binlane.choices import OnConflict
from binlane.model import RowCounts
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.window_plan import TableCounts
from binlane.precheck.checks import CHECKS, run_checks
from binlane.schema.model import Column
from binlane.sql.requirements import UNLOGGED_LENGTH, Requirement
from tests.unit.precheck.situations import applying, schema, situation
from tests.unit.precheck.test_checks import ID, KEY, KEYS, facts, plan, table

IN_OLD_FORMAT: Final = replace(table().columns[0], name="at", data_type="time (old format)", fsp=3)
ALTERED: Final = Alterations({KEY: (3,)})


@pytest.mark.parametrize(
    ("ours", "theirs", "given", "variables", "what"),
    [
        pytest.param((IN_OLD_FORMAT,), (IN_OLD_FORMAT,), {}, {}, None, id="read-by-the-server"),
        pytest.param((IN_OLD_FORMAT,), (), {}, {}, "none on the target, at(3) on the source", id="another-format"),
        pytest.param((), (), {}, {}, "none on the target, none", id="altered-on-both-sides-since"),
        pytest.param(
            (replace(IN_OLD_FORMAT, fsp=5),), (IN_OLD_FORMAT,), {}, {}, "at(3) on the target, at(5)", id="of-one-length"
        ),
        pytest.param(None, (IN_OLD_FORMAT,), {}, {}, "no table on the source", id="not-known-on-the-source"),
        pytest.param(None, None, {"altered": ALTERED}, {}, None, id="made-by-the-window"),
        pytest.param(
            None, None, {"altered": ALTERED}, {"mysql56_temporal_format": "ON"}, "mysql56_temporal_format = ON",
            id="made-in-another-format",
        ),
        pytest.param(
            (IN_OLD_FORMAT,), (IN_OLD_FORMAT,), {"by_sql": KEYS}, {}, "statements write", id="written-by-statements"
        ),
        pytest.param(
            (IN_OLD_FORMAT,), (IN_OLD_FORMAT,), {"overwrites": True}, {}, "on_conflict = overwrite", id="compared"
        ),
    ],
)  # fmt: skip
def test_rows_of_unlogged_lengths_are_left_to_a_server_that_reads_them(
    ours: tuple[Column, ...] | None,
    theirs: tuple[Column, ...] | None,
    given: dict[str, Any],
    variables: dict[str, Any],
    what: str | None,
) -> None:
    given = dict(given)
    by_sql, overwrites = given.pop("by_sql", frozenset()), given.pop("overwrites", False)
    asked = plan(
        tables={KEY: TableCounts(read=RowCounts(1), written=RowCounts(1))},
        requirements={Requirement(UNLOGGED_LENGTH, "shop.t"): 5},
        **given,
    )
    source, target = (
        schema(*(() if columns is None else (table(columns=(ID, *columns)),))) for columns in (ours, theirs)
    )
    channel = applying(on_conflict=OnConflict.OVERWRITE if overwrites else OnConflict.STOP)
    found = run_checks(
        situation(facts(**variables), asked, target, source=source, channel=channel, by_sql=by_sql),
        {"unlogged-lengths": CHECKS["unlogged-lengths"]},
    )
    assert len(found) == (what is not None)
    assert all(str(what) in one.found for one in found)
