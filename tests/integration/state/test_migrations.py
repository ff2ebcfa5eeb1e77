"""The schema of an older binlane is upgraded, even by killed runs; one that is not binlane's is refused by name."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Engine, NullPool

from binlane.apply.refusals import target_errors
from binlane.errors import StateSchemaError, TargetError, TargetUnavailableError, WindowBusyError
from binlane.model import LogPosition
from binlane.servers.engines import engine_at
from binlane.state.channels import Watermark, create_channel
from binlane.state.leases import bootstrap_lease, lease_name, take
from binlane.state.migrations.check import require_current, require_version
from binlane.state.migrations.upgrade import bring_up, create
from binlane.state.positions import lane_positions
from binlane.state.tables import VERSION
from binlane.state.windows import read_open_window, read_window
from lab.servers import PrivateServer
from tests.forked import process
from tests.integration.state import older_schema
from tests.integration.state.conftest import cursor_of
from tests.integration.state.older_schema import ROWS, create_until_killed, know_two_versions, lay_older

START: Final = Watermark(10, LogPosition("log.1", 4), "0-1-10", 5.0, "f10")
SHAPE: Final = (
    "SELECT table_name, column_name, column_type, is_nullable, column_default, extra, column_key, collation_name "
    "FROM information_schema.columns WHERE table_schema = 'binlane' ORDER BY 1, 2",
    "SELECT table_name, index_name, seq_in_index, column_name, non_unique FROM information_schema.statistics "
    "WHERE table_schema = 'binlane' ORDER BY 1, 2, 3",
    "SELECT table_name, engine, table_collation FROM information_schema.tables WHERE table_schema = 'binlane' "
    "ORDER BY 1",
)

KNOWN: Final[dict[str, Any]] = {"poolclass": NullPool, "connect_args": {"get_server_public_key": True}}


@pytest.fixture
def plain(target: PrivateServer) -> Iterator[Engine]:
    """The target without a schema ``binlane``."""
    made = engine_at(target.url(), poolclass=NullPool)
    yield made
    made.dispose()


def shape(target: PrivateServer) -> list[object]:
    return [target.query(query) for query in SHAPE]


def asked(engine: Engine) -> None:
    with engine.connect() as connection:
        require_current(connection)


def refused(act: Callable[[Engine], None], engine: Engine) -> str:
    with pytest.raises(StateSchemaError) as said:
        act(engine)
    return str(said.value)


@pytest.fixture
def two_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Today's schema is version 2 of two."""
    know_two_versions(monkeypatch.setattr)


@pytest.mark.usefixtures("two_versions")
def test_an_older_schema_with_an_open_window_becomes_todays(target: PrivateServer, plain: Engine) -> None:
    create(plain)
    todays = shape(target)
    lay_older(target, *ROWS)
    assert "has version 1, this binlane needs 2" in refused(asked, plain)
    bring_up(plain)
    assert shape(target) == todays
    assert target.query("SELECT version FROM binlane.migrations ORDER BY 1") == [(1,), (2,)]
    with plain.connect() as connection:
        require_current(connection)
        window = read_open_window(connection, "c")
        assert window is not None
        assert (window.start, window.reached) == (older_schema.START, 10)
        finished = read_window(connection, "c", "w0")
        assert finished is not None
        assert (finished.reached, finished.is_finished) == (10, True)
        assert [lane.seqno for lane in lane_positions(connection, "c")] == [10, 15, 20]
    assert target.query("SELECT DISTINCT begun FROM binlane.positions") == [(0,)]


@pytest.mark.trial
@pytest.mark.usefixtures("two_versions")
@pytest.mark.parametrize(("old", "changes"), [(True, 11), (False, 39)], ids=["older schema", "no schema"])
def test_kill_9_behind_every_statement_then_run_again(
    target: PrivateServer, plain: Engine, tmp_path: Path, old: bool, changes: int
) -> None:
    """Statements of the killed run are executed or rolled back; the next run resumes the upgrade."""
    create(plain)
    todays = shape(target)
    target.query("DROP DATABASE binlane")
    if old:
        lay_older(target, *ROWS)
    diary = tmp_path / "diary"
    diary.touch()
    endings = list[int | None]()
    while not endings or endings[-1] == -signal.SIGKILL:
        with process(create_until_killed, target.url(), diary) as running:
            running.join()
        endings.append(running.exitcode)
    assert endings == [-signal.SIGKILL] * changes + [0]
    assert shape(target) == todays
    assert target.query("SELECT COUNT(*) FROM binlane.migrations") == [(older_schema.VERSION,)]
    if old:
        with plain.connect() as connection:
            window = read_open_window(connection, "c")
        assert window is not None
        assert (window.start.source_time, window.reached) == (1732275000.1234567, 10)


