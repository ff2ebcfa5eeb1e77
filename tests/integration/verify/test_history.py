"""The history of system-versioned tables is compared with all rows."""

from __future__ import annotations

import pytest

from binlane.orchestration.commands.verify import verify_channel
from binlane.verify.outcome import Options
from tests.integration.window.conftest import CHANNEL, Channel, channel, clean_servers, run_on

__all__ = ["channel", "clean_servers"]

PERIOD = (
    "began TIMESTAMP(6) GENERATED ALWAYS AS ROW START, ended TIMESTAMP(6) GENERATED ALWAYS AS ROW END, "
    "PERIOD FOR SYSTEM_TIME (began, ended)"
)
TABLES = (
    "CREATE DATABASE app",
    "CREATE TABLE app.plain (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING",
    "CREATE TABLE app.bare (id INT, a INT) WITH SYSTEM VERSIONING",
    f"CREATE TABLE app.named (id INT PRIMARY KEY, a INT, {PERIOD}) WITH SYSTEM VERSIONING",
    "CREATE TABLE app.parts (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING "
    "PARTITION BY SYSTEM_TIME LIMIT 3 PARTITIONS 5",
)
NAMES = ("plain", "bare", "named", "parts")
BEGIN = 1_700_000_000


def states(channel: Channel) -> set[tuple[str, str]]:
    outcome = verify_channel(channel.config, channel.endpoints, Options(full=True))
    return {(one.table.table, one.state) for one in outcome.suspects}


@pytest.mark.parametrize("name", NAMES)
def test_lost_history_is_drift_until_it_is_equal_again(
    name: str, channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    run_on(channel.source, f"SET timestamp = {BEGIN}", *TABLES)
    for number in range(6):
        at = f"SET timestamp = {BEGIN + 40_000 * number}"
        run_on(channel.source, at, *(f"INSERT INTO app.{each} (id, a) VALUES ({number}, 0)" for each in NAMES))
        run_on(channel.source, f"{at} + 10", *(f"UPDATE app.{each} SET a = a + 1 WHERE id < 2" for each in NAMES))
    assert channel.run() is not None
    assert states(channel) == set()

    run_on(channel.target, f"DELETE HISTORY FROM app.{name}", log=False)
    assert states(channel) == {(name, "drift")}
    # changes behind the watermark, of this table or of another
    run_on(channel.source, "UPDATE app.plain SET a = 50 WHERE id = 1")
    assert states(channel) == {(name, "pending" if name == "plain" else "drift")}
    assert channel.run() is not None
    assert states(channel) == {(name, "drift")}
    capsys.readouterr()
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 1
    assert f"app.{name}: not repaired: history: " in capsys.readouterr().out
    run_on(channel.source, f"DELETE HISTORY FROM app.{name}", log=False)
    assert channel.cli("verify", CHANNEL) == 0
    assert states(channel) == set()


@pytest.mark.parametrize("name", ["bare", "named"])
def test_a_last_transaction_that_says_it_is_long_past_hides_no_lost_history(name: str, channel: Channel) -> None:
    run_on(channel.source, f"SET timestamp = {BEGIN}", *TABLES)
    run_on(channel.source, f"SET timestamp = {BEGIN}", f"INSERT INTO app.{name} (id, a) VALUES (1, 0), (2, 0)")
    for number in (1, 2):
        run_on(channel.source, f"SET timestamp = {BEGIN + 1_000 * number}", f"UPDATE app.{name} SET a = a + 1")
    assert channel.run() is not None
    run_on(channel.source, f"SET timestamp = {BEGIN - 10_000_000}", "INSERT INTO app.plain VALUES (1, 0)")
    assert channel.run() is not None
    assert states(channel) == set()
    run_on(channel.target, f"DELETE HISTORY FROM app.{name}", log=False)
    assert states(channel) == {(name, "drift")}


def test_a_row_corrected_by_hand_is_no_time_up_to_which_history_counts(channel: Channel) -> None:
    """It gives the target's periods its own time, and the source has gone on before that."""
    run_on(channel.source, f"SET timestamp = {BEGIN}", *TABLES, "INSERT INTO app.plain VALUES (1, 0), (2, 0)")
    run_on(channel.source, f"SET timestamp = {BEGIN + 10}", "UPDATE app.plain SET a = 1")
    assert channel.run() is not None
    for wrong_then_right in (9, 1):
        run_on(channel.target, f"UPDATE app.plain SET a = {wrong_then_right} WHERE id = 2", log=False)
    run_on(channel.source, f"SET timestamp = {BEGIN + 1_000}", "UPDATE app.plain SET a = 2 WHERE id = 1")
    assert states(channel) == set()
    assert channel.run() is not None
    assert states(channel) == set()
