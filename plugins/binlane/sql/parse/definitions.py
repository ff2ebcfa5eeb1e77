"""Reads CREATE, ALTER, DROP, RENAME, TRUNCATE, LOCK and table maintenance: the databases and objects that they name.

Only clauses that name other objects are read. Reserved words mark them, so that a column, a comment or a default of the
same name is not mistaken for a clause. Grammar: ``sql/sql_yacc.yy`` of MySQL 9 and MariaDB 11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from binlane.model import Flavor, TableKey
from binlane.sql.parse import account_statements as accounts
from binlane.sql.parse.cursor import (
    Cursor,
    FactsBuilder,
    account_end,
    group_end,
    is_list_of_rows,
    is_name,
    is_symbol,
)
from binlane.sql.parse.facts import LOADABLE_OR_STORED, StatementKind
from binlane.sql.parse.lexer import TokenKind, Unreadable
from binlane.sql.parse.queries import read_query, read_sequences

_Reader = Callable[[Cursor, FactsBuilder], None]


def create(cursor: Cursor, reading: FactsBuilder) -> None:
    """CREATE of any object."""
    _object(cursor, reading, CREATE)


def alter(cursor: Cursor, reading: FactsBuilder) -> None:
    """ALTER of any object."""
    _object(cursor, reading, ALTER)


def drop(cursor: Cursor, reading: FactsBuilder) -> None:
    """DROP of any object."""
    reading.drops = True
    _object(cursor, reading, DROP)


def rename(cursor: Cursor, reading: FactsBuilder) -> None:
    """RENAME TABLE or RENAME USER."""
    if cursor.words("USER"):
        accounts.rename_user(cursor, reading)
        return
    cursor.expect("RENAME TABLE or RENAME USER", found=cursor.any_word("TABLE", "TABLES") is not None)
    cursor.words("IF", "EXISTS")
    while True:
        old = reading.definition(cursor.qualified())
        _wait(cursor)
        cursor.expect("TO", found=cursor.words("TO"))
        reading.renames.append((old, reading.definition(cursor.qualified())))
        if not cursor.symbol(","):
            break
    cursor.finished()


def truncate(cursor: Cursor, reading: FactsBuilder) -> None:
    """TRUNCATE [TABLE] name."""
    cursor.words("TABLE")
    reading.table(cursor.qualified())
    _wait(cursor)
    cursor.finished()


def maintain(cursor: Cursor, reading: FactsBuilder) -> None:
    """ANALYZE, OPTIMIZE, REPAIR TABLE: a list of tables, each with its options, then options of the statement."""
    cursor.any_word("NO_WRITE_TO_BINLOG", "LOCAL")
    cursor.expect("TABLE", found=cursor.any_word("TABLE", "TABLES", "VIEW") is not None)
    while True:
        reading.table(cursor.qualified())
        if cursor.words("PERSISTENT", "FOR"):
            _statistics(cursor)
        if not cursor.symbol(","):
            break
    if cursor.any_word("UPDATE", "DROP") is not None:  # MySQL: HISTOGRAM ON columns, of one table
        cursor.expect("HISTOGRAM", found=cursor.words("HISTOGRAM"))
        return
    cursor.skip_words("QUICK", "EXTENDED", "USE_FRM", "FORCE", "FOR", "UPGRADE", "FROM", "MYSQL")
    _wait(cursor)
    cursor.finished()


def _statistics(cursor: Cursor) -> None:
    """MariaDB's ALL, or COLUMNS and INDEXES, each with a list of names or ALL."""
    if cursor.words("ALL"):
        return
    while cursor.any_word("COLUMNS", "INDEXES") is not None:
        if not cursor.words("ALL"):
            cursor.expect("a list of names", found=is_symbol(cursor.peek(), "("))
            cursor.at = group_end(cursor.tokens, cursor.at)


