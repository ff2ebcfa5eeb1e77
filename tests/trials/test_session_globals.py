"""Every global variable that can be set, with a hostile value, on both servers: all commands, or a refusal by name.

Those that sessions inherit, and those that only the server has.

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

from binlane.driver.connection import Connection
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
SERVER_SAMPLE: Final = {
    *("slave_run_triggers_for_rbr", "slave_exec_mode", "slave_type_conversions", "replicate_do_db", "log_bin_compress"),
    *("binlog_row_metadata", "binlog_checksum", "mysql56_temporal_format", "innodb_default_row_format", "read_only"),
    *("local_infile", "log_bin_trust_function_creators", "event_scheduler", "max_binlog_size", "gtid_strict_mode"),
    *("replica_exec_mode", "replica_type_conversions", "super_read_only", "partial_revokes", "mandatory_roles"),
}
"""The same of variables that only the server has."""
SCOPES: Final = ("SESSION", "GLOBAL")
"""Sessions inherit them, or only the server has them."""
LISTS: Final = {
    Flavor.MARIADB: "SELECT variable_name, variable_type, numeric_min_value, numeric_max_value, enum_value_list "
    "FROM information_schema.system_variables WHERE variable_scope = %s AND read_only = 'NO'",
    Flavor.MYSQL: "SELECT variable_name, data_type, min_value, max_value, NULL "
    "FROM performance_schema.variables_metadata WHERE variable_scope = %s",
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
    # of servers alone
    "aria_recover_options": ("'OFF'",),
    "authentication_policy": ("'*,,'",),
    "binlog_checksum": ("'NONE'",),
    "binlog_commit_wait_count": ("3",),
    "binlog_error_action": ("'IGNORE_ERROR'",),
    "binlog_group_commit_sync_delay": ("1000",),
    "binlog_row_metadata": ("'FULL'", "'MINIMAL'"),
    "caching_sha2_password_storage_format": ("'PBKDF2'",),
    "concurrent_insert": ("'NEVER'", "'ALWAYS'"),
    "delay_key_write": ("'ALL'",),
    "enforce_gtid_consistency": ("'OFF'", "'WARN'"),
    "event_scheduler": ("'OFF'", "'ON'"),
    "ft_boolean_syntax": ("'>+ -<()~*:\"\"&|'",),
    "global_connection_memory_limit": ("16777216",),
    "gtid_mode": ("'ON_PERMISSIVE'",),
    "gtid_pos_auto_engines": ("'myisam'",),
    "init_connect": ("'SET @x = 1'",),
    "innodb_change_buffering": ("'none'", "'all'"),
    "innodb_checksum_algorithm": ("'strict_crc32'",),
    "innodb_default_row_format": ("'compact'", "'redundant'"),
    "innodb_doublewrite": ("'DETECT_ONLY'",),
    "innodb_log_writer_threads": ("'ON'",),
    "innodb_max_purge_lag_delay": ("1",),
    "innodb_stats_method": ("'nulls_ignored'",),
    "log_output": ("'TABLE'", "'NONE'"),
    "log_timestamps": ("'SYSTEM'",),
    "mandatory_roles": ("'nobody'",),
    "max_connections": ("20",),
    "protocol_compression_algorithms": ("'zlib,uncompressed'",),
    "read_binlog_speed_limit": ("64",),
    "replicate_do_db": ("'nothing'",),
    "replicate_do_table": ("'nothing.at_all'",),
    "replicate_ignore_db": ("'tenant_1'",),
    "replicate_ignore_table": ("'tenant_1.t'",),
    "replicate_rewrite_db": ("'tenant_1->elsewhere'",),
    "replicate_wild_do_table": ("'nothing.%%'",),
    "replicate_wild_ignore_table": ("'tenant%%.%%'",),
    "replica_exec_mode": ("'IDEMPOTENT'",),
    "replica_type_conversions": ("'ALL_LOSSY,ALL_NON_LOSSY'",),
    "slave_exec_mode": ("'IDEMPOTENT'",),
    "slave_type_conversions": ("'ALL_LOSSY,ALL_NON_LOSSY'",),
    "tls_version": ("'TLSv1.3'",),
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
LEFT_OUT_OF_SERVERS: Final = {
    r"(admin_)?(ssl|tls)_.*|require_secure_transport|offline_mode|proxy_protocol_networks": "whether clients come in",
    r"general_log_file|(log_)?slow_query(_log)?_file|log_error_.*|log_raw|innodb_buffer_pool_filename": "files",
    r"performance_schema_.*|innodb_monitor_.*|innodb_buffer_pool_(dump|load)_.*": "what the server shows of itself",
    r"wsrep_.*|rpl_semi_sync_.*|thread_pool_.*": "no cluster, no replica that answers, no pool",
    r"gtid_(binlog_state|slave_pos|purged)|server_id(_bits)?": "the identity of a server and its transactions",
    r"binlog_encryption|innodb_(redo|undo)_log_encrypt|innodb_encrypt.*|keyring_.*|(aria_)?encrypt_.*": "no keys",
    r"innodb_redo_log_archive_dirs|innodb_ft_(aux|server_stopword)_table|init_(slave|replica)": "of no session",
    r"innodb_log_checkpoint_now|innodb_max_purge_lag_wait|sql_(slave|replica)_skip_counter": "an order, no setting",
}
"""Patterns of variables that only the server has."""
ONE_SIDED: Final = {
    ("source", "mysql56_temporal_format"): "verification names the older format of the columns",
    ("target", "innodb_file_per_table"): "verification names the tablespace of what MySQL makes then",
}
"""What cannot be tried on one of the servers."""
_LARGEST: Final = 1 << 20
"""Larger values are of buffers, which each session would take."""
OWN: Final = {Flavor.MARIADB: "enforce_storage_engine = NULL", Flavor.MYSQL: "sql_require_primary_key = 0"}
"""What refuses a client's own statements."""
_READ_ONLY: Final = 1238
_NUMBERS: Final = re.compile("INT|DOUBLE|Integer|Numeric", re.I)


