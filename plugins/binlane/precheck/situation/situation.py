"""What every check looks at: a window with its plan, the two servers, and what the window asks of them.

A ``Situation`` is frozen. Facts of the servers are read when a check asks for them first (``facts``). What follows from
comparing source, log and target is a property here, so that a check is a function from facts to findings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from typing import Final, NamedTuple

from sqlalchemy import Connection

from binlane.apply.rows.writers import sends_row_events
from binlane.binlog.types.literals import identifier
from binlane.choices import Writer
from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.errors import SourceError
from binlane.lazy_dataclass import dataclass
from binlane.model import SPECIAL_SHARDS, BlockHeader, Item, ItemKind, SessionContext, TableKey
from binlane.plan.row_accounting import ROWS_ONLY
from binlane.plan.settings import PlanSettings
from binlane.plan.transaction.altered_tables import Alterations, without_altered_parents, without_triggers
from binlane.plan.transaction.collations import Collations
from binlane.plan.transaction.decode import statement_facts
from binlane.plan.transaction.rename import (
    is_alias,
    meant,
    name_of,
    renamed_alterations,
    renamed_schema,
    sources_of,
    without_own_name,
)
from binlane.plan.window.merge import EMPTY
from binlane.plan.window_plan import TableCounts, WindowPlan
from binlane.precheck.account.privileges import Grants, read_grants
from binlane.precheck.account.row_writer import writer_of, written_by_sql
from binlane.precheck.definitions.noted import (
    NotedDefinitions,
    foreign_keys_as_they_are,
    source_as_it_is,
    source_schema_of,
    target_as_it_is,
)
from binlane.precheck.definitions.program_checks import read_known
from binlane.precheck.situation.facts import Source, Target
from binlane.precheck.situation.parser import ParserAnswers, ask_parser
from binlane.schema.compare import Difference, Severity, compare_schemas, letter_case, rules_for
from binlane.schema.followers import acts, compare_followers, databases_of_followers
from binlane.schema.letter_case import LetterCase, lower
from binlane.schema.logged import compare_logged_key, compare_table_map
from binlane.schema.model import ForeignKey, Schema
from binlane.schema.programs import Program
from binlane.servers.catalog import read_databases, read_schema
from binlane.servers.engines import engine_of, in_background
from binlane.servers.programs import read_program_names, read_programs, read_triggers
from binlane.servers.variables import version_number
from binlane.sessions.server_proof import ServerProof
from binlane.shards.renaming import Renaming
from binlane.shards.selection import Extent, Selection
from binlane.sql.logged_statement import LoggedText, first_made
from binlane.sql.parse.facts import StatementKind
from binlane.sql.parse.lexer import QUALIFIER
from binlane.sql.programs.changes import defined_keys, program_changes
from binlane.sql.programs.known import ProgramSet
from binlane.sql.programs.reach import Reach, Text, naming, plain_name, reach_of, routine_key
from binlane.sql.requirements import CASCADE_TRIGGERS, COMPUTED_ZONE, Requirement
from binlane.sql.sql_modes import calls_bare
from binlane.state.records.databases import other_writers
from binlane.state.records.restores import has_restore
from binlane.state.records.verifications import read_tables_being_copied
from binlane.state.window_folders import WindowFolders
from binlane.state.windows import read_window
from binlane.work.files import WorkFolder
from binlane.work.logged_statements import (
    LaneStatement,
    every_ddl,
    every_form,
    every_statement,
    first_rows,
    first_statement,
    item_kinds,
    tables_that_cascade,
)
from binlane.work.plan_inputs import Inputs
from binlane.work.planned import PlannedLanes

_CHANGING: Final = re.compile(rb"\b(?:UPDATE|DELETE|REPLACE)\b", re.IGNORECASE)
"""What statements have that update or delete rows."""


def programs_made_by(text: LoggedText) -> Iterator[tuple[TableKey, str]]:
    """The routines, views and triggers that a statement of the log makes: the key that reaches it, and its database."""
    return defined_keys(text.tokens, text.facts, text.context.database or "")


@dataclass(frozen=True, slots=True)
class Needs:
    """What a window, or a first copy, asks of the target."""

    databases: frozenset[str] = frozenset()
    """Every database that is written."""
    tables: int = 0
    """How many tables are written as rows."""
    statements: bool = False
    """There are statements apart from DDL."""
    loads: bool = False
    """There is LOAD DATA, whose files the apply tasks send."""
    ddl: bool = False
    accounts: bool = False
    """There are CREATE USER, GRANT and their like."""
    time_zones: frozenset[str] = frozenset()
    """The session time zones of the statements, as logged."""
    biggest_item: int = 0
    """Bytes of the longest usual BINLOG statement, before base64; longer ones the filter has refused already."""
    connections: int = 0
    """How many the apply tasks open at most."""
    by_statements: bool = False
    """Rows are written by INSERT, UPDATE and DELETE, not sent as row events."""
    overwrite: bool = False
    """Rows that met drift are written by statements, whichever writer has the others."""
    row_statements: bool = False
    """Some tables' rows are written by statements, whichever writer has the others."""
    copies: bool = False
    """Copies of temporary tables are kept."""
    allow_events: bool = False
    """The channel accepts that the target's own events write to replicated databases."""