def lock(cursor: Cursor, reading: FactsBuilder) -> None:
    """LOCK TABLES name [AS alias] READ|WRITE, ..."""
    if cursor.words("INSTANCE"):
        reading.kind = StatementKind.GLOBAL
        return
    cursor.expect("LOCK TABLES", found=cursor.any_word("TABLE", "TABLES") is not None)
    while True:
        reading.table(cursor.qualified())
        cursor.words("AS")
        if cursor.peek().upper not in ("READ", "WRITE", "LOW_PRIORITY"):
            cursor.name()
        cursor.words("LOW_PRIORITY")
        cursor.expect("READ or WRITE", found=cursor.any_word("READ", "WRITE") is not None)
        cursor.skip_words("LOCAL", "CONCURRENT")
        _wait(cursor)
        if not cursor.symbol(","):
            break
    cursor.finished()


def _object(cursor: Cursor, reading: FactsBuilder, readers: Mapping[str, _Reader]) -> None:
    """Step over the clauses between the verb and the kind of object, then read the object."""
    replaces = False
    while (reader := readers.get(cursor.peek().upper)) is None:
        if cursor.words("OR", "REPLACE"):
            replaces = True
        elif cursor.words("TEMPORARY"):
            reading.temporary = True
            reading.commits_implicitly = False
        elif cursor.words("DEFINER"):
            _definer(cursor)
        elif cursor.words("ALGORITHM"):
            cursor.symbol("=")
            cursor.next()
        elif cursor.words("SQL", "SECURITY"):
            cursor.next()
        elif cursor.words("JSON", "DUALITY") or cursor.words("JSON", "RELATIONAL", "DUALITY"):
            pass
        elif cursor.any_word(*_BEFORE_OBJECT) is None:
            raise Unreadable("an object of a kind that this version does not know", cursor.peek().text)
    kind = cursor.next().upper
    reader(cursor, reading)
    if replaces and kind == "TABLE" and reading.first is not None and not reading.temporary:
        reading.replaced.add(reading.first)
    elif replaces and kind in ("DATABASE", "SCHEMA"):
        reading.dropped_in |= reading.databases


def _definer(cursor: Cursor) -> None:
    cursor.expect("=", found=cursor.symbol("="))
    cursor.at = account_end(cursor.tokens, cursor.at)


def _if_exists(cursor: Cursor) -> bool:
    return cursor.words("IF", "EXISTS") or cursor.words("IF", "NOT", "EXISTS")


def _wait(cursor: Cursor) -> None:
    """MariaDB's WAIT n or NOWAIT."""
    if cursor.words("WAIT"):
        cursor.next()
    else:
        cursor.words("NOWAIT")


def _tables(cursor: Cursor, reading: FactsBuilder) -> list[TableKey]:
    found = [reading.table(cursor.qualified())]
    while cursor.symbol(","):
        found.append(reading.table(cursor.qualified()))
    return found


def _global(cursor: Cursor, reading: FactsBuilder) -> None:
    reading.kind = StatementKind.GLOBAL


def _in_database(cursor: Cursor, reading: FactsBuilder) -> None:
    """A routine, event, package or library. Its body is not read: objects in it need not exist yet."""
    _if_exists(cursor)
    reading.database(cursor.qualified()[0])


def _create_table(cursor: Cursor, reading: FactsBuilder) -> None:
    _if_exists(cursor)
    table = reading.definition(cursor.qualified())
    like = Cursor(cursor.rest)
    parenthesis = like.symbol("(")
    if like.words("LIKE"):
        reading.copies.append((reading.table(like.qualified()), table))
        cursor.expect(")", found=not parenthesis or like.symbol(")"))
        like.finished()
        return
    start = query_start(cursor)
    definition = Cursor(cursor.tokens[cursor.at : start])
    reading.create_select = start < len(cursor.tokens)
    _clauses(definition, reading, table.database)
    if start < len(cursor.tokens):
        read_query(cursor.tokens[start:], reading)
    elif any(
        is_symbol(before, ")") and (one.upper, two.upper) == ("START", "TRANSACTION")
        for before, one, two in zip(cursor.tokens, cursor.tokens[1:], cursor.tokens[2:], strict=False)
    ):  # MySQL 8.0.21: behind the columns and before the options; its rows follow
        reading.create_select = reading.rows_follow = True
        reading.commits_implicitly = False


