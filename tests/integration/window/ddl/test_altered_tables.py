"""Tables that the window's own DDL changes: looked at before the window, and again behind each DDL."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from binlane.apply.rows import table_guard
from binlane.errors import DriftError, PrecheckError, TableMismatchError
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from lab.compare import compare
from lab.servers import PrivateServer
from tests.integration.window.conftest import Channel, ChannelOf, database_of, in_database, run_on

SHOP = ("CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, a INT)")
TRIGGER = "CREATE TRIGGER tenant_1.tr AFTER INSERT ON tenant_1.t FOR EACH ROW INSERT INTO tenant_1.u VALUES (NEW.id)"
BEHIND_A_STATEMENT = (
    "SET SESSION binlog_format = STATEMENT",
    "INSERT INTO tenant_1.t VALUES (1, 1)",
    "SET SESSION binlog_format = ROW",
    "UPDATE tenant_1.t SET a = 2",
)


@pytest.fixture(params=["mariadb", "mysql"])
def pair(request: pytest.FixtureRequest, channel_of: ChannelOf) -> Channel:
    return channel_of(request.param, request.param)


def unlogged(server: PrivateServer, *statements: str) -> None:
    run_on(server, *statements, log=False)


def columns(server: PrivateServer, table: str) -> set[str]:
    found = server.query(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'tenant_1' AND table_name = %s",
        (table,),
    )
    return {name for (name,) in found}


@pytest.mark.parametrize(
    ("ddl", "behind_the_log", "mend", "said"),
    [
        pytest.param(
            "ALTER TABLE tenant_1.t ADD b VARCHAR(10)", "ALTER TABLE tenant_1.t MODIFY b VARCHAR(70)",
            "ALTER TABLE tenant_1.t MODIFY b VARCHAR(70)",
            "tenant_1.t.b: logged type: expected varchar of 280 bytes, found varchar of 40 bytes", id="another-type",
        ),
        pytest.param(
            "ALTER TABLE tenant_1.t ADD b INT", "ALTER TABLE tenant_1.t ADD c INT", "ALTER TABLE tenant_1.t ADD c INT",
            "tenant_1.t: logged columns: expected 4, found 3", id="another-number-of-columns",
        ),
        pytest.param(
            "ALTER TABLE tenant_1.t ADD b INT UNSIGNED", "ALTER TABLE tenant_1.t MODIFY b INT",
            "ALTER TABLE tenant_1.t MODIFY b INT",
            "tenant_1.t.b: logged sign: expected signed, found unsigned", id="another-sign",
        ),
    ],
)  # fmt: skip
def test_a_table_that_a_ddl_makes_another_one_than_the_sources_stops_the_rows_behind_it(
    pair: Channel, ddl: str, behind_the_log: str, mend: str, said: str
) -> None:
    for server in (pair.source, pair.target):
        unlogged(server, *SHOP)
        server.query("SET GLOBAL binlog_row_metadata = FULL")
    run_on(pair.source, "INSERT INTO tenant_1.t VALUES (1, 1)", ddl)
    unlogged(pair.source, behind_the_log)
    run_on(pair.source, "INSERT INTO tenant_1.t (id, a, b) VALUES (2, 2, 2)")
    pair.source.query("SET GLOBAL binlog_row_metadata = DEFAULT")
    mark = pair.status.channel.watermark

    with pytest.raises(TableMismatchError) as stopped:
        pair.run()

    assert said in str(stopped.value)
    assert "seqno 3..3" in str(stopped.value)
    # everything before is applied, the DDL with it; nothing of what comes next, and the watermark says no more
    assert "b" in columns(pair.target, "t")
    assert pair.target.query("SELECT id FROM tenant_1.t") == [(1,)]
    assert pair.status.channel.watermark == mark
    # the lanes without a block may stop before they have moved
    assert [lane.seqno for lane in pair.status.positions if lane.lane == 1] == [mark.seqno + 2]
    unlogged(pair.target, mend)
    assert pair.run() is not None
    assert pair.run() is None
    pair.assert_equal()


def test_each_definition_is_looked_at_once(pair: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    compare = table_guard.TableGuard._compare

    def counted(self: table_guard.TableGuard, *arguments: object) -> None:
        looks.append(str(arguments[0]))
        compare(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(table_guard.TableGuard, "_compare", counted)
    for server in (pair.source, pair.target):
        unlogged(server, *SHOP, "CREATE TABLE tenant_1.other (id INT PRIMARY KEY)")
    for number in range(60):
        run_on(
            pair.source,
            f"INSERT INTO tenant_1.t (id) VALUES ({number})",
            f"INSERT INTO tenant_1.other VALUES ({number})",
        )
        if number in (20, 40):
            run_on(pair.source, f"ALTER TABLE tenant_1.t ADD c{number} INT")

    assert pair.run() is not None

    pair.assert_equal()
    assert looks == ["tenant_1.t"] * 3


def test_rows_in_front_of_the_ddl_are_compared_before_the_window(pair: Channel) -> None:
    unlogged(pair.source, *SHOP)
    unlogged(pair.target, SHOP[0], "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, a BIGINT)")
    run_on(pair.source, "INSERT INTO tenant_1.t VALUES (1, 1)", "ALTER TABLE tenant_1.t MODIFY a BIGINT")

    with pytest.raises(PrecheckError, match=r"tenant_1\.t\.a: logged type: expected int, found bigint"):
        pair.run()


def test_a_table_that_must_be_there_before_its_ddl_is_missed_before_the_window(pair: Channel) -> None:
    unlogged(pair.source, *SHOP)
    unlogged(pair.target, SHOP[0])
    run_on(pair.source, "INSERT INTO tenant_1.t VALUES (1, 1)", "ALTER TABLE tenant_1.t ADD b INT")

    with pytest.raises(PrecheckError, match=r"tenant_1\.t: table: expected the table, found no such table"):
        pair.run()


def test_a_window_that_stopped_behind_a_ddl_is_taken_up_again(pair: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The target's table is altered by then: it no longer fits the rows in front of the DDL, which are applied."""
    for server in (pair.source, pair.target):
        unlogged(server, *SHOP)
    run_on(
        pair.source, "INSERT INTO tenant_1.t VALUES (1, 1)", "ALTER TABLE tenant_1.t ADD b INT",
        "INSERT INTO tenant_1.t VALUES (2, 2, 2)",
    )  # fmt: skip

    def crash(_self: object, _key: object, _logged: object, seqno: int) -> None:
        if seqno >= 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(table_guard.TableGuard, "_compare", crash)
        with pytest.raises(KeyboardInterrupt):
            pair.run()
    assert "b" in columns(pair.target, "t")

    assert pair.run() is not None
    pair.assert_equal()


