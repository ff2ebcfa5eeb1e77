"""A transaction that is skipped is left out alone, kept with its content, and can be applied after all."""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import transactions
from binlane.errors import DriftError
from binlane.orchestration import steps
from binlane.orchestration.plan_file import read_plan
from binlane.servers.engines import engine_of
from binlane.state.orders.skips import read_skip
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.integration.window.control.test_stop import apply_all, channel, planned

__all__ = ["channel"]


def items(channel: Channel) -> None:
    """Twelve transactions on one table; the seventh inserts a row that the target has already."""
    for server in (channel.source, channel.target):
        with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_log_bin = 0")
            cursor.execute("CREATE DATABASE tenant_1")
            cursor.execute("CREATE TABLE tenant_1.t (id INT PRIMARY KEY, note VARCHAR(40) UNIQUE)")
    for number in range(1, 13):
        channel.source.query(f"INSERT INTO tenant_1.t VALUES ({number}, 'note {number}')")
    with channel.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO tenant_1.t VALUES (7, 'mine')")


def test_a_skipped_transaction_of_a_folded_block_is_left_out_alone_and_replayed_on_demand(
    channel: Channel, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    items(channel)
    adopted = planned(channel)
    with pytest.raises(DriftError, match="1062"):
        apply_all(channel, adopted)
    plan = read_plan(adopted["plan"])
    seqno = plan.first_seqno + 6
    assert channel.cli("skip", CHANNEL, "--seqno", str(seqno)) == 2
    assert "--reason: expected the reason" in capsys.readouterr().err
    assert channel.cli("skip", CHANNEL, "--seqno", str(seqno), "--reason", "mine is right") == 0
    assert "tenant_1.t: 1 insert" in " ".join(capsys.readouterr().out.split())
    results = apply_all(channel, adopted)
    assert {each["seqno"] for each in results} == {plan.last_seqno}
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    expected = [(n, "mine" if n == 7 else f"note {n}") for n in range(1, 13)]
    assert channel.target.query("SELECT id, note FROM tenant_1.t ORDER BY id") == expected
    assert channel.target.query("SELECT planned_inserts, written_inserts, skipped_inserts FROM binlane.splits") == [
        (12, 11, 1)
    ]
    with engine_of(channel.endpoints.target).connect() as connection:
        skip, log = read_skip(connection, CHANNEL, seqno)
    assert (skip.state, skip.reason, skip.by.split("@")[0]) == ("skipped", "mine is right", getpass.getuser())
    [kept] = transactions(LogReader(log, "kept"))
    assert kept.gtid == skip.gtid

    # too late to skip it again, or its neighbour
    assert channel.cli("skip", CHANNEL, "--seqno", str(seqno + 1), "--reason", "x") == 1
    assert "no window is open" in capsys.readouterr().err

    # the target's own row stands in the way still
    assert channel.cli("replay-skipped", CHANNEL, str(seqno)) == 1
    capsys.readouterr()
    channel.target.query("DELETE FROM tenant_1.t WHERE id = 7")
    assert channel.cli("replay-skipped", CHANNEL, str(seqno)) == 0
    assert "1 insert," in " ".join(capsys.readouterr().out.split())
    channel.assert_equal()
    assert channel.cli("replay-skipped", CHANNEL, str(seqno)) == 1
    assert "expected a skipped transaction, found one that is replayed" in capsys.readouterr().err
    file = tmp_path / "kept.binlog"
    assert channel.cli("skip", CHANNEL, "--show", str(seqno), "--write", str(file)) == 0
    assert file.read_bytes() == log
    assert channel.cli("skip", CHANNEL, "--list") == 0
    assert "replayed" in capsys.readouterr().out


def test_an_applied_transaction_is_never_skipped_and_an_order_can_be_cancelled(
    channel: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    items(channel)
    channel.target.query("DELETE FROM tenant_1.t")
    adopted = planned(channel)
    first = read_plan(adopted["plan"]).first_seqno
    assert channel.cli("stop", CHANNEL, "--at-seqno", str(first + 4)) == 0
    apply_all(channel, adopted)
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    capsys.readouterr()
    for arguments in (("--seqno", str(first + 4)), ("--range", f"{first + 4}-{first + 6}")):
        assert channel.cli("skip", CHANNEL, *arguments, "--reason", "x") == 1
        assert "it is applied already" in capsys.readouterr().err
    assert channel.cli("skip", CHANNEL, "--seqno", "99999", "--reason", "x") == 1
    assert channel.cli("skip", CHANNEL, "--seqno", str(first + 5), "--gtid", "0-1-1", "--reason", "x") == 2
    with monkeypatch.context() as patch:
        patch.setattr("binlane.orchestration.commands.skip._MOST_BYTES", 1)
        assert channel.cli("skip", CHANNEL, "--range", f"{first + 5}-{first + 6}", "--reason", "x") == 2
        assert f"skip {first + 5}-{first + 5} first, then the rest" in " ".join(capsys.readouterr().err.split())
        assert channel.cli("skip", CHANNEL, "--seqno", str(first + 9), "--reason", "as large as it is") == 0
        assert channel.cli("skip", CHANNEL, "--seqno", str(first + 9), "--cancel") == 0
    assert channel.cli("skip", CHANNEL, "--range", f"{first + 5}-{first + 6}", "--reason", "x") == 0
    assert channel.cli("skip", CHANNEL, "--seqno", str(first + 5), "--cancel") == 0
    assert channel.cli("skip", CHANNEL, "--seqno", str(first + 5), "--cancel") == 1
    assert channel.cli("resume", CHANNEL) == 0
    apply_all(channel, adopted)
    assert channel.cli("skip", CHANNEL, "--seqno", str(first + 6), "--cancel") == 1
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    assert channel.target.query("SELECT COUNT(*), SUM(id = 7) FROM tenant_1.t") == [(11, 0)]


def test_a_replay_takes_of_a_transaction_what_the_filter_takes(channel: Channel) -> None:
    channel.write_channel('[filter]\nexclude_tables = ["tenant_1.secret"]\n')
    for server in (channel.source, channel.target):
        tables = (f"CREATE TABLE tenant_1.{name} (id INT PRIMARY KEY)" for name in ("t", "secret"))
        run_on(server, "CREATE DATABASE tenant_1", *tables, log=False)
    inserts = (f"INSERT INTO tenant_1.{name} VALUES (1)" for name in ("t", "secret"))
    run_on(channel.source, "BEGIN", *inserts, "COMMIT")
    adopted = planned(channel)
    seqno = read_plan(adopted["plan"]).last_seqno
    assert channel.cli("skip", CHANNEL, "--seqno", str(seqno), "--reason", "later") == 0
    apply_all(channel, adopted)
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    assert channel.cli("replay-skipped", CHANNEL, str(seqno)) == 0
    taken = "SELECT (SELECT COUNT(*) FROM tenant_1.t), (SELECT COUNT(*) FROM tenant_1.secret)"
    assert channel.target.query(taken) == [(1, 0)]


def test_changes_of_tables_without_transactions_are_not_replayed(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    """A replay that is killed before its COMMIT would leave them there, and the next one would make them again."""
    channel.write_channel("allow_nontransactional = true\n")
    for server in (channel.source, channel.target):
        run_on(server, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (n INT) ENGINE = MyISAM", log=False)
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (1), (2)")
    adopted = planned(channel)
    seqno = read_plan(adopted["plan"]).last_seqno
    assert channel.cli("skip", CHANNEL, "--seqno", str(seqno), "--reason", "later") == 0
    apply_all(channel, adopted)
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    assert channel.cli("replay-skipped", CHANNEL, str(seqno)) == 1
    assert "may change a table without transactions" in " ".join(capsys.readouterr().err.split())
    assert channel.target.query("SELECT COUNT(*) FROM tenant_1.t") == [(0,)]


def test_a_skipped_ddl_does_not_run(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    items(channel)
    channel.target.query("DELETE FROM tenant_1.t")
    channel.source.query("DROP TABLE tenant_1.t")
    adopted = planned(channel)
    last = read_plan(adopted["plan"]).last_seqno
    assert channel.cli("skip", CHANNEL, "--seqno", str(last), "--reason", "still needed here") == 0
    apply_all(channel, adopted)
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    assert channel.target.query("SELECT COUNT(*) FROM tenant_1.t") == [(12,)]
    assert channel.cli("replay-skipped", CHANNEL, str(last)) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert (
        "a DDL commits implicitly, so its replay cannot be recorded in the same transaction: run the DDL on the target"
        in said
    )
    assert "DROP TABLE" in said


_MADE: Final = (
    "CREATE DATABASE tenant_1",
    "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, n INT)",
    "CREATE TABLE tenant_1.log (n INT)",
    "CREATE TABLE tenant_1.mail (n INT, address VARCHAR(20), UNIQUE (n, address))",
    "INSERT INTO tenant_1.t VALUES (1, 10), (2, 20)",
)
_BY_TEXT: Final = "SET SESSION binlog_format = STATEMENT"
REPLAYS: Final[Mapping[str, tuple[Sequence[str], Sequence[str], str, Sequence[str]]]] = {
    "a row that a later window has changed": (
        ("UPDATE tenant_1.t SET n = 11 WHERE id = 1",),
        (),
        "tenant_1.t: expected the row {'id': '1'} as the log has it before its update",
        ("UPDATE tenant_1.t SET n = 12 WHERE id = 1",),
    ),
    "a row that has its change": (
        ("UPDATE tenant_1.t SET n = 11 WHERE id = 1",),
        ("UPDATE tenant_1.t SET n = 11 WHERE id = 1",),
        "tenant_1.t: expected the row {'id': '1'} as the log has it before its update",
        (),
    ),
    "a row to delete that is another one by now": (
        ("DELETE FROM tenant_1.t WHERE id = 2",),
        ("UPDATE tenant_1.t SET n = 21 WHERE id = 2",),
        "tenant_1.t: expected the row {'id': '2'} as the log has it before its delete",
        (),
    ),
    "a row of which the log has the key alone": (
        ("SET SESSION binlog_row_image = MINIMAL", "UPDATE tenant_1.t SET n = 11 WHERE id = 1"),
        (),
        "the log has only some columns of a row of tenant_1.t before their change",
        (),
    ),
    "a statement": (
        (_BY_TEXT, "UPDATE tenant_1.t SET n = n + 1 WHERE id = 1"),
        (),
        "a statement changes the rows that it finds now",
        (),
    ),
    "a row without a key": (
        ("INSERT INTO tenant_1.log VALUES (1)",),
        (),
        "a row is inserted into tenant_1.log that no unique key would refuse the second time",
        (),
    ),
    "a row with NULL in its unique key": (
        ("INSERT INTO tenant_1.mail VALUES (1, NULL)",),
        (),
        "a row is inserted into tenant_1.mail that no unique key would refuse the second time",
        (),
    ),
}
"""The skipped transaction; what is done on the target then; what is said of its replay; a transaction that is applied
before it."""


@pytest.mark.parametrize("flavor", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
@pytest.mark.parametrize("case", REPLAYS)
def test_what_may_be_there_already_is_not_replayed(
    case: str, flavor: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    skipped, done, said, later = REPLAYS[case]
    channel = channel_of(flavor, flavor)
    for server in (channel.source, channel.target):
        run_on(server, *_MADE, log=False)
    run_on(channel.source, *skipped)
    if later:
        run_on(channel.source, *later)
    seqno = _skipped(channel)
    run_on(channel.target, *done, log=False)
    rows = (channel.rows_of(channel.target),)
    capsys.readouterr()
    assert channel.cli("replay-skipped", CHANNEL, str(seqno)) == 1
    assert said in " ".join(capsys.readouterr().err.split())
    # what differs is never overwritten; what no comparison shows is asked about
    is_shown = "expected the row" in said
    assert channel.cli("replay-skipped", CHANNEL, str(seqno), "--yes") == (1 if is_shown else 0)
    assert (rows == (channel.rows_of(channel.target),)) is is_shown
    if not is_shown:
        channel.assert_equal()


def test_after_a_recopy_a_replay_asks(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    """The inserted row was deleted on the source since: nothing on the target stands in its way."""
    for server in (channel.source, channel.target):
        run_on(server, *_MADE, log=False)
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (3, 30)")
    seqno = _skipped(channel)
    run_on(channel.source, "DELETE FROM tenant_1.t WHERE id = 3", log=False)
    assert channel.cli("recopy", CHANNEL, "--table", "tenant_1.t", "--yes") == 0
    capsys.readouterr()
    assert channel.cli("replay-skipped", CHANNEL, str(seqno)) == 1
    assert "a repair has written the source's rows since (recopy tenant_1.t)" in " ".join(
        capsys.readouterr().err.split()
    )
    channel.assert_equal()


@pytest.mark.parametrize("by_place", [False, True])
def test_what_was_skipped_goes_to_the_channel_that_goes_on(
    channel: Channel, capsys: pytest.CaptureFixture[str], by_place: bool
) -> None:
    for server in (channel.source, channel.target):
        run_on(server, *_MADE, log=False)
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (3, 30)")
    seqno = _skipped(channel)
    place = channel.status.channel.watermark.source
    start = ("--start", f"{place.file}:{place.offset}") if by_place else ()
    (channel.channels / "shop2.toml").write_text((channel.channels / f"{CHANNEL}.toml").read_text())
    assert channel.cli("init", "shop2", "--after", CHANNEL, *start) == 0, capsys.readouterr().err
    assert channel.cli("replay-skipped", CHANNEL, str(seqno)) == 1
    assert f"seqno {seqno} was never skipped" in capsys.readouterr().err
    assert channel.cli("replay-skipped", "shop2", str(seqno)) == 0, capsys.readouterr().err
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (4, 40)")
    assert channel.cli("run", "shop2") == 0, capsys.readouterr().err
    channel.assert_equal()


def _skipped(channel: Channel) -> int:
    """The seqno of the window's first transaction, which was skipped in a window that is finished."""
    adopted = planned(channel)
    seqno = read_plan(adopted["plan"]).first_seqno
    assert channel.cli("skip", CHANNEL, "--seqno", str(seqno), "--reason", "later") == 0
    apply_all(channel, adopted)
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    return seqno
