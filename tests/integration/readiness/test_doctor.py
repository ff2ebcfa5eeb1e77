"""``binlane doctor`` names each thing that is missing, and the statement that mends it; a first copy asks before it
writes."""

from __future__ import annotations

import re

import pytest

from lab.servers import PrivateServer
from tests.integration.precheck.helpers import run, setting
from tests.integration.readiness.conftest import SOURCE, TARGET
from tests.integration.readiness.test_grants import grant, printed
from tests.integration.window.conftest import CHANNEL, Channel, run_on

ADVICE = frozenset(
    {
        *("CONNECTION ADMIN", "CONNECTION_ADMIN", "SHOW VIEW", "SET USER", "SET_ANY_DEFINER", "PROCESS", "RELOAD"),
        *("ALTER", "DROP", "SHOW_ROUTINE"),
    }
)
"""Privileges of the target's account that a channel can begin without."""
ADVICE_ON_SOURCE = frozenset({"PROCESS"})


def doctor(channel: Channel, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    code = channel.cli("doctor", CHANNEL)
    return code, capsys.readouterr().out


def names_of(statement: str) -> list[str]:
    found = re.match(r"GRANT (.*) ON ", statement)
    return [] if found is None else found[1].split(", ")


def test_each_privilege_that_is_taken_away_is_named(limited: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    grant(limited, capsys)
    statements = printed(limited, capsys)
    with setting(limited.target, "log_bin_trust_function_creators", "ON"):
        code, said = doctor(limited, capsys)
        assert (code, "FAIL" in said) == (0, False), said
        for server, user, given in ((limited.source, SOURCE, statements[0]), (limited.target, TARGET, statements[1])):
            for name in dict.fromkeys(name for statement in given for name in names_of(statement)):
                assert not missed(limited, server, user, name, capsys), name


def revoke(server: PrivateServer, name: str, user: str) -> None:
    """MySQL notices only at FLUSH PRIVILEGES that a dynamic privilege with the GRANT OPTION is gone."""
    run(server, "SET SESSION sql_log_bin = 0", f"REVOKE {name} ON *.* FROM {user}", "FLUSH PRIVILEGES")


def missed(channel: Channel, server: PrivateServer, user: str, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What the doctor says if it does not name the privilege that the account lacks; "" if it does."""
    revoke(server, name, user)
    code, said = doctor(channel, capsys)
    grants = [line for line in said.splitlines() if line.strip().startswith("GRANT ")]
    is_named = any(name in names_of(line.strip()) and user in line for line in grants)
    option = " WITH GRANT OPTION" if any("WITH GRANT OPTION" in line for line in grants) else ""
    run(server, "SET SESSION sql_log_bin = 0", f"GRANT {name} ON *.* TO {user}{option}")
    is_advice = name in (ADVICE if user == TARGET else ADVICE_ON_SOURCE)
    expected = 0 if is_advice and "FAIL" not in said else 1
    return "" if is_named and code == expected else f"{name}: exit code {code}: {said}"


def test_an_account_with_nothing_yet_has_a_line_a_server_and_the_grants(
    limited: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = doctor(limited, capsys)
    lines = said.splitlines()
    failed = [at for at, line in enumerate(lines) if line.startswith("FAIL")]
    assert code == 1
    assert [re.sub(r"\d+", "N", lines[at]) for at in failed] == [
        f"FAIL  {check}: {server}: account: expected the N privileges of the statements below, found none of them"
        for check, server in (("source-privileges", "source"), ("privileges", "target"))
    ]
    assert all("SELECT" in names_of(lines[at + 1].strip()) for at in failed), said
    assert re.search(
        r"^note  others: \d+ more checks: not asked, because an account without SELECT", said, re.MULTILINE
    )
    # SELECT, which is named, stands in for it
    assert "SHOW_ROUTINE" not in said
    # it sees no object, and so no wrong definer
    assert "definers" not in said
    grant(limited, capsys)
    assert "definers" in doctor(limited, capsys)[1]


def test_a_first_copy_asks_first_and_names_the_objects(limited: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    grant(limited, capsys)
    assert limited.cli("bootstrap", CHANNEL, "--users") == 1
    said = capsys.readouterr().err
    assert "function shop.twice" in said
    word = "GLOBAL" if limited.source.flavor == "mariadb" else "PERSIST"
    assert f"  SET {word} log_bin_trust_function_creators = ON;  -- on the target, target_server " in said
    assert limited.target.query("SHOW DATABASES LIKE 'binlane'") == []
    code, told = doctor(limited, capsys)
    assert code == 1
    assert f"SET {word} log_bin_trust_function_creators = ON;  -- on the target" in told


def test_what_windows_need_is_asked_for_after_a_restart_has_forgotten_it(
    limited: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    grant(limited, capsys)
    with setting(limited.target, "log_bin_trust_function_creators", "ON"):
        assert limited.cli("bootstrap", CHANNEL, "--users") == 0
        assert doctor(limited, capsys)[0] == 0
    code, said = doctor(limited, capsys)
    word = "GLOBAL" if limited.source.flavor == "mariadb" else "PERSIST"
    assert code == 1
    assert "trust: target: triggers and functions" in said
    assert f"SET {word} log_bin_trust_function_creators = ON;  -- on the target" in said


def test_a_first_copy_is_not_made_without_databases_that_the_account_is_not_shown(
    limited: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    grant(limited, capsys)
    limited.source.query("CREATE DATABASE shop_2")
    for rule, missing in (('["shop*"]', "SHOW DATABASES"), ('["shop", "shop_2"]', "SELECT")):
        limited.write_channel(f"[filter]\ninclude_databases = {rule}\nkinds.accounts = 'ignore'\n")
        for name in ("SELECT", "TRIGGER", "EVENT", "EXECUTE", "SHOW VIEW"):
            revoke(limited.source, name, SOURCE)
            run(limited.source, "SET SESSION sql_log_bin = 0", f"GRANT {name} ON shop.* TO {SOURCE}")
        assert limited.cli("bootstrap", CHANNEL) == 1
        said = capsys.readouterr().err
        assert re.search(rf"^  GRANT [A-Z, ]*\b{missing}\b.*;  -- on the source, source_server ", said, re.MULTILINE), (
            said
        )
        assert limited.target.query("SHOW DATABASES LIKE 'binlane'") == []
        run(limited.source, "SET SESSION sql_log_bin = 0", f"GRANT SELECT ON *.* TO {SOURCE}")


def test_a_definer_with_more_power_than_the_account_is_named(
    limited: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    grant(limited, capsys)
    name = "SET USER" if limited.source.flavor == "mariadb" else "SET_ANY_DEFINER"
    revoke(limited.target, name, TARGET)
    with setting(limited.target, "log_bin_trust_function_creators", "ON"):
        assert limited.cli("bootstrap", CHANNEL, "--users") == 1
    said = capsys.readouterr().err
    assert "function shop.twice: definer binlane@" in said
    assert name in said
    assert limited.target.query("SHOW DATABASES LIKE 'binlane'") == []


def test_init_and_the_first_window_ask_first(limited: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = printed(limited, capsys)
    run_on(limited.source, *source, log=False)
    assert limited.cli("init", CHANNEL) == 1
    said = capsys.readouterr().err
    assert "not ready" in said
    assert re.search(r"^  GRANT [A-Z, ]*\bCREATE\b.* ON `binlane`\.\* .*;  -- on the target, ", said, re.MULTILINE), (
        said
    )
    assert limited.target.query("SHOW DATABASES LIKE 'binlane'") == []
    run_on(limited.target, *target, log=False)
    assert limited.cli("init", CHANNEL, "--start", "now") == 0
    first = re.search(r"REPLAY|BINLOG_ADMIN", "".join(target))
    assert first is not None
    name = "BINLOG REPLAY" if first[0] == "REPLAY" else first[0]
    revoke(limited.target, name, TARGET)
    run_on(limited.source, "INSERT INTO shop.bare VALUES (5, 'x')")
    assert limited.cli("run", CHANNEL) == 1
    assert f"privilege {name}" in capsys.readouterr().err
    assert limited.target.query("SELECT COUNT(*) FROM binlane.windows") == [(0,)]


def test_a_connection_that_is_not_there_is_named_with_the_command_that_adds_it(
    limited: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    del limited.environment["AIRFLOW_CONN_SOURCE_SERVER"]
    code, said = doctor(limited, capsys)
    assert code == 1
    assert "airflow connections add source_server --conn-uri" in said
    assert "export AIRFLOW_CONN_SOURCE_SERVER=" in said


@pytest.mark.parametrize("part", ["source", "target"])
def test_an_account_that_does_not_exist_is_named_with_the_statement_that_makes_it(
    limited: Channel, capsys: pytest.CaptureFixture[str], part: str
) -> None:
    variable = f"AIRFLOW_CONN_{part.upper()}_SERVER"
    place = limited.environment[variable].partition("@")[2]
    limited.environment[variable] = f"mysql://no'body:secret@{place}"
    code, said = doctor(limited, capsys)
    assert code == 1
    assert f"CREATE USER 'no''body'@'%' IDENTIFIED BY '...';  -- on the {part}" in said
    assert said.count("CREATE USER") == 1
    assert "secret" not in said


def test_an_object_that_the_target_refuses_later_is_named(
    limited: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    grant(limited, capsys)
    # as if the setting had been changed behind the check
    monkeypatch.setattr("binlane.orchestration.commands.copies.bootstrap.require_ready", lambda *_: None)
    assert limited.cli("bootstrap", CHANNEL, "--users") == 1
    said = capsys.readouterr().err
    assert re.search(r"function shop\.twice: the server says: .*\(1419\); SET GLOBAL log_bin_trust_function", said)


def test_what_the_target_has_in_the_databases_of_a_first_copy_is_said_before_and_has_a_way_out(
    either: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    run_on(either.source, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
    run_on(
        either.target,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.mine (id INT PRIMARY KEY)",
        "CREATE VIEW shop.seen AS SELECT id FROM shop.mine",
        "CREATE PROCEDURE shop.p () SELECT 1",
    )
    seen = (
        "expected the chosen databases to be empty, found 3 objects that no first copy of this channel has created: "
        "procedure shop.p, table shop.mine, view shop.seen"
    )
    code, said = doctor(either, capsys)
    noted = next(line for line in said.splitlines() if "copied-databases" in line)
    assert (code, noted.split(":")[0], seen in noted) == (0, "note  copied-databases", True), said
    step = "drop them yourself, or use --replace"
    assert step in said
    assert f"channel {CHANNEL}: ready for `binlane init {CHANNEL}`, not for `binlane bootstrap {CHANNEL}`: " in said
    assert either.cli("bootstrap", CHANNEL) == 1
    refused = capsys.readouterr().err
    assert seen in refused
    assert step in refused
    assert either.target.query("SHOW DATABASES LIKE 'binlane'") == []
    assert either.cli("bootstrap", CHANNEL, "--replace") == 0
    either.assert_equal()
    assert re.search(rf"^channel {CHANNEL}: ready: ", doctor(either, capsys)[1], re.MULTILINE)


def test_a_first_copy_without_a_database_is_said_before(either: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = doctor(either, capsys)
    assert (code, "copied-databases: source: databases: expected one to copy, found none" in said) == (0, True), said
    assert either.cli("bootstrap", CHANNEL) == 1
    assert f"use `binlane init {CHANNEL}`" in capsys.readouterr().err
    assert either.cli("init", CHANNEL) == 0
    assert re.search(rf"^channel {CHANNEL}: ready: ", doctor(either, capsys)[1], re.MULTILINE)


def test_a_routine_that_mariadb_may_call_to_make_a_view_is_said_before(
    mariadb: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    run_on(mariadb.target, "CREATE DATABASE test_other", "CREATE TABLE test_other.t (id INT PRIMARY KEY)")
    run_on(
        mariadb.source,
        "CREATE DATABASE shop",
        "CREATE DATABASE test_other",
        "CREATE TABLE test_other.t (id INT PRIMARY KEY)",
        "CREATE FUNCTION shop.f () RETURNS INT READS SQL DATA SQL SECURITY INVOKER "
        "RETURN (SELECT COUNT(*) FROM test_other.t)",
        "CREATE VIEW shop.v AS SELECT 1 AS a",
    )
    mariadb.write_channel('[filter]\nexclude_databases = ["test_other"]')
    code, said = doctor(mariadb, capsys)
    assert (code, "invoker-routines: " in said, "function shop.f: it has a table of test_other" in said) == (
        1,
        True,
        True,
    ), said
    assert mariadb.cli("bootstrap", CHANNEL) == 1
    assert "make them SQL SECURITY DEFINER on the source" in capsys.readouterr().err
    assert mariadb.target.query("SHOW DATABASES LIKE 'binlane'") == []
    run_on(mariadb.source, "ALTER FUNCTION shop.f SQL SECURITY DEFINER")
    assert doctor(mariadb, capsys)[0] == 0
    assert mariadb.cli("bootstrap", CHANNEL) == 0
