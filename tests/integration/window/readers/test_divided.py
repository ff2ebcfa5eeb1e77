"""One database over several lanes: whatever a history does to it, the target ends as the source does.

The lanes of a window are applied at once, one after another in any order, or by processes that are killed. What the
next AUTO_INCREMENT value is must be as after one lane.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import pymysql
import pytest

from binlane.apply.lane.replay_skipped import replay_skipped
from binlane.errors import DriftError, PositionError
from binlane.model import Flavor, TableKey
from binlane.orchestration import steps
from binlane.orchestration.plan_file import read_plan
from binlane.orchestration.report import plan_view
from binlane.orchestration.request import WindowRequest
from binlane.orchestration.terminal import as_text
from binlane.plan.window import placement
from binlane.plan.window_plan import WindowPlan
from binlane.servers.engines import engine_of
from binlane.state.orders.stops import clear_stop, request_stop
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.servers import PrivateServer
from tests.emptied import empty_target
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.one_runner import apply_alone

EXAMPLES: Final = int(os.environ.get("BINLANE_EXAMPLES", "1"))
DIVIDED: Final = "(divided)=shop, crm_*\n"
BY_ID: Final = ("plain", "numbered", "unique_text", "swapped", "parted", "computed")
"""Tables of ``shop`` with a primary key ``id``."""
SCHEMA: Final = (
    "CREATE DATABASE shop",
    "CREATE DATABASE crm_1",
    "CREATE DATABASE other",
    "CREATE TABLE shop.plain (id INT PRIMARY KEY, v INT, note VARCHAR(40))",
    "CREATE TABLE shop.numbered (id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT, note VARCHAR(40))",
    "CREATE TABLE shop.unique_text (id INT PRIMARY KEY, v INT, note VARCHAR(40) COLLATE utf8mb4_general_ci,"
    " UNIQUE KEY (note, v))",
    "CREATE TABLE shop.swapped (id INT PRIMARY KEY, v INT, note VARCHAR(40), u INT UNIQUE)",
    "CREATE TABLE shop.parted (id INT PRIMARY KEY, v INT, note VARCHAR(40)) PARTITION BY HASH (id) PARTITIONS 3",
    "CREATE TABLE shop.computed (id INT PRIMARY KEY, v INT, note VARCHAR(40), g INT AS (id * 2) STORED UNIQUE)",
    "CREATE TABLE shop.words (k VARCHAR(9) COLLATE utf8mb4_general_ci PRIMARY KEY, v INT)",
    "CREATE TABLE shop.padded (k CHAR(9) CHARACTER SET latin1 COLLATE latin1_bin PRIMARY KEY, v INT)",
    "CREATE TABLE shop.bytes (k VARBINARY(9), n INT, v INT, PRIMARY KEY (k, n))",
    "CREATE TABLE shop.prefixes (k VARBINARY(90), v INT, PRIMARY KEY (k(1)))",
    "CREATE TABLE shop.floats (k DOUBLE PRIMARY KEY, v INT)",
    "CREATE TABLE shop.times (k DATETIME(3) PRIMARY KEY, v INT)",
    "CREATE TABLE shop.kinds (k ENUM('x','y','z') PRIMARY KEY, v INT)",
    "CREATE TABLE shop.bag (a INT, b INT)",
    "CREATE TABLE shop.papers (id INT PRIMARY KEY, v JSON, note VARCHAR(40))",
    "CREATE TABLE shop.Mixed (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE shop.a_parent (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE shop.z_child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES shop.a_parent (id)"
    " ON DELETE CASCADE ON UPDATE CASCADE)",
    "CREATE TABLE crm_1.grandchild (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES shop.z_child (id)"
    " ON DELETE SET NULL)",
    "CREATE TABLE crm_1.plain (id INT PRIMARY KEY, v INT, note VARCHAR(40))",
    "CREATE TABLE other.plain (id INT PRIMARY KEY, v INT, note VARCHAR(40))",
)
BYTES: Final = ("plain", "numbered", "parted", "bytes", "times", "kinds", "papers", "Mixed")
"""Tables that may be dealt by key, unless a DDL names them or their rows are logged in part."""
RANGED: Final = {"plain", "numbered", "parted", "bytes", "papers", "Mixed"}
"""Those whose keys end with an integer."""
KEYS: Final = {
    "words": ("'a'", "'A'", "'a '", "'á'", "'b'", "''"),
    "padded": ("'a'", "'A'", "'a '", "'b'", "''"),
    "prefixes": ("'aa'", "'ab'", "'b'", "'bb'", "'c'"),
    "floats": ("0", "-0e0", "1.5", "2.5"),
    "times": ("'2026-01-01'", "'2026-01-01 00:00:00.001'", "'2026-01-02'"),
    "kinds": ("'x'", "'y'", "'z'"),
}


@dataclass
class History:
    """A seeded stream of transactions; any statement may fail: what the source takes, counts."""

    draw: random.Random
    flavor: Flavor
    plain: bool
    """Transactions without DDL, statement format and other databases: hardly any barriers."""
    spread: int = 1
    """How far ids are from each other."""

    def sessions(self, count: int) -> Iterator[str]:
        """Statements, each with its transaction's BEGIN and COMMIT."""
        for number in range(count):
            yield from self._session_settings()
            if not self.plain and self.draw.random() < 0.06:
                yield self._rare(number)
                yield from self._xa(number)
                continue
            yield "BEGIN"
            if self.draw.random() < 0.1:
                yield "SAVEPOINT s" if not self.plain else "DO 0"
            for _ in range(self.draw.randint(1, 5)):
                yield from self._change()
            if not self.plain and self.draw.random() < 0.05:
                yield f"REPLACE INTO other.plain VALUES ({self._id()}, 1, 'x')"
            yield "COMMIT" if self.draw.random() < 0.93 else "ROLLBACK"

    def _session_settings(self) -> Iterator[str]:
        yield f"SET SESSION binlog_row_image = {'MINIMAL' if self.draw.random() < 0.08 else 'FULL'}"
        if self.flavor is Flavor.MYSQL:
            options = "PARTIAL_JSON" if self.draw.random() < 0.1 else ""
            yield f"SET SESSION binlog_row_value_options = '{options}'"
        formatted = "STATEMENT" if not self.plain and self.draw.random() < 0.04 else "ROW"
        yield f"SET SESSION binlog_format = '{formatted}'"

    def _xa(self, number: int) -> Iterator[str]:
        yield f"XA START 'x{number}'"
        yield from self._change()
        yield f"XA END 'x{number}'"
        yield f"XA PREPARE 'x{number}'"
        yield from (f"XA {self.draw.choice(('COMMIT', 'COMMIT', 'ROLLBACK'))} 'x{number}'",)

    def _rare(self, number: int) -> str:
        return self.draw.choice(
            (
                f"ALTER TABLE shop.plain COMMENT 'v{number}'",
                f"CREATE TABLE shop.made_{number} (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES"
                " shop.a_parent (id))",
                "TRUNCATE TABLE shop.bag",
                f"REPLACE INTO other.plain VALUES ({self._id()}, {number}, 'alone')",
                f"CREATE TABLE other.made_{number} (id INT PRIMARY KEY)",
            )
        )

    def _id(self) -> int:
        return self.draw.randint(1, 12) * self.spread

    def _change(self) -> Sequence[str]:
        draw, one, other, value = self.draw, self._id(), self._id(), self.draw.randint(0, 99)
        table = draw.choice(BY_ID)
        kind = draw.randrange(16)
        match kind:
            case 0 | 1 | 2:
                return (f"INSERT INTO shop.{table} (id, v, note) VALUES ({one}, {value}, 'n{value % 7}')",)
            case 3:
                return (f"REPLACE INTO shop.{table} (id, v, note) VALUES ({one}, {value}, 'n{value % 7}')",)
            case 4:
                return (f"UPDATE shop.{table} SET v = {value}, note = CONCAT(note, 'x') WHERE id = {one}",)
            case 5:
                return (f"UPDATE shop.{table} SET id = {other} WHERE id = {one}",)
            case 6:
                return (f"DELETE FROM shop.{table} WHERE id = {one}",)
            case 7:
                return (
                    f"DELETE FROM shop.{table} WHERE id = {one}",
                    f"INSERT INTO shop.{table} (id, v, note) VALUES ({one}, {value}, 'again')",
                )
            case 8:
                return (f"INSERT INTO shop.numbered (v, note) VALUES ({value}, 'new'), ({value}, 'newer')",)
            case 9:
                return (
                    f"UPDATE shop.swapped SET u = NULL WHERE id = {one}",
                    f"UPDATE shop.swapped SET u = {one} WHERE id = {other}",
                    f"UPDATE shop.swapped SET u = {other} WHERE id = {one}",
                )
            case 10 | 11:
                return self._of_key(draw.choice(sorted(KEYS)), value)
            case 12:
                return (
                    draw.choice((
                        f"INSERT INTO shop.bag VALUES ({one}, {value})",
                        f"UPDATE shop.bag SET b = {value} WHERE a = {one} ORDER BY b LIMIT 1",
                        f"DELETE FROM shop.bag WHERE a = {one} ORDER BY b LIMIT 1",
                        f"INSERT INTO shop.bytes VALUES (X'{one:02x}00', {other}, {value})",
                        f"UPDATE shop.bytes SET n = {other} WHERE n = {one} ORDER BY k LIMIT 1",
                        f"REPLACE INTO shop.Mixed VALUES ({one}, {value})",
                    )),
                )  # fmt: skip
            case 13:
                return (
                    draw.choice((
                        f"INSERT INTO shop.papers VALUES ({one}, '{{\"a\": {value}, \"long\": \"{'x' * 40}\"}}', 'p')",
                        f"UPDATE shop.papers SET v = JSON_SET(v, '$.a', {value}) WHERE id = {one}",
                        f"UPDATE shop.papers SET id = {other} WHERE id = {one}",
                    )),
                )  # fmt: skip
            case _:
                return self._family(one, other, value)

    def _of_key(self, table: str, value: int) -> Sequence[str]:
        one, other = self.draw.choice(KEYS[table]), self.draw.choice(KEYS[table])
        return (
            self.draw.choice((
                f"INSERT INTO shop.{table} VALUES ({one}, {value})",
                f"REPLACE INTO shop.{table} VALUES ({one}, {value})",
                f"UPDATE shop.{table} SET k = {other} WHERE k = {one}",
                f"UPDATE shop.{table} SET v = {value} WHERE k = {one}",
                f"DELETE FROM shop.{table} WHERE k = {one}",
            )),
        )  # fmt: skip

    def _family(self, one: int, other: int, value: int) -> Sequence[str]:
        """A parent, its child, and a grandchild in another divided database."""
        return self.draw.choice((
            (f"INSERT INTO shop.a_parent VALUES ({one}, {value})", f"INSERT INTO shop.z_child VALUES ({other}, {one})"),
            (f"INSERT INTO crm_1.grandchild VALUES ({one}, {other})",),
            (f"DELETE FROM shop.a_parent WHERE id = {one}",),
            (f"UPDATE shop.a_parent SET id = {other} WHERE id = {one}",),
            (f"DELETE FROM shop.z_child WHERE id = {other}", f"INSERT INTO crm_1.plain VALUES ({one}, 1, 'c')"),
        ))  # fmt: skip


