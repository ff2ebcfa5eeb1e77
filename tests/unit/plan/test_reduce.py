"""A reduced stretch of row events has the effect of the whole one, on a server that checks its keys row by row."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binlane.apply.writers import check_self_contained
from binlane.binlog.wire import HEADER, EventType
from binlane.model import BlockHeader, Item, LogPosition, RowCounts, TableKey
from binlane.plan.blocks import BlockBuilder, BlockLimits
from binlane.plan.reduce import Reduced, Reducer
from binlane.plan.table_rules import TableRule
from tests.unit.binlog.row_events import EVERY_COLUMN, Column, bitmap, event, image, rows_body, table_map_body
from tests.unit.plan.row_oracle import Design, Row, Server

T = EventType
Change = tuple[TableKey, Row | None, Row | None]
"""Table, row before, row after."""
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
POOLS: dict[str, Sequence[bytes]] = {
    "varchar-255": (b"", b"a", b"A", b"b"), "varchar-256": (b"", b"a", b"A", b"b" * 300), "bit-1": (b"\0", b"\1"),
    "long": tuple(value.to_bytes(4, "little", signed=True) for value in (-9, 0, 1, 2, 70_000)),
    "longlong": tuple(value.to_bytes(8, "little") for value in (1, 5, (1 << 63) + 9)),
    "short": (b"\1\0", b"\2\0", b"\3\0"), "tiny": (b"\1", b"\2", b"\3"), "tinyblob": (b"", b"x"),
    "blob": (b"", b"y", b"y" * 900),
}  # fmt: skip
POOL_OF = {id(EVERY_COLUMN[name]): values for name, values in POOLS.items()}
REDUCER = Reducer({key: design.rule for key, design in DESIGNS.items() if key != PLAIN}, 1 << 16, 1 << 20)
HEADER_OF_BLOCK = BlockHeader(1, 1, 1, LogPosition("binlog.000007", 4), "0-1-1", 1.0)
KINDS = {
    (True, False): (T.DELETE_ROWS_V1, T.DELETE_ROWS_V2),
    (True, True): (T.UPDATE_ROWS_V1, T.UPDATE_ROWS_V2),
    (False, True): (T.WRITE_ROWS_V1, T.WRITE_ROWS_V2),
}


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


def stretch(changes: Sequence[Change], chosen: random.Random | None = None, *, partial: float = 0.0) -> list[bytes]:
    """The changes as events: with ``chosen``, several rows an event, several tables a statement, changing table ids."""
    if chosen is None:
        chosen = random.Random(0)
    events: list[bytes] = []
    at, ids = 0, 100
    while at < len(changes):
        size = chosen.randint(1, 5)
        statement, at = changes[at : at + size], at + size
        tables = {key: ids + place for place, key in enumerate(dict.fromkeys(key for key, _, _ in statement))}
        events += [mapped(key, table_id) for key, table_id in tables.items()]
        groups: list[list[Change]] = []
        for change in statement:
            same = groups and groups[-1][0][0] == change[0] and _kind(groups[-1][0]) == _kind(change)
            groups[-1].append(change) if same else groups.append([change])
        for number, group in enumerate(groups, 1):
            key = group[0][0]
            events.append(
                rows_event(
                    key, [change[1:] for change in group], tables[key], v2=chosen.random() < 0.3,
                    ends=number == len(groups), partial=chosen.random() < partial,
                )  # fmt: skip
            )
        ids += chosen.randint(0, 1)
    return events


def _kind(change: Change) -> tuple[bool, bool]:
    return change[1] is not None, change[2] is not None


@st.composite
def histories(draw: st.DrawFn) -> tuple[Server, list[Change], random.Random]:
    """A server's first state, and changes that it takes."""
    chosen = draw(st.randoms(use_true_random=False))
    server = Server(DESIGNS)
    for _ in range(draw(st.integers(0, 25))):
        _try(server, chosen, chosen.choice(list(DESIGNS)))
    first, changes = copy.deepcopy(server), []
    for _ in range(draw(st.integers(1, 60))):
        change = _try(server, chosen, chosen.choice(list(DESIGNS)))
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


def built(events: Sequence[bytes], reducer: Reducer | None, payload_bytes: int = 1 << 16) -> tuple[Item, ...]:
    """The events as the items of one block."""
    builder = BlockBuilder(BlockLimits(100, 1 << 40, payload_bytes, 1 << 20), reducer)
    for one in events:
        counts = None
        if one[4] != T.TABLE_MAP:
            found = Server(DESIGNS)
            counts = RowCounts(1, 0, 0) if found is None else RowCounts()
        builder.add_event(one, counts, "here: ")
    list(builder.end_transaction(HEADER_OF_BLOCK))
    ((block,), _) = list(builder.finish()), builder
    return block.items
