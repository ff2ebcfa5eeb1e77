"""A check of the channel's filter that needs the whole window: statements that use views."""

from __future__ import annotations

from collections.abc import Sequence

from binlane.errors import UnsupportedEventError
from binlane.model import Flavor
from binlane.plan.manifest import Segment
from binlane.plan.transaction.route_key import TransactionClass
from binlane.plan.window.scanned import ScannedWindow
from binlane.schema.dependencies import SchemaFacts
from binlane.shards.event_filter import LoggedStatement
from binlane.shards.renaming import Renaming
from binlane.shards.selection import Extent, Selection
from binlane.sql.parse.facts import StatementKind


def check_views(
    selection: Selection,
    renaming: Renaming,
    segments: Sequence[Segment],
    scans: ScannedWindow,
    schema: SchemaFacts,
) -> None:
    """Raises UnsupportedEventError if a statement that the filter takes changes or reads rows through a view.

    The view may be of tables that the filter leaves out. ``schema`` holds all views of the window. Statements and
    ``schema`` have the target's names, the filter's rules the source's.
    """
    if not selection.selects:
        return
    views: dict[TransactionClass, str] = {}
    for described in scans.classes:
        found = (_view(selection, renaming, each, schema, segments[0].flavor) for each in described.statements)
        if (view := next(filter(None, found), None)) is not None:
            views[described] = view
    for seqno, place in zip(*scans.transactions(views), strict=True):
        segment = next(each for each in segments if seqno <= each.last_seqno)
        raise UnsupportedEventError(
            f"{segment.source_file}: seqno {seqno}: a statement uses the view {[*views.values()][place]}, so its "
            "tables cannot be checked against the filter; nothing of the window was written; see "
            "docs/filters.md#what-is-refused for what to do"
        )


def _view(
    selection: Selection, renaming: Renaming, statement: LoggedStatement, schema: SchemaFacts, flavor: Flavor
) -> str | None:
    facts = statement.facts
    if facts.kind is StatementKind.DDL and not facts.create_select:
        return None
    named = schema.letter_case.tables(facts.tables - facts.views)
    used = sorted(str(key) for key in named & schema.views)
    listed = statement.updated_databases if flavor is Flavor.MYSQL and not statement.too_many_databases else None
    names = {renaming.source(name) or name for name in (*facts.databases, *(listed or ()))}
    if listed and all(selection.database(name)[0] is Extent.ALL for name in names - {""}):
        return None
    return used[0] if used else None
