"""Each variable of ``sql.session_variables``: what a window does whose session, or whose server, has another value.

In logs of statements: of rows, the target computes no more than ``test_generated_columns`` and
``test_generated_locales`` are about, and expressions of columns (here below).
"""

from __future__ import annotations

import contextlib
import functools
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import pytest

from binlane.errors import ApplyError, PrecheckError
from binlane.model import Flavor
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.sql.session_variables import VARIABLES, Fate, Variable
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.compare import compare
from lab.programs import has_mysql
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, database_of, in_database, run_on

STATEMENTS: Final = "SET SESSION binlog_format = STATEMENT"
MADE: Final = (
    "CREATE DATABASE tenant_1",
    "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, n INT, at DATE, s TEXT)",
    "INSERT INTO tenant_1.t VALUES (1, 7, '2023-01-01', NULL), (2, 3, '2024-12-31', NULL), (3, 5, '2021-01-03', NULL)",
)
OTHER: Final = "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, n INT)"
VERSIONED: Final = "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, n INT) WITH SYSTEM VERSIONING"
RECURSIVE: Final = (
    "INSERT INTO tenant_1.t (id) WITH RECURSIVE r AS (SELECT 100 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 110) "
    "SELECT i FROM r"
)
MATCH: Final = (
    "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, s TEXT, FULLTEXT (s)) ENGINE=InnoDB",
    "INSERT INTO tenant_1.u VALUES (1, 'about the thing'), (2, 'nothing')",
    "DELETE FROM tenant_1.u WHERE MATCH (s) AGAINST ('about')",
)


@dataclass(frozen=True, slots=True)
class Case:
    """A value, and statements whose effect it may decide."""

    value: str
    statements: tuple[str, ...]
    besides: tuple[str, ...] = ()
    """What the session sets, too."""


