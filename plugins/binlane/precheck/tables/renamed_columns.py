"""Columns that MariaDB renames, and MySQL does not: those that an expression of their own table names.

MariaDB writes a CHECK, a generated column, a default and a partitioning function anew with the new name. MySQL refuses
the ALTER TABLE (3959, 3108, 3766, 3855).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from binlane.binlog.types.literals import identifier
from binlane.model import Flavor, TableKey
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.schema.compare import Severity
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, lex

_EXPRESSIONS: Final = frozenset({"CHECK", "AS", "DEFAULT", "HASH", "KEY", "RANGE", "LIST", "COLUMNS"})
_OF_PARTITIONS: Final = frozenset({"HASH", "KEY", "RANGE", "LIST", "COLUMNS"})
_TODO: Final = (
    "drop the CHECK, the default or the partitioning of the target's table, run, and add it again with the new name; "
    "for a generated column leave the table out ([filter] exclude_tables) and copy it again"
)


def check_renamed_columns(situation: Situation) -> Iterator[Finding]:
    """Columns of tables from MariaDB that a MySQL target does not rename, also in tables that the window makes."""
    if situation.plan.flavor is not Flavor.MARIADB or situation.target.flavor is not Flavor.MYSQL:
        return
    made: dict[TableKey, set[str]] = defaultdict(set)
    for statement in sorted(situation.asked.texts, key=lambda each: each.seqno):
        words = statement.words
        if words[:1] not in (("CREATE",), ("ALTER",)) or "TABLE" not in words[:6]:
            continue
        key = statement.facts.first
        if key is None:
            continue
        # MySQL renames a column whose CHECK the same statement drops
        drops = any(pair in (("DROP", "CONSTRAINT"), ("DROP", "CHECK")) for pair in pairwise(words))
        for name in _renamed(statement.tokens) if words[0] == "ALTER" and not drops else ():
            if name.lower() in made[key] | _named_on_target(situation, key):
                where = f"{statement.where}: column {name} of {key}"
                found = "an expression of the table that names it: MySQL does not rename such a column"
                yield Finding(Severity.FATAL, where, "a column that no expression names", found, _TODO, statement.seqno)
        made[key] |= _names_in_expressions(statement.tokens)


def _named_on_target(situation: Situation, key: TableKey) -> set[str]:
    if situation.tables.table(key) is None:
        return set()
    name = f"{identifier(key.database)}.{identifier(key.table)}".replace(":", "\\:")
    [(_, definition)] = situation.target.rows(f"SHOW CREATE TABLE {name}")
    tokens: list[Token] = []
    lex(str(definition), Dialect(Flavor.MYSQL), tokens)
    return _names_in_expressions(tokens)


def _renamed(tokens: Sequence[Token]) -> Iterator[str]:
    """The old names of ``RENAME COLUMN a TO b`` and ``CHANGE a b ...``, without columns that keep theirs."""
    for at, token in enumerate(tokens):
        rest = [each for each in tokens[at + 1 : at + 8] if each.upper not in ("COLUMN", "IF", "EXISTS", "TO")]
        is_rename = token.upper == "RENAME" and tokens[at + 1 : at + 2][0].upper == "COLUMN"
        if (is_rename or token.upper == "CHANGE") and len(rest) > 1 and rest[0].text.lower() != rest[1].text.lower():
            yield rest[0].text


def _names_in_expressions(tokens: Sequence[Token]) -> set[str]:
    """Everything that could be a column's name behind a word that begins an expression in brackets."""
    found: set[str] = set()
    is_partitioned = False
    for at, token in enumerate(tokens[:-1]):
        is_partitioned = is_partitioned or token.upper == "PARTITION"
        begins = token.upper in _EXPRESSIONS and (is_partitioned or token.upper not in _OF_PARTITIONS)
        if begins and tokens[at + 1].text == "(":
            found |= {each.text.lower() for each in _bracketed(tokens, at + 1)}
    return found


def _bracketed(tokens: Sequence[Token], at: int) -> Iterator[Token]:
    depth = 0
    for token in tokens[at:]:
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text == "(") - (token.text == ")")
        elif token.kind in (TokenKind.NAME, TokenKind.WORD):
            yield token
        if depth == 0:
            return
