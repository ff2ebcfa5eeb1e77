"""The tables that an UPDATE or DELETE changes; its other tables are only read.

The qualifiers of assigned columns and deleted tables are looked up among the names and aliases of the table list. A
qualifier that several of them have may mean each, and a column without a qualifier any table of a join: at worst a
table too many counts as changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from binlane.model import TableKey
from binlane.rename_rules import lower
from binlane.sql.parse.cursor import Cursor, FactsBuilder, group_end, is_name, is_symbol
from binlane.sql.parse.lexer import Token, Unreadable

_BEHIND_TABLE = frozenset(
    {"PARTITION", "USE", "FORCE", "IGNORE", "JOIN", "INNER", "LEFT", "RIGHT", "CROSS", "NATURAL", "STRAIGHT_JOIN"}
    | {"ON", "USING", "SET", "FOR", "AS"}
)
"""Words behind a table's name that are no alias."""
_QUERY = ("SELECT", "WITH", "VALUES", "TABLE")


class _Named(NamedTuple):
    """A table of a list, by the name that columns have in front."""

    name: str
    key: TableKey

    def may_be(self, qualifier: Sequence[str]) -> bool:
        """Whether the qualifier may name it: whether letters of either case are the same, no text tells."""
        database, name = qualifier if len(qualifier) == 2 else (self.key.database, *qualifier)
        own = {lower(self.name), lower(self.key.table)} if len(qualifier) == 2 else {lower(self.name)}
        return lower(database) == lower(self.key.database) and lower(name) in own


def assigned(tables: Sequence[Token], assignments: Sequence[Token], reading: FactsBuilder) -> frozenset[TableKey]:
    """The tables of ``UPDATE tables SET assignments`` that may get new values. Raises Unreadable."""
    named = list(_named(tables, reading))
    found: set[TableKey] = set()
    at = 0
    while at < len(assignments):
        cursor = Cursor(assignments, at)
        parts = [cursor.next().text]
        while cursor.symbol("."):
            parts.append(cursor.next().text)
        found |= _of(parts[:-1], named)
        at = _comma(assignments, at) + 1
    return frozenset(found)


def deleted(targets: Sequence[Token], tables: Sequence[Token], reading: FactsBuilder) -> frozenset[TableKey]:
    """The tables of ``DELETE targets FROM tables`` that may lose rows; no targets: all. Raises Unreadable."""
    named = list(_named(tables, reading))
    if not targets:
        return _of((), named)
    found: set[TableKey] = set()
    at = 0
    while at < len(targets):
        end = _comma(targets, at)
        found |= _of([token.text for token in targets[at:end] if is_name(token)], named)
        at = end + 1
    return frozenset(found)


def _of(qualifier: Sequence[str], named: Sequence[_Named]) -> frozenset[TableKey]:
    """The tables that a qualifier may name; all if there is no qualifier. Raises Unreadable if no table of the list has
    that name: no server takes such a statement, so the list was misread."""
    if not qualifier:
        return frozenset(each.key for each in named)
    known = frozenset(each.key for each in named if len(qualifier) in (1, 2) and each.may_be(qualifier))
    if not known:
        raise Unreadable("a change of a table that is not in the list")
    return known


def _named(tables: Sequence[Token], reading: FactsBuilder) -> Iterator[_Named]:
    """Each table of a list with joins; tables of subqueries are only read."""
    cursor, expected = Cursor(tables), True
    while not cursor.done:
        token = cursor.peek()
        if is_symbol(token, "(", "{"):
            if expected and cursor.peek(1).upper not in _QUERY:
                cursor.next()
                if token.text == "{":
                    cursor.next()
                continue
            cursor.at = group_end(tables, cursor.at) if token.text == "(" else cursor.at + 1
            expected = False
        elif expected and is_name(token):
            database, name = cursor.qualified()
            if not is_symbol(cursor.peek(), "("):  # JSON_TABLE
                yield _Named(_alias(cursor) or name, TableKey(reading.database(database), name))
            expected = False
        else:
            cursor.next()
            expected = is_symbol(token, ",") or token.upper in ("JOIN", "STRAIGHT_JOIN")


def _alias(cursor: Cursor) -> str | None:
    if cursor.peek().upper == "PARTITION" and is_symbol(cursor.peek(1), "("):
        cursor.next()
        cursor.at = group_end(cursor.tokens, cursor.at)
    if cursor.words("AS") or (is_name(cursor.peek()) and cursor.peek().upper not in _BEHIND_TABLE):
        return cursor.name()
    return None


def _comma(tokens: Sequence[Token], at: int) -> int:
    """The index of the next comma outside parentheses; the number of tokens if there is none."""
    while at < len(tokens) and not is_symbol(tokens[at], ","):
        at = group_end(tokens, at) if is_symbol(tokens[at], "(") else at + 1
    return at
