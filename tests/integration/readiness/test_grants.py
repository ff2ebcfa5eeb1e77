"""Accounts with exactly the grants that ``binlane grants`` prints do everything that a channel does."""

from __future__ import annotations

import pytest

from tests.integration.precheck.helpers import setting
from tests.integration.window.conftest import CHANNEL, Channel, run_on


def printed(channel: Channel, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[list[str], list[str]]:
    """The statements for source and target."""
    capsys.readouterr()
    assert channel.cli("grants", CHANNEL, *options) == 0
    source, _, target = capsys.readouterr().out.partition("-- target")
    return _statements(source), _statements(target)


def _statements(text: str) -> list[str]:
    return [line.split(";  -- ")[0] for line in text.splitlines() if line.startswith("GRANT ")]


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
        )
        assert limited.run() is not None
        assert limited.cli("verify", CHANNEL, "--full") == 0
    said = capsys.readouterr().out
    assert "clean" in said
    assert "not compared" not in said


def test_a_first_copy_of_accounts_has_its_own_grants_where_windows_leave_accounts_out(
    limited: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    limited.write_channel('[filter.kinds]\naccounts = "ignore"\n')
    grant(limited, capsys)
    with setting(limited.target, "log_bin_trust_function_creators", "ON"):
        assert limited.cli("doctor", CHANNEL) == 0
        assert limited.cli("bootstrap", CHANNEL, "--users") == 1
        assert f"`binlane doctor {CHANNEL} --users` shows the statements" in capsys.readouterr().err
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