def test_definitions_that_the_log_lacks_are_read_from_the_source_after_the_last_ddl(pair: Channel) -> None:
    for server in (pair.source, pair.target):
        unlogged(server, *SHOP)
    run_on(pair.source, "ALTER TABLE tenant_1.t ADD e ENUM('x','y')")
    unlogged(pair.source, "ALTER TABLE tenant_1.t MODIFY e ENUM('y','x')")
    run_on(pair.source, "INSERT INTO tenant_1.t VALUES (1, 1, 'y')")

    with pytest.raises(TableMismatchError, match=r"tenant_1\.t\.e: members: expected 'y', 'x', found 'x', 'y'"):
        pair.run()

    assert pair.target.query("SELECT * FROM tenant_1.t") in ([], ())


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(("ALTER TABLE tenant_1.t DROP COLUMN a",), id="altered"),
        pytest.param(("RENAME TABLE tenant_1.t TO tenant_1.z, tenant_1.u TO tenant_1.t",), id="renamed"),
        pytest.param(("DROP TABLE tenant_1.t", "CREATE TABLE tenant_1.t (x BLOB)"), id="made-anew"),
    ],
)
@pytest.mark.parametrize("alters", [False, True], ids=["rows-only", "the-window-alters-it"])
@pytest.mark.paired
def test_a_table_that_the_source_alters_right_behind_the_window_does_not_stop_it(
    pair: Channel, later: tuple[str, ...], alters: bool
) -> None:
    """To the event, not to the second: everything here happens within one."""
    for server in (pair.source, pair.target):
        unlogged(server, *SHOP, "CREATE TABLE tenant_1.u (x INT, y INT, z INT)")
    run_on(pair.source, "INSERT INTO tenant_1.t VALUES (1, 1)")
    if alters:
        run_on(pair.source, "ALTER TABLE tenant_1.t ADD b INT", "INSERT INTO tenant_1.t VALUES (2, 2, 2)")
    window = steps.extract(pair.config, pair.endpoints, WindowRequest("now"))
    run_on(pair.source, *later)

    pair.go_on(window)
    assert pair.target.query("SELECT id FROM tenant_1.t ORDER BY id") == [(1,), (2,)][: 1 + alters]
    assert pair.run() is not None
    pair.assert_equal()


