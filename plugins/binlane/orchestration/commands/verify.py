"""``binlane verify``: compares source and target, for the command line and for a DAG's step."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from binlane.activity import doing
from binlane.apply.refusals import driver_errors
from binlane.apply.target_state import target_state
from binlane.choices import VerifyScope
from binlane.config import ChannelConfig, DeclaredChannel
from binlane.config.rules_digest import rules_digest
from binlane.connections import Endpoints, Resolver
from binlane.errors import ConfigError, DriftError, PrecheckError
from binlane.health.durations import span
from binlane.health.unshown import told
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey, plural
from binlane.orchestration.commands.channel import load, proven
from binlane.orchestration.effective_rules import rules_of
from binlane.orchestration.extraction.window_reading import source_of, start_of
from binlane.orchestration.inputs import shards_of
from binlane.precheck.account.privileges import Grants, read_grants
from binlane.safe_text import one_line
from binlane.schema.model import Schema, Table
from binlane.servers.catalog import read_schema
from binlane.servers.engines import engine_of, in_background, kept_connections
from binlane.source.identity import Start
from binlane.source.server import translated
from binlane.state.channels import Channel, read_channel
from binlane.state.records.databases import known_databases, other_writers
from binlane.state.records.verifications import (
    AS_BEFORE,
    DRIFT,
    PENDING,
    RUNNING,
    Suspect,
    unshown_among,
    without_key,
)
from binlane.state.window_folders import WindowFolders
from binlane.verify.definitions.lost_databases import with_lost_databases
from binlane.verify.definitions.visibility import UnseenObjects, Visibility, without_unseen
from binlane.verify.outcome import Options, Outcome
from binlane.verify.rows.pairing import with_way_out
from binlane.verify.rows.row_text import changed_values, key_values, words
from binlane.verify.rows.sides import Pair, source_side, target_side
from binlane.verify.verification import Verifier

log = logging.getLogger(__name__)

_SHOWN: Final = 50
_INCOMPLETE: Final = (
    "This is not all, for an account does not see everything: grant it SELECT there, leave the databases out "
    "(docs/filters.md), or name them in apply.allow_unseen"
)


def verify(named: str | DeclaredChannel, folder: Path, options: Options, *, resolve: Resolver | None = None) -> Outcome:
    """Compare a channel's servers. Raises ConfigError for a channel that reads an archive."""
    channel, endpoints = load(named, folder, resolve)
    return verify_channel(channel, endpoints, options)


def verify_channel(channel: ChannelConfig, endpoints: Endpoints, options: Options) -> Outcome:
    """Compare a channel's servers. Raises ConfigError for a channel that reads an archive."""
    with compared_servers(channel, endpoints) as found:
        rules = rules_of(channel, found.schemas[1])
        scope = options.scope.resolved(shards_of(channel, found.schemas[1])) if options.scope.shards else options.scope
        return Verifier(
            WindowFolders(channel.work.uri, channel.name),
            engine_of(endpoints.target),
            source_of(channel, found.endpoints),
            found.pair,
            found.schemas,
            found.standing,
            replace(options, scope=scope),
            rules_digest(channel),
            rules,
            found.visibility,
            found.unseen,
        ).run()


@dataclass(frozen=True, slots=True)
class ComparedServers:
    """A channel's servers, read for a comparison."""

    endpoints: Endpoints
    """Each connection proves that it leads to the channel's source."""
    start: Start
    """The watermark."""
    pair: Pair
    schemas: tuple[Schema, Schema]
    """Source and target; the source's databases with those that it has lost (``with_lost_databases``)."""
    standing: Channel
    """The channel before ``schemas`` were read."""
    visibility: Visibility
    unseen: UnseenObjects
    """What ``schemas`` have not because an account does not see it."""


