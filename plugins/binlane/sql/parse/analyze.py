"""``analyze``: the databases and objects that a logged statement touches, or the reason why they are not known.

Each first word has its reader. Readers never guess: a text that is not read to its end, or whose two readings differ,
is UNKNOWN with a reason, and is not sent (docs/invariants.md, 6).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from binlane.model import Flavor
from binlane.sql.parse import account_statements as accounts
from binlane.sql.parse import definitions
from binlane.sql.parse import row_statements as changes
from binlane.sql.parse.cursor import Cursor, FactsBuilder, is_symbol
from binlane.sql.parse.facts import EMPTY, StatementFacts, StatementKind
from binlane.sql.parse.lexer import Dialect, Token, Unreadable, lex
from binlane.sql.parse.queries import read_expressions
from binlane.sql.parse.set_statement import clause_of, computed
from binlane.sql.parse.unsafe import unsafe_part

__all__ = ["StatementFacts", "StatementKind", "analyze", "last_word"]

_CACHED_LENGTH: Final = 4096
"""Characters. Longer statements hardly ever repeat, and would fill the cache."""


def analyze(
    sql: str,
    *,
    database: str | None,
    sql_mode_ansi_quotes: bool = False,
    no_backslash_escapes: bool = False,
    oracle: bool = False,
    flavor: Flavor,
) -> StatementFacts:
    """The facts of ``sql``. ``database``: the session's default database; None or empty (as in events): none.

    Never raises: a text that is not read exactly has the kind UNKNOWN and a reason.
    """
    default = None if database == "" else database
    dialect = Dialect(flavor, sql_mode_ansi_quotes, no_backslash_escapes, oracle)
    read = _cached if len(sql) <= _CACHED_LENGTH else _analyze
    return read(sql, default, dialect)


def _analyze(sql: str, database: str | None, dialect: Dialect) -> StatementFacts:
    tokens: list[Token] = []
    reading = FactsBuilder(dialect, database)
    try:
        lex(sql, dialect, tokens)
        while tokens and is_symbol(tokens[-1], ";"):
            tokens.pop()
        read_tokens(tokens, reading)
        facts = reading.facts()
    except Unreadable as unreadable:
        facts = _unknown(tokens, str(unreadable), reading)
    except RecursionError:
        facts = _unknown(tokens, "nested too deeply", reading)
    if database is not None and _asks_for_database(tokens, facts):
        facts = replace(facts, default_database=database)
    unsafe = unsafe_part(tokens, facts, dialect.flavor, oracle=dialect.oracle)
    return facts if unsafe is None else replace(facts, unsafe=unsafe)


def last_word(sql: str, *, database: str | None, dialect: Dialect) -> str:
    """The word at which the reading of a text stopped that ``analyze`` does not read: one that was not expected, or, of
    a text that is not split into words to its end, the last one. Empty if that is not known."""
    tokens: list[Token] = []
    try:
        lex(sql, dialect, tokens)
    except Unreadable:
        return tokens[-1].text if tokens else ""
    while tokens and is_symbol(tokens[-1], ";"):
        tokens.pop()
    try:
        read_tokens(tokens, FactsBuilder(dialect, database or None))
    except Unreadable as unreadable:
        return unreadable.word
    except RecursionError:
        return ""
    return ""


def _asks_for_database(tokens: Sequence[Token], facts: StatementFacts) -> bool:
    changes = facts.kind in (StatementKind.DML, StatementKind.LOAD_DATA) or facts.create_select
    return changes and any(
        word.upper in ("DATABASE", "SCHEMA") and is_symbol(begin, "(") and is_symbol(end, ")")
        for word, begin, end in zip(tokens, tokens[1:], tokens[2:], strict=False)
    )


_cached = functools.lru_cache(maxsize=4096)(_analyze)


def read_tokens(tokens: Sequence[Token], reading: FactsBuilder) -> None:
    cursor = Cursor(tokens)
    if reading.dialect.flavor is Flavor.MARIADB:
        clause = clause_of(tokens)
        read_expressions(computed(tokens, clause), reading)
        cursor.at = clause.body
    first = cursor.peek()
    reader = changes.query if is_symbol(first, "(") else READERS.get(first.upper)
    if reader is None:
        raise Unreadable(EMPTY if cursor.done else "a statement that logs are not known to hold", first.text)
    cursor.next()
    if reader in _CHANGES:
        reading.kind, reading.commits_implicitly = StatementKind.DML, False
    reader(cursor, reading)


def _unknown(tokens: list[Token], reason: str, reading: FactsBuilder) -> StatementFacts:
    at = 0
    if reading.dialect.flavor is Flavor.MARIADB:
        with contextlib.suppress(Unreadable):
            at = clause_of(tokens).body
    words = [token.upper for token in tokens[at : at + _FIRST_WORDS]]
    commits = "".join(words[:1]) not in _NEVER_COMMIT or accounts.is_about_accounts(words)
    return StatementFacts(StatementKind.UNKNOWN, commits_implicitly=commits, reason=reason)


def _global(cursor: Cursor, reading: FactsBuilder) -> None:
    reading.kind = StatementKind.GLOBAL


def _set(cursor: Cursor, reading: FactsBuilder) -> None:
    """SET GLOBAL and SET PASSWORD are server-wide; session variables are logged in the events, not as SET."""
    if cursor.words("PASSWORD"):
        accounts.set_password(cursor, reading)
    elif cursor.words("DEFAULT", "ROLE"):
        accounts.set_default_role(cursor, reading)
    elif cursor.any_word("GLOBAL", "PERSIST", "PERSIST_ONLY") is not None:
        reading.kind, reading.commits_implicitly = StatementKind.GLOBAL, False
    else:
        raise Unreadable("SET of a session's variable", cursor.peek().text)


def _start(cursor: Cursor, reading: FactsBuilder) -> None:
    if cursor.words("TRANSACTION"):
        _transaction(reading, ends_or_begins=True)
    else:
        reading.kind = StatementKind.GLOBAL


def _begin(cursor: Cursor, reading: FactsBuilder) -> None:
    cursor.words("WORK")
    cursor.finished()  # MariaDB's BEGIN NOT ATOMIC is a compound statement
    _transaction(reading, ends_or_begins=True)


def _end(cursor: Cursor, reading: FactsBuilder) -> None:
    cursor.words("WORK")
    _transaction(reading, ends_or_begins=not cursor.words("TO"))


def _savepoint(cursor: Cursor, reading: FactsBuilder) -> None:
    _transaction(reading, ends_or_begins=False)


def _xa(cursor: Cursor, reading: FactsBuilder) -> None:
    verb = cursor.any_word("START", "BEGIN", "END", "PREPARE", "COMMIT", "ROLLBACK")
    cursor.expect("a verb of XA", found=verb is not None)
    _transaction(reading, ends_or_begins=True)


def _transaction(reading: FactsBuilder, *, ends_or_begins: bool) -> None:
    reading.kind, reading.commits_implicitly = StatementKind.TRANSACTION, False
    reading.ends_or_begins = ends_or_begins


_TRANSACTION_VERBS: Final = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA")
_GLOBAL_VERBS: Final = (
    "INSTALL", "UNINSTALL", "RESET", "PURGE", "CHANGE", "STOP", "SHUTDOWN", "RESTART", "KILL",
)  # fmt: skip
_FIRST_WORDS: Final = 4
"""CREATE OR REPLACE USER."""
_CHANGES: Final = frozenset(changes.READERS.values())
_NEVER_COMMIT: Final = frozenset({*changes.READERS, *_TRANSACTION_VERBS, "SET", "("})
READERS: Final[Mapping[str, Callable[[Cursor, FactsBuilder], None]]] = {
    **changes.READERS,
    "CREATE": definitions.create,
    "ALTER": definitions.alter,
    "DROP": definitions.drop,
    "RENAME": definitions.rename,
    "TRUNCATE": definitions.truncate,
    "ANALYZE": definitions.maintain,
    "OPTIMIZE": definitions.maintain,
    "REPAIR": definitions.maintain,
    "LOCK": definitions.lock,
    "UNLOCK": _global,
    "GRANT": accounts.grant,
    "REVOKE": accounts.revoke,
    "FLUSH": accounts.flush,
    "SET": _set,
    "BEGIN": _begin,
    "START": _start,
    "COMMIT": _end,
    "ROLLBACK": _end,
    "SAVEPOINT": _savepoint,
    "RELEASE": _savepoint,
    "XA": _xa,
    **dict.fromkeys(_GLOBAL_VERBS, _global),
}
"""The reader of each first word: it begins behind that word and fills in the facts, or raises Unreadable."""
