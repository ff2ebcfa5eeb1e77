"""Time zones that are others on the target: SYSTEM, and named ones, whose tables somebody has loaded on each server.

A log has the zone of a session as a name, and in texts CONVERT_TZ() has names of its own. What a name means is the
server's: the zone of its machine, and its ``mysql.time_zone`` tables, from whatever edition of the zones was there when
they were loaded. Files of the "slim" format leave a zone without its summer times behind 2007; a name that is not
loaded makes CONVERT_TZ() NULL, without an error. A replica writes these other times; so both servers are asked for the
times of each zone that the window sees.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Final

from sqlalchemy import Connection, text

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.precheck.statements.sights import Place, Sights, sees_variables
from binlane.schema.compare import Severity
from binlane.schema.model import Table
from binlane.schema.session_columns import TIME_ZONE, computed
from binlane.servers.variables import global_variables
from binlane.sql.logged_statement import LoggedText, split
from binlane.sql.parse.cursor import called_name, group_end
from binlane.sql.parse.facts import StatementKind
from binlane.sql.parse.lexer import Token, TokenKind, Unreadable
from binlane.sql.programs.changes import object_of
from binlane.sql.requirements import COMPUTED_ZONE, Requirement
from binlane.sql.session_variables import calls_of, plain

_SYSTEM: Final = "SYSTEM"
_UNSAFE: Final = "; or, if no time of the window depends on it, set allow_unsafe in the channel's file"
_TODO_SYSTEM: Final = (
    "the log says SYSTEM alone, and the target would take other times, as a replica would: start the target in the "
    "source's time zone (TZ, or timezone for mysqld_safe) until the window is applied, and give the source a time_zone "
    f"by name{_UNSAFE}"
)
_TODO_ARCHIVE: Final = (
    "an archive does not tell which zone that was: start the target in the source's time zone (TZ, or timezone for "
    "mysqld_safe)"
)
_TODO_ZONE: Final = (
    "the log does not have the zone of these rows, and the target would compute columns of them in its own, as a "
    "replica would: SET GLOBAL time_zone (on MySQL SET PERSIST, on MariaDB in the option file, too) on the target to "
    "the source's until the window is applied, or set allow_unsafe in the channel's file"
)
_TODO_NAMED: Final = (
    "the log has the zone's name alone, and the target would take other times, as a replica would: load the source's "
    "time zone tables (mysql.time_zone, time_zone_name, time_zone_transition, time_zone_transition_type and "
    f"time_zone_leap_second) on the target and restart it{_UNSAFE}"
)
_TIMES: Final = re.compile(
    r"\b(?:NOW|SYSDATE|CUR(?:DATE|TIME)|CURRENT_(?:DATE|TIME|TIMESTAMP)|LOCALTIME|LOCALTIMESTAMP|UNIX_TIMESTAMP"
    r"|FROM_UNIXTIME|CONVERT_TZ|TIMESTAMP|ZONE)\b"
)
"""Words of statements whose result depends on the session's time zone."""
_EVERY: Final = re.compile(b"")
_CONVERTED: Final = "CONVERT_TZ"
_CONVERTS: Final = calls_of(_CONVERTED)
_LITERAL: Final = re.compile(r"""(['"])([A-Za-z][\w+/-]*)\1""")
"""A text that may be the name of a zone."""
_OFFSET: Final = re.compile(r"[+-]\d")
_BEGIN: Final = {True: "2000-01-01", False: "1970-01-02"}
"""Of SYSTEM, machines with other editions of the zones rarely disagree behind it; servers convert times behind the
other."""
_END: Final = "2038-01-01"
_FEW: Final = 20
"""So many zones are compared week by week, more month by month; SYSTEM, which most windows have, by the half month."""
_IN_QUERY: Final = 100
"""So many zones are asked for by one query."""


@dataclass(frozen=True, slots=True)
class _Other:
    """Times of a zone on both servers."""

    source: str
    target: str


def check_zones(situation: Situation) -> Iterator[Finding]:
    """Times in a zone that is another one on the target, or unknown there, and rows of which the log has no zone."""
    if not sees_variables(situation):
        return
    severity = Severity.INFO if situation.channel.apply.allow_unsafe else Severity.FATAL
    for each in (*_sessions(situation), *_converted(situation)):
        yield each if each.severity is Severity.INFO else replace(each, severity=severity)


