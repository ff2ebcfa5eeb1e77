"""Constraints that decide which rows a statement with IGNORE leaves out, with a warning in place of an error.

Without IGNORE a row that only one server refuses ends the statement there, which everybody sees. Unique keys, and
foreign keys that change rows, are compared for every statement (``table-definitions``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Final, NamedTuple

from binlane.model import TableKey
from binlane.plan.transaction.rename import renamed_alterations
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.schema.compare import Severity, foreign_key_texts
from binlane.schema.letter_case import LetterCase
from binlane.schema.model import ForeignKey, Schema, Table
from binlane.schema.normalize import comparable
from binlane.servers.check_constraints import read_checks
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.row_statements import ignores_errors

_IGNORE: Final = re.compile(rb"\bIGNORE\b", re.IGNORECASE)
_TAKING_AWAY: Final = frozenset({"UPDATE", "DELETE"})
_MOST_FINDINGS: Final = 20
_TODO: Final = (
    "IGNORE leaves out other rows than on the source: give the target's table the source's constraints (`binlane "
    "verify CHANNEL --full` names the statements), or set allow_unsafe in the channel's file, and copy the table again "
    "behind the window (`binlane recopy CHANNEL --table ...`)"
)
_TODO_LEFT_OUT: Final = (
    "IGNORE leaves out other rows than on the source, whose key leads to or from a table that the filter leaves out: "
    "for this window set allow_unsafe in the channel's file, and copy the table again behind it (`binlane recopy "
    "CHANNEL --table ...`); for later ones take both tables, or have the source log rows for the statement "
    "(binlog_format = ROW): docs/filters.md"
)


class _Constraints(NamedTuple):
    """What both servers have of a kind that is not alike."""

    what: str
    source: str
    target: str
    todo: str = _TODO


def check_ignored_errors(situation: Situation) -> Iterator[Finding]:
    """CHECKs and foreign keys of tables that a statement with IGNORE changes, which source and target do not have
    alike. None for an archive."""
    needs = situation.needs
    if not situation.channel.apply.allow_unsafe and situation.source is not None and (needs.statements or needs.loads):
        yield from islice(_findings(situation), _MOST_FINDINGS)


def _findings(situation: Situation) -> Iterator[Finding]:
    seen = set[tuple[TableKey, bool]]()
    for logged, _ in situation.transactions_with(_IGNORE):
        header = logged.header
        text = LoggedText.of(header.first_seqno, header.source, logged.item, situation.plan.flavor)
        if text is None or not ignores_errors(text.tokens):
            continue
        takes_away = not _TAKING_AWAY.isdisjoint(text.words)
        for key in sorted(text.facts.written, key=str):
            if (situation.compared(key), takes_away) not in seen:
                seen.add((situation.compared(key), takes_away))
                for each in _differing(situation, key, takes_away=takes_away):
                    where = f"{text.where}: {each.what}"
                    yield Finding(Severity.FATAL, where, each.source, each.target, each.todo, text.seqno)


def _differing(situation: Situation, key: TableKey, *, takes_away: bool) -> Iterator[_Constraints]:
    """``takes_away``: the statement may update or delete rows to which others refer."""
    source, target = situation.source_tables, situation.tables
    if source is None or source.table(key) is None or target.table(key) is None or _is_altered(situation, key):
        return
    letters = LetterCase(target.folds_names or source.folds_names)
    for find in (_own_keys, *([_keys_of_children] if takes_away else [])):
        theirs, ours = (find(schema, key, letters) for schema in (source, target))
        if theirs != ours and not _is_altered_behind(situation, key):
            # the target lacks these by the filter, and gets them by no other way
            filtered = (theirs - ours) & find(_to_left_out(situation, source), key, letters)
            if filtered:
                yield _Constraints(f"foreign keys of {key}", _listed(filtered), "none", _TODO_LEFT_OUT)
            if theirs - filtered != ours:
                yield _Constraints(f"foreign keys of {key}", _listed(theirs - ours - filtered), _listed(ours - theirs))
    checks = _checks(situation, key)
    if checks is not None and not _is_altered_behind(situation, key):
        yield checks


def _to_left_out(situation: Situation, schema: Schema) -> Schema:
    """The definitions with those foreign keys alone that lead to or from a table that the filter leaves out."""

    def is_left_out(key: TableKey) -> bool:
        database = situation.renaming.source(key.database)
        return database is not None and situation.selection.table(TableKey(database, key.table)) is not None

    def of_table(table: Table) -> Table:
        has_all = is_left_out(table.key)
        return replace(table, foreign_keys=tuple(k for k in table.foreign_keys if has_all or is_left_out(k.parent)))

    references = frozenset(pair for pair in schema.references if any(map(is_left_out, pair)))
    return replace(schema, tables={key: of_table(each) for key, each in schema.tables.items()}, references=references)


def _own_keys(schema: Schema, key: TableKey, letters: LetterCase) -> frozenset[str]:
    table = schema.table(key)
    return frozenset() if table is None else foreign_key_texts(filter(_is_plain, table.foreign_keys), letters)


def _keys_of_children(schema: Schema, key: TableKey, letters: LetterCase) -> frozenset[str]:
    """Those that lead to a table; of children in databases that the window does not name, that there are any."""
    parent, found = letters.table(key), set[str]()
    for table in schema.tables.values():
        own = (each for each in table.foreign_keys if letters.table(each.parent) == parent and _is_plain(each))
        found |= {f"{letters.table(table.key)} {each}" for each in foreign_key_texts(own, letters)}
    elsewhere = (child for child, other in schema.references if letters.table(other) == parent)
    return frozenset({*found, *(str(letters.table(each)) for each in elsewhere if schema.table(each) is None)})


def _is_plain(key: ForeignKey) -> bool:
    """Whether it only refuses rows; others are compared for every window."""
    return {key.on_update, key.on_delete} == {"RESTRICT"}


def _checks(situation: Situation, key: TableKey) -> _Constraints | None:
    """The CHECKs of a table, if the servers do not have the same: between the families, which spell expressions in
    their own ways, as many."""
    target, source = situation.tables.table(key), situation.source
    if target is None or source is None:
        return None
    theirs = source.ask(read_checks, situation.on_source(target.key))
    ours = situation.target.ask(read_checks, target.key)
    is_same = (
        Counter(map(comparable, theirs)) == Counter(map(comparable, ours))
        if situation.plan.flavor is situation.target.flavor
        else len(theirs) == len(ours)
    )
    return None if is_same else _Constraints(f"checks of {key}", _listed(theirs), _listed(ours))


def _is_altered(situation: Situation, key: TableKey) -> bool:
    """Whether the window may change the table's definition, or those of the tables that refer to it."""
    return any(map(situation.plan.altered.names, _with_children(situation, key)))


def _is_altered_behind(situation: Situation, key: TableKey) -> bool:
    """The same of the log behind the window, as far as it can be told. Raises SourceError."""
    behind = None if situation.source is None else situation.source.altered_behind(whole=True)
    if behind is None:
        return False
    return any(map(renamed_alterations(behind, situation.renaming).names, _with_children(situation, key)))


def _with_children(situation: Situation, key: TableKey) -> Iterable[TableKey]:
    schemas = [each for each in (situation.source_tables, situation.tables) if each is not None]
    children = (child for each in schemas for child, parent in each.references if parent == key)
    return chain((key,), children)


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(sorted(texts)) or "none"