@dataclass(frozen=True, slots=True)
class Setting:
    """A variable with a hostile value."""

    name: str
    value: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"


def variables(server: PrivateServer, scope: str) -> Iterator[tuple[str, str, str | None, str | None, str | None]]:
    """All variables of a scope that can be set: name, type, smallest, largest, words."""
    for row in server.query(LISTS[server.flavor], (scope,)):
        name, kind, low, high, words = str(row[0]).lower(), *(None if one is None else str(one) for one in row[1:])
        is_fixed = scope == "GLOBAL" and server.flavor is Flavor.MYSQL and not _can_be_set(server, name)
        if not is_fixed and name not in LEFT_OUT and not (scope == "GLOBAL" and _left_out_of_servers(name)):
            yield name, kind or "", low, high, words


def _left_out_of_servers(name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in LEFT_OUT_OF_SERVERS)


def _can_be_set(server: PrivateServer, name: str) -> bool:
    """MySQL's catalogue does not tell; nothing changes."""
    try:
        server.query(f"SET GLOBAL {name} = @@GLOBAL.{name}")
    except MySQLError as exc:
        return int(exc.args[0]) != _READ_ONLY
    return True


def settings(server: PrivateServer, scope: str) -> Iterator[Setting]:
    """Hostile values of all variables of a scope: those of a table, or the smallest and the largest, each word, or the
    opposite."""
    current = dict(server.query("SHOW GLOBAL VARIABLES"))
    for name, kind, low, high, words in variables(server, scope):
        if name in VALUES:
            yield from (Setting(name, value) for value in VALUES[name])
        elif kind in ("BOOLEAN", "Boolean"):
            yield Setting(name, "0" if current.get(name) == "ON" else "1")
        elif kind == "ENUM" and words is not None:
            yield from (Setting(name, f"'{word}'") for word in words.split(",") if word != current.get(name))
        elif _NUMBERS.search(kind) and low:
            yield Setting(name, low)
            if high and float(high) <= _LARGEST:
                yield Setting(name, high)


class OwnStatementError(Exception):
    """A client's own statement, which is none of binlane's."""


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
        "CREATE TABLE tenant_1.kinds (id INT PRIMARY KEY, e ENUM('a', 'b'), j JSON, at DATETIME(3), t TIME, "
        "d DECIMAL(8, 3), g INT AS (id * 2) STORED, x VARCHAR(20), FULLTEXT (x))",
        "CREATE TRIGGER tenant_1.fires BEFORE UPDATE ON tenant_1.kinds FOR EACH ROW SET NEW.d = NEW.d + 1",
        "CREATE FUNCTION tenant_1.twice (a INT) RETURNS INT DETERMINISTIC RETURN 2 * a",
        "SET SESSION sql_mode = ''",
        f"INSERT INTO tenant_1.t (n, s, at) VALUES {many}",
        "INSERT INTO tenant_1.kinds (id, e, j, at, t, d, x) VALUES "
        "(1, 'a', '{\"k\": [1, 2.50]}', '2024-01-01 01:02:03.456', '-10:00:00', 1.5, 'one word'), "
        "(2, NULL, NULL, NULL, NULL, NULL, NULL)",
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
            "UPDATE tenant_1.kinds SET e = 'b', j = JSON_SET(j, '$.m', 'text'), d = d * 2, t = '838:59:59'",
            "SET SESSION binlog_format = STATEMENT",
            "INSERT INTO tenant_1.t (n, s) VALUES (1000, 'by a statement')",
            "UPDATE tenant_1.t SET s = CONCAT(s, '!'), n = tenant_1.twice(n) WHERE n > 290",
            "INSERT INTO tenant_1.kinds (id, e, t) VALUES (9, 'a', '10:11:12')",
            "UPDATE tenant_1.kinds SET x = 'by a statement' WHERE id = 1",
            "SET SESSION binlog_format = ROW",
            "ALTER TABLE tenant_1.t ADD COLUMN z INT NOT NULL DEFAULT 7",
            "CREATE EVENT tenant_1.daily ON SCHEDULE EVERY 1 DAY DO DELETE FROM tenant_1.made",
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
        try:
            for statement in (*own, *statements):
                cursor.execute(statement)
        except MySQLError as exc:
            raise OwnStatementError(str(exc)) from exc


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
    except (AssertionError, BinlaneError, MySQLError, OwnStatementError) as exc:
        if isinstance(exc, OwnStatementError) and len(group) == 1:
            return []
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


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("flavor", list(Flavor))
def test_every_global_variable(
    channel_of: ChannelOf, flavor: Flavor, side: str, scope: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if flavor is Flavor.MYSQL and not has_mysql():
        pytest.skip(WITHOUT_MYSQL)
    channel = channel_of(flavor.value, flavor.value)
    server = channel.source if side == "source" else channel.target
    every = [each for each in settings(server, scope) if (side, each.name) not in ONE_SIDED]
    names = list(dict.fromkeys(each.name for each in every))
    assert len(names) > 100
    untried = {name for name, *_ in variables(server, scope) if (side, name) not in ONE_SIDED} - {*names}
    assert untried == set(), "a variable without a hostile value"
    names = list(sampled(names, [name for name in names if name in (SAMPLE if scope == "SESSION" else SERVER_SAMPLE)]))
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
