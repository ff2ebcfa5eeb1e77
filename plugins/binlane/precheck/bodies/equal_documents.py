"""UPDATEs in a log of statements that set a JSON column, which MySQL leaves as it is if the documents are equal for it.

MariaDB has the text of a document, and writes another text. MySQL takes numbers for equal whatever their type is (1 and
1.0, 0 and -0.0), and an UPDATE of a row to equal values for none, if it has read the column: as a target whose log has
whole rows it reads every column, as a source of statements those that the statement, CHECKs, triggers and keys read,
and all of them for ON DUPLICATE KEY UPDATE, joins, tables with ON UPDATE CURRENT_TIMESTAMP, and engines other than
InnoDB. The rows of an INSERT, a REPLACE or a file are written as they are. Between two MySQL servers lanes let the
target read as little as the source has read (``BlockWriter``), which it does only for an UPDATE of a table with a
primary key. (Tried on MariaDB 10.11 and MySQL 9.7.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Final

import sqlalchemy
from sqlalchemy.engine import Connection

from binlane.model import Flavor, TableKey
from binlane.plan.transaction.rename import name_of
from binlane.precheck.bodies.body_parts import Body, BodyPart, events_of, reaching
from binlane.precheck.bodies.row_order import RowOrder, takes_rows
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.safe_text import shown
from binlane.schema.compare import Severity
from binlane.schema.model import Table
from binlane.schema.normalize import expression_sql
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.parse.query_blocks import Block, Column, blocks, items, plain_column
from binlane.sql.parse.row_effects import set_of_row, upserts
from binlane.sql.parse.row_order import of_tables
from binlane.work.logged_statements import LaneStatement

_UPDATES: Final = re.compile(rb"\bUPDATE\b", re.IGNORECASE)
_INNODB: Final = "innodb"
_OF_MANY_VALUES: Final = " array"
"""In the expression of a multi-valued key."""
_CHECKS: Final = sqlalchemy.text(
    "SELECT constraint_schema, constraint_name, check_clause FROM information_schema.check_constraints"
)
_CHECKED_TABLES: Final = sqlalchemy.text(
    "SELECT constraint_schema, constraint_name, table_schema, table_name FROM information_schema.table_constraints "
    "WHERE constraint_type = 'CHECK'"
)
_WITHOUT_NUMBERS: Final = "{}"
_MOST_FINDINGS: Final = 20
_EXPECTED: Final = "a document without numbers"
_OF_ALL_COLUMNS: Final = (
    "MySQL takes documents with other numbers for equal (1 and 1.0), and as a target whose log has rows it keeps the "
    "one that is there, where the source has not: give the table a primary key and write the UPDATE without a trigger "
    "or routine around it, log it as rows (binlog_format = ROW), or set allow_unsafe in the channel's file, and "
    "compare the tables behind the window (`binlane verify CHANNEL --full`)"
)
_TODO: Final = (
    "MySQL takes documents with other numbers for equal (1 and 1.0), and keeps the one that is there: log it as rows "
    "(binlog_format = ROW), or set allow_unsafe in the channel's file, and compare the tables behind the window "
    "(`binlane verify CHANNEL --full`)"
)


def check_equal_documents(situation: Situation) -> Iterator[Finding]:
    """UPDATEs from or to MySQL that set a JSON column to a document that only one server takes for the one before."""
    target = situation.target
    flavors = {situation.plan.flavor, target.flavor}
    if situation.channel.apply.allow_unsafe or flavors == {Flavor.MARIADB}:
        return
    is_one_family = flavors == {Flavor.MYSQL}
    if is_one_family and not (target.is_on("log_bin") and target.value("binlog_format") == "ROW"):
        return
    if not takes_rows(situation):
        return
    documents, todo = _Documents(situation, is_one_family), _OF_ALL_COLUMNS if is_one_family else _TODO
    for logged, what in islice((*documents.of_texts(), *documents.behind()), _MOST_FINDINGS):
        header = logged.header
        where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
        yield Finding(Severity.FATAL, where, _EXPECTED, what, todo, header.first_seqno)


class _Documents:
    """What statements, and bodies behind them, set JSON columns to."""

    def __init__(self, situation: Situation, is_one_family: bool) -> None:
        self.situation = situation
        self.is_one_family = is_one_family
        self.order = RowOrder(situation)
        self.is_from_mysql = situation.plan.flavor is Flavor.MYSQL
        self.seen: dict[Hashable, str | None] = {}

    def of_texts(self) -> Iterator[tuple[LaneStatement, str]]:
        """What statements say themselves."""
        if not (self._columns or self._made):
            return
        for logged, _ in self.situation.transactions_with(_UPDATES):
            header = logged.header
            text = LoggedText.of(header.first_seqno, header.source, logged.item, self.situation.plan.flavor)
            if text is None:
                continue
            tokens = tuple(_with_documents(text))
            at = (text.context.database, tokens)
            if at not in self.seen:
                self.seen[at] = next(self._set(tokens, text.context.database or "", is_alone=True), None)
            if (what := self.seen[at]) is not None:
                yield logged, what

    def behind(self) -> Iterator[tuple[LaneStatement, str]]:
        """What is behind statements."""
        for _, logged, program, part in reaching(self.situation, self._of_body):
            yield logged, f"{part.what} by {program}"

    def _of_body(self, body: Body) -> Iterator[BodyPart]:
        for what in self._set(body.tokens, body.database, is_alone=False):
            yield BodyPart(what, needs_rows=False)
        # of such a column MySQL has read the value before
        if "UPDATE" in body.events and body.is_before and not self.is_one_family:
            for column in set_of_row(body.tokens):
                if self._is_document(body.difference.key, column):
                    yield BodyPart(_named(body.difference.key, column), needs_rows=False)

    def _set(self, tokens: Sequence[Token], database: str, *, is_alone: bool) -> Iterator[str]:
        """The JSON columns that an UPDATE sets to a document with numbers, or with what no text tells. ``is_alone``: it
        is a statement of the log, and not a part of a body."""
        for block in (each for one in blocks(tokens, database) for each in of_tables(one, self.order.view_of)):
            if block.verb != "UPDATE":
                continue
            for column, value in _assigned(block.clauses.get("SET", ())):
                if _is_told_apart(column, value):
                    continue
                for source in block.sources:
                    key = source.table
                    if key is None or not source.may_be(column.qualifier):
                        continue
                    if self._is_document(key, column.name) and self._is_felt(key, column, block, tokens, is_alone):
                        yield _named(key, column.name)
        # MySQL reads all columns for them
        for upsert in () if self.is_one_family else upserts(tokens, database):
            for name, value in upsert.updates:
                if not _is_told_apart(Column("", name), value) and self._is_document(upsert.key, name):
                    yield _named(upsert.key, name)

    def _is_felt(self, key: TableKey, column: Column, block: Block, tokens: Sequence[Token], is_alone: bool) -> bool:
        """Whether source and target may see another value before the one that is set."""
        if not self.is_from_mysql:
            return True
        is_read = _is_read(column, block, tokens) or self._is_read_by_table(key, column.name)
        if not self.is_one_family:
            return is_read
        return not is_read and not (is_alone and self._has_primary_key(key))

    def _tables(self, key: TableKey) -> tuple[Table, ...]:
        """The table's definitions: of the source as they are now, of the target as they are before the window."""
        sides = (self.situation.source_tables, self.situation.every_table)
        found = (None if side is None else side.table(key) for side in sides)
        return tuple(table for table in found if table is not None)

    def _has_primary_key(self, key: TableKey) -> bool:
        tables = self._tables(key)
        return bool(tables) and all(table.primary_key is not None for table in tables)

    def _is_read_by_table(self, key: TableKey, column: str) -> bool:
        """Whether MySQL reads a column of every row that an UPDATE sets it in, whatever the statement is."""
        for table in self._tables(key)[:1]:
            if table.engine.lower() != _INNODB or any(each.on_update for each in table.columns):
                return True
            parts = (part.expression or "" for each in table.keys for part in each.columns)
            if any(_OF_MANY_VALUES in part.lower() and _names(part, column) for part in parts):
                return True
        return any(_names(text, column) for text in self._read_for.get(self.situation.compared(key), ()))

    @cached_property
    def _read_for(self) -> Mapping[TableKey, Sequence[str]]:
        """What a server evaluates for each row of an UPDATE: UPDATE triggers and CHECKs, by table."""
        found: dict[TableKey, list[str]] = {}
        ours, theirs = self.situation.stored_triggers
        source = self.situation.source
        for each in theirs if source is None else ours:
            if "UPDATE" in events_of(each):
                found.setdefault(self.situation.compared(each.key), []).append(each.text or "")
        for key, clause in () if source is None else source.ask(lambda connection: tuple(_read_checks(connection))):
            database = name_of(self.situation.renaming, key.database)
            if database is not None:
                found.setdefault(self.situation.compared(TableKey(database, key.table)), []).append(clause)
        return found

    def _is_document(self, key: TableKey, column: str) -> bool:
        own = self.situation.compared(key)
        return own in self._made or (own, column.lower()) in self._columns

    @cached_property
    def _columns(self) -> frozenset[tuple[TableKey, str]]:
        """JSON columns of the MySQL server: MariaDB's are texts."""
        source = self.situation.source_tables
        return frozenset(
            (self.situation.compared(key), column.name.lower())
            for side in (self.situation.every_table, *(() if source is None else (source,)))
            for key, table in side.tables.items()
            for column in table.columns
            if column.data_type == "json"
        )

    @cached_property
    def _made(self) -> frozenset[TableKey]:
        """Tables that the window gives JSON columns, or the definition of others: any of their columns may be one."""
        found = set[TableKey]()
        with_documents = {key for key, _ in self._columns}
        for text in self.situation.every_text:
            named = set(map(self.situation.compared, text.facts.tables))
            if "JSON" in text.words or ("LIKE" in text.words and not with_documents.isdisjoint(named)):
                found |= named
            for old, new in text.facts.moves:
                if self.situation.compared(old) in found | with_documents:
                    found.add(self.situation.compared(new))
        return frozenset(found)


