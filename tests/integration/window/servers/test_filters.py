"""A channel's filter between real servers: what is taken is equal, what is left out is not there."""

from __future__ import annotations

import re
import shutil

import pytest

from binlane.errors import PlanError, PrecheckError
from binlane.orchestration import steps
from binlane.orchestration.commands.verify import verify_channel
from binlane.orchestration.request import WindowRequest
from binlane.plan.window_facts import RuleFacts
from binlane.servers.engines import engine_of
from binlane.state.records.history import read_snapshot
from binlane.verify.outcome import Options
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on

FILTER = '[filter]\nexclude_databases = ["audit*"]\nexclude_tables = ["tenant_?.log"]\n'
TABLES = (
    "CREATE DATABASE tenant_1",
    "CREATE DATABASE audit_1",
    "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, n INT)",
    "CREATE TABLE tenant_1.log (id INT PRIMARY KEY, n INT)",
    "CREATE TABLE tenant_1.other (id INT PRIMARY KEY, n INT)",
    "CREATE TABLE audit_1.t (id INT PRIMARY KEY, n INT)",
    "CREATE TRIGGER tenant_1.logged AFTER DELETE ON tenant_1.t FOR EACH ROW "
    "INSERT INTO tenant_1.log VALUES (OLD.id + 1000, OLD.n)",
)
ROWS = (
    "BEGIN",
    "INSERT INTO tenant_1.t VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
    "INSERT INTO tenant_1.log VALUES (1, 1), (2, 2)",
    "INSERT INTO audit_1.t VALUES (1, 1)",
    "SAVEPOINT s",
    "INSERT INTO tenant_1.other VALUES (1, 1)",
    "COMMIT",
    # rows of both tables in one statement, whichever is logged last
    "UPDATE tenant_1.t, tenant_1.log SET t.n = 10, log.n = 10 WHERE t.id = log.id",
    "UPDATE tenant_1.log, tenant_1.other SET log.n = 11, other.n = 11 WHERE log.id = other.id",
    "DELETE FROM tenant_1.t WHERE id = 2",
    "INSERT INTO audit_1.t VALUES (2, 2)",
    "INSERT INTO tenant_1.other VALUES (2, 2)",
    "DELETE FROM tenant_1.log",
)


@pytest.fixture(params=["mariadb", pytest.param("mysql", marks=requires_mysql)])
def family(request: pytest.FixtureRequest, channel_of: ChannelOf) -> Channel:
    """A channel with a filter between two servers of one family."""
    channel = channel_of(request.param, request.param)
    channel.write_channel(FILTER)
    return channel


def databases(server: PrivateServer) -> set[str]:
    return {name for (name,) in server.query("SHOW DATABASES") if name.startswith(("tenant", "audit"))}


def tables(server: PrivateServer) -> set[str]:
    return {name for (name,) in server.query("SHOW TABLES FROM tenant_1")}


@pytest.mark.parametrize("reduce", ["block", "off"])
def test_selected_tables_are_equal_and_filtered_tables_are_absent(family: Channel, reduce: str) -> None:
    family.write_channel(FILTER, blocks=f'reduce = "{reduce}"\n')
    run_on(family.source, *TABLES, *ROWS)
    done = family.run()
    assert done is not None
    assert databases(family.target) == {"tenant_1"}
    assert tables(family.target) == {"t", "other"}
    for table in ("t", "other"):
        assert family.target.query(f"SELECT * FROM tenant_1.{table} ORDER BY id") == family.source.query(
            f"SELECT * FROM tenant_1.{table} ORDER BY id"
        )
    assert family.target.query("SELECT * FROM tenant_1.t ORDER BY id") == [(1, 10), (3, 3), (4, 4)]
    assert verify_channel(family.config, family.endpoints, Options(full=True)).state == "clean"
    assert verify_channel(family.config, family.endpoints, Options(full=False)).state == "clean"
    assert family.run() is None


