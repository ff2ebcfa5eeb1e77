"""What makes a row pending that differs: a change of its table that the log shows, and nothing else."""

from __future__ import annotations

import pytest

from binlane.orchestration.commands.verify import verify_channel
from binlane.verify.outcome import Options
from tests.integration.verify.scene import ONE_OF_EACH, found, tables
from tests.integration.window.conftest import (
    CHANNEL,
    ChannelOf,
    channel_of,
    clean_servers,
    run_on,
)

__all__ = ["channel_of", "clean_servers"]

ELSEWHERE = (
    "CREATE DATABASE other",
    "CREATE TABLE other.t LIKE app.a",
    "CREATE TABLE other.child (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES app.b (id))",
    "CREATE VIEW other.v AS SELECT * FROM app.a",
    "CREATE TRIGGER other.tr BEFORE INSERT ON other.t FOR EACH ROW SET NEW.n = 1",
    "CREATE FUNCTION other.f() RETURNS INT DETERMINISTIC NO SQL RETURN 1",
    "CREATE VIEW other.w AS SELECT other.f() AS f",
    "CREATE PROCEDURE app.p() SELECT 1",
    "ANALYZE TABLE app.a",
    "DROP VIEW other.v",
    "DROP DATABASE other",
)


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_drift_stays_drift_while_there_are_definitions_elsewhere(
    families: tuple[str, str], channel_of: ChannelOf
) -> None:
    channel = channel_of(*families)
    tables(channel)
    run_on(channel.target, "UPDATE app.a SET note = 'mine' WHERE id = 3", "DELETE FROM app.b WHERE id = 4", log=False)
    drift = {("drift", "a", ("3",)), ("drift", "b", ("4",))}
    for statement in ELSEWHERE:
        run_on(channel.source, "SET SESSION binlog_format = 'STATEMENT'", statement)
        outcome = verify_channel(channel.config, channel.endpoints, Options(full=True))
        rows = {each for each in found(outcome) if each[1] in ("a", "b") and each[2] in (("3",), ("4",))}
        assert rows == drift, statement


