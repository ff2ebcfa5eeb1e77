"""Routines and views that the window's own log replaces, before and behind the statements that need them."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from binlane.errors import DriftError, PrecheckError
from tests.integration.window.conftest import CHANNEL, ChannelOf, database_of, run_on
from tests.integration.window.statements.test_stored_programs import (
    CALL,
    CALLS_P,
    FAMILIES,
    FROM_VIEW,
    INSERT,
    Refusal,
    add_case,
    function,
    logged_as_statements,
    prepared,
    procedure,
    trigger,
    view,
)

REPLACED = {
    "function": ([function("1")], [function("2")], [CALL, "DROP FUNCTION f", function("3")], "function tenant_1.f"),
    "function-if-exists": (
        [function("1")],
        [function("2")],
        [CALL, "DROP FUNCTION IF EXISTS f", function("3")],
        "function tenant_1.f",
    ),
    "only-dropped": ([function("1")], [function("2")], [CALL, "DROP FUNCTION f"], "function tenant_1.f"),
    "view": ([view()], [view("id < 2")], [FROM_VIEW, "DROP VIEW v", view("id < 9")], "view tenant_1.v"),
    "altered-view": (
        [view()],
        [view("id < 2")],
        [FROM_VIEW, "ALTER VIEW v AS SELECT id, n FROM s"],
        "view tenant_1.v",
    ),
    "replaced-view": (
        [view()],
        [view("id < 2")],
        [FROM_VIEW, view("id < 9").replace("CREATE", "CREATE OR REPLACE")],
        "view tenant_1.v",
    ),
    "behind-a-function": (
        [procedure(1), CALLS_P],
        [procedure(2), CALLS_P],
        [CALL, "DROP PROCEDURE p", procedure(3)],
        "procedure tenant_1.p",
    ),
    "trigger": ([trigger("'a'")], [trigger("'b'")], [INSERT, "DROP TRIGGER tr"], "tenant_1.t: trigger tr"),
    "trigger-if-exists": (
        [trigger("'a'")],
        [trigger("'b'")],
        [INSERT, "DROP TRIGGER IF EXISTS tr", trigger("'c'")],
        "tenant_1.t: trigger tr",
    ),
    "trigger-of-a-dropped-table": (
        [trigger("'a'")],
        [trigger("'b'")],
        [INSERT, "INSERT INTO c SELECT LENGTH(n) FROM t", "DROP TABLE t"],
        "tenant_1.t: trigger tr",
    ),
}


@pytest.fixture(scope="module")
def refusal_on(shared_channel_of: ChannelOf) -> Callable[[str], Refusal]:
    """The refusal of one window that has all cases, by the servers' family; with ``allow_unsafe`` it is applied."""

    @functools.cache
    def refusal(family: str) -> Refusal:
        channel = shared_channel_of(family, family)
        for case, (ours, theirs, statements, _) in REPLACED.items():
            add_case(channel, database_of(case), ours, theirs)
            logged_as_statements(channel, *statements, database=database_of(case))
        before = channel.rows_of(channel.target)
        with pytest.raises(PrecheckError) as refused:
            channel.run()
        after = channel.rows_of(channel.target)
        channel.write_channel("allow_unsafe = true\n")
        assert channel.run() is not None
        return Refusal(str(refused.value).splitlines(), before, after)

    return refusal


@FAMILIES
@pytest.mark.parametrize("case", REPLACED)
def test_programs_that_the_log_replaces_behind_their_use_are_named(
    refusal_on: Callable[[str], Refusal], family: str, case: str
) -> None:
    """No catalogue has the source's text of then any more."""
    refusal = refusal_on(family)
    named = refusal.named(case, f"{REPLACED[case][-1]}: expected .* found one that may be another")
    assert named, "\n".join(refusal.lines)
    assert refusal.after == refusal.before


@FAMILIES
def test_programs_that_an_earlier_window_has_made_are_replaced_behind_their_use(
    channel_of: ChannelOf, family: str
) -> None:
    """As those of an online schema change, over several windows."""
    channel = prepared(channel_of(family, family))
    logged_as_statements(channel, function("1"), view(), trigger("f(1)"))
    assert channel.run() is not None
    run_on(channel.source, "INSERT INTO tenant_1.s VALUES (8, 8)")
    assert channel.run() is not None
    logged_as_statements(channel, CALL, FROM_VIEW, INSERT, "DROP TRIGGER tr", "DROP FUNCTION f", "DROP VIEW v")
    assert channel.run() is not None
    channel.assert_equal()


@FAMILIES
@pytest.mark.parametrize("lost", ["folder", "target", "skip"])
def test_what_an_earlier_window_knows_is_taken_only_while_it_holds(
    channel_of: ChannelOf, family: str, lost: str
) -> None:
    alike = [function("1")]
    channel = prepared(channel_of(family, family), alike, alike)
    logged_as_statements(channel, CALL)
    assert channel.run() is not None
    if lost == "folder":
        [file, *_] = sorted(channel.work.rglob("programs.json"), reverse=True)
        file.unlink()
    elif lost == "target":
        run_on(channel.target, "DROP FUNCTION tenant_1.f", function("2"), log=False)
    else:
        run_on(channel.target, "INSERT INTO tenant_1.s VALUES (9, 9)", log=False)
        logged_as_statements(channel, "INSERT INTO s VALUES (9, 9)")
        with pytest.raises(DriftError):
            channel.run()
        [(seqno,)] = channel.target.query("SELECT MIN(seqno) + 1 FROM binlane.positions")
        assert channel.cli("skip", CHANNEL, "--seqno", str(seqno), "--reason", "test") == 0
        assert channel.run() is not None
    logged_as_statements(channel, CALL, "DROP FUNCTION f")
    with pytest.raises(PrecheckError, match=r"function tenant_1\.f: .* found one that may be another"):
        channel.run()


@FAMILIES
def test_programs_that_the_log_replaces_before_their_use_do_the_same(channel_of: ChannelOf, family: str) -> None:
    theirs = [function("2"), view("id < 2"), trigger("'b'")]
    channel = prepared(channel_of(family, family), [function("1"), view(), trigger("'a'")], theirs)
    logged_as_statements(
        channel,
        "DROP FUNCTION IF EXISTS f",
        function("3"),
        "DROP VIEW v",
        view("id < 9"),
        "DROP TRIGGER tr",
        CALL,
        FROM_VIEW,
        INSERT,
        trigger("f(1)"),
        INSERT,
        "DROP FUNCTION f",
        "ALTER VIEW v AS SELECT id, n FROM s",
        function("4"),
        CALL,
        FROM_VIEW,
    )
    assert channel.run() is not None
    channel.assert_equal()
