"""Reads a channel file into a ``ChannelConfig``: first the declared keys, then the rules between keys."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from binlane.choices import VerifyScope
from binlane.config.declaration import REQUIRED, Key, PerChannel, keys_of
from binlane.config.keys import SECTIONS, ChannelConfig, number
from binlane.config.kinds import BY_HAND, integer
from binlane.config.node import Node
from binlane.errors import ConfigError

_CHANNEL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def channel_files(folder: Path) -> tuple[Path, ...]:
    """The channel files of a folder, by name."""
    return tuple(sorted(folder.glob("*.toml")))


def find_channel(name: str, folder: Path) -> Path:
    """The file of the channel ``name``; raises ConfigError that lists the known ones."""
    file = folder / f"{name}.toml"
    if not file.is_file():
        known = ", ".join(each.stem for each in channel_files(folder))
        raise ConfigError(
            f"{folder}: no channel {name!r}; known: {known or 'none: write one, see docs/configuration.md'}"
        )
    return file


def require_channel_name(name: str, file: Path) -> None:
    """Raises ConfigError for a name that cannot be a channel's. ``file``: for the message."""
    if _CHANNEL_NAME.fullmatch(name) is None:
        raise ConfigError(
            f"{file}: the file's name is the channel's: expected up to 64 letters, digits, - and _, got {name!r}"
        )


def load_channel(file: Path, environment: Mapping[str, str] | None = None) -> ChannelConfig:
    """Read and validate one channel file; raises ConfigError."""
    file = file.absolute()
    require_channel_name(file.stem, file)
    return _Reader(Node.read(file), file, os.environ if environment is None else environment).channel()


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one channel file."""

    node: Node
    file: Path
    environment: Mapping[str, str]

    @property
    def root(self) -> Path:
        """The project's folder: that which has the channels folder in it, by itself or in ``dags``."""
        folder = self.file.parent.parent
        return folder.parent if folder.name == "dags" else folder

    def channel(self) -> ChannelConfig:
        self.node.only((*keys_of(ChannelConfig), *SECTIONS))
        values = self._values(ChannelConfig, self.node)
        for name, section in SECTIONS.items():
            node = self.node.table(name)
            node.only(keys_of(section))
            found = self._values(section, node)
            if name in _CHECKS:
                _CHECKS[name](self, node, found)
            values[name] = section(**found)
        return ChannelConfig(name=self.file.stem, file=self.node.file, root=self.root, **values)

    def _values(self, table: type, node: Node) -> dict[str, Any]:
        keys = keys_of(table)
        values = {name: self._value(key, node, name) for name, key in keys.items()}
        for name, key in keys.items():
            if name in node.value and key.only is not None and not key.only.holds(values):
                node.wrong(name, key.only.condition, found=values[key.only.key])
        return values

    def _value(self, key: Key, node: Node, name: str) -> Any:
        if name in node.value or key.default is REQUIRED:
            return key.kind.read(node, name)
        if key.variable is not None and (given := self.environment.get(key.variable)):
            return given
        return key.default.of(self.file.stem) if isinstance(key.default, PerChannel) else key.default


def _source(_: _Reader, node: Node, values: dict[str, Any]) -> None:
    given = [key for key in ("connection", "archive") if values[key] is not None]
    if len(given) != 1:
        found = " and ".join(given) or "neither"
        raise ConfigError(f"{node.file}: {node.path}: expected either connection or archive, got {found}")


def _window(_: _Reader, __: Node, values: dict[str, Any]) -> None:
    if values["schedule"] == BY_HAND:
        values["schedule"] = None


def _blocks(_: _Reader, node: Node, values: dict[str, Any]) -> None:
    """``blocks.window_bytes`` must be at least twice ``blocks.bytes``: a block is folded with earlier changes."""
    least = 2 * values["bytes"]
    if "window_bytes" not in node.value:
        values["window_bytes"] = max(values["window_bytes"], least)
    elif values["window_bytes"] < least:
        node.wrong("window_bytes", integer(least, number("blocks.window_bytes").high).expected)


def _verify(reader: _Reader, node: Node, values: dict[str, Any]) -> None:
    if values["after_window"] is not VerifyScope.NONE and "archive" in reader.node.table("source").value:
        node.wrong("after_window", '"none" for a channel that reads an archive: there is no server to compare with')


def _alert(_: _Reader, node: Node, values: dict[str, Any]) -> None:
    if "callback" in node.value and not values["lag_seconds"]:
        node.wrong("lag_seconds", "a number of seconds with a callback")


def _work(reader: _Reader, _: Node, values: dict[str, Any]) -> None:
    if "://" not in values["uri"]:
        values["uri"] = str(reader.root / values["uri"])


_CHECKS: Final[Mapping[str, Callable[[_Reader, Node, dict[str, Any]], None]]] = {
    "source": _source,
    "window": _window,
    "blocks": _blocks,
    "verify": _verify,
    "alert": _alert,
    "work": _work,
}
"""By section: the rules between keys, and values that depend on other keys."""
