"""Variables that no log holds and in which the source and the target differ, where a window sees them.

A replica has its own server's values for them, and so have lanes; a session of the source may have had others than its
server's, which nobody can tell afterwards. What can be told is compared: the two servers' global values.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Set
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Final

from sqlalchemy import Connection, text

from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, ItemKind, SessionContext, TableKey
from binlane.plan.block.computed_modes import TIME_ZONE, computed
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.precheck.statements.window_statements import first_reached, reach_of_window
from binlane.schema.compare import Severity
from binlane.schema.model import Table
from binlane.schema.programs import Program
from binlane.servers.variables import global_variables, session_variable, version_number
from binlane.sql.logged_statement import LoggedText, shown
from binlane.sql.parse.facts import StatementKind
from binlane.sql.programs.comparison import as_difference
from binlane.sql.requirements import COMPUTED_ZONE, Requirement
from binlane.sql.session_variables import VARIABLES, Fate, Globals, Sight, Variable, is_lax, plain
from binlane.work.logged_statements import LaneStatement

_SYSTEM: Final = "SYSTEM"
_TODO: Final = (
    "no log holds it, so the target would do something else, as a replica would: SET GLOBAL it on the target (or "
    "restart it with the option) to the source's until the window is applied, or, if the data is the same by both, "
    "set allow_unsafe in the channel's file"
)
_TODO_STORAGE: Final = "no log holds it: the target makes the table as its own setting says, as a replica would"
_TODO_SYSTEM: Final = (
    "the log says SYSTEM alone, and the target would take other times, as a replica would: start the target in the "
    "source's time zone (TZ, or timezone for mysqld_safe) until the window is applied, and give the source a time_zone "
    "by name; or, if no time of the window depends on it, set allow_unsafe in the channel's file"
)
_TODO_ARCHIVE: Final = (
    "an archive does not tell which zone that was: start the target in the source's time zone (TZ, or timezone for "
    "mysqld_safe)"
)
_TODO_ZONE: Final = (
    "the log does not have the zone of these rows, and the target would compute columns of them in its own, as a "
    "replica would: SET GLOBAL time_zone on the target to the source's until the window is applied, or set "
    "allow_unsafe in the channel's file"
)
_TIMES: Final = re.compile(
    r"\b(?:NOW|SYSDATE|CUR(?:DATE|TIME)|CURRENT_(?:DATE|TIME|TIMESTAMP)|LOCALTIME|LOCALTIMESTAMP|UNIX_TIMESTAMP"
    r"|FROM_UNIXTIME|CONVERT_TZ|TIMESTAMP|ZONE)\b"
)
"""Words of statements whose result depends on the session's time zone."""
_EVERY: Final = re.compile(b"")
_NO_ZONE: Final = Requirement(COMPUTED_ZONE, "session", "")
_SYSTEM_ZONE: Final = Requirement(COMPUTED_ZONE, "session", _SYSTEM)
_YEARS: Final = range(2000, 2038)
"""Those for which systems with other editions of the time zones rarely disagree, as far as any TIMESTAMP goes."""
_MOMENTS: Final = tuple(
    calendar.timegm((year, month, day, 0, 0, 0)) for year in _YEARS for month in range(1, 13) for day in (1, 15)
)