@dataclass(frozen=True)
class TargetSituation:
    """A target before anything is written to it: all that the checks of the server and its account look at."""

    target: Target
    needs: Needs


@dataclass(frozen=True)
class Situation(TargetSituation):
    """A window before its first write."""

    channel: ChannelConfig
    selection: Selection
    """What the channel's file takes."""
    plan: WindowPlan
    settings: PlanSettings
    """The channel's settings that the plan was made with."""
    logged_by: frozenset[str]
    """Versions of the servers that wrote the log."""
    plans: WorkFolder
    """The plan's folder."""
    noted: NotedDefinitions
    """Of the window's folder."""
    tables: Schema
    """The target's databases that the window names, as they are now."""
    planned: Schema
    """All databases of the target, as they were when the window was read."""
    source: Source | None
    """None for an archive."""
    by_sql: frozenset[TableKey]
    """Tables whose rows statements write."""
    begun: bool
    """The target has the plan's digest: the window was checked before, and some of it may have run."""
    read_statements: Callable[[], ParserAnswers]
    """Asks the target's parser about the window's statements."""
    older_sessions: int = 0
    """The highest id of a source's connection that may be older than the channel."""

    @property
    def renaming(self) -> Renaming:
        """What the plan calls the source's databases on the target."""
        return self.settings.renaming

    @cached_property
    def of_restore(self) -> bool:
        """The window is one of a restore: the target's other databases are in use, and nothing of it belongs there."""
        return self.selection.selects and self.target.ask(has_restore, self.plan.channel)

    @property
    def allow_nontransactional(self) -> bool:
        """The channel takes tables whose changes cannot commit with the lane's position; never where lanes share
        blocks."""
        return self.channel.apply.allow_nontransactional and self.plan.division is None

    @property
    def allow_triggers(self) -> frozenset[str]:
        """Tables, as database.table, whose triggers may fire; none where lanes share blocks."""
        return frozenset(self.channel.apply.allow_triggers if self.plan.division is None else ())

    @cached_property
    def source_as_named(self) -> Schema | None:
        """The source's definitions as they are now, in its own names; None for an archive. Raises SourceError."""
        return None if self.source is None else self.source.read_schema()

    @cached_property
    def source_tables(self) -> Schema | None:
        """The same in the target's names."""
        if self.source_as_named is None:
            return None
        if not self.renaming:
            return self.source_as_named
        return renamed_schema(self.source_as_named, partial(name_of, self.renaming))

    @cached_property
    def everything(self) -> tuple[Schema | None, Schema]:
        """Of both servers what all their databases hold, in the target's names; for an archive, None and the target's.
        Raises SourceError."""
        target = self.target.ask(read_schema)
        if self.source is None:
            return None, target
        return renamed_schema(self.source.read_everything(), partial(name_of, self.renaming)), target

    @cached_property
    def stored_triggers(self) -> tuple[tuple[Program, ...], tuple[Program, ...]]:
        """Of source and target, all that the accounts see, in the target's names; for an archive, none of the source.
        Raises SourceError."""
        return self._named(() if self.source is None else self.source.ask(read_triggers), self.target.triggers)

    @cached_property
    def stored_programs(self) -> tuple[tuple[Program, ...], tuple[Program, ...]]:
        """The same of routines and views. Raises SourceError."""
        return self._named(() if self.source is None else self.source.ask(read_programs), self.target.programs)

    @cached_property
    def known_programs(self) -> ProgramSet:
        """The programs that both servers had alike where the window begins."""
        plan, folders = self.plan, WindowFolders(self.channel.work.uri, self.plan.channel)
        return self.target.ask(read_known, folders, plan.source, plan.first_seqno)

    @cached_property
    def program_names(self) -> frozenset[str]:
        """The names of routines and views of either server, without their databases. Raises SourceError."""
        ours = frozenset() if self.source is None else self.source.ask(read_program_names)
        return frozenset(key.table for key in ours | self.target.ask(read_program_names))

    @cached_property
    def may_reach_programs(self) -> bool:
        """Whether a statement has the name of a routine or view, or of a table with triggers, which may reach one:
        names are read in a fifth of the time of texts. Raises SourceError."""
        made = {plain_name(key) for text in self.every_text for key, _ in programs_made_by(text)}
        changes = [
            each
            for text in self.every_text
            for each in program_changes(text.tokens, text.facts, text.context.database or "")
        ]
        names = self.program_names | made | {each.name.table for each in changes if each.name is not None}
        # a view keeps its query under its new name
        renamed = [(old.table, new.table) for each in changes for old, new in each.renames]
        if any(old in names for old, _ in renamed):
            names |= {new for _, new in renamed}
        if not names:
            return False
        if self.fires_by_cascades:
            return True
        tables = {each.key.table for side in self.stored_triggers for each in side}
        return any(True for _ in self.transactions_with(naming({*names, *tables})))

    @cached_property
    def reach(self) -> Reach:
        """What the window's statements reach, by the programs of both servers and of the window: each of their texts is
        read for it. Raises SourceError."""
        from binlane.sql.temporary_routines import tokens_of

        triggers, called = list[Text](), list[Text]()
        for each in chain(*self.stored_triggers, *self.stored_programs):
            tokens, key = tokens_of(each.text, self.plan.flavor, each.sql_mode), each.key
            is_routine = each.kind not in ("trigger", "view")
            name = routine_key(key.database, key.table) if is_routine else key
            kind = triggers if each.kind == "trigger" else called
            kind.append(Text(name, key.database, tokens, calls_bare(each.sql_mode)))
        for text in self.every_text:
            for key, database in programs_made_by(text):
                kind = triggers if key in text.facts.triggered else called
                kind.append(Text(key, database, text.tokens, calls_bare(text.context.sql_mode)))
        cascades = self.tables.references if self.fires_by_cascades else ()
        renames = [pair for text in self.every_text for pair in text.facts.renames]
        return reach_of(triggers, called, cascades, renames)

    @property
    def fires_by_cascades(self) -> bool:
        """Whether the window needs a target that fires the triggers of children behind a foreign key."""
        return any(each.feature == CASCADE_TRIGGERS for each in self.plan.requirements)

    def _named(
        self, ours: tuple[Program, ...], theirs: tuple[Program, ...]
    ) -> tuple[tuple[Program, ...], tuple[Program, ...]]:
        if not self.renaming:
            return ours, theirs
        named = [(each, name_of(self.renaming, each.key.database)) for each in ours]
        sides = (
            [replace(each, key=TableKey(name, each.key.table)) for each, name in named if name is not None],
            theirs,
        )
        first, second = (
            tuple(replace(each, text=self._renamed_text(each.text, on_target=on_target)) for each in side)
            for on_target, side in zip((False, True), sides, strict=True)
        )
        return first, second

    def _renamed_text(self, text: str | None, *, on_target: bool) -> str | None:
        """A body or query of a server with the target's names of databases where they qualify a name, in backticks."""

        def renamed(match: re.Match[str]) -> str:
            name = (match["quoted"] or match["plain"]).replace("``", "`")
            is_database = lower(name) in self._databases and not is_alias(match.string, match)
            new = meant(self.renaming, name, on_target=on_target) if is_database else self.renaming.target(name)
            return match[0] if new == name == self.renaming.source(name) else f"{identifier(new)}."

        return None if text is None else QUALIFIER.sub(renamed, text)

    @cached_property
    def _databases(self) -> frozenset[str]:
        """The names of both servers' databases in lower case: other names in front of a dot are those of tables, of
        aliases, or NEW and OLD. Raises SourceError."""
        theirs = frozenset() if self.source is None else self.source.ask(read_databases)
        return frozenset(map(lower, theirs | self.target.ask(read_databases)))

    def compared(self, key: TableKey) -> TableKey:
        """A table's or view's name, as the target compares it with others."""
        return self.tables.letter_case.table(key)

    def on_source(self, key: TableKey) -> TableKey:
        """The source's name of one of the target's tables. Raises SourceError."""
        theirs = None if self.source_tables is None else self.source_tables.table(key)
        named = key if theirs is None else theirs.key
        database = self.renaming.source(named.database)
        return named if database is None else TableKey(database, named.table)

    @cached_property
    def every_table(self) -> Schema:
        """The target's databases as they are now, as far as the window names them, and all others as they were when it
        was read: bodies behind its statements may write there."""
        return self.planned.with_more(self.tables)

    @cached_property
    def touched(self) -> frozenset[TableKey]:
        """The tables whose definitions decide whether the window arrives."""
        loaded = (key for key in self.plan.loaded if key not in self.tables.views)
        return frozenset({*self.plan.applied_tables, *self.plan.undone_tables, *loaded, *self.written_tables})

    @cached_property
    def written_tables(self) -> frozenset[TableKey]:
        """The target's tables that statements change, as it spells them; of others, a statement may mean a temporary
        table."""
        tables = map(self.tables.table, self.plan.written)
        return frozenset(table.key for table in tables if table is not None)

    @cached_property
    def asked(self) -> ParserAnswers:
        """The target's parser's answers; none for a window that is begun, which was asked about before."""
        if self.begun:
            return ParserAnswers()
        self.target.release()
        return self.read_statements()

    @cached_property
    def other_writers(self) -> tuple[tuple[str, str], ...]:
        """Databases of the window that another channel writes on this target, each with that channel."""
        names = self.needs.databases
        return self.target.ask(other_writers, self.plan.channel, names) if names else ()

    @property
    def logged_versions(self) -> Mapping[str, tuple[int, int, int]]:
        """The numbers in each version of ``logged_by``."""
        return {version: version_number(version) for version in self.logged_by}

    def first_rows(self, key: TableKey, after: int) -> int | None:
        """The last seqno of the first block after seqno ``after`` with rows of the table; None if there is none."""
        return first_rows(self.plans, self.plan, key, after)

    @cached_property
    def every_text(self) -> tuple[LoggedText, ...]:
        """The statements that commit by themselves, in their order: ``asked.texts`` has one of each text."""
        found = (
            LoggedText.of(each.header.first_seqno, each.header.source, each.item, self.plan.flavor)
            for each in every_ddl(self.plans, self.plan)
        )
        return tuple(sorted((text for text in found if text is not None), key=lambda each: each.seqno))

    @cached_property
    def dropped_databases(self) -> frozenset[str]:
        """The databases that the window drops, in lower case."""
        return frozenset(lower(name) for text in self.every_text for name in text.dropped_databases)

    def made_at(self, requirement: Requirement, seqno: int) -> int | None:
        """Where a statement of ``seqno``, or a later one like it, asks for what its text needs: CREATE TABLE IF NOT
        EXISTS asks for nothing where the table is there. None: nowhere."""
        name = self.tables.letter_case.name(requirement.unless)
        if not name:
            return seqno
        made = self._first_made.get(name, seqno)
        return None if made is None else max(made, seqno)

    @cached_property
    def _first_made(self) -> Mapping[str, int | None]:
        return first_made(self.every_text, self.tables.tables, self.tables.letter_case)

    def may_have_dropped(self, key: TableKey) -> bool:
        """Whether the window has begun, and a table is not there because it may have dropped its database already.

        The statements that name the table itself are among the plan's ``altered``.
        """
        is_gone = self.begun and self.tables.table(key) is None
        return is_gone and lower(key.database) in self.dropped_databases

    def first_written(self, is_it: Callable[[str], bool], after: int) -> int | None:
        """The last seqno of the first block after seqno ``after`` with a statement that commits with others and changes
        rows of a database; None if there is none. ``is_it``: whether a name is the database's."""
        if not any(is_it(key.database) for key in self.plan.written):
            return None

        def changes(item: Item) -> bool:
            facts = statement_facts(item.payload, item.context or SessionContext(), self.plan.flavor)
            return any(is_it(key.database) for key in facts.written)

        return first_statement(self.plans, self.plan, after, changes)

    def transactions_with(self, pattern: re.Pattern[bytes]) -> Iterator[tuple[LaneStatement, BlockHeader]]:
        """Each statement in whose text the pattern occurs, with its transaction's header, and its block's; lane by
        lane."""
        lanes, seen = PlannedLanes(self.plans, self.plan), set[tuple[int, int]]()
        for logged in every_statement(self.plans, self.plan, pattern):
            block = logged.header
            if block.transactions == 1:
                yield logged, block
            elif (logged.lane, block.first_seqno) not in seen:
                seen.add((logged.lane, block.first_seqno))
                for piece in lanes.pieces(logged.lane, block):
                    statements = (item for item in piece.items if item.kind in (ItemKind.STATEMENT, ItemKind.LOAD))
                    found = (item for item in statements if pattern.search(item.payload) is not None)
                    yield from ((LaneStatement(logged.lane, piece.header, item), block) for item in found)

    def transaction_of(self, logged: LaneStatement) -> BlockHeader:
        """The header of the transaction that holds a statement, which its block may have beside others."""
        header = logged.header
        lanes = PlannedLanes(self.plans, self.plan)
        for piece in lanes.pieces(logged.lane, header) if header.transactions > 1 else ():
            if any(item.payload == logged.item.payload for item in piece.items):
                return piece.header
        return header

    @cached_property
    def lacking_tables(self) -> frozenset[TableKey]:
        """Tables that the target lacks, in the databases that the window names: of the source's, or in a window that is
        begun of those that were there before it. Without those that the window makes or alters, and those that the
        filter leaves out. None of an archive is known, nor with renamed databases."""
        # a begun window is finished whatever has become of the source
        before = self.planned if self.begun else self.source_tables
        if before is None or self.source is None or self.renaming or before.flavor is not self.tables.flavor:
            return frozenset()
        named = databases_of(self.plan)
        lacking = [key for key in before.tables if key.database in named and self.tables.table(key) is None]
        taken = (key for key in lacking if self.selection.table(key) is None)
        return frozenset(key for key in taken if not (self.plan.altered.names(key) or self.may_have_dropped(key)))

    @cached_property
    def later_tables(self) -> frozenset[TableKey]:
        """Tables of the target whose rows may be those of a later moment: a recopy of them has not ended."""
        there = self.target.ask(read_tables_being_copied, self.plan.channel)
        return frozenset(key for key in there if self.tables.table(key) is not None)

    @property
    def definition_differences(self) -> tuple[Difference, ...]:
        """Differences of the touched tables between source and target; for an archive, what the target's alone show.

        The source's tables are seen as they are now, the rows are of the window. Whether a table was altered in between
        is looked up in the source's log, and only if something differs.

        In a window that is begun the target's tables are compared with those of before it. The source is asked, if it
        answers, whether a table that has become another one has been mended.
        """
        if self.begun:
            return self._changed_since()
        found = self._compared(self.source_tables)
        if self.source is None or not any(one.severity is Severity.FATAL for one in found):
            return found
        behind = self.source.altered_behind(whole=True)
        if behind is None:
            return found
        return self._compared(self.source_tables, renamed_alterations(behind, self.renaming))

    def differences_of(self, names: Collection[TableKey]) -> Sequence[Difference]:
        """The same of tables of any database that the window does not name, and that statements write all the same;
        none of tables that the filter leaves out, that a server lacks, or that are altered in the window or behind it.
        Raises SourceError."""
        if self.source is None:
            return ()
        wanted = {key for key in names if self._is_taken(key)} - set(map(self.compared, self.touched))
        source, target = self.definitions_with(self.source, frozenset(key.database for key in wanted))
        tables = [target.table(key) for key in wanted if not self.plan.altered.names(key)]
        keys = {table.key for table in tables if table is not None and source.table(table.key) is not None}
        rules = rules_for(
            source,
            target,
            complete_images=False,
            allow_non_transactional=self.allow_nontransactional,
            collations=Collations(self.channel.collations).given,
            by_statements=keys,
        )
        source, target = (without_altered_parents(each, self.plan.altered) for each in (source, target))
        keys = {each for each in keys if not (_keeps_no_rows(source, each) and _keeps_no_rows(target, each))}
        # which triggers a statement fires, check `fired-triggers` knows
        found = [each for each in compare_schemas(source, target, keys, rules) if each.what != "triggers"]
        if any(one.severity is Severity.FATAL for one in found):
            behind = self.source.altered_behind(whole=True)
            later = Alterations() if behind is None else renamed_alterations(behind, self.renaming)
            found = [each for each in found if not later.names(each.table)]
        return found

    def definitions_with(self, server: Source, databases: frozenset[str]) -> tuple[Schema, Schema]:
        """The definitions of source and target, in the target's names, also of databases that the window does not name.
        Raises SourceError."""
        assert self.source_tables is not None
        if not (more := databases - self.tables.databases):
            return self.source_tables, self.tables
        source = self.source_tables.with_more(self._source_of(server, more))
        return source, self.tables.with_more(self.planned.of(more))

    def _is_taken(self, key: TableKey) -> bool:
        """Whether the filter takes a table of the target."""
        return self.selection.table(TableKey(self.renaming.source(key.database) or key.database, key.table)) is None

    def _source_of(self, server: Source, databases: frozenset[str]) -> Schema:
        """The source's definitions of further databases, in the target's names. Raises SourceError."""
        read = server.ask(read_schema, sources_of(self.renaming, databases))
        return renamed_schema(read, partial(name_of, self.renaming))

    def _changed_since(self) -> tuple[Difference, ...]:
        """Differences of the target's tables from those of before the window, but for those that are the source's."""
        found = [one for one in self._compared(self.planned) if one.severity is Severity.FATAL]
        with suppress(SourceError):
            source = self.source_tables if found else None
            if source is not None:
                differing = {one.table for one in self._compared(source) if one.severity is Severity.FATAL}
                found = [one for one in found if one.table in differing or source.table(one.table) is None]
        return tuple(found)

    def _compared(self, source: Schema | None, *behind: Alterations) -> tuple[Difference, ...]:
        """``behind``: what was altered since the window, in the target's names."""
        plan, target = self.plan, self.tables
        created = frozenset(key for key in self.touched if plan.altered.names(key) or self.may_have_dropped(key))
        since = (key for key in self.touched if any(each.names(key) for each in behind))
        rules = rules_for(
            source,
            target,
            complete_images=plan.complete_images,
            allow_non_transactional=self.allow_nontransactional,
            collations=Collations(self.channel.collations).given,
            by_statements=self.written_tables,
        )
        # where rows fire triggers, those that the window drops are in the way until then
        dropped = Alterations() if rules.row_triggers_fire else self._dropped(*behind)

        def comparable(schema: Schema) -> Schema:
            return without_triggers(without_altered_parents(schema, plan.altered, *behind), dropped)

        found = compare_schemas(
            None if source is None else comparable(source),
            comparable(target),
            # of a window that is begun, these may be as the window has made them
            self.touched - created if self.begun else self.touched,
            rules,
            created=created,
            altered=created | frozenset(since),
        )
        # of a table without rows in the log, check `fired-triggers` knows which triggers a statement fires
        with_rows = {*plan.applied_tables, *plan.undone_tables, *plan.loaded}
        of_tables = (each for each in found if each.what != "triggers" or each.table in with_rows)
        return (*of_tables, *(() if source is None else self._compared_followers(source, *behind)))

    def _compared_followers(self, source: Schema, *behind: Alterations) -> Sequence[Difference]:
        """Foreign keys of tables that have no rows in the window themselves, but follow its rows on one server."""
        plan, letters = self.plan, LetterCase(self.tables.folds_names or source.folds_names)
        by_rows = {key for key, each in plan.tables.items() if _takes_rows_away(each)}
        parents = by_rows | self.written_tables
        if not parents:
            return ()
        theirs, ours = (
            without_altered_parents(schema, plan.altered, *behind) for schema in self._with_followers(source, parents)
        )

        def is_compared(key: TableKey) -> bool:
            is_altered = any(each.names(key) for each in (plan.altered, *behind)) or self.may_have_dropped(key)
            return key not in self.touched and not is_altered and self._is_taken(key)

        found = tuple(compare_followers(theirs, ours, parents, letters, is_compared))
        if not found:
            return ()
        # the rows of the window, and the texts of its statements, tell which of the parents have others follow
        cascading = set(map(letters.table, tables_that_cascade(self.plans, plan)))
        parents = {key for key in by_rows if letters.table(key) in cascading} | self._changed_by_statements
        return tuple(compare_followers(theirs, ours, parents, letters, is_compared))

    @cached_property
    def _changed_by_statements(self) -> frozenset[TableKey]:
        """The tables of which a statement may update or delete rows."""
        found = set[TableKey]()
        for logged, _ in self.transactions_with(_CHANGING) if self.plan.written else ():
            item = logged.item
            found |= statement_facts(item.payload, item.context or SessionContext(), self.plan.flavor).written
        return frozenset(found)

    def _with_followers(self, source: Schema, parents: Collection[TableKey]) -> tuple[Schema, Schema]:
        """The definitions of source and target, with those of other databases in which rows follow those of
        ``parents``. Raises SourceError."""
        target, asked = self.tables, frozenset[str]()
        letters = LetterCase(target.folds_names or source.folds_names)
        while True:
            if not (more := databases_of_followers(parents, (source, target), letters) - asked):
                return source, target
            asked |= more
            target = target.with_more(self.planned.of(more))
            if source is not self.planned and self.source is not None and (read := self._acting_databases & more):
                source = source.with_more(self._source_of(self.source, read))

    @cached_property
    def _acting_databases(self) -> frozenset[str]:
        """The databases, by the target's names, of tables that one of the servers changes with the rows of a parent:
        with plain keys alone a tenant's database need not be read for a row that all tenants share. Raises
        SourceError."""
        on_target = {table.key.database for table in self.planned.tables.values() if any(map(acts, table.foreign_keys))}
        on_source = {key.database for key, keys in self.taken_foreign_keys.items() if any(map(acts, keys))}
        names = (name_of(self.renaming, each) for each in on_source)
        return frozenset({*on_target, *(each for each in names if each is not None)})

    def _dropped(self, *behind: Alterations) -> Alterations | None:
        """The triggers that the window drops, or the log behind it; None for a window that is begun: all triggers were
        compared before, and some may be dropped already."""
        if self.begun:
            return None
        names = {name for each in self.asked.texts for name in each.facts.dropped_triggers}
        names.update(name for each in behind for name in each.tables)
        return Alterations(dict.fromkeys(names, (0,)), tuple(number for each in behind for number in each.unread))

    @property
    def logged_differences(self) -> Iterator[tuple[TableKey, int, tuple[Difference, ...] | None]]:
        """By definition in the log: the table, the first seqno, and what of the definition differs from the target's;
        None without such a table on the target.

        Of a table that the window alters, what was logged before it does; the rest is looked at when the lanes come to
        it (``apply.table_guard``). In a window that is begun such a table may be altered already, and was looked at.
        """
        plan = self.plan
        # an archive tells of no key but this one, and rows were folded by the target's
        is_only_key = self.source is None or not plan.complete_images
        other_key = Severity.FATAL if is_only_key else Severity.NOT_REDUCED
        across = plan.flavor is not self.tables.flavor
        # compared once for all tenants that have the same tables
        alike = set[Hashable]()
        for key in plan.table_maps:
            table = self.tables.table(key)
            if self.begun and plan.altered.names(key):
                continue
            for logged, seqno in plan.logged(key):
                if plan.altered.before(key, seqno) > 0:
                    continue
                if table is None:
                    yield key, seqno, None
                    continue
                kind = logged.column_types, logged.metadata, logged.null_bitmap, logged.optional, table.kind
                if kind in alike:
                    continue
                differences = compare_table_map(logged, plan.flavor, table, across=across)
                # names of other columns say enough
                found = tuple(differences or compare_logged_key(logged, table, other_key))
                if found:
                    yield key, seqno, found
                else:
                    alike.add(kind)

    @property
    def letter_case_conflicts(self) -> tuple[tuple[str, str, str, str], ...]:
        """Of ``schema.compare.letter_case`` for the window's tables and databases; none for an archive."""
        if self.source_tables is None:
            return ()
        plan = self.plan
        tables = (str(key) for key in (*plan.applied_tables, *plan.spelled, *plan.undone_tables))
        shards = (name for shard in plan.shards for name in shard.split("+") if name not in SPECIAL_SHARDS)
        databases = (name for name in shards if name != EMPTY)
        return letter_case(self.source_tables, self.tables, [*tables, *databases])

    @property
    def rename_conflicts(self) -> Iterator[tuple[str, str]]:
        """The source's databases that are taken and have no name of their own on the target, each with the reason."""
        present = frozenset() if self.source_as_named is None else self.source_as_named.databases
        taken = [name for name in present if self.selection.database(name)[0] is not Extent.NONE]
        return without_own_name(self.renaming, taken)

    @property
    def tables_as_named(self) -> Schema:
        """The source's definitions, or for an archive the target's, in the source's names."""
        if self.source_as_named is not None:
            return self.source_as_named
        return renamed_schema(self.tables, self.renaming.source)

    @cached_property
    def taken_foreign_keys(self) -> Mapping[TableKey, tuple[ForeignKey, ...]]:
        """The foreign keys of tables in all databases that the filter takes, by table, in the source's names: of the
        source, or for an archive of the target. Raises SourceError."""
        if self.source is not None:
            return self.source.ask(foreign_keys_as_they_are, self.selection, self.noted)
        known = renamed_schema(self.every_table, self.renaming.source)
        return {key: table.foreign_keys for key, table in known.tables.items() if table.foreign_keys}

    def default_collations(self, databases: Collection[str]) -> Iterator[DefaultCollation]:
        """The present defaults of those of the databases that both servers have. None for an archive."""
        if self.source is None or not databases:
            return
        ours = self.target.default_collations(databases)
        logged = self.source.default_collations(sources_of(self.renaming, databases))
        for source, theirs in sorted(logged.items()):
            name = name_of(self.renaming, source)
            if name is not None and name in databases and name in ours:
                yield DefaultCollation(name, source, theirs, self.given_collation(theirs), ours[name])

    def given_collation(self, name: str) -> str:
        """The collation that the channel gives for one of the source's."""
        return self.settings.rules.collations.given.get(name, name)


