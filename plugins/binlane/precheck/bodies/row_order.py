"""Statements whose result depends on the order in which a server happens to take rows, also by what is behind them."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, cached_property, partial
from itertools import islice
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SessionContext, TableKey
from binlane.plan.transaction.decode import statement_facts
from binlane.precheck.bodies.body_parts import (
    Body,
    BodyPart,
    bodies,
    has_full_group_by,
    once_for_each,
    running_statements,
)
from binlane.precheck.bodies.row_effects import effects_in_turn
from binlane.precheck.bodies.rows_met import (
    ANY_SET_BEFORE,
    Beside,
    SetBefore,
    assignments_of,
    changes_of,
    upserts_of,
)
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.precheck.statements.read_order import common_engine
from binlane.rename_rules import lower
from binlane.safe_text import shown
from binlane.schema.common_values import UNKNOWN_CHARSET
from binlane.schema.compare import Severity
from binlane.schema.derived_tables import derived_table
from binlane.schema.letter_case import ANY_CASE
from binlane.schema.model import ENGINES_WITHOUT_KEYS, Column, Key, KeyColumn, Table
from binlane.schema.order_proof import is_settled
from binlane.schema.programs import Program
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.parse.made_table import MadeColumn, MadeTable, altered_table, made_table
from binlane.sql.parse.query_blocks import NO_QUERIES, Query, blocks
from binlane.sql.parse.row_changes import RowChange
from binlane.sql.parse.row_effects import (
    PLAIN,
    Assignment,
    Upsert,
    finds,
    may_set_of_row,
    reads,
    sets_constants,
    writes,
)
from binlane.sql.parse.row_order import (
    BESIDE_GROUP,
    OrderedPart,
    assigned_and_read,
    fed,
    feeding,
    order_felt,
    sets_number,
    sets_variable,
    taken_in_turn,
    texts_of,
    written_in,
)
from binlane.sql.parse.unsafe import is_one_row, is_query_of_rows, row_verb
from binlane.sql.parse.view_columns import with_column_list
from binlane.sql.programs.reach import folded
from binlane.sql.sql_modes import calls_bare
from binlane.work.logged_statements import LaneStatement

_FELT: Final = re.compile(
    rb"\b(?:SELECT|TABLE|LIMIT|FETCH|RAND|NEXT\w*|IGNORE|(?:STRAIGHT_)?JOIN)\b|:=|\A\s*UPDATE\b[^,]*,.*?\bSET\b"
    rb"|\bUPDATE\b[^=]*?,[^=]*?\bSET\b",
    re.IGNORECASE | re.DOTALL,
)
"""What every statement has that may feel the order of rows by its own text; of an UPDATE a list of tables, in front of
SET, whatever a comment between them has."""
_MAKES: Final = re.compile(rb"\b(?:CREATE|ALTER|RENAME)\b.*\bTABLE\b", re.IGNORECASE | re.DOTALL)
_SINCE_JOINED_QUERIES: Final = (11, 1, 0)
"""Since when MariaDB joins the tables of IN and EXISTS in an UPDATE."""
_MOST_FINDINGS: Final = 20
_SEPARATED: Final = (Token(TokenKind.SYMBOL, ";"),)
"""Between two texts."""
_EXPECTED: Final = "rows in an order that both servers have"
_TODO: Final = (
    "each server takes the rows in an order of its own: give the query an ORDER BY by a unique key (or an UPDATE by a "
    "join one statement for each column), log it as rows (binlog_format=ROW for its session; MIXED is enough where the "
    "source warns of it), or set allow_unsafe in the channel's file, and copy the table again behind the window "
    "(`binlane recopy CHANNEL --table ...`)"
)


def check_row_order(situation: Situation) -> Iterator[Finding]:
    """Statements, and routines, views and triggers behind them, whose result depends on the order in which a server
    takes rows, without a key of their tables that settles it."""
    if situation.channel.apply.allow_unsafe or not takes_rows(situation):
        return
    rows = RowOrder(situation)
    yield from islice((*rows.of_texts(), *rows.behind()), _MOST_FINDINGS)


def takes_rows(situation: Situation) -> bool:
    """Whether the window has statements that may take rows."""
    needs = situation.needs
    is_filled = needs.ddl and any(each.facts.create_select for each in situation.every_text)
    return needs.statements or is_filled


def takes_number(logged: LaneStatement) -> bool:
    """Whether the statement, or what is behind it, has taken a number: only then the log has an INSERT_ID."""
    return logged.item.context is not None and logged.item.context.insert_id is not None


def ends_at_equal_keys(text: LoggedText, key: TableKey) -> bool:
    """Whether a statement inserts rows into a table itself, and has ended without an error, so that none of them have
    one key: an INSERT that neither leaves rows out nor changes others."""
    is_insert = row_verb(text.tokens) == "INSERT" and {"IGNORE", "DUPLICATE"}.isdisjoint(text.words)
    is_whole = not text.context.error_code and text.context.unique_checks is not False
    return is_insert and is_whole and folded(key) in map(folded, text.facts.written)


@dataclass
class RowOrder:
    """The definitions of tables at a statement, and what was found of texts that differ in literals alone."""

    # no slots: cached_property keeps what the servers have said

    situation: Situation
    seen: dict[Hashable, str | None] = field(default_factory=dict)
    engines: dict[TableKey, str] = field(default_factory=dict)
    """Of tables, ``common_engine``."""
    _others: dict[int, frozenset[int]] = field(default_factory=dict)
    _changes_of: Callable[[Body], Sequence[RowChange]] = field(default_factory=partial(once_for_each, changes_of))
    _assignments_of: Callable[[Body], Sequence[Assignment]] = field(
        default_factory=partial(once_for_each, assignments_of)
    )
    _upserts_of: Callable[[Body], Sequence[Upsert]] = field(default_factory=partial(once_for_each, upserts_of))

    def of_texts(self) -> Iterator[Finding]:
        """What statements say themselves."""
        flavor = self.situation.plan.flavor
        for logged, _ in self.situation.transactions_with(self._felt):
            header = logged.header
            text = LoggedText.of(header.first_seqno, header.source, logged.item, flavor)
            if text is None or row_verb(text.tokens) is None:
                continue
            altered = self.situation.plan.altered
            tokens = tuple(text.tokens_with_places)
            named = (text.context.database, text.context.sql_mode, takes_number(logged), tokens)
            at = (*named, header.first_seqno) if altered else named
            if at not in self.seen:
                self.seen[at] = self._of_text(text, tokens, logged)
            if (what := self.seen[at]) is not None:
                yield _finding(logged, what)

    @cached_property
    def _felt(self) -> re.Pattern[bytes]:
        """What statements have that may feel the order of rows; by their own text, or as UPDATEs of a view."""
        names = {key.table for key in self._views}
        if not names:
            return _FELT
        # names in other letters are not told from others by their bytes
        either = b"|".join(re.escape(name.encode()) for name in sorted(names)) if all(map(str.isascii, names)) else b"."
        return re.compile(_FELT.pattern + rb"|\bUPDATE\b[^=]*?(?:" + either + rb")", _FELT.flags)

    def behind(self) -> Iterator[Finding]:
        """What is behind statements."""
        every = self.every_body
        whole = ((at, self.others(at)) for at in range(len(every)))
        # what a statement runs is a part of what the window does
        known = {each: found for each in whole if (found := self.parts(every[each[0]], each[1]))}
        felt = frozenset(at for at, _ in known)
        wanted = sorted(felt.union(*(others for _, others in known)))
        for text, logged, places in running_statements(self.situation, [every[at] for at in wanted]):
            run = frozenset(wanted[place] for place in places)
            for at in sorted(run & felt):
                others = run & self.others(at)
                if (at, others) not in known:
                    known[at, others] = self.parts(every[at], others)
                for part in known[at, others]:
                    if self._is_felt(part, text, logged, every[at]):
                        yield _finding(logged, f"{part.what} of {every[at].difference.where}")

    def _is_felt(self, part: BodyPart, text: LoggedText | None, logged: LaneStatement, body: Body) -> bool:
        """Whether a part of a body matters to a statement that runs it."""
        if part.numbers and not takes_number(logged):
            return False
        if text is None:
            return not part.needs_rows
        if part.needs_rows and self._takes_settled_rows(text):
            return False
        if part.among is not None and ends_at_equal_keys(text, part.among):
            return False
        if part.by_own_mode and has_full_group_by(text.context):
            return False
        if part.reads is None:
            return True
        # a view that is changed takes the rows of its tables as the statement does
        is_view = self.view_of(body.difference.key) is not None
        written = set(map(ANY_CASE.table, text.facts.written)) if is_view else self._bases(text.facts.written)
        return not part.reads.isdisjoint(written)

    def parts(self, body: Body, others: Iterable[int]) -> Sequence[BodyPart]:
        """What of a body shows the order of rows, where a statement runs these others of ``every_body``, too."""
        beside = self._beside([self.every_body[at] for at in sorted(others)])
        return (*self._own_parts(body), *effects_in_turn(body, self._table_behind, beside, self._set_before(body)))

    @cached_property
    def _own_parts(self) -> Callable[[Body], Sequence[BodyPart]]:
        return once_for_each(lambda body: tuple(self._of_body(body)))

    def _of_body(self, body: Body) -> Iterator[BodyPart]:
        table_of = self._table_behind
        is_full = bool(body.full_group_by)
        fired = table_of(body.difference.key) if body.events else None
        for part in order_felt(body.tokens, body.database, full_group_by=is_full, view_of=self.view_of, is_body=True):
            if not is_settled(part, table_of, fired):
                by_own_mode = body.full_group_by is None and part.what == BESIDE_GROUP
                yield BodyPart(_named(part), needs_rows=False, by_own_mode=by_own_mode)
        for what in self._assigned_and_read(body.tokens, body.database):
            yield BodyPart(what, needs_rows=False)
        if (name := sets_variable(body.tokens)) is not None:
            yield BodyPart(f"the variable {name}", needs_rows=True)
        for name in dict.fromkeys(taken_in_turn(body.tokens)):
            yield BodyPart(f"{name}() of each row", needs_rows=True)
        if sets_number(body.tokens):
            yield BodyPart("LAST_INSERT_ID() of each row", needs_rows=True)
        for key in written_in(body.tokens, body.database):
            if self.is_numbered(key):
                yield BodyPart(f"an AUTO_INCREMENT of {key}", needs_rows=True, numbers=True)

    def _beside(self, others: Sequence[Body]) -> Beside:
        changed = {base for each in others for base in self._written(each)}
        of_body = (self._changes_of, self._assignments_of, self._upserts_of)
        return Beside(changed, others, self._compared_bases, *of_body, self._set_before_in)

    def others(self, at: int) -> frozenset[int]:
        """The bodies, by their places in ``every_body``, that change what one reads, or what it changes, too: but for
        INSERTs alone, of which no one finds the rows of others."""
        if at not in self._others:
            body, every = self.every_body[at], self.every_body
            read = self._bases(reads(body.tokens, body.database))
            by_base = [self._writing.get(base, ()) for base in read]
            for base in self._written(body):
                meeting = self._meeting.get(base, frozenset())
                by_base.append(self._writing[base] if at in meeting else meeting)
            found = frozenset(itertools.chain(*by_base))
            # another text of the same body runs in its place
            self._others[at] = frozenset(each for each in found if _identity(every[each]) != _identity(body))
        return self._others[at]

    @cached_property
    def _writing(self) -> Mapping[TableKey, Collection[int]]:
        """The bodies that change a table."""
        return self._places(self._written)

    @cached_property
    def _meeting(self) -> Mapping[TableKey, frozenset[int]]:
        """The bodies that find rows of a table which they change, or insert rows that may be there."""

        def met(body: Body) -> frozenset[TableKey]:
            upserted = (each.key for each in self._upserts_of(body) if each.what != PLAIN)
            return self._bases((*finds(body.tokens, body.database), *upserted))

        return {base: frozenset(places) for base, places in self._places(met).items()}

    def _places(self, tables: Callable[[Body], Iterable[TableKey]]) -> Mapping[TableKey, Collection[int]]:
        found = defaultdict[TableKey, list[int]](list)
        for at, body in enumerate(self.every_body):
            for base in tables(body):
                found[base].append(at)
        return dict(found)

    @cached_property
    def _written(self) -> Callable[[Body], frozenset[TableKey]]:
        return once_for_each(lambda body: self._bases(writes(body.tokens, body.database)))

    def _bases(self, keys: Iterable[TableKey]) -> frozenset[TableKey]:
        return frozenset(base for key in keys for base in self._compared_bases(key))

    @cached_property
    def _compared_bases(self) -> Callable[[TableKey], frozenset[TableKey]]:
        return cache(lambda key: frozenset(map(ANY_CASE.table, self.bases_of(key))))

    @cached_property
    def _table_behind(self) -> Callable[[TableKey], Table | None]:
        """The definitions of the tables of bodies."""
        return cache(self.table_of(self.situation.plan.first_seqno))

    @cached_property
    def every_body(self) -> Sequence[Body]:
        """All bodies behind the window's statements, by ``bodies``."""
        return list(bodies(self.situation))

    def bases_of(self, key: TableKey, *, changed: bool = False) -> Collection[TableKey]:
        """The tables of which a view shows rows, by any query that it has; of another name the name itself.

        ``changed``: only those that a statement may change through it: no server changes those of a nested query.
        """
        found, seen, left = set[TableKey](), set[TableKey](), [key]
        while left:
            name = left.pop()
            text = self.view_of(name)
            if text is None:
                found.add(name)
            elif name not in seen:
                seen.add(name)
                taken = (each for each in blocks(text, name.database) if each.is_top or not changed)
                left += (each.table for block in taken for each in block.sources if each.table)
        return found

    def _set_before(self, body: Body) -> frozenset[str] | None:
        """The columns of a row that the triggers of its table may set in front of its INSERT; None: any."""
        key, found = body.difference.key, set[str]()
        if not body.is_before or any(key in text.facts.triggered for text in self.situation.every_text):
            return None
        for each in itertools.chain(*self.situation.stored_triggers):
            if folded(each.key) == folded(key) and "BEFORE" in each.time.upper():
                columns = self._set_by(each).columns
                if columns is None:
                    return None
                found |= columns
        return frozenset(found)

    @cached_property
    def _set_before_in(self) -> Callable[[TableKey], SetBefore]:
        """What the triggers of a table, as ``ANY_CASE`` has it, may set in front of its INSERTs and UPDATEs: those of
        both servers. One that the window makes may set any column."""
        made = {ANY_CASE.table(key) for text in self.situation.every_text for key in text.facts.triggered}
        triggers = defaultdict[TableKey, list[Program]](list)
        for each in itertools.chain(*self.situation.stored_triggers):
            time = each.time.upper()
            if "BEFORE" in time and ("INSERT" in time or "UPDATE" in time):
                triggers[ANY_CASE.table(each.key)].append(each)

        def found(key: TableKey) -> SetBefore:
            every = [self._set_by(each) for each in triggers.get(key, ())]
            columns = [each.columns for each in every if each.columns is not None]
            if key in made or len(columns) < len(every):
                return ANY_SET_BEFORE
            return SetBefore(frozenset[str]().union(*columns), is_varied=any(each.is_varied for each in every))

        return cache(found)

    def _set_by(self, trigger: Program) -> SetBefore:
        """What a BEFORE trigger may set of its row."""
        # few windows need it
        from binlane.sql.temporary_routines import tokens_of

        tokens = tokens_of(trigger.text, self.situation.plan.flavor, trigger.sql_mode)
        columns = None if tokens is None or calls_bare(trigger.sql_mode) else may_set_of_row(tokens)
        if tokens is None or columns is None:
            return ANY_SET_BEFORE
        return SetBefore(columns, is_varied=bool(columns) and not sets_constants(tokens))

    def view_of(self, key: TableKey) -> Sequence[Token] | None:
        """What a view takes its rows by; of one that differs, or is made by the window, any text that it has."""
        return self._views.get(self.situation.compared(key))

    @cached_property
    def _views(self) -> Mapping[TableKey, Sequence[Token]]:
        # few windows need it
        from binlane.sql.temporary_routines import tokens_of

        situation, found = self.situation, dict[TableKey, Sequence[Token]]()
        if situation.may_reach_programs:
            for side in situation.stored_programs:
                for each in side:
                    if each.kind == "view" and each.text is not None:
                        tokens = tokens_of(each.text, situation.plan.flavor, each.sql_mode)
                        name = situation.compared(each.key)
                        found[name] = (*found.get(name, ()), *_SEPARATED, *(tokens or ()))
        for text in situation.every_text:
            for key in text.facts.views:
                query = with_column_list(text.tokens_with_places)
                name = situation.compared(key)
                found[name] = (*found.get(name, ()), *_SEPARATED, *query)
        return found

    def is_numbered(self, key: TableKey) -> bool:
        """Whether a table has an AUTO_INCREMENT column, by the target or by the window."""
        return self.situation.compared(key) in self._numbered

    @cached_property
    def _numbered(self) -> frozenset[TableKey]:
        situation = self.situation
        found = {key for key, table in situation.every_table.tables.items() if table.auto_increment is not None}
        if situation.plan.altered.tables:
            for text in situation.every_text:
                if "AUTO_INCREMENT" in text.words:
                    found |= text.facts.tables
        return situation.tables.letter_case.tables(frozenset(found))

    @cached_property
    def _made(self) -> Mapping[TableKey, Sequence[Table]]:
        """The tables that the window makes, temporary ones, too, by their CREATE TABLE and what adds to it, under all
        their names. One that is made or altered otherwise has a definition without columns."""
        found = dict[TableKey, list[Table]]()
        making = (logged for logged, _ in self.situation.transactions_with(_MAKES))
        for logged in sorted(making, key=lambda each: each.header.first_seqno):
            header = logged.header
            text = LoggedText.of(header.first_seqno, header.source, logged.item, self.situation.plan.flavor)
            verb = "" if text is None or text.facts.first is None else text.words[0]
            if text is None or text.facts.first is None or verb not in ("CREATE", "ALTER", "RENAME"):
                continue
            key = text.facts.first
            if verb == "CREATE":
                like = self._like(text) if "LIKE" in text.words else None
                made = like or _definition(key, made_table(text.tokens_with_numbers), _named_engine(text.tokens))
                found.setdefault(self.situation.compared(key), []).append(made)
            elif verb == "ALTER" and self.situation.compared(key) in found:
                before = found[self.situation.compared(key)][-1]
                altered = altered_table(_as_made(before), text.tokens_with_numbers) if before.columns else None
                found[self.situation.compared(key)].append(
                    _definition(key, altered, before.engine or _named_engine(text.tokens))
                )
            for old, new in text.facts.moves:
                if self.situation.compared(old) in found:
                    # each name has had the definitions of both
                    found.setdefault(self.situation.compared(new), []).extend(
                        replace(each, key=new) for each in found[self.situation.compared(old)]
                    )
        return found

    def _like(self, text: LoggedText) -> Table | None:
        """The table that a CREATE TABLE .. LIKE repeats, if it is known."""
        others = [key for key in text.facts.tables if key != text.facts.first]
        known = self.situation.tables.table(others[0]) if len(others) == 1 else None
        # the statement itself, which names both tables, alters the new one alone
        if known is None or self.situation.plan.altered.before(known.key, text.seqno - 1):
            return None
        return replace(known, engine=_without_keys(known.engine))

    def _of_text(self, text: LoggedText, tokens: Sequence[Token], logged: LaneStatement) -> str | None:
        database, table_of = text.context.database or "", self.table_of(text.seqno)
        full = has_full_group_by(text.context)
        for part in order_felt(tokens, database, full_group_by=full, view_of=self.view_of):
            if not is_settled(part, table_of):
                return _named(part)
        for what in self._assigned_and_read(tokens, database):
            return what
        if not is_query_of_rows(text.tokens) or is_one_row(text.tokens):
            return None
        facts = statement_facts(logged.item.payload, text.context or SessionContext(), text.flavor)
        if row_verb(text.tokens) not in ("INSERT", "REPLACE", "CREATE"):
            # the rows of a file come in its order, and an UPDATE numbers none
            return None
        numbered = [key for key in facts.written if self.is_numbered(key)]
        is_numbering = takes_number(logged) or row_verb(text.tokens) == "CREATE"
        if numbered and is_numbering and not self._takes_settled_rows(text):
            return f"an AUTO_INCREMENT of {min(map(str, numbered))} for the rows of a query"
        return None

    def _assigned_and_read(self, tokens: Sequence[Token], database: str) -> Iterator[str]:
        for column, is_alone in assigned_and_read(tokens, database, self.view_of):
            if self._has_mysql or (is_alone and self._joins_queries):
                yield f"an UPDATE by a join or a query that sets {column} and reads it for another column"

    @cached_property
    def _has_mysql(self) -> bool:
        return Flavor.MYSQL in (self.situation.plan.flavor, self.situation.target.flavor)

    @cached_property
    def _joins_queries(self) -> bool:
        """Whether one of two MariaDB servers may make an UPDATE by a query one by a join."""
        numbers = (self.situation.target.number, *self.situation.logged_versions.values())
        return any(number >= _SINCE_JOINED_QUERIES for number in numbers)

    def _takes_settled_rows(self, text: LoggedText) -> bool:
        """Whether a statement takes the rows that it changes in one order, or has them in its text."""
        if row_verb(text.tokens) in ("INSERT", "REPLACE") and not is_query_of_rows(text.tokens):
            return True
        table_of = self.table_of(text.seqno)
        feeds = list(feeding(text.tokens_with_places, text.context.database or ""))
        return bool(feeds) and all(is_settled(fed(each), table_of) for each in feeds)

    def table_of(self, seqno: int) -> Callable[[TableKey], Table | None]:
        """The definitions of tables as a statement of ``seqno`` finds them, those of views by their queries; None for
        those that are not known. They have an engine only if both servers read them in one way."""
        situation, within = self.situation, set[TableKey]()

        def found(key: TableKey) -> Table | None:
            made = self._made.get(self.situation.compared(key), ())
            if made:
                # of several of one name, each has the rows of some statement
                known = situation.tables.table(key)
                every = (*made, *(() if known is None else (replace(known, engine=_without_keys(known.engine)),)))
                if len(set(map(_primary, every))) > 1 or not all(each.columns for each in every):
                    return None
                engine = _without_keys(*(each.engine for each in every))
                return replace(max(made, key=lambda each: len(each.columns)), engine=engine)
            if (query := self._query_of(key)) is not None:
                return None if key in within else of_view(key, query)
            target = situation.tables.table(key)
            source = None if situation.source_tables is None else situation.source_tables.table(key)
            if target is not None and not situation.plan.altered.before(key, seqno):
                return self._read_alike(target if source is None else _of_both(target, source))
            # altered on the way: what it has at both ends it has had in between
            if source is None or (target is not None and not _has_same_keys(source, target)):
                return None
            is_target_s = target is not None
            return self._read_alike(source) if is_target_s else replace(source, engine=_without_keys(source.engine))

        def of_view(key: TableKey, query: Query) -> Table | None:
            # two servers may have views that name each other
            within.add(key)
            table = derived_table(key, query, found)
            within.discard(key)
            return table

        return found

    def _query_of(self, key: TableKey) -> Query | None:
        """The query of a view; one that cannot be read for a view of several."""
        if (text := self.view_of(key)) is None:
            return None
        texts = {tuple(token[:2] for token in each): each for each in islice(texts_of(text), 1, None)}
        return Query(next(iter(texts.values()), ()), key.database, NO_QUERIES, is_plain=len(texts) == 1)

    def _read_alike(self, table: Table) -> Table:
        if table.key not in self.engines:
            sides = (self.situation.tables, self.situation.source_tables)
            every = (side.table(table.key) for side in sides if side is not None)
            alone = _without_keys(*(each.engine for each in every if each is not None))
            self.engines[table.key] = common_engine(self.situation, table) or alone
        return replace(table, engine=self.engines[table.key])


