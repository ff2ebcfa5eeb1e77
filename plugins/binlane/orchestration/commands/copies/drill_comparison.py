"""Compares a restored database with the live copy of the channel, both on the channel's target.

It is the verification of the restore's channel, whose source is the live copy: the restored database stands at a place
of the log, the live copy is there or ahead of it, and the log behind the place says what a row was there that the live
copy has changed since. So no window has to wait, and what the log does not show is not called equal.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from binlane.apply.target_state import target_state
from binlane.config import ChannelConfig
from binlane.config.rules_digest import rules_digest
from binlane.connections import Endpoints
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.orchestration.effective_rules import rules_of
from binlane.orchestration.extraction.window_reading import source_of
from binlane.precheck.account.privileges import Grants, read_grants
from binlane.schema.model import Table
from binlane.servers.catalog import read_schema
from binlane.state.channels import read_channel
from binlane.state.records.drills import DIFFERENT, EQUAL, INCOMPLETE
from binlane.state.records.verifications import DRIFT, PENDING, Suspect
from binlane.state.records.verifications import INCOMPLETE as UNSEEN
from binlane.state.window_folders import WindowFolders
from binlane.verify.definitions.comparison import DefinitionDifference
from binlane.verify.definitions.visibility import Visibility, without_unseen
from binlane.verify.outcome import Options, Outcome
from binlane.verify.rows.row_text import changed_values, key_values, words
from binlane.verify.rows.sides import Pair, source_side, target_side
from binlane.verify.verification import Verifier

_SHOWN: Final = 20
"""Differences of one database that are recorded."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was compared, and what differs."""

    state: str
    rows: int
    tables: int
    definitions: int
    differences: tuple[str, ...]
    """The first ones, then what was not compared."""


def compare_restored(
    live: tuple[ChannelConfig, Endpoints], restored: tuple[ChannelConfig, Endpoints], database: str, final: str
) -> Comparison:
    """``live``: the channel, whose source has every change that the live copy shows; ``restored``: the restore's.
    ``database``: the live copy's name; ``final``: the restored one's. Raises as a verification."""
    channel, endpoints = restored
    with target_state(endpoints.target) as engine, contextlib.ExitStack() as stack:
        name = str(endpoints.target)
        pair = Pair(stack.enter_context(source_side(engine, name)), stack.enter_context(target_side(engine)))
        with engine.connect() as asked:
            # the channel's source proves that it has the log in which the restored database stands
            standing = read_channel(asked, channel.name)
            whole, grants = read_schema(asked), read_grants(asked)
        rules, filters = rules_of(channel, whole), live[0].filter
        taken = replace(rules.selection, include_tables=filters.include_tables, exclude_tables=filters.exclude_tables)
        rules = replace(rules, selection=taken)
        visibility = _visibility(grants)
        schemas = (whole.of({database}), whole.of({final}))
        seen, unseen = without_unseen(schemas, rules, visibility, (final,))
        source = source_of(live[0], live[1].proving(standing.proof) if live[1].source is not None else live[1])
        outcome = Verifier(
            WindowFolders(channel.work.uri, channel.name),
            engine,
            source,
            pair,
            seen,
            standing,
            Options(full=True, anew=True, is_of_copy=True),
            rules_digest(channel),
            rules,
            visibility,
            unseen,
        ).run()
    return _comparison(outcome)


def _visibility(grants: Grants) -> Visibility:
    """Both sides are read by the same account."""
    return Visibility(
        lambda _, privilege, database: not grants.missing((privilege,), database), lambda _, key: grants.shows(key)
    )


def _comparison(outcome: Outcome) -> Comparison:
    different, open_ = outcome.of_state(DRIFT), outcome.of_state(PENDING)
    texts = {str(each): each for each in outcome.differences}
    lines = [_line(one, outcome, texts) for one in different[:_SHOWN]]
    if len(different) > _SHOWN:
        lines.append(f"and {len(different) - _SHOWN:,} more")
    lines += [
        f"not compared: {_line(one, outcome, texts)} (the log does not show what it was)" for one in open_[:_SHOWN]
    ]
    lines += [f"not compared: {each}" for each in outcome.unseen[:_SHOWN]]
    is_whole = not open_ and not outcome.unseen and outcome.state != UNSEEN
    state = DIFFERENT if different else EQUAL if is_whole else INCOMPLETE
    counts = outcome.counts
    return Comparison(state, counts.equal + counts.logged, counts.tables, outcome.definitions, tuple(lines))


def _line(one: Suspect, outcome: Outcome, texts: dict[str, DefinitionDifference]) -> str:
    if (defined := texts.get(one.note)) is not None:
        return _definition(defined)
    if one.note:
        return one.note if one.of_definition else f"{one.table}: {one.note}"
    return "".join(_row(one, outcome.target.table(one.table), one.table))


def _definition(one: DefinitionDifference) -> str:
    name = str(one.schema_object).rstrip()
    if not one.what:
        return f"{name}: only in the {'live copy' if one.target is None else 'restored database'}"
    return f"{name}: {one.what}: live {one.source}, restored {one.target}"


def _row(one: Suspect, table: Table | None, key: TableKey) -> Iterator[str]:
    named = key_values(table, one.key) or tuple(("key", text) for text in one.key)
    yield f"{key}, primary key {words(named)}: " if named else f"{key}: "
    changes = changed_values(table, one.source, one.target, one.columns)
    restored, live = (words((column, sides[side]) for column, *sides in changes) for side in (0, 1))
    if one.target is None:
        yield f"missing in the restored database; live: {live}"
    elif one.source is None:
        yield f"only in the restored database: {restored}"
    else:
        yield f"live {live}, restored {restored}"
