"""Functions that a MariaDB server calls to make a view, or to look at one: as the account that makes it or looks at it.

A function with ``SQL SECURITY INVOKER`` would do, as binlane's account, what its owner cannot. Every definition that
binlane makes on a target goes through ``definition_copy.make``, which asks here before a view. What looks at views does
so in a read-only transaction (``view_guard``), which stops changes of data and not SET GLOBAL, KILL and their like: the
functions that have these are found without a look at any view.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import pymysql

from binlane.apply.session.retry_verdicts import error_code
from binlane.bootstrap.sessions import Session
from binlane.errors import TargetError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SchemaObject, SessionContext
from binlane.servers.names import literals, other_than
from binlane.servers.stored_bodies import Ask, CatalogBody, ProgramIsGone, program_error, stored_body
from binlane.sql.charset import decoded, tokens_in
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.functions import BEFORE_PARENTHESIS, BUILTIN
from binlane.sql.parse.lexer import UNDECODED, Token, Unreadable
from binlane.sql.program_names import folded_name
from binlane.sql.programs.of_server import changed_data, described, kept_database, server_statement
from binlane.sql.temporary_routines import tokens_of

_OTHERS: Final = other_than("routine_schema", "('mysql', 'sys', 'information_schema', 'performance_schema')")
_ROUTINES: Final = (
    "SELECT routine_schema, routine_name, LOWER(routine_type), routine_definition, sql_mode, character_set_client "
    f"FROM information_schema.routines WHERE security_type = '{{security}}' AND {_OTHERS}"
)
ROUTINES: Final = _ROUTINES.format(security="INVOKER")
_BY_DEFINER: Final = _ROUTINES.format(security="DEFINER")
_NAMES_BY_DEFINER: Final = (
    f"SELECT routine_name FROM information_schema.routines WHERE security_type = 'DEFINER' AND {_OTHERS}"
)
VIEWS: Final = "SELECT table_name FROM information_schema.tables WHERE table_type = 'VIEW' AND " + other_than(
    "table_schema", "('mysql', 'sys', 'information_schema', 'performance_schema')"
)
"""Their names alone, for which a server opens none."""
HIDDEN: Final = "a text that this account may not read"
"""In place of what a routine does."""
_PROCEDURE: Final = "procedure"
_SIGNS: Final = frozenset("()+-*/%=<>!&|^~.,;:@?{}")
"""First characters of tokens that are no names."""


@dataclass(frozen=True, slots=True)
class InvokerRoutine:
    """A routine that runs with its invoker's privileges."""

    name: str
    """With its database."""
    plain_name: str
    """As the servers compare it, without its database."""
    is_procedure: bool
    """Which no view calls; it calls functions, those of packages too."""
    tokens: Sequence[Token] | None
    """None if the account may not read its text, or nobody can."""


def invoker_routines(
    rows: Sequence[Sequence[object]], ask: Ask, flavor: Flavor = Flavor.MARIADB
) -> tuple[InvokerRoutine, ...]:
    """Of the rows of ``ROUTINES``, as text or bytes, of a server of this family. ``ask``: by the same account."""
    found = []
    for row in rows:
        database, name, kind, body, mode, client = (_text(each) for each in row)
        database, name, kind, mode = database or "", name or "", kind or "", mode or ""
        text = body
        if body is not None:
            shown = CatalogBody(kind, database, name, body, mode, client or "")
            try:
                text = stored_body(shown, flavor, ask)
            except ProgramIsGone:
                continue
        tokens = tokens_of(text, flavor, mode)
        found.append(InvokerRoutine(f"{database}.{name}", folded_name(name), kind == _PROCEDURE, tokens))
    return tuple(found)


def asking(session: Session) -> Ask:
    """Of a session on the target, whose driver errors stay."""

    def ask(statement: str) -> Sequence[Sequence[object]]:
        try:
            return session.rows(statement)
        except pymysql.err.MySQLError as exc:
            if (found := program_error(error_code(exc))) is not None:
                raise found from exc
            raise

    return ask


def changing_the_server(routines: Sequence[InvokerRoutine]) -> Iterator[tuple[str, str]]:
    """Each function that has, itself or in another one that it names, a statement which a read-only transaction does
    not stop; and that statement."""
    for each in routines:
        if not each.is_procedure and each.tokens is not None:
            reached = _named(routines, [each])
            whats = (server_statement(one.tokens) for one in reached if one.tokens is not None)
            if (what := next(filter(None, whats), None)) is not None:
                yield each.name, what