CASES: Final = {
    "default_week_format": Case("3", ("UPDATE tenant_1.t SET n = WEEK(at)",)),
    "div_precision_increment": Case("8", ("UPDATE tenant_1.t SET s = CONCAT(n / 3)",)),
    "group_concat_max_len": Case(
        "5",
        ("INSERT INTO tenant_1.t (id, s) SELECT 9, GROUP_CONCAT(at ORDER BY id) FROM tenant_1.t",),
        ("sql_mode = ''",),
    ),
    "max_sort_length": Case("64", ("UPDATE tenant_1.t SET n = 1 ORDER BY s DESC",)),
    "block_encryption_mode": Case("'aes-256-ecb'", ("UPDATE tenant_1.t SET s = HEX(AES_ENCRYPT(id, 'k'))",)),
    "default_regex_flags": Case("'DOTALL'", ("UPDATE tenant_1.t SET n = ('a\\nb' REGEXP 'a.b')",)),
    "windowing_use_high_precision": Case(
        "OFF",
        ("UPDATE tenant_1.t JOIN (SELECT id, SUM(n) OVER (ORDER BY id) q FROM tenant_1.t) z USING (id) SET n = q",),
    ),
    "cte_max_recursion_depth": Case("2000", (RECURSIVE,)),
    "max_recursive_iterations": Case("2", (RECURSIVE,), ("sql_mode = ''",)),
    "old_mode": Case("''", ("CREATE TABLE tenant_1.u (id INT PRIMARY KEY, s VARCHAR(9) CHARACTER SET utf8)",)),
    "old_mode ZERO_DATE_TIME_CAST": Case(
        "'UTF8_IS_UTF8MB3,ZERO_DATE_TIME_CAST'", ("UPDATE tenant_1.t SET s = CAST(TIME'10:20:30' AS DATETIME)",)
    ),
    "default_tmp_storage_engine": Case(
        "MyISAM",
        (
            "CREATE TEMPORARY TABLE tenant_1.tmp (id INT PRIMARY KEY)",
            "INSERT INTO tenant_1.tmp VALUES (50)",
            "INSERT INTO tenant_1.t (id) SELECT id FROM tenant_1.tmp",
            "DROP TEMPORARY TABLE tenant_1.tmp",
        ),
    ),
    "innodb_ft_enable_stopword": Case("OFF", MATCH),
    "ft_boolean_syntax": Case("'+ -><()~*:\"\"?|'", MATCH),
    "max_allowed_packet": Case("134217728", ("UPDATE tenant_1.t SET s = REPEAT('a', 9)",), ("sql_mode = ''",)),
    "default_storage_engine": Case("MyISAM", (OTHER,)),
    "innodb_default_row_format": Case("compact", (OTHER,)),
    "innodb_file_per_table": Case("OFF", (OTHER,)),
    "innodb_compression_default": Case("ON", (OTHER,)),
    "mysql56_temporal_format": Case("OFF", ("CREATE TABLE tenant_1.u (id INT PRIMARY KEY, at DATETIME)",)),
    "lc_time_names": Case("'de_DE'", ("UPDATE tenant_1.t SET s = DATE_FORMAT(at, '%M %W')",)),
    "time_zone": Case(
        "'+05:00'",
        (
            "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, at TIMESTAMP NULL)",
            "BEGIN",
            "INSERT INTO tenant_1.u VALUES (1, '2024-01-01 00:00:00')",
            "SET SESSION time_zone = '-03:00'",
            "INSERT INTO tenant_1.u VALUES (2, '2024-01-01 00:00:00')",
            "SET SESSION binlog_row_image = MINIMAL",
            "UPDATE tenant_1.u SET at = at + INTERVAL 1 DAY WHERE at < '2024-01-01 02:00:00'",
            "COMMIT",
        ),
    ),
    "foreign_key_checks": Case(
        "OFF",
        (
            "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES tenant_1.nowhere (id))",
            "INSERT INTO tenant_1.u VALUES (1, 99)",
        ),
    ),
    "unique_checks": Case("OFF", (OTHER, "INSERT INTO tenant_1.u VALUES (1, 1)")),
    "sql_auto_is_null": Case(
        "ON",
        (
            "CREATE TABLE tenant_1.u (id INT AUTO_INCREMENT PRIMARY KEY, n INT)",
            "INSERT INTO tenant_1.u (n) VALUES (1)",
            "UPDATE tenant_1.u SET n = 9 WHERE id IS NULL",
        ),
    ),
    "explicit_defaults_for_timestamp": Case(
        "OFF", ("CREATE TABLE tenant_1.u (id INT PRIMARY KEY, a TIMESTAMP)",), ("sql_mode = ''",)
    ),
    "collation_connection": Case("utf8mb4_bin", ("CREATE TABLE tenant_1.u AS SELECT 'a' AS s",)),
    "default_collation_for_utf8mb4": Case(
        "utf8mb4_general_ci", ("CREATE TABLE tenant_1.u (id INT PRIMARY KEY, s TEXT CHARACTER SET utf8mb4)",)
    ),
    "sql_require_primary_key": Case("OFF", ("CREATE TABLE tenant_1.u (id INT)",)),
    "default_table_encryption": Case("OFF", ("CREATE DATABASE tenant_2",)),
    "check_constraint_checks": Case(
        "OFF",
        (
            "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, n INT CHECK (n > 3))",
            "INSERT INTO tenant_1.u VALUES (1, 1)",
            "ALTER TABLE tenant_1.t ADD CONSTRAINT c CHECK (n > 3)",
        ),
    ),
    "sql_if_exists": Case("ON", ("DROP TABLE tenant_1.nowhere", "DROP TABLE tenant_1.t")),
    "system_versioning_insert_history": Case(
        "ON",
        (
            VERSIONED,
            "INSERT INTO tenant_1.u (id, n, row_start, row_end) VALUES (1, 1, '2020-01-01', '2021-01-01')",
        ),
    ),
    "character_set_collations": Case(
        "'utf8mb4=utf8mb4_bin'", ("CREATE TABLE tenant_1.u (id INT PRIMARY KEY, s TEXT CHARACTER SET utf8mb4)",)
    ),
    "sql_generate_invisible_primary_key": Case("ON", ("CREATE TABLE tenant_1.u (n INT)",)),
    "restrict_fk_on_non_standard_key": Case(
        "OFF",
        (
            "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, n INT, KEY (n))",
            "CREATE TABLE tenant_1.v (id INT PRIMARY KEY, n INT, FOREIGN KEY (n) REFERENCES tenant_1.u (n))",
        ),
    ),
    "system_versioning_alter_history": Case(
        "KEEP",
        (
            VERSIONED,
            "INSERT INTO tenant_1.u VALUES (1, 1)",
            "UPDATE tenant_1.u SET n = 2",
            "ALTER TABLE tenant_1.u ADD COLUMN z INT",
        ),
    ),
    "innodb_strict_mode": Case("OFF", (f"{OTHER} ENGINE=InnoDB",)),
    "sql_safe_updates": Case("OFF", ("UPDATE tenant_1.t SET n = 5",)),
    "sql_big_selects": Case("ON", ("UPDATE tenant_1.t SET n = 5",)),
    "max_join_size": Case("10000", ("UPDATE tenant_1.t SET n = 5",), ("sql_big_selects = 1",)),
    "updatable_views_with_limit": Case("NO", ("UPDATE tenant_1.t SET n = 5",)),
    "sql_select_limit": Case("1", ("INSERT INTO tenant_1.t (id) SELECT id + 10 FROM tenant_1.t",)),
    "optimizer_switch": Case(
        "'derived_merge=off'", ("UPDATE tenant_1.t SET n = 4 WHERE id IN (SELECT id FROM (SELECT 2 AS id) q)",)
    ),
    "alter_algorithm": Case("COPY", ("ALTER TABLE tenant_1.t ADD COLUMN z INT AFTER id",)),
    "system_versioning_asof": Case(
        "'2000-01-01'",
        (
            VERSIONED,
            "INSERT INTO tenant_1.u VALUES (1, 1)",
            "INSERT INTO tenant_1.t (id) SELECT id + 90 FROM tenant_1.u",
        ),
    ),
    "note_verbosity": Case("'basic'", ("UPDATE tenant_1.t SET n = 5",)),
    "show_create_table_skip_secondary_engine": Case("ON", (OTHER,)),
}  # fmt: skip
ONLY_AT_START: Final = {
    *("innodb_ft_min_token_size", "innodb_ft_max_token_size", "ft_min_word_len", "ft_max_word_len"),
    *("ft_stopword_file", "ngram_token_size", "innodb_ft_server_stopword_table"),
}
"""Those that a running server does not change, or only to a table that is there."""


