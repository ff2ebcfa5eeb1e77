"""Numbers of AUTO_INCREMENT columns that other sessions may have taken in the middle of a statement.

The log has the first number of a statement alone (INSERT_ID), and the target gives those behind it in a row. What the
source has given is the same if it has given one number, or has reserved all of them at once or under a lock.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property, partial
from itertools import chain, groupby, islice
from typing import Final, NamedTuple

from binlane.lazy_dataclass import dataclass
from binlane.model import ItemKind, TableKey
from binlane.precheck.bodies.body_parts import Body, bodies, running, runs_bodies
from binlane.precheck.bodies.row_order import RowOrder, takes_number, takes_rows
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.precheck.statements.window_statements import firing, reaching_statements
from binlane.safe_text import shown
from binlane.schema.compare import Severity
from binlane.schema.letter_case import lower
from binlane.schema.model import Schema, Table
from binlane.schema.order_proof import has_one_row
from binlane.servers.variables import global_variables
from binlane.sql.inserted_rows import (
    gives_one_row,
    has_query_of_rows,
    list_of_rows,
    numbers_in_between,
    rows_of_text,
)
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.cursor import group_end, is_symbol
from binlane.sql.parse.lexer import Token
from binlane.sql.parse.query_blocks import plain_column
from binlane.sql.parse.row_effects import FIRING, row_of
from binlane.sql.parse.row_order import Inserted, feeding, inserted_in
from binlane.sql.parse.unsafe import is_one_row, row_verb
from binlane.sql.programs.reach import Reach, folded, plain_name
from binlane.work.logged_statements import LaneStatement

_INSERTS: Final = re.compile(rb"\b(?:INSERT|REPLACE|LOAD)\b", re.IGNORECASE)
_LIST: Final = re.compile(rb"\s*(?:INSERT|REPLACE)\b[^'()]*(?:\([^'()]*\)[^'()]*)*?\bVALUES?\s*(?=\()", re.IGNORECASE)
"""The beginning of a statement whose rows are in its text, unless it has a comment or one of these words:"""
_QUERY: Final = re.compile(rb"\b(?:SELECT|TABLE|WITH|SET)\b", re.IGNORECASE)
_SEVERAL: Final = re.compile(rb"\)[^'\"()]*\(")
"""What lists of several rows have, and few others."""
_COMMENTS: Final = (b"/*", b"--", b"#")
"""What every comment begins with, and some literals have."""
_MAKES: Final = re.compile(
    rb"\A(?=.*\b(?:CREATE|ALTER)\b).*\b(?:AUTO_INCREMENT|SERIAL|LIKE)\b", re.IGNORECASE | re.DOTALL
)
_INSERTING: Final = ("INSERT", "REPLACE", "LOAD")
_NUMBERING: Final = frozenset({"AUTO_INCREMENT", "SERIAL"})
"""Words of statements that may give a table a column that takes numbers."""
_REPEATING: Final = frozenset({"LOOP", "WHILE", "DO", "GOTO"})
_SEVERAL_NUMBERS: Final = 2
_LOCK_MODE: Final = "innodb_autoinc_lock_mode"
_LOCKED: Final = ("0", "1")
"""Values of it with which the rows of a query get their numbers under a lock."""
_LOCKED_ENGINES: Final = frozenset({"myisam", "aria"})
"""A statement locks their tables, whatever that variable is (tried on MariaDB 10.11 and MySQL 9.7)."""
_MOST_FINDINGS: Final = 20
_EXPECTED: Final = "numbers of an AUTO_INCREMENT that follow from the log"
_TODO: Final = (
    "the log has the first number of a statement alone, and other sessions may have taken numbers in between: log it "
    "as rows (binlog_format = ROW or MIXED), or set allow_unsafe in the channel's file, and copy the table again "
    "behind the window (`binlane recopy CHANNEL --table ...`)"
)


def check_numbers(situation: Situation) -> Iterator[Finding]:
    """Statements that take several numbers of AUTO_INCREMENT columns, of which other sessions may have taken some in
    between: for rows of a query or file without a lock, and what triggers and functions insert."""
    if situation.channel.apply.allow_unsafe or not takes_rows(situation):
        return
    numbers = _Numbers(situation, RowOrder(situation))
    for logged, what in islice(chain(numbers.of_queries(), numbers.of_lists(), numbers.behind()), _MOST_FINDINGS):
        header = logged.header
        where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
        yield Finding(Severity.FATAL, where, _EXPECTED, what, _TODO, header.first_seqno)


class _Taken(NamedTuple):
    """Numbers that a body takes."""

    body: Body
    key: TableKey
    """The table whose numbers they are."""
    numbers: int
    """2 stands for several."""


@dataclass
class _Numbers:
    """What is known of the tables, and of the beginnings of lists of rows."""

    # no slots: cached_property keeps what the servers have said

    situation: Situation
    rows: RowOrder
    places: dict[Hashable, frozenset[int]] = field(default_factory=dict)
    """By beginning and session: the places that the AUTO_INCREMENT column may have in each row."""

    def of_queries(self) -> Iterator[tuple[LaneStatement, str]]:
        """Statements that insert the rows of a query or file."""
        for logged in self._taking():
            if _list_of_rows(logged.item.payload) is not None or (text := self._text(logged)) is None:
                continue
            if row_verb(text.tokens) not in _INSERTING or not has_query_of_rows(text.tokens):
                continue
            written = text.facts.written
            is_own = bool(written) and all(map(self._is_temporary, written))
            if written and not any(map(self._may_number, written)):
                # what is behind it has taken the number
                continue
            if not (is_own or self._locks or self._are_locked(written) or self._takes_one_row(text)):
                yield logged, f"an AUTO_INCREMENT of {_named(text)} for the rows of a query or file, {self._reason}"

    def of_lists(self) -> Iterator[tuple[LaneStatement, str]]:
        """Statements of which a row gives a number, and the rows behind it take others."""
        for logged in self._taking():
            payload, context = logged.item.payload, logged.item.context
            begin = _list_of_rows(payload)
            is_plain = begin is not None and _SEVERAL.search(payload, begin.end()) is not None
            if context is None or not (is_plain or _may_have_comment(payload)):
                continue
            text = None
            # each statement with a comment is read by itself
            mark = (
                begin[0] if is_plain and begin else payload,
                context.database,
                context.sql_mode,
                context.charset_client,
            )
            if mark not in self.places:
                text = self._text(logged)
                is_list = text is not None and list_of_rows(text.tokens) is not None
                self.places[mark] = frozenset(self._places(text)) if is_list and text is not None else frozenset()
            if not self.places[mark] or (text := text or self._text(logged)) is None:
                continue
            rows, first = list(rows_of_text(text, list_of_rows(text.tokens) or 0)), context.insert_id or 0
            if any(numbers_in_between(rows, place, first) for place in self.places[mark]):
                yield (
                    logged,
                    f"rows that take an AUTO_INCREMENT of {_named(text)} behind one that gives a higher number",
                )

    def behind(self) -> Iterator[tuple[LaneStatement, str]]:
        """Statements behind which bodies take numbers."""
        found = [taken for body in bodies(self.situation) for taken in self._taken(body)]
        if not found:
            return
        reach = self.situation.reach
        differences = [taken.body.difference for taken in found]
        numbering = frozenset(folded(each.key) for each in differences)
        runs = running(reach)
        for statement in reaching_statements(self.situation, reach, differences):
            text, logged = statement.text, statement.logged
            if not takes_number(logged):
                continue
            if logged.item.kind is ItemKind.DDL and text is not None and not runs_bodies(text):
                continue
            fired = [taken for taken in found if runs(statement, taken.body)]
            if fired and (text is None or not self._takes_one(text, reach, numbering, fired)):
                yield logged, f"an AUTO_INCREMENT of {fired[0].key} of {fired[0].body.difference.where}"

    def _taking(self) -> Iterator[LaneStatement]:
        return (logged for logged, _ in self.situation.transactions_with(_INSERTS) if takes_number(logged))

    def _text(self, logged: LaneStatement) -> LoggedText | None:
        header = logged.header
        return LoggedText.of(header.first_seqno, header.source, logged.item, self.situation.plan.flavor)

    def _places(self, text: LoggedText) -> Iterator[int]:
        for inserted in inserted_in(text.tokens, text.context.database or ""):
            for table, column in self._columns(inserted.key):
                listed, _ = row_of(text.tokens[inserted.behind :])
                names = listed or _visible(table)
                if column in names:
                    yield names.index(column)

    def _columns(self, key: TableKey) -> Iterator[tuple[Table, str]]:
        """The table on both servers, if it has an AUTO_INCREMENT column there, and the column's name in lower case."""
        for side in self._sides:
            table = side.table(key)
            if table is not None and table.auto_increment is not None:
                yield table, table.auto_increment.name.lower()

    @property
    def _sides(self) -> Sequence[Schema]:
        source = self.situation.source_tables
        return (self.situation.tables,) if source is None else (self.situation.tables, source)

    def _taken(self, body: Body) -> Iterator[_Taken]:
        words = [token.upper for token in body.tokens]
        is_loop = not _REPEATING.isdisjoint(words) or any(
            words[at : at + 2] in (["END", "FOR"], ["END", "REPEAT"]) for at in range(len(words))
        )
        for inserted in inserted_in(body.tokens, body.database):
            if self._may_number(inserted.key) and not self._gives_number(body, inserted):
                _, values = row_of(body.tokens[inserted.behind : inserted.end])
                is_several = is_loop or values is None
                yield _Taken(body, inserted.key, _SEVERAL_NUMBERS if is_several else 1)

    def _takes_one(
        self,
        text: LoggedText,
        reach: Reach,
        numbering: frozenset[TableKey],
        fired: Sequence[_Taken],
    ) -> bool:
        """Whether a statement takes one number, by one body that runs once."""
        count = 0
        for _, same in groupby(sorted(fired, key=_program), key=_program):
            # a program that both servers have is there twice
            count += max(sum(each.numbers for each in one) for _, one in groupby(same, key=lambda each: id(each.body)))
        verb = row_verb(text.tokens)
        if count != 1 or (verb in _INSERTING and any(map(self._may_number, text.facts.written))):
            return False
        names = set(firing(text, reach.called))
        leading = [name for name in names if reach.of({name}) & numbering]
        if len(leading) != 1 or leading[0] not in numbering or reach.unread & reach.of(names):
            return False
        key, events = leading[0], fired[0].body.events
        # a trigger names its own table, and a table may refer to itself
        behind = ({*reach.behind.get(key, ())} - {key}) | reach.cascades.get(key, frozenset())
        if reach.of(behind) & numbering:
            return False
        if not events:
            return _is_called_once(text, plain_name(key))
        # one row may take the place of several
        return self._takes_one_row(text) and not (verb == "REPLACE" and "DELETE" in events)

    def _takes_one_row(self, text: LoggedText) -> bool:
        if row_verb(text.tokens) in ("INSERT", "REPLACE") and not has_query_of_rows(text.tokens):
            return gives_one_row(text)
        if row_verb(text.tokens) == "LOAD":
            return False
        found = list(feeding(text.tokens_with_numbers, text.context.database or ""))
        one_row = partial(has_one_row, table_of=self.rows.table_of(text.seqno))
        return is_one_row(text.tokens) or (len(found) == 1 and one_row(found[0]))

    def _gives_number(self, body: Body, inserted: Inserted) -> bool:
        """Whether an INSERT of a trigger has the number of the row that fires it, as copies of a table do."""
        listed, values = row_of(body.tokens[inserted.behind : inserted.end])
        fired = {name for _, name in self._columns(body.difference.key)} if body.events else set()
        tables = list(self._columns(inserted.key))
        for table, column in tables:
            given = dict(zip(listed or _visible(table), values or (), strict=False)).get(column)
            value = None if given is None else plain_column(given)
            # the row has no number yet before it is there
            known = ("old",) if body.is_before else FIRING
            if value is None or value.qualifier not in known or fired != {value.name}:
                return False
        return bool(tables)

    def _may_number(self, key: TableKey) -> bool:
        """Whether a table may have an AUTO_INCREMENT column: a view may, and so may what nobody has asked for."""
        if (known := self._numbered.get(self.situation.compared(key))) is not None:
            return known
        letters = self.situation.tables.letter_case
        is_asked = letters.name(key.database) in letters.names(frozenset(self.situation.tables.databases))
        if not is_asked or self.situation.needs.copies or any(key in side.views for side in self._sides):
            return True
        return any(lower(key.table) in names for names in self._numbering)

    @cached_property
    def _numbering(self) -> Sequence[frozenset[str]]:
        """The names in texts that may make temporary tables with such a column."""
        found = [text.tokens for logged, _ in self.situation.transactions_with(_MAKES) if (text := self._text(logged))]
        found += [body.tokens for body in bodies(self.situation)]
        return [
            frozenset(lower(token.text) for token in tokens)
            for tokens in found
            if not {*_NUMBERING, "LIKE"}.isdisjoint(token.upper for token in tokens)
        ]

    @cached_property
    def _numbered(self) -> Mapping[TableKey, bool]:
        found = dict[TableKey, bool]()
        for key, table in chain.from_iterable(each.tables.items() for each in self._sides):
            name = self.situation.compared(key)
            found[name] = found.get(name, False) or table.auto_increment is not None
        for text in self.situation.every_text:
            facts = text.facts
            if facts.first is not None and not _NUMBERING.isdisjoint(text.words):
                found[self.situation.compared(facts.first)] = True
            # each table has had the columns of the other one then
            for old, new in (*facts.moves, *facts.copies):
                was, name = found.get(self.situation.compared(old), True), self.situation.compared(new)
                found[name] = found.get(name, False) or was
        return found

    def _is_temporary(self, key: TableKey) -> bool:
        """Whether no server has, or has had in the window, another table or view of this name: no other session sees
        it."""
        is_known = any(side.table(key) is not None or key in side.views for side in self._sides)
        return not is_known and self.situation.compared(key) not in self._defined

    @cached_property
    def _defined(self) -> frozenset[TableKey]:
        """Tables that statements of the window make, alter or drop that are not temporary."""
        texts = (text for text in self.situation.every_text if not text.facts.temporary)
        return frozenset(self.situation.compared(key) for text in texts for key in text.facts.tables)

    @cached_property
    def _locks(self) -> bool:
        """Whether the source lets no other session take numbers between those for the rows of a query."""
        source = self.situation.source
        return source is not None and source.ask(global_variables, (_LOCK_MODE,)).get(_LOCK_MODE) in _LOCKED

    def _are_locked(self, tables: Collection[TableKey]) -> bool:
        """Whether a statement that writes to these tables locks each of them as a whole on the source."""
        known = self.situation.source_tables
        if known is None or not tables or any(self.situation.compared(key) in self._defined for key in tables):
            return False
        found = [known.table(key) for key in tables]
        return all(table is not None and table.engine.lower() in _LOCKED_ENGINES for table in found)

    @property
    def _reason(self) -> str:
        if self.situation.source is None:
            return f"and an archive does not tell whether {_LOCK_MODE} was 2"
        return f"between which others take some ({_LOCK_MODE} = 2 on the source)"


