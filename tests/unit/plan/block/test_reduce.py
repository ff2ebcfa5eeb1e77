"""A reduced stretch of row events has the effect of the whole one, on a server that checks its keys row by row."""

from __future__ import annotations

import copy
import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binlane.binlog.rows_payload import check_self_contained
from binlane.binlog.vector.join_statements import joined
from binlane.binlog.wire import EventType
from binlane.errors import PlanError
from binlane.kernels import folding
from binlane.model import BlockHeader, Item, LogPosition, RowCounts, TableKey
from binlane.plan.block.builder import BlockBuilder, BlockLimits
from binlane.plan.block.deal import Deal
from binlane.plan.block.reduce import Reducer
from binlane.plan.block.reducible_tables import TableRule
from binlane.plan.block.row_range import RowRange
from tests.tiers import examples
from tests.unit.binlog import row_events
from tests.unit.binlog.row_events import EVERY_COLUMN, Column, bitmap, image, rows_body, table_map_body
from tests.unit.plan.row_oracle import Design, Row, Server, changes_of, events_of

T = EventType
Change = tuple[TableKey, Row | None, Row | None]
"""Table, row before, row after."""
Logged = tuple[bytes, RowCounts | None]
"""An event and its rows; None for a TABLE_MAP."""
MAIL, NAME, PLAIN, WIDE = (TableKey(name, "t") for name in ("mail", "name", "plain", "wide"))


def _design(names: Sequence[str], rule: TableRule, *keys: tuple[int, ...]) -> Design:
    return Design(tuple(EVERY_COLUMN[name] for name in names), rule, keys)


DESIGNS = {
    MAIL: _design(("long", "varchar-255", "blob"), TableRule(3, (0,), (0, 1), 0, True), (0,), (1,)),
    NAME: _design(("varchar-256", "longlong", "tiny"), TableRule(3, (0,), (0, 2), 1), (0,), (2,)),
    # no rule: not folded
    PLAIN: _design(("short", "tinyblob"), TableRule(2, (), ()), (0,)),
    WIDE: _design((*["bit-1"] * 260, "short", "tiny"), TableRule(262, (260,), (260, 261)), (260,), (261,)),
}
SMALL = (MAIL, NAME, PLAIN)
POOLS: dict[str, Sequence[bytes]] = {
    "varchar-255": (b"", b"a", b"A", b"b"), "varchar-256": (b"", b"a", b"A", b"b" * 300), "bit-1": (b"\0", b"\1"),
    "long": tuple(value.to_bytes(4, "little", signed=True) for value in (-9, 0, 1, 2, 70_000)),
    "longlong": tuple(value.to_bytes(8, "little") for value in (1, 5, (1 << 63) + 9)),
    "short": (b"\1\0", b"\2\0", b"\3\0"), "tiny": (b"\1", b"\2", b"\3"), "tinyblob": (b"", b"x"),
    "blob": (b"", b"y", b"y" * 900),
}  # fmt: skip
POOL_OF = {id(EVERY_COLUMN[name]): values for name, values in POOLS.items()}
RULES = {key: design.rule for key, design in DESIGNS.items() if key != PLAIN}
REDUCER = Reducer(RULES, 1 << 16, 1 << 20)
HEADER_OF_BLOCK = BlockHeader(1, 1, 1, LogPosition("binlog.000007", 4), "0-1-1", 1.0)
KINDS = {
    (True, False): (T.DELETE_ROWS_V1, T.DELETE_ROWS_V2),
    (True, True): (T.UPDATE_ROWS_V1, T.UPDATE_ROWS_V2),
    (False, True): (T.WRITE_ROWS_V1, T.WRITE_ROWS_V2),
}


def event(type_code: int, body: bytes) -> bytes:
    """As it stands in a payload: without a place in a file."""
    return row_events.event(type_code, body, log_pos=0)


def rows_event(
    key: TableKey, changes: Sequence[tuple[Row | None, Row | None]], table_id: int, *, v2: bool = False,
    ends: bool = True, partial: bool = False,
) -> bytes:  # fmt: skip
    """One event of changes of one kind. ``partial``: the images before hold the primary key alone."""
    design = DESIGNS[key]
    kind = changes[0][0] is not None, changes[0][1] is not None
    full = [True] * len(design.columns)
    lean = [column in design.keys[0] for column in range(len(full))]
    masks = [mask for mask, here in zip((lean if partial else full, full), kind, strict=True) if here]
    data = b""
    for change in changes:
        rows = [row for row in change if row is not None]
        for mask, row in zip(masks, rows, strict=True):
            data += image(design.columns, mask, [row[column] for column in range(len(full))])
    code = KINDS[kind][v2]
    return event(code, rows_body(code, table_id, len(full), list(map(bitmap, masks)), data, ends=ends))


