"""What of a window sees a variable or a function: its statements, the programs behind them, its tables' expressions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import field
from functools import cached_property
from typing import Final, NamedTuple

from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, ItemKind, SessionContext
from binlane.precheck.situation.situation import Situation
from binlane.precheck.statements.window_statements import first_reached
from binlane.safe_text import shown
from binlane.schema.model import Table
from binlane.schema.programs import Program
from binlane.sql.logged_statement import LoggedText
from binlane.sql.programs.comparison import as_difference
from binlane.sql.session_variables import Sight, is_lax, plain
from binlane.work.logged_statements import LaneStatement

_LITERAL: Final = r"(?:[-+] )?(?:\?|NULL|DEFAULT)"
_LITERALS: Final = re.compile(rf"\( {_LITERAL}(?: , {_LITERAL})* \)")


class Place(NamedTuple):
    """Where a window sees something."""

    where: str
    seqno: int | None = None

    @classmethod
    def of(cls, logged: LaneStatement) -> Place:
        """A statement of the log."""
        header = logged.header
        what = "DDL" if logged.item.kind is ItemKind.DDL else "statement"
        seqno = header.first_seqno
        return cls(f"{header.source}: {what} of seqno {seqno}, {shown(logged.beginning)}", seqno)


@dataclass
class Sights:
    """What of a window sees something; read when it is asked for."""

    situation: Situation
    _forms: dict[int, Collection[str]] = field(default_factory=dict)
    """The texts of ``asked.forms`` as ``plain`` writes them, as far as they were read; none of one that cannot be."""

    def first(self, sight: Sight, *, with_programs: bool = True) -> Place | None:
        """The first statement, program behind one, or table that sees it."""
        place = self._statement(sight)
        if place is None and with_programs:
            place = self._program(sight)
        if place is None and sight.expressions:
            place = next(self._tables(sight), None)
        return place

    def by_definitions(self, sight: Sight) -> bool:
        """Whether a statement that commits by itself, or an expression of a column or key, sees it: all that can in a
        window without other statements, whose files are not read for it."""
        for text, as_plain in self._definitions:
            if not (sight.lax_only and not is_lax(text.context)) and sight.sees(as_plain):
                return True
        return sight.expressions and any(self._has(each, "", sight) for each in self._computed)

    def without_bodies(self, sight: Sight) -> bool:
        """Whether the window sees it, of which no statement runs a body, and whose other statements are of few
        forms."""
        assert self.situation.asked.forms is not None
        for number, logged in enumerate(self.situation.asked.forms):
            is_strict = sight.lax_only and not is_lax(logged.item.context or SessionContext())
            if is_strict or sight.hint.search(logged.item.payload) is None:
                continue
            if number not in self._forms:
                header = logged.header
                text = LoggedText.of(header.first_seqno, header.source, logged.item, self.situation.plan.flavor)
                as_plain = "" if text is None else plain(text.every_token)
                # lists of literals are of one form, whatever their length
                self._forms[number] = () if text is None else {as_plain, _LITERALS.sub("( ? )", as_plain)}
            if not self._forms[number] or any(map(sight.sees, self._forms[number])):
                return True
        is_in_table = sight.expressions and any(self._has(text, "", sight) for _, text in self.expressions())
        return is_in_table or self.by_definitions(sight)

    def programs(self, sight: Sight) -> Iterator[Program]:
        """Programs of either server that see it, whether statements reach them or not."""
        needs = self.situation.needs
        if needs.statements or needs.loads or needs.ddl:
            yield from (each for each in self._programs if self._has(each.text, each.sql_mode, sight))

    def expressions(self) -> Iterator[tuple[str, str]]:
        """Table and text of each expression of a column or a key, and of the defaults of what statements write."""
        plan = self.situation.plan
        by_statements = {*plan.written, *plan.loaded}
        for key in sorted({*plan.applied_tables, *by_statements}, key=str):
            if (table := self.situation.tables.table(key)) is not None:
                yield from ((str(key), each) for each in _expressions(table, with_defaults=key in by_statements))

    def _statement(self, sight: Sight) -> Place | None:
        flavor, first = self.situation.plan.flavor, None
        for logged, _ in self.situation.transactions_with(sight.hint):
            header = logged.header
            if (first is None or header.first_seqno < first.header.first_seqno) and _sees(logged, sight, flavor):
                first = logged
        return None if first is None else Place.of(first)

    def _program(self, sight: Sight) -> Place | None:
        differences = [as_difference(each) for each in self.programs(sight)]
        if not differences:
            return None
        reached = first_reached(self.situation, self.situation.reach, differences)
        named = {each.key: each.where for each in differences}
        for key, (seqno, where) in sorted(reached.items(), key=lambda each: each[1][0]):
            return Place(f"{named[key]}, which {where.removesuffix(',')} reaches", seqno)
        return None

    @cached_property
    def _definitions(self) -> tuple[tuple[LoggedText, str], ...]:
        return tuple((text, plain(text.every_token)) for text in self.situation.every_text)

    @cached_property
    def _computed(self) -> frozenset[str]:
        """The expressions of the tables whose rows are written; where there is a DDL, which may compute those of its
        table anew, or make one like it, of all."""
        situation = self.situation
        keys = situation.tables.tables if situation.needs.ddl else situation.plan.applied_tables
        tables = (situation.tables.table(key) for key in keys)
        return frozenset(
            each for table in tables if table is not None for each in _expressions(table, with_defaults=False)
        )

    @cached_property
    def _programs(self) -> tuple[Program, ...]:
        return tuple(
            each
            for sides in (self.situation.stored_triggers, self.situation.stored_programs)
            for each in (*sides[0], *sides[1])
        )

    def _tables(self, sight: Sight) -> Iterator[Place]:
        for key, text in self.expressions():
            if self._has(text, "", sight):
                yield Place(f"{key}, with an expression of a column or key")

    def _has(self, body: str | None, sql_mode: str, sight: Sight) -> bool:
        if body is None or sight.hint.search(body.encode()) is None:
            return False
        # few windows need it
        from binlane.sql.temporary_routines import tokens_of

        tokens = tokens_of(body, self.situation.plan.flavor, sql_mode)
        return tokens is None or sight.sees(plain(tokens))


def sees_variables(situation: Situation) -> bool:
    """Whether the window has statements, or rows of a table with an expression of a column or key."""
    needs = situation.needs
    if needs.statements or needs.loads or needs.ddl:
        return True
    tables = (situation.tables.table(key) for key in situation.plan.applied_tables)
    return any(True for table in tables if table is not None for _ in _expressions(table, with_defaults=False))


def _sees(logged: LaneStatement, sight: Sight, flavor: Flavor) -> bool:
    item, header = logged.item, logged.header
    if sight.lax_only and not is_lax(item.context or SessionContext()):
        return False
    statement = LoggedText.of(header.first_seqno, header.source, item, flavor)
    return statement is None or sight.sees(plain(statement.every_token))


def _expressions(table: Table, *, with_defaults: bool) -> Iterator[str]:
    for column in table.columns:
        if column.expression is not None:
            yield column.expression
        if with_defaults and column.default is not None and not column.default.startswith("'"):
            yield column.default
    for key in table.keys:
        yield from (part.expression for part in key.columns if part.expression is not None)