def _list_of_rows(payload: bytes) -> re.Match[bytes] | None:
    found = _LIST.match(payload)
    if found is None or _QUERY.search(found[0]) is not None or _may_have_comment(found[0]):
        return None
    return found


def _may_have_comment(text: bytes) -> bool:
    return any(mark in text for mark in _COMMENTS)


def _program(taken: _Taken) -> tuple[str, str]:
    return taken.body.name.lower(), " ".join(sorted(taken.body.events))


def _visible(table: Table) -> tuple[str, ...]:
    return tuple(each.name.lower() for each in table.columns if not each.invisible)


def _named(text: LoggedText) -> str:
    return min(map(str, text.facts.written), default="a table")


def _is_called_once(text: LoggedText, name: str) -> bool:
    """Whether a statement has one call of a function, as a value of one row, and reads no table beside it."""
    tokens, words = text.tokens, text.words
    verb = row_verb(tokens)
    if verb in ("INSERT", "REPLACE"):
        if not gives_one_row(text):
            return False
    elif verb not in ("SELECT", "DO") or "FROM" in words:
        return False
    depth, places = 0, list[int]()
    for at, token in enumerate(tokens):
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if token.text.lower() == name.lower() and at + 1 < len(tokens) and is_symbol(tokens[at + 1], "("):
            begin = at
            while begin > 1 and is_symbol(tokens[begin - 1], "."):
                begin -= 2
            is_value = depth == (1 if list_of_rows(tokens) is not None else 0) and _is_boundary(tokens[begin - 1])
            end = group_end(tokens, at + 1)
            places.append(at if is_value and (end == len(tokens) or _is_boundary(tokens[end])) else -1)
    return len(places) == 1 and places[0] >= 0


def _is_boundary(token: Token) -> bool:
    return token.upper in ("SELECT", "DO", "AS") or any(is_symbol(token, each) for each in ("(", ")", ",", "="))