def mapped(key: TableKey, table_id: int) -> bytes:
    return event(T.TABLE_MAP, table_map_body(table_id, DESIGNS[key].columns, key.database))


def stretch(changes: Sequence[Change], chosen: random.Random, *, partial: float = 0.0) -> list[Logged]:
    """The changes as events: several rows an event, several tables a statement, changing table ids."""
    events: list[Logged] = []
    at, ids = 0, 100
    while at < len(changes):
        size = chosen.randint(1, 5)
        statement, at = changes[at : at + size], at + size
        tables = {key: ids + place for place, key in enumerate(dict.fromkeys(key for key, _, _ in statement))}
        events += [(mapped(key, table_id), None) for key, table_id in tables.items()]
        groups: list[list[Change]] = []
        for change in statement:
            same = groups and groups[-1][0][0] == change[0] and _kind(groups[-1][0]) == _kind(change)
            groups[-1].append(change) if same else groups.append([change])
        for number, group in enumerate(groups, 1):
            key = group[0][0]
            one = rows_event(
                key, [change[1:] for change in group], tables[key], v2=chosen.random() < 0.3,
                ends=number == len(groups), partial=chosen.random() < partial,
            )  # fmt: skip
            events.append((one, sum(map(counted, group), RowCounts())))
        ids += chosen.randint(0, 1)
    return events


def counted(change: Change) -> RowCounts:
    return {(False, True): RowCounts(1), (True, True): RowCounts(0, 1), (True, False): RowCounts(0, 0, 1)}[
        _kind(change)
    ]


def _kind(change: Change) -> tuple[bool, bool]:
    return change[1] is not None, change[2] is not None


@st.composite
def histories(draw: st.DrawFn) -> tuple[Server, list[Change], random.Random]:
    """A server's first state, and changes that it takes."""
    chosen = draw(st.randoms(use_true_random=False))
    server = Server(DESIGNS)
    for _ in range(draw(st.integers(0, 25))):
        _try(server, chosen, chosen.choice(SMALL))
    first, changes = copy.deepcopy(server), []
    for _ in range(draw(st.integers(1, 60))):
        change = _try(server, chosen, chosen.choice(SMALL))
        if change is not None:
            changes.append(change)
    first.changes, first.designs = [0, 0, 0], DESIGNS
    return first, changes, chosen


def _try(server: Server, chosen: random.Random, key: TableKey) -> Change | None:
    """A random change, if the server takes it."""
    design, rows = DESIGNS[key], server.rows.get(key, [])
    before = chosen.choice(rows) if rows and chosen.random() < 0.65 else None
    after: Row | None = None
    if before is None:
        after = {number: _value(chosen, column, number in design.keys[0]) for number, column in _columns(design)}
    elif chosen.random() < 0.6:
        number, column = chosen.choice(list(_columns(design))[-3:])
        after = before | {number: _value(chosen, column, number in design.keys[0])}
    trial = copy.deepcopy(server.rows.get(key, [])), dict(server.next_id)
    try:
        server.change(key, before, after)
    except AssertionError:
        server.rows[key], server.next_id = trial
        return None
    return key, before, after


def _columns(design: Design) -> Iterator[tuple[int, Column]]:
    return iter(enumerate(design.columns))


def _value(chosen: random.Random, column: Column, is_primary: bool) -> bytes | None:
    return None if not is_primary and chosen.random() < 0.2 else chosen.choice(POOL_OF[id(column)])


@dataclass(frozen=True)
class Built:
    """What one block makes of events."""

    items: tuple[Item, ...]
    saved: dict[TableKey, RowCounts]

    @property
    def changes(self) -> list[tuple[str, int, Row | None, Row | None]]:
        """Database, type code, row before and row after of every change, in order."""
        found = []
        for item in self.items:
            names: dict[bytes, str] = {}
            for code, body in events_of(item.payload):
                if code == T.TABLE_MAP:
                    names[body[:6]] = body[9 : 9 + body[8]].decode()
                else:
                    name = names[body[:6]]
                    columns = DESIGNS[TableKey(name, "t")].columns
                    found += [(name, code, *change) for change in changes_of(code, body, columns)]
        return found


