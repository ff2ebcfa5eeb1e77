"""A source that goes on writing: rows that it changes behind the watermark are settled by its log."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import pytest

from binlane.model import TableKey
from binlane.orchestration import steps
from binlane.orchestration.commands.verify import outcome_text, verify_channel
from binlane.orchestration.request import WindowRequest
from binlane.servers.catalog import read_schema
from binlane.servers.engines import engine_of
from binlane.state.records.verifications import unshown_rows, without_key
from binlane.verify import log_reader
from binlane.verify.changes import Changes
from binlane.verify.log_reader import ChangeReader
from binlane.verify.outcome import Options, Outcome
from binlane.verify.rows.pairing import pair
from binlane.verify.segment_keys import distinct_keys
from binlane.work.files import WorkFolder
from lab.servers import PrivateServer
from tests.integration.verify.scene import FAMILIES, ONE_OF_EACH, found
from tests.integration.window.conftest import (
    CHANNEL,
    Channel,
    ChannelOf,
    channel_of,
    clean_servers,
    fresh_channel,
    run_on,
)
from tests.integration.window.rows.test_every_type import SESSION, changes, definition, types_of

__all__ = ["channel_of", "clean_servers"]

HOT = (
    "CREATE DATABASE app",
    "CREATE TABLE app.hot (id INT PRIMARY KEY, n INT NOT NULL, note VARCHAR(40), f DOUBLE, body TEXT)",
)


def verify(channel: Channel, *, full: bool = False) -> Outcome:
    return verify_channel(channel.config, channel.endpoints, Options(full, 7))


def hot_channel(channel: Channel) -> Channel:
    for server in (channel.source, channel.target):
        run_on(server, *HOT, log=False)
    rows = ", ".join(f"({n}, 0, 'note {n}', {n} / 3, REPEAT('x', {n}))" for n in range(1, 21))
    run_on(channel.source, f"INSERT INTO app.hot VALUES {rows}")
    assert channel.run() is not None
    return channel


@pytest.mark.parametrize("families", FAMILIES)
def test_rows_of_every_type_that_change_behind_the_watermark_are_settled_at_once(
    families: tuple[str, str],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> None:
    source, target = (
        request.getfixturevalue(f"{family}_{role}") for family, role in zip(families, ("source", "target"), strict=True)
    )
    channel = fresh_channel(source, target, tmp_path, clean_servers)
    types = types_of(source, target)
    made = ("CREATE DATABASE tenant_1 CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", SESSION)
    for server in (source, target):
        run_on(server, *made, *(definition(number, one) for number, one in enumerate(types)), log=False)
    run_on(source, SESSION, *(change for number, one in enumerate(types) for change in changes(number, one)))
    assert channel.run() is not None
    touch = (f"UPDATE tenant_1.t{number} SET n = n + 1, c = d" for number in range(len(types)))
    run_on(source, SESSION, *touch)
    run_on(source, *(f"DELETE FROM tenant_1.t{number} WHERE id % 3 = 0" for number in range(len(types))))
    for full in (False, True):
        outcome = verify(channel, full=full)
        assert (found(outcome), outcome.state) == (set(), "clean")
    # and none of them is taken for equal if it is not
    run_on(target, SESSION, *(f"UPDATE tenant_1.t{number} SET n = n + 1 WHERE id = 1" for number in range(len(types))))
    for full in (False, True):
        assert found(verify(channel, full=full)) == {("drift", f"t{number}", ("1",)) for number in range(len(types))}
        # the next is to find them by itself, and not to look them up
        run_on(target, "DELETE FROM binlane.suspects")


@pytest.mark.parametrize("families", FAMILIES)
def test_rows_without_a_key_are_counted_so_that_only_those_that_the_log_explains_are_pending(
    families: tuple[str, str], channel_of: ChannelOf
) -> None:
    channel = channel_of(*families)
    types = types_of(channel.source, channel.target)
    made = ("CREATE DATABASE tenant_1 CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", SESSION)
    tables = [definition(number, one).replace(" PRIMARY KEY", "") for number, one in enumerate(types)]
    for server in (channel.source, channel.target):
        run_on(server, *made, *tables, log=False)
    rows = (change for number, one in enumerate(types) for change in itertools.islice(changes(number, one), 1))
    run_on(channel.source, SESSION, *rows)
    assert channel.run() is not None
    assert verify(channel).state == "clean"
    again = "SELECT * FROM (SELECT id, n, c, d FROM tenant_1.t{0} WHERE id = 2) one"
    for number in range(len(types)):
        run_on(
            channel.source,
            SESSION,
            f"SET SESSION binlog_row_image = '{'MINIMAL' if number % 2 else 'FULL'}'",
            f"UPDATE tenant_1.t{number} SET n = n + 1, c = d WHERE id <> 1",
            f"DELETE FROM tenant_1.t{number} WHERE id = 3",
            f"INSERT INTO tenant_1.t{number} (id, n, c, d) {again.format(number)}",
        )
    outcome = verify(channel)
    assert found(outcome) == {("pending", f"t{number}", ()) for number in range(len(types))}
    waits = len(outcome.suspects)
    assert f"{waits:,} pending, {waits:,} of them in tables without a primary key: " in outcome_text(outcome)
    assert f"  {waits:,} rows pending in " in outcome_text(outcome)
    with engine_of(channel.endpoints.target).connect() as asked:
        assert without_key(unshown_rows(asked, CHANNEL)) == waits
    # a row that the target has lost, one that it has changed, and one too many of those that the source has twice
    for number in range(len(types)):
        run_on(
            channel.target,
            SESSION,
            f"DELETE FROM tenant_1.t{number} WHERE id = 1",
            f"UPDATE tenant_1.t{number} SET n = 7 WHERE id = 0",
            f"INSERT INTO tenant_1.t{number} (id, n, c, d) {again.format(number)}",
        )
    drifted = Counter((one.table.table, one.source is None) for one in verify(channel).of_state("drift"))
    assert drifted == {(f"t{number}", side): 1 + side for number in range(len(types)) for side in (False, True)}


@pytest.mark.parametrize("full", [False, True], ids=["window", "full"])
@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_rows_without_a_key_that_are_equal_only_now_are_pending_until_the_target_has_the_log(
    families: tuple[str, str], full: bool, channel_of: ChannelOf
) -> None:
    """The target has what the source's log says later: too early, so that the next window doubles or misses it."""
    channel = channel_of(*families)
    early = {"doubled": "INSERT INTO app.doubled VALUES (2)", "missing": "DELETE FROM app.missing WHERE n = 2 LIMIT 1"}
    made = ("CREATE DATABASE app", *(f"CREATE TABLE app.{name} (n INT)" for name in early))
    for server in (channel.source, channel.target):
        run_on(server, *made, log=False)
    run_on(channel.source, "INSERT INTO app.doubled VALUES (1)", "INSERT INTO app.missing VALUES (1), (2), (2)")
    assert channel.run() is not None
    assert verify(channel, full=full).state == "clean"
    run_on(channel.target, *early.values())
    run_on(channel.source, *early.values())
    outcome = verify(channel, full=full)
    assert (outcome.state, found(outcome)) == ("pending", {("pending", name, ()) for name in early})
    assert "without a primary key" in outcome_text(outcome)
    assert channel.run() is not None
    assert {one[:2] for one in found(verify(channel, full=full))} == {("drift", name) for name in early}


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_pending_rows_without_a_key_are_told_apart_and_the_others_settle(
    families: tuple[str, str], channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    """The source always has a change of a table without a primary key that no window has; rows with one do not wait."""
    channel = hot_channel(channel_of(*families))
    for server in (channel.source, channel.target):
        run_on(server, "CREATE TABLE app.bare (n INT)", log=False)
    for number in range(3):
        run_on(channel.source, f"INSERT INTO app.bare VALUES ({number})", "UPDATE app.hot SET n = n + 1 WHERE id <= 2")
        assert channel.run() is not None
        run_on(channel.source, f"INSERT INTO app.bare VALUES (10{number})", "UPDATE app.hot SET n = n + 1 WHERE id = 1")
        outcome = verify(channel)
        assert found(outcome) == {("pending", "bare", ())}
        assert outcome.counts.equal >= 2
    capsys.readouterr()
    assert channel.cli("status", CHANNEL, "--json") == 0
    verified = json.loads(capsys.readouterr().out)["verified"]
    assert (verified["pending"], verified["pending_without_key"]) == (1, 1)
    assert channel.cli("status", CHANNEL) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "1 pending, 1 of them in tables without a primary key, the oldest since " in said
    assert "in app.bare, without a primary key that both servers order alike" in said
    # the way out: while the table is quiet
    assert channel.run() is not None
    assert verify(channel, full=True).state == "clean"


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_keys_read_in_machine_code_are_those_that_are_read_one_by_one(
    families: tuple[str, str], channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = channel_of(*families)
    types = types_of(channel.source, channel.target)
    made = ("CREATE DATABASE tenant_1 CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", SESSION)
    keyed = "CREATE TABLE tenant_1.k (a VARCHAR(9), n INT UNSIGNED, b DECIMAL(9, 2), c TEXT, PRIMARY KEY (b, a))"
    for server in (channel.source, channel.target):
        tables = (definition(number, one) for number, one in enumerate(types))
        run_on(server, *made, *tables, keyed, "CREATE TABLE tenant_1.bare (n INT)", log=False)
    run_on(channel.source, SESSION, *(change for number, one in enumerate(types) for change in changes(number, one)))
    run_on(
        channel.source,
        "INSERT INTO tenant_1.k VALUES ('x', NULL, 1.5, 'y'), ('z', 1, -2, NULL)",
        "UPDATE tenant_1.k SET b = b + 1, c = REPEAT('c', 300)",
        "INSERT INTO tenant_1.bare VALUES (1)",
    )
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    with engine_of(channel.endpoints.source or channel.endpoints.target).connect() as asked:
        source = read_schema(asked)
    with engine_of(channel.endpoints.target).connect() as asked:
        target = read_schema(asked)

    def read() -> Changes:
        reader = ChangeReader(source, target, pair(source, target).compared)
        return reader.read_windows([WorkFolder(window["work"])])

    monkeypatch.setattr(log_reader, "distinct_keys", used := Mock(wraps=distinct_keys))
    in_machine_code = read()
    assert used.called
    monkeypatch.setattr(log_reader, "can_read", lambda _frames: False)
    assert in_machine_code == read()
    assert set(in_machine_code.keys[TableKey("tenant_1", "k")]) == {
        ("1.50", "78"),
        ("2.50", "78"),
        ("-2.00", "7A"),
        ("-1.00", "7A"),
    }
    assert in_machine_code.tables == {TableKey("tenant_1", "bare")}


@pytest.mark.parametrize("full", [False, True], ids=["window", "full"])
@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_drift_of_rows_that_the_source_changes_all_the_time_is_found_and_never_settled_as_equal(
    families: tuple[str, str], full: bool, channel_of: ChannelOf
) -> None:
    channel = hot_channel(channel_of(*families))
    run_on(
        channel.target,
        "UPDATE app.hot SET n = 1 WHERE id = 1",  # what the source writes next
        "UPDATE app.hot SET note = 'mine' WHERE id = 2",
        "DELETE FROM app.hot WHERE id = 3",  # as the source does next
        "INSERT INTO app.hot VALUES (100, 1, 'new', 1, 'y')",  # before the source does
        "UPDATE app.hot SET note = 'mine' WHERE id = 5",  # cold
        log=False,
    )
    run_on(
        channel.source,
        "UPDATE app.hot SET n = n + 1 WHERE id < 5",
        "DELETE FROM app.hot WHERE id = 3",
        "INSERT INTO app.hot VALUES (100, 1, 'new', 1, 'y')",
        "UPDATE app.hot SET id = 200 WHERE id = 4",
    )
    drift = {("drift", "hot", (key,)) for key in ("1", "2", "3", "5")}
    # the windows' log does not name a row that only the target has
    outcome = verify(channel, full=full)
    assert found(outcome) == drift | ({("drift", "hot", ("100",))} if full else set())
    [first] = [one for one in outcome.suspects if one.key == ("1",)]
    assert (first.columns, first.source and first.source[1], first.target and first.target[1]) == (("n",), "0", "1")


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_partial_images_settle_column_by_column_within_three_windows(
    families: tuple[str, str], image: str, channel_of: ChannelOf
) -> None:
    channel = channel_of(*families)
    before = channel.source.query("SELECT @@GLOBAL.binlog_row_image")[0][0]
    run_on(channel.source, f"SET GLOBAL binlog_row_image = {image}")
    try:
        hot_channel(channel)
        run_on(channel.source, "UPDATE app.hot SET n = n + 1, body = 'b' WHERE id <= 10")
        verified = 0
        for _ in range(3):
            assert channel.run() is not None
            run_on(channel.source, "UPDATE app.hot SET n = n + 1, body = CONCAT(body, n) WHERE id <= 10")
            outcome = verify(channel)
            assert {one.state for one in outcome.suspects} <= {"pending"}
            verified = outcome.counts.equal + outcome.counts.logged
        assert (outcome.state, verified, outcome.counts.logged) == ("clean", 10, 10)
        run_on(
            channel.target,
            "UPDATE app.hot SET n = n + 1 WHERE id = 1",  # the column that changes
            "UPDATE app.hot SET note = 'mine' WHERE id = 2",  # one that does not
            "UPDATE app.hot SET f = 0 WHERE id = 12",
            log=False,
        )
        assert found(verify(channel)) == {("drift", "hot", ("1",)), ("drift", "hot", ("2",))}
        if image == "NOBLOB":
            return  # the next window corrects all columns but body
        run_on(channel.source, "UPDATE app.hot SET n = n + 1 WHERE id = 12")
        # only the images in the log show row 12 now, and they have n alone
        assert channel.run() is not None
        run_on(channel.source, "UPDATE app.hot SET n = n + 1")
        assert ("drift", "hot", ("12",)) in found(verify(channel))
    finally:
        run_on(channel.source, f"SET GLOBAL binlog_row_image = {before}")


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_windows_that_were_not_verified_are_verified_by_the_next_verification(
    families: tuple[str, str], channel_of: ChannelOf
) -> None:
    channel = hot_channel(channel_of(*families))
    first = verify(channel)
    assert (first.windows, first.covered.rows_after, first.covered.through) == (1, 0, first.through_seqno)
    for key in (1, 2, 3):
        run_on(channel.source, f"UPDATE app.hot SET n = 7 WHERE id = {key}")
        assert channel.run() is not None
    run_on(channel.target, "UPDATE app.hot SET n = 8 WHERE id = 1", log=False)
    outcome = verify(channel)
    assert found(outcome) == {("drift", "hot", ("1",))}
    assert (outcome.windows, outcome.counts.rows, outcome.counts.equal) == (3, 3, 2)
    assert (outcome.covered.rows_after, outcome.covered.through) == (0, outcome.through_seqno)
    assert (verify(channel).windows, verify(channel, full=True).windows) == (1, 0)


@pytest.mark.parametrize("full", [False, True], ids=["window", "full"])
@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_rows_that_change_before_a_statement_are_proved_and_those_behind_it_wait(
    families: tuple[str, str], full: bool, channel_of: ChannelOf
) -> None:
    channel = hot_channel(channel_of(*families))
    change = "UPDATE app.hot SET n = n + 1 WHERE id IN "
    run_on(channel.target, "UPDATE app.hot SET n = 77 WHERE id = 2", log=False)
    run_on(
        channel.source, f"{change} (1, 2)", "INSERT INTO app.hot VALUES (50, 1, 'new', 1, 'x')",
        "SET SESSION binlog_format = 'STATEMENT'", f"{change} (1, 3)", "SET SESSION binlog_format = 'ROW'",
        f"{change} (2, 4)", "INSERT INTO app.hot VALUES (51, 1, 'new', 1, 'x')",
    )  # fmt: skip
    outcome = verify(channel, full=full)
    waits = {("pending", "hot", (key,)) for key in (("3", "4", "51") if full else ("3", "4"))}
    assert found(outcome) == {("drift", "hot", ("2",)), *waits}
    assert channel.run() is not None
    assert found(verify(channel, full=full)) == set()


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_rows_that_are_pending_again_because_no_log_shows_their_changes_are_told_as_such(
    families: tuple[str, str], channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    """Statements and a cascade behind every watermark: the row of a statement is named, with the way out. MySQL 9.6 and
    newer log what a cascade changes."""
    channel = hot_channel(channel_of(*families))
    cascades_are_logged = families[0] == "mysql"
    for server in (channel.source, channel.target):
        run_on(
            server, "CREATE TABLE app.parent (id INT PRIMARY KEY)", "CREATE TABLE app.bare (n INT)",
            "CREATE TABLE app.child (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES app.parent (id) "
            "ON UPDATE CASCADE)", log=False,
        )  # fmt: skip
    run_on(
        channel.source, "INSERT INTO app.parent VALUES (1)", "INSERT INTO app.child VALUES (1, 1)",
        "INSERT INTO app.bare VALUES (0)",
    )  # fmt: skip

    def told() -> str:
        assert channel.run() is not None
        run_on(
            channel.source, "UPDATE app.parent SET id = id + 1", "SET SESSION binlog_format = 'STATEMENT'",
            "UPDATE app.hot SET n = n + 1 WHERE id <= 2", "UPDATE app.bare SET n = n + 1",
        )  # fmt: skip
        outcome = verify(channel, full=True)
        assert Counter(one.state for one in outcome.suspects)["drift"] == 0
        # they are rows, not parts of a definition, also when they are read again
        assert not any(one.of_definition for one in outcome.suspects)
        return outcome_text(outcome)

    assert "behind every watermark" not in told()
    assert channel.cli("status", CHANNEL) == 0
    assert "behind every watermark" not in capsys.readouterr().out
    text = told()
    capsys.readouterr()
    assert channel.cli("status", CHANNEL, "--json") == 0
    unshown = json.loads(capsys.readouterr().out)["verified"]["unshown"]
    by_cascades = set() if cascades_are_logged else {("child", 1)}
    assert {(each["table"]["table"], each["rows"]) for each in unshown} == {("hot", 2), ("bare", 2)} | by_cascades
    assert channel.cli("status", CHANNEL) == 0
    for said in (text, " ".join(capsys.readouterr().out.split())):
        assert "4 rows pending since " in said
        assert " in app.bare, app.hot, which statements change without showing the rows in the log" in said
        assert "binlog_format = ROW on the source" in said
        assert ("1 row pending since " in said) is not cascades_are_logged
        assert (" in app.child, which foreign keys change" in said) is not cascades_are_logged
    # with rows in the log, and parents at rest, they are settled
    assert channel.run() is not None
    run_on(channel.source, "UPDATE app.hot SET n = n + 1 WHERE id <= 2")
    assert verify(channel, full=True).state == "clean"


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_a_row_that_a_foreign_key_may_have_changed_before_its_first_image_waits(
    families: tuple[str, str], channel_of: ChannelOf
) -> None:
    channel = channel_of(*families)
    for server in (channel.source, channel.target):
        run_on(
            server, "CREATE DATABASE app", "CREATE TABLE app.parent (id INT PRIMARY KEY)",
            "CREATE TABLE app.child (id INT PRIMARY KEY, parent INT, n INT NOT NULL, "
            "FOREIGN KEY (parent) REFERENCES app.parent (id) ON UPDATE CASCADE)", log=False,
        )  # fmt: skip
    run_on(channel.source, "INSERT INTO app.parent VALUES (1)", "INSERT INTO app.child VALUES (1, 1, 1), (2, NULL, 1)")
    assert channel.run() is not None
    # the image of child 1 before its own change is not what it was at the watermark, where the cascade is not logged
    run_on(channel.source, "UPDATE app.parent SET id = 2", "UPDATE app.child SET n = 2")
    waits = {("pending", "child", (key,)) for key in "12"}
    assert found(verify(channel)) == (set() if families[0] == "mysql" else waits)
    assert channel.run() is not None
    assert verify(channel).state == "clean"


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_a_row_that_drifted_under_an_earlier_primary_key_is_not_looked_up_under_the_present_one(
    families: tuple[str, str], channel_of: ChannelOf
) -> None:
    """Its stored key is the text's bytes, 37, which the window that changes the key makes the key of an equal row."""
    channel = channel_of(*families)
    for server in (channel.source, channel.target):
        run_on(server, "CREATE DATABASE app", log=False)
        run_on(server, "CREATE TABLE app.t (a VARBINARY(9) PRIMARY KEY, n INT NOT NULL UNIQUE)", log=False)
    run_on(channel.source, "INSERT INTO app.t VALUES ('7', 1), ('8', 37), ('9', 3)")
    assert channel.run() is not None
    run_on(channel.target, "UPDATE app.t SET n = 9 WHERE a = '7'", log=False)
    assert found(verify(channel)) == {("drift", "t", ("37",))}
    run_on(channel.source, "ALTER TABLE app.t DROP PRIMARY KEY, ADD PRIMARY KEY (n)")
    assert channel.run() is not None
    run_on(channel.source, "UPDATE app.t SET a = '5' WHERE n = 3")
    assert channel.run() is not None
    # as if the folder of the window that has changed the key had been removed, so that its rows are unknown
    run_on(channel.target, "UPDATE binlane.windows SET work = '' WHERE number = 2")
    assert found(verify(channel)) == {("drift", "t", ("1",)), ("drift", "t", ("9",))}


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_keys_that_only_their_collation_makes_equal(families: tuple[str, str], channel_of: ChannelOf) -> None:
    channel = channel_of(*families)
    for server in (channel.source, channel.target):
        run_on(
            server,
            "CREATE DATABASE app",
            "CREATE TABLE app.t (k VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY, n INT)",
            log=False,
        )
    run_on(channel.source, "INSERT INTO app.t VALUES ('Foo', 1), ('bar', 1), ('Baz', 1), ('strasse ', 1)")
    assert channel.run() is not None
    run_on(
        channel.source, "UPDATE app.t SET k = 'foo', n = 2 WHERE k = 'FOO'", "UPDATE app.t SET n = 2 WHERE k = 'BAR'"
    )
    run_on(channel.source, "DELETE FROM app.t WHERE k = 'Baz'", "INSERT INTO app.t VALUES ('bAZ', 1)")
    assert found(verify(channel)) == set()
    run_on(channel.target, "UPDATE app.t SET k = 'fOO' WHERE k = 'Foo'", "UPDATE app.t SET k = 'baz'  WHERE k = 'Baz'")
    found_keys = {bytes.fromhex(one.key[0]).decode() for one in verify(channel).suspects if one.state == "drift"}
    assert {"Foo", "Baz"} <= found_keys


@pytest.mark.parametrize("families", ONE_OF_EACH)
@pytest.mark.trial
def test_under_live_traffic_every_window_is_settled_within_three_windows(
    families: tuple[str, str], channel_of: ChannelOf
) -> None:
    """Hot rows, cold rows, and an injected difference; windows are counted, not seconds."""
    channel = hot_channel(channel_of(*families))
    ended = threading.Event()

    def write() -> None:
        connection = channel.source.connect(autocommit=True)
        with contextlib.closing(connection), connection.cursor() as cursor:
            for number in itertools.count(1000):
                cursor.execute("UPDATE app.hot SET n = n + 1, note = %s WHERE id <= 10", (str(number),))
                cursor.execute("INSERT INTO app.hot VALUES (%s, 0, 'new', 1, 'x')", (number,))
                cursor.execute("DELETE FROM app.hot WHERE id = %s", (number - 200,))
                if ended.wait(0.01):
                    return

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write)]
        try:
            pending_of_window: list[int] = []
            for window in range(6):
                assert channel.run() is not None
                if window == 3:
                    # window 4 writes hot rows anew; row 15 nobody changes
                    run_on(channel.target, "UPDATE app.hot SET n = -1 WHERE id IN (1, 15)", log=False)
                outcome = verify_channel(channel.config, channel.endpoints, Options(full=window % 2 == 1))
                pending_of_window.append(len(outcome.of_state("pending")))
                drift = {one.key for one in outcome.suspects if one.state == "drift"}
                assert drift == ({("1",), ("15",)} if window == 3 else {("15",)} if window > 3 else set())
                assert outcome.counts.equal > 10
        finally:
            ended.set()
        for writer in writers:
            writer.result()
    # images are complete, so not even the window itself leaves a row pending
    assert pending_of_window == [0] * 6
