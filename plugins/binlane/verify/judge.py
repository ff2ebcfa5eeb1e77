"""Whether the target has a row as the source had it at the watermark, although the source has changed it since.

The source's row was read behind the watermark, so it says nothing about the columns that the log has changed in
between. The first change behind the watermark does: its image before the change is the source's own row at the
watermark. What neither shows, because the log has partial images, is compared with the last image that the windows' log
has of it: that proves what the target was told, and not that the source still had it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from binlane.lazy_dataclass import dataclass
from binlane.schema.model import Column
from binlane.verify.rows.column_text import Row
from binlane.verify.rows.row_states import Cell, Cells, RowState, Unknown, same_cell


class Proof(StrEnum):
    """What is known of a row at the watermark."""

    EQUAL = "the target has the source's row"
    LOGGED = "the target has the source's row, some columns only as the log of the windows has them"
    OPEN = "no image tells"
    DIFFERS = "the target has another row than the source had"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A row's proof; for DIFFERS with the source's row at the watermark, columns that are not known as they were read,
    and the names of the columns that are known to differ."""

    proof: Proof
    source: Row | None = None
    columns: tuple[str, ...] = ()


def judge(
    columns: Sequence[Column],
    first: RowState,
    source: Row | None,
    target: Row | None,
    last: Cells | None = None,
) -> Verdict:
    """The verdict on a row that the source's log changes behind the watermark.

    ``first``: the row before its first change there. ``source``: the row that was read, None if there was none, or if
    it was not read. ``last``: the row as the log of the windows leaves it; None: not known.
    """
    if first is None:
        return Verdict(Proof.EQUAL) if target is None else Verdict(Proof.DIFFERS)
    known = [_known(number, cell, source) for number, cell in enumerate(first)]
    if target is None:
        return Verdict(Proof.DIFFERS, _row(known, source, target))
    differing = _differing(columns, known, target)
    if differing:
        return Verdict(Proof.DIFFERS, _row(known, source, target), differing)
    if Unknown.LOST not in known:
        return Verdict(Proof.EQUAL)
    if last is None:
        return Verdict(Proof.OPEN)
    logged = [last[number] if cell is Unknown.LOST else cell for number, cell in enumerate(known)]
    differing = _differing(columns, logged, target)
    if differing:
        return Verdict(Proof.DIFFERS, _row(logged, source, target), differing)
    return Verdict(Proof.OPEN if Unknown.LOST in logged else Proof.LOGGED)


def _known(number: int, cell: Cell, source: Row | None) -> Cell:
    """A column's value at the watermark: one that the log does not change is still what it was."""
    if cell is not Unknown.UNCHANGED:
        return cell
    return Unknown.LOST if source is None else source[number]


def _differing(columns: Sequence[Column], cells: Sequence[Cell], target: Row) -> tuple[str, ...]:
    pairs = zip(columns, cells, target, strict=True)
    return tuple(
        column.name for column, cell, text in pairs if cell is not Unknown.LOST and not same_cell(column, cell, text)
    )


def _row(cells: Sequence[Cell], source: Row | None, target: Row | None) -> Row:
    read = source or target or (None,) * len(cells)
    return tuple(text if isinstance(cell, Unknown) else cell for cell, text in zip(cells, read, strict=True))