def check_view(
    session: Session, view: SchemaObject, statement: bytes, context: SessionContext, *, of_dump: bool = False
) -> None:
    """Raises TargetError for a view of a text that names a function with its invoker's privileges which has, itself or
    in another such routine that it names, what changes the server, the target's accounts, the channel's state or data.
    ``context``: how the server will read the statement; where its names are not certain, it may call any function.
    ``of_dump``: so may a function with its definer's privileges, whom the dump has chosen.

    A view that it names is opened, too, and its functions are called: its text cannot be read without that, so any
    function with its invoker's privileges may be one of them. Such a function may change data here: a view that binlane
    has made has none.
    """
    if session.flavor is not Flavor.MARIADB:
        return
    names = _names_in(statement, context, session.flavor)
    routines = invoker_routines(session.rows(ROUTINES), asking(session))
    if of_dump and (names is None or not names.isdisjoint(_plain_names(session, _NAMES_BY_DEFINER))):
        by_definer = invoker_routines(session.rows(_BY_DEFINER), asking(session))
        for each in _reached((*routines, *by_definer), names):
            if (what := _changes(each) or _changes_data(each)) is not None:
                raise TargetError(
                    f"{view}: MariaDB calls {each.name} to make the view, a routine with {_shown(what)}; take the "
                    "view out of a copy of the dump, restore, and make it by hand"
                )
    if all(_changes(each) is None and _changes_data(each) is None for each in routines):
        return
    reached, place = [(each, _changes(each) or _changes_data(each)) for each in _reached(routines, names)], ""
    if names is None or not names.isdisjoint(_plain_names(session, VIEWS)):
        reached += [(each, _changes(each)) for each in _reached(routines, None)]
        place = ", or behind a view that it names"
    for each, what in reached:
        if what is not None:
            raise TargetError(
                f"{view}: MariaDB may call {each.name} as this account to make the view{place}, a routine with SQL "
                f"SECURITY INVOKER and {_shown(what)}; make it SQL SECURITY DEFINER on both servers, or take it out of "
                "the view, or create the view on the target by hand"
            )


def routines_behind(session: Session, statement: bytes, context: SessionContext) -> Sequence[InvokerRoutine]:
    """The functions that a view calls, and the routines that they name, whosever privileges they have: each function of
    the server if the view's names are not certain. ``context``: how the server will read the statement.

    Servers have thousands of routines, and copies thousands of views: most call no stored function, and of the others
    only the bodies of the names that are reached are read.
    """
    found, seen = list[InvokerRoutine](), set[str]()
    wanted = _called_in(statement, context, session.flavor)
    if wanted is None:
        rows = [row for query in (ROUTINES, _BY_DEFINER) for row in session.rows(query)]
        return _reached(invoker_routines(rows, asking(session), session.flavor), None)
    while wanted:
        seen |= wanted
        named = f" AND routine_name IN {literals(wanted)}"
        rows = [row for query in (ROUTINES, _BY_DEFINER) for row in session.rows(query + named)]
        more = [
            each for each in invoker_routines(rows, asking(session), session.flavor) if found or not each.is_procedure
        ]
        found += more
        wanted = frozenset(name for each in more for name in _names(each.tokens or ()) if name[0] not in _SIGNS) - seen
    return found


def _called_in(statement: bytes, context: SessionContext, flavor: Flavor) -> frozenset[str] | None:
    """The names in front of a parenthesis that the family has not built in; None if they are not certain."""
    try:
        tokens = tokens_in(statement, context, flavor)
    except Unreadable:
        return None
    if UNDECODED in decoded(statement, context):
        return None
    built_in = BUILTIN[flavor] | BEFORE_PARENTHESIS
    calls = (
        token.text
        for at, (token, behind) in enumerate(pairwise(tokens))
        if is_symbol(behind, "(") and (token.upper not in built_in or (at > 0 and is_symbol(tokens[at - 1], ".")))
    )
    return frozenset(folded_name(each) for each in calls if each)


def _names_in(statement: bytes, context: SessionContext, flavor: Flavor) -> frozenset[str] | None:
    try:
        return None if UNDECODED in decoded(statement, context) else _names(tokens_in(statement, context, flavor))
    except Unreadable:
        return None


def _changes(routine: InvokerRoutine) -> str | None:
    return HIDDEN if routine.tokens is None else kept_database(routine.tokens)


def _changes_data(routine: InvokerRoutine) -> str | None:
    return changed_data(routine.tokens or ())


def _shown(what: str) -> str:
    return what if what == HIDDEN else described(what)


def _plain_names(session: Session, names: str) -> set[str]:
    return {folded_name(_text(name) or "") for (name,) in session.rows(names)}


def _reached(routines: Sequence[InvokerRoutine], names: frozenset[str] | None) -> list[InvokerRoutine]:
    """The functions of these names, or all of them for no ``names``, and the routines that they name in turn: what
    calls a function calls no procedure by its name, but functions do. Packages are functions here."""
    called = [each for each in routines if not each.is_procedure and (names is None or each.plain_name in names)]
    return _named(routines, called)


def _named(routines: Sequence[InvokerRoutine], called: Sequence[InvokerRoutine]) -> list[InvokerRoutine]:
    """These, and the routines that they name in turn."""
    found = list(called)
    names = frozenset[str]().union(*(_names(each.tokens or ()) for each in found))
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
