"""Routines and views that statements call and name: each server has its own, so they must be the same on both."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pytest

from binlane.errors import PrecheckError
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, database_of, in_database, run_on

TABLES = (
    "CREATE DATABASE tenant_1 COLLATE utf8mb4_general_ci",
    "CREATE TABLE tenant_1.t (id INT PRIMARY KEY AUTO_INCREMENT, n VARCHAR(80))",
    "CREATE TABLE tenant_1.s (id INT PRIMARY KEY, n INT)",
    "CREATE TABLE tenant_1.c (n INT)",
    "INSERT INTO tenant_1.s VALUES (1, 1), (2, 2), (3, 3)",
    "INSERT INTO tenant_1.c VALUES (0)",
)
FAMILIES = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
NAMES = "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci"
BINARY = "SET NAMES utf8mb4 COLLATE utf8mb4_bin"
PIPES = "SET SESSION sql_mode = 'PIPES_AS_CONCAT'"
NO_MODE = "SET SESSION sql_mode = ''"
AS_ANOTHER = ("CREATE ", "CREATE DEFINER=test_other@h1 ")
CALL = "INSERT INTO t (n) SELECT f(1)"
FROM_VIEW = "INSERT INTO t (n) SELECT COUNT(*) FROM v"
INTO_VIEW = "INSERT IGNORE INTO v VALUES (0, 0), (7, 7)"
INSERT = "INSERT INTO t (n) VALUES ('a')"
CHECKED = " WITH CHECK OPTION"
CALLS_P = "CREATE FUNCTION tenant_1.f(a INT) RETURNS INT DETERMINISTIC BEGIN DECLARE b INT; CALL p(b); RETURN b; END"
DECLARES = (
    "CREATE FUNCTION tenant_1.f(a INT) RETURNS INT DETERMINISTIC BEGIN DECLARE x CHAR(1) DEFAULT 'a'; RETURN x = 'A';"
    " END"
)
COUNTS = (
    "CREATE FUNCTION tenant_1.f(a INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN UPDATE c SET n = n + 1;"
    " RETURN 1; END"
)
DEPENDS = COUNTS.replace("DETERMINISTIC", "NOT DETERMINISTIC")


def function(value: str, returned: str = "VARCHAR(60)") -> str:
    return f"CREATE FUNCTION tenant_1.f(a INT) RETURNS {returned} DETERMINISTIC RETURN {value}"


def procedure(value: int) -> str:
    return f"CREATE PROCEDURE tenant_1.p(OUT a INT) SET a = {value}"


def view(condition: str = "id < 3", columns: str = "id, n") -> str:
    return f"CREATE VIEW tenant_1.v AS SELECT {columns} FROM tenant_1.s WHERE {condition}"


def trigger(value: str) -> str:
    return f"CREATE TRIGGER tenant_1.tr BEFORE INSERT ON tenant_1.t FOR EACH ROW SET NEW.n = {value}"


def by_another(statement: str) -> str:
    return statement.replace(*AS_ANOTHER)


def with_algorithm(name: str) -> str:
    return view("TRUE", "id, n / 3 AS n").replace("CREATE ", f"CREATE ALGORITHM = {name} ")


SILENT = {
    "function": ([function("1")], [function("2")], CALL, "function tenant_1.f: .* another body"),
    "view": ([view()], [view("id < 2")], FROM_VIEW, "view tenant_1.v: .* another query"),
    "names-of-a-view's-columns": (
        ["CREATE VIEW tenant_1.v (n, m) AS SELECT id, n FROM tenant_1.s"],
        ["CREATE VIEW tenant_1.v (m, n) AS SELECT id, n FROM tenant_1.s"],
        "UPDATE v SET n = n + 10",
        "view tenant_1.v: .* another query",
    ),
    "updated-view": ([view()], [view("id < 2")], "UPDATE v SET n = 9", "view tenant_1.v: .* another query"),
    "joined-view": (
        [view()],
        [view("id < 2")],
        "UPDATE t JOIN v ON t.id = v.id SET t.n = 'x'",
        "view tenant_1.v: .* another query",
    ),
    "check-option": ([view()], [view() + CHECKED], INTO_VIEW, "view tenant_1.v: .* another CHECK OPTION, CASCADED"),
    "no-check-option": ([view() + CHECKED], [view()], INTO_VIEW, "view tenant_1.v: .* another CHECK OPTION, NONE"),
    "algorithm": (
        [with_algorithm("MERGE")],
        [with_algorithm("TEMPTABLE")],
        "INSERT INTO t (n) SELECT n * 3000000 FROM v ORDER BY 1",
        "view tenant_1.v: .* another (ALGORITHM, TEMPTABLE|updatability, NO)",
    ),
    "mode": (
        [NO_MODE, function("'a' || 'b'")],
        [PIPES, function("'a' || 'b'")],
        CALL,
        "function tenant_1.f: .* another sql_mode, PIPES_AS_CONCAT",
    ),
    "collation": (
        [BINARY, function("'a' = 'A'")],
        [NAMES, function("'a' = 'A'")],
        CALL,
        "function tenant_1.f: .* another collation of the client, utf8mb4_general_ci",
    ),
    "collation-of-a-view": (
        [BINARY, view("'a' = 'A'")],
        [NAMES, view("'a' = 'A'")],
        FROM_VIEW,
        "view tenant_1.v: .* another collation of the client",
    ),
    "collation-of-a-trigger": (
        [BINARY, trigger("'a' = 'A'")],
        [NAMES, trigger("'a' = 'A'")],
        INSERT,
        "tenant_1.t: trigger tr: .* another collation of the client",
    ),
    "collation-of-the-database": (
        ["ALTER DATABASE tenant_1 COLLATE utf8mb4_bin", DECLARES],
        [DECLARES],
        CALL,
        "function tenant_1.f: .* another collation of the database, utf8mb4_general_ci",
    ),
    "definer": (
        [by_another(function("CURRENT_USER()"))],
        [function("CURRENT_USER()")],
        CALL,
        "function tenant_1.f: .* another definer",
    ),
    "definer-of-a-view": (
        [by_another(view(columns="CURRENT_USER() AS n"))],
        [view(columns="CURRENT_USER() AS n")],
        "INSERT INTO t (n) SELECT n FROM v ORDER BY 1",
        "view tenant_1.v: .* another definer",
    ),
    "definer-of-a-trigger": (
        [by_another(trigger("CURRENT_USER()"))],
        [trigger("CURRENT_USER()")],
        INSERT,
        "tenant_1.t: trigger tr: .* another definer",
    ),
    "definer-in-front": (
        [
            function("CURRENT_USER()").replace("RETURN CU", "SQL SECURITY INVOKER RETURN CU"),
            by_another(trigger("f(1)")),
        ],
        [function("CURRENT_USER()").replace("RETURN CU", "SQL SECURITY INVOKER RETURN CU"), trigger("f(1)")],
        INSERT,
        "tenant_1.t: trigger tr: .* another definer",
    ),
    "behind-a-trigger": (
        [trigger("f(1)"), function("1")],
        [trigger("f(1)"), function("2")],
        INSERT,
        "function tenant_1.f: .* another body",
    ),
    "behind-a-function": (
        [procedure(1), CALLS_P],
        [procedure(2), CALLS_P],
        CALL,
        "procedure tenant_1.p: .* another body",
    ),
    "behind-a-view": (
        [function("1"), view("id = tenant_1.f(1)")],
        [function("2"), view("id = tenant_1.f(1)")],
        "UPDATE v SET n = 9",
        "function tenant_1.f: .* another body",
    ),
    "deterministic": (
        [COUNTS],
        [DEPENDS],
        "UPDATE s SET n = n + 1 WHERE f(1) = 1",
        "function tenant_1.f: .* another DETERMINISTIC, NO",
    ),
    "returned-type": (
        [NO_MODE, function("'abcdefgh'", "CHAR(3)")],
        [NO_MODE, function("'abcdefgh'", "CHAR(9)")],
        CALL,
        r"function tenant_1.f: .* another returned type, char\(9\)",
    ),
    "parameters": (
        ["CREATE FUNCTION tenant_1.f(a INT, b INT) RETURNS INT DETERMINISTIC RETURN a"],
        ["CREATE FUNCTION tenant_1.f(b INT, a INT) RETURNS INT DETERMINISTIC RETURN a"],
        "INSERT INTO t (n) SELECT f(1, 2)",
        "function tenant_1.f: .* another parameters, IN b int",
    ),
    "view-for-a-table": (
        ["CREATE TABLE tenant_1.v (id INT)"],
        [view()],
        FROM_VIEW,
        "view tenant_1.v: expected none, as on the source, found one",
    ),
    "only-on-the-source": (
        [function("1")],
        [],
        CALL,
        "function tenant_1.f: expected one, as on the source, found none",
    ),
}


def prepared(channel: Channel, ours: Sequence[str] = (), theirs: Sequence[str] = ()) -> Channel:
    """Both servers have the tables; what either has is not in its log."""
    channel.on_both("CREATE USER test_other@h1", "GRANT ALL ON *.* TO test_other@h1")
    add_case(channel, "tenant_1", ours, theirs)
    return channel


def add_case(channel: Channel, database: str, ours: Sequence[str], theirs: Sequence[str]) -> None:
    """The tables on both servers, and the programs of each, in a case's database."""
    for server, statements in ((channel.source, ours), (channel.target, theirs)):
        run_on(
            server,
            *in_database(database, *TABLES),
            "SET GLOBAL log_bin_trust_function_creators = ON",
            f"USE {database}",
            *in_database(database, *statements),
            "SET GLOBAL log_bin_trust_function_creators = DEFAULT",
            log=False,
        )