def built(
    events: Sequence[Logged], rules: Mapping[TableKey, TableRule] = RULES, payload_bytes: int = 1 << 16,
    largest: int = 1 << 20,
) -> Built:  # fmt: skip
    """The events as one block; without ``rules`` they are replayed."""
    reducer = Reducer(rules, payload_bytes, largest) if rules else None
    builder = BlockBuilder(BlockLimits(100, 1 << 40, payload_bytes, largest), reducer)
    for one, counts in events:
        builder.add_event(one, counts, "here: ")
    list(builder.end_transaction(HEADER_OF_BLOCK))
    (block,) = builder.finish()
    return Built(tuple(block.items), builder.saved)


@settings(max_examples=examples(100), deadline=None)
@given(histories(), st.sampled_from([0.0, 0.0, 0.1]), st.sampled_from([1, 700, 1 << 16]))
def test_a_reduced_block_leaves_what_the_ordered_one_leaves(
    history: tuple[Server, list[Change], random.Random], partial: float, payload_bytes: int
) -> None:
    first, changes, chosen = history
    events = stretch(changes, chosen, partial=partial)
    ordered, reduced = copy.deepcopy(first), copy.deepcopy(first)
    for item in built(events, {}).items:
        ordered.take(item.payload)
    block = built(events, payload_bytes=payload_bytes)
    for item in block.items:
        check_self_contained(item.payload)
        before = list(reduced.changes)
        reduced.take(item.payload)
        counts = item.rows.inserts, item.rows.updates, item.rows.deletes
        assert counts == tuple(after - at for after, at in zip(reduced.changes, before, strict=True))
    assert reduced.state() == ordered.state()
    written = sum((item.rows for item in block.items), RowCounts())
    read = sum((counts for _, counts in events if counts is not None), RowCounts())
    assert written == sum(block.saved.values(), read)
    assert built(events, payload_bytes=payload_bytes) == block


def row(*values: int | bytes | None, key: TableKey = MAIL) -> Row:
    """A row; numbers as the column's bytes."""
    columns = DESIGNS[key].columns
    return {
        place: value.to_bytes(columns[place].length[1], "little", signed=value < 0) if isinstance(value, int) else value
        for place, value in enumerate(values)
    }


A1, A2, B1 = row(1, b"a", b"y"), row(1, b"a", b""), row(1, b"b", b"y")
MOVED = row(2, b"a", b"y")
INSERT, UPDATE, DELETE = T.WRITE_ROWS_V1, T.UPDATE_ROWS_V1, T.DELETE_ROWS_V1


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        pytest.param([(None, A1), (A1, A2)], [(INSERT, A2)], id="insert-update"),
        pytest.param([(A1, A2), (A2, A1), (A1, A2)], [(UPDATE, A1, A2)], id="update-update"),
        pytest.param([(A1, A2), (A2, A1)], [], id="update-back"),
        pytest.param([(A1, A2), (A2, None)], [(DELETE, A1)], id="update-delete"),
        pytest.param([(A1, None), (None, A2)], [(UPDATE, A1, A2)], id="delete-insert"),
        pytest.param([(A1, None), (None, A1)], [], id="delete-insert-of-the-same"),
        pytest.param([(A1, None), (None, B1)], [(DELETE, A1), (INSERT, B1)], id="delete-insert-of-another-value"),
        pytest.param([(A1, B1)], [(DELETE, A1), (INSERT, B1)], id="update-of-a-unique-key"),
        pytest.param([(A1, B1), (B1, A2)], [(UPDATE, A1, A2)], id="unique-value-there-and-back"),
        pytest.param([(A1, MOVED)], [(DELETE, A1), (INSERT, MOVED)], id="move"),
        pytest.param([(A1, MOVED), (MOVED, A2)], [(UPDATE, A1, A2)], id="move-there-and-back"),
        pytest.param([(A1, MOVED), (MOVED, None)], [(DELETE, A1)], id="move-delete"),
    ],
)  # fmt: skip
def test_the_algebra_of_changes(changes: list[tuple[Row | None, Row | None]], left: list[tuple[object, ...]]) -> None:
    rules = {MAIL: replace(DESIGNS[MAIL].rule, counter=None)}
    found = built(logged(*((MAIL, *change) for change in changes)), rules).changes
    assert [(code, *(image for image in images if image is not None)) for _, code, *images in found] == left