def query_start(cursor: Cursor) -> int:
    """The index where the query of a CREATE TABLE begins, parentheses and WITH included."""
    for index in range(cursor.at, len(cursor.tokens)):
        token = cursor.tokens[index]
        ahead = Cursor(cursor.tokens, index + 1)
        if token.upper == "WITH" and (ahead.words("RECURSIVE") or is_name(ahead.peek())):
            ahead.next()
            if is_symbol(ahead.peek(), "("):
                ahead.at = group_end(cursor.tokens, ahead.at)
            found = ahead.words("AS") and is_symbol(ahead.peek(), "(")
        else:
            found = token.upper in ("SELECT", "TABLE") or is_list_of_rows(cursor.tokens, index)
        if found:
            start = index
            while start > cursor.at and is_symbol(cursor.tokens[start - 1], "("):
                start -= 1
            return start
    return len(cursor.tokens)


def _alter_table(cursor: Cursor, reading: FactsBuilder) -> None:
    _if_exists(cursor)
    table = reading.definition(cursor.qualified())
    _wait(cursor)
    _clauses(Cursor(cursor.tokens, cursor.at), reading, table.database)
    depth = 0
    while not cursor.done:
        if cursor.words("RENAME"):
            if depth == 0 and cursor.any_word("COLUMN", "INDEX", "KEY") is None:
                cursor.any_word("TO", "AS")
                cursor.symbol("=")
                reading.renames.append((table, reading.definition(cursor.qualified())))
        elif cursor.words("EXCHANGE", "PARTITION"):
            cursor.name()
            cursor.expect("WITH TABLE", found=cursor.words("WITH", "TABLE"))
            other = reading.definition(cursor.qualified())
            reading.exchanges += [(table, other), (other, table)]
        elif cursor.words("CONVERT", "TABLE"):  # MariaDB: the table becomes a partition, or the other way round
            other = reading.definition(cursor.qualified())
            reading.dropped.add(other)
            reading.exchanges.append((other, table))
        elif cursor.words("CONVERT", "PARTITION"):
            cursor.name()
            cursor.expect("TO TABLE", found=cursor.words("TO", "TABLE"))
            reading.exchanges.append((table, reading.definition(cursor.qualified())))
        else:
            token = cursor.next()
            depth += is_symbol(token, "(") - is_symbol(token, ")")


def _clauses(cursor: Cursor, reading: FactsBuilder, database: str) -> None:
    """The clauses of a table's definition that name other tables: REFERENCES, UNION (of a MERGE table), sequences."""
    read_sequences(cursor.rest, reading)
    while not cursor.done:
        if cursor.words("REFERENCES"):
            parent, name = cursor.qualified()
            parent = database if parent is None else parent
            reading.references.add(parent)
            reading.table((parent, name))
        elif cursor.words("UNION"):
            cursor.symbol("=")
            if cursor.symbol("(") and not cursor.symbol(")"):
                reading.union.update(_tables(cursor, reading))
        elif cursor.words("SELECT"):
            raise Unreadable("a query inside a table's definition", "SELECT")
        else:
            cursor.next()


def _index(cursor: Cursor, reading: FactsBuilder) -> None:
    """CREATE INDEX name ... ON table, DROP INDEX name ON table."""
    _if_exists(cursor)
    cursor.name()
    while not cursor.words("ON"):
        cursor.expect("ON", found=not cursor.done)
        cursor.next()
    reading.definition(cursor.qualified())


