"""What a source has got past its log counts as copied only if it was there before the copy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from binlane.errors import MissingLogError, PrecheckError
from binlane.model import LogPosition
from binlane.source.archive import ArchiveSource
from binlane.source.loaded_dumps import begin_copy, check_no_dump_since, loaded_dumps
from binlane.source.protocol import LogState
from tests.unit.source.test_start_behind import archive


class Loaded(ArchiveSource):
    """A log beside a server that has transactions of dumps."""

    unlogged = "5-77-1000"
    writing: tuple[int, ...] = ()

    def state(self) -> LogState:
        return replace(super().state(), unlogged=self.unlogged)

    def unlogged_sessions(self) -> tuple[int, ...]:
        return self.writing


class Loading(Loaded):
    """Connections load a dump."""

    writing = (17, 18)


class WithoutDump(Loading):
    """Connections write without the log, and no dump has set anything."""

    unlogged = ""


def test_a_dump_that_may_still_be_loaded_is_refused_with_the_connections(tmp_path: Path) -> None:
    name = archive(tmp_path).uri
    source = Loading(name)
    with pytest.raises(PrecheckError, match=r"of a dump, 5-77-1000 \(gtid_slave_pos\), found connection 17, 18: "):
        loaded_dumps(source, source.state())
    assert loaded_dumps(Loaded(name), Loaded(name).state()) == "5-77-1000"
    assert loaded_dumps(WithoutDump(name), WithoutDump(name).state()) == ""


def test_a_copy_counts_what_the_source_had_before_its_snapshot_and_nothing_else(tmp_path: Path) -> None:
    source, place = Loaded(archive(tmp_path).uri), LogPosition("binlog.000001", 4)
    start = begin_copy(source, place, "5-77-1000")
    assert start.gtid_set == "5-77-1000"
    check_no_dump_since(source, start.gtid_set)
    for had in ("", "5-77-999"):
        with pytest.raises(MissingLogError, match=r"past the source's log .* found 5-77-1000 \(gtid_slave_pos\)"):
            begin_copy(source, place, had)
        with pytest.raises(MissingLogError, match="all tables are copied anew"):
            check_no_dump_since(source, had)