def logged_as_statements(channel: Channel, *statements: str, database: str = "tenant_1") -> None:
    run_on(
        channel.source,
        "SET GLOBAL log_bin_trust_function_creators = ON",
        *("SET SESSION binlog_format = STATEMENT", NO_MODE, f"USE {database}", *in_database(database, *statements)),
        "SET GLOBAL log_bin_trust_function_creators = DEFAULT",
    )


HIDDEN = {
    "altered": (
        [function("1")],
        [function("2")],
        [CALL, "ALTER FUNCTION f COMMENT 'x'"],
        "function tenant_1.f: .*another body",
    ),
    "dropped": (
        [function("1")],
        [],
        [CALL, "DROP FUNCTION f"],
        "function tenant_1.f: expected one, as on the source then",
    ),
    "made": (
        [],
        [function("1")],
        [INSERT, function("2"), CALL],
        "function tenant_1.f: expected none, as on the source then",
    ),
    "renamed": ([view()], [view("id < 2")], [FROM_VIEW, "RENAME TABLE v TO v_now"], "view tenant_1.v: .*another query"),
    "dropped-view": (
        [view()],
        [],
        [FROM_VIEW, "DROP VIEW v"],
        "view tenant_1.v: expected one, as on the source then",
    ),
}
REFUSED = {
    **{case: (ours, theirs, [statement], named) for case, (ours, theirs, statement, named) in SILENT.items()},
    **HIDDEN,
}
CASES_OF_A_WINDOW = 14
"""Of those that share one: a check says no more than twenty findings."""
Rows: TypeAlias = Mapping[str, set[tuple[object, ...]]]


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a window of all cases ends with."""

    lines: Sequence[str]
    before: Rows
    after: Rows

    def named(self, case: str, pattern: str) -> list[str]:
        """The lines of a case's finding."""
        [expected] = in_database(database_of(case), pattern)
        return [line for line in self.lines if re.search(expected, line)]


