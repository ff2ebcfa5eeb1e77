"""Generated columns and keys whose values depend on the ``sql_mode``, the time zone or the locale of the session, and
columns that the other family computes otherwise.

MySQL's replica computes them for each transaction in the mode and zone of its session, and so do lanes that send row
events to MySQL (``plan.block.computed_modes``). Every other way of writing rows computes them in one mode and zone:
where that one differs from a session's, and the expression can see the difference, a row would get another value than
on the source.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from binlane.apply.rows.computed_values import ALIKE_DOCUMENTS, AT_OPENING, NAMED, UTC
from binlane.apply.rows.writers import ROW_WRITERS
from binlane.choices import OnConflict, Writer
from binlane.model import Flavor, TableKey
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.schema.compare import Severity
from binlane.schema.model import Generated
from binlane.schema.session_columns import LC_TIME_NAMES, OPENED_LOCALE, TIME_ZONE, computed
from binlane.sql.parse.other_answers import other_answer
from binlane.sql.requirements import COMPUTED_LOCALE, COMPUTED_MODE, COMPUTED_ZONE
from binlane.sql.sql_modes import INVALID_DATES
from binlane.sql.temporary_routines import tokens_of

_GENERATES: Final = re.compile(r"\bAS\s*\(", re.IGNORECASE)


def check_generated_columns(situation: Situation) -> Iterator[Finding]:
    """Columns and keys that the target computes in one sql_mode, time zone or locale, of tables with rows from sessions
    with another, which changes the value."""
    why = (*_differences(situation), *_zones(situation), *_locales(situation))
    source = situation.source_tables if why else None
    for key in sorted(situation.plan.applied_tables, key=str) if why else ():
        # the window may make it
        table = situation.tables.table(key) or (None if source is None else source.table(key))
        for mode, found, todo, seqno in why:
            what = _made_with(situation, key) if table is None else computed(table, mode)
            if what is not None:
                todo = f"{todo}, or leave the table out (docs/filters.md), or drop the {what.split()[0]} on both sides"
                yield Finding(Severity.FATAL, f"{key}: {what}", "rows of usual modes", found, todo, seqno)
                break
    yield from _other_answers(situation)


def _other_answers(situation: Situation) -> Iterator[Finding]:
    """Columns that a target of the other family computes otherwise than the source."""
    plan, target = situation.plan, situation.target
    if situation.channel.apply.allow_unsafe or plan.flavor is target.flavor:
        return
    by_statements = _writes_by_statements(situation)
    for key in sorted({*plan.applied_tables, *plan.written}, key=str):
        # MariaDB's BINLOG statements bring the values of stored columns
        computes_stored = by_statements or key in plan.written
        for column, what in _computed_otherwise(situation, key, computes_stored=computes_stored):
            yield Finding(Severity.FATAL, f"{key}.{column}", "what both families compute alike", what, _TODO_ANSWER)


def _computed_otherwise(situation: Situation, key: TableKey, *, computes_stored: bool) -> Iterator[tuple[str, str]]:
    alike = ALIKE_DOCUMENTS if situation.plan.flavor is Flavor.MYSQL else ()
    source = situation.source_tables
    ours = situation.tables.table(key)
    table = ours or (None if source is None else source.table(key))
    flavor = situation.plan.flavor if ours is None else situation.tables.flavor
    if table is None or situation.plan.altered.names(key):
        # the window makes or alters it
        for each in situation.asked.texts:
            if key in each.facts.tables and _GENERATES.search(each.sql):
                what = other_answer(each.tokens, alike)
                if what is not None:
                    yield "column that the window generates", what
    if table is None:
        return
    for column in table.columns:
        if column.generated is Generated.VIRTUAL or (column.generated is Generated.STORED and computes_stored):
            tokens = tokens_of(column.expression, flavor)
            what = _UNREADABLE if tokens is None else other_answer(tokens, alike)
            if what is not None:
                yield column.name, what


_UNREADABLE: Final = "an expression that cannot be read"
_TODO_ANSWER: Final = (
    "drop the column on the target and leave the table out until both have one that they compute alike "
    "(docs/filters.md), or set allow_unsafe in the channel's file if its values may differ"
)


def _zones(situation: Situation) -> Iterator[tuple[str, str, str, int]]:
    """The same of time zones, with ``TIME_ZONE`` in place of a mode. MariaDB's BINLOG statements compute nothing."""
    plan, target = situation.plan, situation.target
    logged = {each.detail: seqno for each, seqno in plan.requirements.items() if each.feature == COMPUTED_ZONE}
    if situation.channel.apply.allow_unsafe:
        return
    if not _keeps_modes(situation):
        if plan.flavor is Flavor.MARIADB and _writes_by_statements(situation):
            logged = {"": plan.first_seqno}
        for zone, seqno in sorted(logged.items(), key=lambda each: each[1]):
            if zone not in UTC:
                found = f"{f'time zone {zone}' if zone else 'no time zone'} in a transaction of seqno {seqno}"
                todo = f"rows are written in +00:00; set allow_unsafe if all sessions have that{_ADVICE}"
                yield TIME_ZONE, found, todo, seqno
                return
    usual = {"", "SYSTEM", target.variables.get("time_zone", "SYSTEM")}
    if "" in logged and (others := sorted(logged.keys() - usual)):
        found = f"no time zone in a transaction of seqno {logged['']}, and {others[0]} in others"
        todo = "set allow_unsafe if the sessions of the first have the servers' own, which a replica takes"
        yield TIME_ZONE, found, todo, logged[""]


