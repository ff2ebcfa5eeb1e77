"""Generated histories: by seed, as text, of every kind, and how a failing one is made shorter."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from binlane.model import Flavor
from lab.histories.generator import generate
from lab.histories.history import BOTH, WINDOW, Event, History, Settings
from lab.histories.shrink import shrunk

FAMILIES = pytest.mark.parametrize("flavor", list(Flavor))


@FAMILIES
def test_a_seed_gives_the_same_history_which_its_text_holds_whole(flavor: Flavor) -> None:
    for seed in range(40):
        history = generate(flavor, seed)
        assert generate(flavor, seed) == history
        assert History.from_text(history.to_text()) == history
        assert len(history.events) > 20
    assert generate(flavor, 1).events != generate(flavor, 2).events


@FAMILIES
def test_histories_have_every_way_to_run_a_channel_and_every_kind_of_statement(flavor: Flavor) -> None:
    histories = [generate(flavor, seed) for seed in range(200)]
    settings = [history.settings for history in histories]
    assert {each.lanes for each in settings} == {1, 3, 7}
    assert {each.fold_gap for each in settings} == {0, None}
    assert {each.reduce for each in settings} == {"off", "block", "window"}
    assert {each.block for each in settings} == {1, 3, 1000}
    assert 10 <= sum(each.spark for each in settings) <= 35
    assert {each.consistency for each in settings} == {"eventual", "epoch", "any_time"}
    assert {(each.divide, each.commit, each.reduce) for each in settings} >= {
        *(("", "alone", reduce) for reduce in ("off", "block", "window")),
        *((divide, "alone", reduce) for divide in ("key", "table") for reduce in ("block", "window")),
        *((divide, "together", "block") for divide in ("key", "table")),
    }
    assert {(each.writer, each.on_conflict, each.row_images) for each in settings} == {
        (writer, found, images)
        for writer in ("binlog", "sql") for found in ("stop", "overwrite") for images in ("auto", "full")
    }  # fmt: skip
    sessions = Counter(event.session for history in histories for event in history.events)
    assert {BOTH, WINDOW, *"abcd"} <= sessions.keys()
    said = " ".join(event.sql for history in histories for event in history.events)
    for part in (
        "XA PREPARE", "XA COMMIT", "XA ROLLBACK", "SAVEPOINT", "ROLLBACK TO", "CREATE TEMPORARY TABLE", "disconnect",
        "EXCHANGE PARTITION", "_gho", "CREATE TRIGGER", "CREATE VIEW", "CREATE PROCEDURE", "CREATE EVENT", "TRUNCATE",
        "FOREIGN KEY", "ON DELETE CASCADE", "INVISIBLE", "STORED", "VIRTUAL", "LOAD DATA", "ALTER DATABASE",
        "DROP DATABASE", "'STATEMENT'", "'MINIMAL'", "RENAME TABLE", "RENAME TO", "LIKE `", "SELECT `id` FROM",
    ):  # fmt: skip
        assert part in said, part
    for part in (
        "`id` = VALUES(`id`) + 3", "ADD PRIMARY KEY (`id`, ", "ADD CONSTRAINT `ck", "ALGORITHM=INSTANT", ".`tree",
        "UNIQUE KEY `by_code`", "`id`) ON DELETE SET NULL", "WITH `w` AS", "EXECUTE s1", "LOCK TABLES", "SET `id` = @n",
        "RELEASE SAVEPOINT", "`l` JOIN", "ADD PARTITION", "SUBPARTITION", "PRECEDES", "DROP FOREIGN KEY",
    ):  # fmt: skip
        assert part in said, part
    for part in (
        "OPTIONALLY ENCLOSED BY", "STARTING BY '>'", "CHARACTER SET binary", "LOAD XML", "SET NAMES latin1",
        "`by_g` (`g`)", "'again'", "binlog_row_image = 'MINIMAL'", "(15, ",
    ):  # fmt: skip
        assert part in said, part
    own = {
        Flavor.MYSQL: ("PARTIAL_JSON", "((LOWER(", "compression = ON", "PRIMARY KEY (`g`", "SET_VAR", "NOT ENFORCED"),
        Flavor.MARIADB: ("NEXTVAL", "VERSIONING", "PORTION OF", "WITHOUT OVERLAPS", "ROW START", "SET STATEMENT"),
    }
    for part in own[flavor]:
        assert part in said, part


def test_a_failing_history_is_shortened_to_what_it_needs() -> None:
    events = tuple(Event("ab"[number % 2], f"SELECT {number}") for number in range(60))
    needed = {events[7], events[40]}
    tried: list[int] = []

    def fails(history: History) -> bool:
        tried.append(len(history.events))
        return needed <= set(history.events)

    history = shrunk(History(Flavor.MARIADB, 1, Settings(), events), fails, 60)
    assert set(history.events) == needed
    assert len(tried) < 200


def test_shortening_ends_in_time_with_what_it_has() -> None:
    events = tuple(Event("a", f"SELECT {number}") for number in range(60))

    def fails(history: History) -> bool:
        time.sleep(0.01)
        return len(history.events) > 30

    found = shrunk(History(Flavor.MARIADB, 1, Settings(), events), fails, 0.05)
    assert 30 < len(found.events) <= 60
