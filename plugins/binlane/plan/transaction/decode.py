"""Decodes a transaction into parts: its row events and statements in order, each with all that a block needs.

An event or statement that cannot be replayed exactly is refused here, before anything of the window is written, with
its file and offset (docs/invariants.md, 6).
"""

from __future__ import annotations

import contextlib
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

from binlane.binlog.events import (
    Event,
    ExecuteLoadQuery,
    FileBlock,
    FileDeletion,
    Intvar,
    Query,
    Rand,
    UserVar,
    parse_body,
)
from binlane.binlog.format_description import FormatDescription
from binlane.binlog.gtids import XaName
from binlane.binlog.rows import COMPRESSED_ROWS, ROWS_KINDS, RowsEvent, RowsKind, count_rows, decompressed
from binlane.binlog.table_map import TableMap
from binlane.binlog.transactions import Ending, Transaction
from binlane.binlog.types.collations import UTF8MB4_GENERAL_CI
from binlane.binlog.types.type_codes import ColumnType
from binlane.binlog.unlogged_lengths import count_rows_of_any_length
from binlane.binlog.variables import with_variables
from binlane.binlog.wire import BufferOffset, EventFlag, EventType, RawEvent, SegmentOffset, type_name, without_checksum
from binlane.errors import BinlogError, UnsupportedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, LogPosition, RowCounts, SessionContext
from binlane.plan.transaction import error_outcome
from binlane.plan.transaction.channel_rules import AS_LOGGED, ChannelRules
from binlane.plan.transaction.filter import decide, without_filtered
from binlane.plan.transaction.load_data import LaterLoads, LoadedFiles, local_query
from binlane.plan.transaction.parts import FilteredPart, MapPart, Part, RowsPart, StatementPart
from binlane.plan.transaction.rename import Unsafe, renamed_parts
from binlane.rename_rules import NAMES_A_FILE, names_a_file
from binlane.safe_text import shown
from binlane.schema.letter_case import LetterCase
from binlane.shards.renaming import Renaming
from binlane.shards.selection import Extent, Selection, Undecided
from binlane.sql.charset import client_charset, decoded, dialect_of, is_read
from binlane.sql.invoker import as_invoked
from binlane.sql.logged_kinds import SYSTEM_TABLES, VARIABLES, not_logged, spliced_databases, unread_kind
from binlane.sql.logged_query import executed_query
from binlane.sql.other_family import as_in_family, null_as_in_mariadb, read_under_another_mode
from binlane.sql.other_readings import SPLITTING, WAY_ON
from binlane.sql.parse.analyze import StatementFacts, StatementKind, analyze, last_word
from binlane.sql.parse.cursor import NAMES_NO_DATABASE, is_symbol
from binlane.sql.parse.engines import (
    EXTERNAL,
    LOCAL_ENGINES,
    defines_table,
    engine_places,
    has_computed_default,
    is_external,
)
from binlane.sql.parse.facts import UNREAD
from binlane.sql.parse.lexer import (
    AMBIGUOUS,
    BLANK_IN_NAME,
    GLUED_NUMBER,
    TOO_MANY_TOKENS,
    UNREAD_NAME,
    Unreadable,
)
from binlane.sql.parse.queries import TOO_LONG
from binlane.sql.parse.table_calls import computed_interval
from binlane.sql.plain_statement import parted, program_at
from binlane.sql.scheduled_event import schedule_call
from binlane.sql.server_composed import (
    comment_in_grant,
    hidden_clause,
    is_composed_table,
    spelled_twice,
    unlike_composed,
    without_transaction_clause,
)
from binlane.sql.shared_reading import Reader, with_qualifiers_alone
from binlane.sql.sql_modes import translated, untranslatable, without_folders
from binlane.sql.words import words_of

if TYPE_CHECKING:
    from binlane.binlog.vector.inflated_segment import Inflated

__all__ = ["LogFormat", "MapPart", "Part", "RowsPart", "StatementPart", "dissect", "statement_facts"]

_T = EventType
_WITHOUT_EFFECT: Final = frozenset(
    {
        _T.GTID,
        _T.ANONYMOUS_GTID,
        _T.GTID_TAGGED,
        _T.MARIADB_GTID,
        _T.XID,
        _T.ROWS_QUERY,
        _T.ANNOTATE_ROWS,
        _T.IGNORABLE,
        _T.HEARTBEAT,
        _T.HEARTBEAT_V2,
        _T.XA_PREPARE,
        # of group replication: its membership and its certification
        _T.VIEW_CHANGE,
        _T.TRANSACTION_CONTEXT,
    }
)


