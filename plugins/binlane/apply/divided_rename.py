"""RENAME TABLE of temporary tables and others, run as two statements: first that of the others, exactly once.

MariaDB renames temporary and permanent tables in one statement. The permanent ones are in the target's dictionary and
need the exactness of a DDL (``ddl``); the temporary ones end with the connection and are renamed again by the next one.
The two kinds have name spaces of their own, so the order between them is of no effect. The others are renamed as
binlane's own connection, which has no temporary table that may hide one of them. See docs/decisions/0005.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from binlane.binlog.types.literals import identifier
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, Item, ItemKind, TableKey
from binlane.plan.transaction.decode import statement_facts
from binlane.plan.transaction.temporary_tables import are_plain, is_rename_table, which_are_temporary

if TYPE_CHECKING:
    from binlane.apply.session.connection import LaneSession


@dataclass(frozen=True, slots=True)
class DividedRename:
    """A RENAME TABLE as the target runs it."""

    permanent: Item | None
    temporary: tuple[Item, ...]


def divided(session: LaneSession, item: Item, tables: Collection[tuple[int, TableKey]]) -> DividedRename | None:
    """The statements to run instead of ``item``; None if it runs as it is logged.

    ``tables``: the open temporary tables before it, by thread.
    """
    context = item.context
    if item.kind is not ItemKind.DDL or context is None or not is_rename_table(item.payload):
        return None
    # MySQL's RENAME TABLE knows no temporary table, and no log of its brings one here
    renames = statement_facts(item.payload, context, Flavor.MARIADB).renames
    letters = session.letters
    own = {letters.table(table) for thread, table in tables if thread == context.thread_id}
    are_temporary = which_are_temporary(renames, lambda name: letters.table(name) in own, letters)
    temporary = [pair for pair, is_temporary in zip(renames, are_temporary, strict=True) if is_temporary]
    permanent = [pair for pair, is_temporary in zip(renames, are_temporary, strict=True) if not is_temporary]
    if not temporary or not are_plain(renames) or (not permanent and session.flavor is Flavor.MARIADB):
        return None
    others = None
    if permanent:
        others = replace(item, payload=_rename(permanent), context=replace(context, thread_id=session.connection_id))
    if session.flavor is Flavor.MARIADB:
        return DividedRename(others, (replace(item, payload=_rename(temporary)),))
    texts = (f"ALTER TABLE {_name(before)} RENAME TO {_name(after)}" for before, after in temporary)
    return DividedRename(others, tuple(replace(item, payload=text.encode("ascii")) for text in texts))


def _rename(renames: Sequence[tuple[TableKey, TableKey]]) -> bytes:
    """The statement; its names are ASCII, whose bytes are the same in every character set of a client."""
    pairs = ", ".join(f"{_name(before)} TO {_name(after)}" for before, after in renames)
    return f"RENAME TABLE {pairs}".encode("ascii")


def _name(table: TableKey) -> str:
    return f"{identifier(table.database)}.{identifier(table.table)}"
