"""Tables that the target refuses are named before anything is written, by `doctor` and by the first copy."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from binlane.bootstrap import definition_copy
from binlane.bootstrap.definition_copy import Definition
from binlane.bootstrap.sessions import Session
from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.integration.bootstrap.conftest import either, fresh, mariadb
from tests.integration.window.conftest import CHANNEL, Channel, clean_servers, run_on

__all__ = ["clean_servers", "either", "mariadb"]

_SYSTEM: Final = (
    'DEFINITION \'PROJCS["own",GEOGCS["WGS 84",DATUM["World Geodetic System 1984",SPHEROID["WGS 84",6378137,'
    '298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.017453292519943278],AXIS["Lat",NORTH],'
    'AXIS["Lon",EAST]],PROJECTION["Popular Visualisation Pseudo Mercator"],UNIT["metre",{unit}],'
    'AXIS["X",EAST],AXIS["Y",NORTH]]\''
)
_OWN: Final = f"CREATE SPATIAL REFERENCE SYSTEM 990001 NAME 'own' {_SYSTEM.format(unit=1)}"
_OTHER: Final = f"CREATE SPATIAL REFERENCE SYSTEM 990001 NAME 'own' {_SYSTEM.format(unit=2)}"
_MYSQL: Final = (Flavor.MYSQL,)


@dataclass(frozen=True, slots=True)
class Case:
    """What makes a target refuse tables of the source."""

    on_source: tuple[str, ...]
    said: str
    on_target: tuple[str, ...] = ()
    undo: tuple[str, ...] = ()
    mend: tuple[str, ...] = ()
    flavors: tuple[Flavor, ...] = tuple(Flavor)


CASES: Final = {
    "default row format": Case(
        ("CREATE TABLE app.t (id INT PRIMARY KEY, a VARCHAR(700), KEY (a))", "CREATE TABLE app.u LIKE app.t"),
        "table app.t, table app.u: expected a target that takes it, found Index column size too large",
        ("SET GLOBAL innodb_default_row_format = COMPACT",),
        mend=("SET GLOBAL innodb_default_row_format = DYNAMIC",),
        undo=("SET GLOBAL innodb_default_row_format = DYNAMIC",),
    ),
    "required key": Case(
        ("CREATE TABLE app.t (id INT)",),
        "SET GLOBAL innodb_force_primary_key = OFF on the target, or give the table a key on the source",
        ("SET GLOBAL innodb_force_primary_key = ON",),
        mend=("SET GLOBAL innodb_force_primary_key = OFF",),
        undo=("SET GLOBAL innodb_force_primary_key = OFF",),
        flavors=(Flavor.MARIADB,),
    ),
    "tablespace": Case(
        ("CREATE TABLESPACE own ADD DATAFILE 'own.ibd'", "CREATE TABLE app.t (id INT PRIMARY KEY) TABLESPACE own"),
        "CREATE TABLESPACE of this name on the target",
        mend=("CREATE TABLESPACE own ADD DATAFILE 'own.ibd'",),
        undo=("DROP TABLE IF EXISTS app.t", "DROP TABLESPACE own"),
        flavors=_MYSQL,
    ),
    "spatial reference system of a column": Case(
        (_OWN, "CREATE TABLE app.t (id INT PRIMARY KEY, g POINT SRID 990001)"),
        "app.t.g: spatial reference system 990001: expected the source's definition, found none",
        mend=(_OWN,),
        undo=("DROP TABLE IF EXISTS app.t", "DROP SPATIAL REFERENCE SYSTEM IF EXISTS 990001"),
        flavors=_MYSQL,
    ),
    "spatial reference system of a value": Case(
        (
            _OWN,
            "CREATE TABLE app.t (id INT PRIMARY KEY, `g%:s` GEOMETRY)",
            "INSERT INTO app.t VALUES (1, ST_GeomFromText('POINT(1 2)', 990001)), (2, NULL)",
        ),
        "app.t.g%:s: spatial reference system 990001",
        mend=(_OWN,),
        undo=("DROP TABLE IF EXISTS app.t", "DROP SPATIAL REFERENCE SYSTEM IF EXISTS 990001"),
        flavors=_MYSQL,
    ),
    "spatial reference system of another definition": Case(
        (_OWN, "CREATE TABLE app.t (id INT PRIMARY KEY, g POINT SRID 990001)"),
        "found another definition",
        (_OTHER,),
        mend=(_OWN.replace("CREATE", "CREATE OR REPLACE"),),
        undo=("DROP TABLE IF EXISTS app.t", "DROP SPATIAL REFERENCE SYSTEM IF EXISTS 990001"),
        flavors=_MYSQL,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_table_that_the_target_refuses_is_named_before_the_first_write(
    name: str,
    either: Channel,
    capsys: pytest.CaptureFixture[str],
    undone: list[tuple[Channel, tuple[str, ...]]],
) -> None:
    case = CASES[name]
    if either.source.flavor not in case.flavors:
        return
    undone.append((either, case.undo))
    run_on(either.source, "CREATE DATABASE app", *case.on_source)
    run_on(either.target, *case.on_target)
    databases = either.target.query("SHOW DATABASES")
    for command in ("doctor", "bootstrap"):
        assert either.cli(command, CHANNEL) == 1
        captured = capsys.readouterr()
        assert case.said in captured.out + captured.err
        assert either.target.query("SHOW DATABASES") == databases
    run_on(either.target, *case.mend)
    assert either.cli("doctor", CHANNEL) == 0
    assert either.cli("bootstrap", CHANNEL) == 0
    assert either.target.query("SELECT COUNT(*) FROM app.t") == either.source.query("SELECT COUNT(*) FROM app.t")
    assert either.target.query("SHOW TABLES FROM binlane LIKE 'copies%%'") == []


def test_rows_too_long_for_a_strict_target_are_made_as_on_the_source(either: Channel) -> None:
    columns = ", ".join(f"c{number} CHAR(250) CHARACTER SET latin1" for number in range(40))
    run_on(
        either.source,
        "CREATE DATABASE app",
        "SET SESSION innodb_strict_mode = OFF",
        f"CREATE TABLE app.t (id INT PRIMARY KEY, {columns})",
        "INSERT INTO app.t (id, c1) VALUES (1, 'x')",
    )
    assert either.cli("doctor", CHANNEL) == 0
    assert either.cli("bootstrap", CHANNEL) == 0
    assert either.target.query("SELECT id, c1 FROM app.t") == [(1, "x")]


def test_the_state_is_made_on_a_target_whose_tables_are_compact(either: Channel) -> None:
    run_on(either.target, "DROP DATABASE IF EXISTS binlane", "SET GLOBAL innodb_default_row_format = COMPACT")
    try:
        run_on(either.source, "CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY, a VARCHAR(20))")
        assert either.cli("bootstrap", CHANNEL) == 0
    finally:
        run_on(either.target, "SET GLOBAL innodb_default_row_format = DYNAMIC")


def test_a_trigger_that_the_target_refuses_is_named_before_the_rows(
    either: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no check before it has seen it."""
    run_on(
        either.source,
        "CREATE DATABASE app",
        "CREATE TABLE app.t (id INT PRIMARY KEY, a INT)",
        "INSERT INTO app.t VALUES (1, 1)",
        "CREATE TRIGGER app.fires BEFORE INSERT ON app.t FOR EACH ROW SET NEW.a = 7",
    )
    made = definition_copy._make

    def cut(session: Session, definition: Definition) -> None:
        made(session, replace(definition, statement=definition.statement.replace(b"= 7", b"")))

    monkeypatch.setattr(definition_copy, "_make", cut)
    assert either.cli("bootstrap", CHANNEL) == 1
    assert "trigger app.fires: the server says: " in capsys.readouterr().err
    assert either.target.query("SELECT * FROM app.t") == []
    monkeypatch.undo()
    assert either.cli("bootstrap", CHANNEL) == 0
    assert either.target.query("SELECT * FROM app.t") == [(1, 1)]