def _takes_rows_away(counts: TableCounts) -> bool:
    """Whether rows of a table, of those that the filter takes, are updated or deleted."""
    read, filtered = counts.read, counts.filtered
    return read.updates + read.deletes > filtered.updates + filtered.deletes


def _keeps_no_rows(schema: Schema, key: TableKey) -> bool:
    table = schema.table(key)
    return table is not None and table.engine.lower() == "blackhole"


class DefaultCollation(NamedTuple):
    """A database's default collation on both servers."""

    name: str
    source: str
    """Its name there."""
    theirs: str
    """The source's collation, as it is now."""
    expected: str
    """What the channel gives for it."""
    ours: str
    """The target's."""


@contextmanager
def situation_of(
    channel: ChannelConfig,
    endpoints: Endpoints,
    plan: WindowPlan,
    inputs: Inputs,
    plans: WorkFolder,
    selection: Selection,
) -> Iterator[Situation]:
    """The situation of a plan in its folder ``plans``, for as long as the block runs. The servers are asked at once."""
    databases, noted = databases_of(plan), NotedDefinitions(plans.window)
    engine, known = engine_of(endpoints.target), noted.known
    with ExitStack() as stack:
        target, source = stack.enter_context(Target(engine)), None
        window = target.ask(read_window, plan.channel, plan.window_id)
        begun = window is not None and window.plan_digest is not None
        if not begun:
            # a begun window is finished whatever has become of the source
            endpoints = endpoints.proving(ServerProof(plan.source, plan.end_gtid_set, plan.end))
        if endpoints.source is not None:

            def ask_source(connection: Connection, names: frozenset[str]) -> tuple[Schema, Grants]:
                return source_as_it_is(connection, names, noted), read_grants(connection)

            asked = partial(source_schema_of, endpoints.source, databases, inputs.settings.renaming, ask_source)
            answer = stack.enter_context(in_background(asked))
            source = Source(channel, endpoints.source, plan, lambda: answer()[0], lambda: answer()[1])
        tables = target.ask(target_as_it_is, databases, known.target, inputs.schema)
        wanted = channel.apply.writer
        writer = writer_of(target.grants, target.flavor, target.number) if wanted == Writer.AUTO else wanted
        by_sql = written_by_sql(plan, tables, writer)
        manifest = inputs.manifest
        yield Situation(
            target=target,
            needs=needs_of(
                channel,
                plan,
                inputs.settings.payload_bytes,
                writer,
                kinds=_kinds_of_files(plans, plan),
                row_statements=bool(by_sql),
            ),
            channel=channel,
            selection=selection,
            plan=plan,
            settings=inputs.settings,
            logged_by=frozenset(each.server_version for each in (*manifest.segments, *manifest.carried)),
            plans=plans,
            noted=noted,
            tables=tables,
            planned=inputs.schema,
            source=source,
            by_sql=by_sql,
            begun=begun,
            read_statements=partial(ask_parser, engine, plan, plans),
            older_sessions=manifest.older_sessions,
        )


