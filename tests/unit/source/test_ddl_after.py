"""What statements behind a window have altered: definitions, not every table that a statement names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from binlane.binlog.format_description import FormatDescription
from binlane.binlog.vector.frames import frame
from binlane.model import TableKey
from binlane.source import ddl_after
from binlane.source.ddl_after import altered_behind
from binlane.source.identity import Start
from binlane.source.protocol import EventSource
from tests.unit.plan.logs import alone

FORMAT = FormatDescription("10.11.6-MariaDB")


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("ALTER TABLE u ADD c INT", {"u"}),
        ("CREATE TABLE t LIKE u", {"t"}),
        ("CREATE TABLE t AS SELECT * FROM u", {"t"}),
        ("CREATE TEMPORARY TABLE t AS SELECT * FROM u", {"t"}),
        ("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES u (a))", {"t"}),
        ("CREATE VIEW v AS SELECT * FROM u", {"v"}),
        ("DROP TRIGGER tr", {"tr"}),
        ("ANALYZE TABLE u", set()),
        ("OPTIMIZE TABLE u", set()),
        ("TRUNCATE u", set()),
        ("DROP FUNCTION IF EXISTS f", set()),
        ("ALTER TABLE u COMMENT 'open", {"t", "tr", "u", "v"}),
    ],
)
def test_a_table_that_is_only_named_is_compared(sql: str, names: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    event = frame(alone(1, sql)[1], 0, FORMAT.checksum.length).raw(0)
    monkeypatch.setattr(ddl_after, "_statements", lambda *_: iter([(event, FORMAT, "log.1")]))
    found = altered_behind(cast(EventSource, SimpleNamespace(name="source")), cast(Start, None))
    assert found is not None
    assert {name for name in ("t", "tr", "u", "v") if found.names(TableKey("a", name))} == names
