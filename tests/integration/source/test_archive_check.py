"""A check of an archive names each fault in it, also behind others, and finds none in a whole archive."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from binlane.model import Flavor
from binlane.orchestration.commands.inspection.archive import check
from binlane.source.archive_check import ArchivedFile, check_archive
from tests.conftest import requires_mysql
from tests.damaged_archives import (
    FLUSH,
    HARMLESS,
    LOSING,
    LOSING_WITH_GTIDS,
    RESTART,
    Archive,
    bytes_of_transactions,
    recorded,
)
from tests.integration.source.continuity import put


def faults_of(files: list[ArchivedFile]) -> list[str]:
    return [fault for file in files for fault in file.faults]


@pytest.mark.parametrize("flavor", [Flavor.MARIADB, pytest.param(Flavor.MYSQL, marks=requires_mysql)])
def test_each_damage_is_named_and_nothing_else_is(flavor: Flavor, tmp_path: Path) -> None:
    archive = recorded(tmp_path / "servers", flavor, (), (FLUSH, RESTART, FLUSH, FLUSH))
    folder = tmp_path / "archive"
    _whole(archive, folder)
    for name, after in zip(archive.names[:-2], archive.names[1:], strict=False):
        for what, damage in HARMLESS.items():
            assert faults_of([*check_archive(put(damage(archive, name), folder))]) == [], (what, name)
        for what, damage in {**LOSING, **LOSING_WITH_GTIDS}.items():
            damaged = damage(archive, name)
            if what == "missing" and name == archive.names[0]:
                # an archive may begin anywhere
                continue
            files = [*check_archive(put(damaged, folder))]
            found = faults_of(files)
            assert found, (what, name)
            assert any(name in fault or after in fault for fault in found), (what, name, found)
            # the others are read all the same
            assert files[-1].transactions == len(bytes_of_transactions(archive.files[archive.names[-1]], "last")) or (
                what in ("renumbered",)
            ), (what, name)


def _whole(archive: Archive, folder: Path) -> None:
    files = [*check_archive(put(archive.files, folder))]
    assert [file.name for file in files] == archive.names
    assert [file.transactions for file in files] == [
        len(bytes_of_transactions(archive.files[name], name)) for name in archive.names
    ]
    assert [file.bytes for file in files] == [len(archive.files[name]) for name in archive.names]
    assert all(file.begun <= file.last for file in files)
    view, is_whole = check(str(folder), as_json=True)
    assert is_whole
    answer = json.loads(str(view))
    assert (answer["is_whole"], answer["next_steps"], len(answer["files"])) == (True, [], len(archive.names))


def test_faults_behind_a_fault_are_named(tmp_path: Path) -> None:
    archive = recorded(tmp_path / "servers", Flavor.MARIADB, (), (FLUSH,) * 5)
    one, two, three, four, five, six = archive.names
    files = dict(archive.files)
    files[one] = LOSING["cut inside an event"](archive, one)[one]
    files[three] = archive.others[three]
    files[four] = b"no binlog at all"
    del files[five]
    source = put(files, tmp_path / "archive")
    found = {file.name: file.faults for file in check_archive(source)}
    assert [bool(found[name]) for name in (one, two, three, four, six)] == [True, False, True, True, True]
    assert "inside an event" in found[one][0]
    assert "expected number" in found[six][0]
    view, is_whole = check(source.uri, as_json=True)
    assert not is_whole
    assert len(json.loads(str(view))["next_steps"]) >= 4