def _identity(body: Body) -> Hashable:
    """The same for each text that a body has on one of the servers, or gets in the window."""
    return folded(body.difference.key), lower(body.name) if body.events else ""


def _of_both(target: Table, source: Table) -> Table:
    """The target's table with each index by which one of the servers may read it; unique are those of both."""
    known = {(key.primary, key.unique, key.columns) for key in source.keys}
    both = {key for key in target.keys if (key.primary, key.unique, key.columns) in known}
    if len(both) == len(target.keys) == len(source.keys):
        return target
    plain = (replace(key, unique=False, primary=False) for key in (*target.keys, *source.keys) if key not in both)
    return replace(target, keys=(*(key for key in target.keys if key in both), *plain))


def _primary(table: Table) -> tuple[str, ...]:
    key = table.primary_key
    return () if key is None else tuple((part.name or "").lower() for part in key.columns)


def _as_made(table: Table) -> MadeTable:
    columns = tuple(MadeColumn(column.name, column.data_type, column.length) for column in table.columns)
    return MadeTable(columns, (_primary(table),) if table.primary_key is not None else ())


def _without_keys(*engines: str) -> str:
    """The engine by which a table may take two rows of one unique key; "" if none of these is one."""
    return next((each.lower() for each in engines if each.lower() in ENGINES_WITHOUT_KEYS), "")