NEWER: Final = {"block_encryption_mode", "character_set_collations"}
"""Those that MariaDB 10.11 does not have."""


def case_of(variable: Variable) -> str:
    """The name of its case."""
    is_second = variable.name == "old_mode" and variable.absent == ""
    return "old_mode ZERO_DATE_TIME_CAST" if is_second else variable.name


def test_each_variable_has_a_case() -> None:
    assert sorted({case_of(each) for each in VARIABLES} - ONLY_AT_START) == sorted(CASES)


def params(*fates: Fate) -> list[object]:
    """Each variable of these fates, in each family that has it; MariaDB's newest series, which has them all."""
    return [
        pytest.param(version, each, id=f"{version}-{case_of(each)}")
        for each in VARIABLES
        for version in ("mysql", "mariadb", "11.8")
        if each.fate in fates
        and not (version == "mariadb" and each.name in NEWER)
        and case_of(each) in CASES
        and (Flavor.MYSQL if version == "mysql" else Flavor.MARIADB) in each.flavors
    ]


def channel_with(channel_of: ChannelOf, version: str, variable: Variable) -> Channel:
    """The test is skipped where this server does not have the variable."""
    if version == "mysql" and not has_mysql():
        pytest.skip("no MySQL")
    channel = channel_of(version, version)
    if not channel.source.query("SHOW GLOBAL VARIABLES LIKE %s", (variable.name,)):
        pytest.skip(f"{version} has no {variable.name}")
    channel.on_both(*MADE)
    return channel


