"""Readers of the target while a window is applied: each promise of docs/consistency.md, and that broken ones are seen.

One client writes the source, so its states are known: transfers inside a table, between tables and between databases,
and TRUNCATE. A reader takes snapshots of the target as fast as it can.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import pymysql
import pytest

from lab.servers import PrivateServer
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.integration.window.control.test_ended_from_outside import WAITING
from tests.waiting import wait_until

BANKS: Final = ("bank_0", "bank_1", "bank_2", "bank_3")
ROWS: Final = 6
TOTAL: Final = len(BANKS) * 2 * ROWS * 1000
TRANSACTIONS: Final = 240
TORN: Final = "allow_torn = true\n"
TOGETHER: Final = 'commit = "together"\n'
EPOCH: Final = 'consistency = "epoch"\nepoch_transactions = 8\n'
DIVIDED: Final = "(divided)=bank_0, bank_1\n"
_CHANGED: Final = 1412
"""The table's definition has changed since the snapshot."""
ALL: Final = " UNION ALL ".join(
    f"SELECT '{bank}.{table}', id, {column} FROM {bank}.{table}"
    for bank in BANKS
    for table, column in (("account", "amount"), ("saving", "amount"), ("log", "id"))
)

State = frozenset[tuple[str, int, int]]
"""Table, id and value of every row."""


@dataclass(slots=True)
class Bank:
    """The source, and what it holds after each seqno."""

    server: PrivateServer
    seqno: int
    rows: dict[tuple[str, int], int]
    states: dict[int, State] = field(default_factory=dict)

    @classmethod
    def open(cls, channel: Channel) -> Bank:
        """Accounts on both servers, from the first window."""
        rows: dict[tuple[str, int], int] = {}
        for bank in BANKS:
            tables = ("account", "saving")
            made = [f"CREATE TABLE {bank}.{table} (id INT PRIMARY KEY, amount INT NOT NULL)" for table in tables]
            run_on(channel.source, f"CREATE DATABASE {bank}", *made, f"CREATE TABLE {bank}.log (id INT PRIMARY KEY)")
            values = ", ".join(f"({number}, 1000)" for number in range(ROWS))
            run_on(channel.source, *(f"INSERT INTO {bank}.{table} VALUES {values}" for table in tables))
            rows |= {(f"{bank}.{table}", number): 1000 for table in tables for number in range(ROWS)}
        channel.run()
        opened = cls(channel.source, channel.status.channel.watermark.seqno, rows)
        opened.note()
        return opened

    def note(self) -> None:
        self.states[self.seqno] = frozenset((table, number, value) for (table, number), value in self.rows.items())

    def transfer(self, seed: int = 7) -> None:
        """The window's transactions, one after another."""
        chance = random.Random(seed)
        with self.server.connect(autocommit=False) as connection, connection.cursor() as cursor:
            for step in range(TRANSACTIONS):
                self.seqno += 1
                bank, other = chance.sample(BANKS, 2)
                if step % 80 == 79:
                    self.empty(cursor, bank)
                else:
                    inside = f"{bank}.{chance.choice(['account', 'saving'])}"
                    self.move(cursor, bank, f"{other}.account" if step % 20 == 10 else inside, chance)
                connection.commit()
                self.note()

    def move(self, cursor: pymysql.cursors.Cursor, bank: str, target: str, chance: random.Random) -> None:
        amount, source = chance.randrange(1, 50), (f"{bank}.account", chance.randrange(ROWS))
        goal = (target, (source[1] + 1 + chance.randrange(ROWS - 1)) % ROWS)
        for (table, number), change in ((source, -amount), (goal, amount)):
            cursor.execute(f"UPDATE {table} SET amount = amount + %s WHERE id = %s", (change, number))
            self.rows[table, number] += change
        cursor.execute(f"INSERT INTO {bank}.log VALUES (%s)", (self.seqno,))
        self.rows[f"{bank}.log", self.seqno] = self.seqno

    def empty(self, cursor: pymysql.cursors.Cursor, bank: str) -> None:
        cursor.execute(f"TRUNCATE TABLE {bank}.log")
        self.rows = {key: value for key, value in self.rows.items() if key[0] != f"{bank}.log"}


