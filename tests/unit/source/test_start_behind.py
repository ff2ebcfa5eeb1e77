"""The place behind a GTID set in another server's log."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.binlog.wire import MAGIC
from binlane.errors import SourceError
from binlane.source.archive import ArchiveSource
from binlane.source.start_position import begin
from tests.unit.binlog.cases import crc
from tests.unit.plan.logs import rows
from tests.unit.source.test_load_files import HEADER
from tests.unit.source.test_lost_sessions import head


def archive(folder: Path) -> ArchiveSource:
    """A log with the transactions 0-7-1, 0-7-2 and 0-7-9."""
    bodies = (crc(event) for number in (1, 2, 9) for event in rows(number, "a"))
    (folder / "binlog.000001").write_bytes(MAGIC + HEADER + head(0) + b"".join(bodies))
    return ArchiveSource(str(folder))


def test_what_another_source_had_put_in_is_named_with_the_place_without_it(tmp_path: Path) -> None:
    source = archive(tmp_path)
    with pytest.raises(SourceError, match=r"had got 0-3-5 without its log.* begin with `--start 0-7-2`"):
        begin(source, "0-3-5,0-7-2")
    start = begin(source, "0-7-2")
    assert (start.gtid_set, start.position.offset) == ("0-7-2", begin(source, str(start.position)).position.offset)


def test_a_place_that_the_log_does_not_have_is_named_with_what_it_has(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"the log holds 0-7-2 before .* begin at a file:offset instead"):
        begin(archive(tmp_path), "0-7-3")
