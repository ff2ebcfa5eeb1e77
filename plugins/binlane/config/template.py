"""Several channels from one file: a template with variables, and a table of the channels with their values.

``"${region}_source"`` becomes ``"eu_source"``; a text that is one variable alone, ``"${lanes}"``, becomes the
variable's own value, a number or a list, too. A variable's value may have variables itself. ``$${`` stands for ``${``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Final

from binlane.config.node import Node
from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass

INSTANCES: Final = "instances"
"""The table of the template's channels: by name, their variables."""
VARIABLES: Final = "variables"
"""The table of variables for all channels of the template; a channel's own value replaces it."""
CHANNEL: Final = "channel"
"""The variable that every template has: the channel's name."""
_REFERENCE: Final = re.compile(r"\$(\$\{)|\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_MOST: Final = 10_000
"""Variables that a channel replaces: nine values, each with nine times the next one, would be 387 million."""
_LONGEST: Final = 100_000
"""Characters of a text with the values of its variables."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def expanded(template: Node, channel: str) -> Node:
    """The channel's tables, as its own file would have them. ``template``: the whole file.

    Raises ConfigError for a variable that is not given, is not used, is defined by itself, or cannot stand inside a
    text.
    """
    shared, own = template.table(VARIABLES), template.table(INSTANCES).table(channel)
    for node in (shared, own):
        for name in node.value:
            if _NAME.fullmatch(name) is None or name == CHANNEL:
                raise ConfigError(
                    f"{node.file}: {node.at(name)}: expected a variable's name of letters, digits and _, other than "
                    f"{CHANNEL}"
                )
    named = f"{template.file}, channel {channel}"
    expansion = _Expansion(named, {**shared.value, **own.value, CHANNEL: channel})
    tables = {key: value for key, value in template.value.items() if key not in (INSTANCES, VARIABLES)}
    values, used = expansion.table(tables, ""), _used_by(tables, expansion.values)
    for node in (own, shared):
        if unused := sorted(node.value.keys() - used):
            raise ConfigError(
                f"{node.file}: {node.at(unused[0])}: no key of the template has ${{{unused[0]}}}; the template's "
                f"variables: {', '.join(sorted(used)) or 'none'}"
            )
    return Node(values, named, written=expansion.written)


def _used_by(tables: Any, values: Mapping[str, Any]) -> set[str]:
    """The variables in the template's tables, and in the ``values`` of these variables."""
    used, left = set[str](), [tables]
    while left:
        found = {each[2] for text in _texts(left.pop()) for each in _REFERENCE.finditer(text) if each[2]} - used
        used |= found
        left += [values.get(name) for name in found]
    return used


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for key, each in value.items():
                yield key
                yield from _texts(each)
        case list():
            for each in value:
                yield from _texts(each)


@dataclass(slots=True)
class _Expansion:
    """Replaces the variables of one channel, and remembers where."""

    file: str
    values: Mapping[str, Any]
    replaced: int = 0
    """How many variables, so far."""
    written: dict[str, str] = field(default_factory=dict)
    """The text of the template by the key that it gives a value."""

    def table(self, table: Mapping[str, Any], path: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in table.items():
            name = self._text(key, f"{path}.{key}" if path else key)
            at = f"{path}.{name}" if path else name
            if name in found:
                raise ConfigError(f"{self.file}: {at}: expected each key once, got {key!r} as a second one")
            found[name] = self.table(value, at) if isinstance(value, Mapping) else self._value(value, at)
        return found

    def _value(self, value: Any, at: str) -> Any:
        if isinstance(value, list):
            return [self._value(each, at) for each in value]
        if isinstance(value, str) and _REFERENCE.search(value):
            self.written[at] = value
        return self._resolved(value, at, ())

    def _resolved(self, value: Any, at: str, inside: tuple[str, ...]) -> Any:
        """``value`` without variables. ``inside``: the variables whose values have led to it."""
        match value:
            case str():
                whole = _REFERENCE.fullmatch(value)
                return self._of(whole[2], at, inside) if whole and whole[2] else self._text(value, at, inside)
            case list():
                return [self._resolved(each, at, inside) for each in value]
            case Mapping():
                return {self._text(key, at, inside): self._resolved(each, at, inside) for key, each in value.items()}
        return value

    def _text(self, text: str, at: str, inside: tuple[str, ...] = ()) -> str:
        def replaced(found: re.Match[str]) -> str:
            if found[1]:
                return found[1]
            value = self._of(found[2], at, inside)
            if type(value) not in (str, int):
                raise ConfigError(
                    f"{self.file}: {at}: expected variable {found[2]} to be text or a whole number inside {text!r}, "
                    f"got {value!r}"
                )
            return str(value)

        found = _REFERENCE.sub(replaced, text)
        if len(found) > _LONGEST:
            raise ConfigError(
                f"{self.file}: {at}: expected a text of at most {_LONGEST:,} characters, got {len(found):,}"
            )
        return found

    def _of(self, name: str, at: str, inside: tuple[str, ...]) -> Any:
        self.replaced += 1
        if self.replaced > _MOST:
            raise ConfigError(
                f"{self.file}: {at}: expected at most {_MOST:,} replaced variables in a channel, found more: values of "
                "variables have variables themselves"
            )
        if name in inside:
            raise ConfigError(
                f"{self.file}: {at}: expected variable {name} to have a value without itself, got "
                f"{' -> '.join((*inside, name))}"
            )
        if name not in self.values:
            known = ", ".join(sorted(self.values))
            raise ConfigError(
                f"{self.file}: {at}: expected variable {name} in [{VARIABLES}] or [{INSTANCES}], found none; "
                f"known: {known}"
            )
        return self._resolved(self.values[name], at, (*inside, name))
