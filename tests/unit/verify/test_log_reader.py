"""The changes of a window's segments: what is only the frame of a transaction, and what is a statement."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.errors import PlanError
from binlane.model import Flavor, TableKey
from binlane.schema.model import Schema
from binlane.verify.changes import Changes
from binlane.verify.log_reader import ChangeReader
from binlane.work import files
from binlane.work.files import WorkFolder
from tests.unit.plan.logs import manifest_of, rows, segment_of, statements

NOTHING = Schema(Flavor.MARIADB, "10.11.14-MariaDB")


def changes(tmp_path: Path, *transactions: tuple[bytes, ...]) -> Changes:
    folder = WorkFolder(str(tmp_path))
    data, segment = segment_of(transactions)
    with folder.create(segment.name) as file:
        file.write(data)
    folder.write_once(files.MANIFEST, manifest_of([segment]).to_json())
    return ChangeReader(NOTHING, NOTHING, {}).read_windows([folder])


def test_a_segment_that_was_replaced_by_another_of_its_size_is_refused(tmp_path: Path) -> None:
    """Its events are whole, and its keys are not those that the window wrote."""
    folder = WorkFolder(str(tmp_path))
    (data, segment), (other, another) = segment_of([rows(1, "a")]), segment_of([rows(1, "b")])
    assert another.bytes == segment.bytes
    with folder.create(segment.name) as file:
        file.write(other)
    folder.write_once(files.MANIFEST, manifest_of([segment]).to_json())
    with pytest.raises(PlanError, match="expected BLAKE3"):
        ChangeReader(NOTHING, NOTHING, {}).read_windows([folder])
    assert data != other


@pytest.mark.parametrize("frame", ["BEGIN", "COMMIT", "ROLLBACK"])
def test_the_frame_of_a_transaction_changes_nothing(frame: str, tmp_path: Path) -> None:
    assert changes(tmp_path, statements(1, frame), rows(2, "a")).tables == {TableKey("a", "t")}


@pytest.mark.parametrize("frame", ["BEGIN", "COMMIT", "ROLLBACK"])
def test_a_statement_that_ends_like_a_frame_is_a_statement(frame: str, tmp_path: Path) -> None:
    found = changes(tmp_path, statements(1, f"DELETE FROM b.gone # \0{frame}"), rows(2, "a"))
    assert found.everything or TableKey("b", "gone") in found.tables
