"""LOAD DATA into a table without transactions whose trigger changes one with them: the servers log its file at once,
and the statement when the session commits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from binlane.errors import UnsupportedEventError, WindowOpenError
from binlane.orchestration import steps
from binlane.orchestration.plan_file import read_plan
from binlane.orchestration.request import WindowRequest
from binlane.servers.engines import engine_of
from binlane.state.orders.stops import clear_stop, request_stop
from binlane.work.files import WorkFolder
from binlane.work.lookup import read_manifest
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, fresh_channel, run_on
from tests.integration.window.statements.test_load_data import file

pytestmark = requires_mysql

ALLOWED = "allow_nontransactional = true\nallow_unsafe = true\n"
TABLES = (
    "CREATE DATABASE tenant_1",
    "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, s VARCHAR(20)) ENGINE=MyISAM",
    "CREATE TABLE tenant_1.seen (id INT PRIMARY KEY, s VARCHAR(20)) ENGINE=InnoDB",
    "CREATE TABLE tenant_1.other (id INT PRIMARY KEY, s VARCHAR(200)) ENGINE=InnoDB",
    "CREATE TRIGGER tenant_1.tr AFTER INSERT ON tenant_1.t FOR EACH ROW INSERT INTO tenant_1.seen VALUES (NEW.id, 'x')",
)


@pytest.fixture(scope="module")
def pair(anonymous_mysql: tuple[PrivateServer, PrivateServer]) -> tuple[PrivateServer, PrivateServer]:
    """Two MySQL servers without GTIDs, with which they let nobody mix engines. MariaDB logs file and statement
    together."""
    for server in anonymous_mysql:
        server.query("SET GLOBAL local_infile = ON")
    return anonymous_mysql


@pytest.fixture
def mixed(
    pair: tuple[PrivateServer, PrivateServer], tmp_path: Path, clean_servers: Callable[[PrivateServer], None]
) -> Channel:
    """A channel with the tables on both servers, and segments of 64 KiB."""
    channel = fresh_channel(*pair, tmp_path, clean_servers)
    channel.write_channel(ALLOWED)
    run_on(channel.source, *TABLES)
    assert channel.run() is not None
    return channel


def numbers(folder: Path, first: int, count: int) -> str:
    """A statement that loads so many rows from a file."""
    lines = "".join(f"{each}\tvalue {each}\n" for each in range(first, first + count))
    return f"LOAD DATA INFILE '{file(folder, f'{first}.txt', lines.encode())}' INTO TABLE tenant_1.t"


@contextlib.contextmanager
def session(channel: Channel) -> Iterator[Callable[[str], object]]:
    """Runs statements of one session in statement format."""
    with channel.source.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = STATEMENT")
        yield cursor.execute


def plain(channel: Channel, first: int, count: int = 1) -> None:
    """So many transactions of rows, in another session."""
    run_on(
        channel.source, *(f"INSERT INTO tenant_1.other VALUES ({first + n}, REPEAT('x', 180))" for n in range(count))
    )


def test_files_and_their_statements_in_transactions_of_their_own_arrive(mixed: Channel, tmp_path: Path) -> None:
    with session(mixed) as one, session(mixed) as other:
        one(numbers(tmp_path, 1, 3))
        # larger than a segment
        one(numbers(tmp_path, 1000, 20_000))
        plain(mixed, 1000, 100)
        one("BEGIN")
        one("INSERT INTO tenant_1.other VALUES (1, 'a')")
        one(numbers(tmp_path, 100, 2))
        other("BEGIN")
        other(numbers(tmp_path, 200, 2))
        plain(mixed, 10, 100)
        one(numbers(tmp_path, 300, 1))
        one("UPDATE tenant_1.t SET s = 'changed' WHERE id = 100")
        one("COMMIT")
        other("COMMIT")
        plain(mixed, 500, 400)
    window = steps.extract(mixed.config, mixed.endpoints, WindowRequest("now"))
    first, second, *_ = read_manifest(WorkFolder(window["work"])).segments
    assert first.transactions == 4
    assert second.bytes > (65_536 + 10_000), "the second segment would have ended between a file and its statement"
    mixed.go_on(window)
    mixed.assert_equal()
    assert mixed.target.query("SELECT COUNT(*) FROM tenant_1.seen") == [(20_008,)]


def test_a_window_ends_before_a_file_whose_statement_is_not_logged(mixed: Channel, tmp_path: Path) -> None:
    with session(mixed) as one:
        plain(mixed, 1)
        one("BEGIN")
        one(numbers(tmp_path, 1, 3))
        plain(mixed, 2)
        assert mixed.run() is not None
        assert mixed.target.query("SELECT id FROM tenant_1.other") == [(1,)]
        with pytest.raises(WindowOpenError, match="a LOAD DATA whose file is logged and whose statement is not"):
            mixed.run()
        one("COMMIT")
    assert mixed.run() is not None
    mixed.assert_equal()
    assert mixed.target.query("SELECT COUNT(*) FROM tenant_1.t, tenant_1.other") == [(6,)]


def test_a_stop_between_a_file_and_its_statement_goes_on_with_the_file(mixed: Channel, tmp_path: Path) -> None:
    with session(mixed) as one:
        one("BEGIN")
        one(numbers(tmp_path, 1, 3))
        plain(mixed, 1, 3)
        one("COMMIT")
    window = steps.extract(mixed.config, mixed.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    adopted = steps.adopt_plan(mixed.config, mixed.endpoints, window["work"])
    plan, engine = read_plan(adopted["plan"]), engine_of(mixed.endpoints.target)
    request_stop(engine, CHANNEL, at=plan.first_seqno + 1)
    for lane in adopted["lanes"]:
        steps.apply_lane(mixed.config, mixed.endpoints, adopted["plan"], lane["lane"])
    assert "stopped on request" in steps.advance(mixed.config, mixed.endpoints, adopted["plan"])["note"]
    assert mixed.target.query("SELECT id FROM tenant_1.other") == [(1,)]
    clear_stop(engine, CHANNEL)
    # its log is read again from the window's beginning, not from the watermark
    WorkFolder(window["work"]).remove()
    assert mixed.run() is not None
    mixed.assert_equal()
    assert mixed.target.query("SELECT COUNT(*) FROM tenant_1.t") == [(3,)]


def test_a_statement_in_another_file_of_the_log_is_refused_before_anything_is_written(
    mixed: Channel, tmp_path: Path
) -> None:
    with session(mixed) as one:
        one("BEGIN")
        one(numbers(tmp_path, 1, 3))
        plain(mixed, 1)
        run_on(mixed.source, "FLUSH BINARY LOGS")
        one("COMMIT")
    with pytest.raises(UnsupportedEventError, match="a LOAD DATA that is not in this transaction nor, behind it, in"):
        mixed.run()
    assert mixed.target.query("SELECT id FROM tenant_1.other") == []
