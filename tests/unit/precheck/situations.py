"""Situations of tests: what is not given is a window without anything in it, for a target that has everything."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sqlalchemy import create_engine

from binlane.config import ChannelConfig, load_channel
from binlane.model import Flavor, LogPosition, RowCounts, TableKey
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.checks import CHECKS, run_checks
from binlane.precheck.definitions.noted import NotedDefinitions
from binlane.precheck.situation.facts import Target
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.parser import ParserAnswers
from binlane.precheck.situation.situation import Needs, Situation
from binlane.schema.model import Schema, Table
from binlane.shards.selection import Selection
from binlane.work.files import WorkFolder
from tests.unit.plan.logs import settings

PLAN: Final = WindowPlan(
    channel="c", window_id="w", digest="d", first_seqno=1, last_seqno=9, lanes=1, barriers=(), source="s",
    end=LogPosition("binlog.000001", 4), end_gtid_set="", end_time=0.0, lane_rows=(RowCounts(), RowCounts()),
    flavor=Flavor.MYSQL,
)  # fmt: skip
CHANNEL: Final = load_channel(Path(__file__).parents[3] / "dags" / "channels" / "demo.toml", {})
VERSIONS: Final = {Flavor.MARIADB: "10.11.14-MariaDB-log", Flavor.MYSQL: "9.7.0"}


def applying(**changes: Any) -> ChannelConfig:
    """The channel with other values in ``[apply]``."""
    return replace(CHANNEL, apply=replace(CHANNEL.apply, **changes))


def schema(*tables: Table, flavor: Flavor = Flavor.MYSQL, **changes: Any) -> Schema:
    """The definitions of a server."""
    return Schema(flavor, changes.pop("version", VERSIONS[flavor]), tables={one.key: one for one in tables}, **changes)


def target_of(flavor: Flavor = Flavor.MYSQL, version: str | None = None, **facts: Any) -> Target:
    """A target that answers with these facts; for any other it would have to be there."""
    target = Target(create_engine("mysql+pymysql://nobody@127.0.0.1:1/"))
    # where functools.cached_property keeps what was read
    vars(target).update(_version=(flavor, VERSIONS[flavor] if version is None else version), **facts)
    return target


def situation(
    target: Target | None = None,
    plan: WindowPlan = PLAN,
    tables: Schema | None = None,
    *,
    source: Schema | None = None,
    planned: Schema | None = None,
    texts: Collection[Any] = (),
    by_sql: Collection[TableKey] = (),
    **changes: Any,
) -> Situation:
    """``planned``: the target's definitions when the window was read; ``source``: its definitions as they are now, of
    an archive None; ``texts``: statements that the parser takes."""
    given: Mapping[str, Any] = {
        "needs": Needs(),
        "channel": CHANNEL,
        "selection": Selection(),
        "settings": settings(),
        "logged_by": frozenset(),
        "plans": WorkFolder("/nowhere"),
        "noted": NotedDefinitions(WorkFolder("/nowhere")),
        "source": None,
        "begun": False,
        "read_statements": lambda: ParserAnswers(texts=list(texts)),
    }
    made = Situation(
        target=target_of() if target is None else target,
        plan=plan,
        tables=schema() if tables is None else tables,
        by_sql=frozenset(by_sql),
        planned=(schema() if tables is None else tables) if planned is None else planned,
        **{**given, **changes},
    )
    vars(made).update(every_text=tuple(texts), of_restore=False)
    if source is not None:
        vars(made).update(source_as_named=source)
    return made


def findings(of: Situation, *checks: str) -> tuple[Finding, ...]:
    """What these checks find."""
    return run_checks(of, {name: CHECKS[name] for name in checks})


def said(of: Situation, *checks: str) -> list[str]:
    """The same as texts."""
    return [str(one) for one in findings(of, *checks)]