KIN = (
    *SHOP[:1],
    "CREATE TABLE tenant_1.parent (id INT PRIMARY KEY, a INT, b INT, UNIQUE KEY (a), UNIQUE KEY (b))",
    "CREATE TABLE tenant_1.child (id INT PRIMARY KEY, a INT, b INT,"
    " CONSTRAINT to_a FOREIGN KEY (a) REFERENCES tenant_1.parent (a) ON UPDATE CASCADE,"
    " CONSTRAINT to_b FOREIGN KEY (b) REFERENCES tenant_1.parent (b) ON DELETE CASCADE)",
)


RENAMES = {
    "rename-column": ("ALTER TABLE tenant_1.parent RENAME COLUMN a TO x",),
    "change-column": ("ALTER TABLE tenant_1.parent CHANGE COLUMN a x INT, CHANGE b y INT",),
    "swapped": ("ALTER TABLE tenant_1.parent RENAME COLUMN a TO b, RENAME COLUMN b TO a",),
    "twice": (
        "ALTER TABLE tenant_1.parent RENAME COLUMN a TO x",
        "ALTER TABLE tenant_1.parent RENAME COLUMN x TO y",
    ),
    "and-the-table": ("ALTER TABLE tenant_1.parent RENAME COLUMN a TO x, RENAME TO tenant_1.other",),
    "behind-rename": (
        "RENAME TABLE tenant_1.parent TO tenant_1.other",
        "ALTER TABLE tenant_1.other CHANGE a x INT",
    ),
}


@pytest.fixture(scope="module")
def differences_of(shared_channel_of: ChannelOf) -> Callable[[str, bool], tuple[str, ...]]:
    """What differs behind one window that has all renamed columns, or that has none of them and alters the children, by
    the servers' family."""

    @functools.cache
    def differences(family: str, is_in_the_window: bool) -> tuple[str, ...]:
        channel = shared_channel_of(family, family)

        def rename() -> None:
            for case, ddl in RENAMES.items():
                statements = (*ddl, "UPDATE tenant_1.child SET id = id + 10")
                run_on(channel.source, *in_database(database_of(case), *statements))

        for case in RENAMES:
            channel.on_both(*in_database(database_of(case), *KIN))
            rows: tuple[str, ...] = (
                "INSERT INTO tenant_1.parent VALUES (1, 1, 1), (2, 2, 2)",
                "INSERT INTO tenant_1.child VALUES (1, 1, 1)",
            )
            if not is_in_the_window:
                rows += ("ALTER TABLE tenant_1.child ADD c INT", "INSERT INTO tenant_1.child VALUES (2, 2, 2, 2)")
            run_on(channel.source, *in_database(database_of(case), *rows))
        if is_in_the_window:
            rename()
        window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
        if not is_in_the_window:
            rename()
        channel.go_on(window)
        channel.run()
        return compare(channel.source, channel.target).differences

    return differences


@pytest.mark.parametrize("family", ["mariadb", "mysql"])
@pytest.mark.parametrize("case", RENAMES)
@pytest.mark.parametrize("is_in_the_window", [True, False], ids=["in-the-window", "behind-one-that-alters-the-child"])
def test_a_column_that_foreign_keys_refer_to_gets_another_name(
    differences_of: Callable[[str, bool], tuple[str, ...]], family: str, case: str, is_in_the_window: bool
) -> None:
    """The statement does not name the child, whose foreign keys have the new name then."""
    other = {name for name in map(database_of, RENAMES) if name != database_of(case)}
    found = differences_of(family, is_in_the_window)
    assert [each for each in found if not any(f"{name}." in each for name in other)] == []


