"""What SQLAlchemy knows of a server, told apart by what its statements depend on, not by the engine.

Each engine has a dialect of its own, for which SQLAlchemy compiles each statement anew: a window asks a server by
several engines, for sessions with other proofs and for other threads, and compiling was a sixth of what its program
takes. Dialects of servers of one family, version and way to compare names are equal here, so a process compiles a
statement once.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy.dialects import registry
from sqlalchemy.dialects.mysql.pymysql import MySQLDialect_pymysql
from sqlalchemy.util import LRUCache

NAME: Final = "mysql+binlane"
"""Of URLs whose engines have the dialect."""
COMPILED: Final[LRUCache[Any, Any]] = LRUCache(1_000)
"""Statements of the process, compiled, by dialect."""


class ServerDialect(MySQLDialect_pymysql):
    """SQLAlchemy's dialect of PyMySQL, equal to those of servers that get the same texts."""

    supports_statement_cache = True

    def _facts(self) -> tuple[object, ...]:
        """What its compilers go by. Before the first connection nothing is known of the server."""
        known = vars(self)
        return tuple(known.get(name) for name in ("server_version_info", "is_mariadb", "_sql_mode", "_casing"))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ServerDialect) and self._facts() == other._facts())

    def __hash__(self) -> int:
        return hash(self._facts())


registry.register(NAME.replace("+", "."), __name__, ServerDialect.__name__)
