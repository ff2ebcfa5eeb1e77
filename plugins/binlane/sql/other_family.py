"""MariaDB's own syntax rewritten for MySQL, where MySQL has a form of exactly the same meaning.

MariaDB's PERSISTENT is the standard's STORED. ``SET STATEMENT variable = value, ... FOR`` sets variables for one
statement. The clause is removed if each of its variables is either in the QUERY event's session already, with the value
that the statement ran under (tried on 10.11: ``Query_log_event`` reads them while the statement runs), or has no
influence on the result. A statement that sets any other variable stays unchanged, and the precheck refuses it by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from binlane.model import Flavor, SessionContext
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import TokenKind, Unreadable
from binlane.sql.words import StatementWords, words_of

_SETS_MODE: Final = re.compile(rb"\s*SET\s+STATEMENT\s[^;]*?\bsql_mode\b", re.I)
_READ_BY_MODE: Final = re.compile(rb"[\\\"]|\|\|")
_LOGGED: Final = frozenset(
    {
        *("foreign_key_checks", "unique_checks", "check_constraint_checks", "auto_increment_increment"),
        *("auto_increment_offset", "lc_time_names", "time_zone"),
    }
)
"""Session variables that are logged with the statement and do not influence how its text is parsed.

``sql_mode``, collations and ``explicit_defaults_for_timestamp`` do, so they are not here: the server parses the text
under the session's values, which are not logged, and executes it under the values of SET STATEMENT.
"""
_WITHOUT_EFFECT: Final = frozenset(
    {
        *("max_statement_time", "lock_wait_timeout", "innodb_lock_wait_timeout", "net_read_timeout"),
        *("net_write_timeout", "alter_algorithm", "sort_buffer_size", "join_buffer_size", "read_buffer_size"),
        *("read_rnd_buffer_size", "tmp_table_size", "tmp_memory_table_size", "max_heap_table_size", "slow_query_log"),
        *("long_query_time", "log_slow_verbosity", "profiling", "skip_parallel_replication", "binlog_format"),
        *("binlog_row_image", "binlog_annotate_row_events", "sql_log_bin"),
    }
)
"""Variables for the time limits, memory, monitoring or logging of a statement, without influence on its result."""


def as_in_family(sql: bytes, context: SessionContext, source: Flavor, target: Flavor) -> bytes:
    """A statement of a ``source`` server in the syntax of the ``target``; unchanged where no rewrite applies."""
    if (source, target) != (Flavor.MARIADB, Flavor.MYSQL):
        return sql
    upper = sql.upper()
    if not any(word in upper for word, _ in _REWRITES):
        return sql
    for word, rewrite in _REWRITES:
        if word in upper:
            try:
                sql = rewrite(words_of(sql, context, source))
            except Unreadable:
                return sql
    return sql


def read_under_another_mode(sql: bytes, source: Flavor) -> bool:
    """Whether the source parsed quotes, backslashes or ``||`` of the statement under a sql_mode that is not logged.

    ``SET STATEMENT sql_mode = .. FOR`` is parsed under the session's own mode and logged with the mode that it sets.
    """
    return source is Flavor.MARIADB and _SETS_MODE.match(sql) is not None and _READ_BY_MODE.search(sql) is not None


def _without_set_statement(words: StatementWords) -> bytes:
    head = [token.upper for token in words.tokens[:2]]
    if head != ["SET", "STATEMENT"]:
        return words.sql
    depth, name_is_next = 0, True
    for at, token in enumerate(words.tokens[2:], 2):
        if depth == 0 and token.upper == "FOR":
            return words.sql[words.places[at + 1][0] :] if at + 1 < len(words.tokens) else words.sql
        if name_is_next and token.text.lower() not in _LOGGED | _WITHOUT_EFFECT:
            return words.sql
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        name_is_next = depth == 0 and is_symbol(token, ",")
    return words.sql


def _stored(words: StatementWords) -> bytes:
    verb, kind = words.verb_and_kind()
    if verb not in ("CREATE", "ALTER") or kind != "TABLE":
        return words.sql
    behind = enumerate(pairwise(words.tokens), 1)
    edits = {
        at: b"STORED"
        for at, (before, token) in behind
        if token.kind is TokenKind.WORD and token.upper == "PERSISTENT" and is_symbol(before, ")")
    }
    return words.replaced(edits)


_REWRITES: Final[tuple[tuple[bytes, Callable[[StatementWords], bytes]], ...]] = (
    (b"STATEMENT", _without_set_statement),
    (b"PERSISTENT", _stored),
)
"""A word of the statement and the rewrite that it asks for. SET STATEMENT comes first: the clause precedes the rest."""