def _sessions(situation: Situation) -> Iterator[Finding]:
    """Zones of the log's sessions."""
    # a name that the target does not know is the check of the target's
    used = {zone for zone in situation.needs.time_zones if _OFFSET.match(zone) is None}
    unlogged = situation.plan.requirements.get(Requirement(COMPUTED_ZONE, "session", ""))
    if situation.source is None:
        if _SYSTEM in used:
            yield Finding(Severity.INFO, "target: time zone SYSTEM", "the source's", "the target's", _TODO_ARCHIVE)
        return
    asked = used if unlogged is None else used | {_SYSTEM}
    others = _others(situation, asked)
    for zone in sorted(used & others.keys()):
        other = others[zone]
        if not (other.source and other.target) or (first := _first_in(situation, zone)) is None:
            continue
        where, expected = f"{first.where}: time zone {zone} of the target", f"{other.source}, as on the source"
        todo = _TODO_SYSTEM if zone == _SYSTEM else _TODO_NAMED
        yield Finding(Severity.FATAL, where, f"{expected} at a time of UTC", other.target, todo, first.seqno)
    if unlogged is None:
        return
    source, target = (side.ask(global_variables, ("time_zone",)) for side in (situation.source, situation.target))
    if source != target or (_SYSTEM in others and _SYSTEM in source.values()):
        for key in islice(_seeing_zones(situation), 1):
            where, expected = f"{key}: time_zone of the target", f"{source['time_zone']}, as on the source"
            yield Finding(Severity.FATAL, where, expected, target["time_zone"], _TODO_ZONE, unlogged)


def _converted(situation: Situation) -> Iterator[Finding]:
    """Zones in texts: of ``CONVERT_TZ(time, 'Europe/Berlin', 'UTC')``."""
    sights = Sights(situation)
    # a program that nothing reaches may name any zone
    if (first := sights.first(_CONVERTS)) is None or not (others := _others(situation, _named(situation, sights), 1)):
        return
    zone, other = min(others.items())
    where, expected = f"{first.where}: time zone {zone} of the target", other.source or "unknown"
    todo = _TODO_SYSTEM if zone == _SYSTEM else _TODO_NAMED
    yield Finding(
        Severity.FATAL, where, f"{expected}, as on the source at a time of UTC", other.target or "unknown, and so NULL",
        todo, first.seqno,
    )  # fmt: skip


def _named(situation: Situation, sights: Sights) -> Set[str]:
    """The zones that texts convert from and to; all of them if one names them by anything but a literal."""
    zones, flavor = set[str](), situation.plan.flavor
    for logged, _ in situation.transactions_with(_CONVERTS.hint):
        text_of = LoggedText.of(logged.header.first_seqno, logged.header.source, logged.item, flavor)
        if text_of is not None and _CONVERTS.sees(plain(text_of.every_token)):
            zones.update(_zones_in(text_of.sql, text_of.tokens))
    bodies = [(each.text or "", each.sql_mode) for each in sights.programs(_CONVERTS)]
    bodies += ((each, "") for _, each in sights.expressions() if _CONVERTS.hint.search(each.encode()))
    if bodies:
        # few windows need it
        from binlane.sql.temporary_routines import tokens_of

        for body, sql_mode in bodies:
            zones.update(_zones_in(body, tokens_of(body, flavor, sql_mode)))
    return zones if "" not in zones else zones.union(zoneinfo.available_timezones(), (_SYSTEM,)) - {""}


def _zones_in(sql: str, tokens: Sequence[Token] | None) -> Iterator[str]:
    """Names that may be those of the zones in a text; "" if one is no literal."""
    yield from (name for _, name in _LITERAL.findall(sql))
    if tokens is None:
        yield ""
        return
    for at in range(len(tokens)):
        if called_name(tokens, at) != _CONVERTED:
            continue
        try:
            _, *names = split(tokens[at + 2 : group_end(tokens, at + 1) - 1])
        except Unreadable:
            names = [()]
        if any(len(name) != 1 or name[0].kind is not TokenKind.STRING for name in names):
            yield ""


