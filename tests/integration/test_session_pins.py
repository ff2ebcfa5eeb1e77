"""Sessions have the settings of their kind, whatever the server's global variables and its ``init_connect`` are."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from pymysql.constants import SERVER_STATUS

from binlane.driver.connection import Connection
from binlane.errors import PrecheckError
from binlane.model import Flavor
from binlane.sessions.pins import PINS, UNPINNED, Pin, Server, SessionKind, is_as_pinned, pins_of
from lab.servers import PrivateServer

ServerOf = Callable[[str, str], PrivateServer]
VERSIONS: Final = ("mysql", "10.5", "10.11", "11.8")
ACCOUNT: Final = "test_sessions"
LISTS: Final = {
    Flavor.MARIADB: "SELECT variable_name FROM information_schema.system_variables WHERE variable_scope = 'SESSION'",
    Flavor.MYSQL: "SELECT variable_name FROM performance_schema.variables_metadata WHERE variable_scope = 'SESSION'",
}
HOSTILE: Final = {
    "sql_mode": "'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,IGNORE_SPACE'",
    "completion_type": "2",
    "tx_isolation": "'READ-UNCOMMITTED'",
    "transaction_isolation": "'READ-UNCOMMITTED'",
    "updatable_views_with_limit": "'NO'",
    "system_versioning_asof": "'2001-01-01 00:00:00'",
    "system_versioning_alter_history": "'KEEP'",
    "alter_algorithm": "'INSTANT'",
    "note_verbosity": "''",
    "lc_messages": "'de_DE'",
    "lc_time_names": "'de_DE'",
    "time_zone": "'-07:00'",
    "character_set_results": "latin1",
    "character_set_filesystem": "latin1",
    "character_set_collations": "'utf8mb4=utf8mb4_bin'",
    "old_mode": "'ZERO_DATE_TIME_CAST'",
    "explain_format": "'JSON'",
    "block_encryption_mode": "'aes-256-cbc'",
    "default_regex_flags": "'DOTALL'",
    "default_storage_engine": "MyISAM",
    "default_tmp_storage_engine": "MyISAM",
    "enforce_storage_engine": "MyISAM",
    "max_session_mem_used": "100000000",
    "tmp_disk_table_size": "1048576",
    "query_cache_type": "0",
    "max_sort_length": "64",
    "sort_buffer_size": "32768",
    "group_concat_max_len": "64",
    "auto_increment_increment": "7",
    "auto_increment_offset": "7",
    "lock_wait_timeout": "1",
    "innodb_lock_wait_timeout": "1",
    "max_recursive_iterations": "1",
    "sql_select_limit": "0",
}
"""Global values; of the other pins 1 where the pin is 0, and 0 or 1 where it is not."""
ONLY_SESSION: Final = frozenset({"rbr_exec_mode"})
"""Without a global value that can be set."""


def pinned_of(server: PrivateServer) -> Server:
    with contextlib.closing(server.connect()) as connection:
        return Server.of(str(connection.get_server_info()))  # type: ignore[no-untyped-call]


def hostile(pin: Pin, flavor: Flavor, kind: SessionKind) -> str:
    return HOSTILE.get(pin.name, "1" if pin.value_of(flavor, kind) == "0" else "0")


@contextlib.contextmanager
def hostile_globals(server: PrivateServer) -> Iterator[None]:
    """Every pinned variable has another global value."""
    of = pinned_of(server)
    pins = {pin.name: pin for kind in SessionKind for pin in pins_of(of, kind)}
    before: dict[str, object] = {}
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        try:
            for name, pin in pins.items():
                if name in ONLY_SESSION:
                    continue
                cursor.execute(f"SELECT @@GLOBAL.{name}")
                before[name] = cursor.fetchall()[0][0]
                cursor.execute(f"SET GLOBAL {name} = {hostile(pin, of.flavor, SessionKind.STATE)}")
            yield
        finally:
            for name, value in before.items():
                # "DEFAULT", the only text that names no moment, is a word
                shown = "DEFAULT" if name == "system_versioning_asof" else "%s"
                cursor.execute(f"SET GLOBAL {name} = {shown}", None if shown == "DEFAULT" else (value,))


@contextlib.contextmanager
def account(server: PrivateServer, *grants: str) -> Iterator[None]:
    server.query(f"CREATE USER '{ACCOUNT}'@'%' IDENTIFIED BY 'pw'")
    try:
        for grant in grants:
            server.query(f"GRANT {grant} TO '{ACCOUNT}'@'%'")
        yield
    finally:
        server.query(f"DROP USER '{ACCOUNT}'@'%'")


def opened(server: PrivateServer, kind: SessionKind, user: str | None = None) -> Connection:
    password = server.password if user is None else "pw"
    return Connection(
        host=server.host, port=server.port, user=user or server.user, password=password, charset="utf8mb4", kind=kind
    )


def values(connection: Connection) -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SHOW SESSION VARIABLES")
        rows = cursor.fetchall()
    decoded = [[each.decode() if isinstance(each, bytes) else str(each) for each in row] for row in rows]
    return {name.lower(): value for name, value in decoded}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_variable_that_a_session_inherits_is_pinned_or_left_alone_for_a_reason(
    server_of: ServerOf, version: str
) -> None:
    server = server_of(version, "source")
    inherited = {str(name).lower() for (name,) in server.query(LISTS[server.flavor])}
    assert inherited - {pin.name for pin in PINS} - {*UNPINNED} == set()
    assert {pin.name for pin in PINS} & {*UNPINNED} == set()


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_of_each_kind_have_their_settings_on_a_server_with_others(server_of: ServerOf, version: str) -> None:
    server = server_of(version, "source")
    of = pinned_of(server)
    with hostile_globals(server):
        for kind in SessionKind:
            for first in (kind, SessionKind.STATE):
                with contextlib.closing(opened(server, first)) as connection:
                    connection.use_as(kind)
                    found = values(connection)
                other = {
                    pin.name: found[pin.name]
                    for pin in pins_of(of, kind)
                    if pin.name in found and not is_as_pinned(pin, of.flavor, kind, found[pin.name])
                }
                assert other == {}, (kind, first)
                assert found["autocommit"] == "OFF"
                assert found["collation_connection"] == "utf8mb4_general_ci"


@pytest.mark.parametrize("version", VERSIONS)
def test_what_init_connect_does_to_a_session_is_undone(server_of: ServerOf, version: str) -> None:
    server = server_of(version, "source")
    server.query("CREATE DATABASE tenant_1")
    server.query("CREATE TABLE tenant_1.t (id INT PRIMARY KEY)")
    server.query("INSERT INTO tenant_1.t VALUES (1)")
    command = (
        "SET sql_select_limit = 0, sql_mode = 'ANSI_QUOTES', @a = 1; "
        "CREATE TEMPORARY TABLE tenant_1.t (id INT PRIMARY KEY); BEGIN; INSERT INTO tenant_1.t VALUES (2)"
    )
    with account(server, "SELECT, INSERT, CREATE TEMPORARY TABLES ON tenant_1.*"):
        server.query("SET GLOBAL init_connect = %s", (command,))
        try:
            with contextlib.closing(opened(server, SessionKind.STATE, ACCOUNT)) as connection:
                assert not int(vars(connection)["server_status"]) & SERVER_STATUS.SERVER_STATUS_IN_TRANS
                with connection.cursor() as cursor:
                    cursor.execute("SELECT id, @a FROM tenant_1.t")
                    assert cursor.fetchall() == ((1, None),)
                    cursor.execute("SELECT @@sql_mode")
                    assert "ANSI" not in str(cursor.fetchall())
            server.query("SET GLOBAL init_connect = 'nonsense'")
            with pytest.raises(PrecheckError, match="init_connect, which the server runs for accounts without"):
                opened(server, SessionKind.STATE, ACCOUNT)
        finally:
            server.query("SET GLOBAL init_connect = ''")


@pytest.mark.parametrize(
    ("version", "name", "value"),
    [("mysql", "sql_generate_invisible_primary_key", "ON"), ("10.11", "enforce_storage_engine", "MyISAM")],
)
def test_what_an_account_may_not_change_has_to_be_as_pinned(
    server_of: ServerOf, version: str, name: str, value: str
) -> None:
    server = server_of(version, "source")
    [(before,)] = server.query(f"SELECT @@GLOBAL.{name}")
    with account(server):
        opened(server, SessionKind.WRITE, ACCOUNT).close()
        server.query(f"SET GLOBAL {name} = {value}")
        try:
            with pytest.raises(PrecheckError, match=rf"expected {name} = \w+ in binlane's session .*SET GLOBAL {name}"):
                opened(server, SessionKind.WRITE, ACCOUNT)
            # whoever only reads does not need it
            opened(server, SessionKind.READ, ACCOUNT).close()
            privilege = "SESSION_VARIABLES_ADMIN" if version == "mysql" else "SUPER"
            server.query(f"GRANT {privilege} ON *.* TO '{ACCOUNT}'@'%'")
            opened(server, SessionKind.WRITE, ACCOUNT).close()
        finally:
            server.query(f"SET GLOBAL {name} = %s", (before,))


@pytest.mark.parametrize("version", VERSIONS)
def test_settings_are_sent_as_one_statement(server_of: ServerOf, version: str) -> None:
    """Every pin is known to the servers that are said to have it: none is refused and sent alone."""
    server = server_of(version, "source")
    for kind in SessionKind:
        with contextlib.closing(opened(server, kind)) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW SESSION STATUS LIKE 'Com_set_option'")
            assert cursor.fetchall() in ((("Com_set_option", "1"),), ((b"Com_set_option", b"1"),))