def test_folders_in_the_data_directory_are_no_databases(
    request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]
) -> None:
    channel = fresh(request, Flavor.MARIADB, tmp_path, clean_servers)
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY)")
    folders = [channel.source.datadir / name for name in (".snapshot", ".ssh", "lost+found", "#rocks")]
    for folder in folders:
        folder.mkdir()
    try:
        assert len(channel.source.query("SHOW DATABASES LIKE '#mysql50#%%'")) == len(folders)
        assert channel.cli("doctor", CHANNEL) == 0
        assert channel.cli("bootstrap", CHANNEL) == 0
        run_on(channel.source, "INSERT INTO app.t VALUES (1)")
        channel.run()
        assert channel.cli("verify", CHANNEL, "--full") == 0
    finally:
        for folder in folders:
            folder.rmdir()
    assert channel.target.query("SELECT * FROM app.t") == [(1,)]
    assert channel.target.query("SHOW DATABASES LIKE '#mysql50#%%'") == []


def test_a_database_of_before_5_1_with_tables_is_told_before_a_copy_leaves_it_out(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    channel = fresh(request, Flavor.MARIADB, tmp_path, clean_servers)
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY)")
    folder = channel.source.datadir / "a-b"
    folder.mkdir()
    try:
        run_on(channel.source, "CREATE TABLE `#mysql50#a-b`.t (id INT PRIMARY KEY)")
        assert channel.cli("bootstrap", CHANNEL) == 1
        told = capsys.readouterr().err
        [todo] = re.findall("ALTER DATABASE .* UPGRADE DATA DIRECTORY NAME", told)
        run_on(channel.source, todo)
        assert channel.cli("bootstrap", CHANNEL) == 0
        assert channel.target.query("SELECT * FROM `a-b`.t") == []
    finally:
        run_on(channel.source, "DROP DATABASE IF EXISTS `a-b`")
        if folder.exists():
            run_on(channel.source, "DROP DATABASE `#mysql50#a-b`")


