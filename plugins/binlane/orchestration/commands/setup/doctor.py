"""``binlane doctor``: is everything there that a channel and its first copy need? Each line is ok, or what mends it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from binlane.apply.refusals import target_errors
from binlane.apply.target_state import knowing_target, target_state
from binlane.binlog.types.literals import quoted
from binlane.config import ChannelConfig, find_channel, load_channel
from binlane.connections import Endpoint, Endpoints, resolve_endpoints
from binlane.errors import BinlaneError, TargetIdentityError
from binlane.model import plural
from binlane.orchestration.commands.channel import proven
from binlane.orchestration.commands.setup.connections_held import Connections, LoadStores, connections_of
from binlane.orchestration.extraction.window_reading import source_of
from binlane.orchestration.readiness import readiness_of
from binlane.orchestration.terminal import Style, Terminal
from binlane.precheck.account.privileges import Order
from binlane.precheck.situation.finding import Finding
from binlane.readiness.checks import (
    CHANNEL_CHECKS,
    COPY_ALONE,
    COPY_CHECKS,
    ON_SOURCE,
    OTHER_CHECKS,
    PRIVILEGE_CHECKS,
    Answer,
    Check,
    answers,
    counted,
    mends,
)
from binlane.readiness.needs import applies_accounts
from binlane.readiness.situation import ReadinessRequest
from binlane.schema.compare import Severity
from binlane.servers.engines import engine_of
from binlane.servers.greeting import greet
from binlane.source.server import translated
from binlane.state.channels import has_channel, read_channel

_OK: Final[tuple[str, Style]] = ("ok    ", "green")
_FAILED: Final[tuple[str, Style]] = ("FAIL  ", "bold red")
_NOTE: Final[tuple[str, Style]] = ("note  ", "dim")
_JOBS: Final = 6
"""Connections of a first copy with the default number of jobs."""
_FIRST: Final = PRIVILEGE_CHECKS | {"view-functions"}
"""Before all others: an account that lacks ``_SIGHT`` has no answers to them."""
_SIGHT: Final = "SELECT"
_CONNECTED: Final[Mapping[str, Callable[[Endpoints], Endpoint | None]]] = {
    "source-connection": lambda endpoints: endpoints.source,
    "target-connection": lambda endpoints: endpoints.target,
}


def doctor(
    name: str,
    folder: Path,
    out: Terminal,
    load_stores: LoadStores,
    *,
    copies_users: bool = False,
    asks_airflow: bool | None = None,
) -> bool:
    """Print a line for each check. Whether nothing stands in the way. ``copies_users``: also for a first copy of
    accounts. ``asks_airflow``: for the connections; None: if there is one. Raises ConfigError for a wrong channel file.
    """
    channel = load_channel(find_channel(name, folder))
    connections, asked = connections_of(channel, load_stores, asks=asks_airflow)
    failed = total = 0
    only_begins = False
    for each in itertools.chain(asked, _answers(channel, connections, copies_users)):
        total += 1
        failed += not each.is_ok
        only_begins |= each.check in COPY_ALONE and bool(each.findings)
        _show(each, out)
    ready = f"ready for `binlane init {name}`, not for `binlane bootstrap {name}`" if only_begins else "ready"
    text = f"not ready: {failed} of {plural(total, 'check')} failed" if failed else f"{ready}: {plural(total, 'check')}"
    out.line((f"channel {name}: {text}", "bold red" if failed else "bold"))
    return not failed


def _answers(channel: ChannelConfig, connections: Connections, copies_users: bool) -> Iterator[Answer]:
    resolved = list(connections.answers())
    yield from resolved
    if not all(each.is_ok for each in resolved):
        return
    endpoints = knowing_target(resolve_endpoints(channel, connections.resolve))
    try:
        endpoints = _proving(channel, endpoints)
    except TargetIdentityError as exc:
        finding = Finding(Severity.FATAL, "target", "the channel's target", str(exc), "mend that, then ask again")
        yield Answer("target-connection", (finding,), was_asked=False)
        return
    copies = _may_copy(channel, endpoints)
    users = applies_accounts(channel) or (copies and copies_users)
    asked = ReadinessRequest(copies=copies, may_begin=copies, users=users, connections=_JOBS if copies else 0)
    checks: dict[str, Check] = {**CHANNEL_CHECKS, **(COPY_CHECKS if copies else {}), **OTHER_CHECKS}
    checks = {name: checks[name] for name in sorted(checks, key=lambda name: name not in _FIRST)}
    left, is_blind = dict(checks), False
    with readiness_of(channel, endpoints, source_of(channel, endpoints), asked) as situation:
        for each in answers(situation, checks):
            endpoint = _CONNECTED[each.check](endpoints) if each.check in _CONNECTED else None
            yield each if endpoint is None or each.is_ok else _with_account(each, endpoint)
            left.pop(each.check, None)
            is_blind |= each.check in PRIVILEGE_CHECKS and _lacks_sight(each)
            if is_blind and PRIVILEGE_CHECKS.isdisjoint(left):
                yield _not_asked(len(left))
                return


def _lacks_sight(answer: Answer) -> bool:
    """Whether the account may not read its server's definitions: nearly everything looks well to it."""
    mends = (mend for finding in answer.findings for mend in finding.mend)
    return any(_SIGHT in mend.names for mend in mends if isinstance(mend, Order))


