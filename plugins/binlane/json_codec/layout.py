"""How the records of one file look as JSON values.

A record is a dataclass, and its fields' types decide most: a record is an object, or a row (a list of its fields'
values) if the layout says so; a mapping with texts as keys is an object, one with records or numbers as keys a sorted
list of entries; a set is a sorted list.
"""

from __future__ import annotations

import dataclasses
import reprlib
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NewType

from binlane.lazy_dataclass import dataclass

SCALARS: Final = (str, int, bool)
"""Types that are the same in JSON. A number with a fraction is not among them: it may be a whole one in a file."""

MAPPINGS: Final = (Mapping, dict)

LISTS: Final[Mapping[Any, type]] = {tuple: tuple, list: list, frozenset: frozenset, Sequence: tuple}
"""Types of lists of one type, and what is made of one that is read. A record's field that is a Sequence is dumped as an
iterator: it may be larger than what else the record has, and ``schema.canonical`` takes its entries one by one."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What the types alone do not say."""

    rows: frozenset[type] = frozenset()
    """Records that are written as rows. In a row, a record that is a row itself takes the places of its own fields."""
    left_out: frozenset[str] = frozenset()
    """Fields that are left out where they are empty, because most records have them empty."""
    numbers: frozenset[str] = frozenset()
    """Fields that are flags, and written as 0 and 1."""
    by_text: frozenset[str] = frozenset()
    """Mappings whose entries are sorted by the keys' texts, not by the keys' fields."""
    order: Callable[[Any], Any] | None = None
    """How sets are sorted: a key of their written items; None: as they are."""

    def is_spread(self, item: Any) -> bool:
        """Whether the value of a mapping's entry takes several places in it."""
        return item in self.rows or typing.get_origin(item) is tuple

    def is_one_object(self, item: Any) -> bool:
        """Whether a mapping's entry is one object with the fields of key and value."""
        return dataclasses.is_dataclass(item) and item not in self.rows

    def width(self, kind: Any) -> int:
        """How many places a record takes that is spread in a row; 0: one, for whatever is not."""
        return sum(self.width(hint) or 1 for hint in hints_of(kind).values()) if kind in self.rows else 0


_REPR: Final = reprlib.Repr()
_REPR.maxstring, _REPR.maxlong, _REPR.maxother, _REPR.maxlevel = 60, 40, 60, 3


def shown(value: Any) -> str:
    """A value of any length and depth, for an error: its beginning."""
    return _REPR.repr(value)


class Mismatch(Exception):  # noqa: N818 - becomes a PlanError with the whole path
    """A value that does not fit its type. The path grows on the way up, so that it costs nothing where all is well."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.path: list[str] = []

    def inside(self, step: str) -> Mismatch:
        """The same, one step further up."""
        self.path.append(step)
        return self


@cache
def hints_of(kind: Any) -> dict[str, Any]:
    """The types of a record's fields, in order."""
    hints = typing.get_type_hints(kind)
    return {each.name: _plain(hints[each.name]) for each in dataclasses.fields(kind)}


def _plain(hint: Any) -> Any:
    return hint.__supertype__ if isinstance(hint, NewType) else hint
