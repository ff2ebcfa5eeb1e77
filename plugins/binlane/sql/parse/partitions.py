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
_ADD: Final = "ADD"
_TAKING: Final = frozenset({"TRUNCATE", "DROP", "EXCHANGE", "CONVERT"})
"""Verbs of ALTER TABLE in front of PARTITION that take away the rows of the one that they name."""
_CHANGING: Final = frozenset({_ADD, "DROP", "REORGANIZE", "CONVERT", "TO"})
"""Verbs in front of PARTITION behind which some partitions have other names or bounds; ``CONVERT TABLE .. TO
PARTITION`` among them."""
_DIVIDING: Final = frozenset({("PARTITION", "BY"), ("REMOVE", "PARTITIONING"), ("COALESCE", _PARTITION)})
_BY_NUMBER: Final = (_PARTITION, "PARTITIONS")
"""``ADD PARTITION PARTITIONS 4``: of HASH and KEY, whose rows all go to other places."""
_OF_COLUMNS: Final = frozenset({"MODIFY", "CHANGE", "PRIMARY", "UNIQUE"})
_OF_COLUMNS_BEFORE: Final = frozenset({("CONVERT", "TO"), ("RENAME", "COLUMN")})
_BEFORE_NAMES: Final = frozenset({"IF", "NOT", "EXISTS", "LOCAL", "NO_WRITE_TO_BINLOG"})


def tables_by_partition(tokens: Sequence[Token], database: str) -> Iterator[tuple[TableKey, frozenset[str]]]:
    """The tables of which a statement, query or body takes single partitions, each with their names in lower case:
    ``t PARTITION (p0, p1)``. ``database``: the one of names without one."""
    for at in range(1, len(tokens) - 1):
        is_list = tokens[at].upper == _PARTITION and is_symbol(tokens[at + 1], "(")
        # ADD PARTITION (..): a reserved word, which a table's name is in quotes or behind a dot only
        if not is_list or tokens[at - 1].kind not in _NAMES or tokens[at - 1].upper == _ADD:
            continue
        is_qualified = at > 2 and is_symbol(tokens[at - 2], ".")
        key = TableKey(tokens[at - 3].text if is_qualified else database, tokens[at - 1].text)
        yield key, frozenset(map(str.lower, _listed(tokens, at + 2)))


def taken_partitions(tokens: Sequence[Token]) -> frozenset[str] | None:
    """The names, in lower case, of the partitions that an ALTER TABLE empties, drops or moves; None for one that does
    this to all or to none: all of them are the same rows on every server."""
    found, is_taking = set[str](), False
    for at, (verb, word) in enumerate(pairwise(each.upper for each in tokens)):
        is_all = [each.upper for each in tokens[at + 2 : at + 3]] == ["ALL"]
        if word == _PARTITION and verb in _TAKING and not is_all:
            is_taking = True
            found.update(map(str.lower, _listed(tokens, at + 2)))
    return frozenset(found) if is_taking else None


def divides_anew(tokens: Sequence[Token]) -> bool:
    """Whether a CREATE or ALTER TABLE says how all rows are divided, or over how many partitions."""
    words = [each.upper for each in tokens if each.upper not in _BEFORE_NAMES]
    return any(pair in _DIVIDING or pair == _BY_NUMBER for pair in pairwise(words))


def changes_columns(tokens: Sequence[Token]) -> bool:
    """Whether an ALTER TABLE may change names, types or collations of the columns that divide the rows."""
    words = [each.upper for each in tokens]
    return not (_OF_COLUMNS.isdisjoint(words) and _OF_COLUMNS_BEFORE.isdisjoint(pairwise(words)))


def changed_partitions(tokens: Sequence[Token]) -> frozenset[str]:
    """The names, in lower case, of all partitions in an ALTER TABLE that adds, drops, splits or joins some; none in any
    other."""
    if any(word == _PARTITION and verb in _CHANGING for verb, word in pairwise(each.upper for each in tokens)):
        return frozenset(
            name.lower()
            for at, each in enumerate(tokens)
            if each.upper == _PARTITION
            for name in _listed(tokens, at + 1)
        )
    return frozenset()


def _listed(tokens: Sequence[Token], at: int) -> Iterator[str]:
    """The names of a list from ``at`` on, behind IF EXISTS and its like."""
    while at < len(tokens) and tokens[at].upper in _BEFORE_NAMES:
        at += 1
    while at < len(tokens) and tokens[at].kind in _NAMES:
        yield tokens[at].text
        if not (at + 1 < len(tokens) and is_symbol(tokens[at + 1], ",")):
            return
        at += 2