@dataclass(frozen=True, slots=True)
class LogFormat:
    """How to read the events of a segment."""

    format: FormatDescription
    name: str
    """Name of the source file, for messages."""
    offset: int
    """Offset in the source file minus offset in the segment."""
    target: Flavor
    """Flavor of the server that will execute the statements."""
    rules: ChannelRules = AS_LOGGED
    """The channel's filter, renames and collations."""
    laid_out: Inflated | None = None
    """The segment after decompression, if the events are read from there."""
    loads: LaterLoads | None = None
    """The files of LOAD DATA statements in later transactions; None: only one transaction is read."""

    @property
    def selection(self) -> Selection:
        """The channel's filter."""
        return self.rules.selection

    @property
    def renaming(self) -> Renaming:
        """Names of databases on the target."""
        return self.rules.renaming

    @property
    def takes_any_length(self) -> bool:
        """Whether the target reads rows whose columns' lengths the log does not tell, by its own table."""
        return self.format.flavor is self.target is Flavor.MARIADB

    def segment_offset(self, offset: BufferOffset) -> SegmentOffset:
        """The offset in the segment's file, for an ``offset`` in the bytes that are read."""
        return SegmentOffset(offset) if self.laid_out is None else self.laid_out.segment_offset(offset)

    def source_offset(self, offset: BufferOffset) -> int:
        """The offset in the source file, for an ``offset`` in the bytes that are read."""
        return self.offset + self.segment_offset(offset)

    def where(self, event: RawEvent) -> str:
        """Prefix of error messages about an event."""
        return f"{self.name}:{self.source_offset(event.offset)}: "

    def parse(self, event: RawEvent) -> Event:
        """The decoded event. Raises BinlogError that names its offset in the source file."""
        return parse_body(event._replace(offset=BufferOffset(self.source_offset(event.offset))), self.format, self.name)

    def position(self, transaction: Transaction) -> LogPosition:
        """Where the transaction begins in the source's log."""
        return LogPosition(self.name, self.source_offset(transaction.start))


def dissect(transaction: Transaction, log: LogFormat) -> tuple[Part, ...]:
    """The transaction's parts in order, with the target's names.

    Raises UnsupportedEventError for anything that cannot be replayed exactly.
    """
    parts, filtered = without_filtered(tuple(_Dissection(log).parts(transaction)), log.selection)
    is_undone = transaction.ending is Ending.ROLLBACK
    if transaction.ending in _SECOND_HALVES and parts:
        is_undone = transaction.ending is Ending.XA_ROLLBACK and _begins_xa(transaction, log)
        if not is_undone:
            _refuse(transaction.events[-1], log, "an XA COMMIT or XA ROLLBACK with changes of its own")
    if is_undone and parts:
        keeps_engines_apart = log.format.flavor is Flavor.MYSQL and transaction.gtid != ""
        parts, hidden = error_outcome.undone(parts, keeps_engines_apart=keeps_engines_apart)
        if hidden is not None:
            _refuse(transaction.events[-1], log, hidden)
    if any(isinstance(part, StatementPart) and part.facts.commits_implicitly for part in parts[1:]):
        _refuse(transaction.events[-1], log, "a statement that commits implicitly in the middle of a transaction")
    try:
        read = partial(statement_facts, flavor=log.format.flavor)
        return renamed_parts((*parts, *filtered), log.renaming, log.selection, log.format.flavor, read)
    except Unsafe as unsafe:
        raise not_renamed(log, transaction.events[0], str(unsafe)) from None


def _begins_xa(transaction: Transaction, log: LogFormat) -> bool:
    """Whether it is an XA transaction from its XA START on.

    MySQL logs one so if it has changed a table without transactions and is rolled back without XA PREPARE.
    """
    first = next((event for event in transaction.events if event.header.type_code in _QUERIES), None)
    query = None if first is None else log.parse(first)
    if not isinstance(query, Query) or _XA_START.match(query.sql) is None:
        return False
    return XaName.of_statement(query.sql) == transaction.xa


def not_renamed(log: LogFormat, event: RawEvent, why: str) -> UnsupportedEventError:
    """The error for a transaction that ``[rename]`` cannot rename; ``event``: its first event."""
    return UnsupportedEventError(
        f"{log.where(event)}{why}; nothing of the window was written; "
        "see docs/renames.md#what-is-refused for what to do"
    )


