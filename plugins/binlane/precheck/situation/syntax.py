"""Is a text a statement to a server? Its own parser says so, and is kept from every effect.

A word that no grammar has is put behind the text, so that each question ends with a syntax error: at that word, if the
text was read to its end, and in front of it, if the text is none. Tables, views and functions are opened behind the
parser alone, and no privilege is asked for before, so the question is one for a source as well
(tried on MariaDB 10.11 and MySQL 9.7, ``tests/integration/precheck/test_syntax.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pymysql
from pymysql.constants import COMMAND

from binlane.apply.session.retry_verdicts import error_code, is_lost
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.sql.charset import MODES_OF_TEXT

if TYPE_CHECKING:
    from sqlalchemy import Engine

_BEHIND: Final = ") binlane_end"
_AT_END: Final = f"near '{_BEHIND}'"
PACKET_HEADER: Final = 1024
"""Bytes of a packet that are not the text's, with room to spare."""
_LONGEST_WAIT: Final = 28_800
"""Seconds: the servers' own default."""
_SYNTAX: Final = frozenset({1064, 1149})
_NAMES: Final = frozenset({1059, 1102, 1103, 1166, 1280, 1300})
"""Names that are too long, that end with a blank, or with bytes that are no character: no server takes them."""
_IGNORE_SPACE: Final = 1 << 3
_OTHER_GRAMMARS: Final = (1 << 9, 1 << 10)
"""MariaDB's ORACLE and MSSQL, whose names may stand in brackets; with both come ANSI_QUOTES and IGNORE_SPACE."""
_DATABASES: Final = "SELECT schema_name FROM information_schema.schemata WHERE schema_name <> 'information_schema'"


@dataclass(frozen=True, slots=True)
class SyntaxParser:
    """A server's parser, by a connection of its own."""

    _connection: Any
    flavor: Flavor
    _longest: int
    """Bytes of a text that the server takes."""

    def takes(self, text: bytes, charset_client: str, sql_mode: int) -> bool:
        """Whether the text may be a statement in a session with this client character set and these bits of sql_mode,
        whatever the other ones are; so does one that is too long for the server. Raises the driver's error for a lost
        connection."""
        if len(text) > self._longest:
            return True
        modes = {sql_mode, sql_mode | _IGNORE_SPACE}
        if self.flavor is Flavor.MARIADB and sql_mode & MODES_OF_TEXT["ANSI_QUOTES"]:
            modes.update(sql_mode | grammar for grammar in _OTHER_GRAMMARS)
        return any(self._reads_to_the_end(text, charset_client, mode) for mode in sorted(modes))

    def _reads_to_the_end(self, text: bytes, charset_client: str, sql_mode: int) -> bool:
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(f"SET SESSION character_set_client = {charset_client}, SESSION sql_mode = {sql_mode}")
            self._connection._execute_command(COMMAND.COM_STMT_PREPARE, text + f"\n{_BEHIND}".encode())
            self._connection._read_packet()
        except pymysql.err.MySQLError as exc:
            if is_lost(exc):
                raise
            if (code := error_code(exc)) in _SYNTAX:
                return _AT_END in str(exc.args[-1])
            return code not in _NAMES
        return True


@contextmanager
def syntax_parser(engine: Engine) -> Iterator[SyntaxParser]:
    """The parser of a server. Raises the driver's errors."""
    pooled = engine.raw_connection()
    connection: Any = pooled.driver_connection
    pooled.detach()
    try:
        flavor = Flavor.MARIADB if "MariaDB" in connection.get_server_info() else Flavor.MYSQL
        with connection.cursor() as cursor:
            # between two questions all of a window's files may be read
            cursor.execute(f"SET SESSION lc_messages = 'en_US', SESSION wait_timeout = {_LONGEST_WAIT}")
            cursor.execute("SELECT @@max_allowed_packet")
            longest = int(cursor.fetchall()[0][0]) - PACKET_HEADER
            cursor.execute(_DATABASES)
            _enter_any(connection, [str(name) for (name,) in cursor.fetchall()])
        yield SyntaxParser(connection, flavor, longest)
    finally:
        connection.close()


def _enter_any(connection: Any, databases: Sequence[str]) -> None:
    """Give the session a default database, without which servers read no further than to a name that has none. An
    account may see one that it cannot enter."""
    for name in databases:
        try:
            connection.select_db(name)
        except pymysql.err.MySQLError as exc:
            if is_lost(exc):
                raise
        else:
            return