def _locales(situation: Situation) -> Iterator[tuple[str, str, str, int]]:
    """The same of ``lc_time_names``, in the place of a mode. Where lanes keep to them, only of what the session that
    opens a table decides for all."""
    plan, target = situation.plan, situation.target
    if situation.channel.apply.allow_unsafe or plan.flavor is not Flavor.MYSQL:
        return
    name = OPENED_LOCALE if _keeps_modes(situation) else LC_TIME_NAMES
    logged = [seqno for each, seqno in plan.requirements.items() if each.feature == COMPUTED_LOCALE]
    if logged:
        found = f"lc_time_names other than en_US in a transaction of seqno {min(logged)}"
        yield name, found, f"{_TODO_LOCALE}{'' if name == OPENED_LOCALE else _ADVICE}", min(logged)
    elif (own := target.variables.get("lc_time_names", _ENGLISH)) != _ENGLISH:
        found = f"lc_time_names = {own} on the target, and rows of sessions with {_ENGLISH}"
        yield name, found, f"SET GLOBAL lc_time_names = '{_ENGLISH}' on the target", plan.first_seqno


_ENGLISH: Final = "en_US"
_TODO_LOCALE: Final = "set allow_unsafe if all sessions of both servers have the same"


def _writes_by_statements(situation: Situation) -> bool:
    """Whether rows may be written by statements, to a target that takes row events without computing anything."""
    apply = situation.channel.apply
    is_own = apply.writer != Writer.AUTO and apply.writer not in ROW_WRITERS
    return bool(situation.by_sql) or is_own or apply.on_conflict.overwrites or situation.target.flavor is Flavor.MYSQL


def _differences(situation: Situation) -> Iterator[tuple[str, str, str, int]]:
    """Modes that sessions of the source have and the target has not, or the other way round: each with where it is,
    what to do, and the first seqno. What writes rows in a mode of its own has none of them but ``_kept_by_sql``,
    whatever the target's global value is, which decides for whoever opens a table alone."""
    plan, target = situation.plan, situation.target
    logged = {each.detail: seqno for each, seqno in plan.requirements.items() if each.feature == COMPUTED_MODE}
    own = AT_OPENING.intersection(target.value("sql_mode").split(",") if target.flavor is Flavor.MYSQL else ())
    keeps = bool(logged) and _keeps_modes(situation)
    present, absent = _by_session(logged, AT_OPENING if keeps else NAMED - _kept_by_sql(situation))
    advice = _ADVICE if not keeps and plan.flavor is target.flavor else ""
    for mode, seqno in sorted(present.items(), key=lambda each: each[1]):
        if mode not in own:
            found = f"sql_mode {mode} in a transaction of seqno {seqno}"
            yield mode, found, f"let the source's sessions write the table without {mode}{advice}", seqno
    for mode, seqno in sorted(absent.items()) if plan.flavor is Flavor.MYSQL else ():
        if mode in own:
            found = f"sql_mode {mode} on the target, and a transaction of seqno {seqno} without it"
            yield mode, found, f"SET GLOBAL sql_mode without {mode} on the target{advice}", seqno


_ADVICE: Final = ', or send row events (apply.writer = "binlog", on_conflict = "stop")'


def _keeps_modes(situation: Situation) -> bool:
    """Whether lanes write rows in the modes of their sessions. A site's own writer, and what overwrites rows, have the
    session in a mode of their own."""
    apply = situation.channel.apply
    return (
        situation.plan.flavor is situation.target.flavor is Flavor.MYSQL
        and (apply.writer == Writer.AUTO or apply.writer in ROW_WRITERS)
        and not situation.by_sql
        and apply.on_conflict is OnConflict.STOP
    )


def _kept_by_sql(situation: Situation) -> frozenset[str]:
    """The modes that the "sql" writer takes from the sessions (``apply.rows.sql``). What overwrites rows compares them
    first, in modes of its own."""
    apply, flavors = situation.channel.apply, {situation.plan.flavor, situation.target.flavor}
    is_own = apply.writer == Writer.AUTO or apply.writer in ROW_WRITERS
    keeps = flavors == {Flavor.MYSQL} and is_own and apply.on_conflict is OnConflict.STOP
    return frozenset({INVALID_DATES}) if keeps else frozenset()


def _by_session(logged: Mapping[str, int], asked: Collection[str]) -> tuple[dict[str, int], dict[str, int]]:
    """By mode of those ``asked`` about, the first seqno of a session that has it, and of one that has not. ``logged``:
    first seqnos by the modes of a session."""
    present, absent = dict[str, int](), dict[str, int]()
    for names, seqno in sorted(logged.items(), key=lambda each: each[1]):
        for mode in asked:
            (present if mode in names.split(",") else absent).setdefault(mode, seqno)
    return present, absent


def _made_with(situation: Situation, key: TableKey) -> str | None:
    """For a table that is on neither server: made by the window, and dropped or renamed since."""
    texts = (each for each in situation.asked.texts if key in each.facts.tables)
    return "column that the window generates" if any(_GENERATES.search(each.sql) for each in texts) else None
