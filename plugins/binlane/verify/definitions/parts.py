"""The parts of a table that differ between servers of other versions or families."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from binlane.binlog.types.literals import identifier
from binlane.lazy_dataclass import dataclass
from binlane.schema.model import ForeignKey, Key
from binlane.verify.definitions.mend import Mend, one


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a table that differs."""

    what: str
    source: str | None
    target: str | None
    mend: Mend
    undecided: str = ""
    """Why the difference proves nothing; empty: it is one."""


def listed(
    name: str,
    what: str,
    source: Sequence[_T],
    target: Sequence[_T],
    text: Callable[[_T, str], str],
    dropped: str,
    left: Callable[[_T], str],
) -> Iterator[Part]:
    """Keys of one server that the other does not have, whatever their names are."""
    ours, theirs = ({text(each, "").lower(): each for each in side} for side in (source, target))
    for shape in sorted(ours.keys() - theirs.keys()):
        each = ours[shape]
        mine = text(each, identifier(each.name))
        yield Part(f"{what} {identifier(each.name)}", mine, None, one(f"{name} ADD {mine}", left(each)))
    for shape in sorted(theirs.keys() - ours.keys()):
        each = theirs[shape]
        mend = one(f"{name} DROP {dropped} {identifier(each.name)}", _ONLY_TARGET)
        yield Part(f"{what} {identifier(each.name)}", None, text(each, identifier(each.name)), mend)


_T = TypeVar("_T", Key, ForeignKey)
_ONLY_TARGET: Final = "only the target has it"
