"""A channel file's sections and keys, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Final, get_type_hints

from binlane.config.declaration import Key, keys_of
from binlane.config.keys import ChannelConfig
from binlane.config.kinds import Automatic, Integer

SECTIONS: Final[Mapping[str, type]] = {
    name: hint for name, hint in get_type_hints(ChannelConfig).items() if is_dataclass(hint) and isinstance(hint, type)
}
"""The tables of the file, by name. ``[rename]`` and ``[collations]`` are keys whose values are tables."""


def all_keys() -> Mapping[str, Key]:
    """Every key of a channel file by its full name (``lanes.count``)."""
    inside = {f"{name}.{each}": found for name, section in SECTIONS.items() for each, found in keys_of(section).items()}
    return {**keys_of(ChannelConfig), **inside}


def number(name: str) -> Integer:
    """The range of a key whose values are numbers, by the key's full name."""
    kind = all_keys()[name].kind
    kind = kind.number if isinstance(kind, Automatic) else kind
    assert isinstance(kind, Integer), name
    return kind