@dataclass(slots=True)
class _Dissection:
    """Decodes one transaction; keeps a statement's TABLE_MAPs, and the session values logged before their statement."""

    log: LogFormat
    _maps: dict[int, MapPart] = field(default_factory=dict)
    _variables: list[Intvar | Rand | UserVar] = field(default_factory=list)
    _files: LoadedFiles = field(default_factory=LoadedFiles)
    _sql_mode: int | None = None
    """MySQL: the mode of the last statement, BEGIN included, in which a replica computes the columns of rows."""
    _time_zone: str | None = None
    _locale: int | None = None
    _in_group: bool = False
    """MariaDB: more events follow a DDL in its transaction; only CREATE TABLE ... SELECT is logged so."""
    _has_rows: bool = False

    def parts(self, transaction: Transaction) -> Iterator[Part]:
        is_mariadb = self.log.format.flavor is Flavor.MARIADB
        self._in_group = is_mariadb and transaction.ending is not Ending.STANDALONE
        self._has_rows = self._in_group and any(event.header.type_code in ROWS_KINDS for event in transaction.events)
        if transaction.ending is not Ending.XA_PREPARE:
            # a prepared transaction may be kept until a later window, without the rest of its log
            self._files.later = self.log.loads
        for event in transaction.events:
            code = event.header.type_code
            if code in _WITHOUT_EFFECT:
                continue
            handler = HANDLERS.get(code) or (_Dissection._rows if code in ROWS_KINDS else _Dissection._unsupported)
            part = handler(self, event)
            if part is not None:
                yield part
        for file_id in self._files.waiting(transaction.events[-1].offset):
            what = (
                f"file {file_id} of a LOAD DATA that is not in this transaction nor, behind it, in this segment of "
                "the log"
            )
            _refuse(transaction.events[-1], self.log, what)

    def _map(self, event: RawEvent) -> MapPart:
        table = TableMap.parse(event.body, self.log.where(event), self.log.format.flavor)
        session = self._sql_mode, self._time_zone, self._locale
        part = self._maps[table.table_id] = MapPart(table, without_checksum(event), *session)
        return part

    def _rows(self, event: RawEvent) -> RowsPart:
        where = self.log.where(event)
        rows = RowsEvent.parse(event.header.type_code, event.body, where)
        part = self._maps.get(rows.table_id)
        if part is None:
            raise UnsupportedEventError(
                f"{where}{type_name(rows.type_code)}: table id {rows.table_id} has no TABLE_MAP in this transaction; "
                "the log is damaged"
            )
        try:
            is_taken = self.log.selection.rows(part.key, is_delete=rows.kind is RowsKind.DELETE) is None
        except Undecided as undecided:
            raise self._undecided(event, f"rows of {part.key}: {undecided}") from None
        if rows.partial and self.log.target is not Flavor.MYSQL and is_taken and not _has_documents(rows, part.table):
            what = "rows logged with binlog_row_value_options=PARTIAL_JSON and without the documents before the change"
            _refuse(event, self.log, f"{what} (binlog_row_image is not FULL), for a MariaDB target,")
        if self.log.takes_any_length:
            counts = _COUNTS[rows.kind](count_rows_of_any_length(rows, part.table, where)[0])
        else:
            counts = _COUNTS[rows.kind](count_rows(rows, part.table, where))
        if rows.type_code in COMPRESSED_ROWS:
            event = _decompressed(event, where)
        return RowsPart(part, without_checksum(event), counts)

    def _query(self, event: RawEvent) -> StatementPart | FilteredPart | None:
        query = self.log.parse(event)
        assert isinstance(query, Query)
        return self._statement(event, query, None)

    def _load(self, event: RawEvent) -> StatementPart | FilteredPart | None:
        load = self.log.parse(event)
        assert isinstance(load, ExecuteLoadQuery)
        with self._naming(event):
            file = self._files.take(load.file_id, event.offset)
            query = local_query(load, file, self.log.format.flavor)
        return self._statement(event, query, file)

    def _file(self, event: RawEvent) -> None:
        block = self.log.parse(event)
        with self._naming(event):
            match block:
                case FileBlock() if event.header.type_code == _T.BEGIN_LOAD_QUERY:
                    self._files.begin(block.file_id, block.data)
                case FileBlock():
                    self._files.append(block.file_id, block.data, event.offset)
                case FileDeletion():
                    self._files.take(block.file_id, event.offset)

    @contextlib.contextmanager
    def _naming(self, event: RawEvent) -> Iterator[None]:
        try:
            yield
        except ValueError as exc:
            _refuse(event, self.log, str(exc))

    def _statement(
        self, event: RawEvent, query: Query, file: tuple[memoryview, ...] | None
    ) -> StatementPart | FilteredPart | None:
        source = self.log.format
        if source.flavor is Flavor.MYSQL:
            self._sql_mode, self._time_zone = query.context.sql_mode, query.context.time_zone
            self._locale = query.context.lc_time_names
        hides = comment_in_grant(query.sql, query.context, source.flavor, source.version)
        with self._naming(event):
            query = executed_query(query, Reader(source.flavor, source.version), self.log.target)
        try:
            logged = query.session(event.header, parted(query.sql, query.context, source.flavor)[1])
            context = with_variables(logged, self._variables, self.log.target)
        except UnsupportedEventError as exc:
            _refuse(event, self.log, f"a statement behind a {exc}, which")
        except ValueError as exc:
            raise BinlogError(f"{self.log.where(event)}{exc}; a variable before the statement is damaged") from exc
        self._variables.clear()
        facts = statement_facts(query.sql, context, self.log.format.flavor)
        if (facts.kind is StatementKind.TRANSACTION and facts.ends_or_begins) or error_outcome.is_no_alter(query):
            return None
        rule = self._left_out(event, query, facts, context)
        if context.other_readings and (query.sql.isascii() if rule is None else self._may_be_taken(context)):
            # nobody would find it in a lane's file, or no lane gets it: the precheck cannot ask about it
            _refuse(event, self.log, f"a text that may be another statement in another character set ({WAY_ON}), which")
        if rule is not None:
            return FilteredPart(rule, None, RowCounts())
        # no name of a kind allows it
        if (hides := hides or unlike_composed(query.sql, source.flavor)) is not None:
            _refuse(event, self.log, f"{hides},")
        kind = self._check_kind(event, query, facts, context)
        self._check(event, query, facts)
        self._check_database(event, query, facts, context)
        if not (facts.is_read or self.log.rules.takes_unread(unread_kind(kind))):
            self._refuse_unread(event, query, facts, context)
        facts = error_outcome.with_open_order(facts, query, context, source.flavor)
        with self._naming(event):
            sql = without_transaction_clause(query.sql) if facts.rows_follow else query.sql
            sql = as_invoked(sql, context, query.invoker, self.log.format.flavor, self.log.target)
        sql = as_in_family(sql, context, self.log.format.flavor, self.log.target)
        sql, context = self.log.rules.collations.statement(sql, context, self.log.format.flavor, self.log.target)
        if any(self.log.selection.database(name)[0] is Extent.SOME for name in facts.databases):
            sql = error_outcome.in_part_of_database(sql, context, self.log.target)
        sql, context = error_outcome.as_applied(sql, _with_default_collation(context, self.log), self.log.target)
        if facts.rows_follow:
            # without START TRANSACTION it commits implicitly, in front of its rows; exactly once by its GTID
            facts = replace(facts, commits_implicitly=True)
        if source.flavor is Flavor.MARIADB and self.log.target is Flavor.MYSQL:
            sql, context = null_as_in_mariadb(sql, context, facts)
        context = self._without_folders(event, sql, context)
        bound = is_of_its_connection(event, facts, source.flavor)
        session = (event.header.server_id, query.thread_id) if bound else None
        modes = self._in_modes_of_the_target(event, context)
        return StatementPart(sql, modes, facts, query, file, session, is_marked(event))

    def _may_be_taken(self, context: SessionContext) -> bool:
        """Whether a reading of the logged text may be about a database that the channel takes: it has the name of one
        in front of another name, or is of a session of one."""
        text, source = b64decode(context.logged_text or ""), self.log.format
        reader, modes = Reader(source.flavor, source.version), (context.sql_mode or 0) & ~SPLITTING
        names = {context.database or ""}
        for collation, splitting in context.other_readings:
            session = replace(context, charset_client=collation, sql_mode=modes | splitting)
            read = decoded(with_qualifiers_alone(text, session, reader), session)
            # digits alone are a number
            names.update(word for word in _QUALIFIER.findall(read) if not word.isdecimal())
            # from one quote to the next one, whichever begins a name in a reading
            ends = [match.start() for match in _QUOTED_QUALIFIER.finditer(read)]
            names.update(read[max(read.rfind(quote, 0, end) for quote in '`"') + 1 : end] for end in ends)
        return any(name and self.log.selection.database(name)[0] is not Extent.NONE for name in names)

    def _without_folders(self, event: RawEvent, sql: bytes, context: SessionContext) -> SessionContext:
        """The context in which the target ignores the folders of a table. Raises UnsupportedEventError if the statement
        has a sql_mode of its own, or none."""
        variables, statement = parted(sql, context, self.log.format.flavor)
        if _DIRECTORY.search(sql) is None or not _is_of_table(statement, context, self.log.format.flavor):
            return context
        if context.sql_mode is None or _SQL_MODE.search(variables) is not None:
            _refuse(event, self.log, f"a table with a folder, in another sql_mode than the log's {_WAY_ON_OF_FOLDERS},")
        return replace(context, sql_mode=without_folders(context.sql_mode, self.log.target))

    def _left_out(self, event: RawEvent, query: Query, facts: StatementFacts, context: SessionContext) -> str | None:
        """The rule that leaves the statement out. Raises UnsupportedEventError if the filter cannot decide."""
        try:
            return decide(self.log.selection, query, facts, context, self.log.format.flavor)
        except Undecided as undecided:
            raise self._undecided(event, f"{undecided}: {shown(decoded(query.sql, context))!r}") from None

    def _undecided(self, event: RawEvent, why: str) -> UnsupportedEventError:
        return UnsupportedEventError(
            f"{self.log.where(event)}{type_name(event.header.type_code)}: {why}; nothing of the window was written; "
            "see docs/filters.md#what-is-refused for what to do"
        )

    def _check_kind(self, event: RawEvent, query: Query, facts: StatementFacts, context: SessionContext) -> str | None:
        """The kind of a statement that no server logs, or that changes the server's own tables, and that the channel
        allows; None for any other one. Raises UnsupportedEventError if the channel does not allow it."""
        if not is_read(query.sql, context):
            _refuse(event, self.log, f"a statement in a client character set that is not read {_WAY_ON_OF_SETS},")
        if facts.reason == NAMES_A_FILE:
            _refuse(event, self.log, f"a statement with {NAMES_A_FILE},")
        text, source = decoded(query.sql, context), self.log.format
        kind = not_logged(text, facts, dialect_of(context, source.flavor), source.version, context.database)
        if kind is not None and kind not in self.log.selection.allowed:
            found, who = _OWN_TABLES if kind == SYSTEM_TABLES else _BY_HAND
            raise UnsupportedEventError(
                f"{self.log.where(event)}{type_name(event.header.type_code)}: a statement {found} ({kind}): "
                f"{shown(text)!r}; nothing of the window was written; find out who {who}; if it is intended, set "
                f'filter.allow_statements = ["{kind}"] in the channel\'s file; see '
                "docs/security.md#statements-that-no-server-logs"
            )
        if VARIABLES not in self.log.selection.allowed:
            self._check_spliced(event, query, facts, context)
        return kind

    def _check_spliced(self, event: RawEvent, query: Query, facts: StatementFacts, context: SessionContext) -> None:
        """Raises UnsupportedEventError for a program's statement that may be another one than the source has run."""
        listed = query.updated_databases if self.log.format.flavor is Flavor.MYSQL else None
        letters = LetterCase(self.log.selection.folds_names)
        found = spliced_databases(query.sql, facts, context.database, listed, letters)
        if found == frozenset():
            return
        databases = "databases, which it names in a way that is not read," if found is None else min(found)
        raise UnsupportedEventError(
            f"{self.log.where(event)}{type_name(event.header.type_code)}: a statement of a program with local "
            f"variables over {shown(databases)}: {shown(decoded(query.sql, context))!r}: a server writes the names of "
            "variables into it as they are, so it may be another statement than the source has executed; nothing of "
            "the window was written; find the program (BEGIN NOT ATOMIC leaves none): if no variable of it has a quote "
            f'in its name, set filter.allow_statements = ["{VARIABLES}"] in the channel\'s file, or log such '
            "statements as rows (binlog_format = ROW); see docs/security.md#names-of-variables"
        )

    def _refuse_unread(self, event: RawEvent, query: Query, facts: StatementFacts, context: SessionContext) -> NoReturn:
        """Nobody knows what a statement changes that is not read to its end, and whoever has looked at its words alone
        has overlooked something each time."""
        text, dialect = decoded(query.sql, context), dialect_of(context, self.log.format.flavor)
        word = last_word(text, database=context.database, dialect=dialect)
        place = f"reading stops at {shown(word)!r} ({facts.reason})" if word else f"{facts.reason}"
        way_on = WAY_ON_OF_LONG if facts.reason in TOO_LONG else WAY_ON_OF_UNREAD
        raise UnsupportedEventError(
            f"{self.log.where(event)}{type_name(event.header.type_code)}: expected a statement that binlane reads to "
            f"its end, found {shown(text)!r}: {place}; nothing of the window was written; {way_on}"
            f"{'' if self.log.rules.promises else OR_ALLOW_UNREAD}; see docs/security.md#statements-that-are-not-read"
        )

    def _in_modes_of_the_target(self, event: RawEvent, context: SessionContext) -> SessionContext:
        if context.sql_mode is None:
            return context
        families = (self.log.format.flavor, self.log.format.version, self.log.target)
        if (mode := untranslatable(context.sql_mode, *families)) is not None:
            _refuse(event, self.log, f"a statement under sql_mode {mode}, which MySQL does not have,")
        with self._naming(event):
            return replace(context, sql_mode=translated(context.sql_mode, *families))

    def _check(self, event: RawEvent, query: Query, facts: StatementFacts) -> None:
        if facts.kind is StatementKind.LOAD_DATA and event.header.type_code != _T.EXECUTE_LOAD_QUERY:
            _refuse(event, self.log, "LOAD DATA without the events of its file")
        if (refusal := error_outcome.refusal(query, facts, self.log.format.flavor, self.log.target)) is not None:
            _refuse(event, self.log, refusal)
        composed = facts.rows_follow or (
            self._in_group and (self._has_rows or not facts.create_select) and is_composed_table(query.sql)
        )
        spelled = spelled_twice(query.sql, query.context, self.log.format.flavor, composed=composed)
        if spelled is not None:
            _refuse(event, self.log, spelled)
        hidden = hidden_clause(query.sql, query.context, self.log.format.flavor, composed=composed)
        if hidden is not None:
            _refuse(event, self.log, hidden)
        if (engine := _engine_elsewhere(query, self.log.format.flavor)) is not None:
            _refuse(event, self.log, f"a table whose rows are elsewhere (ENGINE {engine}) {_WAY_ON_OF_ENGINES},")
        if read_under_another_mode(query.sql, query.context, self.log.format.flavor):
            what = (
                'a text with ", \\ or || after SET STATEMENT sql_mode, parsed in a mode that the log does not contain,'
            )
            _refuse(event, self.log, what)
        if facts.reason in AMBIGUOUS:
            _refuse(event, self.log, f"a statement with {facts.reason} {_WAYS_ON[facts.reason]},")
        if _gives_up_locks(query, self.log.format.flavor):
            _refuse(event, self.log, "a statement that releases all locks of its session, also the lane's lease,")
        if (call := _call_of_schedule(query, facts, self.log.format.flavor)) is not None:
            _refuse(event, self.log, f"an event whose schedule has {call}, which runs when the event is made,")
        if facts.commits_implicitly and (found := _computed_interval(query, self.log.format.flavor)) is not None:
            _refuse(
                event,
                self.log,
                f"a table with {found}, which a server computes when it reads the text {_WAY_ON_OF_INTERVALS},",
            )
        if query.unknown_status is not None:
            _refuse(event, self.log, f"a statement with the unknown status variable {query.unknown_status}")

    def _check_database(self, event: RawEvent, query: Query, facts: StatementFacts, context: SessionContext) -> None:
        """A session of the target has a default database for ever, once a statement has needed one."""
        if context.database is not None:
            return
        if facts.reason == NAMES_NO_DATABASE:
            _refuse(event, self.log, f"a statement with {NAMES_NO_DATABASE}, which no server logs,")
        flavor = self.log.format.flavor
        if facts.kind is not StatementKind.DDL and asks_for_database(query.sql, query.context, flavor):
            _refuse(event, self.log, "DATABASE() in a session without a default database (run USE there)")

    def _variable(self, event: RawEvent) -> None:
        variable = self.log.parse(event)
        assert isinstance(variable, Intvar | Rand | UserVar)
        self._variables.append(variable)

    def _unsupported(self, event: RawEvent) -> NoReturn:
        _refuse(event, self.log, type_name(event.header.type_code))


