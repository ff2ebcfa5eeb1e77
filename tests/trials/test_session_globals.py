"""Every global variable that a session inherits, with a hostile value, on both servers: all commands, or a refusal.

The variables are read from the servers' own lists, their values are made of their types. Groups of them are set at
once, on the source and on the target in turn; a group that fails is halved until one variable is left. What a refusal
names is set back, and the rest of its group is tried again.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest
from pymysql.err import MySQLError

from binlane.driver import Connection
from binlane.errors import BinlaneError
from binlane.model import Flavor
from lab.programs import WITHOUT_MYSQL, has_mysql
from lab.servers import PrivateServer
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf
from tests.trials.sampling import IS_WHOLE, sampled

GROUP: Final = 12
"""Variables that are hostile together."""
SAMPLE: Final = {
    *(
        "autocommit",
        "completion_type",
        "sql_select_limit",
        "max_join_size",
        "sql_safe_updates",
        "sql_mode",
        "time_zone",
    ),
    *("max_statement_time", "max_execution_time", "tx_isolation", "transaction_isolation", "collation_connection"),
    *("show_gipk_in_create_table_and_information_schema", "sql_generate_invisible_primary_key", "big_tables"),
    *("time_zone", "auto_increment_increment", "group_concat_max_len", "sql_quote_show_create", "foreign_key_checks"),
}
"""Variables that have changed what a command read or wrote."""
LISTS: Final = {
    Flavor.MARIADB: "SELECT variable_name, variable_type, numeric_min_value, numeric_max_value, enum_value_list "
    "FROM information_schema.system_variables WHERE variable_scope = 'SESSION' AND read_only = 'NO'",
    Flavor.MYSQL: "SELECT variable_name, data_type, min_value, max_value, NULL "
    "FROM performance_schema.variables_metadata WHERE variable_scope = 'SESSION'",
}
VALUES: Final[dict[str, tuple[str, ...]]] = {
    "sql_mode": (
        "'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,IGNORE_SPACE,HIGH_NOT_PRECEDENCE'",
        "'ORACLE'",
        "''",
    ),
    "completion_type": ("1", "2"),
    "transaction_isolation": ("'READ-UNCOMMITTED'", "'SERIALIZABLE'"),
    "tx_isolation": ("'READ-UNCOMMITTED'", "'SERIALIZABLE'"),
    "max_statement_time": ("0.000001",),
    "max_execution_time": ("1",),
    "sql_select_limit": ("0", "3"),
    "system_versioning_asof": ("'2001-01-01 00:00:00'",),
    "time_zone": ("'-07:00'",),
    "lc_messages": ("'de_DE'",),
    "lc_time_names": ("'de_DE'",),
    "default_storage_engine": ("MyISAM",),
    "default_tmp_storage_engine": ("MyISAM",),
    "enforce_storage_engine": ("MyISAM",),
    "character_set_client": ("latin1",),
    "character_set_connection": ("latin1",),
    "character_set_results": ("latin1",),
    "character_set_server": ("latin1",),
    "character_set_filesystem": ("latin1",),
    "collation_connection": ("latin1_bin",),
    "collation_server": ("latin1_bin",),
    "default_collation_for_utf8mb4": ("utf8mb4_general_ci",),
    "character_set_collations": ("'utf8mb4=utf8mb4_bin'",),
    "old_mode": ("'ZERO_DATE_TIME_CAST,NO_DUP_KEY_WARNINGS_WITH_IGNORE'",),
    "optimizer_switch": ("'index_merge=off,materialization=off,semijoin=off,derived_merge=off'",),
    "wait_timeout": ("1",),
    # less than a login needs: the server ends it
    "max_session_mem_used": ("50000000",),
    "auto_increment_increment": ("7",),
    "auto_increment_offset": ("5",),
    "session_track_system_variables": ("'*'",),
    "session_track_gtids": ("'ALL_GTIDS'",),
    "session_track_transaction_info": ("'CHARACTERISTICS'",),
    "log_slow_verbosity": ("'innodb,query_plan,explain'",),
    "note_verbosity": ("''",),
    "log_slow_disabled_statements": ("''",),
    "log_disabled_statements": ("''",),
    "log_slow_filter": ("'admin,full_join'",),
    "default_regex_flags": ("'DOTALL,EXTENDED,MULTILINE'",),
    "optimizer_adjust_secondary_key_costs": ("'adjust_secondary_key_cost'",),
    "optimizer_trace": ("'enabled=on'",),
    "optimizer_trace_features": ("'greedy_search=off,range_optimizer=off'",),
    "binlog_row_image": ("'MINIMAL'", "'NOBLOB'"),
    "binlog_row_value_options": ("'PARTIAL_JSON'",),
    "block_encryption_mode": ("'aes-256-cbc'",),
    "explain_format": ("'JSON'",),
    "internal_tmp_mem_storage_engine": ("'MEMORY'",),
    "myisam_stats_method": ("'nulls_equal'",),
    "rbr_exec_mode": ("'IDEMPOTENT'",),
    "terminology_use_previous": ("'BEFORE_8_0_26'",),
    "updatable_views_with_limit": ("'NO'",),
    "group_replication_consistency": ("'AFTER'",),
}
LEFT_OUT: Final = {
    "innodb_compression_default": "how a new table is stored: verification names the option",
    "default_table_encryption": "the server has no keys",
    "storage_engine": "another name of default_storage_engine",
    "character_set_database": "follows the default database",
    "collation_database": "follows the default database",
    "sql_log_bin": "no global value",
    "gtid_owned": "read-only",
    "server_id": "the identity of a server",
    "gtid_domain_id": "the identity of a server's transactions",
    "wsrep_on": "no cluster",
    "wsrep_causal_reads": "no cluster",
    "wsrep_sync_wait": "no cluster",
    "wsrep_dirty_reads": "no cluster",
    "wsrep_osu_method": "no cluster",
    "wsrep_trx_fragment_size": "no cluster",
    "max_user_connections": "a limit of an account's connections",
    "binlog_format": "the format of the log, whose own tests these are",
    "innodb_ft_user_stopword_table": "what a full-text index leaves out: no row",
    "innodb_tmpdir": "a folder of the server's own",
    "external_table_storage_engine": "no engine of external tables",
    "external_table_secondary_storage_engine": "no engine of external tables",
}
_LARGEST: Final = 1 << 20
"""Larger values are of buffers, which each session would take."""
OWN: Final = {Flavor.MARIADB: "enforce_storage_engine = NULL", Flavor.MYSQL: "sql_require_primary_key = 0"}
"""What refuses a client's own statements."""
_NUMBERS: Final = re.compile("INT|DOUBLE|Integer|Numeric", re.I)


