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
VIEWS: Final = "SELECT table_name FROM information_schema.tables WHERE table_type = 'VIEW' AND " + other_than(
    "table_schema", "('mysql', 'sys', 'information_schema', 'performance_schema')"
)
"""Their names alone, for which a server opens none."""
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
    in another such routine that it names, what changes the server, the target's accounts or the channel's state.

    A view that it names is opened, too, and its functions are called: its text cannot be read without that, so any such
    function may be one of them.
    """
    if session.flavor is not Flavor.MARIADB:
        return
    routines = InvokerRoutine.of_rows(session.rows(ROUTINES))
    if all(_changes(each) is None for each in routines):
        return
    tokens = tokens_of(statement.decode("utf-8", "replace").replace("\ufffd", "x"), session.flavor)
    names = None if tokens is None else _names(tokens)
    place = ""
    views = {folded_name(_text(name) or "") for (name,) in session.rows(VIEWS)}
    if names is not None and not names.isdisjoint(views):
        names, place = None, ", behind a view that it names"
    for each in _reached(routines, names):
        if (what := _changes(each)) is not None:
            has = what if what == _HIDDEN else described(what)
            raise TargetError(
                f"{view}: MariaDB may call {each.name} as this account to make the view{place}, a routine with SQL "
                f"SECURITY INVOKER and {has}; make it SQL SECURITY DEFINER on both servers, or take it out of the "
                "view, or create the view on the target by hand"
            )


def _changes(routine: InvokerRoutine) -> str | None:
    return _HIDDEN if routine.tokens is None else kept_database(routine.tokens)


def _reached(routines: Sequence[InvokerRoutine], names: frozenset[str] | None) -> list[InvokerRoutine]:
    """The routines of these names, and those that they name in turn; for no ``names``, those of every function: a view
    calls no procedure."""
    if names is None:
        names = frozenset(each.plain_name for each in routines if each.is_function)
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