@contextlib.contextmanager
def compared_servers(channel: ChannelConfig, endpoints: Endpoints) -> Iterator[ComparedServers]:
    """Sessions on both servers, their definitions and privileges. Raises ConfigError for a channel that reads an
    archive, SourceIdentityError for a source that is not the channel's, or is behind its watermark."""
    if endpoints.source is None:
        raise ConfigError(f"{channel.file}: source: expected a live server to compare with, the channel has an archive")
    named = str(endpoints.source)
    with kept_connections(), target_state(endpoints.target) as engine, contextlib.ExitStack() as stack:
        with engine.connect() as asked:
            standing = read_channel(asked, channel.name)
        endpoints = proven(endpoints, standing)
        start = start_of(standing.watermark, standing.source_identity)
        assert endpoints.source is not None
        source_engine = engine_of(endpoints.source)
        pair = Pair(stack.enter_context(source_side(source_engine, named)), stack.enter_context(target_side(engine)))

        def ask_source() -> tuple[Schema, Grants]:
            with translated(named), driver_errors(), source_engine.connect() as asked:
                return read_schema(asked), read_grants(asked)

        read = doing("the definitions of both servers")
        with read, in_background(ask_source) as answer, engine.connect() as asked:
            theirs, their_grants = read_schema(asked), read_grants(asked)
            known = known_databases(asked, channel.name)
            others = [name for name, _ in other_writers(asked, channel.name, known)]
            ours, our_grants = answer()

        def holds(is_source: bool, privilege: str, database: str) -> bool:
            return not (our_grants if is_source else their_grants).missing((privilege,), database)

        def shows(is_source: bool, key: TableKey) -> bool:
            return (our_grants if is_source else their_grants).shows(key)

        visibility, rules = Visibility(holds, shows), rules_of(channel, theirs)
        seen, unseen = without_unseen((ours, theirs), rules, visibility, known, channel.apply.allow_unseen)
        seen = with_lost_databases(*seen, rules, known, others), seen[1]
        yield ComparedServers(endpoints, start, pair, seen, standing, visibility, unseen)


_SCOPES: Final[Mapping[str, tuple[bool, ...]]] = {
    VerifyScope.WINDOW: (False,),
    VerifyScope.SLICE: (False, True),
    VerifyScope.FULL: (True,),
}
"""By ``verify.after_window``: whether all rows are compared, for each verification of the step."""


def verify_after(channel: ChannelConfig, endpoints: Endpoints, kind: str, *, accounts: bool = False) -> dict[str, Any]:
    """The step of the DAG. ``kind``: ``window``, ``slice`` or ``full``. ``accounts``: compare them, too, with all rows.
    Raises DriftError if rows have drifted."""
    settings = channel.verify
    options = Options(
        rows_per_second=settings.rows_per_second or None,
        seconds=settings.slice_seconds if kind == VerifyScope.SLICE else None,
        threads_running=settings.max_threads_running or None,
    )
    parts = [replace(options, full=full, accounts=accounts and full) for full in _SCOPES[kind]]
    outcomes = [verify_channel(channel, endpoints, part) for part in parts]
    text, last = "\n".join(map(outcome_text, outcomes)), outcomes[-1]
    if last.of_state(DRIFT):
        raise DriftError(
            f"{text}\nThe window stays applied. `binlane verify "
            f"{channel.name}{' --full' if kind == VerifyScope.FULL else ''} --repair` shows the changes that "
            "would correct them"
        )
    # drift of a part is known to the next one, and what an account does not see is not
    if not all(outcome.is_complete for outcome in outcomes):
        raise PrecheckError(f"{text}\nThe window stays applied. {_INCOMPLETE}")
    log.info("%s", text)
    return {
        "note": text,
        "kind": last.kind,
        "state": last.state,
        "through_seqno": last.through_seqno,
        "tables": last.counts.tables,
        "rows": last.counts.rows,
        "equal": last.counts.equal + last.counts.logged,
        "pending": len(last.of_state(PENDING)),
        "pending_without_key": without_key(unshown_among(last.of_state(PENDING))),
    }


