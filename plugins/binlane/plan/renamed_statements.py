"""``[rename]`` over statements: their default database and the names inside them, or why that cannot be done."""

from __future__ import annotations

from dataclasses import replace

from binlane.model import Flavor
from binlane.plan.parts import StatementPart
from binlane.shards.facts import StatementKind
from binlane.shards.renaming import Renaming


class Unsafe(Exception):  # noqa: N818 - not an error of binlane: whoever asks knows the place
    """What cannot be given the target's names exactly; the text says why."""


def renamed_statement(part: StatementPart, renaming: Renaming, flavor: Flavor) -> StatementPart:
    """A statement of a ``flavor`` server as the target is to run it. Raises Unsafe."""
    facts, default = part.facts, part.context.database
    named = sorted({*facts.databases, *(part.query.updated_databases or ()), *([default] if default else [])})
    if facts.kind is not StatementKind.TRANSACTION:
        if facts.kind in (StatementKind.UNKNOWN, StatementKind.GLOBAL):
            raise Unsafe("a statement of which it cannot be told what it names")
        for name in named:
            if (why := renaming.refusal(name)) is not None:
                raise Unsafe(why)
            if renaming.changes(name):
                raise Unsafe(f"a statement over {name}, which the channel renames")
    if default is None or not renaming.changes(default):
        return part
    return replace(part, context=replace(part.context, database=renaming.target(default)))
