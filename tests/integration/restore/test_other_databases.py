"""The statements of a log that a restore rolls write nothing of a database that it does not restore."""

from __future__ import annotations

import re

import pytest

from binlane.model import Flavor
from tests.integration.restore.scene import DATABASE, archive_of, take_dump
from tests.integration.window.conftest import Channel, ChannelOf, channel_of, clean_servers, run_on

__all__ = ["channel_of", "clean_servers"]

TRIGGERS = {
    "writes": "AFTER INSERT ON orders FOR EACH ROW INSERT INTO crm.audit VALUES (NEW.id, NEW.n)",
    "reads": "BEFORE INSERT ON orders FOR EACH ROW SET NEW.n = (SELECT MAX(n) FROM crm.audit)",
    "through a routine": "AFTER INSERT ON orders FOR EACH ROW CALL keep(NEW.id)",
}


def _restore(channel: Channel, name: str, dump: str = "one.sql") -> int:
    return channel.cli(
        "restore", name, "--from", str(channel.project / dump), "--log", str(channel.project / "archive"),
        "--database", DATABASE, "--as", "back", "--before", f"DROP DATABASE {DATABASE}", "--onto", "target_server",
        "--yes",
    )  # fmt: skip


def _history(channel: Channel, trigger: str, binlog_format: str) -> None:
    """A database whose trigger and procedure name ``crm``, which is in use on the target."""
    source, target = channel.source, channel.target
    run_on(source, "FLUSH BINARY LOGS")
    [(first, *_)] = source.query("SHOW BINARY LOG STATUS" if source.flavor is Flavor.MYSQL else "SHOW MASTER STATUS")
    run_on(
        source, "CREATE DATABASE crm", "CREATE TABLE crm.audit (id INT, n INT)", "INSERT INTO crm.audit VALUES (0, 7)"
    )
    run_on(
        source, f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", "CREATE TABLE orders (id INT PRIMARY KEY, n INT)",
        "CREATE PROCEDURE keep(x INT) INSERT INTO crm.audit VALUES (x, 1)", f"CREATE TRIGGER tr {trigger}",
    )  # fmt: skip
    take_dump(source, channel.project / "one.sql")
    run_on(
        source, f"SET SESSION binlog_format = {binlog_format}", f"USE {DATABASE}", "INSERT INTO orders VALUES (1, 5)"
    )
    run_on(source, f"DROP DATABASE {DATABASE}")
    archive_of(source, channel.project / "archive", first)
    run_on(target, "CREATE DATABASE crm", "CREATE TABLE crm.audit (id INT, n INT)", log=False)
    run_on(target, "INSERT INTO crm.audit VALUES (90, 91)", log=False)


@pytest.mark.parametrize("kind", TRIGGERS)
@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_statement_that_fires_a_trigger_over_another_database_is_refused(
    flavor: Flavor, kind: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(flavor.value, flavor.value)
    _history(channel, TRIGGERS[kind], "STATEMENT")
    assert _restore(channel, "alone") != 0
    said = capsys.readouterr().err
    assert "crm" in said
    # MySQL lists the databases of a statement, by which the filter refuses it
    if flavor is Flavor.MARIADB:
        assert "found a table of crm" in said
        assert "`binlane restore --drop alone`" in said
        assert said.count("[account-programs]") == 1
    assert channel.target.query("SELECT id, n FROM crm.audit") == [(90, 91)]
    assert channel.cli("restore", "--drop", "alone") == 0
    if kind == "reads" or flavor is Flavor.MYSQL:
        return
    # what the message advises
    whole = (channel.project / "one.sql").read_bytes()
    less = re.sub(rb"[^\n]*\bTRIGGER `?tr\b[^;]*;;\n", b"", whole)
    assert less != whole
    (channel.project / "less.sql").write_bytes(less)
    assert _restore(channel, "without", "less.sql") == 0, capsys.readouterr().err
    assert channel.target.query("SELECT id, n FROM crm.audit") == [(90, 91)]
    assert channel.target.query("SELECT id, n FROM back.orders") == [(1, 5)]


@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_program_that_names_another_database_is_named_at_the_end(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(flavor.value, flavor.value)
    _history(channel, TRIGGERS["writes"], "ROW")
    assert _restore(channel, "alone") == 0, capsys.readouterr().err
    said = " ".join(capsys.readouterr().out.split())
    for program in ("trigger back.tr", "procedure back.keep"):
        assert f"{program} names crm, which was not restored" in said
    assert channel.target.query("SELECT id, n FROM crm.audit") == [(90, 91)]
