"""``binlane find``: where databases are, in all channels: lane, last applied transaction, verification, row changes."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any, Final

from binlane.apply.target_state import SchemaChecks, target_state
from binlane.choices import VerifyScope
from binlane.config import DeclaredChannel, load_channel
from binlane.connections import Resolver, environment_resolver, resolve_endpoints
from binlane.errors import BinlaneError
from binlane.health.databases import Database, LastVerification, databases_of
from binlane.health.look import TARGET_SECONDS
from binlane.model import plural
from binlane.orchestration.report import moment
from binlane.orchestration.terminal import Grid, View
from binlane.state.records.databases import Search, read_databases

log = logging.getLogger(__name__)

_THREADS: Final = 16
_SHOWN: Final = 3
"""Windows in a line."""


def find(
    channels: Sequence[DeclaredChannel],
    search: Search,
    limit: int,
    *,
    as_json: bool,
    resolve: Resolver | None = None,
) -> tuple[View, tuple[str, ...]]:
    """The databases that a search finds in these channels, and the problems of channels that could not be asked: no
    error of one channel costs the answer about the others."""
    resolver, checks = environment_resolver() if resolve is None else resolve, SchemaChecks()

    def ask(one: DeclaredChannel) -> tuple[str, tuple[Database, ...], int, str]:
        try:
            endpoint = resolve_endpoints(load_channel(one), resolver).target
            with target_state(endpoint, timeout=TARGET_SECONDS, checks=checks) as engine:
                page = read_databases(engine, one.name, search, limit=limit)
            return one.name, databases_of(page), page.count, ""
        except Exception as exc:
            if not isinstance(exc, BinlaneError):
                log.error("channel %s cannot be asked", one.name, exc_info=exc)
            return one.name, (), 0, f"{one.name}: not asked: {type(exc).__name__}: {exc}"

    with ThreadPoolExecutor(_THREADS) as pool:
        answers = list(pool.map(ask, channels))
    problems = tuple(problem for *_, problem in answers if problem)
    rows = [(name, each) for name, found, _, _ in answers for each in found]
    if as_json:
        return json.dumps([_object(*row) for row in rows], indent=1), problems
    return _table(rows, sum(count for _, _, count, _ in answers)), problems


def _object(channel: str, database: Database) -> dict[str, Any]:
    """Times are seconds since the epoch, by the source's clock; of a verification by the target's."""
    return {"channel": channel, **asdict(database)}


def _table(rows: Sequence[tuple[str, Database]], count: int) -> Grid:
    more = f", the first {len(rows):,} shown" if count > len(rows) else ""
    grid = Grid(f"{plural(count, 'database')}{more}").columns("channel", "database", no_wrap=True)
    grid.columns("lane", justify="right").columns("last applied", "verified")
    grid.columns("row changes by window", justify="right")
    for channel, each in rows:
        applied = "-" if each.applied is None else f"seqno {each.applied.seqno:,}, {moment(each.applied.time)}"
        if each.is_waiting:
            applied += "; more in the open window"
        verified = "-" if each.verified is None else f"{_compared(each.verified)}, {moment(each.verified.at)}"
        if each.drifted:
            verified = f"{each.drifted:,} drifted"
        windows = ", ".join(f"#{one.number}: {one.rows:,}" for one in each.recent[:_SHOWN])
        lane = "-" if each.lane is None else str(each.lane)
        grid.row(channel, each.name, lane, applied, verified, windows)
    return grid


def _compared(verified: LastVerification) -> str:
    """As the board says it."""
    return "every row" if verified.kind == VerifyScope.FULL else f"rows of window #{verified.number}"
