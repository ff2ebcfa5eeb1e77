"""Which statements are looked at for the order of rows: those with words for it, and UPDATEs of a view."""

from __future__ import annotations

import pytest

from binlane.model import TableKey
from binlane.precheck.statements.row_order import RowOrder
from binlane.schema.programs import Program
from tests.unit.precheck.situations import schema, situation

VIEW = Program(TableKey("shop", "V"), "view", "select `a` from `t` limit 1")


@pytest.mark.parametrize("settings", [{}, {"lower_case_table_names": "1"}])
def test_an_update_of_a_view_is_looked_at_by_the_view_s_own_name(settings: dict[str, str]) -> None:
    made = situation(tables=schema(settings=settings))
    vars(made).update(stored_programs=((), (VIEW,)), may_reach_programs=True)
    order = RowOrder(made)
    assert order._felt.search(b"UPDATE V SET a = 1") is not None
    assert order._felt.search(b"UPDATE other SET a = 1") is None
    assert order.view_of(TableKey("shop", "V")) is not None
    # a server with 0 has no view of that name
    assert (order.view_of(TableKey("shop", "v")) is not None) is bool(settings)
