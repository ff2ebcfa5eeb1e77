"""Statements that find rows which the source does not have any more, because the channel leaves out what removes them.

With ``delete = "ignore"`` and its like the target keeps rows on purpose. A row event changes the source's rows alone;
a statement counts, reads or meets those that are kept, and gives other values to rows of which none was ever kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Final

from binlane.choices import FilterKind, FilterPolicy
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
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.lexer import TokenKind
from binlane.sql.parse.met_rows import LIMIT, met_rows
from binlane.sql.parse.query_blocks import blocks

_REMOVING: Final = (FilterKind.DELETE, FilterKind.TRUNCATE, FilterKind.DROP, FilterKind.DROP_DATABASE)
_MEETS: Final = re.compile(rb"\b(?:SELECT|TABLE|JOIN|USING|LIMIT|DUPLICATE|IGNORE)\b", re.IGNORECASE)
"""What every statement has that may find rows by its own text."""
_MOST_FINDINGS: Final = 20
_TODO: Final = (
    "the target would count, read or change rows that the source does not have: log such statements as rows "
    "(binlog_format=ROW for their session), or set allow_unsafe in the channel's file, if the tables that they change "
    "may differ, too"
)


def check_kept_rows(situation: Situation) -> Iterator[Finding]:
    """Statements, and routines, views and triggers behind them, that may find rows which the target keeps because
    `[filter.kinds]` ignores what removes them."""
    needs, rules = situation.needs, situation.settings.rules.selection
    ignored = [kind for kind in _REMOVING if rules.policy(kind) == FilterPolicy.IGNORE]
    if ignored and not situation.channel.apply.allow_unsafe and (needs.statements or needs.loads):
        found = chain(_of_texts(situation), _behind(situation))
        for where, what, seqno in islice(found, _MOST_FINDINGS):
            kept = f'{what}, where rows may be kept (kinds.{ignored[0]} = "{FilterPolicy.IGNORE}")'
            yield Finding(Severity.FATAL, where, "rows that the source has, too", kept, _TODO, seqno)


def _of_texts(situation: Situation) -> Iterator[tuple[str, str, int]]:
    # one for all statements: it reads the window for the tables that it makes
    order = RowOrder(situation)
    for logged, _ in situation.transactions_with(_MEETS):
        header = logged.header
        text = LoggedText.of(header.first_seqno, header.source, logged.item, situation.plan.flavor)
        what = None if text is None else met_rows(text.tokens)
        if text is None or what is None or (what == LIMIT and _finds_one(order, text)):
            continue
        if _may_be_kept(situation, text):
            yield text.where, what, text.seqno


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


def _may_be_kept(situation: Situation, text: LoggedText) -> bool:
    """Whether a statement finds rows of a table of the target; one of others finds those of temporary tables, which
    lose what is deleted."""
    facts = text.facts
    read = facts.tables - facts.written or facts.written
    return not read or any(map(situation.target.has_table, read))


def _behind(situation: Situation) -> Iterator[tuple[str, str, int]]:
    def find(body: Body) -> Iterator[BodyPart]:
        if (what := met_rows(body.tokens)) is not None:
            yield BodyPart(what, needs_rows=False)

    seen = set[str]()
    for _, logged, program, part in reaching(situation, find):
        if program not in seen:
            seen.add(program)
            seqno, statement = logged.header.first_seqno, shown(logged.beginning)
            where = f"{logged.header.source}: statement of seqno {seqno}, {statement}"
            yield where, f"{part.what} of {program}", seqno