HANDLERS: Final[Mapping[int, Callable[[_Dissection, RawEvent], Part | None]]] = {
    _T.TABLE_MAP: _Dissection._map,
    _T.QUERY: _Dissection._query,
    _T.QUERY_COMPRESSED: _Dissection._query,
    _T.INTVAR: _Dissection._variable,
    _T.RAND: _Dissection._variable,
    _T.USER_VAR: _Dissection._variable,
    _T.BEGIN_LOAD_QUERY: _Dissection._file,
    _T.APPEND_BLOCK: _Dissection._file,
    _T.DELETE_FILE: _Dissection._file,
    _T.EXECUTE_LOAD_QUERY: _Dissection._load,
}
_COUNTS: Final[Mapping[RowsKind, Callable[[int], RowCounts]]] = {
    RowsKind.INSERT: lambda rows: RowCounts(inserts=rows),
    RowsKind.UPDATE: lambda rows: RowCounts(updates=rows),
    RowsKind.DELETE: lambda rows: RowCounts(deletes=rows),
}
_QUERIES: Final = frozenset({_T.QUERY, _T.QUERY_COMPRESSED})
_DIRECTORY: Final = re.compile(rb"\b(?:DATA|INDEX)\s+DIRECTORY\b", re.IGNORECASE)
_SQL_MODE: Final = re.compile(rb"SQL_MODE", re.IGNORECASE)
_QUALIFIER: Final = re.compile(r"(?<![\w$])[\w$]++(?=\s*(?:\.|/\*|#|--\s))")
"""A word that a dot, or a comment and a dot, may follow; only in front of one can a text about tables name a
database."""
_QUOTED_QUALIFIER: Final = re.compile(r"[`\"](?=\s*(?:\.|/\*|#|--\s))")
"""The end of such a name in quotes."""
_WAY_ON_OF_FOLDERS: Final = (
    "(leave the folder out on the source, or SET its sql_mode in the session; for this one, skip it and make the table "
    "on the target by hand)"
)
_XA_START: Final = re.compile(rb"XA\s+START\b", re.IGNORECASE)
_SECOND_HALVES: Final = frozenset({Ending.XA_COMMIT, Ending.XA_ROLLBACK})
_LOGS_DEFAULT_COLLATION: Final = (8, 0, 1)
_MAY_ASK: Final = re.compile(rb"\b(?:DATABASE|SCHEMA)\b", re.I)
_GIVES_UP: Final = re.compile(rb"RELEASE_ALL_LOCKS", re.IGNORECASE)
_EVENT: Final = re.compile(rb"\bEVENT\b", re.IGNORECASE)
_SYSTEM_TIME: Final = re.compile(rb"\bSYSTEM_TIME\b", re.IGNORECASE)
_ENGINE: Final = re.compile(rb"ENGINE|EXTERNAL", re.IGNORECASE)
_WAY_ON_OF_ENGINES: Final = (
    "(let the source make it with InnoDB, or leave it out by filter.exclude_tables and make it on the target by hand)"
)
_WAY_ON_OF_INTERVALS: Final = (
    "(write a number there; for this one, skip it and make the table on the target by hand, by what SHOW CREATE TABLE "
    "shows on the source)"
)
WAY_ON_OF_UNREAD: Final = (
    "write it in another form on the source, or log such changes as rows (binlog_format=MIXED or ROW); for this one, "
    "skip it and run on the target what the source has executed (docs/control.md)"
)
WAY_ON_OF_LONG: Final = (
    "divide it into shorter statements on the source, or log such changes as rows (binlog_format=MIXED or ROW); for "
    "this one, skip it and run on the target what the source has executed (docs/control.md)"
)
OR_ALLOW_UNREAD: Final = (
    f', or set filter.allow_statements = ["{UNREAD}"] in the channel\'s file, which sends such statements as they are'
)
_SKIP: Final = "for this one, skip it and run on the target what the source has executed"
_WAY_ON_OF_SETS: Final = f"(write it behind SET NAMES utf8mb4; {_SKIP})"
_WAYS_ON: Final = {
    UNREAD_NAME: f"(write it behind SET NAMES utf8mb4; {_SKIP})",
    GLUED_NUMBER: f"(write a blank behind the number; {_SKIP})",
    BLANK_IN_NAME: f"(write a plain blank; {_SKIP})",
    TOO_MANY_TOKENS: f"(divide it; {_SKIP})",
}
_BY_HAND: Final = ("of a kind that no server logs", "put it into the log")
_OWN_TABLES: Final = ("that changes the server's own tables", "changed them on the source")
"""What a refused statement is, and whom to look for."""