def write(server: PrivateServer, statements: Iterator[str]) -> int:
    """Run statements on one connection; returns how many the server has taken."""
    taken = 0
    with closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        for statement in statements:
            try:
                cursor.execute(statement)
                taken += 1
            except pymysql.err.MySQLError:
                pass
    return taken


def start(channel: Channel) -> str:
    """The schema on both servers; returns the place in the source's log where a channel can begin."""
    for server in (channel.source, channel.target):
        run_on(server, *SCHEMA, log=False)
    status = "SHOW MASTER STATUS" if channel.source.flavor is Flavor.MARIADB else "SHOW BINARY LOG STATUS"
    [(file, offset, *_)] = channel.source.query(status)
    return f"{file}:{offset}"


TORN: Final = 'allow_torn = true\ndivide = "{}"\n'
TOGETHER: Final = 'commit = "together"\ndivide = "{}"\n'


def configure(channel: Channel, lanes: int, blocks: str = "", more: str = TORN.format("table")) -> None:
    """``more``: lines of [lanes]."""
    channel.write_channel(blocks=blocks)
    file = channel.channels / f"{CHANNEL}.toml"
    file.write_text(file.read_text().replace("count = 3\n", f"count = {lanes}\n{more}"))
    channel.write_shard_list(DIVIDED)


