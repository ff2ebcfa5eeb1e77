"""Columns whose type an ALTER TABLE changes, on a target of the other family, which converts values by its own rules.

The rows are in no log: each server converts those that it has. MySQL rounds a DATETIME(3) to a DATE and reads '1e3' as
a number where MariaDB cuts and reads 1, and so on. ``ALIKE`` has the changes of type that both make alike; the sweep
``tests/trials/test_other_answers.py`` asks servers of both families.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from binlane.model import TableKey
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.schema.compare import Severity
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.facts import StatementKind
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.parse.made_table import NO_COLUMN, made_table
from binlane.sql.parse.query_blocks import items

_WORDS: Final[Mapping[str, str]] = {
    "whole": "tinyint smallint mediumint int integer bigint bool boolean serial int1 int2 int3 int4 int8 middleint",
    "exact": "decimal numeric dec fixed",
    "float": "float double real float4 float8",
    "text": "char varchar tinytext text mediumtext longtext nchar nvarchar character national",
    "bytes": "binary varbinary tinyblob blob mediumblob longblob long",
    "moment": "datetime timestamp",
}
KINDS: Final[Mapping[str, str]] = {word: kind for kind, words in _WORDS.items() for word in words.split()}
"""Kinds of types by their names, in lower case; a type without one is its own kind."""
_NUMBERS: Final = ("whole", "exact", "float")
ALIKE: Final = frozenset(
    (
        *((one, other) for one in (*_NUMBERS, "year", "bit") for other in _NUMBERS),
        *((one, "text") for one in (*_NUMBERS, "year", "date", "moment", "time", "enum", "set")),
        *((one, "bytes") for one in (*_NUMBERS, "year", "date", "moment", "time", "text")),
        *(("text", other) for other in ("enum", "json")),
        *(("date", "moment"), ("moment", "time"), ("enum", "whole"), ("set", "whole")),
    )
)
"""Changes from one kind to another that both families make alike; besides those within a kind."""
_TODO: Final = (
    "the target would convert the rows that it has by its own rules: make the change by a new column and an UPDATE "
    "that is logged as rows, or set allow_unsafe in the channel's file and copy the table again behind the window "
    "(`binlane recopy CHANNEL --table ...`)"
)
_FILLERS: Final = frozenset({"COLUMN", "IF", "NOT", "EXISTS", "TO"})
_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)
_Kinds = dict[str, str]
"""Kinds of a table's columns by their names, in lower case."""


class ColumnChange(NamedTuple):
    """What an ALTER TABLE does with a column. Names are in lower case."""

    old: str
    """"" for a column that it adds."""
    new: str
    """"" for a column that it drops."""
    data_type: str = ""
    """The first word of the type; "" where the column keeps its type."""


def check_converted_columns(situation: Situation) -> Iterator[Finding]:
    """Columns whose type the window changes to one that a target of the other family converts otherwise."""
    if situation.channel.apply.allow_unsafe or situation.plan.flavor is situation.target.flavor:
        return
    followed = _FollowedTables(situation)
    for text in situation.every_text:
        key = text.facts.first
        if key is not None and is_alter_table(text.words):
            kinds = followed.kinds(key)
            for change in column_changes(text.tokens):
                before, after = kinds.get(change.old, "unknown"), kind_of(change.data_type)
                is_type = bool(change.old and change.data_type)
                is_converted = is_type and before != after and (before, after) not in ALIKE
                if is_converted and not followed.is_empty(key, text.seqno):
                    yield _finding(text, key, change, before)
        followed.take(text)