def check_session_variables(situation: Situation) -> Iterator[Finding]:
    """Variables that no log holds and that source and target do not have alike, where the window's statements or tables
    see them."""
    needs = situation.needs
    if situation.begun or not (needs.statements or needs.loads or needs.ddl or _has_rows_with_expressions(situation)):
        return
    severity = Severity.INFO if situation.channel.apply.allow_unsafe else Severity.FATAL
    zones = _zones(situation)
    yield from (each if each.severity is Severity.INFO else replace(each, severity=severity) for each in zones)
    if situation.source is None:
        return
    target = Globals(situation.target.variables, situation.target.number)
    names = {"version", *(each.name for each in VARIABLES if each.sight is not None)}
    values = situation.source.ask(global_variables, names)
    source = Globals(values, version_number(values["version"]))
    window = _Window(situation)
    for variable in VARIABLES:
        if variable.sight is None or (found := variable.differing(source, target)) is None:
            continue
        if (first := window.first(variable, variable.sight)) is not None:
            is_stored = variable.fate is Fate.STORAGE
            where = f"{first.where}: {variable.name} of the target"
            rank, todo = (Severity.INFO, _TODO_STORAGE) if is_stored else (severity, _TODO)
            yield Finding(rank, where, f"{found[0]}, as on the source", found[1] or "nothing", todo, first.seqno)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What of a window sees a variable first."""

    where: str
    seqno: int | None = None


@dataclass
class _Window:
    """What of a window may see a variable; read when it is asked for."""

    situation: Situation

    def first(self, variable: Variable, sight: Sight) -> _Seen | None:
        """The first statement, program behind one, or table that sees it."""
        stored = variable.fate is Fate.STORAGE
        found = self._statement(sight)
        if found is None and not stored:
            found = self._program(sight)
        if found is None and sight.expressions:
            found = self._table(sight)
        return found

    def _statement(self, sight: Sight) -> _Seen | None:
        flavor, first = self.situation.plan.flavor, None
        for logged, _ in self.situation.transactions_with(sight.hint):
            header = logged.header
            if (first is None or header.first_seqno < first.header.first_seqno) and _sees(logged, sight, flavor):
                first = logged
        return None if first is None else _of(first)

    def _program(self, sight: Sight) -> _Seen | None:
        needs = self.situation.needs
        if not (needs.statements or needs.loads or needs.ddl):
            return None
        found = [as_difference(each) for each in self._programs if self._has(each.text, each.sql_mode, sight)]
        if not found:
            return None
        reached = first_reached(self.situation, reach_of_window(self.situation), found)
        named = {each.key: each.where for each in found}
        for key, (seqno, where) in sorted(reached.items(), key=lambda each: each[1][0]):
            return _Seen(f"{named[key]}, which {where.removesuffix(',')} reaches", seqno)
        return None

    @cached_property
    def _programs(self) -> tuple[Program, ...]:
        return tuple(
            each
            for sides in (self.situation.stored_triggers, self.situation.stored_programs)
            for each in (*sides[0], *sides[1])
        )

    def _table(self, sight: Sight) -> _Seen | None:
        plan = self.situation.plan
        by_statements = {*plan.written, *plan.loaded}
        for key in sorted({*plan.applied_tables, *by_statements}, key=str):
            table = self.situation.tables.table(key)
            texts = () if table is None else _expressions(table, with_defaults=key in by_statements)
            if any(self._has(each, "", sight) for each in texts):
                return _Seen(f"{key}, with an expression of a column or key")
        return None

    def _has(self, body: str | None, sql_mode: str, sight: Sight) -> bool:
        if body is None or sight.hint.search(body.encode()) is None:
            return False
        # few windows need it
        from binlane.sql.temporary_routines import tokens_of

        tokens = tokens_of(body, self.situation.plan.flavor, sql_mode)
        return tokens is None or sight.sees(plain(tokens))


def _sees(logged: LaneStatement, sight: Sight, flavor: Flavor) -> bool:
    item, header = logged.item, logged.header
    if sight.lax_only and not is_lax(item.context or SessionContext()):
        return False
    statement = LoggedText.of(header.first_seqno, header.source, item, flavor)
    return statement is None or sight.sees(plain(statement.tokens))


def _of(logged: LaneStatement) -> _Seen:
    header = logged.header
    what = "DDL" if logged.item.kind is ItemKind.DDL else "statement"
    return _Seen(
        f"{header.source}: {what} of seqno {header.first_seqno}, {shown(logged.beginning)}", header.first_seqno
    )


def _expressions(table: Table, *, with_defaults: bool) -> Iterator[str]:
    for column in table.columns:
        if column.expression is not None:
            yield column.expression
        if with_defaults and column.default is not None and not column.default.startswith("'"):
            yield column.default
    for key in table.keys:
        yield from (part.expression for part in key.columns if part.expression is not None)


def _has_rows_with_expressions(situation: Situation) -> bool:
    tables = (situation.tables.table(key) for key in situation.plan.applied_tables)
    return any(True for table in tables if table is not None for _ in _expressions(table, with_defaults=False))


def _zones(situation: Situation) -> Iterator[Finding]:
    """Times in the zone SYSTEM, which is another one on the target, and rows of which the log has no zone."""
    is_used = _SYSTEM in situation.needs.time_zones
    unlogged = situation.plan.requirements.get(_NO_ZONE)
    if situation.source is None:
        if is_used:
            yield Finding(Severity.INFO, "target: time zone SYSTEM", "the source's", "the target's", _TODO_ARCHIVE)
        return
    if not is_used and unlogged is None:
        return
    theirs, ours = situation.target.ask(_times), situation.source.ask(_times)
    different = next((pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]), None)
    if is_used and different is not None and (first := _first_of_system(situation)) is not None:
        expected, found = f"{different[0]}, as on the source at a time of UTC", different[1]
        where = f"{first.where}: time zone SYSTEM of the target"
        yield Finding(Severity.FATAL, where, expected, found, _TODO_SYSTEM, first.seqno)
    if unlogged is None:
        return
    source, target = (side.ask(global_variables, ("time_zone",)) for side in (situation.source, situation.target))
    if source != target or (different is not None and _SYSTEM in source.values()):
        for key in islice(_seeing_zones(situation), 1):
            where, expected = f"{key}: time_zone of the target", f"{source['time_zone']}, as on the source"
            yield Finding(Severity.FATAL, where, expected, target["time_zone"], _TODO_ZONE, unlogged)


def _first_of_system(situation: Situation) -> _Seen | None:
    """The first statement in the zone SYSTEM whose result depends on the zone, or table of which the target computes
    rows in it. MySQL logs the zone with each text that is read as a time."""
    fired, first = {each.key for side in situation.stored_triggers for each in side}, None
    for logged, _ in situation.transactions_with(_EVERY):
        is_in_zone = logged.item.context is not None and logged.item.context.time_zone == _SYSTEM
        is_earlier = first is None or logged.header.first_seqno < first.header.first_seqno
        if is_in_zone and is_earlier and _depends_on_zone(situation, logged, fired):
            first = logged
    if first is not None:
        return _of(first)
    seqno = situation.plan.requirements.get(_SYSTEM_ZONE)
    key = None if seqno is None else next(_seeing_zones(situation), None)
    return None if key is None else _Seen(f"{key}, with an expression of a column or key", seqno)


def _depends_on_zone(situation: Situation, logged: LaneStatement, fired: Set[TableKey]) -> bool:
    header = logged.header
    statement = LoggedText.of(header.first_seqno, header.source, logged.item, situation.plan.flavor)
    if statement is None:
        return True
    if statement.words[0] in ("CREATE", "ALTER") and "EVENT" in statement.words[:8]:
        return False  # the target does not run it
    facts = statement.facts
    if facts.kind is StatementKind.UNKNOWN or facts.routines_used or _TIMES.search(plain(statement.tokens)) is not None:
        return True
    if not fired.isdisjoint(facts.written):
        return True
    altered = situation.plan.altered
    tables = (None if altered.names(key) else situation.tables.table(key) for key in facts.tables)
    return any(table is None or _has_times(table) for table in tables)


def _has_times(table: Table) -> bool:
    """Whether a TIMESTAMP is read or written in the session's zone, or the present time is a column's value."""
    return any(
        each.data_type.startswith("timestamp")
        or each.on_update
        or any(text is not None and _TIMES.search(text.upper()) for text in (each.default, each.expression))
        for each in table.columns
    )


def _seeing_zones(situation: Situation) -> Iterator[TableKey]:
    """The tables of rows with a column or key that depends on the zone; those that the window makes as the source has
    them now."""
    source = situation.source_tables
    for key in sorted(situation.plan.applied_tables, key=str):
        table = situation.tables.table(key) or (None if source is None else source.table(key))
        if table is not None and computed(table, TIME_ZONE) is not None:
            yield key


def _times(connection: Connection) -> tuple[str, ...]:
    """What the server shows of times all over ``_YEARS`` in the zone SYSTEM."""
    [[before]] = connection.execute(text("SELECT @@SESSION.time_zone"))
    shown_times = ", ".join(f"FROM_UNIXTIME({moment})" for moment in _MOMENTS)
    with session_variable(connection, "time_zone", f"'{_SYSTEM}'", f"'{before}'"):
        [[found]] = connection.execute(text(f"SELECT CONCAT_WS('|', {shown_times})"))
    return tuple(str(found).split("|"))
