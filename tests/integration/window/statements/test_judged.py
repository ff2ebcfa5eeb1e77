"""What the target's parser refuses stops the window before its first write, with all findings at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pymysql.err import OperationalError

from binlane.errors import BinlaneError, DriftError, PrecheckError
from binlane.model import Flavor
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.work.files import MANIFEST, WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, fresh_channel, run_on

DIRECTIONS = [
    pytest.param(source, target, id=f"{source}-to-{target}", marks=requires_mysql if Flavor.MYSQL in pair else [])
    for source in Flavor
    for target in Flavor
    for pair in ((source, target),)
]
SHOP = "CREATE DATABASE tenant_1 CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
TABLE = "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, v VARCHAR(80))"
FUNCTION = "CREATE FUNCTION tenant_1.{}() RETURNS INT DETERMINISTIC RETURN 1"
FOREIGN = {
    Flavor.MARIADB: {
        "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, v INT DEFAULT LENGTH(NATURAL_SORT_KEY('x')))":
            r"that it refuses \((1064|3770): ",
        "CREATE PROCEDURE tenant_1.p() BEGIN DECLARE x ROW (a INT); END": r"syntax that it refuses \(1064: ",
        "INSERT INTO tenant_1.t VALUES (4, LENGTH(NATURAL_SORT_KEY('x')))":
            r"a function or procedure that it refuses \(1305: ",
        "ALTER TABLE tenant_1.t WAIT 5 ADD x INT": r"syntax that it refuses \(1064: .* 'WAIT 5 ADD x INT' at line 1\)",
    },
    Flavor.MYSQL: {
        "CREATE PROCEDURE tenant_1.p() BEGIN DECLARE x INT DEFAULT JSON_VALUE('1', '$' RETURNING SIGNED); END":
            r"syntax that it refuses \(1064: ",
        "INSERT INTO tenant_1.t VALUES (4, LENGTH(UUID_TO_BIN('6ccd780c-baba-1026-9564-5b8c656024db')))":
            r"a function or procedure that it refuses \(1305: ",
        "ALTER TABLE tenant_1.t ALTER COLUMN v SET INVISIBLE": r"syntax that it refuses \(1064: ",
    },
}  # fmt: skip


@pytest.mark.parametrize(("source", "target"), DIRECTIONS)
def test_statements_that_the_targets_parser_refuses_stop_the_window_before_its_first_write(
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
    source: Flavor,
    target: Flavor,
) -> None:
    """In one block with statements that it takes; a function that the window itself makes is no finding."""
    servers = request.getfixturevalue(f"{source}_source"), request.getfixturevalue(f"{target}_target")
    for server in servers:
        server.query("SET GLOBAL log_bin_trust_function_creators = ON")
    channel = fresh_channel(*servers, tmp_path, clean_servers)
    channel.on_both(SHOP, TABLE)
    mark = channel.status.channel.watermark
    refused = {"INSERT INTO tenant_1.t VALUES (3, tenant_1.hidden())": r"FUNCTION tenant_1\.hidden does not exist"}
    refused |= FOREIGN[source] if source is not target else {}
    run_on(channel.source, FUNCTION.format("hidden"), log=False)
    run_on(
        channel.source,
        "SET SESSION binlog_format = STATEMENT",
        "INSERT INTO tenant_1.t VALUES (1, 'one')",
        FUNCTION.format("made"),
        "INSERT INTO tenant_1.t VALUES (2, tenant_1.made())",
        *refused,
    )

    capsys.readouterr()
    assert channel.cli("plan", CHANNEL) == 1
    assert "; nothing was written:" in capsys.readouterr().err
    with pytest.raises(PrecheckError) as error:
        channel.run()

    head, *found = str(error.value).splitlines()
    assert head.startswith("precheck failed: ")
    # the comparison of both servers' routines names the function, too, that only the source has
    lines = [each for each in found if not each.endswith("[stored-programs]")]
    assert len(found) - len(lines) == 1
    assert len(lines) == len(refused), lines
    for statement, what in refused.items():
        # a routine is logged with its definer and a name in backticks
        shown = statement[:60] if "PROCEDURE" not in statement else statement[statement.index("BEGIN") :][:24]
        [line] = [each for each in lines if shown in each]
        assert re.match(r"\S+:\d+: statement of seqno \d+, ", line), line
        assert re.search(what, line), line
        assert line.endswith("target and begin the channel behind it [syntax]")
    assert channel.status.channel.watermark == mark
    assert channel.status.window is not None
    assert channel.status.window.plan_digest is None
    assert channel.target.query("SELECT * FROM tenant_1.t") in ([], ())
    assert channel.target.query("SHOW FUNCTION STATUS WHERE db = 'tenant_1'") in ([], ())
    # made on the target by hand, it is known, and what is left is what the family refuses
    run_on(channel.target, FUNCTION.format("hidden"), log=False)
    if source is target:
        assert channel.run() is not None
        assert channel.rows_of(channel.target) == channel.rows_of(channel.source)


@pytest.mark.parametrize(
    "target", [pytest.param(each, marks=requires_mysql if each is Flavor.MYSQL else []) for each in Flavor]
)
def test_missing_privileges_and_settings_of_the_target_stop_the_window_before_its_first_write(
    target: Flavor, channel_of: ChannelOf
) -> None:
    """A privilege that the account has not, and a setting that makes another table."""
    channel = channel_of(target, target)
    own = (
        "BINLOG REPLAY, BINLOG ADMIN"
        if target is Flavor.MARIADB
        else ("BINLOG_ADMIN, REPLICATION_APPLIER, SESSION_VARIABLES_ADMIN")
    )
    run_on(
        channel.target,
        f"CREATE USER test_lanes IDENTIFIED BY '{channel.target.password}'",
        f"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES, CREATE VIEW, CREATE ROUTINE, "
        f"ALTER ROUTINE, EXECUTE, EVENT, TRIGGER, CREATE TEMPORARY TABLES, LOCK TABLES, CREATE USER, {own} ON *.* "
        "TO test_lanes WITH GRANT OPTION",
        "SET GLOBAL default_storage_engine = MyISAM",
        log=False,
    )
    channel.connect("target_server", channel.target, user="test_lanes")
    run_on(
        channel.source,
        SHOP,
        TABLE,
        "CREATE USER test_one IDENTIFIED BY 'Made-up-1'",
        "GRANT SELECT, SHOW VIEW ON tenant_1.* TO test_one",
    )
    mark = channel.status.channel.watermark
    try:
        with pytest.raises(PrecheckError) as error:
            channel.run()
        said = str(error.value)
        assert channel.status.channel.watermark == mark
        assert channel.target.query("SHOW DATABASES LIKE 'tenant_1'") in ([], ())
        assert re.search(
            r"GRANT SELECT, SHOW VIEW ON \S+ TO .*GRANT SHOW VIEW ON `tenant_1`\.\* TO '[^']+'@'[^']+' "
            r"WITH GRANT OPTION.*\[grants\]",
            said,
        )
        assert re.search(
            r"CREATE TABLE tenant_1\.t .*: default_storage_engine of the target: .*found MyISAM.*\[table-settings\]",
            said,
        )
        assert len(said.splitlines()) == 3, said
        assert {"[grants]", "[table-settings]"} <= set(said.split())
        channel.connect("target_server", channel.target)
        run_on(channel.target, "SET GLOBAL default_storage_engine = InnoDB", log=False)
        assert channel.run() is not None
    finally:
        run_on(channel.target, "SET GLOBAL default_storage_engine = InnoDB", log=False)


@requires_mysql
def test_a_target_that_gives_tables_an_invisible_key_gives_none_to_those_of_the_window(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    run_on(channel.source, SHOP, "CREATE TABLE tenant_1.t (a INT)", "INSERT INTO tenant_1.t VALUES (1), (1)")
    channel.target.query("SET GLOBAL sql_generate_invisible_primary_key = ON")
    try:
        assert channel.run() is not None
    finally:
        channel.target.query("SET GLOBAL sql_generate_invisible_primary_key = OFF")
    channel.assert_equal()


@pytest.mark.parametrize(
    "flavor", [pytest.param(each, marks=requires_mysql if each is Flavor.MYSQL else []) for each in Flavor]
)
def test_a_trigger_that_would_fire_for_rows_of_the_same_window_is_named_before_its_first_write(
    request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None], flavor: Flavor
) -> None:
    """One that is dropped before the next row, and one that no row comes behind, are no findings."""
    servers = request.getfixturevalue(f"{flavor}_source"), request.getfixturevalue(f"{flavor}_target")
    for server in servers:
        server.query("SET GLOBAL log_bin_trust_function_creators = ON")
    channel = fresh_channel(*servers, tmp_path, clean_servers)
    channel.write_channel('writer = "sql"\n')
    trigger = "CREATE TRIGGER tenant_1.{} BEFORE INSERT ON tenant_1.t FOR EACH ROW SET @fired = 1"
    other = "CREATE TABLE tenant_1.other (id INT PRIMARY KEY)"
    run_on(
        channel.source,
        *(SHOP, TABLE, other, trigger.format("gone"), "INSERT INTO tenant_1.other VALUES (1)"),
        *("DROP TRIGGER tenant_1.gone", "INSERT INTO tenant_1.t VALUES (1, 'one')", trigger.format("last")),
    )
    assert channel.run() is not None
    run_on(channel.source, "DROP TRIGGER tenant_1.last")
    assert channel.run() is not None
    run_on(channel.source, trigger.format("here"), "INSERT INTO tenant_1.t VALUES (2, 'two')")

    with pytest.raises(PrecheckError) as error:
        channel.run()

    said = str(error.value)
    assert len(said.splitlines()) == 2, said
    assert "expected no trigger on tenant_1.t, whose rows statements write, found rows of it at seqno " in said
    assert said.endswith(" [new-triggers]")
    assert list(channel.target.query("SELECT id FROM tenant_1.t")) == [(1,)]
    assert not channel.target.query("SHOW TRIGGERS FROM tenant_1")
    channel.write_channel('writer = "sql"\nallow_triggers = ["tenant_1.t"]\n')
    assert channel.run() is not None
    channel.assert_equal()


@requires_mysql
def test_a_loadable_function_waits_for_its_library_and_is_left_where_it_was_made_by_hand(
    mysql_source: PrivateServer, mysql_target: PrivateServer, channel_of: ChannelOf
) -> None:
    make = "CREATE FUNCTION service_{} RETURNS INT SONAME 'locking_service.so'"
    folder = Path(mysql_source.query("SELECT @@plugin_dir")[0][0])
    if not (folder / "locking_service.so").exists():
        pytest.skip("this MySQL has no library of loadable functions")
    channel = channel_of("mysql", "mysql")
    names = ("get_read_locks", "release_locks")
    try:
        run_on(channel.source, *map(make.format, names))
        with pytest.raises(PrecheckError, match="library locking_service"):
            channel.run()
        run_on(channel.target, make.format(names[0]), log=False)
        assert channel.run() is not None
        query = "SELECT name, ret, dl, type FROM mysql.func ORDER BY name"
        assert channel.target.query(query) == channel.source.query(query)
    finally:
        for server in (mysql_source, mysql_target):
            run_on(server, *(f"DROP FUNCTION IF EXISTS service_{name}" for name in names), log=False)


def test_a_window_that_has_begun_is_not_asked_about_what_it_has_dropped_itself(channel: Channel) -> None:
    """It was asked about before its first write."""
    for server in (channel.source, channel.target):
        server.query("SET GLOBAL log_bin_trust_function_creators = ON")
    run_on(channel.source, SHOP, TABLE, FUNCTION.format("gone"))
    assert channel.run() is not None
    run_on(channel.target, "INSERT INTO tenant_1.t VALUES (2, 'in the way')", log=False)
    run_on(
        channel.source,
        "SET SESSION binlog_format = STATEMENT",
        "INSERT INTO tenant_1.t VALUES (1, tenant_1.gone())",
        "DROP FUNCTION tenant_1.gone",
        "SET SESSION binlog_format = ROW",
        "INSERT INTO tenant_1.t VALUES (2, 'two')",
    )
    with pytest.raises(DriftError):
        channel.run()
    assert channel.target.query("SELECT id FROM tenant_1.t ORDER BY id") == [(1,), (2,)]
    assert not channel.target.query("SHOW FUNCTION STATUS WHERE db = 'tenant_1'")
    channel.target.query("DELETE FROM tenant_1.t WHERE id = 2")
    assert channel.run() is not None
    channel.assert_equal()


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_statement_that_the_target_never_takes_is_passed_by_hand(
    family: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    """As docs/control.md says it, word for word."""
    channel = channel_of(family, family)
    for server in (channel.source, channel.target):
        server.query("SET GLOBAL log_bin_trust_function_creators = ON")
    channel.on_both(SHOP, TABLE)
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (1, 'before')")
    run_on(channel.source, FUNCTION.format("hidden"), log=False)
    refused = "INSERT INTO tenant_1.t VALUES (2, tenant_1.hidden())"
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", refused, "INSERT INTO tenant_1.t VALUES (3, 'x')")

    assert channel.cli("run", CHANNEL) == 1
    said = " ".join(capsys.readouterr().err.split())
    [(seqno, gtid)] = re.findall(r"statement of seqno (\d+), GTID (\S+), INSERT", said)
    assert "end a window before it (--until with its GTID)" in said
    first = channel.status.window
    assert first is not None
    assert channel.cli("skip", CHANNEL, "--seqno", seqno, "--reason", "x") == 1
    assert "`A transaction that is refused before the first write` in docs/control.md" in " ".join(
        capsys.readouterr().err.split()
    )
    # neither an end behind it nor one that nobody knows shortens anything
    for until in ("now", gtid[:-1] + "99999"):
        assert channel.cli("run", CHANNEL, "--until", until) == 1
    assert channel.status.window == first
    assert channel.cli("plan", CHANNEL, "--until", gtid) == 0
    assert channel.status.window == first

    assert channel.cli("run", CHANNEL, "--until", gtid) == 0
    assert channel.target.query("SELECT * FROM tenant_1.t") in ([(1, "before")], ((1, "before"),))
    status = channel.status
    assert (status.window, status.channel.watermark.seqno, status.channel.windows) == (None, int(seqno) - 1, 1)
    assert not WorkFolder(first.bounds.work.uri).exists(MANIFEST)
    assert channel.cli("run", CHANNEL, "--until", gtid) == 0, "nothing is left before it"
    run_on(channel.target, "INSERT INTO tenant_1.t SELECT 2, v FROM tenant_1.t", log=False)
    behind = gtid
    if family == "mysql":
        taken = status.channel.watermark.gtid_set
        ((behind,),) = channel.source.query(f"SELECT GTID_SUBTRACT('{taken},{gtid}', '')")
    channel.target.query(f"DELETE FROM binlane.channels WHERE channel = '{CHANNEL}'")
    assert channel.cli("init", CHANNEL, "--start", behind) == 0
    assert channel.cli("run", CHANNEL) == 0
    assert channel.target.query("SELECT id FROM tenant_1.t ORDER BY id") in ([(1,), (2,), (3,)], ((1,), (2,), (3,)))


@requires_mysql
def test_a_database_that_is_read_only_is_named_before_anything_is_written(channel_of: ChannelOf) -> None:
    """MySQL's own replica threads write it all the same; no session may (3989)."""
    channel = channel_of("mysql", "mysql")
    channel.on_both(SHOP, TABLE)
    run_on(channel.target, "ALTER SCHEMA tenant_1 READ ONLY = 1", log=False)
    channel.source.query("INSERT INTO tenant_1.t VALUES (1, 'one')")
    with pytest.raises(PrecheckError, match=r"tenant_1: database, at seqno \d+: expected one that sessions may change"):
        channel.run()
    run_on(channel.target, "ALTER SCHEMA tenant_1 READ ONLY = 0", log=False)
    assert channel.run() is not None
    run_on(channel.source, "ALTER SCHEMA tenant_1 READ ONLY = 1")
    number = channel.status.channel.watermark.seqno + 1
    run_on(channel.source, "ALTER SCHEMA tenant_1 READ ONLY = 0", log=False)
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (2, 'two')")
    with pytest.raises(PrecheckError, match=rf"found READ ONLY since seqno {number}; the source has lifted it again"):
        channel.run()
    run_on(channel.source, "ALTER SCHEMA tenant_1 READ ONLY = 0")
    assert channel.rows_of(channel.target) == {"tenant_1.t": {(1, "one")}}