def planned(channel: Channel) -> dict[str, Any]:
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    return steps.adopt_plan(channel.config, channel.endpoints, window["work"])


def apply_all(channel: Channel, adopted: dict[str, Any], order: Sequence[int] | None = None) -> None:
    """All lanes at once, or one after another in this order."""
    lanes = [each["lane"] for each in adopted["lanes"]]
    if order is not None:
        for lane in (lanes[place] for place in order if place < len(lanes)):
            apply_alone(channel.config, channel.endpoints, adopted["plan"], lane)
        return

    def apply(lane: int) -> dict[str, Any]:
        return steps.apply_lane(channel.config, channel.endpoints, adopted["plan"], lane)

    with ThreadPoolExecutor(len(lanes)) as pool:
        list(pool.map(apply, lanes))


def counters(server: PrivateServer) -> dict[str, int]:
    """The next AUTO_INCREMENT value of each table."""
    with closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        if server.flavor is Flavor.MYSQL:
            cursor.execute("SET SESSION information_schema_stats_expiry = 0")
        cursor.execute(
            "SELECT CONCAT(table_schema, '.', table_name), auto_increment FROM information_schema.tables "
            "WHERE table_schema IN ('shop', 'crm_1') AND auto_increment IS NOT NULL"
        )
        return dict(cursor.fetchall())