def outcome_text(outcome: Outcome) -> str:
    """The result as text."""
    drift, pending, counts = outcome.of_state(DRIFT), outcome.of_state(PENDING), outcome.counts
    asked = ", ".join(outcome.scope)
    scope = asked or "all tables"
    if outcome.kind != VerifyScope.FULL:
        scope = f"the rows of {plural(outcome.windows, 'window')}" + (f" in {asked}" if asked else "")
    definitions = f", {plural(outcome.definitions, 'definition')}" if outcome.definitions else ""
    is_part = outcome.state == RUNNING
    so_far, result = (" so far", "not finished") if is_part else ("", outcome.state)
    lines = [
        f"channel {outcome.channel}: {scope} through seqno {outcome.through_seqno:,}{so_far}: "
        f"{plural(counts.tables, 'table')}, {plural(counts.rows, 'row')} in "
        f"{plural(counts.chunks, 'chunk')}{definitions}: {result}",
        f"equal through seqno {outcome.through_seqno:,}{so_far}: {plural(counts.equal + counts.logged, 'row')}"
        + (f", of these {counts.logged:,} in part by the log of the windows alone" if counts.logged else ""),
    ]
    if outcome.rows_before:
        lines.append(
            f"continued: {plural(outcome.rows_before, 'row')} of these were compared earlier, since "
            f"{outcome.continued_since.partition('.')[0]} UTC, and not again; --anew begins with the first table"
        )
    if is_part:
        lines.append(_left_text(outcome))
    if pending:
        unshown = unshown_among(pending)
        keyless = without_key(unshown)
        apart = f", {keyless:,} of them in tables without a primary key" if keyless else ""
        lines.append(
            f"{len(pending):,} pending{pending_since(pending)}{apart}: the source has changed them since the "
            "watermark, and its log does not show what they were; the next verification checks them again"
        )
        lines += [f"  {one_line(line)}" for line in told(unshown, outcome.channel)]
    if drift:
        by_values = sum(one.note == AS_BEFORE for one in drift)
        apart = f", but for {by_values:,} that may have changed and changed back" if by_values else ""
        lines.append(
            f"{len(drift):,} drift: they differ, and the source has not changed them since the watermark{apart}"
        )
        lines += [f"  {one_line(text)}" for text in _drift_texts(outcome, drift[:_SHOWN])]
    if len(drift) > _SHOWN:
        lines.append(f"  and {len(drift) - _SHOWN:,} more, in binlane.suspects on the target")
    if not outcome.is_complete:
        lines.append(_INCOMPLETE)
    if outcome.unseen:
        lines.append(f"{len(outcome.unseen):,} not compared:")
        lines += [f"  {one_line(one)}" for one in outcome.unseen[:_SHOWN]]
    return "\n".join(lines)


def pending_since(pending: Sequence[Suspect]) -> str:
    """When the oldest of these rows was first found different, to the second; empty if no earlier verification has."""
    since = [one.since for one in pending if one.since is not None]
    return f" since {min(since).partition('.')[0]} UTC" if since else ""


def _left_text(outcome: Outcome) -> str:
    """What is left of a full verification, and how long it takes at the rate of this part."""
    text = f"left: {plural(outcome.tables_left, 'table')}, about {plural(outcome.rows_left, 'row')}"
    if outcome.rate > 0:
        text += f", {span(outcome.rows_left / outcome.rate)} at {outcome.rate:,.0f} rows a second"
    return f"{text}; the next full verification continues"


def _drift_texts(outcome: Outcome, drift: Sequence[Suspect]) -> Iterator[str]:
    """A text for each; statements that mend several parts of one object stand behind the last of them."""
    mends = {str(each): (each.schema_object, str(each.mend)) for each in outcome.differences}
    for one, following in itertools.zip_longest(drift, drift[1:]):
        text = _suspect_text(one, outcome.target.table(one.table), outcome.channel)
        mend = mends.get(one.note)
        if mend is not None and following is not None and mends.get(following.note) == mend:
            text = text.removesuffix(f"; {mend[1]}")
        yield text


def _suspect_text(one: Suspect, table: Table | None, channel: str) -> str:
    if one.of_definition:
        return one.note
    note = with_way_out(one.note, one.table, channel)
    if one.source is None is one.target:
        return f"{one.table}: {note}"
    key = key_values(table, one.key) or tuple(("key", text) for text in one.key)
    named = f"{one.table}, primary key {words(key)}" if key else str(one.table)
    changes = changed_values(table, one.source, one.target, one.columns)
    ours, theirs = (words((column, pair[side]) for column, *pair in changes) for side in (1, 0))
    noted = f" ({note})" if note else ""
    if one.target is None:
        return f"{named}: missing on the target; source: {ours}{noted}"
    if one.source is None:
        return f"{named}: only on the target: {theirs}{noted}"
    return f"{named}: source {ours}, target {theirs}{noted}"