def _create_view(cursor: Cursor, reading: FactsBuilder) -> None:
    _if_exists(cursor)
    view = reading.definition(cursor.qualified())
    reading.views.add(view)
    if is_symbol(cursor.peek(), "("):
        cursor.at = group_end(cursor.tokens, cursor.at)
    cursor.expect("AS", found=cursor.words("AS"))
    query = list(cursor.rest)
    for option in (["CHECK", "OPTION"], ["LOCAL"], ["CASCADED"], ["WITH"]):
        if [token.upper for token in query[-len(option) :]] == option:
            del query[-len(option) :]
    read_query(query, reading)


def _create_trigger(cursor: Cursor, reading: FactsBuilder) -> None:
    _if_exists(cursor)
    reading.database(cursor.qualified()[0])
    while not cursor.words("ON"):
        cursor.expect("ON", found=not cursor.done)
        cursor.next()
    reading.triggered.add(reading.definition(cursor.qualified()))
    cursor.expect("FOR EACH ROW", found=cursor.words("FOR", "EACH", "ROW"))


def _create_function(cursor: Cursor, reading: FactsBuilder) -> None:
    """A stored function, or a loadable one: ``CREATE FUNCTION name RETURNS type SONAME 'file'``."""
    ahead = Cursor(cursor.tokens, cursor.at)
    _if_exists(ahead)
    ahead.qualified()
    if ahead.words("RETURNS") and ahead.next().upper != "" and ahead.words("SONAME"):
        reading.kind = StatementKind.GLOBAL
        return
    _routine(cursor, reading)


def _routine(cursor: Cursor, reading: FactsBuilder) -> None:
    _if_exists(cursor)
    reading.routine_databases.add(reading.database(cursor.qualified()[0]))


def _drop_function(cursor: Cursor, reading: FactsBuilder) -> None:
    _if_exists(cursor)
    database = cursor.qualified()[0]
    cursor.finished()
    if database is None and reading.default is None:  # servers drop no stored one then
        reading.kind = StatementKind.GLOBAL
        return
    reading.dropped_in.add(reading.database(database))
    if database is None:
        reading.reason = LOADABLE_OR_STORED


def _spatial_reference(cursor: Cursor, reading: FactsBuilder) -> None:
    """MySQL's REFERENCE SYSTEM number, and its attributes: one for all databases of the server."""
    cursor.expect("SYSTEM", found=cursor.words("SYSTEM"))
    _if_exists(cursor)
    cursor.expect("a number", found=cursor.next().kind is TokenKind.NUMBER)
    while not reading.drops and not cursor.done:
        is_known = cursor.any_word("NAME", "DEFINITION", "ORGANIZATION", "DESCRIPTION") is not None
        cursor.expect("an attribute with a text", found=is_known and cursor.next().kind is TokenKind.STRING)
        if cursor.words("IDENTIFIED", "BY"):
            cursor.next()
    cursor.finished()
    reading.kind = StatementKind.GLOBAL


def _sequence(cursor: Cursor, reading: FactsBuilder) -> None:
    _if_exists(cursor)
    reading.definition(cursor.qualified())


def _database(cursor: Cursor, reading: FactsBuilder) -> None:
    _if_exists(cursor)
    reading.database(cursor.name())


def _alter_database(cursor: Cursor, reading: FactsBuilder) -> None:
    """ALTER DATABASE, whose name may be left out: then its first option stands there."""
    word, following = cursor.peek().upper, cursor.peek(1)
    if word in ("CHARACTER", "DEFAULT", "COLLATE", "READ"):  # reserved: no name
        reading.database(None)
    elif word in ("CHARSET", "ENCRYPTION", "COMMENT"):
        option = is_symbol(following, "=") or following.kind is TokenKind.STRING
        cursor.expect("the name of a database", found=option)
        reading.database(None)
    else:
        reading.database(cursor.name())


def _drop_tables(cursor: Cursor, reading: FactsBuilder) -> None:
    reading.drops_if_exists = _if_exists(cursor)
    _tables(cursor, reading)
    reading.dropped |= reading.tables
    reading.defines |= reading.tables
    _wait(cursor)
    cursor.any_word("RESTRICT", "CASCADE")
    cursor.finished()


