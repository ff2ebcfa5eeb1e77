"""XA transactions whose halves stand apart: what is applied, where, by which lane, and what is refused."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext

import pytest

from binlane.binlog.gtids import MariadbGtidFlag, XaName
from binlane.binlog.transactions import Ending, Transaction
from binlane.binlog.wire import BufferOffset, EventHeader, EventType, RawEvent
from binlane.errors import PlanError, UnsupportedEventError
from binlane.model import Flavor, RowCounts, TableKey
from binlane.plan.routing import Routing
from binlane.plan.transaction.channel_rules import AS_LOGGED
from binlane.plan.transaction.decode import LogFormat
from binlane.plan.transaction.xa import AtOnce, Halves, find, xa_name
from binlane.work.prepared_groups import SegmentGroups
from tests.unit.binlog.cases import MARIADB as FORMAT
from tests.unit.binlog.cases import MYSQL
from tests.unit.plan.logs import Filtered, alone, ends, filtered, prepare, rows, segment_of, settings

CHOSEN = settings(shard_list="a=0\nb=1\nc=2\n")
EACH = pytest.mark.parametrize("columnar", [False, True], ids=["plain", "columnar"])


def written(found: Filtered) -> dict[int, list[tuple[int, int, int]]]:
    """By lane: each block's first and last seqno and the rows it writes."""
    return {
        lane: [(header.first_seqno, header.last_seqno, sum(i.rows.total for i in items)) for header, items in blocks]
        for lane, blocks in found.lanes.items()
    }


@EACH
@pytest.mark.parametrize("cuts", [(), (1,), (2,), (1, 2)])
def test_the_changes_of_a_prepared_group_are_applied_where_it_commits(cuts: tuple[int, ...], columnar: bool) -> None:
    log = [prepare(1, "x", "b", count=3), rows(2, "a"), ends(3, "COMMIT", "x"), rows(4, "b")]
    found = filtered(log, CHOSEN, cuts=cuts, columnar=columnar)
    assert sum(rows for _, _, rows in written(found)[1]) == 4
    assert [first for first, _, rows in written(found)[1] if rows] == [3]
    assert found.plan.tables[TableKey("b", "t")].written == RowCounts(inserts=4)
    assert found.plan.rows.total == 5
    assert (found.plan.carried_in, found.plan.carried_out) == ((), ())


@EACH
def test_a_group_over_two_lanes_makes_a_barrier_at_its_commit_and_none_at_its_prepare(columnar: bool) -> None:
    log = [prepare(1, "x", "a", "c"), rows(2, "a"), rows(3, "c"), ends(4, "COMMIT", "x")]
    found = filtered(log, CHOSEN, columnar=columnar)
    assert found.barriers() == [(4, 4, 0, (0, 2), {"several lanes": 1})]
    assert written(found)[0][-1] == (4, 4, 2)


@EACH
def test_a_critical_database_makes_its_barrier_at_the_commit(columnar: bool) -> None:
    log = [prepare(1, "x", "a"), rows(2, "b"), ends(3, "COMMIT", "x")]
    found = filtered(log, settings(shard_list="(critical)=a\n"), columnar=columnar)
    assert found.barriers() == [(3, 3, 3, (0, 1, 2, 3), {"reference shard": 1})]


@EACH
def test_a_rolled_back_group_writes_nothing_and_counts_no_rows(columnar: bool) -> None:
    found = filtered(
        [prepare(1, "x", "a"), ends(2, "ROLLBACK", "x"), ends(3, "ROLLBACK", "unknown")], columnar=columnar
    )
    assert found.plan.rows.total == 0
    assert found.plan.tables == {}
    assert sum(header.transactions for blocks in found.lanes.values() for header, _ in blocks) == 3


@EACH
def test_one_xid_may_be_used_again_once_it_has_ended(columnar: bool) -> None:
    log = [prepare(1, "x", "a"), ends(2, "COMMIT", "x"), prepare(3, "x", "a", count=4), ends(4, "COMMIT", "x")]
    found = filtered([*log, prepare(5, "x", "a")], CHOSEN, cuts=(2, 3), columnar=columnar)
    assert {seqno: group and group.rows for seqno, group in found.routing.prepared.items()} == {2: 1, 4: 4}
    assert [group.seqno for group in found.plan.carried_out] == [5]
    assert found.plan.rows.total == 5


@EACH
def test_groups_of_earlier_windows_are_carried_in_and_open_ones_carried_out(columnar: bool) -> None:
    log = [prepare(1, "new", "a"), ends(2, "COMMIT", "old"), ends(3, "ROLLBACK", "older"), ends(4, "COMMIT", "done")]
    done = "X'646f6e65',X'',1"
    carried = [prepare(7, "old", "b", count=2), prepare(8, "older", "c")]
    found = filtered(log, CHOSEN, columnar=columnar, carried=carried, done=[done])
    assert [(group.seqno, group.rows) for group in found.plan.carried_in] == [(1001, 2), (1002, 1), (0, 0)]
    assert [(group.seqno, group.file, group.source.offset) for group in found.plan.carried_out] == [
        (1, "segments/000001.binlog", found.plan.carried_out[0].start)
    ]
    assert found.plan.rows == RowCounts(inserts=2)
    assert Routing.from_json(found.routing.to_json(), "x") == found.routing


