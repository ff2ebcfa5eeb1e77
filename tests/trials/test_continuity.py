"""An archive of ten files, each pair damaged in every way: refused, or what is read is what the server wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.model import Flavor
from tests.conftest import requires_mysql
from tests.damaged_archives import ANONYMOUS, FLUSH, HARMLESS, KILL, LOSING, RESTART, recorded
from tests.integration.source.continuity import damage_everywhere

ENDS = (FLUSH, FLUSH, RESTART, FLUSH, KILL, FLUSH, RESTART, KILL, FLUSH)
SERVERS = [
    pytest.param(Flavor.MARIADB, (), id="mariadb"),
    pytest.param(Flavor.MARIADB, ("--binlog-checksum=NONE",), id="mariadb-no-checksums"),
    pytest.param(Flavor.MYSQL, (), id="mysql", marks=requires_mysql),
    pytest.param(Flavor.MYSQL, ANONYMOUS, id="mysql-anonymous", marks=requires_mysql),
]


COMPRESSED = {
    "gz": (".gz",),
    "zst": (".zst",),
    "mixed": ("", ".gz", ".zst"),
}


@pytest.mark.parametrize("suffixes", COMPRESSED.values(), ids=COMPRESSED)
@pytest.mark.parametrize("flavor", [Flavor.MARIADB, pytest.param(Flavor.MYSQL, marks=requires_mysql)])
def test_a_damaged_archive_of_compressed_files_is_refused_or_read_as_it_was_written(
    flavor: Flavor, suffixes: tuple[str, ...], tmp_path: Path
) -> None:
    archive = recorded(tmp_path / "servers", flavor, (), ENDS)
    # every pair of ends: after FLUSH, before a restart, before a crash
    counted = damage_everywhere(archive, tmp_path, archive.names[1:5], suffixes)
    assert {what.rpartition(": ")[0] for what in counted} >= {*LOSING, *HARMLESS}
    assert counted.total() > 200


@pytest.mark.parametrize(("flavor", "options"), SERVERS)
def test_a_damaged_archive_is_refused_or_read_as_it_was_written(
    flavor: Flavor, options: tuple[str, ...], tmp_path: Path
) -> None:
    archive = recorded(tmp_path / "servers", flavor, options, ENDS)
    counted = damage_everywhere(archive, tmp_path, archive.names[:-1])
    assert {what.rpartition(": ")[0] for what in counted} >= {*LOSING, *HARMLESS}
    assert counted.total() > 500
