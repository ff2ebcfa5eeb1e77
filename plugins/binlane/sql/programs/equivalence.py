"""Facts of views, routines, triggers and events that other versions and the other family spell differently.

Bodies are what the statement's author has typed on every server. The text of a view is printed from its parsed form,
by each version in another way: there a different text proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.schema.normalize import SAME_COLLATION, across_families, comparable
from binlane.sql.sql_modes import alike_modes

_WIDTH: Final = re.compile(r"\b(tinyint|smallint|mediumint|int|bigint|year)\(\d+\)")
_CHARSET: Final = re.compile(r" (?:charset|character set) \w+(?: collate \w+)?")
_COLLATED: Final = re.compile(r" (\w+) (?:\1_\w+|binary)\b")
"""A parameter's character set and collation, which often is the session's default."""
_CHARSET_NAME: Final = re.compile(r" (?:utf8|utf8mb3|utf8mb4|latin\d|ascii|ucs2|utf16|utf32|binary|cp\d+)(?=,|$)")
_JSON: Final = re.compile(r"\blongtext\b(?: utf8mb4)?")
_COLLATIONS: Final = frozenset({"collation of the client", "collation of the database"})


@dataclass(frozen=True, slots=True)
class Equivalence:
    """What is the same on two servers of other versions or families."""

    flavors: tuple[Flavor, Flavor]
    """Of source and target."""
    collations: Collection[str]
    """The target's."""
    given: Mapping[str, str] = field(default_factory=dict)
    """The channel's ``[collations]``."""

    def differs(self, what: str, source: str, target: str) -> bool:
        """Whether two spellings of a fact mean something else, or nobody can tell: see ``undecided``."""
        if what == "definition":
            return comparable(source) != comparable(target)
        if what == "body":
            return self._body(source).strip() != target.strip()
        if what in ("parameters", "returned type"):
            return self._types(source) != self._types(target)
        if what == "sql_mode":
            return {*alike_modes(source, self.flavors[0])} != {*alike_modes(target, self.flavors[1])}
        if what in _COLLATIONS:
            return self._collation(source) != SAME_COLLATION.get(target, target)
        return source != target

    def undecided(self, what: str, source: str, target: str) -> str:
        """Why a different spelling of a fact proves nothing; empty: it is a difference."""
        if what == "parameters" and self._types(source, with_charset=False) == self._types(target, with_charset=False):
            return (
                "a parameter without CHARACTER SET has that of the routine's database on MariaDB, and of the session's "
                "on MySQL"
            )
        if what == "definition":
            return "the two servers print the text of views differently"
        if what in _COLLATIONS and {source, self._collation(source)}.isdisjoint(self.collations):
            return f"the target has no collation {source}"
        return ""

    def _body(self, text: str) -> str:
        for old, new in self.given.items():
            text = re.sub(rf"\b{re.escape(old)}\b", new, text)
        return text

    def _types(self, text: str, *, with_charset: bool = True) -> str:
        text = _COLLATED.sub(r" \1", _CHARSET.sub("", _WIDTH.sub(r"\1", text.lower())))
        if not with_charset and self.flavors[0] is not self.flavors[1]:
            text = _CHARSET_NAME.sub("", text)
        if self.flavors[0] is not self.flavors[1]:
            text = _JSON.sub("json", text)
        return re.sub(r"\butf8\b", "utf8mb3", text)

    def _collation(self, name: str) -> str:
        if name in self.given:
            name = self.given[name]
        elif self.flavors[0] is not self.flavors[1]:
            name = across_families(name, self.collations)
        return SAME_COLLATION.get(name, name)
