"""A full verification in slices: windows, definitions and kills between them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from binlane.errors import WindowBusyError
from binlane.orchestration.commands.verify import outcome_text, verify_channel
from binlane.state.records.verifications import Suspect
from binlane.verify.outcome import Options
from binlane.verify.rows.sides import Difference, Pair
from binlane.verify.verification import Verifier
from tests.forked import process
from tests.integration.verify.scene import ONE_OF_EACH, found, tables
from tests.integration.window.conftest import (
    Channel,
    ChannelOf,
    channel_of,
    clean_servers,
    run_on,
)

__all__ = ["channel_of", "clean_servers"]

SLICE = Options(True, 7, seconds=0, step_seconds=0)
"""One chunk."""


def touch(channel: Channel) -> None:
    run_on(channel.source, *(f"UPDATE app.{name} SET n = n + 1 WHERE id % 3 = 0" for name in "abc"))


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_a_full_verification_in_slices_goes_on_across_windows_and_finds_drift_of_hot_and_cold_rows(
    families: tuple[str, str], channel_of: ChannelOf
) -> None:
    channel = channel_of(*families)
    tables(channel)
    run_on(channel.target, "UPDATE app.a SET note = 'mine' WHERE id = 5", log=False)  # cold, in the first slice
    run_on(
        channel.target, "UPDATE app.c SET note = 'mine' WHERE id IN (29, 30)", log=False
    )  # cold and hot, in the last
    states = []
    for _ in range(30):
        touch(channel)
        outcome = verify_channel(channel.config, channel.endpoints, SLICE)
        states.append(outcome.state)
        if outcome.state != "running":
            break
        assert outcome.tables_left > 0
        run_on(channel.target, "UPDATE app.c SET note = 'mine' WHERE id = 30", log=False)
        touch(channel)
        assert channel.run() is not None
        run_on(channel.target, "UPDATE app.c SET note = 'mine' WHERE id = 30", log=False)
    assert (len(states), states[-1]) == (15, "drift")
    assert found(outcome) == {("drift", "a", ("5",)), ("drift", "c", ("29",)), ("drift", "c", ("30",))}
    assert (outcome.counts.rows, outcome.counts.equal, outcome.counts.tables) == (90, 87, 3)
    assert outcome.covered.full_through == outcome.through_seqno < channel.status.channel.watermark.seqno


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_drift_behind_a_slice_is_told_and_found_by_a_verification_that_begins_anew(
    families: tuple[str, str], channel_of: ChannelOf
) -> None:
    channel = channel_of(*families)
    tables(channel)
    first = verify_channel(channel.config, channel.endpoints, SLICE)
    assert (first.state, first.rows_before, first.continued_since) == ("running", 0, "")
    assert "continued" not in outcome_text(first)
    run_on(channel.target, "UPDATE app.a SET note = 'mine' WHERE id = 5", log=False)
    second = verify_channel(channel.config, channel.endpoints, SLICE)
    assert (second.state, second.rows_before, second.counts.rows) == ("running", 7, 14)
    said = outcome_text(second)
    assert re.search(r"^continued: 7 rows of these were compared earlier, since [\d: -]{19} UTC", said, re.MULTILINE)

    outcome = verify_channel(channel.config, channel.endpoints, Options(True, 7, step_seconds=0, anew=True))
    assert (outcome.state, outcome.rows_before, outcome.counts.rows) == ("drift", 0, 90)
    assert found(outcome) == {("drift", "a", ("5",))}
    assert "continued" not in outcome_text(outcome)
    [(rounds, unfinished)] = channel.target.query(
        "SELECT COUNT(*), SUM(state = 'running') FROM binlane.verifications WHERE kind = 'full'"
    )
    assert (rounds, unfinished) == (1, 0)


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_definitions_that_change_between_two_slices(families: tuple[str, str], channel_of: ChannelOf) -> None:
    channel = channel_of(*families)
    tables(channel, 14)
    first = verify_channel(channel.config, channel.endpoints, SLICE)
    assert (first.state, first.counts.rows) == ("running", 7)
    run_on(
        channel.source,
        "ALTER TABLE app.a DROP PRIMARY KEY, MODIFY id VARCHAR(20) NOT NULL, ADD PRIMARY KEY (id)",
        "DROP TABLE app.b",
        "RENAME TABLE app.c TO app.aa",
        "CREATE TABLE app.d (id INT PRIMARY KEY)",
        "INSERT INTO app.d VALUES (1)",
    )
    assert channel.run() is not None
    run_on(channel.target, "UPDATE app.a SET n = 9 WHERE id = 3", "UPDATE app.aa SET n = 9 WHERE id = 3", log=False)
    outcome = verify_channel(channel.config, channel.endpoints, Options(True, 7, step_seconds=0))
    # the new key orders rows in another way, so that table begins again
    assert found(outcome) == {("drift", "a", ("33",)), ("drift", "aa", ("3",))}
    assert (outcome.counts.rows, outcome.counts.tables) == (7 + 14 + 14 + 1, 3)


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_tables_that_stand_for_other_rows_between_two_slices_are_compared_from_the_beginning(
    families: tuple[str, str], channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = channel_of(*families)
    tables(channel, 14)
    options, left, compare = replace(SLICE, seconds=None), itertools.count(-5), Pair.in_range

    def in_range(*arguments: Any) -> tuple[int, list[Difference]]:
        if next(left) == 0:
            raise KeyboardInterrupt
        return compare(*arguments)

    monkeypatch.setattr(Pair, "in_range", in_range)
    with pytest.raises(KeyboardInterrupt):
        verify_channel(channel.config, channel.endpoints, options)
    # app.a is finished, and app.b is not
    query = "SELECT table_name FROM binlane.verified_tables"
    assert channel.target.query(query) == [("a",)]
    run_on(
        channel.source,
        "RENAME TABLE app.a TO app.x, app.c TO app.a, app.x TO app.c",
        "CREATE TABLE app.other LIKE app.b",
        "INSERT INTO app.other SELECT * FROM app.b",
        "ALTER TABLE app.b RENAME TO app.y, ADD COLUMN more INT",
        "ALTER TABLE app.other RENAME TO app.b",
    )
    assert channel.run() is not None
    assert channel.target.query(query) == []
    for name in "ab":
        run_on(channel.target, f"UPDATE app.{name} SET n = 9 WHERE id = 1", log=False)
    outcome = verify_channel(channel.config, channel.endpoints, options)
    assert found(outcome) == {("drift", "a", ("1",)), ("drift", "b", ("1",))}


@pytest.mark.parametrize("families", ONE_OF_EACH[:1])
def test_a_table_that_was_altered_between_two_slices_goes_on(families: tuple[str, str], channel_of: ChannelOf) -> None:
    channel = channel_of(*families)
    tables(channel, 14)
    first = verify_channel(channel.config, channel.endpoints, SLICE)
    assert (first.state, first.counts.rows) == ("running", 7)
    run_on(channel.source, "ALTER TABLE app.a ADD COLUMN more INT", "CREATE INDEX later ON app.a (n)")
    assert channel.run() is not None
    outcome = verify_channel(channel.config, channel.endpoints, Options(True, 7, step_seconds=0))
    assert (outcome.state, outcome.counts.rows) == ("clean", 3 * 14)


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_a_row_that_moves_behind_a_slice_is_compared_with_its_window_s_rows(
    families: tuple[str, str], channel_of: ChannelOf
) -> None:
    """No slice compares it, and its image in the log does not have the column that differs."""
    channel = channel_of(*families)
    tables(channel, 14)
    run_on(channel.target, "UPDATE app.a SET note = 'mine' WHERE id = 14", log=False)
    assert verify_channel(channel.config, channel.endpoints, SLICE).counts.rows == 7
    moved = "UPDATE app.a SET id = -1 WHERE id = 14"
    run_on(channel.source, "SET SESSION binlog_row_image = 'MINIMAL'", moved)
    assert channel.run() is not None
    assert verify_channel(channel.config, channel.endpoints, Options(True, 7)).state != "running"
    assert found(verify_channel(channel.config, channel.endpoints, Options())) == {("drift", "a", ("-1",))}


def test_a_slice_keeps_all_rows_that_differ_in_a_table_without_a_key(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "mariadb")
    tables(channel, 14)
    for server in (channel.source, channel.target):
        run_on(server, "CREATE TABLE app.z (n INT)", log=False)
    run_on(channel.target, "INSERT INTO app.z VALUES (1), (2), (2)", "ALTER TABLE app.c COMMENT 'mine'", log=False)
    run_on(channel.target, "ALTER TABLE app.c ALTER n SET DEFAULT 5", log=False)
    whole = verify_channel(channel.config, channel.endpoints, Options(True))
    assert (whole.state, len(whole.suspects)) == ("drift", 5)
    part = verify_channel(channel.config, channel.endpoints, SLICE)
    assert part.state == "running"
    assert {replace(one, since=None) for one in part.suspects} == set(whole.suspects)
    assert len(part.suspects) == 5
    run_on(channel.source, "INSERT INTO app.z VALUES (1)")
    changed = verify_channel(channel.config, channel.endpoints, Options(True))
    # the row that the source has added is equal now, and was not at the watermark; the others have never been
    again = {(one.state, one.target, one.drifted) for one in changed.suspects if one.table.table == "z"}
    assert again == {("drift", ("2",), whole.through_seqno), ("pending", None, None)}


@pytest.mark.parametrize("full", [SLICE, Options()], ids=["a step", "the end"])
def test_nothing_is_stored_of_rows_that_were_compared_before_a_window(
    full: Options, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = channel_of("mariadb", "mariadb")
    tables(channel, 14)
    settle = Verifier._settled

    def meanwhile(verifier: Verifier, stored: Iterable[Suspect]) -> tuple[Suspect, ...]:
        found = settle(verifier, stored)
        touch(channel)
        assert channel.run() is not None
        return found

    monkeypatch.setattr(Verifier, "_settled", meanwhile)
    with pytest.raises(WindowBusyError, match="a window was applied in the meantime"):
        verify_channel(channel.config, channel.endpoints, full)
    assert channel.target.query("SELECT state, progress FROM binlane.verifications") == [("running", None)]


@pytest.mark.parametrize("families", ONE_OF_EACH)
@pytest.mark.trial
def test_kill_9_between_and_inside_slices(families: tuple[str, str], channel_of: ChannelOf) -> None:
    channel = channel_of(*families)
    tables(channel, 200)
    run_on(channel.target, "UPDATE app.a SET note = 'mine' WHERE id IN (1, 200)", log=False)
    run_on(channel.target, "UPDATE app.c SET note = 'mine' WHERE id = 3", log=False)
    options, kills = Options(True, 7, step_seconds=0), 0
    for attempt in range(40):
        touch(channel)
        with process(verify_channel, channel.config, channel.endpoints, options) as running:
            running.join(1.0 + attempt / 4)
            ended = running.exitcode
        if ended == 0:
            break
        kills += 1
        channel.run()
    drift = channel.target.query("SELECT table_name, row_key FROM binlane.suspects WHERE state = 'drift' ORDER BY id")
    assert {(table, key) for table, key in drift} >= {("a", '["1"]'), ("a", '["200"]')}
    assert ended == 0
    assert kills > 0
    rows = channel.target.query("SELECT state, compared_rows FROM binlane.verifications")
    # one more, where the process was killed behind its last commit
    assert set(rows) == {("drift", 600)}
