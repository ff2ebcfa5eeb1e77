"""Temporary tables of statement logs, from server to server: all of a life on the target, or nothing of it."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from binlane.errors import PrecheckError, WindowOpenError
from binlane.model import Flavor
from lab.servers import PrivateServer, private_server
from tests.integration.window.conftest import Channel, fresh_channel

STATEMENT = "SET SESSION binlog_format = STATEMENT"


def prepared(source: PrivateServer, target: PrivateServer, folder: Path, clean: Callable[[PrivateServer], None]) -> Any:
    channel = fresh_channel(source, target, folder, clean)
    channel.write_shard_list("tenant_1=0\ntenant_2=1\n")
    for tenant in ("tenant_1", "tenant_2"):
        channel.source.query(f"CREATE DATABASE {tenant}")
        channel.source.query(f"CREATE TABLE {tenant}.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(80))")
        channel.source.query(f"INSERT INTO {tenant}.t (v) VALUES ('one'), ('two')")
    assert channel.run() is not None
    return channel


@pytest.fixture(params=list(Flavor))
def temporary(
    request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]
) -> Channel:
    """A channel between two servers of one family, with two tenants in lanes of their own."""
    servers = [request.getfixturevalue(f"{request.param}_{part}") for part in ("source", "target")]
    found: Channel = prepared(servers[0], servers[1], tmp_path, clean_servers)
    return found


@contextlib.contextmanager
def session(channel: Channel, database: str = "tenant_1") -> Iterator[Callable[..., None]]:
    """A connection of the source that logs statements."""
    with contextlib.closing(channel.source.connect(autocommit=True, database=database)) as connection:

        def run(*statements: str) -> None:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)

        run(STATEMENT)
        yield run


def life(run: Callable[..., None], word: str) -> None:
    """Everything that a temporary table is used for: filled from a table, changed, read into a table."""
    run(
        "CREATE TEMPORARY TABLE tmp (id INT PRIMARY KEY, v VARCHAR(80))",
        "INSERT INTO tmp SELECT id, v FROM t WHERE id <= 2",
        f"UPDATE tmp SET v = CONCAT(v, ' {word}')",
        "BEGIN",
        "INSERT INTO t (v) SELECT v FROM tmp ORDER BY id",
        "COMMIT",
    )


def test_lives_of_several_connections_with_one_name_and_everything_between_them(temporary: Channel) -> None:
    with session(temporary) as one, session(temporary, "tenant_2") as other:
        life(one, "one")
        temporary.source.query("UPDATE tenant_1.t SET v = CONCAT(v, '!') WHERE id = 2")
        life(other, "other")
        one("UPDATE t JOIN tmp USING (id) SET t.v = CONCAT(t.v, ' joined')", "DROP TEMPORARY TABLE tmp")
        temporary.source.query("INSERT INTO tenant_1.t (v) VALUES ('rows between')")
        other("CREATE TEMPORARY TABLE more LIKE t", "INSERT INTO more SELECT * FROM t", "DROP TABLE tmp")
        other("INSERT INTO t (v) SELECT CONCAT(v, ' more') FROM more ORDER BY id")
    # the server drops it when the connection has ended
    wait_for_the_drop(temporary, "more")
    temporary.source.query("INSERT INTO tenant_2.t (v) VALUES ('behind')")
    assert temporary.run() is not None
    temporary.assert_equal()
    plan = temporary.status
    assert plan.window is None
    assert temporary.run() is None


def wait_for_the_drop(channel: Channel, name: str) -> None:
    """Read the log's bytes, as the server may show them in a character set that is not the connection's."""
    end = time.monotonic() + 60
    log = channel.source.datadir / channel.source.query("SHOW BINARY LOGS")[-1][0]
    while f"IF EXISTS `{name}`".encode() not in log.read_bytes():
        assert time.monotonic() < end, "the server has not dropped it"
        time.sleep(0.05)


def test_a_window_that_would_hold_nothing_but_the_head_of_a_file_before_a_table_that_is_still_there_says_so(
    temporary: Channel,
) -> None:
    """Between the watermark and the table are a ROTATE and the next file's first events, and no transaction."""
    temporary.source.query("FLUSH BINARY LOGS")
    with session(temporary) as run:
        life(run, "kept")
        with pytest.raises(WindowOpenError, match=r"temporary table tenant_1\.tmp of connection \d+ is created here"):
            temporary.run()
        run("DROP TABLE tmp")
    assert temporary.run() is not None
    temporary.assert_equal()


