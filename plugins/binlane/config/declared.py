"""The channels that a folder's files declare: one by the file's name, or those of a template's ``[instances]``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Final

from binlane.config.node import Node
from binlane.config.template import INSTANCES
from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass

_CHANNEL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class DeclaredChannel:
    """A channel by its name, not validated yet."""

    name: str
    file: Path
    is_instance: bool = False
    """The file is a template, with other channels in it."""
    problem: str = ""
    """Why the channel cannot be read, where that is known already."""
    node: Node | None = field(default=None, repr=False, compare=False)
    """The parsed file, the same for all channels of a template; None: not read yet."""


def declared_channels(folder: Path) -> tuple[DeclaredChannel, ...]:
    """The channels of a folder, by name. A file that cannot be read, or a template without a channel, is in the list
    under the file's name, so that its error is seen."""
    found: dict[str, DeclaredChannel] = {}
    for file in sorted(folder.glob("*.toml")):
        for each in _declared(file):
            before = found.get(each.name)
            if before is None:
                found[each.name] = each
            else:
                problem = f"{before.file}: channel {each.name}: expected one file with it, found {each.file} as well"
                found[each.name] = DeclaredChannel(each.name, before.file, before.is_instance, problem)
    return tuple(found[name] for name in sorted(found))


def find_channel(name: str, folder: Path) -> DeclaredChannel:
    """The channel ``name``; raises ConfigError that lists the known ones."""
    channels = {each.name: each for each in declared_channels(folder)}
    if name not in channels:
        known = ", ".join(channels)
        raise ConfigError(
            f"{folder}: no channel {name!r}; known: {known or 'none: write one, see docs/configuration.md'}"
        )
    return channels[name]


def require_channel_name(name: str, file: Path) -> None:
    """Raises ConfigError for a name that cannot be a channel's. ``file``: for the message."""
    if not _is_name(name):
        raise ConfigError(
            f"{file}: the file's name is the channel's: expected up to 64 letters, digits, - and _, got {name!r}"
        )


def _is_name(name: str) -> bool:
    return _CHANNEL_NAME.fullmatch(name) is not None


def _declared(file: Path) -> Iterator[DeclaredChannel]:
    try:
        node = Node.read(file.absolute())
    except ConfigError as exc:
        yield DeclaredChannel(file.stem, file, problem=str(exc))
        return
    if INSTANCES not in node.value:
        yield DeclaredChannel(file.stem, file, node=node)
        return
    instances = node.value[INSTANCES]
    if not isinstance(instances, Mapping) or not instances:
        yield DeclaredChannel(
            file.stem, file, problem=f"{file}: {INSTANCES}: expected a table with a channel, found none"
        )
        return
    for name in instances:
        if _is_name(name):
            yield DeclaredChannel(name, file, is_instance=True, node=node)
        else:
            text = f"expected a channel's name of up to 64 letters, digits, - and _, got {name!r}"
            yield DeclaredChannel(file.stem, file, problem=f"{file}: {INSTANCES}: {text}")
