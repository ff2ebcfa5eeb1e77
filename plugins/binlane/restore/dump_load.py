"""Loads databases of a dump into a target under other names.

A dump is input: only the statements that dump programs write for databases run, and each of them with names of the
databases that are restored. What a dump says of other databases, of accounts and of the server is passed over.

Each statement is looked at from its first word to its last, and what was looked at is sent: its conditional comments
are resolved by the target's rules first (``shared_reading``). A statement of rows has literals alone, so it calls no
function and reads no table; a definition is about the databases that are restored; of SET, the known assignments are
written anew.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from typing import Final

from binlane.apply.refusals import DENIED, target_errors
from binlane.apply.session.retry_verdicts import error_code
from binlane.binlog.query import Query
from binlane.binlog.types.collations import collation_id
from binlane.binlog.types.literals import identifier, quoted
from binlane.bootstrap.definition_copy import LACKS_FOR_VIEW
from binlane.bootstrap.library_calls import check_library_calls, check_library_calls_behind
from binlane.bootstrap.row_copy import in_transaction
from binlane.bootstrap.sessions import Session
from binlane.bootstrap.value_warnings import require_unchanged
from binlane.bootstrap.view_functions import check_view
from binlane.errors import ConfigError, PlanError, TargetError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SchemaObject, SessionContext, TableKey, version_number
from binlane.plan.transaction.decode import statement_facts
from binlane.plan.transaction.parts import StatementPart
from binlane.plan.transaction.rename_statement import Unsafe, renamed_statement
from binlane.rename_rules import LONGEST, NAMES_A_FILE, lower, names_a_file
from binlane.restore.definers import GROUPED_NAME, NAME, OBJECT, ROW_KINDS, definer_of
from binlane.restore.dump_file import MANY, QUOTED, USE, decoded, end_of_string, shown_part
from binlane.restore.inexact_columns import InexactTable, inexact_table
from binlane.restore.local_tables import local_table
from binlane.restore.lost_letters import Letters
from binlane.servers.names import is_named
from binlane.shards.renaming import Renaming
from binlane.sql.charset import MODES_OF_TEXT, client_charset, dialect_of, multibyte_form
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.sql.plain_statement import plain
from binlane.sql.scheduled_event import disabled, schedule_call
from binlane.sql.shared_reading import AmbiguousTextError, Reader, Version, as_read_by_source
from binlane.sql.sql_modes import modes_there

_DATABASE: Final = re.compile(
    rb"(CREATE|ALTER|DROP)\s++(?:DATABASE|SCHEMA)\s++(?:IF\s++(?:NOT\s++)?EXISTS\s++)?"
    + QUOTED
    + rb"((?:\s++(?:DEFAULT\s++)?(?:CHARACTER\s++SET|CHARSET|COLLATE|ENCRYPTION|COMMENT)\s*+(?:=\s*+)?"
    rb"(?:\w++|'[^'\\]*+')){0,8})\s*+",
    re.IGNORECASE,
)
_INTO: Final = re.compile(
    rb"(?:INSERT|REPLACE)\s+(?:IGNORE\s+)?INTO\s+" + GROUPED_NAME + rb"\s*"
    rb"(?:\((\s*" + NAME + rb"\s*(?:,\s*" + NAME + rb"\s*){0,4095})\)\s*)?VALUES?(?=[\s(])",
    re.IGNORECASE,
)
_NAME: Final = re.compile(GROUPED_NAME)
_LITERAL: Final = (
    rb"[\s(),]++|[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:E[+-]?\d++)?(?![\w.$\x80-\xff])"
    rb"|0X[0-9A-F]++(?![\w$\x80-\xff])|[XB]'[0-9A-F]*+'|_\w++\s*+(?=['0XB])"
    rb"|(?:NULL|DEFAULT|TRUE|FALSE)(?![\w.$(\x80-\xff])"
    # mydumper writes JSON so
    rb"|CONVERT(?=\(['\"])|USING\s+UTF8MB4(?=\))"
)
_STRINGS: Final = {
    (False, False): rb"|'(?:[^'\\]++|\\.){0,200}'|\"(?:[^\"\\]++|\\.){0,200}\"",
    (False, True): rb"|'(?:[^'\\]++|\\.){0,200}'",
    (True, False): rb"|'[^']*+'|\"[^\"]*+\"",
    (True, True): rb"|'[^']*+'",
}
_VALUES: Final = {
    mode: re.compile(rb"(?:" + _LITERAL + strings + rb")" + MANY, re.IGNORECASE | re.DOTALL)
    for mode, strings in _STRINGS.items()
}
"""What may follow VALUES, besides long strings, by whether a backslash stands for itself, and a double quote for a
name's."""
_KEYS: Final = re.compile(rb"ALTER\s+TABLE\s+" + NAME + rb"\s+(?:DIS|EN)ABLE\s+KEYS\s*", re.IGNORECASE)
_DROP: Final = re.compile(
    rb"DROP\s+(?:TABLE|VIEW|TRIGGER|PROCEDURE|FUNCTION|EVENT|SEQUENCE|PACKAGE(?:\s+BODY)?)\s+IF\s+EXISTS\s+"
    + NAME
    + rb"\s*",
    re.IGNORECASE,
)
_SETVAL: Final = re.compile(rb"(?:DO|SELECT)\s+SETVAL\(" + NAME + rb",\s*-?\d+,\s*[01](?:,\s*\d+)?\)\s*", re.IGNORECASE)
_ASSIGNMENT: Final = (
    rb"NAMES\s+(?P<names>'\w+'|\w+)(?:\s+COLLATE\s+(?:'\w+'|\w+))?"
    rb"|@(?P<own>\w+)\s*=\s*@@(?:SESSION\.)?(?P<read>\w+)"
    rb"|(?:@@SESSION\.|SESSION\s+)?(?P<variable>\w+)\s*=\s*(?P<value>'[^'\\]*'|@?\w+)"
)
_ASSIGNMENTS: Final = re.compile(rb"\s*(?:" + _ASSIGNMENT + rb")\s*(?:,|\Z)", re.IGNORECASE)
_SET: Final = re.compile(rb"SET(?=[\s@])", re.IGNORECASE)
_CLIENT: Final = b"CHARACTER_SET_CLIENT"
_MODE: Final = b"SQL_MODE"
_ZONE: Final = b"TIME_ZONE"
_UTC: Final = "'+00:00'"
_SESSION: Final = frozenset(
    {
        *(_CLIENT, b"COLLATION_CONNECTION", _ZONE, _MODE),
        *(b"UNIQUE_CHECKS", b"FOREIGN_KEY_CHECKS"),
    }
)
"""Variables that a dump sets for its own statements. Not CHARACTER_SET_RESULTS, in which the server would answer
binlane's own questions, nor SQL_NOTES and NOTE_VERBOSITY: a value that the target changes
is a note for some types."""
_MODES: Final = re.compile(r"'[A-Z0-9_,]*'", re.IGNORECASE)
_PASSED_OVER: Final = re.compile(
    rb"(?:LOCK\s+TABLES|UNLOCK\s+TABLES|SET\s|COMMIT|START\s+TRANSACTION|CHANGE\s+(?:MASTER|REPLICATION)|GRANT|"
    rb"(?:CREATE|ALTER|DROP)\s+(?:OR\s+REPLACE\s+)?(?:USER|ROLE|SERVER|TABLESPACE|LOGFILE)|FLUSH|INSTALL|"
    rb"(?:START|STOP)\s+(?:SLAVE|REPLICA|ALL))",
    re.IGNORECASE,
)
_UTF8MB4: Final = "utf8mb4"
_NAMES_IN_UTF8: Final = frozenset({_UTF8MB4, "utf8", "utf8mb3", "binary"})
"""Client character sets in which a server takes the bytes of names for UTF-8."""
_ALIASES: Final = {"utf8": "utf8mb3_bin", "binary": "binary"}


