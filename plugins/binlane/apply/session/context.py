"""Sets up a statement's logged session on the target: SessionContext becomes USE and one SET statement.

Every variable is set for every statement, to DEFAULT if the log does not mention it, so nothing remains of the
statement before. The order and the numeric forms are those of mysqlbinlog (``print_query_header`` in MySQL's
``sql/log_event.cc``): the default database first, since USE changes ``collation_database``.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

import pymysql

from binlane.apply.session.cached_state import NEUTRAL_DATABASE, UNLOGGED_VARIABLES, unlogged_value
from binlane.apply.session.connection import clock_value
from binlane.apply.session.retry_verdicts import error_code
from binlane.binlog.types.collations import UTF8MB4_GENERAL_CI, charset_name, collation_name
from binlane.binlog.variables import is_written, value_collation, with_collation
from binlane.errors import ApplyError, PlanError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SessionContext, has_explicit_defaults
from binlane.plan.transaction.decode import asks_for_database, statement_facts
from binlane.schema.normalize import collation_name as full_name
from binlane.servers.catalog import column_of_collations
from binlane.servers.catalog_queries import COLLATIONS
from binlane.servers.packed import ask_names
from binlane.servers.variables import version_number
from binlane.sessions.pins import USUAL_MODE, SessionKind, pinned
from binlane.sql.parse.facts import StatementKind
from binlane.sql.sql_modes import EVALUATED, evaluated, settable

if TYPE_CHECKING:
    from binlane.apply.session.connection import LaneSession

_UNKNOWN_DATABASE: Final = 1049
_SHOWN: Final = 100
"""Characters of a text that is no literal."""
_PLAIN_DML: Final = re.compile(rb"\s*(?:INSERT|UPDATE|DELETE|REPLACE)\b", re.I)
"""Statements that depend on nothing of the default database but its name."""
_NEEDS_NO_DATABASE: Final = re.compile(rb"\s*(?:CREATE(?:\s+OR\s+REPLACE)?|DROP|ALTER)\s+(?:DATABASE|SCHEMA)\b", re.I)
"""Statements whose default database may be the one that they create or drop."""
_CALL: Final = re.compile(rb"\s*CALL\b", re.I)

SUBSTITUTES: Final[Mapping[str, str]] = {
    "utf8mb4_0900_ai_ci": "utf8mb4_uca1400_nopad_ai_ci",
    "utf8mb4_0900_as_ci": "utf8mb4_uca1400_nopad_as_ci",
    "utf8mb4_0900_as_cs": "utf8mb4_uca1400_nopad_as_cs",
    "utf8mb4_0900_bin": "utf8mb4_nopad_bin",
    "utf8mb4_uca1400_ai_ci": "utf8mb4_0900_ai_ci",
    "utf8mb4_uca1400_nopad_ai_ci": "utf8mb4_0900_ai_ci",
    "utf8mb4_uca1400_as_ci": "utf8mb4_0900_as_ci",
    "utf8mb4_uca1400_nopad_as_ci": "utf8mb4_0900_as_ci",
    "utf8mb4_uca1400_as_cs": "utf8mb4_0900_as_cs",
    "utf8mb4_uca1400_nopad_as_cs": "utf8mb4_0900_as_cs",
    "utf8mb4_nopad_bin": "utf8mb4_0900_bin",
}
"""Collations that the other flavor lacks -> its nearest one. The precheck compares the collations of tables."""


def _number(value: object) -> str:
    return str(int(value))  # type: ignore[call-overload]


def _quoted(value: object) -> str:
    text = str(value)
    # time zone names and offsets are ASCII words in both servers
    if not re.fullmatch(r"[\w/+:\-]+", text, re.ASCII):
        raise ApplyError(f"expected a time zone in the log, found {text!r}")
    return f"'{text}'"


def _seconds(value: object) -> str:
    assert isinstance(value, float | int)
    return clock_value(value)


def _settable(mode: int, flavor: Flavor) -> int:
    try:
        return settable(mode, flavor)
    except ValueError as exc:
        raise ApplyError(f"a statement under {exc} cannot be applied: no plan job of binlane writes one") from None


_MODE: Final = "sql_mode"
_USUAL_MODES: Final = frozenset(USUAL_MODE[Flavor.MYSQL].split(","))
_USUAL_OF_ROWS: Final = {
    _MODE: f"'{USUAL_MODE[Flavor.MYSQL]}'",
    "time_zone": "DEFAULT",
    "lc_time_names": "'en_US'",
}
"""What rows may have of their session on MySQL, with the values of a session that writes none."""
_EXPLICIT_DEFAULTS: Final = "explicit_defaults_for_timestamp"
_INSERT_HISTORY: Final = "system_versioning_insert_history"
_CASCADE_TRIGGERS: Final = "enable_cascade_triggers"
"""MySQL 9.7 and newer; off unless the log says otherwise, whatever the target's own setting is."""
_CHARSET_COLLATIONS: Final = "character_set_collations"
"""The default collations of character sets, from MariaDB 11.2 on. On servers without it, and where it is empty, the
built-in defaults hold."""
_ROW_IMAGE: Final = "binlog_row_image"
_ON, _OFF = "ON", "OFF"
_BOTH: Final = frozenset(Flavor)
_MYSQL: Final = frozenset({Flavor.MYSQL})
_MARIADB: Final = frozenset({Flavor.MARIADB})