@EACH
def test_the_commit_of_what_was_prepared_before_the_channel_began_is_refused_by_name(columnar: bool) -> None:
    with pytest.raises(UnsupportedEventError, match=r"^binlog\.000007:\d+: XA COMMIT of X'78',X'',1: its XA PREPARE"):
        filtered([rows(1, "a"), ends(2, "COMMIT", "x")], columnar=columnar)


@EACH
def test_an_xid_that_is_prepared_twice_is_refused_by_name(columnar: bool) -> None:
    with pytest.raises(UnsupportedEventError, match=r"XA PREPARE of X'78',X'',1, which is prepared already"):
        filtered([prepare(1, "x", "a"), prepare(2, "x", "a")], cuts=(1,), columnar=columnar)


def test_a_group_of_a_server_whose_row_events_differ_is_refused_by_name() -> None:
    found = filtered([prepare(1, "x", "a"), ends(2, "COMMIT", "x")])
    data, segment = segment_of([prepare(1, "x", "a"), ends(2, "COMMIT", "x")])
    lengths = bytearray(FORMAT.post_header_lengths)
    lengths[EventType.WRITE_ROWS_V1 - 1] += 2
    other = dataclasses.replace(FORMAT, post_header_lengths=bytes(lengths))
    for log_format, refused in ((FORMAT, False), (other, True)):
        groups = SegmentGroups(
            found.routing, log_format, Flavor.MARIADB, lambda _: segment, lambda _: nullcontext(data), AS_LOGGED
        )
        if refused:
            with pytest.raises(UnsupportedEventError, match=r"XA PREPARE of X'78',X'',1: written by .*, ended on"):
                groups.parts(2)
        else:
            assert len(groups.parts(2)) == 2
    with pytest.raises(PlanError, match="an XA COMMIT that the scan did not see"):
        groups.parts(3)


def test_a_half_without_an_xid_is_refused() -> None:
    with pytest.raises(UnsupportedEventError, match="expected an XID, found none"):
        filtered([alone(1, "XA COMMIT 'x'")])


def test_old_servers_end_an_xid_by_another_format_id() -> None:
    seven, one, other = XaName(7, b"a", b"b"), XaName(1, b"a", b"b"), XaName(1, b"a", b"")
    assert find(one, [seven, other]) == seven
    assert find(one, [seven, one]) == one
    assert find(XaName(2, b"a", b"b"), [seven, one]) is None


@pytest.mark.parametrize("text", ["x", "X'6',X'',1", "X'61',X'',1 ONE PHASE", "XA COMMIT X'61',X'',1"])
def test_an_xid_is_named_in_the_servers_own_form(text: str) -> None:
    assert xa_name(text) is None


def test_an_xid_may_be_written_in_either_case() -> None:
    assert str(xa_name("X'6A',x'',1")) == "X'6a',X'',1"


def test_an_xid_marked_as_done_must_be_valid() -> None:
    with pytest.raises(PlanError, match="is not an XID"):
        filtered([rows(1, "a")], done=["what"])


@pytest.mark.parametrize(
    ("flavor", "gtid", "flags", "expected"),
    [
        (Flavor.MYSQL, "8f7a:1", 1, AtOnce.NOTHING),
        (Flavor.MYSQL, "", 1, AtOnce.ANYTHING),
        (
            Flavor.MARIADB,
            "0-1-2",
            int(MariadbGtidFlag.PREPARED_XA | MariadbGtidFlag.TRANSACTIONAL),
            AtOnce.BESIDE_OTHERS,
        ),
        (Flavor.MARIADB, "0-1-2", int(MariadbGtidFlag.PREPARED_XA), AtOnce.ANYTHING),
    ],
)
def test_the_log_tells_whether_a_prepared_transaction_may_have_changed_tables_without_transactions(
    flavor: Flavor, gtid: str, flags: int, expected: AtOnce
) -> None:
    log = LogFormat(FORMAT if flavor is Flavor.MARIADB else MYSQL, "binlog.000007", 0, flavor)
    place, header = BufferOffset(4), EventHeader(0, EventType.XA_PREPARE, 1, 19, 0, 0)
    last = RawEvent(place, header, memoryview(b""))
    half = Transaction(gtid, place, place, 0.0, flags, (last,), Ending.XA_PREPARE, XaName(1, b"x", b""))
    halves = Halves()
    halves.classify(1, half, log, "segments/1")
    assert [each.at_once for each in halves.prepared] == [expected]


def test_a_format_id_has_the_bits_that_xa_prepare_logs() -> None:
    """MySQL takes 64 bits, and logs all of them in XA COMMIT."""
    ended = XaName.of_statement(b"XA COMMIT X'61',X'62',4294967297")
    assert ended == XaName(1, b"a", b"b")
    assert XaName.of_statement(b"XA COMMIT X'61',X'62',9223372036854775807") == XaName(0xFFFF_FFFF, b"a", b"b")
