"""Statements that find rows which the source does not have any more, because the channel leaves out what removes them.

With ``delete = "ignore"`` and its like the target keeps rows on purpose. A row event changes the source's rows alone;
a statement counts, reads or meets those that are kept, and gives other values to rows of which none was ever kept.

Where only ``drop`` or ``drop_database`` is ignored, a table that a statement of the log names keeps the rows of dropped
partitions. A whole table that was dropped is none of the source's; one that was made again under its name is not made
on the target, which says so, but by IF NOT EXISTS and OR REPLACE.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import chain, islice
from typing import Final

from binlane.choices import FilterKind, FilterPolicy
from binlane.model import TableKey
from binlane.precheck.bodies.body_parts import Body, BodyPart, reaching
from binlane.precheck.bodies.own_keys import column_of, names_of
from binlane.precheck.bodies.row_order import RowOrder
from binlane.precheck.bodies.rows_met import WHOLE_NUMBERS
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.safe_text import shown
from binlane.schema.compare import Severity
from binlane.schema.derived_tables import DERIVED
from binlane.schema.model import ENGINES_WITHOUT_KEYS
from binlane.servers.partitions import read_partitioning
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.lexer import TokenKind
from binlane.sql.parse.met_rows import LIMIT, met_rows
from binlane.sql.parse.query_blocks import blocks
from binlane.sql.parse.row_effects import writes

_REMOVING: Final = (FilterKind.DELETE, FilterKind.TRUNCATE, FilterKind.DROP, FilterKind.DROP_DATABASE)
_MEETS: Final = re.compile(rb"\b(?:SELECT|TABLE|JOIN|USING|LIMIT|DUPLICATE|IGNORE)\b", re.IGNORECASE)
"""What every statement has that may find rows by its own text."""
_OF_ANY_TABLE: Final = frozenset({FilterKind.DELETE, FilterKind.TRUNCATE})
_MET: Final = ("IGNORE", "ON DUPLICATE KEY UPDATE")
"""What meets rows of the table that it fills."""
_MOST_FINDINGS: Final = 20
_EXPECTED: Final = "tables that the source has not dropped and made again since they were copied"
_TODO_BELIEF: Final = (
    "these are believed to be such: where the source makes tables again by CREATE TABLE IF NOT EXISTS or OR REPLACE, "
    "let it log rows (binlog_format=ROW), or copy such a table again (`binlane recopy CHANNEL --table ...`)"
)
_TODO: Final = (
    "the target would count, read or change rows that the source does not have: log such statements as rows "
    "(binlog_format=ROW for their session), or set allow_unsafe in the channel's file, if the tables that they change "
    "may differ, too"
)


def check_kept_rows(situation: Situation) -> Iterator[Finding]:
    """Statements, and routines, views and triggers behind them, that may find rows which the target keeps because
    `[filter.kinds]` ignores what removes them: with `drop` alone, those of dropped partitions; that no table was
    dropped and made again is named."""
    needs, rules = situation.needs, situation.settings.rules.selection
    ignored = [kind for kind in _REMOVING if rules.policy(kind) == FilterPolicy.IGNORE]
    if ignored and not situation.channel.apply.allow_unsafe and (needs.statements or needs.loads):
        kept = _KeptRows(situation, is_of_any=not _OF_ANY_TABLE.isdisjoint(ignored))
        found = islice(chain(kept.of_texts(), kept.behind()), _MOST_FINDINGS)
        rule = f'(kinds.{ignored[0]} = "{FilterPolicy.IGNORE}")'
        for where, what, seqno in found:
            kept_there = f"{what}, where rows may be kept {rule}"
            yield Finding(Severity.FATAL, where, "rows that the source has, too", kept_there, _TODO, seqno)
        if kept.believed is not None:
            where, what, seqno = kept.believed
            yield Finding(Severity.INFO, where, _EXPECTED, f"{what} {rule}", _TODO_BELIEF, seqno)


class _KeptRows:
    """The window's statements, and what is known of the tables that they name."""

    def __init__(self, situation: Situation, *, is_of_any: bool) -> None:
        """``is_of_any``: any table may keep rows, and not those with partitions alone."""
        self.situation = situation
        self.is_of_any = is_of_any
        self.believed: tuple[str, str, int] | None = None
        """Of the first statement that finds rows of tables which keep none, as far as is known, what ``of_texts``
        gives."""
        self._known: dict[TableKey, bool] = {}
        # one for all statements: it reads the window for the tables that it makes
        self._order = RowOrder(situation)

    def of_texts(self) -> Iterator[tuple[str, str, int]]:
        """Where a statement stands, by what it finds rows, and its seqno."""
        for logged, _ in self.situation.transactions_with(_MEETS):
            header = logged.header
            text = LoggedText.of(header.first_seqno, header.source, logged.item, self.situation.plan.flavor)
            what = None if text is None else met_rows(text.tokens)
            if text is None or what is None or (what == LIMIT and _finds_one(self._order, text)):
                continue
            facts = text.facts
            # one that reads temporary tables alone finds what is there on the source; these lose what is deleted
            read = facts.tables if what in _MET else facts.tables - facts.written or facts.written
            yield from self._told(read, text.where, what, text.seqno)

    def behind(self) -> Iterator[tuple[str, str, int]]:
        """The same of routines, views and triggers."""
        named = dict[str, frozenset[TableKey]]()

        def find(body: Body) -> Iterator[BodyPart]:
            if (what := met_rows(body.tokens)) is not None:
                of_blocks = (each.table for block in blocks(body.tokens, body.database) for each in block.sources)
                named[body.difference.where] = writes(body.tokens, body.database).union(filter(None, of_blocks))
                yield BodyPart(what, needs_rows=False)

        seen = set[str]()
        for _, logged, program, part in reaching(self.situation, find, every=self._order.every_body):
            if program not in seen:
                seen.add(program)
                seqno, statement = logged.header.first_seqno, shown(logged.beginning)
                where = f"{logged.header.source}: statement of seqno {seqno}, {statement}"
                yield from self._told(named[program], where, f"{part.what} of {program}", seqno)

    def _told(self, names: Collection[TableKey], where: str, what: str, seqno: int) -> Iterator[tuple[str, str, int]]:
        tables = {self.situation.compared(base) for name in names for base in self._order.bases_of(name)}
        there = [key for key in tables if self.situation.target.has_table(key)]
        if not names or any(map(self._may_keep, there)):
            yield where, what, seqno
        elif there and self.believed is None:
            self.believed = where, what, seqno

    def _may_keep(self, key: TableKey) -> bool:
        """Whether a table of the target may have rows that the source's has no more."""
        if self.is_of_any:
            return True
        if key not in self._known:
            self._known[key] = self._has_more_partitions(key)
        return self._known[key]

    def _has_more_partitions(self, key: TableKey) -> bool:
        situation, source = self.situation, self.situation.source
        ours = situation.target.ask(read_partitioning, key)
        if ours is None or not ours.partitions or source is None:
            return ours is not None and bool(ours.partitions)
        theirs = source.ask(read_partitioning, situation.on_source(key))
        return theirs is None or not ours.names <= theirs.names


def _finds_one(order: RowOrder, text: LoggedText) -> bool:
    """Whether each LIMIT of a statement stands behind a unique key of whole numbers, of which both servers have at most
    one row."""
    tokens = text.tokens_with_numbers
    # a number such as 1e17 is equal to several
    if not all(token.text.isdecimal() for token in tokens if token.kind is TokenKind.NUMBER):
        return False
    limited = [each for each in blocks(tokens, text.context.database or "") if "LIMIT" in each.clauses]
    if not limited or any(len(each.sources) != 1 for each in limited):
        return False
    table_of = order.table_of(text.seqno)
    for block in limited:
        [source] = block.sources
        table = None if source.table is None else table_of(source.table)
        if table is None or table.engine in (DERIVED, *ENGINES_WITHOUT_KEYS):
            return False
        equal = [each.column for each in block.equalities if each.other is TokenKind.NUMBER]
        given = {column_of(table, each.name) for each in equal if source.may_be(each.qualifier)}
        whole = {each.name.lower() for each in given if each is not None and each.data_type in WHOLE_NUMBERS}
        if not any(names_of(key) and names_of(key) <= whole for key in table.keys):
            return False
    return True