@pytest.fixture(scope="module")
def refusal_of(shared_channel_of: ChannelOf) -> Callable[[str, str], Refusal]:
    """The refusal of the window that a case shares with others, by the servers' family and the case."""

    @functools.cache
    def refusal(family: str, number: int) -> Refusal:
        channel = shared_channel_of(family, family)
        channel.on_both("CREATE USER test_other@h1", "GRANT ALL ON *.* TO test_other@h1")
        first = number * CASES_OF_A_WINDOW
        for case in list(REFUSED)[first : first + CASES_OF_A_WINDOW]:
            ours, theirs, statements, _ = REFUSED[case]
            add_case(channel, database_of(case), ours, theirs)
            logged_as_statements(channel, *statements, database=database_of(case))
        before = channel.rows_of(channel.target)
        with pytest.raises(PrecheckError) as refused:
            channel.run()
        return Refusal(str(refused.value).splitlines(), before, channel.rows_of(channel.target))

    return lambda family, case: refusal(family, list(REFUSED).index(case) // CASES_OF_A_WINDOW)


@FAMILIES
@pytest.mark.parametrize("case", SILENT)
def test_programs_that_do_something_else_on_the_target_are_named(
    refusal_of: Callable[[str, str], Refusal], family: str, case: str
) -> None:
    refusal = refusal_of(family, case)
    lines = refusal.named(case, SILENT[case][-1])
    assert any("[fired-triggers]" in line or "[stored-programs]" in line for line in lines), "\n".join(refusal.lines)
    assert refusal.after == refusal.before


HARMLESS = {
    "comments": (
        [function("  1 /* one */")],
        [function("1")],
        CALL,
    ),
    "definer": ([by_another(function("1")), by_another(view())], [function("1"), view()], f"{CALL} FROM v ORDER BY 1"),
    "collation": ([BINARY, function("a + 1")], [NAMES, function("a + 1")], CALL),
    "stored-literal": ([BINARY, function("'a'")], [NAMES, function("'a'")], CALL),
    "data-access": ([function("1")], [function("1").replace("RETURN 1", "NO SQL RETURN 1")], CALL),
    "comment": ([function("1")], [function("1").replace("RETURN 1", "COMMENT 'x' RETURN 1")], CALL),
    "column-of-that-name": (
        [function("1"), "ALTER TABLE t ADD f INT"],
        [function("2"), "ALTER TABLE t ADD f INT"],
        "INSERT INTO t (n, f) SELECT id, n AS f FROM s ORDER BY id",
    ),
    "not-reached": ([function("1"), view()], [function("2"), view("id < 2")], INSERT),
}


@pytest.fixture(scope="module")
def rows_of_both(shared_channel_of: ChannelOf) -> Callable[[str], tuple[Rows, Rows]]:
    """The rows of both servers behind one window that has all harmless cases, by the servers' family."""

    @functools.cache
    def rows(family: str) -> tuple[Rows, Rows]:
        channel = shared_channel_of(family, family)
        channel.on_both("CREATE USER test_other@h1", "GRANT ALL ON *.* TO test_other@h1")
        for case, (ours, theirs, statement) in HARMLESS.items():
            add_case(channel, database_of(case), ours, theirs)
            logged_as_statements(channel, statement, database=database_of(case))
        assert channel.run() is not None
        return channel.rows_of(channel.source), channel.rows_of(channel.target)

    return rows


@FAMILIES
@pytest.mark.parametrize("case", HARMLESS)
def test_what_changes_no_row_is_nobody_s_concern(
    rows_of_both: Callable[[str], tuple[Rows, Rows]], family: str, case: str
) -> None:
    source, target = (
        {table: rows for table, rows in every.items() if table.startswith(f"{database_of(case)}.")}
        for every in rows_of_both(family)
    )
    assert len(source[f"{database_of(case)}.t"]) > 0
    assert target == source


@FAMILIES
def test_programs_that_are_alike_and_those_of_the_log_do_the_same_on_both(channel_of: ChannelOf, family: str) -> None:
    alike = [procedure(1), CALLS_P, view()]
    channel = prepared(channel_of(family, family), alike, alike)
    logged_as_statements(channel, CALL, FROM_VIEW)
    assert channel.run() is not None
    # what this window replaces behind its use, the one before has compared
    logged_as_statements(
        channel,
        CALL,
        FROM_VIEW,
        "DROP FUNCTION f",
        function("'of the log'"),
        CALL,
        "ALTER VIEW v AS SELECT id, n FROM s WHERE id < 2",
        FROM_VIEW,
        "RENAME TABLE v TO v_then",
        view("id < 4"),
        "UPDATE v_then SET n = 9",
        FROM_VIEW,
        "DROP VIEW v, v_then",
        "DROP PROCEDURE p",
    )
    assert channel.run() is not None
    channel.assert_equal()
    logged_as_statements(channel, CALL)
    assert channel.run() is not None
    channel.assert_equal()


@FAMILIES
def test_programs_that_the_source_has_changed_behind_the_window_are_not_missed(
    channel_of: ChannelOf, family: str
) -> None:
    alike = [function("1"), view()]
    channel = prepared(channel_of(family, family), alike, alike)
    logged_as_statements(channel, CALL, FROM_VIEW)
    assert channel.run() is not None
    logged_as_statements(channel, CALL, FROM_VIEW)
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    logged_as_statements(
        channel,
        "DROP FUNCTION f",
        function("2"),
        "RENAME TABLE v TO v_then",
        view("id < 1"),
        "ALTER VIEW v AS SELECT 1 n",
    )
    channel.go_on(window)
    assert channel.target.query("SELECT n FROM tenant_1.t ORDER BY id") == [("1",), ("2",)] * 2
    logged_as_statements(channel, CALL, FROM_VIEW)
    assert channel.run() is not None
    channel.assert_equal()


@FAMILIES
@pytest.mark.parametrize("case", HIDDEN)
def test_what_the_window_defines_hides_no_program_of_one_server(
    refusal_of: Callable[[str, str], Refusal], family: str, case: str
) -> None:
    refusal = refusal_of(family, case)
    lines = refusal.named(case, HIDDEN[case][-1])
    assert any("[stored-programs]" in line for line in lines), "\n".join(refusal.lines)
    assert refusal.after == refusal.before


@FAMILIES
def test_allow_unsafe_takes_other_programs(channel_of: ChannelOf, family: str) -> None:
    channel = prepared(channel_of(family, family), [function("1")], [function("2")])
    channel.write_channel("allow_unsafe = true\n")
    logged_as_statements(channel, CALL)
    assert channel.run() is not None
    assert channel.target.query("SELECT n FROM tenant_1.t") == [("2",)]


@FAMILIES
@pytest.mark.parametrize("side", ["source", "target"])
def test_texts_that_an_account_may_not_read_are_asked_for_where_statements_need_them(
    channel_of: ChannelOf, family: str, side: str
) -> None:
    alike = [function("1"), view()]
    channel = prepared(channel_of(family, family), alike, alike)
    server = getattr(channel, side)
    run_on(
        server,
        f"CREATE USER test_reader@'%' IDENTIFIED BY '{server.password}'",
        "GRANT ALL ON *.* TO test_reader@'%'",
        # whoever may read all databases sees every text
        "REVOKE SELECT ON *.* FROM test_reader@'%'",
        *(["REVOKE SHOW_ROUTINE ON *.* FROM test_reader@'%'"] if family == "mysql" else []),
        "GRANT SELECT ON tenant_1.* TO test_reader@'%'",
        "GRANT SELECT ON binlane.* TO test_reader@'%'",
        log=False,
    )
    channel.connect(f"{side}_server", server, "test_reader")
    logged_as_statements(channel, INSERT)
    assert channel.run() is not None
    logged_as_statements(channel, CALL)
    with pytest.raises(
        PrecheckError, match=rf"function tenant_1\.f: .*one whose text the {side}'s account may not read"
    ):
        channel.run()


@FAMILIES
def test_what_the_source_s_account_does_not_see_is_asked_for(channel_of: ChannelOf, family: str) -> None:
    """Without SHOW VIEW a view has no text."""
    alike = [function("1"), view()]
    channel = prepared(channel_of(family, family), alike, alike)
    log = "REPLICATION SLAVE, REPLICATION CLIENT"
    if family == "mariadb":
        log = "REPLICATION SLAVE, REPLICATION MASTER ADMIN, BINLOG MONITOR, SLAVE MONITOR"
    run_on(
        channel.source,
        f"CREATE USER test_reader@'%' IDENTIFIED BY '{channel.source.password}'",
        f"GRANT {log}, SELECT, TRIGGER, EVENT ON *.* TO test_reader@'%'",
        log=False,
    )
    channel.connect("source_server", channel.source, "test_reader")
    logged_as_statements(channel, FROM_VIEW)
    with pytest.raises(PrecheckError, match=r"view tenant_1\.v: .*GRANT .*SHOW VIEW"):
        channel.run()
    run_on(channel.source, "GRANT SHOW VIEW ON *.* TO test_reader@'%'", log=False)
    assert channel.run() is not None
    logged_as_statements(channel, CALL)  # whoever may read all databases sees every routine
    assert channel.run() is not None


@requires_mysql
@pytest.mark.parametrize(("source", "target"), [("mysql", "mariadb"), ("mariadb", "mysql"), ("11.8", "mariadb")])
def test_programs_of_other_versions_and_families_and_of_renamed_databases_are_the_same(
    channel_of: ChannelOf, source: str, target: str
) -> None:
    channel = channel_of(source, target)
    channel.write_channel('[rename]\ntenant_1 = "tenant_9"\n')
    run_on(channel.source, *TABLES, log=False)
    run_on(channel.target, *in_database("tenant_9", *TABLES), log=False)
    texts = (
        "SET SESSION sql_mode = 'STRICT_ALL_TABLES'",
        NAMES,
        "CREATE FUNCTION tenant_1.f(a INT, b VARCHAR(9)) RETURNS VARCHAR(60) DETERMINISTIC RETURN CONCAT('f', a, b)",
        "CREATE VIEW tenant_1.v AS SELECT s.id, tenant_1.f(s.n, 'v') AS n, s.n + 1 AS m FROM tenant_1.s JOIN tenant_1.c"
        " ON s.id > c.n WHERE s.id < 3 OR s.n IN (1, 2) ORDER BY s.id",
        # servers keep its qualifier as it is written here
        "CREATE FUNCTION tenant_1.g() RETURNS INT READS SQL DATA RETURN (SELECT MAX(s.n) FROM tenant_1.s)",
    )
    run_on(channel.source, *texts, log=False)
    run_on(channel.target, *(text.replace("tenant_1", "tenant_9") for text in texts), log=False)
    called = (
        "INSERT INTO t (n) SELECT f(1, 'b')",
        "INSERT INTO t (n) SELECT MAX(n) FROM v",
        "INSERT INTO t (n) SELECT g()",
    )
    logged_as_statements(channel, *called)
    assert channel.run() is not None
    rows = channel.target.query("SELECT n FROM tenant_9.t ORDER BY id")
    assert rows[:2] == [("f1b",), ("f2v",)]
    assert rows == channel.source.query("SELECT n FROM tenant_1.t ORDER BY id")
    run_on(channel.target, "ALTER VIEW tenant_9.v AS SELECT id, n FROM tenant_9.s WHERE id < 2", log=False)
    logged_as_statements(channel, "INSERT INTO t (n) SELECT MAX(n) FROM v")
    with pytest.raises(PrecheckError, match=r"view tenant_9\.v: expected the source's, found another query"):
        channel.run()


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("INSERT INTO t (n) SELECT g.f()", "package body tenant_1.g: .* another body"),
        ("CREATE TABLE x SELECT h() AS n", "function tenant_1.h: .* another body"),
    ],
    ids=["package", "made-by-a-query"],
)
def test_packages_and_functions_of_queries_that_make_tables_are_compared(
    channel_of: ChannelOf, statement: str, named: str
) -> None:
    """Of MariaDB: MySQL has no packages, and logs such a table as rows."""
    package = (
        "SET SESSION sql_mode = ORACLE",
        "CREATE PACKAGE g AS FUNCTION f RETURN INT; END",
        "CREATE PACKAGE BODY g AS FUNCTION f RETURN INT AS BEGIN RETURN {0}; END; END",
        "SET SESSION sql_mode = DEFAULT",
        "CREATE FUNCTION tenant_1.h() RETURNS INT RETURN {0}",
    )
    sides = [[text.format(value) for text in package] for value in (1, 2)]
    channel = prepared(channel_of("mariadb", "mariadb"), *sides)
    logged_as_statements(channel, "SET SESSION sql_mode = ORACLE", statement)
    with pytest.raises(PrecheckError, match=named):
        channel.run()
