"""Rows that no statement can write (``apply.writer = "sql"``): said with their table and the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from binlane.apply.session.connection import LaneSession
from binlane.errors import ApplyError, DriftError, TableMismatchError
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, ChannelOf, channel_of, clean_servers, run_on

__all__ = ["channel_of", "clean_servers"]


@pytest.mark.parametrize(
    ("family", "columns", "row", "why"),
    [
        ("mariadb", "p POINT NOT NULL, n INT", "(id) VALUES (1)", "a geometry that is no geometry"),
        (
            "mysql",
            "n INT, g INT AS (n + 1) STORED NOT NULL",
            "(id, n) VALUES (1, NULL)",
            r"generated column that is NOT NULL \(g\)",
        ),
    ],
)
def test_the_channel_says_so_and_writes_them_with_binlog(
    channel_of: ChannelOf, family: str, columns: str, row: str, why: str
) -> None:
    channel = channel_of(family, family)
    channel.write_channel('writer = "sql"\n')
    run_on(
        channel.source,
        "CREATE DATABASE app",
        f"CREATE TABLE app.t (id INT PRIMARY KEY, {columns})",
        "SET SESSION sql_mode = ''",
        f"INSERT IGNORE INTO app.t {row}",
    )
    with pytest.raises(TableMismatchError, match=rf"app\.t: .*{why}.*apply\.writer = .binlog."):
        channel.run()
    channel.write_channel('writer = "binlog"\n')
    assert channel.run() is not None
    channel.assert_equal()


@requires_mysql
def test_rows_without_a_value_for_a_geometry_are_written_by_binlog(channel_of: ChannelOf, tmp_path: Path) -> None:
    """MySQL's BINLOG writes them as its replica does, and then answers with an error for each such value."""
    file = tmp_path / "rows.xml"
    file.write_text('<rows><row id="1"/><row id="2"/><row id="3"/></rows>')
    for each in (file, tmp_path):
        each.chmod(0o755)
    channel = channel_of("mysql", "mysql")
    channel.write_channel('on_conflict = "overwrite"\n')
    columns = "n INT, p POINT NOT NULL, g GEOMETRY NOT NULL"
    keys = {"keyed": "id INT PRIMARY KEY", "indexed": "id INT NOT NULL, KEY (id)", "keyless": "id INT NOT NULL"}
    run_on(
        channel.source,
        "CREATE DATABASE app",
        *(f"CREATE TABLE app.{name} ({columns}, {key})" for name, key in keys.items()),
        *(f"LOAD XML INFILE '{file}' IGNORE INTO TABLE app.{name} ROWS IDENTIFIED BY '<row>'" for name in keys),
        *(f"INSERT INTO app.{name} VALUES (1, POINT(1, 2), POINT(3, 4), 9)" for name in keys),
        *(f"UPDATE app.{name} SET n = 5 WHERE id < 3" for name in keys),
        *(f"DELETE FROM app.{name} WHERE id = 2" for name in keys),
    )
    errors = LaneSession.value

    def one_more(session: LaneSession, statement: str, arguments: tuple[object, ...] = ()) -> Any:
        found = errors(session, statement, arguments)
        return found + 99 if "error_count" in statement else found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LaneSession, "value", one_more)
        with pytest.raises(ApplyError, match="1416 Cannot get geometry"):
            channel.run()
    assert channel.run() is not None
    channel.assert_equal()
    run_on(channel.target, "DELETE FROM app.keyed WHERE id = 3", log=False)
    run_on(channel.source, "UPDATE app.keyed SET n = 6")
    with pytest.raises(DriftError, match=r"app\.keyed: .*a geometry that is no geometry.*correct the target's rows"):
        channel.run()


@requires_mysql
def test_no_error_hides_behind_those_of_empty_geometries(channel_of: ChannelOf, tmp_path: Path) -> None:
    """Nor between their number and what reading each image twice would give: the server counts the refused row, too."""
    file = tmp_path / "rows.xml"
    file.write_text('<rows><row id="1"/><row id="2"/></rows>')
    for each in (file, tmp_path):
        each.chmod(0o755)
    channel = channel_of("mysql", "mysql")
    run_on(
        channel.source,
        "CREATE DATABASE app",
        "CREATE TABLE app.t (id INT PRIMARY KEY)",
        "CREATE TABLE app.g (id INT PRIMARY KEY, p POINT NOT NULL)",
        f"LOAD XML INFILE '{file}' IGNORE INTO TABLE app.g ROWS IDENTIFIED BY '<row>'",
    )
    assert channel.run() is not None
    run_on(channel.target, "INSERT INTO app.t VALUES (7)", log=False)
    run_on(channel.source, "BEGIN", "DELETE FROM app.g", "INSERT INTO app.t VALUES (7)", "COMMIT")
    before = channel.status.channel.watermark
    with pytest.raises(DriftError, match="1062 Duplicate entry"):
        channel.run()
    assert channel.status.channel.watermark == before
    assert all(each.seqno <= before.seqno for each in channel.status.positions)
    assert channel.target.query("SELECT id FROM app.g") == [(1,), (2,)]


@requires_mysql
def test_tables_with_empty_geometries_are_compared_and_what_a_repair_cannot_write_is_named(
    channel_of: ChannelOf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.xml"
    file.write_text('<rows><row id="1"/><row id="2"/></rows>')
    for each in (file, tmp_path):
        each.chmod(0o755)
    channel = channel_of("mysql", "mysql")
    run_on(
        channel.source,
        "CREATE DATABASE app",
        "CREATE TABLE app.keyed (id INT PRIMARY KEY, n INT, p POINT NOT NULL)",
        "CREATE TABLE app.keyless (id INT NOT NULL, p POINT NOT NULL)",
        *(
            f"LOAD XML INFILE '{file}' IGNORE INTO TABLE app.{name} ROWS IDENTIFIED BY '<row>'"
            for name in ("keyed", "keyless")
        ),
    )
    assert channel.run() is not None
    assert channel.cli("verify", CHANNEL, "--full") == 0
    run_on(
        channel.target,
        "UPDATE app.keyed SET n = 7, p = POINT(1, 2) WHERE id = 1",
        "DELETE FROM app.keyed WHERE id = 2",
        "DELETE FROM app.keyless WHERE id = 2",
        log=False,
    )
    capsys.readouterr()
    assert channel.cli("verify", CHANNEL, "--full") == 1
    said = capsys.readouterr().out
    assert "app.keyed, primary key id=1: " in said
    assert "app.keyed, primary key id=2: missing on the target" in said
    assert "app.keyless" in said
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 1
    assert "no statement can write" in (said := capsys.readouterr().err)
    assert "Give it a value on the source" in said
    # the step that the message names
    run_on(channel.source, "UPDATE app.keyed SET p = POINT(3, 4)", "UPDATE app.keyless SET p = POINT(3, 4)", log=False)
    run_on(channel.target, "UPDATE app.keyless SET p = POINT(3, 4)", "INSERT INTO app.keyless VALUES (2, POINT(3, 4))",
           log=False)  # fmt: skip
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 0
    channel.assert_equal()
