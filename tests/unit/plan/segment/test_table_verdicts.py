"""The filter's verdicts about a segment's tables are those that it has for each table."""

from __future__ import annotations

import pytest

from binlane.binlog.table_map import OptionalMetadata, TableMap
from binlane.choices import FilterKind, FilterPolicy
from binlane.model import TableKey
from binlane.plan.segment.filter import TableVerdicts
from binlane.shards.selection import EVERYTHING, OWN, Selection

KEYS = [TableKey(*name) for name in (("shop", "t"), ("shop", "u"), ("binlane", "t"), ("BINLANE", "t"), ("mail", "t"))]
IGNORES_DELETES = Selection(kinds=((FilterKind.DELETE, FilterPolicy.IGNORE),))


@pytest.mark.parametrize(
    "selection",
    [
        pytest.param(EVERYTHING, id="no-rules"),
        pytest.param(Selection(folds_names=True), id="names-are-folded"),
        pytest.param(Selection(allowed=("SHUTDOWN",)), id="only-of-statements"),
        pytest.param(IGNORES_DELETES, id="of-deletes"),
        pytest.param(Selection(exclude_tables=("shop.u",)), id="of-tables"),
        pytest.param(Selection(exclude_databases=("mail",), folds_names=True), id="of-databases"),
    ],
)
def test_a_segment_s_tables_are_judged_as_each_of_them(selection: Selection) -> None:
    verdicts = TableVerdicts(selection, [_logged(key) for key in KEYS])
    assert list(verdicts.all_rows) == [selection.table(key) for key in KEYS]
    assert list(verdicts.deletes) == [selection.rows(key, is_delete=True) for key in KEYS]
    assert verdicts.all_rows[2] == OWN, "binlane's own tables are never taken"


def _logged(key: TableKey) -> TableMap:
    names = key.database.encode(), key.table.encode()
    return TableMap(1, 0, key.database, key.table, *names, b"\x03", (0,), b"\x00", OptionalMetadata())