def test_a_table_that_differs_since_before_the_window_stops_it_although_others_were_altered_since(
    pair: Channel,
) -> None:
    unlogged(pair.source, *SHOP, "CREATE TABLE tenant_1.u (x INT)")
    unlogged(pair.target, SHOP[0], "CREATE TABLE tenant_1.t (a INT, id INT PRIMARY KEY)")
    run_on(pair.source, "INSERT INTO tenant_1.t VALUES (1, 1)")
    window = steps.extract(pair.config, pair.endpoints, WindowRequest("now"))
    run_on(pair.source, "ALTER TABLE tenant_1.u ADD y INT")

    with pytest.raises(PrecheckError, match=r"tenant_1\.t\.a: name of column 1"):
        pair.go_on(window)


@pytest.mark.parametrize("is_in_the_window", [True, False], ids=["in-the-window", "behind-it"])
def test_a_trigger_that_was_dropped_since_is_no_difference(pair: Channel, is_in_the_window: bool) -> None:
    """DROP TRIGGER does not name the trigger's table. Until then statements fire it, on both servers."""
    for server in (pair.source, pair.target):
        unlogged(server, *SHOP, "CREATE TABLE tenant_1.u (id INT PRIMARY KEY)")
    run_on(pair.source, TRIGGER)
    assert pair.run() is not None
    drop = "DROP TRIGGER tenant_1.tr"
    run_on(pair.source, *BEHIND_A_STATEMENT, *([drop] if is_in_the_window else []))
    window = steps.extract(pair.config, pair.endpoints, WindowRequest("now"))
    if not is_in_the_window:
        run_on(pair.source, drop)
    pair.go_on(window)
    pair.run()
    assert pair.target.query("SELECT id FROM tenant_1.u") == [(1,)]
    for server in (pair.source, pair.target):
        assert not server.query("SELECT 1 FROM information_schema.triggers WHERE trigger_schema = 'tenant_1'")


def test_a_window_that_has_not_come_to_its_drop_trigger_is_continued(pair: Channel) -> None:
    for server in (pair.source, pair.target):
        unlogged(server, *SHOP, "CREATE TABLE tenant_1.u (id INT PRIMARY KEY)")
    run_on(pair.source, TRIGGER)
    assert pair.run() is not None
    unlogged(pair.target, "CREATE TABLE tenant_1.late (id INT PRIMARY KEY)", "INSERT INTO tenant_1.late VALUES (9)")
    unlogged(pair.source, "CREATE TABLE tenant_1.late (id INT PRIMARY KEY)")
    run_on(pair.source, *BEHIND_A_STATEMENT, "INSERT INTO tenant_1.late VALUES (9)", "DROP TRIGGER tenant_1.tr")
    with pytest.raises(DriftError, match="1062"):
        pair.run()
    unlogged(pair.target, "DELETE FROM tenant_1.late")
    pair.run()
    assert pair.target.query("SELECT id FROM tenant_1.u") == [(1,)]
    assert not pair.target.query("SELECT 1 FROM information_schema.triggers WHERE trigger_schema = 'tenant_1'")


def test_where_rows_fire_triggers_one_that_the_window_drops_is_in_the_way(channel: Channel) -> None:
    for server in (channel.source, channel.target):
        unlogged(server, *SHOP, "CREATE TABLE tenant_1.u (id INT PRIMARY KEY)", TRIGGER)
    run_on(channel.source, *BEHIND_A_STATEMENT, "DROP TRIGGER tenant_1.tr")
    channel.target.query("SET GLOBAL slave_run_triggers_for_rbr = YES")
    try:
        with pytest.raises(PrecheckError, match="slave_run_triggers_for_rbr=NO"):
            channel.run()
    finally:
        channel.target.query("SET GLOBAL slave_run_triggers_for_rbr = DEFAULT")
