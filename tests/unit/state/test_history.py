"""The windows that people see."""

from __future__ import annotations

from unittest.mock import Mock

from binlane.state.records.history import read_history


def test_a_list_of_windows_has_no_start_of_any() -> None:
    """It is as large as the GTID set, and a look at a channel reads some dozen of them."""
    connection = Mock(execute=Mock(return_value=[]))
    assert read_history(connection, "c", limit=24) == ()
    [query] = connection.execute.call_args.args
    columns = {column.name for column in query.selected_columns}
    assert {"window_id", "facts", "end_gtid_set"} <= columns
    assert columns.isdisjoint({"start", "files", "end_fingerprint"})