@pytest.mark.usefixtures("two_versions")
def test_of_four_concurrent_migrations_one_runs_and_all_succeed(target: PrivateServer, plain: Engine) -> None:
    lay_older(target, *ROWS)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(bring_up, [plain] * 4))
    asked(plain)
    assert target.query("SELECT COUNT(*) FROM binlane.migrations") == [(older_schema.VERSION,)]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("INSERT INTO binlane.migrations VALUES (99, 'of a later binlane', NOW(6))", r"has version 99, this binlane"),
        ("ALTER TABLE binlane.positions DROP COLUMN begun", r"binlane\.positions has no column begun, expected bigint"),
        ("ALTER TABLE binlane.positions ADD COLUMN mine INT", r"column mine, which this version.*DROP"),
        ("ALTER TABLE binlane.positions ENGINE = MyISAM", r"positions is MyISAM, expected InnoDB.*ENGINE=InnoDB"),
        ("DROP TABLE binlane.skips", r"the table binlane\.skips is missing.*The schema binlane is lost"),
        (
            "ALTER TABLE binlane.channels MODIFY source_file VARCHAR(512) CHARACTER SET latin1 NOT NULL",
            r"source_file is varchar\(512\) latin1_swedish_ci NOT NULL, expected varchar\(512\) utf8mb4_bin NOT NULL: "
            r"ALTER TABLE binlane\.channels MODIFY source_file VARCHAR\(512\) NOT NULL",
        ),
        ("ALTER TABLE binlane.positions MODIFY seqno INT NOT NULL", r"seqno is int NOT NULL, expected bigint unsigned"),
        ("ALTER TABLE binlane.positions DROP PRIMARY KEY", r"positions\.channel is .*the primary key was dropped"),
        ("ALTER TABLE binlane.channels DROP INDEX uuid", r"channels\.uuid is .*a unique key was dropped"),
    ],
)
def test_a_schema_that_is_not_this_builds_is_refused_by_name(
    target: PrivateServer, engine: Engine, damage: str, said: str
) -> None:
    create_channel(engine, "c", "source", START)
    target.query(damage)
    before = shape(target)
    for act in (asked, bring_up, create):
        with pytest.raises(StateSchemaError, match=f"(?s){said}"):
            act(engine)
    assert shape(target) == before


def test_a_view_in_the_place_of_a_table_is_refused(target: PrivateServer, engine: Engine) -> None:
    create_channel(engine, "c", "source", START)
    target.query("RENAME TABLE binlane.positions TO binlane.kept")
    target.query("CREATE VIEW binlane.positions AS SELECT * FROM binlane.kept")
    assert "binlane.positions: expected a table, found a view" in refused(asked, engine)


def test_an_index_and_a_table_more_of_somebodys_own_harm_nobody(target: PrivateServer, engine: Engine) -> None:
    target.query("CREATE INDEX mine ON binlane.errors (code)")
    target.query("CREATE TABLE binlane.before_the_upgrade AS SELECT * FROM binlane.positions")
    before = shape(target)
    for act in (asked, bring_up, create):
        act(engine)
    assert shape(target) == before


@pytest.mark.parametrize("table", ["articles (id INT)", "migrations (id INT, migration VARCHAR(255), batch INT)"])
def test_the_schema_of_another_program_is_left_alone(target: PrivateServer, plain: Engine, table: str) -> None:
    target.query("CREATE DATABASE binlane")
    target.query(f"CREATE TABLE binlane.{table}")
    refused(asked, plain)
    for act in (create, bring_up):
        said = refused(act, plain)
        assert "tables of another program (articles)" in said or "a column batch, which this version" in said
    assert len(target.query("SHOW TABLES FROM binlane")) == 1


def test_the_schema_is_read_on_a_server_that_sends_small_packets(target: PrivateServer, engine: Engine) -> None:
    """MariaDB cuts the text that it makes of a table's columns at max_allowed_packet, without an error."""
    ((before,),) = target.query("SELECT @@GLOBAL.max_allowed_packet")
    target.query("SET GLOBAL max_allowed_packet = 1024")
    engine.dispose()
    try:
        asked(engine)
        target.query("ALTER TABLE binlane.windows DROP COLUMN end_gtid_set")
        assert "binlane.windows has no column" in refused(asked, engine)
    finally:
        target.query(f"SET GLOBAL max_allowed_packet = {before}")


def test_where_there_is_no_schema_the_server_says_so(plain: Engine) -> None:
    for act in (asked, bring_up):
        with pytest.raises(TargetError, match="`binlane init CHANNEL` begins it"), target_errors("t"):
            act(plain)


def test_a_table_that_is_lost_is_made_anew_only_where_there_is_no_channel(
    target: PrivateServer, engine: Engine
) -> None:
    target.query("DROP TABLE binlane.skips")
    create(engine)
    asked(engine)
    create_channel(engine, "c", "source", START)
    target.query("DROP TABLE binlane.skips")
    assert "binlane.skips is missing" in refused(create, engine)