@pytest.fixture(params=["mariadb", "mysql"])
def channel(request: pytest.FixtureRequest, channel_of: ChannelOf) -> Channel:
    return channel_of(request.param, request.param)


def again(channel: Channel, begin: str) -> None:
    """The target as it was in front of the history."""
    has_state = empty_target(channel.target)
    run_on(channel.target, *SCHEMA, log=False)
    if has_state:
        channel.begin(begin)
    else:
        channel.init(begin)


@pytest.mark.parametrize("ranged", [False, True], ids=["keys", "ranges"])
@pytest.mark.parametrize("plain", [True, False], ids=["rows", "everything"])
@pytest.mark.parametrize("reduce", ["block", "window"])
@pytest.mark.parametrize("seed", range(EXAMPLES))
@pytest.mark.paired
def test_any_history_of_a_divided_database_ends_as_in_one_lane(
    channel: Channel, monkeypatch: pytest.MonkeyPatch, reduce: str, plain: bool, ranged: bool, seed: int
) -> None:
    draw = random.Random(f"{seed} {reduce} {plain}{' ranged' * ranged}")
    if ranged:
        monkeypatch.setattr(placement, "_MANY_BYTES", 0)
    lanes = draw.choice((1, 2, 4, 8))
    begin = start(channel)
    blocks = f'reduce = "{reduce}"\n'
    channel.write_channel(blocks=blocks)
    assert write(channel.source, History(draw, channel.source.flavor, plain, 700 if ranged else 1).sessions(150)) > 300
    again(channel, begin)
    assert channel.run() is not None
    channel.assert_equal()
    one_lane = counters(channel.target)
    again(channel, begin)
    divide = draw.choice(("table", "key", "key"))
    commit = draw.choice((TORN, TOGETHER)) if reduce == "block" else TORN
    configure(channel, lanes, blocks, commit.format(divide))
    adopted = planned(channel)
    plan = read_plan(adopted["plan"])
    assert plan.division is not None
    by_key = {key.table for key, placed in plan.division.placements.items() if placed.lane is None}
    assert by_key <= set(BYTES)
    assert {key.table for key in plan.division.ranged} == (by_key & RANGED if ranged else set())
    order = None if draw.random() < 0.5 else draw.sample(range(lanes + 1), lanes + 1)
    if draw.random() < 0.5:
        stop_inside(channel, adopted, plan, draw)
    apply_all(channel, adopted, order)
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    channel.assert_equal()
    assert counters(channel.target) == one_lane


