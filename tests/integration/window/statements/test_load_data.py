"""LOAD DATA in statement format, from server to server: every byte of the file, every row, or an error by name."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pymysql
import pytest

from binlane.errors import DriftError, PrecheckError, StopRequestedError
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, fresh_channel

BY_STATEMENT = "SET SESSION binlog_format = STATEMENT"
TAB = b"\t"
LINES = "FIELDS TERMINATED BY ','"


@pytest.fixture(params=["mariadb", pytest.param("mysql", marks=requires_mysql)])
def loading(
    request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]
) -> Iterator[Channel]:
    """A channel of either family, whose target takes files; with two tables."""
    source, target = (request.getfixturevalue(f"{request.param}_{part}") for part in ("source", "target"))
    [(before,)] = target.query("SELECT @@global.local_infile")
    target.query("SET GLOBAL local_infile = ON")
    source.query("SET GLOBAL local_infile = ON")
    channel = fresh_channel(source, target, tmp_path, clean_servers)
    channel.source.query("CREATE DATABASE tenant_1")
    channel.source.query("CREATE TABLE tenant_1.t (id INT PRIMARY KEY, s VARCHAR(200) CHARACTER SET latin1, n INT)")
    channel.source.query("CREATE TABLE tenant_1.raw (id INT AUTO_INCREMENT PRIMARY KEY, b VARBINARY(200))")
    assert channel.run() is not None
    yield channel
    target.query(f"SET GLOBAL local_infile = {before}")


def file(folder: Path, name: str, content: bytes) -> str:
    path = folder / name
    path.write_bytes(content)
    for each in (path, folder):
        each.chmod(0o755)
    return str(path)


def load(channel: Channel, *statements: str) -> None:
    """One session in statement format; errors of the source's own are what some tests are about."""
    with (
        channel.source.connect(local_infile=True, autocommit=True, database="tenant_1") as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(BY_STATEMENT)
        for statement in statements:
            with contextlib.suppress(pymysql.err.IntegrityError):
                cursor.execute(statement)
            if statement.startswith("SET NAMES"):
                connection.encoding = statement.split()[-1]


def test_every_way_to_load_a_file_arrives_byte_for_byte(loading: Channel, tmp_path: Path) -> None:
    generator = random.Random(7)
    large = b"".join(b"%d,%s,%d\n" % (n, b"x" * generator.randrange(80), n) for n in range(1000, 31_000))
    assert len(large) > 1 << 20
    plain = file(tmp_path, "plain.csv", b"1,one,1\n2,two,2\n3,three,3\n")
    accents = file(tmp_path, "accents.csv", "4,é'\\,ü,1\n5,\\N,2\n".encode("latin-1"))
    binary = file(tmp_path, "raw.txt", bytes(sorted(set(range(256)) - set(b"\n\\\t"))) + b"\nnext\n\\0zero\n")
    duplicate = file(tmp_path, "duplicate.csv", b"50,a,1\n51,b,1\n50,c,1\n")
    target = f"INTO TABLE t CHARACTER SET latin1 {LINES}"
    load(
        loading,
        f"LOAD DATA LOCAL INFILE '{plain}' {target}",
        f"LOAD DATA INFILE '{plain}' REPLACE {target} (id, @s, n) SET s = CONCAT(@s, '!')",
        f"LOAD DATA LOCAL INFILE '{plain}' {target} IGNORE 1 LINES",
        f"LOAD DATA CONCURRENT INFILE '{duplicate}' IGNORE {target}",
        "BEGIN",
        f"LOAD DATA INFILE '{accents}' {target}",
        f"LOAD DATA LOCAL INFILE '{binary}' INTO TABLE raw CHARACTER SET binary (b)",
        # fails, and leaves nothing of it in the transaction
        f"LOAD DATA INFILE '{duplicate}' {target}",
        "INSERT INTO t VALUES (60, 'behind', 1)",
        "COMMIT",
        f"LOAD DATA INFILE '{file(tmp_path, 'large.csv', large)}' {target}",
    )
    assert loading.source.query("SELECT COUNT(*), MAX(n) FROM tenant_1.t") == [(30_008, 30_999)]
    assert loading.run() is not None
    loading.assert_equal()
    assert loading.run() is None


def test_a_session_without_backslash_escapes_loads_the_same_rows(loading: Channel, tmp_path: Path) -> None:
    """Servers log the separators with backslashes whatever the session's sql_mode is. Their own replicas then stop with
    1083, or, without an escape character, read the file as one line."""
    rows = file(tmp_path, "tabs.csv", b"1\tone\t1\n2\tt\\wo\t2\n")
    load(
        loading,
        "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES'",
        f"LOAD DATA INFILE '{file(tmp_path, 'one.csv', b'1' + TAB + b'one' + TAB + b'1')}' INTO TABLE t",
        f"LOAD DATA INFILE '{rows}' INTO TABLE t FIELDS ESCAPED BY '' (@id, s, n) SET id = @id + 10",
        f"LOAD DATA INFILE '{rows}' INTO TABLE t FIELDS TERMINATED BY 0x09 OPTIONALLY ENCLOSED BY '\\' ESCAPED BY '' "
        "LINES STARTING BY '' TERMINATED BY X'0A' IGNORE 1 LINES (@id, s, n) SET id = @id + 20, s = '\\n'",
    )
    assert loading.source.query("SELECT COUNT(*) FROM tenant_1.t") == [(4,)]
    assert loading.run() is not None
    loading.assert_equal()


def test_values_of_a_session_in_another_character_set_arrive(loading: Channel, tmp_path: Path) -> None:
    """MariaDB logs the expressions in UTF-8, and their own replicas read them in the session's character set."""
    rows = file(tmp_path, "pairs.csv", b"1\xe41\n2\xe42\n")
    load(
        loading,
        "SET NAMES latin1",
        f"LOAD DATA INFILE '{rows}' INTO TABLE t FIELDS TERMINATED BY 'ä' (id, n) SET s = CONCAT('ä', id)",
    )
    assert loading.source.query("SELECT HEX(s) FROM tenant_1.t ORDER BY id") == [("E431",), ("E432",)]
    assert loading.run() is not None
    loading.assert_equal()


def test_a_row_that_the_target_would_skip_is_an_error_and_nothing_is_written(loading: Channel, tmp_path: Path) -> None:
    """LOCAL makes a duplicate key a skipped row: on the source it was none."""
    loading.target.query("INSERT INTO tenant_1.t VALUES (2, 'stray', 0)")
    rows = file(tmp_path, "a.csv", b"1,one,1\n2,two,2\n")
    load(loading, f"LOAD DATA INFILE '{rows}' INTO TABLE t {LINES}")
    with pytest.raises(
        (DriftError, StopRequestedError), match=r"skipped 1 of 2 rows, the source none \(Duplicate entry '2'"
    ):
        loading.run()
    assert loading.target.query("SELECT * FROM tenant_1.t") == [(2, "stray", 0)]


def test_a_target_that_takes_no_files_is_named_before_anything_is_written(
    loading: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loading.target.query("SET GLOBAL local_infile = OFF")
    load(loading, f"LOAD DATA INFILE '{file(tmp_path, 'a.csv', b'1,one,1')}' INTO TABLE t {LINES}")
    assert loading.cli("run", CHANNEL) == 1
    assert "target: local_infile: expected ON, found OFF" in capsys.readouterr().err


def test_load_xml_which_servers_log_as_load_data_is_refused(
    loading: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = file(tmp_path, "a.xml", b'<list><row id="1" s="x"/></list>')
    load(loading, f"LOAD XML INFILE '{rows}' INTO TABLE t ROWS IDENTIFIED BY '<row>'")
    assert loading.cli("run", CHANNEL) == 1
    assert "LOAD XML" in capsys.readouterr().err


def test_a_file_is_read_in_the_character_set_of_the_session_s_database(loading: Channel, tmp_path: Path) -> None:
    """Where the statement names none: the log has it only if the session has set another one."""
    name = file(tmp_path, "accents.csv", "1,ä,1\n".encode())
    loading.source.query("ALTER DATABASE tenant_1 CHARACTER SET utf8mb4")
    assert loading.run() is not None
    loading.target.query("ALTER DATABASE tenant_1 CHARACTER SET latin1")
    load(loading, f"LOAD DATA INFILE '{name}' INTO TABLE tenant_1.t {LINES}")
    expected = (
        r"tenant_1: default character set: expected utf8mb4, as on the source, found latin1; .* \[default-collations\]"
    )
    with pytest.raises(PrecheckError, match=expected):
        loading.run()
    loading.target.query("ALTER DATABASE tenant_1 CHARACTER SET utf8mb4")
    assert loading.run() is not None
    assert (
        loading.target.query("SELECT s FROM tenant_1.t") == loading.source.query("SELECT s FROM tenant_1.t") == [("ä",)]
    )


def test_a_file_whose_character_set_is_known_needs_no_database_s(loading: Channel, tmp_path: Path) -> None:
    """By its statement, or by the log, which has the session's own."""
    name = file(tmp_path, "accents.csv", "ä,1\n".encode())
    loading.source.query("ALTER DATABASE tenant_1 CHARACTER SET utf8mb4")
    assert loading.run() is not None
    loading.target.query("ALTER DATABASE tenant_1 CHARACTER SET latin1")
    load(
        loading,
        f"LOAD DATA INFILE '{name}' INTO TABLE tenant_1.t CHARACTER SET utf8mb4 {LINES} (s, n) SET id = 1",
        "SET collation_database = utf8mb3_general_ci",
        f"LOAD DATA INFILE '{name}' INTO TABLE tenant_1.t {LINES} (s, n) SET id = 2",
    )
    assert loading.run() is not None
    query = "SELECT s FROM tenant_1.t ORDER BY id"
    assert loading.target.query(query) == loading.source.query(query) == [("ä",), ("ä",)]
