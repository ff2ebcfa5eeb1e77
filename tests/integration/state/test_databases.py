"""The databases of a channel as the state keeps them: of the newest windows, searched, ordered, in pages."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from binlane.model import LogPosition
from binlane.plan.database_activity import DatabaseActivity
from binlane.state.channels import Watermark, create_channel
from binlane.state.records.bootstraps import finish_bootstrap, save_snapshot
from binlane.state.records.databases import (
    RECENT,
    DatabaseRecord,
    InWindow,
    Order,
    Search,
    find_databases,
    forgetting,
    other_writers,
    record_databases,
)
from binlane.state.records.verifications import (
    begin_verification,
    end_verification,
    ended_verifications,
    unfinished_round,
)

CHANNEL = "shop"
HOSTILE = "<b>x_%![/x]\u202e"


def ended(engine: Engine, state: str, *, kind: str = "full", scope: tuple[str, ...] = ()) -> None:
    with engine.begin() as connection:
        number = begin_verification(connection, CHANNEL, kind, "w1", 7, scope).id
        if state != "running":
            end_verification(connection, number, state, 0, 0, has_gap=False)


def test_older_verifications_are_those_that_decide(engine: Engine) -> None:
    for state in ("drift", "clean", "pending", "pending"):
        ended(engine, state)
    ended(engine, "drift", scope=("crm.*",))
    ended(engine, "clean", kind="window")
    ended(engine, "running")
    with engine.connect() as connection:
        found = ended_verifications(connection, CHANNEL, 2)
        left = unfinished_round(connection, CHANNEL)
    assert [(each.state, each.kind, each.scope) for each in found] == [
        ("clean", "window", ()), ("drift", "full", ("crm.*",)), ("clean", "full", ()), ("drift", "full", ()),
    ]  # fmt: skip
    assert left is not None
    assert (left.state, left.through_seqno) == ("running", 7)


def test_a_full_verification_goes_on_under_its_rules_alone(engine: Engine) -> None:
    """A table of its may have been compared with another one of the source."""
    with engine.begin() as connection:
        numbers = [begin_verification(connection, CHANNEL, "full", "", 7, rules=each * 64).id for each in "aabb"]
    assert numbers[0] == numbers[1] < numbers[2] == numbers[3]
    with engine.connect() as connection:
        left = unfinished_round(connection, CHANNEL)
    assert left is not None
    assert left.id == numbers[2]


def record(engine: Engine, number: int, **found: DatabaseActivity) -> None:
    with engine.begin() as connection:
        record_databases(connection, CHANNEL, number, found)


def find(engine: Engine, search: Search | None = None, **page: int) -> tuple[list[str], int]:
    with engine.connect() as connection:
        found, count = find_databases(connection, CHANNEL, search or Search(), **page)
    return [each.name for each in found], count


def one(engine: Engine, name: str) -> DatabaseRecord:
    with engine.connect() as connection:
        (found,), _ = find_databases(connection, CHANNEL, Search(name))
    return found


def test_the_newest_windows_of_a_database_are_kept(engine: Engine) -> None:
    for number in range(1, RECENT + 3):
        record(engine, number, a=DatabaseActivity(2, 1, number, 10 * number, 5.5))
    found = one(engine, "a")
    assert [each.number for each in found.recent] == list(range(RECENT + 2, 2, -1))
    assert found.recent[0] == InWindow(RECENT + 2, 1, RECENT + 2, 10 * (RECENT + 2), 5.5)
    assert (found.lane, found.rows) == (2, sum(range(3, RECENT + 3)))


def test_a_window_that_is_planned_again_replaces_its_figures(engine: Engine) -> None:
    record(engine, 1, a=DatabaseActivity(0, 1, 5, 3, 1.0))
    record(engine, 2, a=DatabaseActivity(1, 9, 90, 30, 2.0))
    record(engine, 2, a=DatabaseActivity(None, 2, 7, 20, 2.0))
    found = one(engine, "a")
    assert (found.lane, found.rows, [each.number for each in found.recent]) == (None, 12, [2, 1])


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        (Search("tenant_2*"), ["tenant_20", "tenant_217"]),
        (Search("tenant_21?"), ["tenant_217"]),
        (Search("tenant_217"), ["tenant_217"]),
        (Search("tenant%"), []),
        (Search("tenant-2*"), []),
        (Search("<b>x_%!*"), [HOSTILE]),
        (Search(lane=1), ["tenant_20", "tenant_3"]),
        (Search(order=Order.ROWS), ["tenant_3", "tenant_217", "tenant_20", HOSTILE]),
        (Search(order=Order.APPLIED), [HOSTILE, "tenant_20", "tenant_217", "tenant_3"]),
        (Search(drifted=True), []),
    ],
)
def test_a_search_finds_by_pattern_and_lane_and_orders(engine: Engine, search: Search, expected: list[str]) -> None:
    databases = {"tenant_20": (1, 5, 30), "tenant_217": (0, 7, 20), "tenant_3": (1, 9, 10), HOSTILE: (2, 1, 40)}
    activity = {name: DatabaseActivity(lane, 1, rows, seqno, 0.0) for name, (lane, rows, seqno) in databases.items()}
    with engine.begin() as connection:
        record_databases(connection, CHANNEL, 1, activity)
        record_databases(connection, "other", 1, {"tenant_2": DatabaseActivity(0, 1, 1, 1, 0.0)})
    assert find(engine, search) == (expected, len(expected))


def test_pages_have_each_database_once_and_the_number_of_all(engine: Engine) -> None:
    record(engine, 1, **{f"d{number:04}": DatabaseActivity(0, 1, 1, number, 0.0) for number in range(1_203)})
    pages = [find(engine, Search(order=Order.ROWS), offset=at, limit=500) for at in (0, 500, 1_000, 1_500)]
    assert [count for _, count in pages] == [1_203] * 4
    assert [name for names, _ in pages for name in names] == [f"d{number:04}" for number in range(1_203)]


def test_a_database_of_another_channel_is_found_whatever_its_letters(engine: Engine) -> None:
    for channel in ("c", "other"):
        create_channel(engine, channel, "source", Watermark(10, LogPosition("log.1", 4), "0-1-10", 5.0, "f10"))
    with engine.begin() as connection:
        activity = DatabaseActivity(0, 1, 1, 11, 5.0)
        record_databases(connection, "c", 1, {"own": activity, "both": activity})
        record_databases(connection, "other", 1, {"Both": activity, "theirs": activity})
        # a channel whose row was removed by hand
        record_databases(connection, "gone", 1, {"both": activity})
        assert other_writers(connection, "c", ["own", "both"]) == (("Both", "other"),)
        assert other_writers(connection, "other", ["both", "theirs"]) == (("both", "c"),)
        assert other_writers(connection, "new", ["own"]) == (("own", "c"),)


def test_a_database_of_another_channel_s_first_copy_is_its_own_until_an_operator_forgets_it(engine: Engine) -> None:
    mark = Watermark(10, LogPosition("log.1", 4), "0-1-10", 5.0, "f10")
    create_channel(engine, "c", "source", mark)
    with engine.begin() as connection:
        for channel in ("c", "gone", "begun"):
            save_snapshot(connection, channel, [f"{channel}_own", "Every_one", "everyXone"], "source", mark)
        for channel in ("c", "gone"):
            finish_bootstrap(connection, channel, "")
        names = ["c_own", "gone_own", "begun_own", "EVERY_ONE"]
        begun = (("Every_one", "begun"), ("begun_own", "begun"))
        all_of = (begun[0], ("Every_one", "c"), begun[1], ("c_own", "c"))
        assert other_writers(connection, "new", names) == all_of
        assert other_writers(connection, "c", names) == begun
        for statement in forgetting("c", "'Every_one'").split("; "):
            connection.exec_driver_sql(statement.replace("%", "%%"))
        assert other_writers(connection, "new", names) == (*begun, ("c_own", "c"))
        assert other_writers(connection, "new", ["everyXone"]) == (("everyXone", "begun"), ("everyXone", "c"))