def test_a_table_that_takes_numbers_from_a_copied_sequence_is_not_refused(mariadb: Channel) -> None:
    run_on(
        mariadb.source,
        "CREATE DATABASE app",
        "CREATE SEQUENCE app.numbers START WITH 7",
        "CREATE TABLE app.t (id BIGINT PRIMARY KEY DEFAULT (NEXT VALUE FOR app.numbers), v INT)",
        "INSERT INTO app.t (v) VALUES (1), (2)",
    )
    assert mariadb.cli("doctor", CHANNEL) == 0
    assert mariadb.cli("bootstrap", CHANNEL) == 0
    assert mariadb.target.query("SELECT id, v FROM app.t ORDER BY id") == [(7, 1), (8, 2)]


def test_a_table_that_computes_under_the_mode_of_oracle_is_not_refused(mariadb: Channel) -> None:
    """Servers show ``concat_operator_oracle(..)`` for it, and take functions of both their schemas."""
    run_on(
        mariadb.source,
        "CREATE DATABASE app",
        "SET sql_mode = 'ORACLE'",
        "CREATE TABLE app.t (a VARCHAR(9), b VARCHAR(20) AS (a || 'x') VIRTUAL, c VARCHAR(9) DEFAULT SUBSTR('abc', 2), "
        "d VARCHAR(9) AS (REPLACE(TRIM(a), 'a', NULL)) STORED, e VARCHAR(9) AS (mariadb_schema.lpad(a, 2)) VIRTUAL)",
        "INSERT INTO app.t (a) VALUES (' a '), (NULL)",
    )
    assert mariadb.cli("bootstrap", CHANNEL) == 0
    rows = "SELECT a, b, c, d FROM app.t ORDER BY a"
    assert mariadb.target.query(rows) == mariadb.source.query(rows)
    assert mariadb.target.query("SELECT a, b FROM app.t ORDER BY a") == [(None, "x"), (" a ", " a x")]