BESIDE = (
    "CREATE TABLE app.made (id INT PRIMARY KEY, n INT)",
    "INSERT INTO app.made VALUES (1, 1)",
    "ALTER TABLE app.c ADD COLUMN x INT",
    "CREATE INDEX n ON app.c (n)",
    "RENAME TABLE app.made TO app.renamed",
    "TRUNCATE TABLE app.renamed",
    "CREATE EVENT app.e ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1",
    "CREATE USER test_pending@'%'",
    "GRANT SELECT ON app.a TO test_pending@'%'",
    "DROP USER test_pending@'%'",
    "DROP TABLE app.renamed",
    "ALTER DATABASE app CHARACTER SET latin1",
)
"""In the same database, of other tables."""
PLACES = {
    "all": "",
    "filtered": '[filter]\ninclude_databases = ["app"]\nexclude_tables = ["app.c"]\n',
    "renamed": '[rename]\napp = "copied"\n',
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_drift_stays_drift_while_there_are_definitions_of_other_tables(
    families: tuple[str, str], place: str, channel_of: ChannelOf
) -> None:
    channel = channel_of(*families)
    channel.write_channel(PLACES[place])
    database = "copied" if place == "renamed" else "app"
    if place == "renamed":
        run_on(channel.target, "CREATE DATABASE copied", log=False)
        for name in ("a", "b", "c"):
            text = f"CREATE TABLE copied.{name} (id INT PRIMARY KEY, n INT, note VARCHAR(20))"
            run_on(channel.target, text, log=False)
    tables(channel)
    run_on(
        channel.target,
        f"UPDATE {database}.a SET note = 'mine' WHERE id = 3",
        f"DELETE FROM {database}.b WHERE id = 4",
        log=False,
    )
    run_on(channel.source, "SET SESSION binlog_format = 'STATEMENT'", *BESIDE)
    outcome = verify_channel(channel.config, channel.endpoints, Options(full=True))
    rows = {each for each in found(outcome) if each[1] in ("a", "b")}
    assert rows == {("drift", "a", ("3",)), ("drift", "b", ("4",))}


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_a_row_that_differs_twice_while_neither_server_changes_it_is_drift(
    families: tuple[str, str], channel_of: ChannelOf
) -> None:
    """Statements change other rows of the table behind each watermark."""
    channel = channel_of(*families)
    tables(channel)
    run_on(channel.target, "UPDATE app.a SET note = 'mine' WHERE id = 3", log=False)

    def state() -> set[tuple[str, str, tuple[str, ...]]]:
        run_on(channel.source, "SET SESSION binlog_format = 'STATEMENT'", "UPDATE app.a SET n = n + 1 WHERE id = 9")
        outcome = verify_channel(channel.config, channel.endpoints, Options(full=True))
        return {each for each in found(outcome) if each[2] == ("3",)}

    assert state() == {("pending", "a", ("3",))}
    assert state() == {("pending", "a", ("3",))}  # the target has not reached what the log had then
    assert channel.run() is not None
    assert state() == {("drift", "a", ("3",))}


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_a_row_that_changes_back_behind_each_watermark_is_not_repaired(
    families: tuple[str, str], channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job counts up and down by statements; each verification sees it counted up, and the target before it."""
    channel = channel_of(*families)
    tables(channel)

    def change(sign: str) -> None:
        run_on(
            channel.source, "SET SESSION binlog_format = 'STATEMENT'", f"UPDATE app.a SET n = n {sign} 1 WHERE id = 3"
        )

    change("+")
    assert channel.cli("verify", CHANNEL, "--full") == 0
    change("-")
    assert channel.run() is not None
    change("+")
    capsys.readouterr()
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "app.a, primary key id=3: source n=1, target n=0 (it differs as at an earlier verification" in said
    assert f"binlane recopy {CHANNEL} --table app.a" in said
    # also if the source is at that value again when the plan is made
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 1
    assert channel.target.query("SELECT n FROM app.a WHERE id = 3") == [(0,)]
    change("-")
    assert channel.run() is not None
    assert channel.cli("verify", CHANNEL, "--full") == 0
    channel.assert_equal()


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_drift_at_the_watermark_stays_drift_beside_a_statement_behind_it(
    families: tuple[str, str], channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    """The statement changes the drifted row."""
    channel = channel_of(*families)
    tables(channel)
    run_on(channel.target, "UPDATE app.a SET note = 'mine' WHERE id = 3", log=False)

    def state() -> set[tuple[str, str, tuple[str, ...]]]:
        return found(verify_channel(channel.config, channel.endpoints, Options(full=True)))

    assert state() == {("drift", "a", ("3",))}
    run_on(channel.source, "SET SESSION binlog_format = 'STATEMENT'", "UPDATE app.a SET n = n + 1 WHERE id IN (3, 9)")
    for _ in range(2):
        # the other row differs for the first time
        assert state() == {("drift", "a", ("3",)), ("pending", "a", ("9",))}
    # the source's row is ahead: it is corrected when the target has come that far
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 1
    assert "not repaired, because the source has changed" in " ".join(capsys.readouterr().out.split())
    assert channel.target.query("SELECT n, note FROM app.a WHERE id = 3") == [(0, "mine")]
    assert channel.run() is not None
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 0
    channel.assert_equal()


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_a_drifted_row_that_the_target_has_changed_is_judged_anew(
    families: tuple[str, str], channel_of: ChannelOf
) -> None:
    channel = channel_of(*families)
    tables(channel)
    run_on(channel.target, "UPDATE app.a SET note = 'mine' WHERE id = 3", log=False)
    full = Options(full=True)
    assert found(verify_channel(channel.config, channel.endpoints, full)) == {("drift", "a", ("3",))}
    run_on(channel.source, "SET SESSION binlog_format = 'STATEMENT'", "UPDATE app.a SET n = n + 1 WHERE id = 3")
    run_on(channel.target, "UPDATE app.a SET note = 'other' WHERE id = 3", log=False)
    assert found(verify_channel(channel.config, channel.endpoints, full)) == {("pending", "a", ("3",))}


@pytest.mark.parametrize("families", ONE_OF_EACH)
@pytest.mark.parametrize("broken", ["ALTER TABLE app.parent DROP COLUMN n", "DROP TABLE app.parent"])
def test_rows_that_a_parent_takes_with_it_are_pending_however_the_target_has_the_parent(
    families: tuple[str, str], broken: str, channel_of: ChannelOf
) -> None:
    channel = channel_of(*families)
    made = (
        "CREATE DATABASE app",
        "CREATE TABLE app.parent (id INT PRIMARY KEY, n INT)",
        "CREATE TABLE app.child (id INT PRIMARY KEY, p INT, "
        "FOREIGN KEY (p) REFERENCES app.parent (id) ON DELETE CASCADE)",
        "INSERT INTO app.parent VALUES (1, 1), (2, 2)",
        "INSERT INTO app.child VALUES (1, 1), (2, 2)",
    )
    for server in (channel.source, channel.target):
        run_on(server, *made, log=False)
    run_on(channel.target, "SET SESSION foreign_key_checks = 0", broken, log=False)
    run_on(channel.source, "DELETE FROM app.parent WHERE id = 1")
    outcome = verify_channel(channel.config, channel.endpoints, Options(full=True))
    # MySQL 9.6 and newer log what foreign keys change
    pending = {("pending", "child", ("1",))} if families[0] == "mariadb" else set()
    assert {each for each in found(outcome) if each[1] == "child"} == pending