def _named_engine(tokens: Sequence[Token]) -> str:
    """``_without_keys`` of the engine that a statement names."""
    places = (at + 1 for at in range(len(tokens) - 1) if tokens[at].upper == "ENGINE")
    named = (tokens[min(at + is_symbol(tokens[at], "="), len(tokens) - 1)] for at in places)
    # in quotes nobody knows which one
    return _without_keys(*(each.text or "blackhole" for each in named))


def _definition(key: TableKey, made: MadeTable | None, engine: str = "") -> Table:
    """What is known of a table that the window makes. Of its engine that is ``_without_keys``: no proof goes by how it
    is read."""
    columns = () if made is None else made.columns
    keys = () if made is None else made.keys
    return Table(
        key,
        engine,
        tuple(_made_column(at, each) for at, each in enumerate(columns, 1)),
        tuple(Key("PRIMARY", True, True, tuple(map(KeyColumn, names))) for names in keys),
    )


_NO_TEXTS: Final = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "bigint", "integer", "bool", "boolean", "serial", "bit", "year"}
    | {"int1", "int2", "int3", "int4", "int8", "middleint", "decimal", "dec", "numeric", "fixed", "number"}
    | {"float", "double", "date", "time", "datetime", "timestamp", "binary", "varbinary", "blob", "uuid"}
    | {"tinyblob", "mediumblob", "longblob", "inet4", "inet6"}
)
_SYNONYMS: Final = {"real": "double", "float4": "float", "float8": "double"}
_BYTES_OF_A_CHARACTER: Final = 4


def _made_column(ordinal: int, made: MadeColumn) -> Column:
    """A type that is not known to be another one is a text by a collation that the statement need not tell."""
    kind = _SYNONYMS.get(made.data_type, made.data_type)
    if kind in _NO_TEXTS:
        octets = made.length if kind.endswith("binary") else None
        return Column(made.name, ordinal, kind, length=made.length, octets=octets)
    octets = None if made.length is None else made.length * _BYTES_OF_A_CHARACTER
    return Column(made.name, ordinal, kind, length=made.length, octets=octets, charset=UNKNOWN_CHARSET)


def _has_same_keys(one: Table, other: Table) -> bool:
    return one.engine == other.engine and one.keys == other.keys


def _named(part: OrderedPart) -> str:
    return f"{part.what} for rows in an order that no key settles"


def _finding(logged: LaneStatement, what: str) -> Finding:
    header = logged.header
    where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
    return Finding(Severity.FATAL, where, _EXPECTED, what, _TODO, header.first_seqno)