def _has_documents(rows: RowsEvent, table: TableMap) -> bool:
    """Whether the before-images hold every JSON column, to which the logged differences apply."""
    held = rows.columns_before or b""
    return all(
        code != ColumnType.JSON or (number >> 3 < len(held) and held[number >> 3] >> (number & 7) & 1)
        for number, code in enumerate(table.column_types)
    )


def is_of_its_connection(event: RawEvent, facts: StatementFacts, flavor: Flavor) -> bool:
    """Whether a statement may concern temporary tables of its connection.

    MariaDB's RENAME TABLE renames temporary tables as well, without the flag that every other such statement has.
    """
    return bool(facts.temporary or is_marked(event) or (facts.moves and flavor is Flavor.MARIADB))


def is_marked(event: RawEvent) -> bool:
    """Whether the server has marked a statement for a temporary table of its connection."""
    return bool(event.header.flags & EventFlag.THREAD_SPECIFIC)


def statement_facts(sql: bytes, context: SessionContext, flavor: Flavor) -> StatementFacts:
    """The facts of a logged statement; UNKNOWN if a name has bytes outside the client's character set."""
    dialect = dialect_of(context, flavor)
    if names_a_file(context.database or ""):
        # every name without a database is in the one that MariaDB finds behind it
        facts = analyze(decoded(sql, context), database=None, flavor=flavor)
        if facts.kind is StatementKind.TRANSACTION:
            return facts
        return StatementFacts(StatementKind.UNKNOWN, commits_implicitly=facts.commits_implicitly, reason=NAMES_A_FILE)
    facts = analyze(
        decoded(sql, context),
        database=context.database,
        sql_mode_ansi_quotes=dialect.ansi_quotes,
        no_backslash_escapes=dialect.no_backslash_escapes,
        oracle=dialect.oracle,
        flavor=flavor,
    )
    if not is_read(sql, context):
        return replace(facts, reason="a character set that this version does not read")
    if any("\ufffd" in name for name in facts.databases | {key.table for key in facts.tables}):
        commits = facts.commits_implicitly
        return StatementFacts(StatementKind.UNKNOWN, commits_implicitly=commits, reason=UNREAD_NAME)
    return facts


