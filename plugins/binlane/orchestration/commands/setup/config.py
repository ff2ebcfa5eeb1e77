"""``binlane config``: every key of a channel with its value, as one file of its own would have them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from binlane.config import ChannelConfig, find_channel, load_channel, tables_of
from binlane.config.by_name import all_keys
from binlane.config.kinds import Table
from binlane.config.node import SECRETS
from binlane.orchestration.plan_job.spark_submit import secrets_of
from binlane.safe_text import one_line

_HIDDEN: Final = "***"
_SECRET_VALUES: Final[Mapping[str, Callable[[ChannelConfig], Collection[str]]]] = {
    # a header, an account or the address of a webhook
    "announce.command": lambda channel: channel.announce.command[1:],
    "spark.conf": lambda channel: secrets_of(channel.spark.conf),
}
"""By key of ``SECRETS``: those of its values that are hidden."""


def config(name: str, folder: Path) -> str:
    """The channel as TOML, a line for each key that has a value: a comment for a default, and beside the value of a
    variable the template's text. What may be a secret is hidden. Raises ConfigError."""
    declared = find_channel(name, folder)
    channel, tables = load_channel(declared), tables_of(declared)
    lines = [f"# channel {name}, from {declared.file}; a default is a comment"]
    for key, declaration in all_keys().items():
        section, _, inner = key.rpartition(".")
        given = tables.table(section).value if section else tables.value
        value = given.get(inner, attrgetter(key)(channel))
        if value is None:
            continue
        written = tables.written.get(key)
        mark, place = ("" if inner in given else "# "), "" if written is None else f"  # from {json.dumps(written)}"
        hidden = _SECRET_VALUES[key](channel) if key in SECRETS else ()
        shown = _toml(dict(value) if isinstance(declaration.kind, Table) else value, hidden)
        lines.append(one_line(f"{mark}{key} = {shown}{place}"))
    return "\n".join(lines)


def _toml(value: Any, hidden: Collection[str]) -> str:
    """A value as TOML; strings have the escapes of JSON."""
    match value:
        case str():
            return json.dumps(_HIDDEN if value in hidden else str(value), ensure_ascii=False)
        case bool():
            return str(value).lower()
        case Mapping():
            return f"{{{', '.join(f'{json.dumps(key)} = {_toml(each, hidden)}' for key, each in value.items())}}}"
        case Sequence():
            return f"[{', '.join(_toml(each, hidden) for each in value)}]"
    return str(value)