@dataclass(slots=True)
class DumpLoad:
    """One load."""

    session: Session
    version: Version
    """The target's."""
    name: str
    """The dump, for messages."""
    databases: Mapping[str, str]
    """Names in the dump, and names on the target."""
    definers: Collection[str]
    """Those that the plan names."""
    tables: frozenset[str] = frozenset()
    """Of the only database, the tables that are loaded, with their triggers; empty: everything."""
    catalogue: Session | None = None
    """Reads the columns of tables, without the dump's settings."""
    server: str = ""
    """The version of the server that was dumped; empty: not known."""
    notes: list[str] = field(default_factory=list)
    """Views that were not made, and why; tables that were made without their folders."""
    inexact: list[InexactTable] = field(default_factory=list)
    """Tables with values that the dump's text does not preserve."""
    seen: set[str] = field(default_factory=set)
    """The databases that the dump has."""
    size: int = 0
    """Bytes of the statements that ran."""
    _current: str | None = None
    _is_header: bool = True
    _client: str = _UTF8MB4
    _says_client: bool = False
    """Whether SET NAMES was there: the rows of a dump without one may be in any character set."""
    _modes: str = "''"
    _zone: str = ""
    """The dump's time zone, in quotes; empty: it has not said."""
    _saved: dict[bytes, tuple[bytes, str]] = field(default_factory=dict)
    """What a user variable was read from, and the value, if it decides how texts are read."""
    _closed: set[TableKey] = field(default_factory=set)
    """Tables that have a trigger, and views, in lower case: rows that were written there could run a body."""
    _whole: set[TableKey] = field(default_factory=set)
    """Tables whose rows have a value for each column."""
    _letters: Letters = field(default_factory=Letters)

    def run(self, statements: Iterator[bytes]) -> None:
        """Load. Raises ConfigError for a statement that no dump program writes there, PlanError for one that cannot be
        renamed, and driver errors."""
        self._set_default_collation()
        for statement in statements:
            made = self.statement(statement)
            if made is not None:
                self._execute(made)
                self.size += len(made)

    def _set_default_collation(self) -> None:
        """A dump of MySQL before 8.0.1 leaves utf8mb4_general_ci out, which was the default of utf8mb4."""
        is_older = (
            self.server != "" and "mariadb" not in self.server.lower() and version_number(self.server) < (8, 0, 1)
        )
        if is_older and self.session.flavor is Flavor.MYSQL:
            self.session.execute("SET SESSION default_collation_for_utf8mb4 = utf8mb4_general_ci")

    def _execute(self, statement: bytes) -> None:
        if (rows := _INTO.match(statement)) is not None and rows[2] is not None:
            self._require_whole(self._text(rows[1]), {self._text(each).lower() for each in _NAME.findall(rows[2])})
        if rows is not None:
            self._write(TableKey(self.databases[self._current or ""], self._text(rows[1])), statement)
            return
        made = OBJECT.match(statement)
        if made is None or (kind := made["kind"].upper()) in ROW_KINDS:
            self.session.execute(statement)
            return
        # in the dump's own session the server could answer in a character set of the dump's choice
        asked = self.session if self.catalogue is None else self.catalogue
        named = SchemaObject(kind.decode().lower(), self.databases[self._current or ""], shown_part(statement))
        check_library_calls(asked, named, statement, self._context)
        if kind != b"VIEW":
            self.session.execute(statement)
            return
        check_library_calls_behind(asked, named, statement, self._context)
        check_view(asked, named, statement, self._context, of_dump=True)
        try:
            with target_errors(shown_part(statement)):
                self.session.execute(statement)
        except TargetError as exc:
            code = 0 if exc.__cause__ is None else error_code(exc.__cause__)
            if code not in LACKS_FOR_VIEW | DENIED:
                raise
            # a server does not say whether an object is there that the account may not read
            why = "not there, or not for the account to read" if code in DENIED else "not there"
            self.notes.append(f"{exc}: it was not made, because an object that it needs is {why}")

    def _write(self, key: TableKey, statement: bytes) -> None:
        """Write rows into a table that stays one until they are committed. Raises TableMismatchError for a view,
        ApplyError for a value that the target would change."""

        def insert() -> int:
            stored = self.session.execute(statement)
            # a dump's own mode is not strict
            require_unchanged(self.session, key, lambda: self._columns(key, "data_type = 'enum'"))
            return stored

        in_transaction(self.session, key, insert)

    def _require_whole(self, table: str, columns: set[str]) -> None:
        """Raise ConfigError if rows have no value for a column that is not computed: a dump program has left it out.
        (mydumper 0.10.1 does so on MySQL 8 and newer for columns with an expression as their default.)"""
        key = TableKey(self.databases[self._current or ""], table)
        if key in self._whole:
            return
        names = self._columns(key, "COALESCE(generation_expression, '') = ''")
        if lacks := [column for column in names if column.lower() not in columns]:
            raise ConfigError(
                f"--from {self.name}: rows of {self._current}.{table}: expected values of all columns, found none of "
                f"{', '.join(lacks)}: the dump program has left them out; dump with a newer one, or with mysqldump or "
                "mariadb-dump"
            )
        self._whole.add(key)

    def _columns(self, key: TableKey, condition: str) -> list[str]:
        """The names of a table's columns that fulfil a condition."""
        where = [is_named("table_schema", quoted(key.database)), is_named("table_name", quoted(key.table)), condition]
        session = self.session if self.catalogue is None else self.catalogue
        names = session.texts(f"SELECT column_name FROM information_schema.columns WHERE {' AND '.join(where)}")
        return [name for (name,) in names]

    def statement(self, statement: bytes) -> bytes | None:
        """The statement for the target; None if it does not run there."""
        if (rows := _INTO.match(statement)) is not None:
            return self._rows(statement, rows)
        text = self._read(statement)
        if text is None:
            return None
        if (use := USE.fullmatch(text)) is not None:
            return self._use(self._text(use[1], use[2]))
        if (database := _DATABASE.fullmatch(text)) is not None:
            return self._database(text, database)
        if not self._is_header and self._current not in self.databases:
            return None
        if (setting := _SET.match(text)) is not None:
            return self._set(text[setting.end() :])
        if self._current is None:
            if _PASSED_OVER.match(text) is not None or not text:
                return None
            raise self._unknown(text, "behind USE of a database: dump with --databases or --all-databases")
        if any(each.fullmatch(text) is not None for each in (_KEYS, _DROP, _SETVAL)):
            named = _NAME.search(text)
            assert named is not None, "the three patterns have a name"
            table = self._table(named[1])
            return text if not self.tables or table in self.tables else None
        if (made := OBJECT.match(text)) is not None:
            return self._object(text, made["kind"].upper())
        if _PASSED_OVER.match(text) is not None or not text:
            return None
        raise self._unknown(text, "that a dump program writes")

    @property
    def _context(self) -> SessionContext:
        """The session in which the target reads the next statement. Raises ConfigError."""
        collation = collation_id(_ALIASES.get(self._client, f"{self._client}_bin"), self.session.flavor)
        if collation is None:
            raise ConfigError(
                f"--from {self.name}: expected the name of a character set, found {self._client!r}; dump with "
                "--default-character-set=utf8mb4"
            )
        # with ANSI_QUOTES for each name of which the target makes it (``_modes_there``)
        modes = {*self._modes.strip("'").upper().split(",")}
        bits = sum(bit for mode, bit in MODES_OF_TEXT.items() if mode in modes)
        return SessionContext(database=self._current, sql_mode=bits, charset_client=collation)

    def _read(self, statement: bytes) -> bytes | None:
        """What the target executes of it, without comments; None in a database that is not restored."""
        flavor = self.session.flavor
        try:
            read = as_read_by_source(statement, self._context, Reader(flavor, self.version), flavor)
        except AmbiguousTextError as exc:
            if not self._is_header and self._current not in self.databases and USE.match(statement) is None:
                return None
            raise ConfigError(
                f"--from {self.name}: {shown_part(statement)}: {exc}; take it out of a copy of the dump, restore, and "
                "run it by hand"
            ) from exc
        return plain(read, self._context, flavor).strip()

    def _rows(self, statement: bytes, into: re.Match[bytes]) -> bytes | None:
        """A statement of literals alone. Raises ConfigError for another one."""
        if not self._is_header and self._current not in self.databases:
            return None
        if self._current is None:
            raise self._unknown(statement, "behind USE of a database: dump with --databases or --all-databases")
        context = self._context
        if multibyte_form(client_charset(context)) is not None:
            raise ConfigError(
                f"--from {self.name}: {shown_part(statement)}: expected rows in UTF-8 or a character set of one byte, "
                f"found {self._client}; dump with --default-character-set=utf8mb4"
            )
        dialect = dialect_of(context, self.session.flavor)
        values, at = _VALUES[dialect.no_backslash_escapes, dialect.ansi_quotes], into.end()
        quotes = b"'" if dialect.ansi_quotes else b"'\""
        while at < len(statement):
            end = None
            if (found := values.match(statement, at)) is not None:
                end = found.end()
            elif statement[at] in quotes:
                end = end_of_string(statement, at, plain_backslashes=dialect.no_backslash_escapes)
            if end is None:
                break
            at = end
        if at != len(statement):
            raise self._unknown(statement[max(at - 20, 0) :], "of literal values alone, as a dump program writes rows")
        name = self._table(into[1])
        if self.tables and name not in self.tables:
            return None
        self._require_rows(statement, self._current, name)
        client = self._client if self._says_client else ""
        if (lost := self._letters.lost(self._current, statement, client)) is not None:
            self.inexact.append(lost)
        return statement

    def _require_rows(self, statement: bytes, database: str, name: str) -> None:
        """Raises ConfigError for rows of a table that cannot be loaded yet, or no more."""
        if self._zone != _UTC:
            raise self._unknown(
                statement,
                "behind SET TIME_ZONE='+00:00', without which nobody knows the time zone of its TIMESTAMPs: dump "
                "without --skip-tz-utc",
            )
        table = TableKey(lower(database), lower(name))
        if table in self._closed:
            raise self._unknown(statement, "of rows in front of the table's triggers, and none of a view")

    def _use(self, name: str) -> bytes | None:
        self._current, self._is_header = name, False
        if name not in self.databases:
            return None
        self.seen.add(name)
        used = identifier(self.databases[name]).encode()
        self._text(used)
        return b"USE " + used

    def _database(self, text: bytes, found: re.Match[bytes]) -> bytes | None:
        name = self._text(found[2], found[3])
        if name not in self.databases or found[1].upper() == b"DROP":
            return None
        start = found.start(2) - 1 if found[2] is not None else found.start(3)
        return text[:start] + identifier(self.databases[name]).encode() + found[4]

    def _set(self, text: bytes) -> bytes | None:
        """The known assignments of SET; None if it has another form, or none of them."""
        found, at = list[re.Match[bytes]](), 0
        while at < len(text):
            each = _ASSIGNMENTS.match(text, at)
            if each is None:
                return None
            found.append(each)
            at = each.end()
        known = [each for each in found if each["variable"] is None or each["variable"].upper() in _SESSION]
        before = {_CLIENT: self._client, _MODE: self._modes, _ZONE: self._zone}, dict(self._saved)
        for each in known:
            self._assign(each, *before)
        return b"SET " + b", ".join(map(self._assigned, known)) if known else None

    def _assigned(self, each: re.Match[bytes]) -> bytes:
        """The assignment as the target takes it."""
        text, value = each.group().strip(b" \t\r\n\f\v,"), each["value"] or b""
        if (each["variable"] or b"").upper() != _MODE or value[:1] != b"'":
            return text
        return text[: len(text) - len(value)] + self._modes_there(value.decode()).encode()

    def _modes_there(self, value: str) -> str:
        """Modes, in quotes, that the target takes."""
        names = modes_there(value.strip("'").upper(), self.session.flavor)
        return f"'{names}'"

    def _assign(
        self, each: re.Match[bytes], variables: Mapping[bytes, str], saved: Mapping[bytes, tuple[bytes, str]]
    ) -> None:
        """Follow the variables that decide how texts are read. ``variables`` and ``saved``: as they were in front of
        the statement, because a server takes all values of a SET before it assigns the first one
        (sql_set_variables() of both families). Raises ConfigError for a value that is not known."""
        if each["own"] is not None:
            read = each["read"].upper()
            self._saved[each["own"].lower()] = read, variables.get(read, "")
            return
        variable = _CLIENT if each["names"] is not None else each["variable"].upper()
        if variable not in (_CLIENT, _MODE, _ZONE):
            return
        value = (each["names"] or each["value"]).decode("utf-8", "replace")
        if value.startswith("@"):
            origin, value = saved.get(value[1:].lower().encode(), (b"", ""))
            if origin != variable:
                raise self._unknown(each.group(), f"with a value of {variable.decode()} that the dump has saved")
        elif variable == _MODE and _MODES.fullmatch(value) is None:
            raise self._unknown(each.group(), "with names of modes in quotes")
        if variable == _MODE:
            self._modes = self._modes_there(value)
        elif variable == _ZONE:
            self._zone = value
        else:
            self._client = value.strip("'").lower()
            self._says_client = self._says_client or each["names"] is not None

    def _object(self, text: bytes, kind: bytes) -> bytes | None:
        context, flavor = self._context, self.session.flavor
        facts = statement_facts(text, context, flavor)
        if self.tables and not self._is_of_tables(text, kind, facts):
            return None
        require_own(text, facts, self.databases, self.name)
        definer = definer_of(text)
        if definer is not None and definer not in self.definers:
            raise ConfigError(
                f"--from {self.name}: {shown_part(text)}: expected a definer that the plan names, found {definer}: the "
                "dump was changed since, or hides this definition; --drop the restore, and begin it with the right "
                "dump, or with a copy without this definition"
            )
        if kind in ROW_KINDS:
            if (inexact := inexact_table(self._current or "", text)) is not None:
                self.inexact.append(inexact)
            self._letters.define(self._current or "", text)
            text, had_folders = local_table(text, context, flavor, f"--from {self.name}: {shown_part(text)}")
            if had_folders:
                self.notes.append(f"{shown_part(text)}: its folders and its tablespace are left to the target")
        made = renamed(text, context, self.databases, flavor, self.name)
        self._closed |= {TableKey(lower(key.database), lower(key.table)) for key in facts.triggered | facts.views}
        if kind == b"EVENT":
            dialect, charset = dialect_of(context, flavor), client_charset(context)
            if (call := schedule_call(made, charset, dialect)) is not None:
                raise PlanError(
                    f"{self.name}: {shown_part(text)}: expected a schedule of literals, as dump programs write it, "
                    f"found {call}, which runs when the event is made; {_OUT_OF_DUMP}"
                )
            made = disabled(made, charset, dialect)
        return made

    def _is_of_tables(self, text: bytes, kind: bytes, facts: StatementFacts) -> bool:
        """Whether a definition is of one of the tables. Raises PlanError for a table that refers to another one."""
        if kind == b"TRIGGER":
            return any(key.table in self.tables for key in facts.triggered)
        if kind not in ROW_KINDS:
            # the log may change or drop routines and events: they are there until the last step
            return kind != b"VIEW"
        if facts.first is None or facts.first.table not in self.tables:
            return False
        if other := sorted(key.table for key in facts.tables if key.table not in self.tables):
            raise PlanError(
                f"{self.name}: {shown_part(text)}: refers to table {other[0]}, which is not restored; restore it, too: "
                f"--table {other[0]}"
            )
        return True

    def _text(self, quoted: bytes | None, unquoted: bytes | None = None) -> str:
        """A name. Raises ConfigError, also for letters that the target would read in another character set."""
        name = quoted if quoted is not None else unquoted or b""
        if self._client not in _NAMES_IN_UTF8 and not name.isascii():
            raise ConfigError(
                f"--from {self.name}: {shown_part(name)}: expected a name in UTF-8, or one of ASCII letters, found one "
                f"in {self._client}; dump with --default-character-set=utf8mb4"
            )
        return decoded(quoted.replace(b"``", b"`") if quoted is not None else unquoted or b"", self.name)

    def _table(self, quoted: bytes) -> str:
        """The name of a table, or of another object, of a statement that no lexer reads. Raises ConfigError."""
        name = self._text(quoted)
        if names_a_file(name):
            # another object than the one that was looked at: rows of a table whose triggers are there already
            raise ConfigError(
                f"--from {self.name}: expected the name of a table, found {name[:LONGEST]!r}, {NAMES_A_FILE}; take the "
                "statements of it out of a copy of the dump, restore, and run them by hand"
            )
        return name

    def _unknown(self, head: bytes, expected: str) -> ConfigError:
        return ConfigError(
            f"--from {self.name}: expected a statement {expected}, found {shown_part(head)}; nothing of it was run"
        )