class _FollowedTables:
    """The columns of tables from the target's definitions on, through the statements of the window."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.known: dict[TableKey, _Kinds | None] = {}
        """By name as the target compares it; None for a name that no table has any more."""
        self.made: dict[TableKey, int] = {}
        """The seqnos of the statements that have made tables without rows."""

    def kinds(self, key: TableKey) -> _Kinds:
        """The kinds of a table's columns as the next statement finds them."""
        if self.situation.compared(key) not in self.known:
            table = self.situation.tables.table(key)
            columns = () if table is None else table.columns
            self.known[self.situation.compared(key)] = {each.name.lower(): kind_of(each.data_type) for each in columns}
        return self.known[self.situation.compared(key)] or {}

    def is_empty(self, key: TableKey, seqno: int) -> bool:
        """Whether a table is provably without rows, as the new table of an online change of definitions is."""
        made = self.made.get(self.situation.compared(key))
        return made is not None and not self._may_write(key) and not self._may_have_rows(key, made, seqno)

    def _may_write(self, key: TableKey) -> bool:
        """Whether a statement of the window may write rows of a table of this name."""
        needs = self.situation.needs
        return (needs.statements or needs.loads) and (self._is_unread or self.situation.compared(key) in self._written)

    @cached_property
    def _written(self) -> frozenset[TableKey]:
        plan = self.situation.plan
        return frozenset(map(self.situation.compared, (*plan.written, *plan.loaded)))

    @cached_property
    def _is_unread(self) -> bool:
        """Whether statements may write tables that they do not name."""
        return StatementKind.UNKNOWN in self.situation.plan.kinds or self.situation.may_reach_programs

    def _may_have_rows(self, key: TableKey, made: int, seqno: int) -> bool:
        """Whether rows of a table may be in the log behind ``made`` and up to ``seqno``."""
        firsts = self._firsts.get(self.situation.compared(key), ())
        if any(made < first <= seqno for _, first in firsts):
            return True
        # a former table of the name may have had the definition of later rows, too
        older = {logged for logged, first in firsts if first <= made}
        found = (self.situation.first_rows(logged, made) for logged in older)
        return any(rows is not None and rows <= seqno for rows in found)

    @cached_property
    def _firsts(self) -> Mapping[TableKey, Sequence[tuple[TableKey, int]]]:
        """The first seqno of each definition that rows were logged with, and the table's name there, by name as the
        target compares it."""
        found = dict[TableKey, list[tuple[TableKey, int]]]()
        for key, maps in self.situation.plan.table_maps.items():
            found.setdefault(self.situation.compared(key), []).extend((key, first) for first in maps.values())
        return found

    def take(self, text: LoggedText) -> None:
        """Follow a statement."""
        facts = text.facts
        for database in text.dropped_databases:
            self._forget_database(database)
        if facts.first is not None and text.words[:1] == ("CREATE",) and "TABLE" in text.words[:4]:
            self._make(text, facts.first)
        elif facts.first is not None and is_alter_table(text.words):
            self.known[self.situation.compared(facts.first)] = _altered(self.kinds(facts.first), text.tokens)
        for old, new in facts.moves:
            kinds, made = self.kinds(old), self.made.get(self.situation.compared(old))
            if "PARTITION" in text.words:
                # both names have a table then, of the same columns
                self.made.pop(self.situation.compared(old), None)
                made = None
            else:
                self._forget(old)
            self.known[self.situation.compared(new)] = kinds
            if made is None:
                self.made.pop(self.situation.compared(new), None)
            elif not self._may_have_rows(old, made, text.seqno):
                self.made[self.situation.compared(new)] = text.seqno
        # a table that becomes a partition goes behind its columns
        for key in facts.dropped:
            self._forget(key)

    def _make(self, text: LoggedText, key: TableKey) -> None:
        own = self.situation.compared(key)
        if "EXISTS" in text.words[:6] and "REPLACE" not in text.words[:4] and self.kinds(key):
            # the table is there already
            return
        copied = next((old for old, new in text.facts.copies if new == key), None)
        made = made_table(text.tokens)
        if copied is not None:
            self.known[own] = dict(self.kinds(copied))
        else:
            columns = () if made is None else made.columns
            self.known[own] = {each.name.lower(): kind_of(each.data_type) for each in columns}
        self.made.pop(own, None)
        if copied is not None or made is not None:
            self.made[own] = text.seqno

    def _forget(self, key: TableKey) -> None:
        self.known[self.situation.compared(key)] = None
        self.made.pop(self.situation.compared(key), None)

    def _forget_database(self, database: str) -> None:
        compared = self.situation.tables.letter_case.name
        for key in (*self.known, *self.situation.tables.tables):
            if compared(key.database) == compared(database):
                self._forget(key)


def is_alter_table(words: Sequence[str]) -> bool:
    """Whether a statement is an ALTER TABLE."""
    return words[:1] == ("ALTER",) and "TABLE" in words[:4]


def _altered(kinds: _Kinds, tokens: Sequence[Token]) -> _Kinds:
    # all changes of a statement take the names before it
    changes = [each for each in column_changes(tokens) if each.old or each.new not in kinds]
    found = {name: kind for name, kind in kinds.items() if name not in {each.old for each in changes}}
    for old, new, word in changes:
        if new and (word or old in kinds):
            found[new] = kind_of(word) if word else kinds[old]
    return found


def kind_of(word: str) -> str:
    """The kind of a type by the first word of its name."""
    return KINDS.get(word.lower(), word.lower())


def column_changes(tokens: Sequence[Token]) -> Iterator[ColumnChange]:
    """The columns that an ALTER TABLE adds, drops, renames, or gives a type anew."""
    at = next((at for at, token in enumerate(tokens) if token.upper == "TABLE"), len(tokens)) + 1
    at = _behind(tokens, at)
    # the table's name, perhaps with a database
    at += 3 if at + 1 < len(tokens) and is_symbol(tokens[at + 1], ".") else 1
    for item in items(tokens[at:]):
        yield from _changes(item)


def _changes(item: Sequence[Token]) -> Iterator[ColumnChange]:
    verb, begin = item[0].upper, _behind(item, 1)
    if verb not in ("ADD", "MODIFY", "CHANGE", "DROP", "RENAME") or begin >= len(item):
        return
    if verb == "ADD" and is_symbol(item[begin], "("):
        for each in items(item[begin + 1 : -1]):
            yield from _changes((item[0], *each))
        return
    is_column = item[1].upper == "COLUMN"
    if not is_column and (verb == "RENAME" or (item[begin].kind is TokenKind.WORD and item[begin].upper in NO_COLUMN)):
        return
    names = [token.text.lower() for token in item[begin:] if token.kind in _NAMES and token.upper != "TO"]
    match verb, names:
        case "ADD", [new, word, *_]:
            yield ColumnChange("", new, word)
        case "MODIFY", [name, word, *_]:
            yield ColumnChange(name, name, word)
        case "CHANGE", [old, new, word, *_]:
            yield ColumnChange(old, new, word)
        case "RENAME", [old, new, *_]:
            yield ColumnChange(old, new)
        case "DROP", [old, *_]:
            yield ColumnChange(old, "")


def _behind(tokens: Sequence[Token], at: int) -> int:
    """The first place that has none of the words in front of a name."""
    while at < len(tokens) and tokens[at].kind is TokenKind.WORD and tokens[at].upper in _FILLERS:
        at += 1
    return at


def _finding(text: LoggedText, key: TableKey, change: ColumnChange, before: str) -> Finding:
    where = f"{text.where}: {key}.{change.old}"
    expected = "a change of type that both families make alike"
    return Finding(Severity.FATAL, where, expected, f"{before} to {change.data_type}", _TODO, text.seqno)