def stop_inside(channel: Channel, adopted: dict[str, Any], plan: WindowPlan, draw: random.Random) -> None:
    """All lanes stop at one seqno inside their blocks, and go on behind it."""
    engine = engine_of(channel.endpoints.target)
    at = draw.randint(plan.first_seqno + 1, plan.last_seqno - 1)
    request_stop(engine, CHANNEL, at=at)
    apply_all(channel, adopted)
    assert "stopped on request" in steps.advance(channel.config, channel.endpoints, adopted["plan"])["note"]
    assert {lane.seqno for lane in channel.status.positions} == {at}
    clear_stop(engine, CHANNEL)


@pytest.mark.parametrize("seed", range(EXAMPLES))
@pytest.mark.trial
def test_runs_that_are_killed_lose_and_double_nothing(channel: Channel, seed: int) -> None:
    draw = random.Random(f"{seed} killed")
    start(channel)
    configure(channel, 4, more=draw.choice((TORN, TOGETHER)).format(draw.choice(("table", "key"))))
    write(channel.source, History(draw, channel.source.flavor, plain=False).sessions(300))
    for _ in range(6):
        channel.run_and_kill(draw.uniform(0.2, 2.0))
    while channel.run() is not None:
        pass
    channel.assert_equal()


def two_tables(channel: Channel) -> None:
    """Six transactions that each change two tables, of two lanes; a row of one is in the way of the third."""
    start(channel)
    configure(channel, 3)
    for number in range(1, 7):
        with closing(channel.source.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO shop.plain VALUES ({number}, 1, 'n')")
            cursor.execute(f"INSERT INTO shop.times VALUES ('2026-01-0{number}', 1)")
            connection.commit()
    run_on(channel.target, "INSERT INTO shop.plain VALUES (3, 7, 'mine')")


def lanes_of_both(plan: WindowPlan) -> tuple[int, int]:
    """The lanes of the two tables, which must differ."""
    division = plan.division
    assert division is not None
    first, second = division.lane_of(TableKey("shop", "plain")), division.lane_of(TableKey("shop", "times"))
    assert first is not None
    assert second is not None
    assert first != second
    return first, second


def test_a_transaction_is_skipped_by_all_lanes_and_replayed_behind_its_window(channel: Channel) -> None:
    two_tables(channel)
    adopted = planned(channel)
    plan = read_plan(adopted["plan"])
    shown = " ".join(as_text(plan_view(plan)).split())
    assert "commit alone (lanes.commit" in shown
    assert "a transaction is seen in part until the lanes meet, at the window's end" in shown
    blocked, _ = lanes_of_both(plan)
    with pytest.raises(DriftError, match="1062"):
        steps.apply_lane(channel.config, channel.endpoints, adopted["plan"], blocked)
    seqno = plan.first_seqno + 2
    assert channel.cli("skip", CHANNEL, "--seqno", str(seqno), "--reason", "mine is right") == 0
    steps.apply_lane(channel.config, channel.endpoints, adopted["plan"], blocked)
    engine = engine_of(channel.endpoints.target)
    with pytest.raises(PositionError, match="would apply their share of it once more"):
        replay_skipped(engine, CHANNEL, seqno)
    apply_all(channel, adopted)
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    assert channel.target.query("SELECT id, v FROM shop.plain ORDER BY id") == [
        *((1, 1), (2, 1), (3, 7), (4, 1), (5, 1), (6, 1)),
    ]
    assert channel.target.query("SELECT COUNT(*) FROM shop.times") == [(5,)]
    run_on(channel.target, "DELETE FROM shop.plain WHERE id = 3")
    assert replay_skipped(engine, CHANNEL, seqno).inserts == 2
    channel.assert_equal()


def test_lanes_without_changes_of_a_transaction_neither_keep_it_from_being_skipped_nor_skip_it(
    channel: Channel,
) -> None:
    start(channel)
    configure(channel, 3, more=TORN.format("key"))
    run_on(channel.source, *(f"INSERT INTO shop.plain VALUES ({number}, 1, 'n')" for number in range(1, 7)))
    run_on(channel.target, "INSERT INTO shop.plain VALUES (3, 7, 'mine')")
    adopted = planned(channel)
    plan = read_plan(adopted["plan"])
    assert plan.division is not None
    assert plan.division.lane_of(TableKey("shop", "plain")) is None
    seqno, blocked, idle = plan.first_seqno + 2, list[int](), list[int]()
    for lane in range(2):
        try:
            apply_alone(channel.config, channel.endpoints, adopted["plan"], lane)
            idle.append(lane)
        except DriftError:
            blocked.append(lane)
    (blocked if not blocked else idle).append(2)
    state = "SELECT state FROM binlane.skips"
    for options in (("--reason", "mine is right"), ("--cancel",), ("--reason", "it is")):
        # a lane without its row has passed it
        assert channel.cli("skip", CHANNEL, "--seqno", str(seqno), *options) == 0
    for lane in idle:
        apply_alone(channel.config, channel.endpoints, adopted["plan"], lane)
    assert channel.target.query(state) == [("requested",)]
    for lane in (*blocked, 3):
        apply_alone(channel.config, channel.endpoints, adopted["plan"], lane)
    assert channel.target.query(state) == [("skipped",)]
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    assert channel.target.query("SELECT id, v FROM shop.plain ORDER BY id") == [
        *((1, 1), (2, 1), (3, 7), (4, 1), (5, 1), (6, 1)),
    ]


def test_a_transaction_of_which_a_lane_has_applied_its_share_cannot_be_skipped(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    two_tables(channel)
    adopted = planned(channel)
    plan = read_plan(adopted["plan"])
    blocked, other = lanes_of_both(plan)
    apply_alone(channel.config, channel.endpoints, adopted["plan"], other)
    with pytest.raises(DriftError, match="1062"):
        apply_alone(channel.config, channel.endpoints, adopted["plan"], blocked)
    assert channel.cli("skip", CHANNEL, "--seqno", str(plan.first_seqno + 2), "--reason", "mine is right") == 1
    assert f"lanes [{other}] have applied their share of it already" in " ".join(capsys.readouterr().err.split())
    run_on(channel.target, "DELETE FROM shop.plain WHERE id = 3")
    apply_all(channel, adopted)
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    channel.assert_equal()


@pytest.mark.parametrize(
    ("more", "shard_list", "by_key"),
    [
        pytest.param(TORN.format("table"), DIVIDED, False, id="table"),
        pytest.param(TORN.format("key"), "(divided)=other\n", None, id="not divided", marks=pytest.mark.trial),
        pytest.param(TORN.format("key"), DIVIDED + "other=1\n", True, id="another entry", marks=pytest.mark.trial),
        pytest.param(TORN.format("table"), "(divided)=\\u00\n", True, id="broken list"),
    ],
)
def test_a_window_without_a_plan_follows_a_change_of_what_is_divided(
    channel: Channel, more: str, shard_list: str, by_key: bool | None
) -> None:
    start(channel)
    configure(channel, 3, more=TORN.format("key"))
    run_on(channel.source, "INSERT INTO shop.plain VALUES (1, 1, 'a'), (2, 1, 'b')")
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    configure(channel, 3, more=more)
    channel.write_shard_list(shard_list)
    again = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    # it is read anew where its shares would be others
    assert (again["window"] == window["window"]) is (by_key is True)
    run_plan_job(WorkFolder(again["work"]), InProcess())
    adopted = steps.adopt_plan(channel.config, channel.endpoints, again["work"])
    division = read_plan(adopted["plan"]).division
    assert (None if division is None else division.lane_of(TableKey("shop", "plain")) is None) == by_key
    apply_all(channel, adopted)
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    channel.assert_equal()


def test_lanes_that_meet_at_epochs_may_divide(channel: Channel) -> None:
    start(channel)
    configure(channel, 3, more='consistency = "epoch"\nepoch_seconds = 1\n')
    run_on(channel.source, "INSERT INTO shop.plain VALUES (1, 1, 'a')", "INSERT INTO shop.bag VALUES (1, 1)")
    assert channel.run() is not None
    channel.assert_equal()
