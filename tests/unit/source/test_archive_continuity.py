"""What binds the files of an archive without GTIDs to each other: their numbers, the server's id, and their times."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.errors import SourceIdentityError
from binlane.model import Flavor
from binlane.orchestration.commands.inspection.archive import check
from binlane.orchestration.terminal import as_text
from binlane.source.archive_check import check_archive
from binlane.source.start_position import begin
from tests.unit.source.archives import BEGUN, T, archive, behind, log_file, window

MYSQL = Flavor.MYSQL
ROTATED = BEGUN + 3600
OF_ANOTHER = "binlog.000002 was begun .* no GTIDs show .* name it in source.trusted_files"


def first(end: T = T.ROTATE) -> bytes:
    return log_file(1, (1, 2), MYSQL, closed=ROTATED, end=end)


@pytest.mark.parametrize("late", [0, 1, 60])
def test_a_rotation_writes_the_end_of_a_file_and_the_next_ones_beginning_at_once(late: int, tmp_path: Path) -> None:
    source = archive(tmp_path, first(), log_file(2, (3,), MYSQL, begun=ROTATED + late))
    assert window(source, begin(source, "oldest")).transactions == 3
    assert [(each.faults, each.is_believed) for each in check_archive(source)] == [([], False)] * 2


@pytest.mark.parametrize(
    ("begun", "transactions"),
    [
        pytest.param(ROTATED + 600, (3,), id="later"),
        pytest.param(ROTATED - 600, (3,), id="earlier"),
        pytest.param(ROTATED + 600, (), id="later, and empty"),
    ],
)
@pytest.mark.parametrize("start", ["oldest", "middle", "end"])
def test_the_next_file_of_another_server_of_the_same_id_is_refused_by_its_time(
    begun: int, transactions: tuple[int, ...], start: str, tmp_path: Path
) -> None:
    """Every MySQL server with the defaults writes binlog.000002 of server 1 without GTIDs."""
    source = archive(tmp_path, first())
    begins = {"oldest": begin(source, "oldest")}
    begins["end"] = behind(window(source, begins["oldest"]))
    # the first head that this one sees is that of the second file
    begins["middle"] = begin(source, str(begins["end"].position))
    source = archive(tmp_path, log_file(2, transactions, MYSQL, begun=begun), first=2)
    with pytest.raises(SourceIdentityError, match=OF_ANOTHER):
        window(source, begins[start])
    assert [bool(each.faults) for each in check_archive(source)] == [False, True]
    trusting = archive(tmp_path, trusted=["binlog.000002"])
    window(trusting, begins[start])


def test_a_time_that_a_session_has_set_is_in_both_events_of_its_rotation(tmp_path: Path) -> None:
    past = BEGUN - 86_400
    files = log_file(1, (1,), MYSQL, closed=past), log_file(2, (2,), MYSQL, begun=past)
    source = archive(tmp_path, *files)
    assert window(source, begin(source, "oldest")).transactions == 2


@pytest.mark.parametrize("end", [T.STOP, T.ROTATE])
def test_what_a_start_of_the_server_has_begun_is_believed_and_named(end: T, tmp_path: Path) -> None:
    source = archive(tmp_path, first(end), log_file(2, (3,), MYSQL, begun=ROTATED + 86_400, restarted=True))
    assert window(source, begin(source, "oldest")).transactions == 3
    assert [(each.faults, each.is_believed) for each in check_archive(source)] == [([], False), ([], True)]
    assert "believed: binlog.000002: behind a start of the server" in as_text(check(source.uri, as_json=False)[0])
    early = archive(tmp_path, log_file(2, (3,), MYSQL, begun=ROTATED - 600, restarted=True), first=2)
    with pytest.raises(SourceIdentityError, match=OF_ANOTHER):
        window(early, begin(early, "oldest"))


def test_gtids_bind_files_whatever_their_times_are(tmp_path: Path) -> None:
    files = (
        log_file(1, (1, 2), closed=ROTATED),
        log_file(2, (3,), begun=ROTATED + 600, before=[(7, 2)]),
        log_file(3, (4,), begun=BEGUN, restarted=True, before=[(7, 3)]),
    )
    source = archive(tmp_path, *files)
    assert window(source, begin(source, "oldest")).transactions == 4
    assert [(each.faults, each.is_believed) for each in check_archive(source)] == [([], False)] * 3