def require_own(text: bytes, facts: StatementFacts, databases: Collection[str], where: str) -> None:
    """Raise PlanError for a definition that is not about these databases alone, or that runs a body when it is made. A
    view may be of other databases' tables."""
    runs = facts.create_select or (facts.routines_used and not facts.views)
    if facts.kind is not StatementKind.DDL or facts.moves or runs:
        what = "a new name" if facts.moves else "a definition that is in no database"
        what = facts.reason or ("a table with a query or a call of a routine" if runs else what)
        raise PlanError(
            f"{where}: {shown_part(text)}: expected a definition that a dump program writes, found {what}; take it out "
            "of a copy of the dump, restore, and make it by hand"
        )
    made = {key.database for key in facts.views} if facts.views else facts.databases - facts.references
    if foreign := sorted(made - {*databases}):
        raise PlanError(
            f"{where}: {shown_part(text)}: expected a definition of {', '.join(sorted(databases))}, found one of "
            f"{foreign[0]}, which is not restored; restore it, too: --database {foreign[0]}, or take the definition "
            "out of a copy of the dump"
        )


_OUT_OF_DUMP: Final = "take the object out of a copy of the dump, restore, and make it by hand"


def renamed(
    statement: bytes, context: SessionContext, databases: Mapping[str, str], flavor: Flavor, where: str, todo: str = ""
) -> bytes:
    """A definition of that session with the target's names of its databases. Raises PlanError if they cannot be
    determined; ``todo``: what to do then, if it is of no dump."""
    facts = statement_facts(statement, context, flavor)
    foreign = sorted(facts.references - databases.keys())
    if foreign:
        raise PlanError(
            f"{where}: {shown_part(statement)}: has a foreign key into {foreign[0]}, which is not restored; restore "
            f"it, too: --database {foreign[0]}"
        )
    names = {database for database in databases if database.encode() in statement}
    if not names:
        return statement
    renaming = Renaming(tuple(databases.items()))
    query = Query(context.database or "", statement, context)
    try:
        if facts.kind is StatementKind.UNKNOWN:
            raise Unsafe(facts.reason or "it is not parsed")
        part = renamed_statement(
            StatementPart(statement, context, facts, query),
            renaming,
            flavor,
            lambda sql, session: statement_facts(sql, session, flavor),
        )
    except Unsafe as exc:
        raise PlanError(
            f"{where}: {shown_part(statement)}: expected names that can be changed to {', '.join(databases.values())}, "
            f"found {exc}; {todo or _OUT_OF_DUMP}"
        ) from exc
    return part.sql
