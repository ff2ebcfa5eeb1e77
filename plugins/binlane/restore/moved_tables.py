"""What RENAME TABLE leaves in a table's definition: names of databases that the table, or what it needs, is not in any
more.

It changes foreign keys, and nothing else. MariaDB stores a default of a sequence with its database
(``nextval(`shop`.`numbers`)``), and a MERGE table names those of its tables that are in other databases. These are set
anew behind the move; any other place of such a name is refused in front of it. What is to be set is read from the
tables that were moved, so an attempt that is repeated finds what is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from binlane.apply.refusals import target_errors
from binlane.binlog.types.literals import identifier
from binlane.bootstrap.definition_copy import read_definition
from binlane.bootstrap.sessions import Session
from binlane.errors import PrecheckError
from binlane.model import Flavor, SchemaObject, TableKey
from binlane.servers.names import among, literals
from binlane.sql.charset import definition_context
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import TokenKind
from binlane.sql.words import StatementWords, words_of

_MERGED: Final = "engine IN ('MRG_MyISAM', 'MRG_MYISAM')"


def require_movable(session: Session, databases: Mapping[str, str], on: str) -> None:
    """Raises PrecheckError for a table whose definition names one of the ``databases``, which get these new names,
    where it cannot be set anew. ``on``: how the restore goes on."""
    for key in _candidates(session, databases):
        _alteration(session, key, databases, on)


def set_names(session: Session, databases: Mapping[str, str], on: str) -> None:
    """Set anew what tables that were moved from ``databases`` to these new names still have of the former ones. Raises
    as ``require_movable``, and TargetError."""
    for key in _candidates(session, {new: new for new in databases.values()}):
        if (statement := _alteration(session, key, databases, on)) is not None:
            with target_errors(f"target: table {key}"):
                # names without a database are of the session's
                session.execute(f"USE {identifier(key.database)}")
                session.execute(statement)


def _candidates(session: Session, databases: Mapping[str, str]) -> list[TableKey]:
    """Tables whose definition may name a database."""
    if not databases:
        return []
    of_database = among("table_schema", literals(databases))
    queries = [f"SELECT table_schema, table_name FROM information_schema.tables WHERE {_MERGED} AND {of_database}"]
    if session.flavor is Flavor.MARIADB:
        queries.append(
            f"SELECT table_schema, table_name FROM information_schema.columns WHERE column_default LIKE '%`%' AND "
            f"{of_database}"
        )
    return sorted({TableKey(*row) for query in queries for row in session.texts(query)}, key=str)


def _alteration(session: Session, key: TableKey, databases: Mapping[str, str], on: str) -> bytes | None:
    definition = read_definition(session, SchemaObject("table", key.database, key.table))
    return alteration(key, definition.statement, databases, session.flavor, on)


def alteration(key: TableKey, shown: bytes, databases: Mapping[str, str], flavor: Flavor, on: str) -> bytes | None:
    """The ALTER TABLE that gives a table, of which SHOW CREATE TABLE says ``shown``, the new names of ``databases``;
    None if it names none of them, or only in foreign keys. Raises PrecheckError for a name in another place."""
    words = words_of(shown, definition_context("", "utf8mb4"), flavor)
    edits = {
        number: identifier(databases[token.text]).encode()
        for number, token in enumerate(words.tokens)
        if token.kind is TokenKind.NAME and token.text in databases and _is_qualifier(words, number)
    }
    clauses, known = list[bytes](), set[int]()
    for head, first, last in _parts(words):
        inside = {number for number in edits if first <= number <= last}
        known |= inside
        if inside and head:
            clauses.append(head + _replaced(words, edits, first, last))
    if lost := sorted(edits.keys() - known):
        name = words.tokens[lost[0]].text
        raise PrecheckError(
            f"target: table {key}: expected the name of its database, {name}, in a default, in UNION or in a foreign "
            f"key, where it can be changed to {databases[name]}, found it elsewhere in its definition; make the table "
            f"without it, {on}"
        )
    table = f"ALTER TABLE {identifier(key.database)}.{identifier(key.table)} ".encode()
    return table + b", ".join(clauses) if clauses else None


def _is_qualifier(words: StatementWords, number: int) -> bool:
    behind = number + 1 < len(words.tokens) and is_symbol(words.tokens[number + 1], ".")
    return behind and not (number and is_symbol(words.tokens[number - 1], "."))


def _parts(words: StatementWords) -> Iterator[tuple[bytes, int, int]]:
    """The parts of a definition in which a database's name may stand: the clause of ALTER TABLE that sets the part, and
    its first and last token. Without a clause: foreign keys, which RENAME TABLE changes."""
    depth, begin = 0, 0
    for number, token in enumerate(words.tokens):
        if is_symbol(token, "("):
            depth += 1
            begin = number + 1 if depth == 1 else begin
        elif is_symbol(token, ")"):
            depth -= 1
        elif is_symbol(token, ",") and depth == 1:
            begin = number + 1
        elif token.upper == "DEFAULT" and depth == 1 and words.tokens[begin].kind is TokenKind.NAME:
            column = words.bytes_of(begin)
            yield b"ALTER COLUMN " + column + b" SET DEFAULT ", number + 1, _end(words, number + 1)
        elif token.upper == "REFERENCES" and depth == 1:
            yield b"", number + 1, number + 3
        elif token.upper == "UNION" and depth == 0:
            yield b"", number, number + 1
            yield b"UNION = ", number + 2, _end(words, number + 2)


def _end(words: StatementWords, number: int) -> int:
    """The last token of the expression that begins there: a literal, a list in parentheses, or a function's call."""
    if not is_symbol(words.tokens[number], "("):
        if number + 1 == len(words.tokens) or not is_symbol(words.tokens[number + 1], "("):
            return number
        number += 1
    depth = 0
    for at in range(number, len(words.tokens)):
        depth += is_symbol(words.tokens[at], "(") - is_symbol(words.tokens[at], ")")
        if depth == 0:
            return at
    return len(words.tokens) - 1


def _replaced(words: StatementWords, edits: Mapping[int, bytes], first: int, last: int) -> bytes:
    """The bytes of these tokens, with what stands between them."""
    found, at = b"", words.places[first][0]
    for number in range(first, last + 1):
        begins, ends = words.places[number]
        found += words.sql[at:begins] + edits.get(number, words.bytes_of(number))
        at = ends
    return found
