"""Deals row images to lanes by a hash of their primary keys: equal keys, as bytes, have the same lane everywhere."""

from __future__ import annotations

from typing import Final

import numpy as np

from binlane.binlog.vector.arrays import Bytes, Ints
from binlane.binlog.vector.compiled import kernel
from binlane.binlog.vector.fold_rows import PRIMARY, hash_of_key, integer_of, same
from binlane.binlog.vector.row_events import DELETE, INSERT

_NEIGHBOURS: Final = np.uint64(1024)
"""So many values of a table's ``ranged`` column in a row have one lane: some pages of an index."""


@kernel
def lanes_of(
    data: Bytes, images: Ints, table: Ints, tables: Ints, rule: Bytes, param: Ints, flags: Bytes, ranged: Ints,
    seeds: Ints, lanes: int, lane: Ints,
) -> None:  # fmt: skip
    """Fills ``lane`` with each row's lane of 0 .. ``lanes`` - 1. ``images`` and ``tables``: as for ``fold_rows.fold``;
    ``seeds``: a number for each table's name. An update's images have one key.

    ``ranged``: of each table, the integer column of the key whose neighbouring values go together, or -1; ``flags``
    does not have it among the columns of the key.
    """
    for row in range(table.size):
        one = table[row]
        image = images[row, 0] if images[row, 0] >= 0 else images[row, 2]
        value = hash_of_key(
            data, image, seeds[one], tables[one, 0], tables[one, 1], tables[one, 3], rule, param, flags, tables[one, 2]
        )
        if ranged[one] >= 0:
            value += integer_of(data, image, tables[one, 0], tables[one, 1], rule, param, ranged[one], 0) // _NEIGHBOURS
        lane[row] = np.int64(value % np.uint64(lanes))


@kernel
def by_key(
    data: Bytes, images: Ints, kind: Ints, table: Ints, tables: Ints, rule: Bytes, param: Ints, flags: Bytes,
    out_table: Ints, out_kind: Ints, out_images: Ints,
) -> int:  # fmt: skip
    """Fills the last three with the rows in order, an update of the primary key as a delete and an insert. Returns the
    number of rows."""
    count = 0
    for row in range(table.size):
        one, old, new = table[row], images[row, 0], images[row, 2]
        moves = False
        if old >= 0 and new >= 0:
            moves = not same(
                data, old, new, tables[one, 0], tables[one, 1], tables[one, 3], rule, param, flags, tables[one, 2],
                PRIMARY,
            )  # fmt: skip
        for half in range(2 if moves else 1):
            out_table[count], out_kind[count] = one, kind[row]
            for edge in range(4):
                out_images[count, edge] = images[row, edge]
            if moves and half == 0:
                out_kind[count] = DELETE
                out_images[count, 2] = out_images[count, 3] = -1
            if moves and half == 1:
                out_kind[count] = INSERT
                out_images[count, 0] = out_images[count, 1] = -1
            count += 1
    return count
