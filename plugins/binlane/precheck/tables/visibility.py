"""Tables that the source's account does not see: a catalogue shows nobody what he may not read, and says nothing of it.

What is not there and what is not shown look alike, so the account's privileges decide, not the catalogue's rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from binlane.binlog.types.literals import quoted
from binlane.model import TableKey, plural
from binlane.precheck.account.privileges import Order, scope_of
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.schema.compare import Severity
from binlane.schema.letter_case import lower

_SHOWN: Final = 3
"""How many tables a finding names."""


def check_visibility(situation: Situation) -> Iterator[Finding]:
    """Tables of the window whose definition the source's account may not see, or of which it sees some columns.

    Rows would be written by the position of columns that nobody has compared. A database that the source has dropped
    since is passed over: what its log says of it is all there is.
    """
    if situation.source is None:
        return
    grants = situation.source.read_grants()
    named = sorted({*situation.touched, *situation.plan.written}, key=str)
    places = ((situation.renaming.source(key.database), key.table) for key in named)
    keys = [TableKey(database, table) for database, table in places if database is not None]
    hidden: dict[str, list[TableKey]] = {}
    for key in situation.source.unreadable([key for key in keys if not grants.shows(key)]):
        hidden.setdefault(key.database, []).append(key)
    accepted = situation.channel.apply.allow_unseen
    asked = {name: tables for name, tables in hidden.items() if name not in accepted}
    dropped = _dropped(situation) if asked else frozenset[str]()
    for name, tables in asked.items():
        if lower(name) in dropped:
            continue
        order = Order(("SELECT",), scope_of(name, has_wildcards=grants.has_wildcards), situation.source.account)
        todo = (
            f"the source's account sees no definition to compare, or a part: {order} on the source; or leave the "
            "database out (filter.exclude_databases), or let the channel write it without a comparison "
            f"(apply.allow_unseen = [{quoted(name)}])"
        )
        yield Finding(Severity.FATAL, f"source: privilege SELECT on {_named(tables)}", "granted", "not granted", todo)


def _named(tables: list[TableKey]) -> str:
    more = f" and {plural(len(tables) - _SHOWN, 'other table')} of it" if len(tables) > _SHOWN else ""
    return f"{', '.join(map(str, tables[:_SHOWN]))}{more}"


def _dropped(situation: Situation) -> frozenset[str]:
    """Databases whose last statement, in the window or in the log behind it, drops them; by the source's names, in
    lower case."""
    assert situation.source is not None
    behind = situation.source.definitions_behind()
    if behind is None:
        return frozenset()
    found = set[str]()
    for text in situation.every_text:
        found |= text.dropped_databases
        found -= text.made_databases
    dropped = {name for each in found if (name := situation.renaming.source(each)) is not None}
    for text in behind:
        dropped |= text.dropped_databases
        dropped -= text.made_databases
    return frozenset(map(lower, dropped))