ON, OFF = "ALTER SCHEMA tenant_1 READ ONLY = 1", "ALTER SCHEMA tenant_1 READ ONLY = 0"
TRUNCATE = "TRUNCATE TABLE tenant_1.t"


@requires_mysql
@pytest.mark.parametrize(
    ("before", "then"),
    [
        ((ON,), ("SET binlog_format = STATEMENT", *(f"INSERT INTO tenant_1.t VALUES ({n}, 'x')" for n in (2, 3)))),
        ((ON, OFF, ON), ("INSERT INTO tenant_1.t VALUES (2, 'two')",)),
        ((TRUNCATE, ON), (TRUNCATE,)),
        ((ON,), (f"{ON} COLLATE latin1_bin",)),
    ],
    ids=["statements", "twice-the-same-option", "twice-the-same-change", "another-option"],
)
def test_every_change_of_a_database_that_the_log_makes_read_only_is_named(
    channel_of: ChannelOf, before: tuple[str, ...], then: tuple[str, ...]
) -> None:
    """The source has lifted the option in between, and its log does not say so. What the finding says to do helps."""
    channel = channel_of("mysql", "mysql")
    channel.on_both(SHOP, TABLE, "INSERT INTO tenant_1.t VALUES (1, 'one')")
    seqno = channel.status.channel.watermark.seqno + len(before)
    run_on(channel.source, *before)
    run_on(channel.source, OFF, log=False)
    [(gtids,)] = channel.source.query("SELECT @@gtid_executed")
    uuid, number = re.findall(r"([0-9a-f-]{36}):(?:\d+-)?(\d+)", gtids)[-1]
    run_on(channel.source, *then)
    todo = rf"found READ ONLY since seqno {seqno}; .* \(--until with the GTID or the time of seqno {seqno + 1}\)"
    with pytest.raises(PrecheckError, match=todo):
        channel.run()
    assert channel.run(WindowRequest(f"{uuid}:{int(number) + 1}")) is not None
    run_on(channel.target, OFF, log=False)
    assert channel.run() is not None
    channel.assert_equal()
    for server in (channel.source, channel.target):
        run_on(server, OFF, log=False)