def _drop_in_database(cursor: Cursor, reading: FactsBuilder) -> None:
    _in_database(cursor, reading)
    reading.dropped_in |= reading.databases
    cursor.finished()


def _drop_trigger(cursor: Cursor, reading: FactsBuilder) -> None:
    reading.drops_if_exists = _if_exists(cursor)
    database, name = cursor.qualified()
    reading.dropped_triggers.add(TableKey(reading.database(database), name))
    reading.dropped_in |= reading.databases
    cursor.finished()


def _drop_database(cursor: Cursor, reading: FactsBuilder) -> None:
    _database(cursor, reading)
    reading.dropped_in |= reading.databases
    cursor.finished()


def _package(reader: _Reader) -> _Reader:
    def read(cursor: Cursor, reading: FactsBuilder) -> None:
        cursor.expect("MariaDB's PACKAGE", found=reading.dialect.flavor is Flavor.MARIADB)
        cursor.words("BODY")
        reader(cursor, reading)

    return read


def _program(reader: _Reader) -> _Reader:
    def read(cursor: Cursor, reading: FactsBuilder) -> None:
        reading.defines_programs = True
        reader(cursor, reading)

    return read


def _alter_event(cursor: Cursor, reading: FactsBuilder) -> None:
    """ALTER EVENT, which may move the event into another database: RENAME TO, before the body."""
    _in_database(cursor, reading)
    while not cursor.done and not cursor.words("DO"):
        if cursor.words("RENAME", "TO"):
            reading.database(cursor.qualified()[0])
        else:
            cursor.next()


_BEFORE_OBJECT: Final = ("ONLINE", "OFFLINE", "IGNORE", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "AGGREGATE")
_GLOBAL_OBJECTS: Final[Mapping[str, _Reader]] = dict.fromkeys(
    ("SERVER", "TABLESPACE", "LOGFILE", "UNDO", "RESOURCE", "INSTANCE"), _global
)
CREATE: Final[Mapping[str, _Reader]] = {
    **_GLOBAL_OBJECTS,
    "USER": accounts.create_user,
    "ROLE": accounts.create_role,
    "REFERENCE": _spatial_reference,
    "TABLE": _create_table,
    "INDEX": _index,
    "VIEW": _program(_create_view),
    "TRIGGER": _create_trigger,
    "PROCEDURE": _program(_routine),
    "FUNCTION": _program(_create_function),
    "EVENT": _in_database,
    "PACKAGE": _program(_package(_routine)),
    "LIBRARY": _in_database,
    "SEQUENCE": _sequence,
    "DATABASE": _database,
    "SCHEMA": _database,
}
ALTER: Final[Mapping[str, _Reader]] = {
    **_GLOBAL_OBJECTS,
    "USER": accounts.alter_user,
    "TABLE": _alter_table,
    "VIEW": _program(_create_view),
    "PROCEDURE": _program(_in_database),
    "FUNCTION": _program(_in_database),
    "EVENT": _alter_event,
    "LIBRARY": _in_database,
    "SEQUENCE": _sequence,
    "DATABASE": _alter_database,
    "SCHEMA": _alter_database,
}
DROP: Final[Mapping[str, _Reader]] = {
    **_GLOBAL_OBJECTS,
    "USER": accounts.drop_accounts,
    "ROLE": accounts.drop_accounts,
    "REFERENCE": _spatial_reference,
    "TABLE": _drop_tables,
    "TABLES": _drop_tables,
    "VIEW": _program(_drop_tables),
    "SEQUENCE": _drop_tables,
    "INDEX": _index,
    "TRIGGER": _drop_trigger,
    "PROCEDURE": _program(_drop_in_database),
    "FUNCTION": _program(_drop_function),
    "EVENT": _drop_in_database,
    "PACKAGE": _program(_package(_drop_in_database)),
    "LIBRARY": _drop_in_database,
    "DATABASE": _program(_drop_database),
    "SCHEMA": _program(_drop_database),
}
