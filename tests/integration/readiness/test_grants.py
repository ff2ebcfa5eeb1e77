"""Accounts with exactly the grants that ``binlane grants`` prints do everything that a channel does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Final

import pymysql
import pytest

from tests.integration.precheck.helpers import setting
from tests.integration.readiness.conftest import TARGET
from tests.integration.window.conftest import CHANNEL, Channel, run_on


def printed(channel: Channel, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[list[str], list[str]]:
    """The statements for source and target."""
    capsys.readouterr()
    assert channel.cli("grants", CHANNEL, *options) == 0
    source, _, target = capsys.readouterr().out.partition("-- target")
    return _statements(source), _statements(target)


def _statements(text: str) -> list[str]:
    return [line.split(";  -- ")[0] for line in text.splitlines() if line.startswith(("GRANT ", "REVOKE "))]


def grant(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    """Give both accounts what is printed; twice, since what the source holds can be read only then."""
    for _ in range(2):
        for server, statements in zip((channel.source, channel.target), printed(channel, capsys), strict=True):
            run_on(server, *statements, log=False)


def test_accounts_with_exactly_these_grants_copy_apply_and_verify(
    limited: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    grant(limited, capsys)
    with setting(limited.target, "log_bin_trust_function_creators", "ON"):
        assert limited.cli("bootstrap", CHANNEL, "--users") == 0, capsys.readouterr().err
        run_on(
            limited.source,
            "CREATE DATABASE tenant_1",
            "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)",
            "CREATE DEFINER = test_ann VIEW tenant_1.v AS SELECT id FROM tenant_1.t",
            "CREATE USER test_bob IDENTIFIED BY 'bob'",
            "GRANT SELECT, INSERT ON shop.* TO test_bob",
            "FLUSH PRIVILEGES",
            "INSERT INTO tenant_1.t VALUES (1), (2)",
            "UPDATE shop.parent SET name = 'changed' WHERE id = 3",
            "ALTER TABLE shop.bare ADD c INT",
            "CREATE PROCEDURE tenant_1.more() UPDATE tenant_1.t SET id = id + 10",
            "CREATE FUNCTION tenant_1.one() RETURNS INT DETERMINISTIC RETURN 1",
            "CREATE TRIGGER tenant_1.trg BEFORE INSERT ON tenant_1.t FOR EACH ROW SET NEW.id = NEW.id + 100",
        )
        assert limited.run() is not None
        run_on(limited.source, "CALL tenant_1.more()", "INSERT INTO tenant_1.t VALUES (tenant_1.one())")
        assert limited.run() is not None
        assert limited.cli("verify", CHANNEL, "--full") == 0
        said = capsys.readouterr().out
        assert "clean" in said
        assert "not compared" not in said
        run_on(limited.target, "DELETE FROM shop.parent WHERE id = 3", log=False)
        assert limited.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 0, capsys.readouterr()
        assert limited.cli("verify", CHANNEL, "--full") == 0


def test_a_first_copy_of_accounts_has_its_own_grants_where_windows_leave_accounts_out(
    limited: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    limited.write_channel('[filter.kinds]\naccounts = "ignore"\n')
    grant(limited, capsys)
    with setting(limited.target, "log_bin_trust_function_creators", "ON"):
        assert limited.cli("doctor", CHANNEL) == 0
        assert limited.cli("bootstrap", CHANNEL, "--users") == 1
        assert "WITH GRANT OPTION;  -- on the target, target_server" in capsys.readouterr().err
        assert limited.cli("doctor", CHANNEL, "--users") == 1
        for _ in range(2):
            for server, given in zip(
                (limited.source, limited.target), printed(limited, capsys, "--users"), strict=True
            ):
                run_on(server, *given, log=False)
        assert limited.cli("doctor", CHANNEL, "--users") == 0, capsys.readouterr().out
        assert limited.cli("bootstrap", CHANNEL, "--users") == 0, capsys.readouterr().err


def test_accounts_that_a_verification_compares_need_their_own_grants(
    limited: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    grant(limited, capsys)
    with setting(limited.target, "log_bin_trust_function_creators", "ON"):
        assert limited.cli("bootstrap", CHANNEL, "--users") == 0, capsys.readouterr().err
    for server, given in zip((limited.source, limited.target), printed(limited, capsys, "--accounts"), strict=True):
        reads = [each for each in given if "SELECT" in each and any(place in each for place in ("*.*", "`mysql`.*"))]
        assert reads
        run_on(server, *given, log=False)
    limited.cli("verify", CHANNEL, "--full", "--accounts")
    assert "may not read them" not in capsys.readouterr().out
    limited.write_channel('[filter.kinds]\naccounts = "ignore"\n')
    assert limited.cli("grants", CHANNEL, "--accounts") == 2
    assert "--accounts: expected a channel with a live source whose filter applies" in capsys.readouterr().err


def test_a_target_with_partial_revokes_gets_exact_names_in_place_of_patterns(
    mysql: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    mysql.write_channel('[filter]\ninclude_databases = ["sh_op"]\n')
    for value, scope in (("OFF", r"`sh\_op`.*"), ("ON", "`sh_op`.*")):
        with setting(mysql.target, "partial_revokes", value):
            _, target = printed(mysql, capsys)
        assert [each for each in target if f" ON {scope} TO " in each], value


def test_a_channel_with_a_filter_gets_its_databases_alone(limited: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    limited.write_channel(
        '[filter]\ninclude_databases = ["shop", "od-?", "tenant_*"]\n[filter.kinds]\naccounts = "ignore"\n'
    )
    grant(limited, capsys)
    source, target = printed(limited, capsys)
    tables = [each for each in (*source, *target) if "INSERT" in each or "EVENT" in each]
    assert not [each for each in tables if "*.*" in each]
    assert r"ON `tenant\_%`.*" in "".join(target)
    assert not [each for each in target if "CREATE USER" in each or "GRANT OPTION" in each]
    with setting(limited.target, "log_bin_trust_function_creators", "ON"):
        assert limited.cli("bootstrap", CHANNEL) == 0, capsys.readouterr().err
        run_on(
            limited.source,
            "CREATE DATABASE tenant_1",
            "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)",
            "INSERT INTO tenant_1.t VALUES (1), (2)",
            "CREATE USER test_bob IDENTIFIED BY 'bob'",
        )
        assert limited.run() is not None
        assert limited.cli("verify", CHANNEL, "--full") == 0
    assert "not compared" not in capsys.readouterr().out


@contextlib.contextmanager
def as_target(channel: Channel) -> Iterator[Callable[[str], int]]:
    """Runs statements as the channel's account on the target; the number of the server's error, 0 without one."""
    endpoint = channel.endpoints.target
    with pymysql.connect(
        host=endpoint.host, port=endpoint.port, user=endpoint.user, password=endpoint.password, autocommit=True
    ) as connection:

        def run(statement: str) -> int:
            try:
                with connection.cursor() as cursor:
                    cursor.execute(statement)
            except pymysql.err.MySQLError as exc:
                return int(exc.args[0])
            return 0

        yield run


OUTSIDE: Final = (
    "INSERT INTO other.t VALUES (1)",
    "SELECT * FROM other.t",
    "CREATE TABLE other.u (id INT)",
    "DROP TABLE other.t",
    "CREATE DATABASE another",
    "CREATE PROCEDURE other.p() SELECT 1",
    "CREATE USER test_eve IDENTIFIED BY 'eve'",
    "GRANT SELECT ON *.* TO test_ann",
    "INSERT INTO mysql.db (Host, Db, User) VALUES ('%', 'shop', 'eve')",
    "DELETE FROM mysql.db",
    "UPDATE mysql.tables_priv SET Db = 'shop'",
    "DROP TABLE mysql.tables_priv",
    "CREATE TABLE mysql.t (id INT)",
    "SELECT LOAD_FILE('/etc/hostname') INTO OUTFILE '/tmp/binlane-grants'",
    "SHUTDOWN",
    "SET GLOBAL general_log = 1",
    "INSTALL PLUGIN x SONAME 'x.so'",
)
"""What an account of a channel with a list of databases, which leaves accounts alone, may not do. A line more is an
attempt more."""
_DENIED: Final = frozenset({1044, 1045, 1142, 1227, 1410, 1370})


def test_nothing_is_granted_outside_of_a_list_of_databases(
    limited: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    limited.write_channel('[filter]\ninclude_databases = ["shop"]\n[filter.kinds]\naccounts = "ignore"\n')
    grant(limited, capsys)
    run_on(limited.target, "CREATE DATABASE other", "CREATE TABLE other.t (id INT)", log=False)
    with as_target(limited) as run:
        found = {statement: run(statement) for statement in OUTSIDE}
        assert run("SELECT 1") == 0
    assert {statement: number for statement, number in found.items() if number not in _DENIED} == {}


def test_an_account_for_all_databases_writes_no_accounts_with_partial_revokes(
    mysql: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    mysql.write_channel('[filter.kinds]\naccounts = "ignore"\n')
    run_on(mysql.target, f"CREATE USER {TARGET} IDENTIFIED BY '{mysql.target.password}'", log=False)
    mysql.connect("target_server", mysql.target, TARGET)
    said = _said(mysql, capsys)
    assert "INSERT, UPDATE and DELETE on *.* include mysql.*" in said
    assert f"run `binlane grants {CHANNEL}` again" in said
    with setting(mysql.target, "partial_revokes", "ON"):
        try:
            _assert_no_accounts(mysql, capsys)
        finally:
            run_on(mysql.target, f"DROP USER {TARGET}", log=False)


def _assert_no_accounts(mysql: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        _, given = printed(mysql, capsys)
        run_on(mysql.target, *given, log=False)
    assert [each for each in given if each.startswith("REVOKE INSERT") or "INSERT" in each.partition(" ON ")[0]]
    run_on(mysql.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)")
    with setting(mysql.target, "log_bin_trust_function_creators", "ON"):
        assert mysql.cli("bootstrap", CHANNEL) == 0, capsys.readouterr().err
        run_on(mysql.source, "INSERT INTO tenant_1.t VALUES (1)", "CREATE TABLE tenant_1.u LIKE tenant_1.t")
        assert mysql.run() is not None
        assert mysql.cli("verify", CHANNEL, "--full") == 0, capsys.readouterr()
    of_mysql = [each for each in OUTSIDE if "mysql." in each]
    with as_target(mysql) as run:
        assert {each: number for each in of_mysql if (number := run(each)) not in _DENIED} == {}
        assert run("INSERT INTO tenant_1.t VALUES (2)") == 0


def test_mariadb_is_told_how_its_account_is_kept_from_accounts(
    limited: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    limited.write_channel('[filter.kinds]\naccounts = "ignore"\n')
    assert "include mysql.*" in _said(limited, capsys)
    assert "name the channel's databases in filter.include_databases" in _said(limited, capsys)
    limited.write_channel('[filter]\ninclude_databases = ["shop"]\n[filter.kinds]\naccounts = "ignore"\n')
    assert "include mysql.*" not in _said(limited, capsys)
    limited.write_channel("")
    assert "include mysql.*" not in _said(limited, capsys)


def _said(channel: Channel, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert channel.cli("grants", CHANNEL) == 0
    return capsys.readouterr().out