@contextlib.contextmanager
def global_value(server: PrivateServer, name: str, value: str) -> Iterator[None]:
    """The server has the value for a while."""
    [(before,)] = server.query(f"SELECT @@GLOBAL.{name}")
    server.query(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        server.query(f"SET GLOBAL {name} = %s", (before,))


def session_of(case: Case, variable: Variable) -> tuple[str, ...]:
    return (
        STATEMENTS,
        *(f"SET SESSION {each}" for each in case.besides),
        f"SET SESSION {variable.name} = {case.value}",
    )


def variables_of(channel: Channel, version: str, *fates: Fate) -> list[Variable]:
    """Those of ``params`` that this server has."""
    there = {name for name, _ in channel.source.query("SHOW GLOBAL VARIABLES")}
    flavor = Flavor.MYSQL if version == "mysql" else Flavor.MARIADB
    return [
        each
        for each in VARIABLES
        if each.fate in fates and case_of(each) in CASES and flavor in each.flavors and each.name in there
    ]


@dataclass(frozen=True, slots=True)
class Shared:
    """What a window has made of the cases that share it."""

    cases: tuple[str, ...]
    differences: tuple[str, ...]
    lines: tuple[str, ...] = ()
    """Of the window before it, which was refused."""

    def of(self, case: str) -> list[str]:
        """The differences of a case; those of no case are every case's."""
        databases = {each: database_of(each) for each in self.cases}
        owners = {
            text: {each for each, name in databases.items() if re.search(rf"\b{name}\b", text)}
            for text in self.differences
        }
        return [text for text, names in owners.items() if case in names or not names]


def shared_or_skip(windows: Callable[[str], Shared], version: str, variable: Variable) -> Shared:
    """The test is skipped where this server does not have the variable."""
    if version == "mysql" and not has_mysql():
        pytest.skip("no MySQL")
    shared = windows(version)
    if case_of(variable) not in shared.cases:
        pytest.skip(f"{version} has no {variable.name}")
    return shared


OWN_VALUES: Final = (Fate.LOGGED, Fate.IN_TEXT, Fate.SET, Fate.STRICTER, Fate.WITHOUT_EFFECT)


@pytest.fixture(scope="module")
def own_values(shared_channel_of: ChannelOf) -> Callable[[str], Shared]:
    """A window of all variables of these fates, by version."""

    @functools.cache
    def window(version: str) -> Shared:
        channel = shared_channel_of(version, version)
        variables = variables_of(channel, version, *OWN_VALUES)
        for variable in variables:
            database, case = database_of(case_of(variable)), CASES[case_of(variable)]
            channel.on_both(*in_database(database, *MADE))
            run_on(channel.source, *session_of(case, variable), *in_database(database, *case.statements))
        assert channel.run() is not None
        return Shared(tuple(map(case_of, variables)), compare(channel.source, channel.target).differences)

    return window


@pytest.mark.parametrize(("version", "variable"), params(*OWN_VALUES))
def test_a_session_s_own_value_arrives_or_makes_no_difference(
    own_values: Callable[[str], Shared], version: str, variable: Variable
) -> None:
    shared = shared_or_skip(own_values, version, variable)
    assert shared.of(case_of(variable)) == []


@pytest.fixture(scope="module")
def values_of_the_source(shared_channel_of: ChannelOf) -> Callable[[str], Shared]:
    """All variables that are compared at once, by version: a window of statements that see none of them, one of those
    that do, which is refused, and the same again when the target has the values, too."""

    @functools.cache
    def windows(version: str) -> Shared:
        channel = shared_channel_of(version, version)
        variables = [each for each in variables_of(channel, version, Fate.COMPARED) if not is_alone(version, each)]
        variables.sort(key=lambda each: each.name not in SEEN_BY_OTHERS)
        with contextlib.ExitStack() as values:
            for variable in variables:
                database = database_of(case_of(variable))
                channel.on_both(*in_database(database, *MADE))
                values.enter_context(global_value(channel.source, variable.name, CASES[case_of(variable)].value))
            for variable in variables:
                unseen = in_database(database_of(case_of(variable)), UNSEEN)
                run_on(channel.source, STATEMENTS, *unseen)
            assert channel.run() is not None
            channel.assert_equal()
            for variable in variables:
                case = CASES[case_of(variable)]
                besides = (f"SET SESSION {each}" for each in case.besides)
                statements = in_database(database_of(case_of(variable)), *case.statements)
                run_on(channel.source, STATEMENTS, *besides, *statements)
            with pytest.raises(PrecheckError) as refused:
                channel.run()
            for variable in variables:
                values.enter_context(global_value(channel.target, variable.name, CASES[case_of(variable)].value))
            assert channel.run() is not None
        differences = compare(channel.source, channel.target).differences
        return Shared(tuple(map(case_of, variables)), differences, tuple(str(refused.value).splitlines()))

    return windows


UNSEEN: Final = "UPDATE tenant_1.t SET n = n + 1 WHERE id = 1"


SEEN_BY_OTHERS: Final = {"max_sort_length", "max_allowed_packet"}
"""Statements of other cases see them, too; a window names the first that does."""


def is_alone(version: str, variable: Variable) -> bool:
    """Whether it shares no window: another case has the same variable, or a window with it is refused whatever the
    target's value is."""
    return case_of(variable) != variable.name or (version, variable.name) == ("mysql", "block_encryption_mode")


@pytest.mark.parametrize(("version", "variable"), params(Fate.COMPARED))
def test_another_value_of_the_source_stops_a_window_that_sees_it(
    values_of_the_source: Callable[[str], Shared], channel_of: ChannelOf, version: str, variable: Variable
) -> None:
    named = rf"{variable.name} of the target: expected"
    if not is_alone(version, variable):
        shared = shared_or_skip(values_of_the_source, version, variable)
        statements = CASES[case_of(variable)].statements
        databases = [f"{database_of(each)}." for each in shared.cases if CASES[each].statements == statements]
        assert any(re.search(named, line) and any(name in line for name in databases) for line in shared.lines)
        assert shared.of(case_of(variable)) == []
        return
    channel, case = channel_with(channel_of, version, variable), CASES[case_of(variable)]
    with global_value(channel.source, variable.name, case.value):
        if case_of(variable) == variable.name:
            run_on(channel.source, STATEMENTS, UNSEEN)
            assert channel.run() is not None
            channel.assert_equal()
        run_on(channel.source, STATEMENTS, *(f"SET SESSION {each}" for each in case.besides), *case.statements)
        with pytest.raises(PrecheckError, match=named):
            channel.run()
        with global_value(channel.target, variable.name, case.value):
            if variable.name != "block_encryption_mode":
                assert channel.run() is not None
                channel.assert_equal()


@pytest.mark.parametrize(("version", "variable"), params(Fate.STORAGE))
def test_another_value_of_the_source_is_told_where_it_decides_how_tables_are_stored(
    channel_of: ChannelOf, version: str, variable: Variable, caplog: pytest.LogCaptureFixture
) -> None:
    channel, case = channel_with(channel_of, version, variable), CASES[case_of(variable)]
    with global_value(channel.source, variable.name, case.value), caplog.at_level("INFO"):
        run_on(channel.source, STATEMENTS, *case.statements)
        assert channel.run() is not None
    assert f"{variable.name} of the target: expected" in caplog.text


@requires_mysql
@pytest.mark.parametrize("where", ["row", "trigger", "function", "view", "default"])
def test_an_expression_behind_a_table_or_a_statement_sees_it_too(channel_of: ChannelOf, where: str) -> None:
    """Rows whose columns the target computes; programs that statements run; defaults of what they insert."""
    channel = channel_of("mysql", "mysql")
    made = {
        "row": "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, n INT, s VARCHAR(30) AS (CONCAT(n / 3)) STORED)",
        "trigger": "CREATE TRIGGER tenant_1.x BEFORE INSERT ON tenant_1.u FOR EACH ROW SET NEW.n = NEW.n / 3 * 3",
        "function": "CREATE FUNCTION tenant_1.x (n INT) RETURNS INT DETERMINISTIC RETURN n / 3 * 3",
        "view": "CREATE VIEW tenant_1.x AS SELECT id, n / 3 AS n FROM tenant_1.t",
        "default": "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, n INT, s VARCHAR(30) DEFAULT (CONCAT(7 / 3)))",
    }
    tables = () if where in ("row", "default") else (OTHER,)
    channel.on_both(*MADE, *tables, made[where])
    insert = {
        "function": "INSERT INTO tenant_1.u (id, n) VALUES (1, tenant_1.x(7))",
        "view": "INSERT INTO tenant_1.u (id, n) SELECT id, n FROM tenant_1.x ORDER BY 1",
    }.get(where, "INSERT INTO tenant_1.u (id, n) VALUES (1, 7)")
    with global_value(channel.source, "div_precision_increment", "0"):
        run_on(channel.source, STATEMENTS, "UPDATE tenant_1.t SET n = n + 1")
        assert channel.run() is not None
        channel.assert_equal()
        run_on(channel.source, f"SET SESSION binlog_format = {'ROW' if where == 'row' else 'STATEMENT'}", insert)
        with pytest.raises(PrecheckError, match=r"div_precision_increment of the target: expected 0, as on the source"):
            channel.run()
        with global_value(channel.target, "div_precision_increment", "0"):
            assert channel.run() is not None
        channel.assert_equal()


def test_a_channel_that_allows_unsafe_statements_takes_the_difference(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "mariadb")
    run_on(channel.source, STATEMENTS, *MADE)
    channel.write_channel("allow_unsafe = true\n")
    with global_value(channel.source, "default_week_format", "3"):
        run_on(channel.source, STATEMENTS, "UPDATE tenant_1.t SET n = WEEK(at)")
        assert channel.run() is not None


def test_a_week_whose_mode_is_in_the_text_depends_on_nothing(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "mariadb")
    run_on(channel.source, STATEMENTS, *MADE)
    with global_value(channel.source, "default_week_format", "3"):
        run_on(channel.source, STATEMENTS, "UPDATE tenant_1.t SET n = WEEK(DATE_ADD(at, INTERVAL 1 DAY), 1)")
        assert channel.run() is not None
        channel.assert_equal()


@pytest.mark.parametrize("flavor", [pytest.param("mysql", marks=requires_mysql), "mariadb"])
def test_a_smaller_packet_cuts_nothing_off_in_silence_under_strict_modes(channel_of: ChannelOf, flavor: str) -> None:
    """There the server's error stops the lane."""
    channel = channel_of(flavor, flavor)
    run_on(channel.source, *MADE)
    with global_value(channel.source, "max_allowed_packet", "134217728"):
        strict = "SET SESSION sql_mode = 'STRICT_TRANS_TABLES'"
        run_on(channel.source, STATEMENTS, strict, "UPDATE tenant_1.t SET s = REPEAT('a', 9)")
        assert channel.run() is not None
    channel.assert_equal()


@pytest.mark.parametrize("flavor", [pytest.param("mysql", marks=requires_mysql), "mariadb"])
@pytest.mark.parametrize("is_made", [False, True])
def test_a_fulltext_index_behind_a_trigger_is_named(channel_of: ChannelOf, flavor: str, is_made: bool) -> None:
    """Nobody looks into programs when blocks are made. With blocks of one transaction there is nothing to name."""
    channel = channel_of(flavor, flavor)
    trigger = (
        "CREATE TRIGGER tenant_1.x BEFORE INSERT ON tenant_1.v FOR EACH ROW SET NEW.n = "
        "(SELECT COUNT(*) FROM tenant_1.u WHERE MATCH (s) AGAINST ('giraffe'))"
    )
    tables = (
        "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, s TEXT, FULLTEXT (s)) ENGINE=InnoDB",
        "CREATE TABLE tenant_1.v (id INT PRIMARY KEY, n INT)",
    )
    channel.on_both(*MADE, *tables, *(() if is_made else (trigger,)))
    run_on(channel.source, STATEMENTS, "INSERT INTO tenant_1.u VALUES (1, 'a giraffe')")
    assert channel.run() is not None
    run_on(channel.source, STATEMENTS, *((trigger,) if is_made else ()), "INSERT INTO tenant_1.u VALUES (2, 'giraffe')")
    run_on(channel.source, STATEMENTS, "INSERT INTO tenant_1.v (id) VALUES (1)")
    if is_made:  # the source does not have it any more
        run_on(channel.source, "DROP TRIGGER tenant_1.x")
    with pytest.raises(PrecheckError, match=r"FULLTEXT index themselves.*, found one in"):
        channel.run()
    channel.write_channel(transactions=1)
    shutil.rmtree(channel.work)
    assert channel.run() is not None
    channel.assert_equal()
    assert channel.target.query("SELECT n FROM tenant_1.v") == [(2,)]


@pytest.mark.parametrize("flavor", [pytest.param("mysql", marks=requires_mysql), "mariadb"])
@pytest.mark.parametrize("reduce", ["off", "block", "window"])
def test_a_fulltext_index_is_asked_when_the_rows_before_are_committed(
    channel_of: ChannelOf, flavor: str, reduce: str
) -> None:
    """InnoDB's index has no row before its transaction commits: within one block the statements would find none."""
    channel = channel_of(flavor, flavor)
    channel.write_channel("", f'reduce = "{reduce}"\n')
    run_on(channel.source, *MADE)
    texts = "CREATE TABLE tenant_1.u (id INT PRIMARY KEY, s TEXT, FULLTEXT (s)) ENGINE=InnoDB"
    run_on(channel.source, STATEMENTS, texts, "INSERT INTO tenant_1.u VALUES (1, 'a giraffe'), (2, 'an elephant')")
    run_on(channel.source, STATEMENTS, "DELETE FROM tenant_1.u WHERE MATCH (s) AGAINST ('giraffe')")
    run_on(channel.source, "SET SESSION binlog_format = ROW", "INSERT INTO tenant_1.u VALUES (3, 'a zebra')")
    run_on(channel.source, STATEMENTS, "UPDATE tenant_1.u SET s = 'horse' WHERE MATCH (s) AGAINST ('zebra')")
    run_on(channel.source, STATEMENTS, "UPDATE tenant_1.u SET s = 'mule' WHERE MATCH (s) AGAINST ('horse')")
    assert channel.run() is not None
    channel.assert_equal()
    assert channel.target.query("SELECT id, s FROM tenant_1.u ORDER BY id") == [(2, "an elephant"), (3, "mule")]


@requires_mysql
def test_a_session_of_mariadb_that_takes_missing_objects_takes_them_on_mysql(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "mysql")
    channel.on_both("CREATE DATABASE app COLLATE utf8mb4_general_ci", "CREATE TABLE app.t (id INT PRIMARY KEY)")
    kinds = ("TABLE", "VIEW", "PROCEDURE", "FUNCTION", "TRIGGER")
    missing = (*(f"DROP {kind} app.missing" for kind in kinds), "DROP DATABASE missing", "DROP TABLE app.t")
    run_on(channel.source, "SET SESSION sql_if_exists = 1", *missing, "CREATE TABLE app.u (id INT PRIMARY KEY)")
    assert channel.run() is not None
    assert channel.target.query("SHOW TABLES FROM app") == [("u",)]
    run_on(channel.source, "SET SESSION sql_if_exists = 1", "RENAME TABLE app.missing TO app.x, app.u TO app.v")
    with pytest.raises(PrecheckError, match=r"IF EXISTS by sql_if_exists, in the statement of seqno .*\[features\]"):
        channel.run()


@pytest.mark.parametrize("family", [pytest.param("mysql", marks=requires_mysql), "mariadb"])
def test_a_target_that_has_lost_what_set_global_has_set_is_named(channel_of: ChannelOf, family: str) -> None:
    """As behind a start of the server inside the window, of which no check is asked."""
    channel = channel_of(family, family)
    channel.on_both(*MADE)
    servers, setting = (channel.source, channel.target), "SET GLOBAL div_precision_increment = {}"
    try:
        for server in servers:
            server.query(setting.format(8))
        run_on(channel.source, STATEMENTS, "UPDATE tenant_1.t SET s = CONCAT(n / 3)")
        window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
        run_plan_job(WorkFolder(window["work"]), InProcess())
        steps.adopt_plan(channel.config, channel.endpoints, window["work"])
        channel.target.query(setting.format(4))
        with pytest.raises(ApplyError, match=r"target: div_precision_increment: expected 8, .*, found 4:"):
            channel.go_on(window)
        assert channel.target.query("SELECT DISTINCT s FROM tenant_1.t") == [(None,)]
        channel.target.query(setting.format(8))
        channel.go_on(window)
        assert compare(channel.source, channel.target).differences == ()
    finally:
        for server in servers:
            server.query(setting.format(4))