def logged(*changes: Change, v2: bool = False) -> list[Logged]:
    """Each change as a statement of its own, always with the same table id."""
    found: list[Logged] = []
    for change in changes:
        found += [(mapped(change[0], 1), None), (rows_event(change[0], [change[1:]], 1, v2=v2), counted(change))]
    return found


HIGH, HIGHER = row(70_000, b"b", None), row(70_001, b"A", None)


def test_the_highest_id_that_came_and_went_is_written_and_deleted_between_deletes_and_inserts() -> None:
    changes = [(None, HIGH), (HIGH, None), (None, HIGHER), (HIGHER, None), (A1, B1)]
    found = built(logged(*((MAIL, *change) for change in changes)))
    assert [one[1:] for one in found.changes] == [
        (DELETE, A1, None), (INSERT, None, HIGHER), (DELETE, HIGHER, None), (INSERT, None, B1)
    ]  # fmt: skip
    assert found.saved == {MAIL: RowCounts(2 - 2, 0 - 1, 2 - 2)}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([(None, A1), (A1, None), (None, HIGH)], id="a-higher-one-stays"),
        pytest.param([(HIGH, None), (None, A1), (A1, None)], id="a-higher-one-was-there"),
        pytest.param([(None, row(-9, b"b", b"")), (row(-9, b"b", b""), None)], id="below-zero"),
    ],
)
def test_a_lower_id_that_came_and_went_is_folded_away(changes: list[tuple[Row | None, Row | None]]) -> None:
    block = built(logged(*((MAIL, *change) for change in changes)))
    assert len(block.changes) == 1 if len(changes) == 3 else block.changes == []


FREE_A = row(70_000, b"a", None)
COUNTED_UP, COUNTED = (row(b"a", number, None, key=NAME) for number in ((1 << 62), 5))
UNFOLDED: dict[str, list[Change]] = {
    "a-unique-value-comes-back": [
        (MAIL, A1, B1), (MAIL, None, FREE_A), (MAIL, FREE_A, None), (MAIL, B1, A1)
    ],
    "a-row-comes-back": [(MAIL, A1, None), (MAIL, None, FREE_A), (MAIL, FREE_A, None), (MAIL, None, A1)],
    "the-row-with-the-highest-id-stays": [(NAME, COUNTED, COUNTED_UP), (NAME, COUNTED_UP, COUNTED)],
    "an-insert-of-what-is-there": [(MAIL, A1, A2), (MAIL, None, A1)],
    "a-delete-of-what-is-gone": [(MAIL, A1, None), (MAIL, A1, None)],
    "an-update-of-what-is-gone": [(MAIL, A1, None), (MAIL, A1, A2)],
}  # fmt: skip


@pytest.mark.parametrize("changes", UNFOLDED.values(), ids=UNFOLDED)
def test_where_the_net_effect_is_not_sure_the_order_is_kept_for_that_table_alone(changes: list[Change]) -> None:
    other = NAME if changes[0][0] == MAIL else MAIL
    spare = row(b"b", 1, 1, key=NAME) if other == NAME else row(3, b"b", None)
    events = logged(*changes, (other, None, spare), (other, spare, None))
    found = built(events)
    mine = [(before, after) for name, _, before, after in found.changes if name == changes[0][0].database]
    assert mine == [change[1:] for change in changes]
    assert other in found.saved
    assert changes[0][0] not in found.saved


def test_however_many_tables_do_not_fit_the_rows_are_folded_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same misfits in many tables, the tables' statements mixed, beside as many tables that fit."""
    of_mail = [changes for changes in UNFOLDED.values() if changes[0][0] == MAIL]
    tables, rules = 10 * len(of_mail), dict(RULES)
    statements: list[list[Change]] = []
    for number in range(tables):
        misfit, fine = (TableKey(f"{name}{number}", "t") for name in ("misfit", "fine"))
        for key in (misfit, fine):
            monkeypatch.setitem(DESIGNS, key, DESIGNS[MAIL])
            rules[key] = RULES[MAIL]
        statements.append([(misfit, *change[1:]) for change in of_mail[number % len(of_mail)]])
        statements.append([(fine, None, A1), (fine, A1, B1)])
    mixed = [changes[at] for at in range(4) for changes in statements if at < len(changes)]
    folds: list[int] = []
    real = folding.fold

    def counted_fold(*given: Any) -> int:
        folds.append(len(given[1]))
        return int(real(*given))

    monkeypatch.setattr(folding, "fold", counted_fold)
    found = built(logged(*mixed), rules)
    assert folds == [len(mixed), 2 * tables]
    assert {key.database for key in found.saved} == {f"fine{number}" for number in range(tables)}
    loose = [(name, *images) for name, _, *images in found.changes if name.startswith("misfit")]
    assert loose == [(key.database, *images) for key, *images in mixed if key.database.startswith("misfit")]


