"""Triggers that statements fire: each server fires its own, so they must be the same on both."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest

from binlane.errors import PrecheckError
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, database_of, in_database, run_on

TABLES = (
    "CREATE DATABASE tenant_1 COLLATE utf8mb4_general_ci",
    "CREATE TABLE tenant_1.t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)",
    "CREATE TABLE tenant_1.u (what VARCHAR(20), KEY (what))",
    "CREATE TABLE tenant_1.w (what VARCHAR(20), KEY (what))",
    "CREATE VIEW tenant_1.v AS SELECT id, n FROM tenant_1.t",
)
WRITES_U = "CREATE TRIGGER tenant_1.tr AFTER INSERT ON tenant_1.t FOR EACH ROW INSERT INTO u (what) VALUES ('one')"
WRITES_U_OTHERWISE = WRITES_U.replace("'one'", "'two'")
SECOND = WRITES_U.replace("tr ", "second ").replace("'one'", "'second'")
BEHIND_U = "CREATE TRIGGER tenant_1.tu AFTER INSERT ON tenant_1.u FOR EACH ROW INSERT INTO w (what) VALUES ('w')"
PIPES = "SET SESSION sql_mode = 'PIPES_AS_CONCAT'"
FUNCTION = (
    "CREATE FUNCTION tenant_1.f() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO u (what) VALUES ('f');"
    " RETURN 1; END"
)
INSERT = "INSERT INTO tenant_1.t (n) VALUES (1)"
FAMILIES = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
PLACES = {"source": ("source",), "target": ("target",), "both": ("source", "target")}


def prepared(channel: Channel, **only: Sequence[str]) -> Channel:
    """Both servers have the tables; ``only``: what "source", "target" or "both" have besides, out of their logs."""
    add_case(channel, "tenant_1", only)
    return channel


def add_case(channel: Channel, database: str, only: Mapping[str, Sequence[str]]) -> None:
    """The tables on both servers, and what each has besides, in a case's database."""
    channel.on_both(*in_database(database, *TABLES))
    for place, statements in only.items():
        for side in PLACES[place]:
            run_on(getattr(channel, side), f"USE {database}", *in_database(database, *statements), log=False)


def logged_as_statements(channel: Channel, *statements: str, database: str = "tenant_1") -> None:
    run_on(
        channel.source,
        "SET SESSION binlog_format = STATEMENT",
        f"USE {database}",
        *in_database(database, *statements),
    )


