"""A channel's readiness, asked before its first write: the servers are connected while it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.orchestration.effective_rules import renaming_of, selection_of
from binlane.precheck.situation.facts import Target
from binlane.readiness.checks import require
from binlane.readiness.situation import Readiness, ReadinessRequest, SourceServer
from binlane.servers.catalog import read_schema
from binlane.servers.engines import engine_of
from binlane.shards.renaming import Renaming
from binlane.shards.selection import Selection
from binlane.source.protocol import EventSource


@contextmanager
def readiness_of(
    channel: ChannelConfig, endpoints: Endpoints, source: EventSource, asked: ReadinessRequest
) -> Iterator[Readiness]:
    """For as long as the block runs. Nothing is asked yet. ``source``: the channel's."""

    def rules(target: Target) -> tuple[Selection, Renaming]:
        schema = target.ask(read_schema, ())
        return selection_of(channel, schema), renaming_of(channel, schema)

    with ExitStack() as stack:
        target = stack.enter_context(Target(engine_of(endpoints.target)))
        server = None
        if endpoints.source is not None:
            server = stack.enter_context(SourceServer(engine_of(endpoints.source), endpoints.source, source))
        yield Readiness(channel, server, target, endpoints.target, asked, rules)


def require_ready(channel: ChannelConfig, endpoints: Endpoints, source: EventSource, asked: ReadinessRequest) -> None:
    """Raises PrecheckError before anything is written, with everything that stands in the way."""
    with readiness_of(channel, endpoints, source, asked) as situation:
        require(situation)


def require_ready_to_begin(
    channel: ChannelConfig, endpoints: Endpoints, source: EventSource, *, made: tuple[str, ...] = (),
    replaces: bool = False,
) -> None:  # fmt: skip
    """As ``require_ready``, before a channel's first write. ``made``, ``replaces``: see ``ReadinessRequest``."""
    asked = ReadinessRequest(copies=False, windows=bool(made), made=made, replaces=replaces)
    require_ready(channel, endpoints, source, asked)