def test_the_plan_lists_what_each_rule_leaves_out(family: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    run_on(family.source, *TABLES, *ROWS)
    assert family.cli("plan", CHANNEL) == 0
    said = capsys.readouterr().out
    assert re.search(r'exclude_databases "audit\*" +│ +2 │ +2 │', said)
    assert re.search(r'exclude_tables "tenant_\?\.log" +│ +9 │ +1 │', said)
    accounts = {
        name: [int(number) for number in numbers.split("│")]
        for name, numbers in re.findall(r"│ (tenant_1\.\w+) +│((?: +\d+ │){5} +\d+) │", said)
    }
    assert set(accounts) == {"tenant_1.t", "tenant_1.log", "tenant_1.other"}
    assert accounts["tenant_1.t"][3] == 0
    assert accounts["tenant_1.log"][4:] == [0, 0]
    for *read, left_out, folded, written in accounts.values():
        assert sum(read) == left_out + folded + written > 0
    family.run()
    [window] = read_snapshot(engine_of(family.endpoints.target), CHANNEL).history
    facts = window.facts
    assert facts is not None
    assert facts.read == facts.filtered + facts.folded + facts.written
    assert facts.filtered > 0
    assert facts.rules == (
        RuleFacts('exclude_databases "audit*"', 2, 2),
        RuleFacts('exclude_tables "tenant_?.log"', 9, 1),
    )


def test_a_trigger_on_a_table_that_is_left_out_stays_when_the_source_drops_one_of_its_name(family: Channel) -> None:
    """DROP TRIGGER names no table: the source's may be on a table that is left out, or on one that is taken."""
    run_on(family.source, *TABLES)
    family.run()
    own = "CREATE TRIGGER tenant_1.{} BEFORE INSERT ON tenant_1.log FOR EACH ROW SET NEW.n = {}"
    family.target.query("CREATE TABLE tenant_1.log (id INT PRIMARY KEY, n INT)")
    for name in ("counts", "stamps"):
        family.target.query(own.format(name, 2))
        run_on(family.source, own.format(name, 1))
    run_on(family.source, "INSERT INTO tenant_1.t VALUES (1, 1)", "DROP TRIGGER tenant_1.counts")
    run_on(family.source, "USE tenant_1", "DROP TRIGGER IF EXISTS stamps", "DROP TRIGGER logged")
    family.run()
    assert sorted(
        family.target.query("SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = 'tenant_1'")
    ) == [("counts",), ("stamps",)]
    assert family.target.query("SELECT * FROM tenant_1.t") == [(1, 1)]


def test_a_grant_on_a_view_that_the_target_lacks_is_named_before_the_window(
    family: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    """A view over a table that is left out."""
    run_on(family.source, *TABLES)
    family.run()
    run_on(family.source, "CREATE VIEW tenant_1.seen AS SELECT id FROM tenant_1.log", log=False)
    run_on(family.source, "CREATE USER reader@localhost", "GRANT SELECT ON tenant_1.seen TO reader@localhost")
    try:
        assert family.cli("run", CHANNEL) == 1
        said = capsys.readouterr().err
        assert "tenant_1.seen on the target, to grant on it, found neither a table nor a view" in said
        assert family.target.query("SELECT COUNT(*) FROM mysql.user WHERE user = 'reader'") == [(0,)]
        family.target.query("CREATE VIEW tenant_1.seen AS SELECT 1 AS id")
        family.run()
        for server in (family.source, family.target):
            assert "GRANT SELECT ON `tenant_1`.`seen`" in str(server.query("SHOW GRANTS FOR reader@localhost"))
    finally:
        for server in (family.source, family.target):
            server.query("DROP USER IF EXISTS reader@localhost")


def test_a_window_of_nothing_but_what_is_left_out_moves_the_watermark(family: Channel) -> None:
    run_on(family.source, *TABLES)
    family.run()
    before = family.status.channel.watermark.seqno
    run_on(family.source, "INSERT INTO audit_1.t VALUES (5, 5)", "INSERT INTO tenant_1.log VALUES (5, 5)")
    done = family.run()
    assert done is not None
    assert done["rows"] == 0
    assert family.status.channel.watermark.seqno == before + 2


def test_a_statement_over_both_kinds_stops_the_window_before_its_first_write(
    family: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    run_on(family.source, *TABLES, *ROWS)
    family.run()
    run_on(
        family.source,
        "INSERT INTO tenant_1.t VALUES (50, 50)",
        "DROP TABLE tenant_1.other, audit_1.t",
    )
    capsys.readouterr()
    assert family.cli("run", CHANNEL) == 1
    said = capsys.readouterr().err
    assert "UnsupportedEventError" in said
    assert re.search(
        r"\.0+\d+:\d+: QUERY: a statement over tenant_1.other, which the filter takes, and audit_1.t", said
    )
    assert family.target.query("SELECT COUNT(*) FROM tenant_1.t WHERE id = 50") == [(0,)]
    # rules that leave out all that it names count for the window that could not be planned
    family.write_channel(FILTER.replace(".log", ".[lo]*"))
    assert family.run() is not None
    assert family.target.query("SELECT COUNT(*) FROM tenant_1.t WHERE id = 50") == [(1,)]
    assert tables(family.target) == {"t", "other"}


@pytest.mark.parametrize(
    ("child", "parent", "action", "refused"),
    [
        ("tenant_1.child", "tenant_1.log", "ON DELETE CASCADE", True),
        ("tenant_1.child", "audit_1.t", "ON UPDATE SET NULL", True),
        ("tenant_1.child", "audit_1.t", "", False),
        ("audit_1.child", "tenant_1.t", "ON DELETE CASCADE", False),
    ],
)
def test_a_foreign_key_that_changes_rows_behind_the_filter_s_back_is_named(
    family: Channel, child: str, parent: str, action: str, refused: bool
) -> None:
    key = f"CREATE TABLE {child} (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES {parent} (id) {action})"
    family.on_both(*TABLES, key)
    family.write_channel(FILTER)
    run_on(family.source, "INSERT INTO tenant_1.t VALUES (50, 50)")
    if refused:
        with pytest.raises(
            PrecheckError, match=rf"{child}: foreign key .*{parent}, left out.*take both tables or none"
        ):
            family.run()
    else:
        assert family.run() is not None
    assert family.target.query("SELECT COUNT(*) FROM tenant_1.t") == [(int(not refused),)]


def test_a_row_whose_parent_the_filter_leaves_out_is_refused_before_the_first_write(family: Channel) -> None:
    key = "CONSTRAINT k FOREIGN KEY (p) REFERENCES audit_1.t (id)"
    family.on_both(*TABLES, f"CREATE TABLE tenant_1.child (id INT PRIMARY KEY, p INT NOT NULL, {key})")
    family.write_channel(FILTER)
    for number in (1, 2):
        run_on(family.source, f"INSERT INTO audit_1.t VALUES ({number}, 1)")
        run_on(family.source, f"INSERT INTO tenant_1.child VALUES ({number}, {number})")
        if number == 1:
            with pytest.raises(PrecheckError, match=r"tenant_1\.child: foreign key k: .*audit_1\.t, left out"):
                family.run()
            run_on(family.target, "ALTER TABLE tenant_1.child DROP FOREIGN KEY k", log=False)
        assert family.run() is not None
    assert family.target.query("SELECT * FROM tenant_1.child") == [(1, 1), (2, 2)]
    assert verify_channel(family.config, family.endpoints, Options(full=True)).state == "clean"


@requires_mysql
def test_a_key_that_a_copy_has_left_out_is_no_drift_between_the_families(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "mysql")
    channel.on_both(*TABLES, "CREATE TABLE tenant_1.child (id INT PRIMARY KEY, p INT, KEY k (p), KEY o (id))")
    keys = ("FOREIGN KEY (p) REFERENCES audit_1.t (id)", "CONSTRAINT o FOREIGN KEY (id) REFERENCES tenant_1.t (id)")
    run_on(channel.source, *(f"ALTER TABLE tenant_1.child ADD {key}" for key in keys), log=False)
    channel.write_channel(FILTER)
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (1, 1)")
    assert channel.run() is not None
    found = verify_channel(channel.config, channel.endpoints, Options(full=True))
    assert [each.what for each in found.differences if "foreign" in each.what] == ["foreign key `o`"]


def test_a_parent_that_somebody_else_keeps_on_the_target_stops_no_window(family: Channel) -> None:
    family.on_both(
        *TABLES, "CREATE TABLE tenant_1.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES audit_1.t (id))"
    )
    family.write_channel(FILTER)
    family.on_both("INSERT INTO audit_1.t VALUES (1, 1)")
    run_on(family.source, "INSERT INTO tenant_1.child VALUES (1, 1)")
    assert family.run() is not None
    assert family.target.query("SELECT * FROM tenant_1.child") == [(1, 1)]


@pytest.mark.parametrize("binlog_format", ["ROW", "STATEMENT"])
def test_a_window_of_the_parent_s_database_alone_is_refused_for_a_child_in_another_one(
    family: Channel, binlog_format: str
) -> None:
    family.on_both(
        *TABLES,
        "CREATE TABLE tenant_1.child (id INT PRIMARY KEY, p INT,"
        " FOREIGN KEY (p) REFERENCES audit_1.t (id) ON DELETE CASCADE)",
        "INSERT INTO audit_1.t VALUES (1, 1)",
        "INSERT INTO tenant_1.child VALUES (1, 1)",
    )
    family.write_channel(FILTER)
    run_on(family.source, "USE audit_1", f"SET binlog_format = {binlog_format}", "DELETE FROM audit_1.t WHERE id = 1")
    with pytest.raises(PrecheckError, match=r"tenant_1\.child: foreign key .*audit_1\.t, left out"):
        family.run()
    assert family.target.query("SELECT COUNT(*) FROM tenant_1.child") == [(1,)]
    assert family.cli("doctor", CHANNEL) == 1


def test_a_changed_filter_is_refused_while_a_window_is_unfinished(family: Channel) -> None:
    run_on(family.source, *TABLES)
    family.run()
    run_on(family.source, "INSERT INTO tenant_1.t VALUES (60, 60)", "INSERT INTO tenant_1.other VALUES (60, 60)")
    window = steps.extract(family.config, family.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    steps.adopt_plan(family.config, family.endpoints, window["work"])
    family.write_channel(FILTER.replace("log", "other"))
    shutil.rmtree(window["work"])
    with pytest.raises(PlanError, match=r"expected \[filter\].* put it back as it was, run, and change it afterwards"):
        steps.extract(family.config, family.endpoints, WindowRequest("now"))
    family.write_channel(FILTER)
    assert family.run() is not None
    assert family.target.query("SELECT * FROM tenant_1.other WHERE id = 60") == [(60, 60)]


def test_kinds_that_are_ignored_leave_the_target_s_tables_and_rows(family: Channel) -> None:
    kinds = 'drop = "ignore"\ntruncate = "ignore"\ndelete = "ignore"\ndrop_database = "ignore"\naccounts = "ignore"\n'
    family.write_channel(f"[filter.kinds]\n{kinds}")
    run_on(family.source, *TABLES, *ROWS)
    family.run()
    run_on(
        family.source,
        "CREATE USER test_ignored",
        "TRUNCATE audit_1.t",
        "DELETE FROM tenant_1.t WHERE id = 1",
        "UPDATE tenant_1.t SET n = 77 WHERE id = 3",
        "DROP TABLE tenant_1.other",
        "DROP DATABASE audit_1",
    )
    assert family.run() is not None
    assert databases(family.target) == {"tenant_1", "audit_1"}
    assert tables(family.target) == {"t", "log", "other"}
    assert family.target.query("SELECT id, n FROM tenant_1.t ORDER BY id") == [(1, 10), (2, 10), (3, 77), (4, 4)]
    assert family.target.query("SELECT COUNT(*) FROM audit_1.t") == [(2,)]
    assert family.target.query("SELECT COUNT(*) FROM mysql.user WHERE user = 'test_ignored'") == [(0,)]


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO tenant_1.t VALUES (1, 1) ON DUPLICATE KEY UPDATE n = n + 1",
        "INSERT INTO tenant_1.other SELECT COUNT(*), 1 FROM tenant_1.t",
    ],
)
def test_a_statement_that_meets_rows_which_the_filter_keeps_is_refused(family: Channel, sql: str) -> None:
    family.on_both(*TABLES, "INSERT INTO tenant_1.t VALUES (1, 56)")
    family.write_channel('[filter.kinds]\ndelete = "ignore"\n')
    run_on(
        family.source,
        "SET SESSION binlog_format = STATEMENT",
        "DELETE FROM tenant_1.t WHERE id = 1",
        "INSERT INTO tenant_1.t VALUES (2, 2)",
    )
    assert family.run() is not None
    run_on(family.source, "SET SESSION binlog_format = STATEMENT", sql)
    with pytest.raises(PrecheckError, match=r'where rows may be kept \(kinds\.delete = "ignore"\); .*\[kept-rows\]'):
        family.run()
    family.write_channel('allow_unsafe = true\n[filter.kinds]\ndelete = "ignore"\n')
    assert family.run() is not None


@pytest.mark.parametrize(
    ("kind", "sql", "where"),
    [
        ("truncate", "TRUNCATE tenant_1.other", "QUERY: the filter refuses it"),
        ("ddl", "ALTER TABLE tenant_1.t ADD x INT", "QUERY: the filter refuses it"),
        ("delete", "DELETE FROM tenant_1.other", r"DELETE_ROWS\w*: rows of tenant_1\.other: the filter refuses it"),
    ],
)
def test_kinds_that_are_refused_stop_the_window_before_its_first_write(
    family: Channel, capsys: pytest.CaptureFixture[str], kind: str, sql: str, where: str
) -> None:
    family.on_both(*TABLES)
    family.write_channel(f'[filter.kinds]\n{kind} = "refuse"\n')
    run_on(family.source, "INSERT INTO tenant_1.other VALUES (70, 70)", sql)
    capsys.readouterr()
    assert family.cli("run", CHANNEL) == 1
    assert re.search(rf"UnsupportedEventError: .*\.0+\d+:\d+: {where}", capsys.readouterr().err)
    assert family.target.query("SELECT COUNT(*) FROM tenant_1.other") == [(0,)]