def test_a_window_ends_before_a_table_that_is_still_there_and_the_next_one_takes_all_of_it(temporary: Channel) -> None:
    temporary.source.query("INSERT INTO tenant_1.t (v) VALUES ('before')")
    with session(temporary) as run:
        life(run, "kept")
        temporary.source.query("INSERT INTO tenant_2.t (v) VALUES ('while')")
        assert temporary.run() is not None
        values = [value for (value,) in temporary.target.query("SELECT v FROM tenant_1.t ORDER BY id")]
        assert values == ["one", "two", "before"]
        for _ in range(2):
            with pytest.raises(
                WindowOpenError, match=r"temporary table tenant_1\.tmp of connection \d+ is created here"
            ):
                temporary.run()
        run("DROP TEMPORARY TABLE tmp")
    assert temporary.run() is not None
    temporary.assert_equal()


def test_a_create_or_replace_that_fails_behind_its_drop_ends_the_life(channel: Channel) -> None:
    """MariaDB logs the statement with its error, and no DROP (MDEV-18930)."""
    channel.source.query("CREATE DATABASE tenant_1")
    with session(channel) as run:
        run("CREATE TEMPORARY TABLE tmp (id INT)", "INSERT INTO tmp VALUES (1)")
        with pytest.raises(pymysql.err.OperationalError, match="1506"):
            run("CREATE OR REPLACE TEMPORARY TABLE tmp (id INT) PARTITION BY HASH (id)")
        run("CREATE TABLE tmp (id INT)", "INSERT INTO tmp VALUES (2)")
        assert channel.run() is not None
        channel.assert_equal()
        assert channel.target.query("SELECT id FROM tenant_1.tmp") == [(2,)]


def test_a_file_is_loaded_into_a_temporary_table_that_the_target_does_not_have(
    temporary: Channel, tmp_path: Path
) -> None:
    """LOAD DATA needs the definitions of the tables that it changes, and no target has that of a temporary one."""
    (tmp_path / "rows").write_text("7\tseven\n8\teight\n")
    with (
        allowed_files(temporary),
        contextlib.closing(
            temporary.source.connect(autocommit=True, database="tenant_1", local_infile=True)
        ) as connection,
        connection.cursor() as cursor,
    ):
        for statement in (
            STATEMENT,
            "CREATE TEMPORARY TABLE tmp (id INT PRIMARY KEY, v VARCHAR(80))",
            f"LOAD DATA LOCAL INFILE '{tmp_path}/rows' INTO TABLE tmp",
            "ALTER TABLE tmp RENAME renamed",
            f"LOAD DATA LOCAL INFILE '{tmp_path}/rows' REPLACE INTO TABLE renamed",
            "INSERT INTO t (v) SELECT MAX(v) FROM renamed",
            "DROP TEMPORARY TABLE renamed",
        ):
            cursor.execute(statement)
        assert temporary.run() is not None
    temporary.assert_equal()


@contextlib.contextmanager
def allowed_files(channel: Channel) -> Iterator[None]:
    """Clients may send files to both servers."""
    before = [server.query("SELECT @@GLOBAL.local_infile")[0][0] for server in (channel.source, channel.target)]
    for server in (channel.source, channel.target):
        server.query("SET GLOBAL local_infile = 1")
    yield
    for server, value in zip((channel.source, channel.target), before, strict=True):
        server.query(f"SET GLOBAL local_infile = {value}")


@pytest.mark.trial
def test_runs_that_are_killed_inside_a_life_lose_and_double_nothing(temporary: Channel) -> None:
    chance = random.Random(7)
    a_life_among_rows(temporary, "undisturbed")
    began = time.monotonic()
    temporary.run()
    seconds = time.monotonic() - began
    for round_ in range(3):
        a_life_among_rows(temporary, f"round {round_}")
        for _ in range(2):
            temporary.run_and_kill(chance.uniform(0.0, seconds))
        temporary.run()
        temporary.assert_equal()


def a_life_among_rows(channel: Channel, word: str) -> None:
    with session(channel) as run:
        life(run, word)
        with contextlib.closing(channel.source.connect(autocommit=True)) as connection, connection.cursor() as cursor:
            for number in range(150):
                cursor.execute(f"INSERT INTO tenant_{number % 2 + 1}.t (v) VALUES ('{number}')")
        run("INSERT INTO t (v) SELECT CONCAT(v, ' last') FROM tmp ORDER BY id", "DROP TEMPORARY TABLE tmp")


@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_crash_of_the_source_ends_the_lives_that_were_open(
    flavor: Flavor, request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]
) -> None:
    target = request.getfixturevalue(f"{flavor}_target")
    with private_server(tmp_path / "data", flavor, name="crashing") as source:

        def clean_target(server: PrivateServer) -> None:
            if server is not source:
                clean_servers(server)

        channel: Channel = prepared(source, target, tmp_path, clean_target)
        for word in ("first", "second"):
            with session(channel) as run:
                life(run, word)
                source.kill()
            source.restart()
            # the thread ids begin anew, and so do the names of its temporary tables
            channel.source.query(f"INSERT INTO tenant_1.t (v) VALUES ('behind the {word} crash')")
        assert channel.run() is not None
        channel.assert_equal()


