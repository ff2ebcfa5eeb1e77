"""The ALTER TABLE for a part of a table whose servers print definitions differently: the source's own text of the part.

Tables of one version are compared by these texts (``show_create``). Of other versions and the other family they are
read only where a part differs, to name the statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cached_property
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.schema.normalize import comparable
from binlane.verify.definitions.mend import Mend, nothing
from binlane.verify.definitions.show_create import parts_of_both, table_mend

BY_HAND: Final = nothing("compare SHOW CREATE TABLE of both servers")
OTHER_FAMILY: Final = "its text is that of the source's family: read it before you run it"
_COLLATION: Final = re.compile(r"\bCOLLATE[ =](\w+)", re.IGNORECASE)


def lacking_collation(text: str, collations: Collection[str]) -> str:
    """The first collation that a definition names and that is not among ``collations``; empty: none."""
    return next((name for name in _COLLATION.findall(text) if name not in collations), "")


@dataclass
class TableTexts:
    """A table's two definitions as their servers print them, read when they are first asked for."""

    name: str
    """The table's quoted name on the target."""
    read: Callable[[], tuple[str, str]]
    """SHOW CREATE TABLE of source and target."""
    collations: Collection[str]
    """Those that the target knows."""
    is_other_family: bool

    @cached_property
    def parts(self) -> tuple[dict[str, str], dict[str, str]]:
        """The parts of source and target, by name."""
        return parts_of_both(*self.read())

    def mend(self, part: str) -> Mend:
        """The statement that gives the target the source's part, such as ``column `a```. It is for an operator where
        the part's text is another family's."""
        ours, theirs = self.parts
        if ours.get(part) == theirs.get(part):
            return BY_HAND
        if lacking := lacking_collation(ours.get(part, ""), self.collations):
            return nothing(f"the target has no collation {lacking}: compare SHOW CREATE TABLE of both servers")
        found = table_mend(self.name, part, ours, theirs)
        if self.is_other_family and found.statements and not found.left:
            return replace(found, left=OTHER_FAMILY)
        return found

    def checks(self) -> Mend:
        """The statements for all constraints of one server whose condition the other does not have, whatever their
        names are."""
        conditions = [
            {part: comparable(text.partition(" CHECK ")[2]) for part, text in side.items() if part.startswith("check ")}
            for side in self.parts
        ]
        ours, theirs = conditions
        names = [part for part, text in theirs.items() if text not in ours.values()]
        names += [part for part, text in ours.items() if text not in theirs.values() and part not in names]
        mends = [self.mend(part) for part in names]
        statements = tuple(statement for each in mends for statement in each.statements)
        return Mend(statements, next(each.left for each in mends)) if statements else BY_HAND

    def columns(self) -> tuple[str, ...]:
        """Names of the columns that one server alone has, as parts."""
        ours, theirs = ([part for part in side if part.startswith("column ")] for side in self.parts)
        return tuple(part for part in dict.fromkeys((*ours, *theirs)) if (part in ours) != (part in theirs))
