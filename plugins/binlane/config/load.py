"""Reads a channel into a ``ChannelConfig``: first the declared keys of its file, then the rules between keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from binlane.choices import VerifyScope
from binlane.config.by_name import SECTIONS, number
from binlane.config.declaration import REQUIRED, Key, PerChannel, keys_of
from binlane.config.declared import DeclaredChannel, require_channel_name
from binlane.config.keys import ChannelConfig
from binlane.config.kinds import BY_HAND, CONTINUOUS, integer
from binlane.config.node import Node
from binlane.config.template import expanded
from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass


def load_channel(found: DeclaredChannel | Path, environment: Mapping[str, str] | None = None) -> ChannelConfig:
    """Read and validate one channel; a path stands for the channel of the file's name. Raises ConfigError."""
    declared = DeclaredChannel(found.stem, found) if isinstance(found, Path) else found
    node, file = tables_of(declared), declared.file.absolute()
    return _Reader(node, file, declared.name, os.environ if environment is None else environment).channel()


def tables_of(declared: DeclaredChannel) -> Node:
    """The channel's tables, with the values of its template's variables. Raises ConfigError."""
    if declared.problem:
        raise ConfigError(declared.problem)
    file = declared.file.absolute()
    if not declared.is_instance:
        require_channel_name(declared.name, file)
    node = Node.read(file) if declared.node is None else declared.node
    return expanded(node, declared.name) if declared.is_instance else node


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one channel."""

    node: Node
    file: Path
    name: str
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
        return ChannelConfig(name=self.name, file=self.node.file, root=self.root, **values)

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
        return key.default.of(self.name) if isinstance(key.default, PerChannel) else key.default


def _source(_: _Reader, node: Node, values: dict[str, Any]) -> None:
    given = [key for key in ("connection", "archive") if values[key] is not None]
    if len(given) != 1:
        found = " and ".join(given) or "neither"
        raise ConfigError(f"{node.file}: {node.path}: expected either connection or archive, got {found}")


def _window(_: _Reader, __: Node, values: dict[str, Any]) -> None:
    if values["schedule"] == BY_HAND:
        values["schedule"] = None


def _drill(_: _Reader, node: Node, values: dict[str, Any]) -> None:
    if values["schedule"] == CONTINUOUS:
        node.wrong("schedule", f'a cron expression, or "{BY_HAND}"')
    if values["schedule"] == BY_HAND:
        values["schedule"] = None
    if (values["base"] is None) != (values["log"] is None):
        node.wrong("log" if values["log"] is None else "base", "a value, as base and log go together")


def _archive(_: _Reader, node: Node, values: dict[str, Any]) -> None:
    if values["schedule"] == CONTINUOUS:
        node.wrong("schedule", f'a cron expression, or "{BY_HAND}"')
    if values["schedule"] == BY_HAND:
        values["schedule"] = None
    if values["uri"] is None and node.value:
        node.wrong("uri", "the archive's folder or URI, as the other keys of the section are of its index")


def _blocks(_: _Reader, node: Node, values: dict[str, Any]) -> None:
    """``blocks.window_bytes`` must be at least twice ``blocks.bytes``: a block is folded with earlier changes."""
    least = 2 * values["bytes"]
    if "window_bytes" not in node.value:
        values["window_bytes"] = max(values["window_bytes"], least)
    elif values["window_bytes"] < least:
        node.wrong("window_bytes", integer(least, number("blocks.window_bytes").high).expected)


def _verify(reader: _Reader, node: Node, values: dict[str, Any]) -> None:
    # a run of windows back to back has more of them than the work directory keeps
    if values["after_window"] is VerifyScope.WINDOW and reader.node.table("window").value.get("schedule") == CONTINUOUS:
        node.wrong("after_window", f'"none", "slice" or "full" for a channel with window.schedule = "{CONTINUOUS}"')
    if values["after_window"] is not VerifyScope.NONE and "archive" in reader.node.table("source").value:
        node.wrong("after_window", '"none" for a channel that reads an archive: there is no server to compare with')


def _alert(reader: _Reader, node: Node, values: dict[str, Any]) -> None:
    if "callback" in node.value and not values["lag_seconds"]:
        node.wrong("lag_seconds", "a number of seconds with a callback")
    window = reader.node.table("window")
    if not values["lag_seconds"] or window.value.get("schedule") != CONTINUOUS:
        return
    # each run of windows back to back lasts so long, and would be late
    lasts = reader._values(SECTIONS["window"], window)["follow_seconds"]
    if values["lag_seconds"] <= lasts:
        node.wrong(
            "lag_seconds",
            f"0, or more than window.follow_seconds, {lasts:,}, the time of each run with window.schedule = "
            f'"{CONTINUOUS}"',
        )


def _restore(_: _Reader, node: Node, values: dict[str, Any]) -> None:
    # a relative path would begin where the task runs
    if [folder for folder in values["bases"] if not Path(folder).is_absolute() or ".." in Path(folder).parts]:
        node.wrong("bases", "whole paths of folders, without ..")


def _work(reader: _Reader, _: Node, values: dict[str, Any]) -> None:
    if "://" not in values["uri"]:
        values["uri"] = str(reader.root / values["uri"])


_CHECKS: Final[Mapping[str, Callable[[_Reader, Node, dict[str, Any]], None]]] = {
    "source": _source,
    "window": _window,
    "blocks": _blocks,
    "drill": _drill,
    "archive": _archive,
    "verify": _verify,
    "alert": _alert,
    "restore": _restore,
    "work": _work,
}
"""By section: the rules between keys, and values that depend on other keys."""