def _call_of_schedule(query: Query, facts: StatementFacts, flavor: Flavor) -> str | None:
    """What the schedule of an event calls that is no function of times."""
    if not facts.commits_implicitly or _EVENT.search(query.sql) is None:
        return None
    return schedule_call(query.sql, client_charset(query.context), dialect_of(query.context, flavor))


def _gives_up_locks(query: Query, flavor: Flavor) -> bool:
    """Whether the statement itself must not run in a lane's session (``programs.of_server`` has the table). What a
    program that a DDL defines does, does not run there; the values of its SET STATEMENT, and what the text of a table
    computes, do."""
    if _GIVES_UP.search(query.sql) is None:
        return False
    # few windows need it
    from binlane.sql.programs.of_server import never_in_lane

    try:
        tokens = words_of(query.sql, query.context, flavor).tokens
        return never_in_lane(tokens[: program_at(tokens)], is_body=False) is not None
    except Unreadable:
        return True


def _computed_interval(query: Query, flavor: Flavor) -> str | None:
    """What the INTERVAL of a table's partitions has besides literals; None if it has nothing."""
    if _SYSTEM_TIME.search(query.sql) is None:
        return None
    try:
        return computed_interval(words_of(query.sql, query.context, flavor).tokens)
    except Unreadable:
        return "what cannot be read in the INTERVAL of PARTITION BY SYSTEM_TIME"


