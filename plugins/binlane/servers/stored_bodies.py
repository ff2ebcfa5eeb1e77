"""The bodies of routines, triggers and events, as a server executes them.

``information_schema`` shows another text: in literals it leaves escapes out (of two backslashes one, and MySQL also of
two quotes), so code may stand there inside of what looks like a literal, and the other way about. SHOW CREATE has the
text itself, converted into the connection's character set.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from binlane.binlog.types.literals import identifier
from binlane.model import Flavor
from binlane.sql.parse.created_body import body_of
from binlane.sql.parse.lexer import UNDECODED, Dialect

GONE: Final = frozenset({1049, 1146, 1305, 1360, 1539, 4091})
"""Errors for a database, table or view, routine, trigger, event or sequence that somebody has dropped since."""
_OF_SESSION: Final = frozenset({0, 1053, 1158, 1159, 1160, 1161, 1205, 1317, 1927, 1969, 3024})
"""Errors that are the session's and not the program's, beside those of the client, which have 2000 and more."""
_OF_CLIENT: Final = range(2000, 3000)
_ESCAPED: Final = re.compile(r"['\"`\\]")
_STATEMENTS: Final = {**dict.fromkeys(("function", "procedure", "package", "package body", "trigger"), 2), "event": 3}
"""The column of SHOW CREATE that has the statement."""
_UNCERTAIN: Final = {"swe7": "", "armscii8": "", "sjis": "\\", "ujis": "\\"}
"""Client character sets of which a server converts letters into signs of SQL, or signs into letters, and the sign that
such a text must have; "" for any text. Tried on both families with each character of each set."""
Ask: TypeAlias = Callable[[str], Sequence[Sequence[object]]]
"""The rows of a statement; raises what ``program_error`` finds."""


class ProgramIsGone(Exception):  # noqa: N818 - not an error of binlane: whoever reads the catalogue leaves it out
    """Somebody has dropped the program since its name was read."""


class ProgramIsBroken(Exception):  # noqa: N818 - not an error of binlane: nobody can tell its text
    """The server cannot read the program itself, as behind an upgrade that has made one of its names a keyword."""


def is_gone(error: BaseException) -> bool:
    """Whether it is a driver's error, or has one as its cause, for what somebody has dropped since."""
    return any(one is not None and not GONE.isdisjoint(one.args[:1]) for one in (error, error.__cause__))


def program_error(code: int) -> Exception | None:
    """What an error's number says of the program; None if it is the session's own."""
    if code in GONE:
        return ProgramIsGone()
    return None if code in _OF_SESSION or code in _OF_CLIENT else ProgramIsBroken()


class CatalogBody(NamedTuple):
    """A body as ``information_schema`` shows it."""

    kind: str
    """As ``schema.programs.Program``'s."""
    database: str
    name: str
    text: str
    sql_mode: str
    client: str
    """The character set of the client that has made it."""


def stored_body(body: CatalogBody, flavor: Flavor, ask: Ask) -> str | None:
    """The text that the server executes; None if the account may not read it. Behind UNDECODED stands a text that no
    connection can be sure of. Raises ProgramIsGone."""
    text: str | None = body.text
    if body.text.startswith(UNDECODED):
        return text
    if body.kind in _STATEMENTS and _ESCAPED.search(body.text) is not None:
        try:
            text = _created(body, flavor, ask)
        except ProgramIsBroken:
            return f"{UNDECODED} {body.text}"
    if text is None:
        return None
    sign = _UNCERTAIN.get(body.client)
    return text if sign is None or sign not in text else f"{UNDECODED} {text}"


def _created(body: CatalogBody, flavor: Flavor, ask: Ask) -> str | None:
    rows = ask(f"SHOW CREATE {body.kind.upper()} {identifier(body.database)}.{identifier(body.name)}")
    statement, modes = rows[0][_STATEMENTS[body.kind]], body.sql_mode.split(",")
    if statement is None:
        return None
    # the server has converted it into the connection's character set
    text = statement.decode("utf-8", "replace") if isinstance(statement, bytes) else str(statement)
    dialect = Dialect(flavor, "ANSI_QUOTES" in modes, "NO_BACKSLASH_ESCAPES" in modes)
    found = body_of(text, body.kind, dialect)
    return f"{UNDECODED} {body.text}" if found is None else found


def asking(connection: Connection) -> Ask:
    """Of a connection, whose rows come as bytes here: a text may have some that are no UTF-8."""

    def ask(statement: str) -> Sequence[Sequence[object]]:
        try:
            with _in_bytes(connection):
                return [tuple(row) for row in connection.exec_driver_sql(statement.replace("%", "%%"))]
        except DBAPIError as exc:
            arguments = () if exc.orig is None else exc.orig.args
            if (found := program_error(arguments[0] if arguments and isinstance(arguments[0], int) else 0)) is not None:
                raise found from exc
            raise

    return ask


@contextlib.contextmanager
def _in_bytes(connection: Connection) -> Iterator[None]:
    driver: Any = connection.connection.driver_connection
    before, driver.use_unicode = driver.use_unicode, False
    try:
        yield
    finally:
        driver.use_unicode = before