MAKES = (
    "CREATE FUNCTION tenant_1.makes() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN "
    "CREATE TEMPORARY TABLE tenant_1.made (a INT); INSERT INTO tenant_1.made VALUES (1); "
    "RETURN (SELECT COUNT(*) FROM tenant_1.made); END"
)


def test_a_table_that_a_function_makes_is_there_until_it_is_dropped(
    mariadb_source: PrivateServer,
    mariadb_target: PrivateServer,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> None:
    """The log holds the call, the uses and the DROP, and not the CREATE. MySQL logs no such DROP."""
    channel: Channel = prepared(mariadb_source, mariadb_target, tmp_path, clean_servers)
    channel.source.query(MAKES)
    with session(channel) as run:
        run("INSERT INTO t (v) VALUES (makes())", "INSERT INTO made VALUES (2)")
        channel.source.query("INSERT INTO tenant_2.t (v) VALUES ('between')")
        run("INSERT INTO t (v) SELECT a FROM made ORDER BY a", "DROP TEMPORARY TABLE made")
        assert channel.run() is not None
        channel.assert_equal()
        run("INSERT INTO t (v) VALUES (makes())")
        # the window ends inside the table's life, which nothing tells before the DROP
        assert channel.run() is not None
        run("DROP TEMPORARY TABLE made", "INSERT INTO t (v) VALUES (makes())")
    channel.source.query("INSERT INTO tenant_2.t (v) VALUES ('behind')")
    assert channel.run() is not None
    channel.assert_equal()
    assert channel.target.query("SELECT v FROM tenant_1.t WHERE id > 2 ORDER BY id") == [
        *(("1",), ("1",), ("2",), ("1",), ("1",)),
    ]


BALANCED = (
    "CREATE FUNCTION tenant_1.counted() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN "
    "CREATE TEMPORARY TABLE counting (a INT); INSERT INTO counting VALUES (1), (2); "
    "SET @counted = (SELECT COUNT(*) FROM counting); DROP TEMPORARY TABLE counting; RETURN @counted; END"
)
DROPS = (
    "CREATE FUNCTION tenant_1.drops() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN "
    "DROP TEMPORARY TABLE made; RETURN 5; END"
)


def test_a_table_that_a_function_leaves_to_another_transaction_is_refused_before_the_first_write(
    mysql_source: PrivateServer,
    mysql_target: PrivateServer,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> None:
    """MySQL's log has the calls alone. In one block they are one transaction of the target, on one connection."""
    channel: Channel = prepared(mysql_source, mysql_target, tmp_path, clean_servers)
    for function in (MAKES, BALANCED, DROPS):
        channel.source.query(function)
    with session(channel) as run:
        run("INSERT INTO t (v) VALUES (counted())", "DO counted()", "DO counted()")
        run("INSERT INTO t (v) VALUES (makes())", "INSERT INTO t (v) VALUES (drops())")
        assert channel.run() is not None
        channel.assert_equal()
        channel.source.query("INSERT INTO tenant_2.t (v) VALUES ('before')")
        before = channel.rows_of(channel.target)
        run("DO makes()")
        # it commits by itself, so it ends the block
        channel.source.query("CREATE TABLE tenant_1.between_them (id INT PRIMARY KEY)")
        run("INSERT INTO t (v) VALUES (drops())")
    with pytest.raises(
        PrecheckError, match=r"VALUES \(drops\(\)\): .* found tenant_1\.made, .* made in seqno \d+;"
    ) as named:
        channel.run()
    assert "nothing was written" in str(named.value)
    assert "[temporary-tables]" in str(named.value)
    assert channel.rows_of(channel.target) == before


def test_a_table_that_a_function_has_made_in_an_earlier_window_is_refused_when_another_drops_it(
    mysql_source: PrivateServer,
    mysql_target: PrivateServer,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> None:
    channel: Channel = prepared(mysql_source, mysql_target, tmp_path, clean_servers)
    for function in (MAKES, DROPS):
        channel.source.query(function)
    with session(channel) as run:
        run("INSERT INTO t (v) VALUES (makes())")
        assert channel.run() is not None
        run("INSERT INTO t (v) VALUES (drops())")
    with pytest.raises(
        PrecheckError, match=r"found tenant_1\.made, which a routine or trigger has made before this window"
    ):
        channel.run()
