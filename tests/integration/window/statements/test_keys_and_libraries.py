"""What a statement needs of the target's server that no log holds: keys of encryption, libraries of functions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor
from lab.servers import PrivateServer, private_server
from tests.integration.source.test_continuity import encrypting, with_keyring
from tests.integration.window.conftest import Channel, ChannelOf, run_on

COMPONENT = "COMPONENT 'file://component_query_attributes'"
OF_COMPONENT = "mysql_query_attribute_string"
ENCRYPTED = {
    Flavor.MYSQL: (
        ("CREATE TABLE t (id INT PRIMARY KEY) ENCRYPTION = 'Y'",),
        ("CREATE TABLE t (id INT PRIMARY KEY)", "ALTER TABLE t ENCRYPTION = 'Y'"),
        (
            "SET default_table_encryption = ON",
            "CREATE DATABASE tenant_2",
            "CREATE TABLE tenant_2.t (id INT PRIMARY KEY)",
        ),
        ("CREATE TABLE t (id INT PRIMARY KEY)", "ALTER INSTANCE ROTATE INNODB MASTER KEY"),
    ),
    Flavor.MARIADB: (
        ("CREATE TABLE t (id INT PRIMARY KEY) ENCRYPTED = YES",),
        ("CREATE TABLE t (id INT PRIMARY KEY)", "ALTER TABLE t ENCRYPTED = YES ENCRYPTION_KEY_ID = 1"),
        ("CREATE TABLE t (id INT PRIMARY KEY) ENCRYPTED = YES AS SELECT 1 AS id",),
    ),
}
PLAIN = {
    Flavor.MYSQL: "CREATE TABLE t (id INT PRIMARY KEY, encryption INT) ENCRYPTION = 'N'",
    Flavor.MARIADB: "CREATE TABLE t (id INT PRIMARY KEY, encrypted INT) ENCRYPTED = NO",
}


@contextmanager
def servers(flavor: Flavor, folder: Path) -> Iterator[tuple[PrivateServer, PrivateServer]]:
    """A source that has keys, and a target without."""
    if flavor is Flavor.MARIADB:
        program, options = encrypting(folder, "11.8")
        ours, theirs = [each for each in options if not each.startswith("--encrypt")], [options[0]]
        target_program: Path | None = program
    else:
        program, target_program = with_keyring(folder)[0], None
        ours, theirs = [], []
    with (
        private_server(folder / "source", flavor, ours, program=program, durable=False) as source,
        private_server(folder / "target", flavor, theirs, program=target_program, durable=False) as target,
    ):
        yield source, target


@pytest.mark.trial
@pytest.mark.parametrize("flavor", list(Flavor))
def test_encrypted_tables_are_refused_by_a_target_without_keys(flavor: Flavor, tmp_path: Path) -> None:
    with servers(flavor, tmp_path) as (source, target):
        for number, statements in enumerate((*ENCRYPTED[flavor], (PLAIN[flavor],))):
            for server in (source, target):
                for name in ("tenant_1", "tenant_2", "binlane"):
                    server.query(f"DROP DATABASE IF EXISTS {name}")
            project = tmp_path / f"project{number}"
            project.mkdir()
            channel = Channel(source, target, project)
            channel.init()
            run_on(source, "CREATE DATABASE tenant_1", "USE tenant_1", *statements)
            if statements == (PLAIN[flavor],):
                assert channel.run() is not None
                channel.assert_equal()
                continue
            with pytest.raises(PrecheckError, match="expected a target that has the key"):
                channel.run()
            assert target.query("SHOW DATABASES LIKE 'tenant%'") == []


def test_a_database_that_encrypts_needs_a_keyring(channel_of: ChannelOf) -> None:
    channel = channel_of(Flavor.MYSQL, Flavor.MYSQL)
    run_on(channel.source, "CREATE DATABASE tenant_1 ENCRYPTION = 'Y'")
    with pytest.raises(PrecheckError, match=r"tenant_1: encrypted, .*found no keyring.* \[encryption\]"):
        channel.run()
    run_on(channel.source, "DROP DATABASE tenant_1", "CREATE DATABASE tenant_2")
    # on the target it is one that encrypts: by hand, or by a first copy
    channel = channel_of(Flavor.MYSQL, Flavor.MYSQL)
    run_on(channel.target, "CREATE DATABASE tenant_2 ENCRYPTION = 'Y'")
    run_on(channel.source, "CREATE DATABASE tenant_2", log=False)
    run_on(channel.source, "CREATE TABLE tenant_2.t (id INT PRIMARY KEY)")
    with pytest.raises(PrecheckError, match=r"tenant_2\.t: encrypted, .*found no keyring"):
        channel.run()


@contextmanager
def component(server: PrivateServer) -> Iterator[None]:
    server.query(f"INSTALL {COMPONENT}")
    try:
        yield
    finally:
        server.query(f"UNINSTALL {COMPONENT}")


def test_a_function_of_a_component_is_asked_for_wherever_a_statement_reaches_it(channel_of: ChannelOf) -> None:
    channel = channel_of(Flavor.MYSQL, Flavor.MYSQL)
    made = (
        "CREATE DATABASE tenant_1",
        "USE tenant_1",
        "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(9))",
        "CREATE TABLE u (id INT PRIMARY KEY, s VARCHAR(9))",
        f"CREATE TRIGGER filled BEFORE INSERT ON t FOR EACH ROW SET NEW.s = {OF_COMPONENT}('name')",
    )
    called = f"INSERT INTO u VALUES (2, {OF_COMPONENT}('a'))"
    with component(channel.source):
        run_on(channel.source, *made, "SET binlog_format = STATEMENT", "INSERT INTO t (id) VALUES (1)", called)
        with pytest.raises(PrecheckError) as raised:
            channel.run()
        assert f"the loadable function {OF_COMPONENT}, found none, which trigger tenant_1.filled" in str(raised.value)
        assert "[loadable-functions]" in str(raised.value)
        assert f"1305: FUNCTION binlane.{OF_COMPONENT} does not exist" in str(raised.value)
        with component(channel.target):
            assert channel.run() is not None
            channel.assert_equal()