def _others(situation: Situation, zones: Collection[str], most: int = _FEW) -> Mapping[str, _Other]:
    """The zones that are others on the target, no more than ``most``, with the first time that shows it; "" for a
    server that does not know the name. Of an archive, those that the target does not know."""
    if not zones:
        return {}
    days = 7 if len(zones) <= _FEW else 30
    theirs = situation.target.ask(partial(_digests, zones=zones, days=days))
    if situation.source is None:
        return {zone: _Other("a time", "") for zone, digest in theirs.items() if not digest}
    ours = situation.source.ask(partial(_digests, zones=zones, days=days))
    others = dict[str, _Other]()
    for zone in islice(sorted(zone for zone in ours if ours[zone] != theirs[zone]), most):
        asked = partial(_times, zone=zone, days=days)
        pairs = zip(situation.source.ask(asked), situation.target.ask(asked), strict=True)
        others[zone] = next(_Other(here or "", there or "") for here, there in pairs if here != there)
    return others


def _days(zone: str, days: int) -> str:
    """A query of moments of UTC: MySQL 5.7 has no recursion."""
    digits = "(SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL "
    digits += "SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
    is_system = zone == _SYSTEM
    days = 15 if is_system else days
    names = "abcd" if days < 15 else "abc"
    number = f"({' + '.join(f'{10**place} * {name}.n' for place, name in enumerate(names))}) * {days}"
    begin = f"CAST('{_BEGIN[is_system]}' AS DATETIME) + INTERVAL {number} DAY"
    tables = ", ".join(f"{digits} AS {name}" for name in names)
    return f"SELECT {begin} AS at FROM {tables} WHERE {begin} < '{_END}'"


def _digests(connection: Connection, zones: Collection[str], days: int) -> dict[str, str]:
    """A digest of each zone's times; "" if the server does not know it."""
    digests = dict[str, str]()
    named = sorted(set(zones) - {_SYSTEM})
    groups = [named[at : at + _IN_QUERY] for at in range(0, len(named), _IN_QUERY)]
    # its moments are others
    for group in (*groups, *([_SYSTEM] for _ in {_SYSTEM}.intersection(zones))):
        texts = [f"CONVERT_TZ(at, '+00:00', :zone{number})" for number in range(len(group))]
        values = ", ".join(f"COUNT({shown}), SUM(CRC32(CONCAT(at, {shown})))" for shown in texts)
        query = text(f"SELECT {values} FROM ({_days(group[0], days)}) AS moments")
        [row] = connection.execute(query, {f"zone{number}": zone for number, zone in enumerate(group)})
        for zone, number, total in zip(group, row[::2], row[1::2], strict=True):
            digests[zone] = f"{number} {total}" if number else ""
    return digests


def _times(connection: Connection, zone: str, days: int) -> list[str | None]:
    """What the server shows of these moments in a zone."""
    query = f"SELECT CAST(CONVERT_TZ(at, '+00:00', :zone) AS CHAR) FROM ({_days(zone, days)}) AS moments ORDER BY at"
    return [shown for (shown,) in connection.execute(text(query), {"zone": zone})]


def _first_in(situation: Situation, zone: str) -> Place | None:
    """The first statement in a zone whose result depends on the zone, or table of which the target computes rows in it.
    MySQL logs the zone with each text that is read as a time."""
    fired, first = {each.key for side in situation.stored_triggers for each in side}, None
    for logged, _ in situation.transactions_with(_EVERY):
        is_in_zone = logged.item.context is not None and logged.item.context.time_zone == zone
        is_earlier = first is None or logged.header.first_seqno < first.header.first_seqno
        if is_in_zone and is_earlier:
            header = logged.header
            statement = LoggedText.of(header.first_seqno, header.source, logged.item, situation.plan.flavor)
            if statement is None or _depends_on_zone(situation, statement, fired):
                first = logged
    if first is not None:
        return Place.of(first)
    seqno = situation.plan.requirements.get(Requirement(COMPUTED_ZONE, "session", zone))
    key = None if seqno is None else next(_seeing_zones(situation), None)
    return None if key is None else Place(f"{key}, with an expression of a column or key", seqno)


def _depends_on_zone(situation: Situation, statement: LoggedText, fired: Set[TableKey]) -> bool:
    if statement.words[0] in ("CREATE", "ALTER") and object_of(statement.tokens) == "EVENT":
        return False  # the target does not run it
    facts = statement.facts
    if (
        facts.kind is StatementKind.UNKNOWN
        or facts.routines_used
        or _TIMES.search(plain(statement.every_token)) is not None
    ):
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