@dataclass(frozen=True, slots=True)
class Setting:
    """A variable with a hostile value."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"


def settings(server: PrivateServer) -> Iterator[Setting]:
    """Hostile values of all variables that sessions inherit: those of a table, or the smallest and the largest, each
    word, or the opposite."""
    current = dict(server.query("SHOW GLOBAL VARIABLES"))
    for row in server.query(LISTS[server.flavor]):
        name, kind, low, high, words = str(row[0]).lower(), *(None if one is None else str(one) for one in row[1:])
        if name in LEFT_OUT:
            continue
        if name in VALUES:
            yield from (Setting(name, value) for value in VALUES[name])
        elif kind in ("BOOLEAN", "Boolean"):
            yield Setting(name, "0" if current.get(name) == "ON" else "1")
        elif kind == "ENUM" and words is not None:
            yield from (Setting(name, f"'{word}'") for word in words.split(",") if word != current.get(name))
        elif kind is not None and _NUMBERS.search(kind) and low:
            yield Setting(name, low)
            if high and float(high) <= _LARGEST:
                yield Setting(name, high)


@contextlib.contextmanager
def hostile(server: PrivateServer, group: Sequence[Setting]) -> Iterator[list[Setting]]:
    """The global values for a while; yields those that the server takes."""
    before: dict[str, object] = {}
    taken: list[Setting] = []
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        try:
            for setting in group:
                cursor.execute(f"SELECT @@GLOBAL.{setting.name}")
                value = cursor.fetchall()[0][0]
                with contextlib.suppress(Exception):
                    cursor.execute(f"SET GLOBAL {setting}")
                    before.setdefault(setting.name, value)
                    taken.append(setting)
            yield taken
        finally:
            for name, value in before.items():
                if name == "system_versioning_asof":
                    cursor.execute(f"SET GLOBAL {name} = DEFAULT")
                else:
                    cursor.execute(f"SET GLOBAL {name} = %s", (value,))


def play(channel: Channel, changes: dict[str, Sequence[Setting]]) -> None:
    """All commands of a channel with these settings; ends equal, or by a refusal that names a setting."""
    source, target = channel.source, channel.target
    for server in (source, target):
        for database in ("tenant_1", "tenant_2", "binlane"):
            server.query(f"DROP DATABASE IF EXISTS {database}")
    shutil.rmtree(channel.project / ".binlane", ignore_errors=True)
    many = ", ".join(f"({n}, REPEAT(CHAR(65 + {n} % 26), {n}), FROM_UNIXTIME(1000000000 + {n}))" for n in range(300))
    run(
        source,
        "CREATE DATABASE tenant_1 CHARACTER SET utf8mb4",
        "CREATE TABLE tenant_1.t (id INT AUTO_INCREMENT PRIMARY KEY, n INT, s TEXT, at TIMESTAMP NULL)",
        "CREATE TABLE tenant_1.keyless (n INT, d DATE)",
        "CREATE TABLE tenant_1.parent (id INT PRIMARY KEY)",
        "CREATE TABLE tenant_1.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES tenant_1.parent (id) "
        "ON DELETE CASCADE)",
        "CREATE VIEW tenant_1.v AS SELECT id, n FROM tenant_1.t",
        "SET SESSION sql_mode = ''",
        f"INSERT INTO tenant_1.t (n, s, at) VALUES {many}",
        "INSERT INTO tenant_1.keyless VALUES (1, '0000-00-00'), (2, '2024-02-30'), (2, NULL)",
        "INSERT INTO tenant_1.parent VALUES (1), (2)",
        "INSERT INTO tenant_1.child VALUES (1, 1), (2, 2)",
    )
    with contextlib.ExitStack() as stack:
        for server in (source, target):
            stack.enter_context(hostile(server, changes.get("source" if server is source else "target", ())))
        command(channel, "bootstrap", CHANNEL)
        equal(channel)
        run(
            source,
            "UPDATE tenant_1.t SET n = n + 1, s = 'ä' WHERE id % 7 = 0",
            "DELETE FROM tenant_1.t WHERE id % 50 = 0",
            "DELETE FROM tenant_1.parent WHERE id = 1",
            "INSERT INTO tenant_1.keyless VALUES (3, '2024-01-01')",
            "SET SESSION binlog_format = STATEMENT",
            "INSERT INTO tenant_1.t (n, s) VALUES (1000, 'by a statement')",
            "UPDATE tenant_1.t SET s = CONCAT(s, '!') WHERE n > 290",
            "SET SESSION binlog_format = ROW",
            "ALTER TABLE tenant_1.t ADD COLUMN z INT NOT NULL DEFAULT 7",
            "CREATE TABLE tenant_1.made (a INT, b TIMESTAMP NULL)",
            "CREATE DATABASE tenant_2 CHARACTER SET utf8mb4",
            "CREATE TABLE tenant_2.t (id INT PRIMARY KEY, s VARCHAR(20)) CHARACTER SET utf8mb4",
            "INSERT INTO tenant_2.t VALUES (1, 'ß'), (2, 'two')",
            "INSERT INTO tenant_1.made VALUES (1, '2024-01-01'), (2, NULL)",
        )
        command(channel, "run", CHANNEL)
        equal(channel)
        command(channel, "verify", CHANNEL, "--full")
        run(target, "UPDATE tenant_1.t SET n = -1 WHERE id IN (3, 299)", "DELETE FROM tenant_1.keyless WHERE n = 2")
        assert channel.cli("verify", CHANNEL, "--full") != 0, "drift was not found"
        command(channel, "verify", CHANNEL, "--full", "--repair", "--yes", allowed=(0, 1))
        command(channel, "recopy", CHANNEL, "--table", "tenant_1.keyless", "--table", "tenant_1.t", "--yes")
        equal(channel)
        command(channel, "verify", CHANNEL, "--full")


def client(server: PrivateServer) -> Connection:
    """A client whose own session is as it should be, on a server whose globals are not."""
    place: dict[str, Any] = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    return Connection(**place, charset="utf8mb4", autocommit=True, ssl_disabled=True, get_server_public_key=True)


def run(server: PrivateServer, *statements: str) -> None:
    """Statements of a client."""
    # of a client's own session, too
    own = (f"SET SESSION {OWN[server.flavor]}",)
    with contextlib.closing(client(server)) as connection, connection.cursor() as cursor:
        for statement in (*own, *statements):
            cursor.execute(statement)


def command(channel: Channel, *arguments: str, allowed: Sequence[int] = (0,)) -> None:
    code = channel.cli(*arguments)
    assert code in allowed, f"binlane {' '.join(arguments)} ended with {code}"


def equal(channel: Channel) -> None:
    """The rows of both servers, read by a client whose settings are right."""
    assert rows(channel.source) == rows(channel.target)


def rows(server: PrivateServer) -> dict[str, list[tuple[object, ...]]]:
    found = {}
    names = "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables WHERE table_schema LIKE "
    with contextlib.closing(client(server)) as connection, connection.cursor() as cursor:
        cursor.execute(f"{names} 'tenant%' ORDER BY 1")
        for (name,) in cursor.fetchall():
            cursor.execute(f"SELECT * FROM {name}")
            found[str(name)] = sorted(cursor.fetchall(), key=repr)
    return found


def failing(channel: Channel, side: str, group: Sequence[Setting], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The settings of a group that neither work nor are refused by name, each with what happened."""
    try:
        play(channel, {side: group})
    except (AssertionError, BinlaneError, MySQLError) as exc:
        told = "".join(capsys.readouterr())
        named = [each for each in group if each.name in told]
        if named and "expected" in told and len(group) > len(named):
            return failing(channel, side, [each for each in group if each not in named], capsys)
        if named and len(group) == len(named) == 1:
            return []
        if len(group) == 1:
            failed = f"{side}: {group[0]}: {str(exc)[:300]}: {told[-1500:]}"
            with capsys.disabled():
                # a sweep takes long: what it finds is of use before its end
                sys.stdout.write(f"{failed}\n")
            return [failed]
        middle = len(group) // 2
        return [
            *failing(channel, side, group[:middle], capsys),
            *failing(channel, side, group[middle:], capsys),
        ]
    capsys.readouterr()
    return []


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("flavor", list(Flavor))
def test_every_global_that_a_session_inherits(
    channel_of: ChannelOf, flavor: Flavor, side: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if flavor is Flavor.MYSQL and not has_mysql():
        pytest.skip(WITHOUT_MYSQL)
    channel = channel_of(flavor.value, flavor.value)
    every = list(settings(channel.source if side == "source" else channel.target))
    names = list(dict.fromkeys(each.name for each in every))
    assert len(names) > 100
    untried = {str(row[0]).lower() for row in channel.source.query(LISTS[flavor])} - {*names, *LEFT_OUT}
    assert untried == set(), "a variable without a hostile value"
    names = list(sampled(names, [name for name in names if name in SAMPLE]))
    failed: list[str] = []
    # two values of one variable are of different groups
    rounds = max(sum(each.name == name for each in every) for name in names) if IS_WHOLE else 1
    for turn in range(rounds):
        of_turn = [
            setting for name in names for setting in [each for each in every if each.name == name][turn : turn + 1]
        ]
        for at in range(0, len(of_turn), GROUP):
            failed += failing(channel, side, of_turn[at : at + GROUP], capsys)
    assert not failed, "\n".join(failed)
