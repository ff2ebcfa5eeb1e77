"""A TOML table plus where it came from: every error names file and key, what was expected and what was found."""

from __future__ import annotations

import datetime as dt
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from binlane.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Node:
    """One table of a TOML file. Every method raises ConfigError and nothing else."""

    value: Mapping[str, Any]
    file: str
    path: str = ""

    @classmethod
    def read(cls, file: Path) -> Node:
        """The whole file as a node."""
        try:
            with file.open("rb") as stream:
                return cls(tomllib.load(stream), str(file))
        except OSError as exc:
            raise ConfigError(f"{file}: cannot be read: {exc.strerror}") from exc
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
            raise ConfigError(f"{file}: expected TOML: {exc}") from exc

    def at(self, key: str) -> str:
        """The full path of one of this table's keys."""
        return f"{self.path}.{key}" if self.path else key

    def wrong(self, key: str, expected: str) -> NoReturn:
        """Say what ``key`` should have been."""
        found = repr(self.value[key]) if key in self.value else "nothing"
        raise ConfigError(f"{self.file}: {self.at(key)}: expected {expected}, got {found}")

    def only(self, *keys: str) -> None:
        """Refuse keys that nobody reads: a mistyped key would otherwise be a default in silence."""
        if extra := sorted(self.value.keys() - set(keys)):
            raise ConfigError(f"{self.file}: {self.at(extra[0])}: unknown key; known: {', '.join(keys)}")

    def table(self, key: str) -> Node:
        """A table inside this one; an absent one is empty."""
        value = self.value.get(key, {})
        if not isinstance(value, Mapping):
            self.wrong(key, "a table")
        return Node(value, self.file, self.at(key))

    def integer(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """A whole number in ``low`` .. ``high``; without a default the key must be there."""
        value = self.value.get(key, default)
        if type(value) is not int or not low <= value <= high:  # bool is an int to isinstance
            self.wrong(key, f"an integer {low:,}..{high:,}")
        return value

    def boolean(self, key: str, default: bool) -> bool:
        """``true`` or ``false``."""
        value = self.value.get(key, default)
        if not isinstance(value, bool):
            self.wrong(key, "true or false")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """Text that is not empty; without a default the key must be there."""
        value = self.value.get(key, default)
        if not isinstance(value, str) or not value.strip():
            self.wrong(key, "text")
        return value

    def optional_text(self, key: str) -> str | None:
        """Text that is not empty, or None if the key is not there."""
        return self.text(key) if key in self.value else None

    def choice(self, key: str, known: tuple[str, ...], default: str) -> str:
        """One of ``known``."""
        value = self.value.get(key, default)
        if value not in known:
            self.wrong(key, f"one of {', '.join(known)}")
        return str(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; empty if the key is not there."""
        value = self.value.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            self.wrong(key, "a list of texts")
        return tuple(value)

    def day(self, key: str, default: dt.date) -> dt.date:
        """A date; a date with a time is refused, since its zone would be a second opinion."""
        value = self.value.get(key, default)
        if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
            self.wrong(key, "a date such as 2026-01-01")
        return value
