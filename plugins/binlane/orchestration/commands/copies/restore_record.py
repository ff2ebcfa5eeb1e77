"""Reads a restore's row of the target, and compares it with the restore's channel file, which says what it may touch.

The row is input: whoever can write to the schema ``binlane`` could name other databases in it, which `--drop` would
drop, `--continue` would move into, and `--extend` would write to.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Final

from binlane.config import ChannelConfig
from binlane.connections import Endpoint
from binlane.model import TableKey
from binlane.safe_text import one_line
from binlane.servers.engines import engine_of
from binlane.shards.selection import pattern_of
from binlane.state.records.restores import COMPLETE, EXTENDING, Restore, has_restore, read_restore, unfinished
from binlane.state.stored_values import unexpected


def table_patterns(database: str, tables: Collection[str]) -> tuple[str, ...]:
    """The filter's patterns of single tables of a database."""
    return tuple(pattern_of(TableKey(database, table)) for table in tables)


def base_line(base: str, digest: str) -> str:
    """The line of the channel file that says what the restore begins with: windows do not need it."""
    return "# base: the log alone" if not base else f"# base: {json.dumps(base)}, {digest}"


_REPLACES: Final = "# replaces: "


def replaces_line(replaced: Collection[tuple[str, str]]) -> str:
    """The line of the channel file that says which databases are replaced, and under which names they are kept."""
    return f"{_REPLACES}{json.dumps(dict(replaced))}" if replaced else ""


_BELIEVED: Final = "# believed: "


def believed_lines(beliefs: Collection[str]) -> str:
    """The lines of the channel file that say what the plan has believed: the end of the restore says it again, in
    whichever process."""
    return "".join(f"{_BELIEVED}{json.dumps(each)}\n" for each in beliefs)


def believed_in(file: Path) -> list[str]:
    """What these lines say."""
    lines = file.read_text("utf-8").splitlines()
    return [_believed(line.removeprefix(_BELIEVED)) for line in lines if line.startswith(_BELIEVED)]


def _believed(text: str) -> str:
    try:
        return one_line(str(json.loads(text)))
    except ValueError:
        # somebody has changed a comment
        return one_line(text)


def recorded(target: Endpoint, channel: ChannelConfig) -> Restore | None:
    """The restore of that channel; None if the target does not have it. Raises StateSchemaError for a row of other
    databases or tables, or another base, than the channel file's, and driver errors."""
    with engine_of(target).connect() as connection:
        found = read_restore(connection, channel.name) if has_restore(connection, channel.name) else None
    if found is None:
        return None
    definition, names = found.definition, dict(channel.rename)
    known = [{old: unfinished(final) for old, final in definition.databases}]
    if found.stage in (COMPLETE, EXTENDING):
        # a later end is written under the final names
        known.append(dict(definition.databases))
    base = base_line(definition.base, definition.digest)
    lines = Path(channel.file).read_text("utf-8").splitlines()
    if base not in lines:
        raise unexpected("binlane.restores.definition", f"the base of {channel.file}", base)
    replaces = replaces_line(definition.replaced)
    is_dropped = found.stage in (COMPLETE, EXTENDING) and not replaces
    if not is_dropped and [line for line in lines if line.startswith(_REPLACES)] != ([replaces] if replaces else []):
        raise unexpected("binlane.restores.definition", f"what {channel.file} replaces", replaces)
    tables = tuple(each for old in names for each in table_patterns(old, definition.tables))
    if names not in known or tables != channel.filter.include_tables:
        renames = ", ".join(f"{old} as {new}" for old, new in names.items())
        patterns = ", ".join(channel.filter.include_tables) or "all"
        raise unexpected(
            "binlane.restores.definition",
            f"the databases of {channel.file} ({renames}; tables: {patterns}) for the stage {found.stage}",
            [definition.databases, definition.tables],
        )
    return found
