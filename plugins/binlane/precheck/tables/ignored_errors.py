"""Constraints that decide which rows a statement with IGNORE leaves out, with a warning in place of an error.

Without IGNORE a row that only one server refuses ends the statement there, which everybody sees; in a routine or
trigger a handler of errors hides that, too. Unique keys, and foreign keys that change rows, are compared for every
statement (``table-definitions``, ``tables-behind``).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from typing import Final, NamedTuple

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.transaction.rename import renamed_alterations, sources_of
from binlane.precheck.bodies.body_parts import Body, BodyPart, may_have_behind, reaching
from binlane.precheck.bodies.row_order import RowOrder
from binlane.precheck.situation.facts import Source
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.safe_text import shown
from binlane.schema.compare import Severity, foreign_key_texts
from binlane.schema.letter_case import LetterCase
from binlane.schema.model import ForeignKey, Schema, Table
from binlane.schema.normalize import comparable
from binlane.servers.check_constraints import read_checks
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.row_effects import writes
from binlane.sql.parse.row_statements import ignores_errors

_IGNORE: Final = re.compile(rb"\bIGNORE\b", re.IGNORECASE)
_TAKING_AWAY: Final = frozenset({"UPDATE", "DELETE"})
_HANDLER: Final = "HANDLER"
_MOST_FINDINGS: Final = 20
_TODO: Final = (
    "errors are ignored, so other rows are left out than on the source: give the target's table the source's "
    "constraints (`binlane verify CHANNEL --full` names the statements), or set allow_unsafe in the channel's file, "
    "and copy the table again behind the window (`binlane recopy CHANNEL --table ...`)"
)
_TODO_LEFT_OUT: Final = (
    "errors are ignored, so other rows are left out than on the source, whose key leads to or from a table that the "
    "filter leaves out: for this window set allow_unsafe in the channel's file, and copy the table again behind it "
    "(`binlane recopy CHANNEL --table ...`); for later ones take both tables, or have the source log rows for the "
    "statement (binlog_format = ROW): docs/filters.md"
)
_TODO_UNSEEN: Final = (
    "the account of one server does not see these tables, so their foreign keys are taken for the same on both: GRANT "
    "SELECT on them to compare them"
)


class _Change(NamedTuple):
    """A table of which a statement leaves out the rows that a constraint refuses."""

    key: TableKey
    takes_away: bool
    """The statement may update or delete rows to which others refer."""
    where: str
    seqno: int


class _Constraints(NamedTuple):
    """What both servers have of a kind that is not alike."""

    what: str
    source: str
    target: str
    todo: str = _TODO
    severity: Severity = Severity.FATAL


def check_ignored_errors(situation: Situation) -> Iterator[Finding]:
    """CHECKs and foreign keys of tables that a statement with IGNORE changes, itself or by routines and triggers, which
    source and target do not have alike. None for an archive."""
    needs, source = situation.needs, situation.source
    if not situation.channel.apply.allow_unsafe and source is not None and (needs.statements or needs.loads):
        changes = list(_changes(situation))
        if changes:
            yield from islice(_findings(situation, source, changes), _MOST_FINDINGS)


def _changes(situation: Situation) -> Iterator[_Change]:
    """Of each table the first statement."""
    seen = set[tuple[TableKey, bool]]()
    rows = RowOrder(situation)
    for each in chain(_of_texts(situation), _behind(situation, rows)):
        for base in sorted(rows.bases_of(each.key, changed=True), key=str):
            if (situation.compared(base), each.takes_away) not in seen:
                seen.add((situation.compared(base), each.takes_away))
                yield each._replace(key=base)


def _of_texts(situation: Situation) -> Iterator[_Change]:
    for logged, _ in situation.transactions_with(_IGNORE):
        header = logged.header
        text = LoggedText.of(header.first_seqno, header.source, logged.item, situation.plan.flavor)
        if text is not None and ignores_errors(text.tokens):
            takes_away = not _TAKING_AWAY.isdisjoint(text.words)
            for key in sorted(text.facts.written, key=str):
                yield _Change(key, takes_away, text.where, text.seqno)


def _behind(situation: Situation, rows: RowOrder) -> Iterator[_Change]:
    """Of routines and triggers that have IGNORE, or a handler, all tables that they change."""
    if not may_have_behind(situation, "IGNORE", _HANDLER):
        return
    found = dict[str, tuple[TableKey, bool]]()

    def find(body: Body) -> Iterator[BodyPart]:
        words = {each.upper for each in body.tokens}
        if _HANDLER in words or ignores_errors(body.tokens):
            takes_away = not _TAKING_AWAY.isdisjoint(words)
            for key in writes(body.tokens, body.database):
                found[str(key)] = key, takes_away or found.get(str(key), (key, False))[1]
                yield BodyPart(str(key), needs_rows=False)

    for _, logged, program, part in reaching(situation, find, every=rows.every_body):
        header = logged.header
        statement = f"statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
        yield _Change(*found[part.what], f"{header.source}: {statement}: {program}", header.first_seqno)


def _findings(situation: Situation, server: Source, changes: Sequence[_Change]) -> Iterator[Finding]:
    databases = frozenset(each.key.database for each in changes)
    source, target = situation.definitions_with(server, databases)
    comparison = _Comparison(situation, server, source, target, databases)
    for change in changes:
        for each in comparison.differing(change.key, takes_away=change.takes_away):
            where = f"{change.where}: {each.what}"
            yield Finding(each.severity, where, each.source, each.target, each.todo, change.seqno)


class _Keys:
    """The foreign keys of a server that only refuse rows, as texts that are the same on both: each table is looked at
    once."""

    def __init__(self, schema: Schema, letters: LetterCase) -> None:
        self.own = dict[TableKey, frozenset[str]]()
        """By child."""
        self.of_children = defaultdict[TableKey, dict[str, TableKey]](dict)
        """By parent, with the child; of children in databases that were not read, that there are any."""
        known = set(map(letters.table, schema.tables))
        for table in schema.tables.values():
            child, plain = letters.table(table.key), [each for each in table.foreign_keys if _is_plain(each)]
            if plain:
                self.own[child] = foreign_key_texts(plain, letters)
            for key in plain:
                [text] = foreign_key_texts([key], letters)
                self.of_children[letters.table(key.parent)][f"{child} {text}"] = child
        for each, parent in schema.references:
            if (child := letters.table(each)) not in known:
                self.of_children[letters.table(parent)][str(child)] = child


@dataclass
class _Comparison:
    """The constraints of both servers, each read once."""

    # no slots: cached_property keeps what was read

    situation: Situation
    server: Source
    source: Schema
    """In the target's names."""
    target: Schema
    databases: frozenset[str]
    """Those of all tables that are asked about."""

    def differing(self, key: TableKey, *, takes_away: bool) -> Iterator[_Constraints]:
        """``takes_away``: the statement may update or delete rows to which others refer."""
        if self.source.table(key) is None or self.target.table(key) is None:
            return
        if not self._is_altered(self.situation.plan.altered, key):
            found = (*self._of_table(key), *(self._of_children(key) if takes_away else ()), *self._checks(key))
            if found and not self._is_altered(self._behind, key):
                yield from found

    def _of_table(self, key: TableKey) -> Iterator[_Constraints]:
        name = self._letters.table(key)
        yield from _differing_keys(key, *(each.own.get(name, frozenset()) for each in self._keys))

    def _of_children(self, key: TableKey) -> Iterator[_Constraints]:
        theirs, ours, filtered = (each.of_children.get(self._letters.table(key), {}) for each in self._keys)
        # what one server has alone may only be out of the other account's sight
        unseen = {text for text in theirs.keys() - ours if not self.situation.target.grants.shows(theirs[text])}
        unseen |= {text for text in ours.keys() - theirs if not self._source_shows(ours[text])}
        sides = (frozenset(each.keys() - unseen) for each in (theirs, ours, filtered))
        yield from _differing_keys(key, *sides)
        if unseen:
            one, other = (_listed(unseen & side.keys()) for side in (theirs, ours))
            yield _Constraints(f"foreign keys of {key}", one, other, _TODO_UNSEEN, Severity.INFO)

    def _source_shows(self, key: TableKey) -> bool:
        database = self.situation.renaming.source(key.database)
        return self.server.read_grants().shows(TableKey(database or key.database, key.table))

    def _checks(self, key: TableKey) -> Iterator[_Constraints]:
        """The CHECKs of a table, if the servers do not have the same: between the families, which spell expressions in
        their own ways, as many."""
        theirs, ours = (each.get(self._letters.table(key), ()) for each in self._checks_of_both)
        is_same = (
            Counter(map(comparable, theirs)) == Counter(map(comparable, ours))
            if self.situation.plan.flavor is self.situation.target.flavor
            else len(theirs) == len(ours)
        )
        if not is_same:
            yield _Constraints(f"checks of {key}", _listed(theirs), _listed(ours))

    @cached_property
    def _letters(self) -> LetterCase:
        return LetterCase(self.target.folds_names or self.source.folds_names)

    @cached_property
    def _keys(self) -> tuple[_Keys, _Keys, _Keys]:
        """Of the source, of the target, and those of the source that lead to or from a table that the filter leaves
        out: the target lacks these by the filter, and gets them by no other way."""
        schemas = self.source, self.target, _to_left_out(self.situation, self.source)
        source, target, left_out = (_Keys(each, self._letters) for each in schemas)
        return source, target, left_out

    @cached_property
    def _checks_of_both(self) -> Iterable[Mapping[TableKey, Sequence[str]]]:
        """By table: of all tables of the databases with one query a server."""
        renaming = self.situation.renaming
        theirs = self.server.ask(read_checks, sources_of(renaming, self.databases))
        ours = self.situation.target.ask(read_checks, self.databases)
        named = {renaming.table(key): each for key, each in theirs.items()}
        return [{self._letters.table(key): each for key, each in side.items()} for side in (named, ours)]

    def _is_altered(self, altered: Alterations, key: TableKey) -> bool:
        """Whether the table's definition, or those of the tables that refer to it, may have been changed."""
        return any(map(altered.names, (key, *self._children.get(self._letters.table(key), ()))))

    @cached_property
    def _children(self) -> Mapping[TableKey, Collection[TableKey]]:
        found = defaultdict[TableKey, set[TableKey]](set)
        for child, parent in self.source.references | self.target.references:
            found[self._letters.table(parent)].add(child)
        return found

    @cached_property
    def _behind(self) -> Alterations:
        """What the log behind the window alters, as far as it can be told. Raises SourceError."""
        behind = self.server.altered_behind(whole=True)
        return Alterations() if behind is None else renamed_alterations(behind, self.situation.renaming)


def _differing_keys(
    key: TableKey, theirs: frozenset[str], ours: frozenset[str], filtered: frozenset[str]
) -> Iterator[_Constraints]:
    """``filtered``: those that the target lacks by the filter."""
    filtered &= theirs - ours
    if filtered:
        yield _Constraints(f"foreign keys of {key}", _listed(filtered), "none", _TODO_LEFT_OUT)
    if theirs - filtered != ours:
        yield _Constraints(f"foreign keys of {key}", _listed(theirs - ours - filtered), _listed(ours - theirs))


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


def _is_plain(key: ForeignKey) -> bool:
    """Whether it only refuses rows; others are compared for every window."""
    return {key.on_update, key.on_delete} == {"RESTRICT"}


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(sorted(texts)) or "none"