def _is_of_table(statement: bytes, context: SessionContext, flavor: Flavor) -> bool:
    """Whether a statement makes or alters a table; also one that is not read."""
    try:
        return defines_table(words_of(statement, context, flavor).tokens)
    except Unreadable:
        return True


def _engine_elsewhere(query: Query, flavor: Flavor) -> str | None:
    """The engine of a table, or of its partitions, that has its rows outside of the server; None if none has."""
    if _ENGINE.search(query.sql) is None:
        return None
    try:
        words = words_of(query.sql, query.context, flavor)
    except Unreadable:
        return "that cannot be read"
    if is_external(words.tokens):
        return EXTERNAL
    if has_computed_default(words.tokens):
        return "of SET STATEMENT that is no plain name"
    named = map(words.text, engine_places(words.tokens))
    return next((engine for engine in named if engine.lower() not in LOCAL_ENGINES), None)


def asks_for_database(sql: bytes, context: SessionContext, flavor: Flavor) -> bool:
    """Whether a statement itself has DATABASE() or SCHEMA()."""
    if _MAY_ASK.search(sql) is None:
        return False
    try:
        tokens = words_of(sql, context, flavor).tokens
    except Unreadable:
        return True
    return any(
        word.upper in ("DATABASE", "SCHEMA") and is_symbol(begin, "(") and is_symbol(end, ")")
        for word, begin, end in zip(tokens, tokens[1:], tokens[2:], strict=False)
    )