@dataclass(frozen=True, slots=True)
class _Variable:
    """A session variable: its field in the context, the flavors that have it, its value if the log has none.

    A pinned variable has its pinned value then, as in a replica whose server nobody has configured.
    """

    name: str
    attribute: str
    render: Callable[[object], str] = _number
    flavors: frozenset[Flavor] = _BOTH
    default: str = "DEFAULT"
    since: tuple[int, int, int] = (0, 0, 0)
    """The first version that has it; an older target has the usual value for good."""

    def is_of(self, flavor: Flavor, version: tuple[int, int, int]) -> bool:
        """Whether a server has it."""
        return flavor in self.flavors and version >= self.since

    def usual(self, flavor: Flavor) -> str:
        """The value if the log has none."""
        value = pinned(self.name, flavor, SessionKind.LANE) or self.default
        # the session may have the last statement's collation_connection, of UTF-16 for one
        return f"_ascii{value}" if value.startswith("'") else value


_VARIABLES: Final = (
    _Variable("timestamp", "timestamp", _seconds),
    _Variable("foreign_key_checks", "foreign_key_checks"),
    _Variable("unique_checks", "unique_checks"),
    _Variable("sql_auto_is_null", "auto_is_null"),
    _Variable("check_constraint_checks", "check_constraint_checks", flavors=_MARIADB),
    _Variable("sql_if_exists", "if_exists", flavors=_MARIADB, since=(10, 5, 2)),
    _Variable(_MODE, "sql_mode"),
    _Variable("auto_increment_increment", "auto_increment_increment"),
    _Variable("auto_increment_offset", "auto_increment_offset"),
    _Variable("lc_time_names", "lc_time_names"),
    _Variable("time_zone", "time_zone", _quoted),
    _Variable(_EXPLICIT_DEFAULTS, "explicit_defaults_for_timestamp"),
    # a source with this rule has it in its log
    _Variable("sql_require_primary_key", "sql_require_primary_key", flavors=_MYSQL, default="0"),
    _Variable("default_table_encryption", "default_table_encryption", flavors=_MYSQL),
    _Variable("last_insert_id", "last_insert_id", default="0"),
)
_COLLATIONS: Final = (
    _Variable("collation_connection", "collation_connection"),
    _Variable("collation_server", "collation_server"),
    _Variable("default_collation_for_utf8mb4", "default_collation_for_utf8mb4", flavors=_MYSQL),
    _Variable("collation_database", "collation_database"),
)


