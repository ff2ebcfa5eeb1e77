"""A source that goes on writing: rows that it changes behind the watermark are settled by its log."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from binlane.errors import ConfigError, WindowBusyError
from binlane.model import TableKey
from binlane.orchestration import steps
from binlane.orchestration.commands.verify import verify_channel
from binlane.orchestration.request import WindowRequest
from binlane.servers.catalog import read_schema
from binlane.servers.engines import engine_of
from binlane.state.records.verifications import Suspect
from binlane.verify import log_reader
from binlane.verify.changes import Changes
from binlane.verify.log_reader import ChangeReader
from binlane.verify.rows.pairing import pair
from binlane.verify.rows.sides import Difference, Pair
from binlane.verify.run import Options, Outcome, Verifier
from binlane.verify.scope import Scope
from binlane.verify.segment_keys import distinct_keys
from binlane.work.files import WorkFolder
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.forked import process
from tests.integration.window.conftest import (
    CHANNEL,
    Channel,
    ChannelOf,
    channel_of,
    clean_servers,
    fresh_channel,
    run_on,
)
from tests.integration.window.test_every_type import SESSION, changes, definition, types_of

__all__ = ["channel_of", "clean_servers"]

FAMILIES = [
    pytest.param(("mariadb", "mariadb"), id="mariadb-mariadb"),
    pytest.param(("mysql", "mysql"), id="mysql-mysql", marks=requires_mysql),
    pytest.param(("mariadb", "mysql"), id="mariadb-mysql", marks=requires_mysql),
    pytest.param(("mysql", "mariadb"), id="mysql-mariadb", marks=requires_mysql),
]
ONE_OF_EACH = FAMILIES[:2]
HOT = (
    "CREATE DATABASE app",
    "CREATE TABLE app.hot (id INT PRIMARY KEY, n INT NOT NULL, note VARCHAR(40), f DOUBLE, body TEXT)",
)


def verify(channel: Channel, *, full: bool = False) -> Outcome:
    return verify_channel(channel.config, channel.endpoints, Options(full, 7))


def found(outcome: Outcome) -> set[tuple[str, str, tuple[str, ...]]]:
    return {(one.state, one.table.table, one.key) for one in outcome.suspects}


def hot_channel(channel: Channel) -> Channel:
    for server in (channel.source, channel.target):
        run_on(server, *HOT, log=False)
    rows = ", ".join(f"({n}, 0, 'note {n}', {n} / 3, REPEAT('x', {n}))" for n in range(1, 21))
    run_on(channel.source, f"INSERT INTO app.hot VALUES {rows}")
    assert channel.run() is not None
    return channel


@pytest.mark.parametrize("full", [False, True], ids=["window", "full"])
@pytest.mark.parametrize("families", FAMILIES)
def test_rows_of_every_type_that_change_behind_the_watermark_are_settled_at_once(
    families: tuple[str, str],
    full: bool,
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
    outcome = verify(channel, full=full)
    assert found(outcome) == set()
    assert outcome.state == "clean"
    # and none of them is taken for equal if it is not
    run_on(target, SESSION, *(f"UPDATE tenant_1.t{number} SET n = n + 1 WHERE id = 1" for number in range(len(types))))
    assert found(verify(channel, full=full)) == {("drift", f"t{number}", ("1",)) for number in range(len(types))}


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
    assert in_machine_code.keys[TableKey("tenant_1", "k")] == {
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


SLICE = Options(True, 7, seconds=0, step_seconds=0)
"""One chunk."""


def tables(channel: Channel, rows: int = 30) -> None:
    """Three tables of which the source goes on changing rows."""
    names = ("a", "b", "c")
    for server in (channel.source, channel.target):
        run_on(server, "CREATE DATABASE app", log=False)
        for name in names:
            run_on(server, f"CREATE TABLE app.{name} (id INT PRIMARY KEY, n INT, note VARCHAR(20))", log=False)
    for name in names:
        values = ", ".join(f"({n}, 0, 'note {n}')" for n in range(1, rows + 1))
        run_on(channel.source, f"INSERT INTO app.{name} VALUES {values}")
    assert channel.run() is not None


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
    # pending, because the source changes the table; none of them was equal in between
    again = {(one.state, one.target, one.drifted) for one in changed.suspects if one.table.table == "z"}
    assert again == {("pending", ("2",), whole.through_seqno)}


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
    assert rows == [("drift", 600)]


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_some_tables_are_verified_alone(families: tuple[str, str], channel_of: ChannelOf) -> None:
    channel = channel_of(*families)
    tables(channel, 14)
    run_on(channel.target, "UPDATE app.a SET n = 9 WHERE id = 3", "UPDATE app.b SET n = 9 WHERE id = 3", log=False)
    outcome = verify_channel(channel.config, channel.endpoints, Options(True, scope=Scope(tables=("app.b",))))
    assert (found(outcome), outcome.counts.rows) == ({("drift", "b", ("3",))}, 14)
    assert outcome.covered.full_at is None
    whole = verify_channel(channel.config, channel.endpoints, Options(True, scope=Scope(("app",))))
    assert (whole.counts.rows, len(whole.suspects)) == (42, 2)
    with pytest.raises(ConfigError, match=r"expected database\.table, got 'b'"):
        verify_channel(channel.config, channel.endpoints, Options(True, scope=Scope(tables=("b",))))


@pytest.mark.parametrize("families", ONE_OF_EACH)
def test_a_shard_is_verified_alone_with_all_databases_of_its_group(
    families: tuple[str, str], channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(*families)
    tables(channel, 14)
    for server in (channel.source, channel.target):
        run_on(
            server,
            "CREATE DATABASE zoo",
            "CREATE TABLE zoo.child (id INT PRIMARY KEY, n INT, FOREIGN KEY (id) REFERENCES app.a (id))",
            "INSERT INTO zoo.child VALUES (3, 1)",
            "CREATE DATABASE other",
            "CREATE TABLE other.t (id INT PRIMARY KEY)",
            log=False,
        )
    run_on(channel.target, "UPDATE zoo.child SET n = 9", "INSERT INTO other.t VALUES (1)", log=False)
    capsys.readouterr()
    assert channel.cli("verify", CHANNEL, "--full", "--shard", "ap*") == 1
    assert "4 tables, 43 rows" in (said := capsys.readouterr().out)
    assert "zoo.child, primary key id=3" in said
    outcome = verify_channel(channel.config, channel.endpoints, Options(True, scope=Scope(shards=("app",))))
    assert found(outcome) == {("drift", "child", ("3",))}
    assert outcome.covered.full_at is None
    assert channel.cli("verify", CHANNEL, "--full", "--shard", "zoo") == 2
    assert "--shard: expected the shard of a database of the target, got 'zoo'" in capsys.readouterr().err


@pytest.mark.parametrize("families", ONE_OF_EACH)
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