def _with_default_collation(context: SessionContext, log: LogFormat) -> SessionContext:
    """Set the meaning of ``CHARSET=utf8mb4`` if the log does not: utf8mb4_general_ci in MariaDB and in old MySQL.

    A MariaDB session may have set another default; MySQL logs it since 8.0.1 changed it.
    """
    if log.target is not Flavor.MYSQL or context.default_collation_for_utf8mb4 is not None:
        return context
    if log.format.flavor is Flavor.MARIADB:
        is_old = all(default != UTF8MB4_GENERAL_CI for default, _ in context.character_set_collations)
    else:
        is_old = log.format.version < _LOGS_DEFAULT_COLLATION
    return replace(context, default_collation_for_utf8mb4=UTF8MB4_GENERAL_CI) if is_old else context


def _decompressed(event: RawEvent, where: str) -> RawEvent:
    code, body = decompressed(event.header.type_code, event.body, where)
    return event._replace(header=event.header._replace(type_code=code), body=memoryview(body))


def _refuse(event: RawEvent, log: LogFormat, what: str) -> NoReturn:
    raise UnsupportedEventError(
        f"{log.where(event)}{type_name(event.header.type_code)}: {what} cannot be applied by this version; "
        "nothing of the window was written; see docs/conformance.md for what to do"
    )