def test_a_block_with_a_partial_image_keeps_that_table_in_order() -> None:
    partial = rows_event(MAIL, [(B1, A1)], 1, partial=True)
    events = [*logged((MAIL, A1, B1), (NAME, None, COUNTED), (NAME, COUNTED, None)), (mapped(MAIL, 1), None)]
    found = built([*events, (partial, RowCounts(0, 1))])
    assert [name for name, *_ in found.changes] == ["mail", "mail", "name", "name"]
    assert set(found.saved) == {NAME}


def test_a_partial_image_of_a_table_that_is_dealt_by_key_is_refused() -> None:
    deal = Deal(2, lambda _: None, lambda _: None)
    events = [mapped(MAIL, 1), rows_event(MAIL, [(B1, A1)], 1, partial=True)]
    with pytest.raises(PlanError, match=r"mail\.t: expected rows with all of their columns"):
        Reducer(RULES, 1 << 16, 1 << 20, deal).shares(RowRange.of(b"".join(events), RULES))


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param(("long", "varchar-255", "blob", "tiny"), id="more-columns"),
        pytest.param(("long", "char-255", "blob"), id="another-type"),
        pytest.param(("long", "varchar-255", "tinyblob"), id="other-metadata"),
    ],
)
def test_a_table_that_changes_its_shape_keeps_its_order(columns: tuple[str, ...]) -> None:
    shape = [EVERY_COLUMN[name] for name in columns]
    data = image(shape, [True] * len(shape), [b"\7\0\0\0", b"q", b"", b"\1"][: len(shape)])
    body = rows_body(INSERT, 2, len(shape), [bitmap([True] * len(shape))], data)
    other = event(T.TABLE_MAP, table_map_body(2, shape, "mail"))
    events = [*logged((MAIL, None, A1), (MAIL, A1, None)), (other, None), (event(INSERT, body), RowCounts(1))]
    block = built(events)
    assert block.saved == {}
    assert b"".join(item.payload for item in block.items) == joined(b"".join(one for one, _ in events))


def test_a_statement_whose_last_table_is_folded_ends_with_the_event_before() -> None:
    plain = mapped(PLAIN, 2) + mapped(MAIL, 1) + rows_event(PLAIN, [(None, row(1, b"x", key=PLAIN))], 2, ends=False)
    folded = mapped(PLAIN, 3) + mapped(MAIL, 1) + rows_event(MAIL, [(A1, A2)], 1)
    first, second = (plain + rows_event(MAIL, [(None, one)], 1) for one in (A1, HIGH))
    loose = REDUCER.reduce(first + folded + second).loose
    assert [(one.event[4], one.event[25]) for one in loose] == [(T.TABLE_MAP, 1), (INSERT, 1)] * 2


def test_an_update_that_raises_the_counter_is_folded() -> None:
    higher = row(b"a", 1 << 40, None, key=NAME)
    block = built(logged((NAME, COUNTED, higher), (NAME, higher, COUNTED_UP)))
    assert [images for _, _, *images in block.changes] == [[COUNTED, COUNTED_UP]]


def test_a_table_with_other_columns_than_the_target_s_is_not_folded() -> None:
    rules = {MAIL: replace(RULES[MAIL], width=4)}
    assert len(built(logged((MAIL, A1, A2), (MAIL, A2, A1)), rules).changes) == 2


def test_events_without_images_of_their_own_keep_their_order_with_their_counts() -> None:
    kept = [(mapped(MAIL, 1), None), (rows_event(MAIL, [(None, A1), (None, HIGH)], 1), RowCounts(2))]
    body = kept[1][0][19:]
    width = body[:10]
    packed = width + bytes([0x80 | 1, len(body) - 10]) + zlib.compress(body[10:])
    compressed = event(T.WRITE_ROWS_COMPRESSED_V1, packed)
    loose = REDUCER.reduce(kept[0][0] + compressed).loose
    assert [one.counts for one in loose] == [None, RowCounts(2)]


