"""Functions of a library of the target that the text of a view or of a program calls.

Such a function does what it does as the server's own account, whoever makes or reads the view, and MariaDB calls one to
make it. A view that a dump or a source brings calls the server's own functions and stored ones alone, and so do the
functions that it calls. Programs of a dump do as well; those of a source may call what their server has, too, unless a
view reaches them. Servers show a stored function as its view was typed, often without a database, so the target's
parser is asked which names it takes for a function of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import pymysql

from binlane.apply.session.cached_state import NEUTRAL_DATABASE
from binlane.apply.session.retry_verdicts import error_code, is_lost
from binlane.binlog.types.literals import identifier
from binlane.bootstrap.sessions import Session
from binlane.bootstrap.view_functions import HIDDEN, routines_behind
from binlane.errors import TargetError
from binlane.model import Flavor, SchemaObject, SessionContext
from binlane.safe_text import shown
from binlane.servers.function_answers import NOT_OWN, NOTHING_PREPARED
from binlane.sql.charset import tokens_in
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.functions import BEFORE_PARENTHESIS, BUILTIN, LATER
from binlane.sql.parse.lexer import Token, TokenKind, Unreadable
from binlane.sql.program_names import folded_name

_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)
_OTHERS: Final = "expected calls of the server's own functions and of stored ones, found"
_ORIGIN: Final = "which the target has from a library, or which this version does not know"


def check_library_calls(session: Session, made: SchemaObject, statement: bytes, context: SessionContext) -> None:
    """Raises TargetError for a definition that calls a function of a library of the target, or whose calls cannot be
    told. ``session``: on the target; ``context``: how the server will read the statement."""
    try:
        names = sorted(_called(tokens_in(statement, context, session.flavor), session.flavor))
    except Unreadable as unreadable:
        raise TargetError(
            f"{made}: expected a {made.kind} whose text can be split into words, found {unreadable}; leave the "
            f"{made.kind} out and create it on the target by hand"
        ) from None
    if (found := _of_library(session, names)) is not None:
        raise TargetError(
            f"{made}: {_OTHERS} {shown(found)}(), {_ORIGIN}; take it out of the {made.kind}, or leave the {made.kind} "
            "out and create it on the target by hand"
        )


def check_library_calls_behind(session: Session, view: SchemaObject, statement: bytes, context: SessionContext) -> None:
    """Raises TargetError for a view that names a stored function which calls a function of a library of the target,
    itself or in another routine that it names, or whose text the account may not read. Parameters as in
    ``check_library_calls``."""
    for routine in routines_behind(session, statement, context):
        if routine.tokens is None:
            what = HIDDEN
        elif (found := _of_library(session, sorted(_called(routine.tokens, session.flavor)))) is not None:
            what = f"{shown(found)}(), {_ORIGIN}"
        else:
            continue
        raise TargetError(
            f"{view}: {_OTHERS} {shown(routine.name)}, a routine with {what}; take it out of the view, or leave the "
            "view out and create it on the target by hand"
        )


def _called(tokens: Sequence[Token], flavor: Flavor) -> Iterator[str]:
    """The names that are called without a database, and that the family has not built in, as a server compares them."""
    built_in = BUILTIN[flavor] | LATER[flavor] | BEFORE_PARENTHESIS
    for at, (token, behind) in enumerate(pairwise(tokens)):
        is_call = token.kind in _NAMES and is_symbol(behind, "(") and not (at and is_symbol(tokens[at - 1], "."))
        if is_call and token.text.upper() not in built_in:
            yield folded_name(token.text)


def _of_library(session: Session, names: Iterable[str]) -> str | None:
    """The first of these names that is a function of the server's own, or of a library. In quotes no name is a word of
    the grammar."""
    names = [name for name in names if name.isascii()]
    if not names:
        return None
    [(before,)] = session.texts("SELECT DATABASE()")
    # a stored function of the default database is none of them
    session.execute(f"USE {NEUTRAL_DATABASE}")
    try:
        return next((name for name in names if _is_own(session, name)), None)
    finally:
        if before:
            with contextlib.suppress(pymysql.err.MySQLError):
                session.execute(f"USE {identifier(before)}")


def _is_own(session: Session, name: str) -> bool:
    call = f"DO {identifier(name)}()".encode()
    # as bytes it is the same text in each character set and sql_mode
    session.execute(f"SET @binlane_call = 0x{call.hex()}")
    try:
        session.execute("PREPARE binlane_call FROM @binlane_call")
    except pymysql.err.MySQLError as exc:
        if is_lost(exc) or error_code(exc) == NOTHING_PREPARED:
            raise
        return error_code(exc) not in NOT_OWN
    session.execute("DEALLOCATE PREPARE binlane_call")
    return True
