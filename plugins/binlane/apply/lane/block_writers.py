"""The one way to make the writer of blocks: for lanes, for the search for a transaction that the target refuses, and
for skipped transactions that are replayed.

What reaches the target's rows depends on the target's tables (between the families, statements write some of them) and
on the channel's options. A writer without them would send other bytes, fail where a lane does not, and blame a
transaction that is innocent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

from binlane.apply.lane.options import ApplyOptions
from binlane.apply.rows.named_objects import NamedObjects
from binlane.apply.rows.table_guard import TableGuard
from binlane.apply.rows.writers import BlockWriter
from binlane.apply.session.context import ContextSetter
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.transaction.channel_rules import AS_LOGGED, ChannelRules
from binlane.servers.catalog import TableReader, read_schema
from binlane.servers.programs import read_named_programs, read_views

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from binlane.apply.session.connection import LaneSession
    from binlane.plan.window_plan import WindowPlan
    from binlane.schema.model import Schema
    from binlane.sql.programs.marks import ReachedPrograms


@dataclass(frozen=True, slots=True)
class Checked:
    """Results of the precheck that the lanes use."""

    definitions: Schema | None = None
    """The source's definitions of tables that the window alters, as far as they are known."""
    partitioned: frozenset[TableKey] | None = None
    """The partitioned ones of the target's tables that the window writes; None if this is unknown."""
    rules: ChannelRules = AS_LOGGED
    """Those of the window, which decide once more whose rows are written."""
    reached: ReachedPrograms | None = None
    """The target's routines and views that the window's statements reach; None if this is unknown."""
    reached_file: str = ""
    """Where these stand, for a message."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """``sql.session_variables.own_values`` of the target; empty: the window sees none, or may do so by any."""


UNCHECKED = Checked()


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What a writer has to know of the log that it writes from."""

    source: Flavor
    altered: Alterations = field(default_factory=Alterations)
    """The tables that the log's own statements alter."""
    last_seqno: int = 0
    complete_images: bool = True
    checked: Checked = UNCHECKED

    @classmethod
    def of(cls, plan: WindowPlan, checked: Checked) -> LogFacts:
        """Of a window."""
        return cls(plan.flavor, plan.altered, plan.last_seqno, plan.complete_images, checked)


def block_writer(session: LaneSession, catalog: Connection, options: ApplyOptions, log: LogFacts) -> BlockWriter:
    """A writer for a session. ``catalog``: another connection to the same server, which reads its tables."""
    reader = TableReader(catalog)
    guard = TableGuard(
        altered=log.altered,
        source=log.source,
        read=reader.read,
        read_database=reader.read_database,
        read_databases=reader.read_databases,
        definitions=log.checked.definitions,
        partitioned=log.checked.partitioned,
        server=lambda: read_schema(catalog, ()),
        last_seqno=log.last_seqno,
        across=log.source is not session.flavor,
        complete_images=log.complete_images,
        allow_nontransactional=options.allow_nontransactional,
        allow_unsafe=options.allow_unsafe,
        collations=options.collations,
        allow_triggers=options.allow_triggers,
        shortens_images=options.shortens_images,
        left_out=log.checked.rules.left_out if log.checked.rules.selects else None,
    )
    context = ContextSetter(session, {} if options.allow_unsafe else log.checked.variables)
    if log.source is Flavor.MARIADB and session.flavor is Flavor.MYSQL:
        context.make_null_now()
    checked = log.checked
    named = NamedObjects(
        partial(read_named_programs, catalog), checked.reached, partial(read_views, catalog), checked.reached_file
    )
    return BlockWriter(session, context, guard, options.writer, options.allow_unsafe, named)