@dataclass(slots=True)
class ContextSetter:
    """Sets a lane's session to the context of statements, and back."""

    session: LaneSession
    checked: Mapping[str, str] = field(default_factory=dict)
    """Global values of the target with which the window was checked: its statements have them, whatever somebody sets
    there. Of other variables they have those of now."""
    _collations: Mapping[str, str] = field(default_factory=dict)
    _entered: bool = False
    _reads_few: bool = False
    _of_rows: tuple[str, ...] = ()
    """The variables that the session has from rows: names of ``_USUAL_OF_ROWS``."""
    _own_collation: str = ""
    _database: str | None = field(default=None)
    _is_renewed: bool = False
    """Whether the session has all changes that others have made to its cached state (``cached_state``)."""
    _unlogged: tuple[str, ...] | None = None
    """The ``UNLOGGED_VARIABLES`` that this server has, as assignments."""
    _explicit_defaults: bool | None = None
    """The session's present value; None until it is read."""
    _usual_explicit_defaults: bool = True
    _newer: dict[str, str] | None = None
    """The variables of newer MariaDB servers that this server has, with the session's present values."""

    def enter(self, context: SessionContext, statement: bytes, *, reads_few: bool = False) -> None:
        """Give the session the context of ``statement``. Raises ApplyError if the target cannot have it, PlanError if
        no log has it.

        ``reads_few``: MySQL reads no columns but those that the statement needs, as a source that logs statements does;
        for a log of whole rows it reads all of them.
        """
        self._remember_collation()
        self.leave()
        renewals = self._renew(context, statement)
        self._entered = True
        for name, value in context.user_variables:
            self.session.execute(f"SET @`{name.replace('`', '``')}` := {self._value(name, value)}")
        self._reads_few = reads_few
        few = (f"{_ROW_IMAGE} = MINIMAL",) if reads_few else ()
        self.session.execute("SET SESSION " + ", ".join((*renewals, *self._assignments(context), *few)))

    def leave(self) -> None:
        """Take back the last statement's context, before any statement of binlane's own runs."""
        self._leave_rows()
        if self._entered:
            usual = SessionContext(thread_id=self.session.connection_id)
            # binlane's own names may hold characters that the server's default character set lacks
            own = f", collation_connection = {self._own_collation}{self._no_insert_id()}"
            whole = f", {_ROW_IMAGE} = DEFAULT" if self._reads_few else ""
            self.session.execute("SET SESSION " + ", ".join(self._assignments(usual)) + own + whole)
            self._entered, self._reads_few = False, False

    def enter_rows(self, context: SessionContext | None) -> None:
        """Take back the last statement's context; then columns of rows are computed in these modes, of those that
        change a value, and in the target's own of all others, in the time zone, if it has one, and in the locale. None:
        the rows see none of them."""
        if self._entered:
            self.leave()
        self._set_of_rows({} if context is None else self._wanted_by_rows(context))

    def _leave_rows(self) -> None:
        self._set_of_rows({})

    def _wanted_by_rows(self, context: SessionContext) -> dict[str, str]:
        """The values of ``_USUAL_OF_ROWS`` that rows have in place of the usual ones."""
        mode, wanted = context.sql_mode, dict[str, str]()
        if mode is None or self.session.flavor is not Flavor.MYSQL:
            return wanted
        if context.time_zone is not None:
            wanted["time_zone"] = _quoted(context.time_zone)
        modes = _USUAL_MODES - frozenset(EVALUATED.values()) | frozenset(evaluated(mode))
        if modes != _USUAL_MODES:
            wanted[_MODE] = f"_ascii'{','.join(sorted(modes))}'"
        if context.lc_time_names:
            wanted["lc_time_names"] = str(int(context.lc_time_names))
        return wanted

    def _set_of_rows(self, wanted: Mapping[str, str]) -> None:
        """Give the session these values and the usual ones of all that it has from rows before, by one statement. What
        it has already is set again: a writer of statements has a mode and a zone of its own, and takes them back."""
        values = {name: _USUAL_OF_ROWS[name] for name in self._of_rows} | dict(wanted)
        if values:
            self._of_rows = tuple(wanted)
            self.session.execute("SET SESSION " + ", ".join(f"{name} = {value}" for name, value in values.items()))

    def _remember_collation(self) -> None:
        if not self._own_collation:
            self._own_collation = str(self.session.value("SELECT @@collation_connection"))

    def client_charset(self, context: SessionContext) -> str:
        """The character set that the statement's bytes are in."""
        return (
            charset_name(self._collation(context.charset_client)) if context.charset_client is not None else "utf8mb4"
        )

    def _renew(self, context: SessionContext, statement: bytes) -> tuple[str, ...]:
        """Select the statement's default database; returns the rest of the cached state to renew, as assignments.

        Only plain DML after another statement of its block needs no renewal: no statement runs with stale state.
        """
        # without one of its own, a statement must not run in the one of a statement before it
        database = NEUTRAL_DATABASE if context.database is None else context.database
        if self._is_renewed and database == self._database and _PLAIN_DML.match(statement):
            return ()
        if self._unlogged is None:
            names = ", ".join(f"'{name}'" for name in UNLOGGED_VARIABLES)
            found = self.session.rows(f"SHOW SESSION VARIABLES WHERE variable_name IN ({names})")
            self._unlogged = tuple(f"{name} = {unlogged_value(str(name), self.checked)}" for name, _ in found)
        self._use(context, database, statement)
        self._is_renewed = True
        return self._unlogged

    def _use(self, context: SessionContext, database: str, statement: bytes) -> None:
        self._database = None
        try:
            self.session.select_database(database)
        except pymysql.err.MySQLError as exc:
            if error_code(exc) != _UNKNOWN_DATABASE or not needs_no_database(context, statement, self.session.flavor):
                raise
            database = NEUTRAL_DATABASE
            self.session.select_database(database)
        self._database = database

    def null_is_now(self) -> contextlib.AbstractContextManager[None]:
        """Around a block, outside of its transaction: statements whose log does not have
        ``explicit_defaults_for_timestamp`` run with OFF instead of the target's own value."""
        return self._with_explicit_defaults(False)

    def definitions_as_shown(self) -> contextlib.AbstractContextManager[None]:
        """Outside of a transaction: the same with ON, with which alone a text of SHOW CREATE TABLE means what it
        says."""
        return self._with_explicit_defaults(True)

    @contextlib.contextmanager
    def _with_explicit_defaults(self, value: bool) -> Iterator[None]:
        self._read_explicit_defaults()
        usual = self._usual_explicit_defaults
        self._use_explicit_defaults(value)
        try:
            yield
        finally:
            if self.session.connection.open:
                self._use_explicit_defaults(usual)

    def make_null_now(self) -> None:
        """Outside of a transaction: the same for the rest of the session, as MariaDB has it whatever its variable says
        (``sql.other_family``)."""
        self._read_explicit_defaults()
        self._use_explicit_defaults(False)

    @property
    def null_is_zero(self) -> bool:
        """Whether the present statement stores 0 for NULL in a TIMESTAMP, where that is no error."""
        return self._explicit_defaults is True

    def _use_explicit_defaults(self, usual: bool) -> None:
        self._usual_explicit_defaults = usual
        if self._changes_explicit_defaults(None):
            self.session.execute(f"SET SESSION {_EXPLICIT_DEFAULTS} = {usual:d}")

    def drop_temporary(self, thread_id: int, database: str, table: str) -> None:
        """Drop a source connection's temporary table whose end is not in the log."""
        name = ".".join(f"`{part.replace('`', '``')}`" for part in (database, table))
        self.session.execute(f"SET SESSION pseudo_thread_id = {int(thread_id)}")
        try:
            self.session.execute(f"DROP TEMPORARY TABLE IF EXISTS {name}")
        finally:
            self.session.execute(f"SET SESSION pseudo_thread_id = {self.session.connection_id}")

    def expire(self) -> None:
        """Renew the cached state before the next statement: other sessions may have changed it."""
        self._is_renewed = False

    def copying(self, thread_id: int) -> None:
        """Make a source connection's temporary tables visible and let their rows be copied unchanged, until
        ``leave``."""
        self._remember_collation()
        self.leave()
        on_mariadb = self.session.flavor is Flavor.MARIADB
        checks = ", check_constraint_checks = 0" if on_mariadb else ", sql_require_primary_key = 0"
        self._entered = True
        self.session.execute(
            f"SET SESSION pseudo_thread_id = {int(thread_id)}, sql_mode = 'NO_AUTO_VALUE_ON_ZERO', "
            f"time_zone = '+00:00'{checks}"
        )

    def _assignments(self, context: SessionContext) -> Iterator[str]:
        flavor = self.session.flavor
        for variable in _VARIABLES:
            if variable.is_of(flavor, self.session.version):
                value = getattr(context, variable.attribute)
                if variable.name == _MODE and value is not None:
                    value = _settable(value, flavor)
                if variable.name == _EXPLICIT_DEFAULTS and not self._changes_explicit_defaults(value):
                    continue
                yield f"{variable.name} = {variable.usual(flavor) if value is None else variable.render(value)}"
        yield from self._newer_assignments(context)
        yield f"character_set_client = {self.client_charset(context)}"
        for variable in _COLLATIONS:
            if flavor in variable.flavors:
                number = getattr(context, variable.attribute)
                yield f"{variable.name} = {variable.usual(flavor) if number is None else self._collation(number)}"
        if context.insert_id is not None:
            yield f"insert_id = {int(context.insert_id)}"
        if context.rand_seeds is not None:
            yield f"rand_seed1 = {int(context.rand_seeds[0])}, rand_seed2 = {int(context.rand_seeds[1])}"
        if context.thread_id is not None:
            # temporary tables of two source sessions may share a name
            yield f"pseudo_thread_id = {int(context.thread_id)}"

    def _changes_explicit_defaults(self, wanted: bool | None) -> bool:
        """Whether to send the variable: MySQL refuses any SET of it in a transaction (1766), older MariaDB servers at
        any time (1238)."""
        if self.session.flavor is Flavor.MARIADB and not has_explicit_defaults(self.session.version):
            return False
        self._read_explicit_defaults()
        value = self._usual_explicit_defaults if wanted is None else wanted
        changes = value != self._explicit_defaults
        self._explicit_defaults = value
        return changes

    def _read_explicit_defaults(self) -> None:
        if self._explicit_defaults is None:
            query = f"SELECT @@session.{_EXPLICIT_DEFAULTS}, @@global.{_EXPLICIT_DEFAULTS}"
            [(session, usual)] = self.session.rows(query)
            self._explicit_defaults, self._usual_explicit_defaults = bool(session), bool(usual)

    def _newer_assignments(self, context: SessionContext) -> Iterator[str]:
        """Variables of newer servers, if the target has them and their value changes.

        A target without them lacks the feature; the precheck names the statements that need it.
        """
        if self._newer is None:
            names = ", ".join(f"'{name}'" for name in (_INSERT_HISTORY, _CHARSET_COLLATIONS, _CASCADE_TRIGGERS))
            found = self.session.rows(f"SHOW SESSION VARIABLES WHERE variable_name IN ({names})")
            self._newer = {str(name): str(value) for name, value in found}
        pairs = context.character_set_collations
        if not pairs and context.default_collation_for_utf8mb4 is not None:
            pairs = ((UTF8MB4_GENERAL_CI, context.default_collation_for_utf8mb4),)
        defaults = ",".join(
            f"{charset_name(self._collation(default))}={self._collation(chosen)}"
            # a target without the variable need not have the collations, which no statement needs there
            for default, chosen in (pairs if _CHARSET_COLLATIONS in self._newer else ())
        )
        values = {
            _INSERT_HISTORY: _ON if context.system_versioning_insert_history else _OFF,
            _CHARSET_COLLATIONS: defaults,
            _CASCADE_TRIGGERS: _ON if context.cascade_triggers else _OFF,
        }
        for name, value in values.items():
            if self._newer.get(name, value) != value:
                yield f"{name} = '{value}'"
                self._newer[name] = value

    def _no_insert_id(self) -> str:
        # MySQL has no value for "none": 0 would be given to the next row. Its session resets the variable at the end of
        # the statement.
        return ", insert_id = DEFAULT" if self.session.flavor is Flavor.MARIADB else ""

    def _value(self, name: str, value: str) -> str:
        """A user variable's value with a collation that the target has. Raises PlanError for SQL of another kind."""
        if not is_written(value):
            raise PlanError(
                f"user variable {name[:_SHOWN]!r}: expected a literal in the window's files, found {value[:_SHOWN]!r}; "
                "no plan job of binlane writes it, so another program has changed them: find out who can write to the "
                "work folder, remove the window's folder there, and run again: the same files are made from the log"
            )
        collation = value_collation(value)
        return value if collation is None else with_collation(value, self._spelled(collation, "of a user variable"))

    def _collation(self, number: int) -> str:
        name = collation_name(number, self.session.flavor)
        return self._spelled(name, str(number))

    def _spelled(self, name: str | None, what: str) -> str:
        known = self._known_collations()
        for candidate in (name or "", SUBSTITUTES.get(name or "", "")):
            if candidate in known:
                return known[candidate]
        raise ApplyError(
            f"collation {what} ({name or 'of no known server'}) of the source is unknown to the target, and "
            "binlane knows no substitute; name one under [collations] in the channel's file"
        )

    def _known_collations(self) -> Mapping[str, str]:
        """The target's own spelling of each collation: up to MariaDB 10.5, utf8mb3 is utf8 in them."""
        if not self._collations:
            number = version_number(self.session.connection.get_server_info())  # type: ignore[no-untyped-call]
            column = column_of_collations(self.session.flavor, number)
            # the variable for texts of any length stays as it is: a replayed statement may depend on it
            names = ask_names(COLLATIONS, column, self.session.rows)
            self._collations = {full_name(name) or "": name for name in names}
        return self._collations


def needs_no_database(context: SessionContext, statement: bytes, flavor: Flavor) -> bool:
    """Whether the statement means the same in any database.

    The default database of a source's session may be dropped by another session, or left out by the channel; replicas
    do not check it either. CREATE DATABASE and DROP DATABASE may run inside the database itself.
    """
    if _NEEDS_NO_DATABASE.match(statement) is not None:
        return True
    if asks_for_database(statement, context, flavor):
        return False
    facts = statement_facts(statement, replace(context, database=None), flavor)
    # a routine that is called with its database runs there
    return facts.kind is not StatementKind.UNKNOWN and not facts.functions and _CALL.match(statement) is None