def _kinds_of_files(plans: WorkFolder, plan: WindowPlan) -> frozenset[StatementKind]:
    """Kinds of statements in the lane files, so far as checks go by them and the plan does not count them. A plan's own
    counts are those of whoever has written it: until the target has its digest that may be anybody who can write to the
    work folder."""
    items = item_kinds(plans, plan)
    kinds = {StatementKind.LOAD_DATA} if ItemKind.LOAD in items else set()
    counted = {StatementKind(kind) for kind in plan.kinds if kind != ROWS_ONLY}
    has_more = ItemKind.STATEMENT in items and counted <= {StatementKind.DDL, StatementKind.GLOBAL}
    if has_more or (ItemKind.DDL in items and StatementKind.DDL not in counted):
        for logged in every_form(plans, plan):
            context = logged.item.context or SessionContext()
            kinds.add(statement_facts(logged.item.payload, context, plan.flavor).kind)
    return frozenset(kinds)


def needs_of(
    channel: ChannelConfig,
    plan: WindowPlan,
    payload_bytes: int,
    writer: str,
    *,
    row_statements: bool = False,
    kinds: AbstractSet[StatementKind] = frozenset(),
) -> Needs:
    """What the plan asks of the target. ``payload_bytes``: of a usual BINLOG statement, before base64. ``kinds``: of
    statements, besides those that the plan counts."""
    statements = {StatementKind(kind) for kind in plan.kinds if kind != ROWS_ONLY} | kinds
    return Needs(
        databases=plan.defined_in.union(key.database for key in (*plan.applied_tables, *plan.written, *plan.loaded)),
        tables=len(plan.applied_tables),
        statements=bool(statements - {StatementKind.DDL, StatementKind.GLOBAL}),
        loads=StatementKind.LOAD_DATA in statements,
        ddl=StatementKind.DDL in statements,
        accounts=StatementKind.GLOBAL in statements,
        time_zones=plan.time_zones.union(
            each.detail for each in plan.requirements if each.feature == COMPUTED_ZONE and each.detail
        ),
        biggest_item=payload_bytes,
        connections=3 * (plan.lanes + 1),
        by_statements=not sends_row_events(writer),
        overwrite=channel.apply.on_conflict.overwrites,
        row_statements=row_statements,
        copies=any(barrier.temporary is not None for barrier in plan.barriers),
    )


def databases_of(plan: WindowPlan) -> frozenset[str]:
    """The databases that the window names; a server with thousands of others is not asked for their tables."""
    names = plan.defined_in.union(
        key.database for key in (*plan.tables, *plan.loaded, *plan.undone_tables, *plan.written)
    )
    return frozenset(names | set(map(lower, names)))