def _not_asked(checks: int) -> Answer:
    why = f"{plural(checks, 'more check')}: not asked, because an account without {_SIGHT} is shown nothing"
    finding = Finding(Severity.INFO, "others", "an answer", why, "run the statements, then ask again")
    return Answer("others", (finding,), was_asked=False)


def _proving(channel: ChannelConfig, endpoints: Endpoints) -> Endpoints:
    """Of a channel that exists, the source must be its own. Raises TargetIdentityError for another target."""
    try:
        with target_state(endpoints.target) as engine, engine.connect() as connection:
            return proven(endpoints, read_channel(connection, channel.name))
    except TargetIdentityError:
        raise
    except BinlaneError:
        return endpoints  # none exists, or a check says what is wrong


def _with_account(failed: Answer, endpoint: Endpoint) -> Answer:
    """The answer with the statement that makes the account, if the server does not let it in."""
    with contextlib.suppress(BinlaneError), translated(str(endpoint)):
        if greet(endpoint).lacks_account:
            mend = (f"CREATE USER {quoted(endpoint.user)}@'%' IDENTIFIED BY '...'",)
            return replace(failed, findings=tuple(replace(each, mend=mend) for each in failed.findings))
    return failed


def _may_copy(channel: ChannelConfig, endpoints: Endpoints) -> bool:
    """Whether a first copy could come: from a live source of the target's family, without renames, to a target that
    does not have the channel."""
    if endpoints.source is None or channel.rename:
        return False
    try:
        with translated(str(endpoints.source)):
            source = greet(endpoints.source)
        with target_errors(str(endpoints.target)):
            target = greet(endpoints.target)
            with engine_of(endpoints.target).connect() as connection:
                return source.flavor is target.flavor and not has_channel(connection, channel.name)
    except BinlaneError:
        return True  # a check says what is wrong


def _show(answer: Answer, out: Terminal) -> None:
    """Its findings, and then what mends them."""
    if not answer.findings or (answer.is_ok and answer.said):
        out.line(_OK, (f"{answer.check}: {answer.said}" if answer.said else answer.check, ""))
    for finding in counted(answer):
        mark = _FAILED if finding.severity is Severity.FATAL else _NOTE
        if not answer.was_asked:
            out.line(mark, (f"{answer.check}: {finding.found}", ""))
            continue
        out.line(mark, (f"{answer.check}: {finding.where}: expected {finding.expected}, found {finding.found}", ""))
        if not finding.mend:
            out.line((f"      {finding.todo}", ""))
    for line in mends(answer.findings, "the source" if answer.check in ON_SOURCE else "the target"):
        out.line((f"      {line}", ""))