@requires_mysql
@pytest.mark.parametrize("writer", ["binlog", "sql"])
def test_no_session_writes_a_read_only_database_whatever_it_sends(channel_of: ChannelOf, writer: str) -> None:
    """So there is nothing that a lane could do instead: whoever lifts the option lifts it for every session."""
    channel = channel_of("mysql", "mysql")
    channel.write_channel(f'writer = "{writer}"\n')
    channel.on_both(
        SHOP,
        TABLE,
        "CREATE DATABASE other",
        "CREATE TABLE other.parent (id INT PRIMARY KEY)",
        "CREATE TABLE tenant_1.child (id INT PRIMARY KEY, "
        "FOREIGN KEY (id) REFERENCES other.parent (id) ON DELETE CASCADE)",
        "INSERT INTO other.parent VALUES (1)",
        "INSERT INTO tenant_1.child VALUES (1)",
        "CREATE PROCEDURE other.p() INSERT INTO tenant_1.t VALUES (7, 'seven')",
    )
    channel.source.query("INSERT INTO tenant_1.t VALUES (2, 'two')")
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    # behind the precheck
    run_on(channel.target, ON, log=False)
    for statement in ("INSERT INTO tenant_1.t VALUES (7, 'seven')", "CALL other.p()", "DELETE FROM other.parent"):
        with pytest.raises(OperationalError, match="3989"):
            run_on(channel.target, "SET pseudo_replica_mode = 1", statement, log=False)
    with pytest.raises(BinlaneError, match="3989"):
        channel.go_on(window)
    run_on(channel.target, OFF, log=False)
    assert channel.run() is not None
    channel.assert_equal()


@requires_mysql
def test_a_database_that_was_read_only_for_a_while_is_applied(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    run_on(channel.source, SHOP, TABLE, "INSERT INTO tenant_1.t VALUES (1, 'one')")
    run_on(channel.source, "ALTER SCHEMA tenant_1 READ ONLY = 1", "ALTER SCHEMA tenant_1 READ ONLY = 0")
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (2, 'two')", "ALTER SCHEMA tenant_1 READ ONLY = 1")
    assert channel.run() is not None
    channel.assert_equal()
    for server in (channel.source, channel.target):
        run_on(server, "ALTER SCHEMA tenant_1 READ ONLY = 0", log=False)