@dataclass(slots=True)
class Reader:
    """Takes snapshots of the target until it is told to stop."""

    target: PrivateServer
    seen: list[tuple[int | None, str | None, State]] = field(default_factory=list)
    """Seqno and GTID set of ``binlane.consistent``, None without a row; and the snapshot's rows."""

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read in a thread of its own."""
        stop = threading.Event()
        thread = threading.Thread(target=self._read, args=(stop,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _read(self, stop: threading.Event) -> None:
        with self.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
            while not stop.is_set():
                cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
                try:
                    self.seen.append(snapshot(cursor))
                except pymysql.err.OperationalError as exc:
                    if exc.args[0] != _CHANGED:
                        raise
                cursor.execute("COMMIT")

    def accepted(self) -> list[tuple[int, str | None, State]]:
        return [(seqno, gtid_set, state) for seqno, gtid_set, state in self.seen if seqno is not None]


def snapshot(cursor: pymysql.cursors.Cursor) -> tuple[int | None, str | None, State]:
    """What the view says of the open snapshot, and its rows."""
    cursor.execute("SELECT seqno, gtid_set FROM binlane.consistent WHERE channel = %s", (CHANNEL,))
    row: Any = cursor.fetchone()
    cursor.execute(ALL)
    return (None, None, frozenset(cursor.fetchall())) if row is None else (*row, frozenset(cursor.fetchall()))


def total(state: State) -> int:
    return sum(value for table, _, value in state if not table.endswith(".log"))


@dataclass(slots=True)
class Waiting(Reader):
    """Waits for the ends of epochs, as docs/consistency.md says."""

    end: str = f"SELECT RELEASE_LOCK('binlane/{CHANNEL}')"
    """What it does with the lock once it has its snapshot."""

    def _read(self, stop: threading.Event) -> None:
        while not stop.is_set():
            with self.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
                cursor.execute(f"SELECT GET_LOCK('binlane/{CHANNEL}', 60)")
                cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
                cursor.execute("SELECT seqno FROM binlane.consistent WHERE channel = %s", (CHANNEL,))
                with suppress(pymysql.err.OperationalError):
                    cursor.execute(self.end)
                    # the lanes go on
                    stop.wait(0.02)
                    self.seen.append(snapshot(cursor))


def prepared(channel: Channel, lanes: str, shards: str = "") -> Bank:
    """A channel whose next window has the transfers."""
    channel.write_channel()
    file = channel.channels / f"{CHANNEL}.toml"
    text = file.read_text().replace("fold_gap = 4\n", f"fold_gap = 4\n{lanes}")
    file.write_text(text.replace("transactions = 20\n", "transactions = 3\n"))
    channel.write_shard_list(f"(hash-method)=round-robin\n{shards}")
    bank = Bank.open(channel)
    bank.transfer()
    return bank


def read_a_window(
    channel: Channel, lanes: str, shards: str = "", reader: Reader | None = None
) -> tuple[Bank, Reader, range]:
    """A window is read while it is applied; the seqnos inside it, without its end."""
    bank = prepared(channel, lanes, shards)
    used = Reader(channel.target) if reader is None else reader
    with used.reading():
        channel.run()
    check(channel, bank, used)
    return bank, used, range(min(bank.states) + 1, bank.seqno)


def check(channel: Channel, bank: Bank, reader: Reader) -> None:
    """Both servers are equal, and each snapshot with a row of the view is the source's state there."""
    channel.assert_equal()
    for seqno, _, state in reader.accepted():
        assert state == bank.states[seqno], f"the snapshot at seqno {seqno} is not the source's state there"
    assert snapshot_now(channel.target) == (bank.seqno, bank.states[bank.seqno])


def snapshot_now(target: PrivateServer) -> tuple[int | None, State]:
    with target.connect() as connection, connection.cursor() as cursor:
        seqno, _, state = snapshot(cursor)
        return seqno, state


families = pytest.mark.parametrize("family", ["mariadb", "mysql"])


@families
def test_with_any_time_every_snapshot_is_a_state_of_the_source(channel_of: ChannelOf, family: str) -> None:
    bank, reader, inside = read_a_window(channel_of(family, family), 'consistency = "any_time"\n')
    states = set(bank.states.values())
    assert all(state in states for _, _, state in reader.seen)
    assert len({seqno for seqno, *_ in reader.accepted() if seqno in inside}) > 3


@families
@pytest.mark.parametrize(("shards", "torn"), [("", False), (DIVIDED, True)], ids=["whole", "divided"])
def test_with_epochs_each_snapshot_that_the_rule_accepts_is_a_state_of_the_source(
    channel_of: ChannelOf, family: str, shards: str, torn: bool
) -> None:
    channel = channel_of(family, family)
    bank, reader, inside = read_a_window(channel, EPOCH, shards)
    epochs = dict(channel.target.query("SELECT seqno, gtid_set FROM binlane.epochs WHERE seqno >= %s", (inside[0],)))
    # a minute of the source's clock may end one more
    assert {seqno for seqno in inside if seqno % 8 == 0} <= epochs.keys()
    at_epochs = [(seqno, gtid_set) for seqno, gtid_set, _ in reader.accepted() if seqno in epochs]
    assert at_epochs
    assert all(gtid_set == epochs[seqno] for seqno, gtid_set in at_epochs)
    # without the rule a reader sees states that never were
    states = set(bank.states.values())
    assert any(state not in states for _, _, state in reader.seen)
    assert any(total(state) != TOTAL for _, _, state in reader.seen) == torn