@pytest.mark.usefixtures("two_versions")
@pytest.mark.parametrize("missing", ["CREATE", "ALTER", "INDEX", "CREATE VIEW"])
def test_an_account_that_may_not_do_it_is_told_the_privilege_and_goes_on_with_it(
    target: PrivateServer, missing: str
) -> None:
    lay_older(target, *ROWS)
    rights = {"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "INDEX", "DROP", "CREATE VIEW"}
    target.query("DROP USER IF EXISTS upgrader")
    target.query(f"CREATE USER upgrader IDENTIFIED BY '{target.password}'")
    target.query(f"GRANT {', '.join(sorted(rights - {missing}))} ON binlane.* TO upgrader")
    made = engine_at(target.url().replace(f"//{target.user}:", "//upgrader:"), **KNOWN)
    assert f"needs the privilege {missing} on `binlane`.*" in refused(bring_up, made)
    target.query(f"GRANT {missing} ON binlane.* TO upgrader")
    bring_up(made)
    asked(made)
    target.query("DROP USER upgrader")


@pytest.mark.usefixtures("two_versions")
def test_a_read_only_target_is_named_and_tried_again(target: PrivateServer) -> None:
    lay_older(target, *ROWS)
    target.query("DROP USER IF EXISTS upgrader")
    target.query(f"CREATE USER upgrader IDENTIFIED BY '{target.password}'")
    target.query("GRANT ALL ON binlane.* TO upgrader")
    made = engine_at(target.url().replace(f"//{target.user}:", "//upgrader:"), **KNOWN)
    target.query("SET GLOBAL read_only = ON")
    try:
        with pytest.raises(TargetUnavailableError, match="the server is read-only"):
            bring_up(made)
    finally:
        target.query("SET GLOBAL read_only = OFF")
    bring_up(made)
    target.query("DROP USER upgrader")


@pytest.mark.usefixtures("two_versions")
@pytest.mark.parametrize(
    ("lease", "before"),
    [
        pytest.param(lease_name("a-uuid", 2), "DELETE FROM binlane.windows", id="lane of a forgotten window"),
        pytest.param(lease_name("a-uuid", 2), "DELETE FROM binlane.positions WHERE lane = 2", id="lane without work"),
        pytest.param(bootstrap_lease("new"), "DO 0", id="first copy"),
    ],
)
def test_no_migration_runs_while_a_lane_of_an_older_binlane_holds_a_lease(
    target: PrivateServer, plain: Engine, lease: str, before: str
) -> None:
    lay_older(target, *ROWS, before)
    if lease == bootstrap_lease("new"):
        target.query(
            "INSERT INTO binlane.bootstraps (channel, database_names, source_identity, source_file, source_offset, "
            "gtid_set, source_time, fingerprint, replaced_for, attempts, updated_at) VALUES "
            "('new', '[]', 's', 'f', 1, '', 1, 'f', '', 1, NOW(6))"
        )
    unchanged = shape(target)
    with cursor_of(plain) as cursor:
        assert take(cursor, lease)
        with pytest.raises(WindowBusyError, match=r"lane 2 is held by connection \d+|its first copy is held by"):
            bring_up(plain)
        assert shape(target) == unchanged
        cursor.execute("SELECT RELEASE_LOCK(%s)", (lease,))
    bring_up(plain)
    asked(plain)


def test_a_lane_that_waited_while_a_newer_binlane_came_is_refused_behind_its_lease(
    target: PrivateServer, engine: Engine
) -> None:
    with cursor_of(engine) as cursor:
        require_version(cursor)
        target.query(f"INSERT INTO binlane.migrations VALUES ({VERSION + 1}, 'of a later binlane', NOW(6))")
        with pytest.raises(StateSchemaError, match=f"has version {VERSION + 1}, this binlane knows"):
            require_version(cursor)
        target.query(f"DELETE FROM binlane.migrations WHERE version >= {VERSION}")
        with pytest.raises(StateSchemaError, match=f"has version {VERSION - 1}, expected {VERSION}"):
            require_version(cursor)


def test_a_schema_that_has_lost_its_versions_alone_gets_them_back(target: PrivateServer, engine: Engine) -> None:
    create_channel(engine, "c", "source", START)
    todays = shape(target)
    target.query("DROP TABLE binlane.migrations")
    create(engine)
    assert shape(target) == todays
    target.query("DELETE FROM binlane.migrations")
    create(engine)
    asked(engine)
    target.query("DROP TABLE binlane.migrations, binlane.skips")
    assert "binlane.skips is missing" in refused(create, engine)


@pytest.mark.usefixtures("two_versions")
def test_a_channel_of_the_schema_before_is_still_its_own(target: PrivateServer, plain: Engine) -> None:
    lay_older(target, *ROWS)
    create(plain)
    kept = create_channel(plain, "c", "source", START)
    assert (kept.uuid, kept.watermark.seqno, kept.windows) == ("a-uuid", 10, 2)
