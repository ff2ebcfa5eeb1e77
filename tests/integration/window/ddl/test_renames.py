"""Databases with other names on the target, between real servers of both families."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from binlane.errors import DriftError, PlanError, PrecheckError
from binlane.orchestration import steps
from binlane.orchestration.commands.verify import verify_channel
from binlane.orchestration.plan_file import read_plan
from binlane.orchestration.request import WindowRequest
from binlane.verify.outcome import Options
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import read_inputs
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.servers import PrivateServer, private_server
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.integration.window.control.test_stop import apply_all, planned

RENAME = '[rename]\n"tenant_*" = "tenants_dr_*"\ntenant = "tenants_main"\n'
TABLES = (
    "CREATE DATABASE {0}1",
    "CREATE DATABASE {0}2",
    "CREATE DATABASE tenantless",
    "CREATE TABLE {0}1.t (id INT PRIMARY KEY, n INT, UNIQUE (n))",
    "CREATE TABLE {0}1.parent (id INT PRIMARY KEY)",
    "CREATE TABLE {0}2.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES {0}1.parent (id))",
    "CREATE TABLE tenantless.t (id INT PRIMARY KEY, n INT)",
)
ROWS = (
    "INSERT INTO tenant_1.t VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
    "BEGIN",
    "INSERT INTO tenant_1.parent VALUES (1), (2)",
    "INSERT INTO tenant_2.child VALUES (1, 1), (2, 2)",
    "INSERT INTO tenantless.t VALUES (1, 1)",
    "COMMIT",
    "UPDATE tenant_1.t SET n = 10 WHERE id = 1",
    "DELETE FROM tenant_1.t WHERE id = 2",
    "DELETE FROM tenant_2.child WHERE id = 2",
    "DELETE FROM tenant_1.parent WHERE id = 2",
    "UPDATE tenantless.t SET n = 5",
)
WAYS = [
    pytest.param('reduce = "off"\n', "", id="off"),
    pytest.param('reduce = "block"\n', "", id="block"),
    pytest.param('reduce = "window"\n', "", id="window"),
    pytest.param("", 'writer = "sql"\n', id="sql"),
]


@pytest.fixture(params=["mariadb", pytest.param("mysql", marks=requires_mysql)])
def family(request: pytest.FixtureRequest, channel_of: ChannelOf) -> Channel:
    """A channel with other names between two servers of one family, which have the same tables."""
    channel = channel_of(request.param, request.param)
    source, target = channel.source, channel.target
    run_on(source, *(each.format("tenant_") for each in TABLES), log=False)
    run_on(target, *(each.format("tenants_dr_") for each in TABLES), log=False)
    channel.write_channel(RENAME)
    return channel


MADE = (
    "CREATE DATABASE tenant_3",
    "CREATE DATABASE `tenant`",
    "CREATE TABLE tenant_3.made (id INT PRIMARY KEY, n INT, note VARCHAR(60) DEFAULT 'tenant_3.x')",
    "USE tenant_3",
    "CREATE TABLE child (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES tenant_1.parent (id))",
    "CREATE TRIGGER noted BEFORE INSERT ON made FOR EACH ROW SET NEW.note = CONCAT(NEW.note, '!')",
    "CREATE PROCEDURE tenant_3.fill(x INT) INSERT INTO made (id, n) VALUES (x, x)",
    "CREATE VIEW tenant_3.seen AS SELECT made.id, t.n FROM tenant_3.made JOIN tenant_1.t ON t.id = made.id",
    "SET SESSION binlog_format = STATEMENT",
    "INSERT INTO made (id, n, note) VALUES (1, 1, 'tenant_3.made'), (2, 2, '`tenant_1`.t'), (3, 3, 'x')",
    "BEGIN",
    "INSERT INTO tenant_1.parent VALUES (7), (8) /* tenant_1.t */",
    "INSERT INTO tenant_3.child SELECT parent.id FROM tenant_1.parent WHERE parent.id > 7",
    "UPDATE tenantless.t SET n = 6 WHERE id IN (SELECT id FROM `tenant_3`.`made`)",
    "COMMIT",
    "CALL fill(9)",
    "UPDATE tenant_3.made SET tenant_3.made.n = 30 WHERE id = 3",
    "SET SESSION binlog_format = ROW",
    "ALTER TABLE tenant_3.made ADD extra INT DEFAULT 4",
    "INSERT INTO made (id, n) VALUES (10, 10)",
    "CREATE TABLE moved LIKE tenant_1.t",
    "INSERT INTO moved VALUES (1, 1)",
    "RENAME TABLE moved TO `tenant`.here",
    "INSERT INTO `tenant`.here VALUES (2, 2)",
    "CREATE DATABASE tenant_4",
    "CREATE TABLE tenant_4.gone (id INT)",
    "DROP DATABASE tenant_4",
    "CREATE TABLE tenant_1.empty_again (id INT PRIMARY KEY)",
    "INSERT INTO tenant_1.empty_again VALUES (1)",
    "TRUNCATE tenant_1.empty_again",
)


def same(channel: Channel) -> None:
    for ours, theirs in (
        ("tenant_1.t", "tenants_dr_1.t"),
        ("tenant_1.parent", "tenants_dr_1.parent"),
        ("tenant_2.child", "tenants_dr_2.child"),
        ("tenantless.t", "tenantless.t"),
    ):
        expected = channel.source.query(f"SELECT * FROM {ours} ORDER BY id")
        assert channel.target.query(f"SELECT * FROM {theirs} ORDER BY id") == expected


@pytest.mark.parametrize(("blocks", "apply"), WAYS)
def test_rows_arrive_under_the_new_names_and_verify_agrees(family: Channel, blocks: str, apply: str) -> None:
    family.write_channel(apply + RENAME, blocks=blocks)
    run_on(family.source, *ROWS)
    assert family.run() is not None
    same(family)
    assert verify_channel(family.config, family.endpoints, Options(full=True)).state == "clean"
    if not apply:
        run_on(family.target, "UPDATE tenants_dr_1.t SET n = 77 WHERE id = 1", log=False)
        found = verify_channel(family.config, family.endpoints, Options(full=False))
        assert [(str(one.table), one.key) for one in found.suspects] == [("tenants_dr_1.t", ("1",))]
        assert family.cli("verify", CHANNEL, "--repair", "--yes") == 0
        same(family)


def test_statements_and_ddl_arrive_under_the_new_names(family: Channel) -> None:
    run_on(family.source, *ROWS, *MADE)
    assert family.run() is not None
    same(family)
    for ours, theirs in (
        ("tenant_3.made", "tenants_dr_3.made"),
        ("tenant_3.child", "tenants_dr_3.child"),
        ("tenant_3.seen", "tenants_dr_3.seen"),
        ("tenant.here", "tenants_main.here"),
        ("tenant_1.empty_again", "tenants_dr_1.empty_again"),
    ):
        expected = family.source.query(f"SELECT * FROM {ours} ORDER BY id")
        assert family.target.query(f"SELECT * FROM {theirs} ORDER BY id") == expected
    [(note,)] = family.target.query("SELECT note FROM tenants_dr_3.made WHERE id = 1")
    assert note == "tenant_3.made!"
    found = {name for (name,) in family.target.query("SHOW DATABASES") if name.startswith("tenant")}
    assert found == {"tenants_dr_1", "tenants_dr_2", "tenants_dr_3", "tenants_main", "tenantless"}
    [key] = family.target.query(
        "SELECT unique_constraint_schema FROM information_schema.referential_constraints "
        "WHERE constraint_schema = 'tenants_dr_3'"
    )
    assert key == ("tenants_dr_1",)
    assert verify_channel(family.config, family.endpoints, Options(full=False)).state == "clean"
    assert verify_channel(family.config, family.endpoints, Options(full=True)).state == "clean"


def test_statements_that_cannot_be_renamed_stop_the_window_before_its_first_write(
    family: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    run_on(
        family.source,
        *ROWS,
        "CREATE PROCEDURE tenant_1.f() DELETE FROM tenant_2.child",
    )
    assert family.cli("run", CHANNEL) == 1
    said = capsys.readouterr().err
    assert re.search(r"UnsupportedEventError: .*\.0+\d+:\d+: the body of a stored program that names tenant_2", said)
    assert family.target.query("SELECT COUNT(*) FROM tenants_dr_1.t") == [(0,)]


def test_a_database_that_is_left_out_does_not_stand_for_the_one_that_has_its_name(family: Channel) -> None:
    family.write_channel('[filter]\nexclude_databases = ["tenants_dr_*"]\n' + RENAME)
    mine = ("CREATE DATABASE tenants_dr_1", "CREATE TABLE tenants_dr_1.t (id INT PRIMARY KEY, n INT, UNIQUE (n))")
    run_on(family.source, *ROWS, *mine, "INSERT INTO tenants_dr_1.t VALUES (1, 99)")
    assert family.run() is not None
    same(family)
    run_on(family.target, "UPDATE tenants_dr_1.t SET n = 77 WHERE id = 1", log=False)
    run_on(family.source, "UPDATE tenants_dr_1.t SET n = 98 WHERE id = 1")
    found = verify_channel(family.config, family.endpoints, Options(full=True))
    assert [(str(one.table), one.state) for one in found.suspects] == [("tenants_dr_1.t", "drift")]


def test_rows_that_have_drifted_are_met_skipped_replayed_and_overwritten_by_the_new_names(
    family: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    run_on(family.source, *ROWS)
    run_on(family.target, "INSERT INTO tenants_dr_1.t VALUES (3, 33)", log=False)
    adopted = planned(family)
    with pytest.raises(DriftError, match="1062"):
        apply_all(family, adopted)
    seqno = read_plan(adopted["plan"]).first_seqno
    capsys.readouterr()
    # the log has the source's names and no column's: the window's definitions of the target have them
    assert family.cli("show", CHANNEL, str(seqno)) == 0
    assert "tenant_1.t insert id=1 n=1" in capsys.readouterr().out
    file = str(family.source.datadir / family.source.query("SHOW BINARY LOGS")[-1][0])
    for named, expected in (((), "@1=1 @2=1"), (("--channel", CHANNEL), "id=1 n=1")):
        assert family.cli("inspect", "--rows", file, *named) == 0
        assert f"tenant_1.t insert {expected}" in capsys.readouterr().out
    assert family.cli("skip", CHANNEL, "--seqno", str(seqno), "--reason", "in the way") == 0
    assert "tenants_dr_1.t: 4 inserts" in " ".join(capsys.readouterr().out.split())
    run_on(family.target, "DELETE FROM tenants_dr_1.t", "INSERT INTO tenants_dr_1.t VALUES (1, 1), (2, 2)", log=False)
    apply_all(family, adopted)
    steps.advance(family.config, family.endpoints, adopted["plan"])
    run_on(family.target, "DELETE FROM tenants_dr_1.t", log=False)
    assert family.cli("replay-skipped", CHANNEL, str(seqno)) == 0
    assert family.target.query("SELECT * FROM tenants_dr_1.t ORDER BY id") == [(1, 1), (2, 2), (3, 3), (4, 4)]

    family.write_channel('on_conflict = "overwrite"\n' + RENAME)
    run_on(family.source, "UPDATE tenant_1.t SET n = 44 WHERE id = 4", "INSERT INTO tenant_1.t VALUES (2, 22)")
    run_on(family.target, "DELETE FROM tenants_dr_1.t WHERE id = 4", log=False)
    assert family.run() is not None
    capsys.readouterr()
    assert family.cli("conflicts", CHANNEL, "--json") == 0
    assert '"database": "tenants_dr_1"' in capsys.readouterr().out
    assert family.target.query("SELECT * FROM tenants_dr_1.t WHERE id IN (2, 4) ORDER BY id") == [(2, 22), (4, 44)]


def test_a_renamed_table_with_another_key_on_the_target_is_not_reduced(family: Channel) -> None:
    run_on(family.target, "ALTER TABLE tenants_dr_1.t DROP KEY n, ADD UNIQUE other (n, id)", log=False)
    run_on(family.source, "INSERT INTO tenant_1.t VALUES (1, 1)")
    window = steps.extract(family.config, family.endpoints, WindowRequest("now"))
    assert read_inputs(WorkFolder(window["work"])).settings.not_reduced == [["tenants_dr_1", "t"]]


def test_the_plan_shows_both_names(family: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    run_on(family.source, *ROWS)
    assert family.cli("plan", CHANNEL) == 0
    said = capsys.readouterr().out
    assert re.search(r"tenant_1 +│ tenants_dr_1", said)
    assert re.search(r"tenant_2 +│ tenants_dr_2", said)
    assert re.search(r"tenants_dr_1\.t +│ +4 │ +1 │ +1 │", said)


def test_databases_that_would_become_one_and_tables_that_differ_are_named_by_the_precheck(family: Channel) -> None:
    run_on(family.source, "CREATE DATABASE tenants_dr_1", log=False)
    run_on(family.target, "ALTER TABLE tenants_dr_1.t MODIFY n BIGINT", log=False)
    run_on(family.source, *ROWS)
    with pytest.raises(PrecheckError) as refused:
        family.run()
    said = str(refused.value)
    assert 'the database tenants_dr_1 keeps its name, but "tenant_*" = "tenants_dr_*" gives such names' in said
    assert re.search(r"tenants_dr_1\.t\.n: ", said)
    assert family.target.query("SELECT COUNT(*) FROM tenants_dr_1.t") == [(0,)]


def test_databases_that_the_target_takes_for_one_are_named_by_the_precheck(
    mariadb_source: PrivateServer, clean_servers: Callable[[PrivateServer], None], tmp_path: Path
) -> None:
    clean_servers(mariadb_source)
    with private_server(tmp_path / "folding", options=["--lower-case-table-names=1"], durable=False) as target:
        channel = Channel(mariadb_source, target, tmp_path / "channel")
        channel.init()
        channel.write_channel(RENAME)
        for server, name in ((target, "tenants_dr_1"), (mariadb_source, "tenant_1"), (mariadb_source, "Tenant_1")):
            run_on(server, f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY)", log=False)
        run_on(mariadb_source, "INSERT INTO Tenant_1.t VALUES (1)", "INSERT INTO tenant_1.t VALUES (2)")
        with pytest.raises(PrecheckError, match="the databases Tenant_1 and tenant_1 would become one, tenants_dr_1"):
            channel.run()
        assert target.query("SELECT COUNT(*) FROM tenants_dr_1.t") == [(0,)]


def test_changed_names_are_refused_while_a_window_is_unfinished(family: Channel) -> None:
    run_on(family.source, *ROWS)
    window = steps.extract(family.config, family.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    steps.adopt_plan(family.config, family.endpoints, window["work"])
    family.write_channel('[rename]\n"tenant_*" = "other_*"\n')
    shutil.rmtree(window["work"])
    run_on(family.target, *(each.format("other_") for each in TABLES if "tenantless" not in each), log=False)
    try:
        with pytest.raises(PlanError, match=r"\[rename\].* put it back as it was, run, and change it afterwards"):
            steps.extract(family.config, family.endpoints, WindowRequest("now"))
    finally:
        run_on(family.target, "DROP DATABASE other_2", "DROP DATABASE other_1", log=False)
    family.write_channel(RENAME)
    assert family.run() is not None
    same(family)


def test_a_first_copy_under_other_names_is_refused(family: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    assert family.cli("bootstrap", CHANNEL, "--databases", "tenant_*") == 2
    assert "rename: expected no [rename] for a first copy" in capsys.readouterr().err