@families
def test_with_eventual_a_snapshot_has_whole_transactions_and_is_seen_broken(channel_of: ChannelOf, family: str) -> None:
    bank, reader, _ = read_a_window(channel_of(family, family), "")
    assert {total(state) for _, _, state in reader.seen} == {TOTAL}
    states = set(bank.states.values())
    broken = [state for seqno, _, state in reader.seen if state not in states]
    assert broken
    for bank_name in BANKS:
        of_one = {_of(bank_name, state) for state in states}
        assert all(_of(bank_name, state) in of_one for state in broken), f"{bank_name} is in the source's order"


@families
def test_with_divided_shards_a_transaction_is_seen_in_part(channel_of: ChannelOf, family: str) -> None:
    _, reader, _ = read_a_window(channel_of(family, family), TORN, DIVIDED)
    assert any(total(state) != TOTAL for _, _, state in reader.seen)


@families
def test_shards_that_commit_together_are_a_state_of_the_source_where_the_view_has_a_row(
    channel_of: ChannelOf, family: str
) -> None:
    """At barriers, where all lanes meet: how many a reader gets hold of depends on how often it looks."""
    _, reader, inside = read_a_window(channel_of(family, family), TOGETHER, DIVIDED)
    assert any(seqno in inside for seqno, *_ in reader.accepted())


@families
def test_a_reader_that_waits_by_the_lock_gets_its_snapshots_at_epochs(channel_of: ChannelOf, family: str) -> None:
    channel = channel_of(family, family)
    _, reader, inside = read_a_window(channel, EPOCH, reader=Waiting(channel.target))
    epochs = {seqno for (seqno,) in channel.target.query("SELECT seqno FROM binlane.epochs")}
    assert len({seqno for seqno, *_ in reader.accepted() if seqno in inside and seqno in epochs}) > 3


@families
@pytest.mark.parametrize("end", ["KILL CONNECTION_ID()", "SELECT SLEEP(3)"], ids=["dies", "forgets"])
@pytest.mark.trial
def test_a_reader_that_dies_with_the_lock_or_keeps_it_stops_no_lane(
    channel_of: ChannelOf, family: str, end: str
) -> None:
    channel = channel_of(family, family)
    read_a_window(channel, EPOCH + "reader_wait = 1\n", reader=Waiting(channel.target, end=end))
    assert channel.status.window is None


@families
@pytest.mark.trial
def test_runs_that_are_killed_while_a_reader_waits_leave_states_of_the_source(
    channel_of: ChannelOf, family: str
) -> None:
    channel = channel_of(family, family)
    bank, reader = prepared(channel, EPOCH), Waiting(channel.target)
    with reader.reading():
        for number in range(3):
            channel.run_and_kill(1 + 0.4 * number)
        channel.run()
    check(channel, bank, reader)


@families
def test_a_reader_that_comes_between_two_epochs_gets_the_lock_at_the_next_one(
    channel_of: ChannelOf, family: str
) -> None:
    channel = channel_of(family, family)
    bank, first = prepared(channel, EPOCH), list[tuple[int | None, str | None, State]]()

    def read() -> None:
        with channel.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT GET_LOCK('binlane/{CHANNEL}', 60)")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            first.append(snapshot(cursor))

    reader, window = threading.Thread(target=read), threading.Thread(target=channel.run)
    with channel.target.connect() as holder, holder.cursor() as cursor:
        cursor.execute("SELECT * FROM bank_1.account FOR UPDATE")
        window.start()
        wait_until(lambda: channel.target.query(WAITING) != [(0,)])
        # the serialized lane has the lock while the others move, and one of them is held here
        wait_until(lambda: channel.target.query(f"SELECT IS_FREE_LOCK('binlane/{CHANNEL}')") == [(0,)])
        reader.start()
        holder.rollback()
        for each in (reader, window):
            each.join()
    [(seqno, _, state)] = first
    assert seqno is not None
    assert (seqno % 8, state) == (0, bank.states[seqno])
    assert channel.target.query("SELECT COUNT(*) FROM binlane.epochs WHERE seqno = %s", (seqno,)) == [(1,)]


def _of(bank: str, state: State) -> State:
    return frozenset(row for row in state if row[0].startswith(f"{bank}."))