def _read_checks(connection: Connection) -> Iterator[tuple[TableKey, str]]:
    """Table and clause of each CHECK of a MySQL server that has them (8.0.16)."""
    has_checks = "SHOW TABLES FROM information_schema LIKE 'check_constraints'"
    if connection.execute(sqlalchemy.text(has_checks)).first() is None:
        return
    clauses = {
        (database, name): expression_sql(str(clause), Flavor.MYSQL)
        for database, name, clause in connection.execute(_CHECKS)
    }
    for database, name, table_database, table in connection.execute(_CHECKED_TABLES).all():
        yield TableKey(str(table_database), str(table)), clauses.get((database, name), "")


def _names(text: str, column: str) -> bool:
    """Whether a text may name a column."""
    return column.replace("`", "``").lower() in text.lower()


def _with_documents(text: LoggedText) -> Iterator[Token]:
    """The tokens, with a text for each literal that is a document without numbers; others have none, in bodies, too."""
    for token, place in zip(text.tokens, text.places, strict=True):
        is_plain = token.kind is TokenKind.STRING and _has_no_number(text.sql[slice(*place)])
        yield token._replace(text=_WITHOUT_NUMBERS) if is_plain else token


def _has_no_number(literal: str) -> bool:
    if not any(map(str.isdigit, literal)):
        return True
    body = literal[1:-1]
    if literal[:1] != "'" or "\\" in body or "'" in body:
        return False
    try:
        found = [json.loads(body)]
    except ValueError:
        return False
    for each in found:
        if isinstance(each, int | float) and not isinstance(each, bool):
            return False
        found += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
    return True


def _is_told_apart(column: Column, value: Sequence[Token]) -> bool:
    """Whether a value is a document that equals none but itself, or the column's own."""
    if len(value) == 1 and (
        value[0].upper == "NULL" or (value[0].kind is TokenKind.STRING and value[0].text == _WITHOUT_NUMBERS)
    ):
        return True
    return plain_column(value) == column


def _is_read(column: Column, block: Block, tokens: Sequence[Token]) -> bool:
    """Whether MySQL reads a column that an UPDATE sets, beside triggers: in a join it reads all of them."""
    return len(block.sources) > 1 or sum(token.text.lower() == column.name for token in tokens) > 1


def _assigned(tokens: Sequence[Token]) -> Iterator[tuple[Column, Sequence[Token]]]:
    for item in items(tokens):
        middle = next((at for at, token in enumerate(item) if is_symbol(token, "=", ":=")), len(item))
        if (column := plain_column(item[:middle])) is not None:
            yield column, item[middle + 1 :]


def _named(key: TableKey, column: str) -> str:
    return f"an UPDATE that sets {key}.{column}"
