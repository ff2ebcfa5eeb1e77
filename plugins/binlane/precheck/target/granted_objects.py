"""Do the tables, views and routines exist that the window's GRANTs name? A server refuses to grant on what it lacks
(1146, 1305)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from binlane.model import TableKey
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.schema.compare import Severity
from binlane.schema.letter_case import is_system
from binlane.sql.grant_scope import scope_of_statement
from binlane.sql.logged_statement import LoggedText, index_of, split
from binlane.sql.parse.facts import StatementKind
from binlane.sql.program_names import folded_name

_MAKING: Final = frozenset({"CREATE", "ALL", "ALL PRIVILEGES"})
"""With one of these a server grants on a table that is not there yet."""
_TODO: Final = (
    "make it on the target (SHOW CREATE on the source prints its statement), or leave the statement out "
    "(docs/control.md, `A transaction that is refused before the first write`)"
)


def check_granted_objects(situation: Situation) -> Iterator[Finding]:
    """GRANTs on a table, view or routine that the target does not have and the window does not make."""
    texts = situation.asked.texts
    granted = [(text, found) for text in texts if (found := _object_of(text)) is not None]
    if not granted or any(text.facts.may_define_any for text in texts):
        return
    there, compared = situation.planned, situation.planned.letter_case
    made = (key for text in texts if text.facts.kind is StatementKind.DDL for key in text.facts.tables)
    tables = compared.tables(frozenset((*there.tables, *there.views, *made)))
    routines = {(compared.name(database), folded_name(name)) for database, name in there.routines}
    for text, (key, is_routine) in granted:
        if is_routine:
            name = folded_name(key.table)
            is_there = (compared.name(key.database), name) in routines
            is_there = is_there or name in situation.asked.made or situation.target.has_routine(key)
        else:
            # a view may have been made since the window was read
            is_there = compared.table(key) in tables or situation.target.has_table(key)
        if not is_there:
            yield Finding(
                Severity.FATAL,
                text.where,
                f"{key} on the target, to grant on it",
                "neither a table nor a view of that name" if not is_routine else "no routine of that name",
                _TODO,
                text.seqno,
            )


def _object_of(text: LoggedText) -> tuple[TableKey, bool] | None:
    """The table or routine of a GRANT that needs it to be there, and whether it is a routine."""
    if text.words[:1] != ("GRANT",):
        return None
    found = scope_of_statement(text.tokens, text.context.database)
    if found is None or not found[0].table or is_system(found[0].database):
        return None
    scope, is_routine = found
    end = index_of(text.words, "ON")
    if end is None or text.words[end + 1] == "LIBRARY":  # not among the routines of a catalogue
        return None
    names = {" ".join(token.upper for token in each) for each in split(text.tokens[1:end])}
    return None if names & _MAKING and not is_routine else (TableKey(scope.database, scope.table), is_routine)
