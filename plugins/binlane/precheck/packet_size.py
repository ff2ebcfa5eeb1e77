"""Statements of a window that the target's ``max_allowed_packet`` is too small for, before the first write."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from binlane.binlog.table_map import TableMap
from binlane.binlog.types.literals import identifier
from binlane.model import TableKey
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.finding import Finding
from binlane.schema.compare import Severity
from binlane.schema.model import Schema, Table

PACKET_LIMIT: Final = 1 << 30
"""The highest ``max_allowed_packet`` that either family takes."""
_OVERHEAD: Final = 1024
"""The statement's own words, its table's name, and the packet's header."""
_ADDED: Final = 64
"""More than is added to a logged statement: ``DISABLE ON REPLICA``, ``IF EXISTS``."""
_KEY: Final = 8 << 10
"""More than a condition on a primary key: 3,072 bytes as digits, and 16 names."""
_NAME: Final = 66
_SET, _SAME = 10, 110
"""More than stands around a name that is set, and around one that is compared."""
_TABLE_ID: Final = bytes(6)


def check_packets(plan: WindowPlan, by_sql: Collection[TableKey], target: Schema, planned: int) -> Iterator[Finding]:
    """Rows of the tables ``by_sql``, which statements write, and logged statements that the target would not take.

    ``planned``: the packet that the filter has measured for; what it has not measured fits into two thirds of that.
    """
    have = target.max_allowed_packet
    if have is None:
        return
    if have < planned * 3 // 4:
        todo = f"SET GLOBAL max_allowed_packet = {planned} on the target: the window was planned for that"
        yield Finding(Severity.FATAL, "target: max_allowed_packet", f"{planned} bytes, as before", str(have), todo)
    for key in sorted(by_sql, key=str):
        widest = plan.widest.get(key)
        if widest is None:
            continue
        table = target.table(key)
        keyed = table is not None and table.primary_key is not None
        size, seqno = (widest.stored, widest.stored_seqno) if keyed else (widest.found, widest.found_seqno)
        needed = size + _around(plan, key, table, keyed=keyed)
        yield from _finding(f"{key}: a row of seqno {seqno}, as a statement", needed, have)
    size, seqno = plan.longest_statement
    if size:
        yield from _finding(f"statement of seqno {seqno}", size + _ADDED, have)


def _around(plan: WindowPlan, key: TableKey, table: Table | None, *, keyed: bool) -> int:
    """More than a row's statement has besides its values."""
    if table is None:
        bodies = plan.table_maps.get(key, ())
        maps = (TableMap.parse(memoryview(_TABLE_ID + bytes.fromhex(body)), flavor=plan.flavor) for body in bodies)
        names = [_NAME] * max((each.width for each in maps), default=0)
    else:
        names = [len(identifier(column.name)) for column in table.columns]
    each = sum(2 * name + _SET for name in names)
    return _OVERHEAD + each + (_KEY if keyed else sum(name + _SAME for name in names))


def _finding(where: str, needed: int, have: int) -> Iterator[Finding]:
    if needed > have:
        todo = f"SET GLOBAL max_allowed_packet = {-(-needed // 1024) * 1024} on the target and reconnect"
        if needed > PACKET_LIMIT:
            todo = "no server takes so long a statement: filter the table out and copy it another way"
        yield Finding(Severity.FATAL, where, f"max_allowed_packet of {needed} bytes or more", str(have), todo)
