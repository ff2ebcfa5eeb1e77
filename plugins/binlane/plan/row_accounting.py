"""Counts of a window's transactions: the plan's figures, and the row counts that must agree (docs/invariants.md, 5)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field

from binlane.binlog.rows_payload import DEFINITION
from binlane.binlog.table_map import TableMap
from binlane.binlog.wire import HEADER
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, RowCounts, TableKey
from binlane.plan.block.row_size import RowMeter, Widest
from binlane.plan.transaction.error_outcome import tables_of_one_kind
from binlane.plan.transaction.parts import FilteredPart, MapPart, Part, RowsPart, StatementPart
from binlane.plan.window_plan import RuleCounts, ShardCounts
from binlane.schema.letter_case import ANY_CASE
from binlane.sql.charset import decoded, dialect_of
from binlane.sql.parse.facts import StatementKind
from binlane.sql.parse.lexer import Token, Unreadable, lex
from binlane.sql.parse.other_answers import may_have_other_answer, other_answer, other_literal
from binlane.sql.requirements import Requirement, requirements_of, requirements_of_session, resolved, without_missing

_MAY_NEED_FEATURES = re.compile(
    rb"->|\b(?:JSON|RETURNING|PORTION|ROW|DUPLICATE|USING|CHARSET|CHARACTER)\b|\A(?:WITH|SET|LOAD)\b|\b_[a-z0-9]+\s*['\"]",
    re.I,
)
"""Plain DML that may need a feature which not every server has, and is therefore parsed: single words, since comments
may stand between two."""
ROWS_ONLY = "rows"
"""Kind of a transaction without statements."""


@dataclass(slots=True)
class Tally:
    """Counts of transactions, in any order: the tallies of segments add up to the window's."""

    tables: dict[TableKey, RowCounts] = field(default_factory=dict)
    """Row changes that pass the filter, by table."""
    filtered: dict[TableKey, RowCounts] = field(default_factory=dict)
    """Row changes that the filter leaves out, by table."""
    rules: dict[str, RuleCounts] = field(default_factory=dict)
    """Row changes and statements that each rule of the filter leaves out."""
    table_maps: dict[TableKey, dict[str, int]] = field(default_factory=dict)
    """Distinct TABLE_MAP bodies behind their table id, in hex, with the first seqno of each: the precheck compares them
    with the target's tables."""
    shards: dict[str, ShardCounts] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    """Transactions without statements, and statements by kind."""
    lane_rows: dict[int, RowCounts] = field(default_factory=dict)
    """Row changes that each lane writes."""
    saved: dict[TableKey, RowCounts] = field(default_factory=dict)
    """Row changes written minus read, by table: negative where folding saves."""
    altered: dict[TableKey, set[int]] = field(default_factory=dict)
    """Tables whose definition the window's DDL may change, with the seqnos of the statements."""
    unread: set[int] = field(default_factory=set)
    """Seqnos of statements that could not be parsed and may change the definition of any table."""
    defined_in: set[str] = field(default_factory=set)
    """Databases that the window's DDL names, also in statements without a table, such as DROP DATABASE."""
    spelled: set[TableKey] = field(default_factory=set)
    """Tables with capital letters in their names, or their databases', that statements name as they were typed."""
    time_zones: set[str] = field(default_factory=set)
    unsafe: dict[str, int] = field(default_factory=dict)
    """Parts of statements whose result depends on the server, with the first seqno of each."""
    loaded: set[TableKey] = field(default_factory=set)
    """Tables that a LOAD DATA names."""
    written: set[TableKey] = field(default_factory=set)
    """Tables whose rows statements change."""
    temporary: set[TableKey] = field(default_factory=set)
    """Names of temporary tables: a statement that writes one of these names may not mean the base table."""
    renames: set[tuple[TableKey, TableKey]] = field(default_factory=set)
    """Old and new names in statements that may rename temporary tables."""
    undone: set[TableKey] = field(default_factory=set)
    """Tables of failed statements and of rolled-back changes: the table's engine decides which changes remain."""
    requirements: dict[Requirement, int] = field(default_factory=dict)
    """Features that statements, and rows sent as statements, need on the target, with the first seqno of each."""
    widest: dict[TableKey, Widest] = field(default_factory=dict)
    """The longest rows as statements, of tables with rows that come near the target's max_allowed_packet."""
    longest_statement: tuple[int, int] = (0, 0)
    """Bytes of the longest logged statement, and the first seqno of that length."""
    target: Flavor | None = field(default=None, compare=False)
    """The target's family, where statements of another one are counted."""
    meter: RowMeter | None = field(default=None, compare=False)
    """Measures rows; None in a sum of tallies."""

    def add(self, shard: str, home: int, parts: Sequence[Part], seqno: int, flavor: Flavor) -> None:
        """Count one transaction of ``shard``; ``home`` is its home lane, ``flavor`` the source's."""
        rows = RowCounts()
        statements = filtered = 0
        for part in parts:
            match part:
                case MapPart():
                    self.add_map(part.key, part.event[DEFINITION], seqno)
                case RowsPart():
                    rows += part.counts
                    self.add_table(part.table.key, part.counts)
                    self.add_rows(part.table.table, part.event[4], memoryview(part.event)[HEADER.size :], seqno)
                case FilteredPart():
                    filtered += 1
                    self.add_filtered(part.rule, part.table, part.counts)
                case StatementPart():
                    statements += 1
                    self.kinds[part.facts.kind.value] += 1
                    if (unsafe := part.facts.unsafe or self._other_answer(part, flavor)) is not None:
                        self.add_unsafe(unsafe, seqno)
                    if part.file is not None:
                        self.loaded |= part.facts.tables
                    if part.context.time_zone is not None:
                        self.time_zones.add(part.context.time_zone)
                    self._add_statement(part, flavor, seqno)
        if statements:
            self.undone |= tables_of_one_kind(parts)
        elif filtered < len(parts) or not parts:
            self.kinds[ROWS_ONLY] += 1
        self.add_shard(shard, home, 1, rows.total)

    def _add_statement(self, part: StatementPart, flavor: Flavor, seqno: int) -> None:
        facts = part.facts
        self._add_length(len(part.sql), seqno)
        self.written |= facts.written
        self.spelled.update(key for key in facts.tables if key != ANY_CASE.table(key))
        if facts.created_temporary is not None:
            self.temporary.add(facts.created_temporary)
        if part.session is not None:
            self.renames.update(facts.moves)
        defines = facts.commits_implicitly or facts.create_select
        for requirement in requirements_of_session(part.context, facts):
            self.add_requirement(requirement, seqno)
        if defines or _MAY_NEED_FEATURES.search(part.sql) is not None:
            text, dialect = decoded(part.sql, part.context), dialect_of(part.context, flavor)
            for found in (*requirements_of(text, facts, dialect), *without_missing(text, facts, part.context)):
                asked = resolved(found, part.context)
                if asked is not None:
                    self.add_requirement(asked, seqno)
        if defines:
            self.defined_in |= facts.databases
            for key in facts.defines:
                self.altered.setdefault(key, set()).add(seqno)
            if facts.may_define_any:
                self.unread.add(seqno)

    def _other_answer(self, part: StatementPart, flavor: Flavor) -> str | None:
        """What the target's family answers otherwise in a statement of another one that changes rows."""
        changes = part.facts.kind in (StatementKind.DML, StatementKind.LOAD_DATA) or part.facts.create_select
        if self.target in (None, flavor) or not changes or not may_have_other_answer(part.sql):
            return None
        tokens, places = list[Token](), list[tuple[int, int]]()
        sql, dialect = decoded(part.sql, part.context), dialect_of(part.context, flavor)
        try:
            lex(sql, dialect, tokens, places)
        except Unreadable:
            # the precheck asks the target's parser
            return None
        return other_answer(tokens) or other_literal(sql, dialect, tokens, places)

    def names_of_temporary(self) -> frozenset[TableKey]:
        """The names that temporary tables may have had."""
        found, new = set[TableKey](), set(self.temporary)
        while new:
            found |= new
            new = {after for before, after in self.renames if before in found} - found
        return frozenset(found)

    def add_filtered(self, rule: str, table: TableKey | None, rows: RowCounts) -> None:
        """Count row changes of ``table`` that ``rule`` leaves out; with None for the table, a statement."""
        if table is not None:
            self.filtered[table] = self.filtered.get(table, RowCounts()) + rows
        self.rules[rule] = self.rules.get(rule, RuleCounts()) + RuleCounts(rows.total, int(table is None))

    def add_map(self, key: TableKey, definition: bytes, seqno: int) -> None:
        """Note the body of a TABLE_MAP, without its table id."""
        maps, text = self.table_maps.setdefault(key, {}), definition.hex()
        maps[text] = min(seqno, maps.get(text, seqno))

    def add_rows(self, table: TableMap, type_code: int, body: memoryview, seqno: int) -> None:
        """Measure the rows of an event's body as statements; without a meter do nothing."""
        if self.meter is None:
            return
        widest = self.meter.measure(table, type_code, body, seqno)
        if widest is not None:
            self.add_widest(TableKey(table.database, table.table), widest)
        for requirement in self.meter.asked(table, type_code, body):
            self.add_requirement(requirement, seqno)

    def add_requirement(self, requirement: Requirement, seqno: int) -> None:
        """Note a feature that the window needs on the target."""
        self.requirements[requirement] = min(seqno, self.requirements.get(requirement, seqno))

    def add_widest(self, key: TableKey, widest: Widest) -> None:
        """Note the longest rows of a table, as statements."""
        known = self.widest.get(key)
        self.widest[key] = widest if known is None else known | widest

    def _add_length(self, length: int, seqno: int) -> None:
        size, negative = max((self.longest_statement[0], -self.longest_statement[1]), (length, -seqno))
        self.longest_statement = size, -negative

    def add_shard(self, shard: str, lane: int, transactions: int, rows: int) -> None:
        """Count transactions and row changes of a shard."""
        before = self.shards.get(shard)
        self.shards[shard] = (
            ShardCounts(lane, transactions, rows)
            if before is None
            else ShardCounts(before.lane, before.transactions + transactions, before.rows + rows)
        )

    def add_unsafe(self, name: str, seqno: int) -> None:
        """Note a part of a statement whose result depends on the server."""
        self.unsafe[name] = min(seqno, self.unsafe.get(name, seqno))

    def add_saved(self, key: TableKey, rows: RowCounts) -> None:
        """Add a table's row changes written minus read."""
        known = self.saved.get(key)
        self.saved[key] = rows if known is None else known + rows

    def add_lane(self, lane: int, rows: RowCounts) -> None:
        """Count row changes that a lane writes."""
        self.lane_rows[lane] = self.lane_rows.get(lane, RowCounts()) + rows

    def add_table(self, key: TableKey, rows: RowCounts) -> None:
        """Count row changes of a table."""
        known = self.tables.get(key)
        self.tables[key] = rows if known is None else known + rows

    def merge(self, other: Tally) -> None:
        """Add the tally of another segment."""
        _add_all(self.tables, other.tables)
        _add_all(self.saved, other.saved)
        self._merge_filtered(other)
        for key, maps in other.table_maps.items():
            known = self.table_maps.setdefault(key, {})
            for definition, seqno in maps.items():
                known[definition] = min(seqno, known.get(definition, seqno))
        for shard, counts in other.shards.items():
            self.add_shard(shard, counts.lane, counts.transactions, counts.rows)
        for lane, rows in other.lane_rows.items():
            self.add_lane(lane, rows)
        self.kinds.update(other.kinds)
        for key, seqnos in other.altered.items():
            self.altered.setdefault(key, set()).update(seqnos)
        self.unread |= other.unread
        self.defined_in |= other.defined_in
        self.spelled |= other.spelled
        self.time_zones |= other.time_zones
        self.loaded |= other.loaded
        self.written |= other.written
        self.temporary |= other.temporary
        self.renames |= other.renames
        for name, seqno in other.unsafe.items():
            self.add_unsafe(name, seqno)
        self.undone |= other.undone
        for key, widest in other.widest.items():
            self.add_widest(key, widest)
        self._add_length(*other.longest_statement)
        for requirement, seqno in other.requirements.items():
            self.add_requirement(requirement, seqno)

    def _merge_filtered(self, other: Tally) -> None:
        for key, rows in other.filtered.items():
            self.filtered[key] = self.filtered.get(key, RowCounts()) + rows
        for rule, count in other.rules.items():
            self.rules[rule] = self.rules.get(rule, RuleCounts()) + count


def _add_all(sums: dict[TableKey, RowCounts], more: Mapping[TableKey, RowCounts]) -> None:
    """Add the counts of each table."""
    for key, rows in more.items():
        known = sums.get(key)
        sums[key] = rows if known is None else known + rows
