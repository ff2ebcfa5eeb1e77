"""The windows that people see."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from binlane.state.records.history import read_history, read_past_window


def test_a_list_of_windows_has_no_start_of_any() -> None:
    """It is as large as the GTID set, and a look at a channel reads some dozen of them."""
    connection = Mock(execute=Mock(return_value=[]))
    assert read_history(connection, "c", limit=24) == ()
    [query] = connection.execute.call_args.args
    columns = {column.name for column in query.selected_columns}
    assert {"window_id", "facts", "end_gtid_set", "files"} <= columns
    assert columns.isdisjoint({"start", "end_fingerprint"})


def test_a_past_window_has_the_digests_of_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them a page would parse whatever lies in the work folder."""
    monkeypatch.setattr("binlane.state.records.history.read_channel", Mock())
    row = Mock(totals=None, facts=None, finished_at=None, files='{"manifest.json": "ab"}')
    row.created_at = "2026-11-20 14:05:00"
    found = read_past_window(Mock(**{"execute.return_value.one_or_none.return_value": row}), "c", "w")
    assert found is not None
    assert found.work.digests == {"manifest.json": "ab"}
