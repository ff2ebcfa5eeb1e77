"""Statements of MySQL that may give NULL to a TIMESTAMP that must not be NULL, on a MariaDB target.

Under ``explicit_defaults_for_timestamp = ON``, the default since MySQL 8.0.2, such a NULL is an error, or, in a session
without strict mode and under IGNORE, 0 with a warning. In MariaDB it is the current time, without a warning and
whatever its variable of that name says; with OFF in MySQL, too. (Tried on MySQL 9.7, MariaDB 10.11 and 11.8.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.safe_text import shown
from binlane.schema.compare import Severity
from binlane.schema.model import TRANSACTIONAL_ENGINES, Table
from binlane.servers.variables import global_variables
from binlane.sql.inserted_rows import gives_one_row, list_of_rows, rows_of_text
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.parse.query_blocks import Block, blocks, items, plain_column, without_alias
from binlane.sql.parse.row_effects import row_of, upserts
from binlane.sql.parse.row_order import inserted_in
from binlane.sql.session_variables import is_lax, timestamps_not_null

_VARIABLE: Final = "explicit_defaults_for_timestamp"
_ON_BY_DEFAULT: Final = (8, 0, 2)
_CHANGES: Final = re.compile(rb"\b(?:INSERT|REPLACE|UPDATE|LOAD)\b", re.IGNORECASE)
_NOW: Final = frozenset({"NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "UTC_TIMESTAMP", "SYSDATE"})
_LITERAL: Final = re.compile(r"(?:[XB]|_\w+)?'.*'|\".*\"|[\d.]+|DEFAULT", re.IGNORECASE | re.DOTALL)
_OUTER: Final = frozenset({"LEFT", "RIGHT", "FULL"})
_MOST_FINDINGS: Final = 20
_EXPECTED: Final = "a value that is never NULL for a TIMESTAMP that must not be NULL"
_TODO: Final = (
    "MySQL has stored 0 for NULL there, if the session had explicit_defaults_for_timestamp = ON, and MariaDB stores "
    "the current time: write the value, run the session in strict mode, log it as rows (binlog_format = ROW), or, if "
    "no such value is NULL, set allow_unsafe in the channel's file"
)


def nulls_for_timestamps(situation: Situation) -> Iterator[Finding]:
    """Statements of sessions without strict mode, or with IGNORE, that may store a NULL as 0 on a MySQL source."""
    needs, flavors = situation.needs, (situation.plan.flavor, situation.target.flavor)
    if flavors != (Flavor.MYSQL, Flavor.MARIADB) or situation.channel.apply.allow_unsafe:
        return
    if not (needs.statements or needs.loads) or not _is_on(situation):
        return
    yield from islice(_found(situation, _Timestamps(situation)), _MOST_FINDINGS)


def _is_on(situation: Situation) -> bool:
    source = situation.source
    if source is None:
        return any(number >= _ON_BY_DEFAULT for number in situation.logged_versions.values())
    return source.ask(global_variables, {_VARIABLE}).get(_VARIABLE, "").upper() in ("1", "ON")


def _found(situation: Situation, timestamps: _Timestamps) -> Iterator[Finding]:
    for logged, _ in situation.transactions_with(_CHANGES):
        header = logged.header
        text = LoggedText.of(header.first_seqno, header.source, logged.item, situation.plan.flavor)
        if text is not None and (column := next(timestamps.given(text), None)) is not None:
            where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
            yield Finding(Severity.FATAL, where, _EXPECTED, column, _TODO, header.first_seqno)


@dataclass
class _Timestamps:
    """The TIMESTAMP columns that must not be NULL, and what statements give them."""

    # no slots: cached_property keeps what the servers have said

    situation: Situation

    def given(self, text: LoggedText) -> Iterator[str]:
        """The columns to which a statement may give a NULL that MySQL makes 0."""
        written = [key for key in text.facts.written if self._columns(key)]
        if not written or not (self._may_go_on(text) or any(map(self._keeps_half, written))):
            return
        for key in written:
            for name in sorted(self._columns(key)):
                if self._may_be_null(text, key, name):
                    yield f"{key}.{name}"

    def _may_be_null(self, text: LoggedText, key: TableKey, name: str) -> bool:
        tokens, database = text.tokens, text.context.database or ""
        sets = [value for upsert in upserts(tokens, database) for column, value in upsert.updates if column == name]
        if text.words[:1] == ("LOAD",):
            at = next((at for at, word in enumerate(text.words) if word == "SET" and at > 1), len(tokens))
            sets += _set_to(tokens[at + 1 :], name)
        for block in blocks(tokens, database):
            if block.verb == "UPDATE":
                sets += _set_to(block.clauses.get("SET", ()), name)
        compared = self.situation.compared
        inserted = (each for each in inserted_in(tokens, database) if compared(each.key) == compared(key))
        return not all(_is_value(value, name) for value in sets) or any(
            self._row_may_have_null(text, key, name, each.behind) for each in inserted
        )

    def _row_may_have_null(self, text: LoggedText, key: TableKey, name: str, behind: int) -> bool:
        tokens = text.tokens
        if tokens[behind : behind + 1] and tokens[behind].upper == "SET":
            return not all(_is_value(value, name) for value in _set_to(tokens[behind + 1 :], name))
        listed, _ = row_of(tokens[behind:])
        names = listed or self._visible(key)
        if names and name not in names:
            return False
        places = (names.index(name),) if names else None
        if (begin := list_of_rows(tokens)) is not None:
            rows = rows_of_text(text, begin, _kept)
            return any(not row[at] for row in rows for at in (places or range(len(row))) if at < len(row))
        found = [each for each in blocks(tokens, text.context.database or "") if each.is_top and each.verb == "SELECT"]
        return not found or any(self._query_may_have_null(each, places, len(names)) for each in found)

    def _query_may_have_null(self, block: Block, places: Sequence[int] | None, count: int) -> bool:
        values = [without_alias(item) for item in items(block.clauses.get("SELECT", ()))]
        if places is None or len(values) != count:
            return True
        return not all(_is_value(values[at], "") or self._is_not_null(values[at], block) for at in places)

    def _is_not_null(self, value: Sequence[Token], block: Block) -> bool:
        """Whether a value is a column that is never NULL, of the tables that may have it."""
        column = plain_column(value)
        if column is None or any(token.upper in _OUTER for token in block.clauses.get("FROM", ())):
            return False
        sources = [each for each in block.sources if each.may_be(column.qualifier)]
        tables = [table for each in sources if each.table is not None for table in self._tables(each.table)]
        known = [each for table in tables for each in table.columns if each.name.lower() == column.name]
        return bool(known) and all(each.table is not None for each in sources) and not any(c.nullable for c in known)

    def _columns(self, key: TableKey) -> frozenset[str]:
        """In lower case: of the table on both servers, and of what the window makes it."""
        return self._made.get(self.situation.compared(key), frozenset()) | self._stored(key)

    def _stored(self, key: TableKey) -> frozenset[str]:
        columns = (each for table in self._tables(key) for each in table.columns)
        return frozenset(each.name.lower() for each in columns if each.data_type == "timestamp" and not each.nullable)

    def _visible(self, key: TableKey) -> tuple[str, ...]:
        """The columns of a list of rows without names; none where the window has changed them."""
        if self.situation.compared(key) in self._made:
            return ()
        tables = self._tables(key)
        return tuple(each.name.lower() for each in tables[0].columns if not each.invisible) if tables else ()

    def _may_go_on(self, text: LoggedText) -> bool:
        """Whether such a NULL is no error: the one row of a list is refused without IGNORE, also by a session without
        strict mode."""
        return "IGNORE" in text.words or (is_lax(text.context) and not gives_one_row(text))

    def _keeps_half(self, key: TableKey) -> bool:
        """Whether STRICT_TRANS_TABLES lets a statement with several rows go on."""
        return any(table.engine.lower() not in TRANSACTIONAL_ENGINES for table in self._tables(key))

    def _tables(self, key: TableKey) -> Sequence[Table]:
        sides = (self.situation.tables, self.situation.source_tables)
        found = (None if side is None else side.table(key) for side in sides)
        return [table for table in found if table is not None]

    @cached_property
    def _made(self) -> Mapping[TableKey, frozenset[str]]:
        """Of tables that the window makes or alters, by all their names."""
        found = dict[TableKey, frozenset[str]]()
        for text in self.situation.every_text:
            key = text.facts.first
            if key is not None and (names := frozenset(timestamps_not_null(text.tokens))):
                found[self.situation.compared(key)] = found.get(self.situation.compared(key), frozenset()) | names
            for old, new in (*text.facts.moves, *text.facts.copies):
                none, before, name = frozenset[str](), self.situation.compared(old), self.situation.compared(new)
                if names := found.get(name, none) | found.get(before, none) | self._stored(old):
                    found[name] = names
        return found


def _set_to(tokens: Sequence[Token], column: str) -> list[Sequence[Token]]:
    """The values that a column is set to, by the tokens behind SET."""
    names, values = row_of([Token(TokenKind.WORD, "SET", "SET"), *tokens])
    return [value for name, value in zip(names, values or (), strict=True) if name == column]


def _is_value(value: Sequence[Token], column: str) -> bool:
    """Whether a value is never NULL, or the column's own, or that of the row that meets another one."""
    if len(value) == 1 and (value[0].kind in (TokenKind.STRING, TokenKind.NUMBER) or value[0].upper == "DEFAULT"):
        return True
    found = plain_column(value)
    if found is not None and found.name == column:
        return True
    words = [token.upper for token in value]
    if words[:1] == ["VALUES"] and len(value) == 4 and is_symbol(value[1], "("):
        return value[2].text.lower() == column
    return bool(words) and words[0] in _NOW and "NULL" not in words


def _kept(value: Sequence[str]) -> str:
    """The value of a list of rows, "" if it may be NULL."""
    is_now = bool(value) and value[0].upper() in _NOW and "NULL" not in (each.upper() for each in value)
    return value[0] if is_now or (len(value) == 1 and _LITERAL.fullmatch(value[0]) is not None) else ""