def test_differences_of_json_values_are_no_images_and_keep_their_order() -> None:
    design, full = DESIGNS[MAIL], [True] * len(DESIGNS[MAIL].columns)
    before, after = (image(design.columns, full, [row[column] for column in range(len(full))]) for row in (A1, A2))
    # the image behind holds value_options in front: 0, no difference
    body = rows_body(T.PARTIAL_UPDATE_ROWS, 1, len(full), [bitmap(full)] * 2, before + b"\0" + after, ends=True)
    insert = mapped(MAIL, 1) + rows_event(MAIL, [(None, A1)], 1, v2=True, ends=False)
    found = REDUCER.reduce(insert + event(T.PARTIAL_UPDATE_ROWS, body))
    assert [one.counts for one in found.loose] == [None, RowCounts(1), RowCounts(0, 1)]


def test_long_rows_are_cut_into_events_and_statements_that_the_target_takes() -> None:
    rows = [row(number, b"%d" % number, b"x" * 60_000) for number in range(1, 9)]
    later = [before | {2: b"z" * 40_000} for before in rows]
    events = logged(
        *((MAIL, None, one) for one in rows[:4]), *((MAIL, *both) for both in zip(rows[4:], later[4:], strict=True))
    )
    found = built(events, payload_bytes=70_000, largest=103_000)
    assert max(len(item.payload) for item in found.items) <= 103_000
    assert [item.rows.total for item in found.items] == [1] * 8
    tight = built(events, payload_bytes=70_000, largest=101_000)
    assert {code for _, code, *_ in tight.changes} == {INSERT, DELETE}, "both images of an update do not fit"
    assert tight.saved == {MAIL: RowCounts(4, -4, 4)}


def test_a_table_of_more_columns_than_a_byte_counts_is_folded() -> None:
    first = dict(enumerate([b"\1"] * 260 + [b"\1\0", None]))
    second, last = first | {0: None, 255: b"\0"}, first | {259: None}
    added = first | {260: b"\2\0", 261: b"\1"}
    changes = [(first, second), (second, last), (None, added)]
    found = built(logged(*((WIDE, *change) for change in changes)))
    assert [images for _, _, *images in found.changes] == [[first, last], [None, added]]


def test_the_rows_events_written_are_of_the_version_that_was_read() -> None:
    codes = [code for _, code, *_ in built(logged((MAIL, None, A1), v2=True)).changes]
    assert codes == [T.WRITE_ROWS_V2]


def test_a_table_s_latest_definition_goes_with_its_rows() -> None:
    """And another table id alone is no other definition."""
    latest = event(T.TABLE_MAP, table_map_body(9, DESIGNS[MAIL].columns, MAIL.database, b"\1\1\0"))
    rows = [
        (latest, None),
        (rows_event(MAIL, [(A1, A2)], 9), RowCounts(0, 1)),
        (latest.replace(b"\x09", b"\x0a", 1), None),
        (rows_event(MAIL, [(A2, A1)], 10), RowCounts(0, 1)),
    ]
    (item,) = built([*logged((MAIL, None, A1)), *rows]).items
    assert item.payload.startswith(latest)


def test_a_stretch_of_nothing_but_table_maps_is_nothing() -> None:
    assert REDUCER.reduce(mapped(MAIL, 1)).items == []
    assert REDUCER.reduce(b"").loose == []


@pytest.mark.parametrize(
    ("other_id", "expected"),
    [
        pytest.param(8, [("map", 7), ("map", 8), ("rows", 7), ("end", 8)], id="one-statement"),
        # of a server that began anew: an id means one table in a statement, so both get others
        pytest.param(7, [("map", 1), ("map", 2), ("rows", 1), ("end", 2)], id="one-id"),
    ],
)
def test_a_table_id_means_one_table_in_a_statement(other_id: int, expected: list[tuple[str, int]]) -> None:
    mail = mapped(MAIL, 7) + rows_event(MAIL, [(None, A1)], 7)
    name = mapped(NAME, other_id) + rows_event(NAME, [(None, {0: b"a", 1: b"\1" + bytes(7), 2: b"\1"})], other_id)
    (item,) = REDUCER.reduce(mail + name).items
    found, at = list[tuple[str, int]](), 0
    while at < len(item.payload):
        size, table_id = (int.from_bytes(item.payload[at + start : at + start + 4], "little") for start in (9, 19))
        kind = "map" if item.payload[at + 4] == T.TABLE_MAP else "end" if item.payload[at + 25] & 1 else "rows"
        found.append((kind, table_id))
        at += size
    assert found == expected
