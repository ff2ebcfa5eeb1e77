"""Statements that take rows by the name of a partition, and those that change which rows a partition has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from binlane.model import TableKey
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, TokenKind

_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)
_PARTITION: Final = "PARTITION"
_TAKING: Final = frozenset({"TRUNCATE", "DROP", "EXCHANGE", "CONVERT"})
"""Verbs of ALTER TABLE in front of PARTITION that take away the rows of the one that they name."""
_CHANGING: Final = frozenset({"ADD", "DROP", "REORGANIZE", "COALESCE", "CONVERT", "TO"})
"""Verbs in front of PARTITION behind which some partitions have other names or bounds; ``CONVERT TABLE .. TO
PARTITION`` among them."""
_DIVIDING: Final = frozenset({("PARTITION", "BY"), ("REMOVE", "PARTITIONING")})


def tables_by_partition(tokens: Sequence[Token], database: str) -> Iterator[TableKey]:
    """The tables of which a statement, query or body takes single partitions: ``t PARTITION (p0, p1)``. ``database``:
    the one of names without one."""
    for at in range(1, len(tokens) - 1):
        is_list = tokens[at].upper == _PARTITION and is_symbol(tokens[at + 1], "(")
        if not is_list or tokens[at - 1].kind not in _NAMES:
            continue
        is_qualified = at > 2 and is_symbol(tokens[at - 2], ".")
        yield TableKey(tokens[at - 3].text if is_qualified else database, tokens[at - 1].text)


def takes_partition(tokens: Sequence[Token]) -> bool:
    """Whether an ALTER TABLE empties, drops or moves partitions that it names; all of them are the same rows on every
    server."""
    for at, (verb, word) in enumerate(pairwise(each.upper for each in tokens)):
        is_all = [each.upper for each in tokens[at + 2 : at + 3]] == ["ALL"]
        if word == _PARTITION and verb in _TAKING and not is_all:
            return True
    return False


def divides_anew(tokens: Sequence[Token]) -> bool:
    """Whether a CREATE or ALTER TABLE says how all rows are divided."""
    return not _DIVIDING.isdisjoint(pairwise(each.upper for each in tokens))


def changed_partitions(tokens: Sequence[Token]) -> frozenset[str]:
    """All names, in lower case, in an ALTER TABLE that adds, drops, splits or joins partitions; none in any other."""
    changes = any(word == _PARTITION and verb in _CHANGING for verb, word in pairwise(each.upper for each in tokens))
    return frozenset(each.text.lower() for each in tokens if each.kind in _NAMES) if changes else frozenset()