ONE_SIDED: dict[str, tuple[dict[str, Sequence[str]], Sequence[str], str]] = {
    "source": ({"source": [WRITES_U]}, [INSERT], "tenant_1.t: trigger tr"),
    "target": ({"target": [WRITES_U]}, [INSERT], "tenant_1.t: trigger tr"),
    "other-body": ({"source": [WRITES_U], "target": [WRITES_U_OTHERWISE]}, [INSERT], "tenant_1.t: trigger tr"),
    "other-mode": ({"source": [WRITES_U], "target": [PIPES, WRITES_U]}, [INSERT], "tenant_1.t: trigger tr"),
    "behind-a-trigger": ({"both": [WRITES_U], "source": [BEHIND_U]}, [INSERT], "tenant_1.u: trigger tu"),
    "behind-a-function": ({"both": [FUNCTION], "source": [BEHIND_U]}, ["DO tenant_1.f()"], "tenant_1.u: trigger tu"),
    "behind-a-view": ({"source": [WRITES_U]}, ["INSERT INTO tenant_1.v (n) VALUES (1)"], "tenant_1.t: trigger tr"),
}
HIDDEN: dict[str, tuple[dict[str, Sequence[str]], Sequence[str], str]] = {
    # the table counts as altered, which explains nothing of the other trigger
    "made-beside-it": (
        {"source": [WRITES_U]},
        [INSERT, f"{WRITES_U.replace('tr ', 'later ')}"],
        "tenant_1.t: trigger tr",
    ),
    "renamed": ({"source": [WRITES_U]}, [INSERT, "RENAME TABLE t TO t_then"], "tenant_1.t: trigger tr"),
    "dropped": ({"source": [WRITES_U]}, [INSERT, "DROP TRIGGER tr"], "tenant_1.tr: trigger of seqno"),
    "made-if-missing": (
        {"source": [WRITES_U]},
        [INSERT, "CREATE TABLE IF NOT EXISTS t (id INT)"],
        "tenant_1.t: trigger tr",
    ),
    "another-order": (
        {"both": [WRITES_U], "source": ["DROP TRIGGER tenant_1.tr", SECOND, WRITES_U], "target": [SECOND]},
        [INSERT],
        "tenant_1.t: trigger second: expected the source's order, second, tr, found tr, second",
    ),
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a window of all cases ends with."""

    lines: Sequence[str]
    before: Mapping[str, set[tuple[object, ...]]]
    after: Mapping[str, set[tuple[object, ...]]]

    def assert_names(self, case: str, named: str) -> None:
        [text] = in_database(database_of(case), named)
        assert [line for line in self.lines if text in line and "[fired-triggers]" in line], "\n".join(self.lines)
        assert self.after == self.before


@pytest.fixture(scope="module")
def refusal_on(shared_channel_of: ChannelOf) -> Callable[[str], Refusal]:
    """The refusal of one window that has all cases, by the servers' family."""

    @functools.cache
    def refusal(family: str) -> Refusal:
        channel = shared_channel_of(family, family)
        for case, (only, statements, _) in (ONE_SIDED | HIDDEN).items():
            function = [FUNCTION] if case in HIDDEN else []
            add_case(channel, database_of(case), {**only, "both": [*only.get("both", []), *function]})
            logged_as_statements(channel, *statements, database=database_of(case))
        before = channel.rows_of(channel.target)
        with pytest.raises(PrecheckError) as refused:
            channel.run()
        return Refusal(str(refused.value).splitlines(), before, channel.rows_of(channel.target))

    return refusal


@FAMILIES
@pytest.mark.parametrize("case", ONE_SIDED)
def test_triggers_that_only_one_server_has_are_named(
    refusal_on: Callable[[str], Refusal], family: str, case: str
) -> None:
    refusal_on(family).assert_names(case, ONE_SIDED[case][-1])


@FAMILIES
def test_triggers_that_are_alike_and_those_of_the_log_fire_on_both(channel_of: ChannelOf, family: str) -> None:
    channel = prepared(channel_of(family, family), both=[WRITES_U, FUNCTION])
    logged_as_statements(channel, INSERT, "INSERT INTO v (n) VALUES (f())")
    assert channel.run() is not None
    logged_as_statements(
        channel,
        INSERT,
        "INSERT INTO v (n) VALUES (f())",
        BEHIND_U,
        INSERT,
        "DROP TRIGGER tr",
        INSERT,
        "RENAME TABLE u TO u_then",
        "CREATE TABLE u LIKE u_then",
        f"{WRITES_U.replace('tr ', 'later ')}",
        INSERT,
    )
    assert channel.run() is not None
    channel.assert_equal()
    assert len(channel.target.query("SELECT * FROM tenant_1.u_then")) == 7


@FAMILIES
def test_triggers_that_the_source_has_made_and_dropped_behind_the_window_are_not_missed(
    channel_of: ChannelOf, family: str
) -> None:
    channel = prepared(channel_of(family, family), both=[BEHIND_U])
    logged_as_statements(channel, INSERT, "INSERT INTO u (what) VALUES ('u')")
    assert channel.run() is not None
    logged_as_statements(channel, INSERT, "INSERT INTO u (what) VALUES ('u')")
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    logged_as_statements(channel, WRITES_U, "DROP TRIGGER tu", "RENAME TABLE u TO u_then, w TO u")
    channel.go_on(window)
    assert channel.target.query("SELECT what FROM tenant_1.w") == [("w",)] * 2
    logged_as_statements(channel, INSERT)
    assert channel.run() is not None
    channel.assert_equal()


@FAMILIES
@pytest.mark.parametrize("case", HIDDEN)
def test_what_the_window_defines_hides_no_trigger_of_one_server(
    refusal_on: Callable[[str], Refusal], family: str, case: str
) -> None:
    refusal_on(family).assert_names(case, HIDDEN[case][-1])


@FAMILIES
# of the last one Python's lower() ends in another sigma than the servers'
@pytest.mark.parametrize("name", ["t`r", "größe", "a.b", "ΠΕΛΑΤΕΣ"])
def test_triggers_of_tables_with_hostile_names_are_found_in_a_statement_s_text(
    channel_of: ChannelOf, family: str, name: str
) -> None:
    channel, table = channel_of(family, family), f"tenant_1.`{name.replace('`', '``')}`"
    channel.on_both(*TABLES, f"CREATE TABLE {table} (n INT)")
    run_on(channel.source, WRITES_U.replace("ON tenant_1.t ", f"ON {table} "), log=False)
    logged_as_statements(channel, f"INSERT INTO {table} VALUES (1)")
    with pytest.raises(PrecheckError, match=r"trigger tr: expected AFTER INSERT.*\[fired-triggers\]"):
        channel.run()


def test_triggers_behind_a_query_that_makes_a_table_are_named(channel_of: ChannelOf) -> None:
    """MySQL refuses a function that changes others then (1746)."""
    channel = prepared(channel_of("mariadb", "mariadb"), both=[FUNCTION], source=[BEHIND_U])
    logged_as_statements(channel, "CREATE TABLE x SELECT f() AS n")
    with pytest.raises(PrecheckError, match=r"tenant_1\.u: trigger tu: .*\[fired-triggers\]"):
        channel.run()


@FAMILIES
def test_triggers_that_no_statement_fires_are_nobody_s_concern(channel_of: ChannelOf, family: str) -> None:
    """Another tenant has a table of that name; rows and reads fire none; and ``allow_unsafe`` takes the difference."""
    other = [each.replace("tenant_1", "tenant_2") for each in (*TABLES, WRITES_U)]
    channel = prepared(channel_of(family, family), source=other, target=other[:-1])
    logged_as_statements(channel, INSERT, "DELETE FROM tenant_1.t WHERE n = 2")
    run_on(channel.source, "INSERT INTO tenant_2.w (what) VALUES ('rows')")
    logged_as_statements(
        channel, "INSERT INTO tenant_2.u (what) SELECT n FROM tenant_2.t ORDER BY 1", "ALTER TABLE tenant_2.t ADD m INT"
    )
    assert channel.run() is not None
    logged_as_statements(channel, "INSERT INTO tenant_2.t (n) VALUES (1)")
    with pytest.raises(PrecheckError, match=r"tenant_2\.t: trigger tr: .*\[fired-triggers\]"):
        channel.run()
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None


def test_triggers_that_the_source_s_account_does_not_see_are_asked_for(channel_of: ChannelOf) -> None:
    channel = prepared(channel_of("mariadb", "mariadb"), source=[WRITES_U])
    run_on(
        channel.source,
        f"CREATE USER test_reader@'%' IDENTIFIED BY '{channel.source.password}'",
        "GRANT REPLICATION SLAVE, REPLICATION MASTER ADMIN, BINLOG MONITOR, SLAVE MONITOR, SELECT, EVENT, EXECUTE"
        " ON *.* TO test_reader@'%'",
        log=False,
    )
    channel.connect("source_server", channel.source, "test_reader")
    logged_as_statements(channel, INSERT)
    with pytest.raises(PrecheckError, match=r"source: privilege TRIGGER on tenant_1: .*GRANT TRIGGER ON `tenant_1`"):
        channel.run()


@requires_mysql
@pytest.mark.parametrize(("source", "target"), [("mysql", "mariadb"), ("mariadb", "mysql")])
def test_triggers_of_the_other_family_and_of_renamed_databases_are_the_same(
    channel_of: ChannelOf, source: str, target: str
) -> None:
    channel = channel_of(source, target)
    channel.write_channel('[rename]\ntenant_1 = "tenant_9"\n')
    run_on(channel.source, *TABLES, log=False)
    run_on(channel.target, *in_database("tenant_9", *TABLES), log=False)
    # the log's would be refused: it is made by hand
    qualified = WRITES_U.replace("INTO u", "INTO tenant_1.u")
    strict = "SET SESSION sql_mode = 'STRICT_ALL_TABLES'"
    run_on(channel.source, strict, qualified, log=False)
    run_on(channel.target, strict, qualified.replace("tenant_1", "tenant_9"), log=False)
    logged_as_statements(channel, INSERT)
    assert channel.run() is not None
    assert channel.target.query("SELECT what FROM tenant_9.u") == [("one",)]
    run_on(channel.target, "DROP TRIGGER tenant_9.tr", log=False)
    logged_as_statements(channel, INSERT)
    with pytest.raises(PrecheckError, match=r"tenant_9\.t: trigger tr: expected AFTER INSERT"):
        channel.run()


@requires_mysql
@pytest.mark.parametrize("statement", ["DELETE FROM parent", "DO g()"], ids=["cascade", "unread"])
def test_triggers_that_fire_on_cascades_and_behind_texts_that_nobody_reads_are_named(
    channel_of: ChannelOf, statement: str
) -> None:
    channel = channel_of("mysql", "mysql")
    if not channel.source.query("SHOW VARIABLES LIKE 'enable_cascade_triggers'"):
        pytest.skip("MySQL 9.7 and newer have cascades that fire triggers")
    gone = (
        "CREATE TRIGGER tenant_1.gone AFTER DELETE ON tenant_1.child FOR EACH ROW INSERT INTO u (what) VALUES ('gone')"
    )
    function = FUNCTION.replace("tenant_1.f()", "tenant_1.g()").replace(
        "INSERT INTO u (what) VALUES ('f')", "DELETE FROM child"
    )
    channel.on_both(
        *TABLES,
        "CREATE TABLE tenant_1.parent (id INT PRIMARY KEY)",
        "CREATE TABLE tenant_1.child (id INT, FOREIGN KEY (id) REFERENCES tenant_1.parent (id) ON DELETE CASCADE)",
        "INSERT INTO tenant_1.parent VALUES (1)",
        "INSERT INTO tenant_1.child VALUES (1)",
        function,
    )
    run_on(channel.source, gone, log=False)
    for server in (channel.source, channel.target):
        run_on(
            server,
            f"CREATE USER test_reader@'%' IDENTIFIED BY '{server.password}'",
            "GRANT ALL ON *.* TO test_reader@'%'",
            # whoever may read all databases sees every text
            "REVOKE SELECT, SHOW_ROUTINE ON *.* FROM test_reader@'%'",
            "GRANT SELECT ON tenant_1.* TO test_reader@'%'",
            "GRANT SELECT ON binlane.* TO test_reader@'%'",
            log=False,
        )
    for name, server in (("source", channel.source), ("target", channel.target)):
        channel.connect(f"{name}_server", server, "test_reader")
    logged_as_statements(channel, "SET SESSION enable_cascade_triggers = ON", statement)
    with pytest.raises(PrecheckError, match=r"tenant_1\.child: trigger gone: .*\[fired-triggers\]"):
        channel.run()


@FAMILIES
def test_a_trigger_is_fired_by_the_name_that_its_table_has_for_a_while(channel_of: ChannelOf, family: str) -> None:
    channel = prepared(channel_of(family, family), source=[WRITES_U], target=[WRITES_U_OTHERWISE])
    run_on(channel.source, "RENAME TABLE tenant_1.t TO tenant_1.then")
    logged_as_statements(channel, INSERT.replace("tenant_1.t ", "tenant_1.then "))
    run_on(channel.source, "RENAME TABLE tenant_1.then TO tenant_1.t")
    with pytest.raises(PrecheckError, match=r"tenant_1\.t: trigger tr: .*\[fired-triggers\]"):
        channel.run()
