"""Functions that a MariaDB server calls to make a view, or to look at one: as the account that makes it or looks at it.

A function with ``SQL SECURITY INVOKER`` would do, as binlane's account, what its owner cannot. Every definition that
binlane makes on a target goes through ``definition_copy.make``, which asks here before a view. What looks at views does
so in a read-only transaction (``view_guard``), which stops changes of data and not SET GLOBAL, KILL and their like: the
functions that have these are found without a look at any view, in information_schema.routines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from binlane.bootstrap.sessions import Session
from binlane.errors import TargetError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SchemaObject
from binlane.servers.names import other_than
from binlane.sql.parse.lexer import Token
from binlane.sql.program_names import folded_name
from binlane.sql.programs.of_server import described, kept_database, server_statement
from binlane.sql.temporary_routines import tokens_of

ROUTINES: Final = (
    "SELECT routine_schema, routine_name, routine_type, routine_definition, sql_mode FROM information_schema.routines "
    "WHERE security_type = 'INVOKER' AND "
    + other_than("routine_schema", "('mysql', 'sys', 'information_schema', 'performance_schema')")
)
_HIDDEN: Final = "a text that this account may not read"
_FUNCTION: Final = "FUNCTION"


@dataclass(frozen=True, slots=True)
class InvokerRoutine:
    """A routine that runs with its invoker's privileges."""

    name: str
    """With its database."""
    plain_name: str
    """As the servers compare it, without its database."""
    is_function: bool
    tokens: Sequence[Token] | None
    """None if the account may not read its text, or nobody can."""

    @classmethod
    def of_rows(cls, rows: Iterable[Sequence[object]]) -> tuple[InvokerRoutine, ...]:
        """Of the rows of ``ROUTINES``, as text or bytes."""
        found = []
        for row in rows:
            database, name, kind, body, mode = (_text(each) for each in row)
            tokens = tokens_of(body, Flavor.MARIADB, mode or "")
            found.append(cls(f"{database}.{name}", folded_name(name or ""), kind == _FUNCTION, tokens))
        return tuple(found)


def changing_the_server(routines: Sequence[InvokerRoutine]) -> Iterator[tuple[str, str]]:
    """Each function that has, itself or in another one that it names, a statement which a read-only transaction does
    not stop; and that statement."""
    for each in routines:
        if each.is_function and each.tokens is not None:
            reached = _reached(routines, _names(each.tokens))
            whats = (server_statement(one.tokens) for one in (each, *reached) if one.tokens is not None)
            if (what := next(filter(None, whats), None)) is not None:
                yield each.name, what


def check_view(session: Session, view: SchemaObject, statement: bytes) -> None:
    """Raises TargetError for a view of a text that names a function with its invoker's privileges which has, itself or
    in another such routine that it names, what changes the server, the target's accounts or the channel's state."""
    if session.flavor is not Flavor.MARIADB:
        return
    routines = InvokerRoutine.of_rows(session.rows(ROUTINES))
    tokens = tokens_of(statement.decode("utf-8", "replace").replace("\ufffd", "x"), session.flavor) if routines else ()
    for each in _reached(routines, None if tokens is None else _names(tokens)):
        what = _HIDDEN if each.tokens is None else kept_database(each.tokens)
        if what is not None:
            has = what if what == _HIDDEN else described(what)
            raise TargetError(
                f"{view}: MariaDB may call {each.name} as this account to make the view, a routine with SQL SECURITY "
                f"INVOKER and {has}; make it SQL SECURITY DEFINER on both servers, or take it out of the view, or "
                "create the view on the target by hand"
            )


def _reached(routines: Sequence[InvokerRoutine], names: frozenset[str] | None) -> list[InvokerRoutine]:
    """The routines of these names, and those that they name in turn; all of them for no ``names``."""
    if names is None:
        return list(routines)
    found: list[InvokerRoutine] = []
    while more := [each for each in routines if each.plain_name in names and each not in found]:
        found += more
        names = names.union(*(_names(each.tokens or ()) for each in more))
    return found


def _names(tokens: Sequence[Token]) -> frozenset[str]:
    return frozenset(folded_name(token.text) for token in tokens if token.text)


def _text(value: object) -> str | None:
    if value is None:
        return None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
