"""Tables that the window's own DDL makes after one without transactions, which no ENGINE in its text tells of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from binlane.model import TableKey
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.finding import Finding
from binlane.schema.compare import Severity
from binlane.schema.model import TRANSACTIONAL_ENGINES
from binlane.sql.logged_statement import LoggedText, index_of

_TODO: Final = (
    "ALTER TABLE .. ENGINE=InnoDB on the target before the window, or set apply.allow_nontransactional "
    "(docs/operations.md says what it costs)"
)


def check_engines(
    plan: WindowPlan, statements: Iterable[LoggedText], without: Collection[TableKey]
) -> Iterator[Finding]:
    """Tables that get the engine of one ``without`` transactions by LIKE or RENAME, and that the window writes.

    ``statements``: the window's, in order; ``without``: the target's before the window.
    """
    written = {_name(key) for key in (*plan.applied_tables, *plan.written, *plan.loaded, *plan.undone)}
    known = {_name(key) for key in without}
    for statement in statements if known else ():
        for key in _made(statement, known):
            if _name(key) in written:
                where = f"{statement.where}: engine of {key}"
                yield Finding(Severity.FATAL, where, "a transactional one", "one without transactions", _TODO)


def _made(statement: LoggedText, known: set[str]) -> Iterator[TableKey]:
    """The tables that the statement makes of those that are ``known``, which follows."""
    words, facts = statement.words, statement.facts
    if words[:1] not in (("CREATE",), ("ALTER",), ("RENAME",), ("DROP",)) or facts.temporary:
        return
    old = _likeness(statement, facts.tables) if words[0] == "CREATE" else None
    made = [key for key in facts.tables if key != old] if old is not None and _name(old) in known else []
    engine = index_of(words, "ENGINE")
    is_safe = engine is not None and {*map(str.lower, words[engine + 1 : engine + 3])} & TRANSACTIONAL_ENGINES
    if words[0] in ("CREATE", "DROP") or (words[0] == "ALTER" and is_safe):
        known -= {_name(key) for key in facts.tables if key != old}
    for before, after in facts.renames:
        if _name(before) in known:
            known.discard(_name(before))
            made.append(after)
    known |= {_name(key) for key in made}
    yield from made


def _likeness(statement: LoggedText, tables: frozenset[TableKey]) -> TableKey | None:
    """What CREATE TABLE .. LIKE names."""
    at = index_of(statement.words, "LIKE")
    if at is None:
        return None
    texts = [token.text for token in statement.tokens[at + 1 : at + 4]]
    whole = TableKey(texts[0], texts[2]) if len(texts) == 3 and texts[1] == "." else None
    key = whole or TableKey(statement.context.database or "", texts[0] if texts else "")
    return next((table for table in tables if _name(table) == _name(key)), None)


def _name(key: TableKey) -> str:
    return str(key).casefold()
