"""One table of a TOML file with its path: errors name the file, the key, the expected and the found value."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NoReturn

from binlane.errors import ConfigError, without_accounts
from binlane.lazy_dataclass import dataclass

_SECRETS: Final = ("announce.command", "spark.conf")
"""Keys whose values, or those below them, may be secrets: errors do not show them."""


@dataclass(frozen=True, slots=True)
class Node:
    """One table of a TOML file. Methods raise only ConfigError."""

    value: Mapping[str, Any]
    file: str
    path: str = ""
    written: Mapping[str, str] = field(default_factory=dict)
    """The texts with variables that a template has for its keys, by full path (``template``)."""

    @classmethod
    def read(cls, file: Path) -> Node:
        """The whole file as a node."""
        try:
            with file.open("rb") as stream:
                return cls(tomllib.load(stream), str(file))
        except OSError as exc:
            raise ConfigError(f"{file}: cannot be read: {exc.strerror}") from exc
        # beside its own errors tomllib raises ValueError for a number of very many digits, RecursionError for nesting
        except (ValueError, RecursionError) as exc:
            raise ConfigError(f"{file}: expected TOML: {exc}") from exc

    def at(self, key: str) -> str:
        """The full path of one of this table's keys."""
        return f"{self.path}.{key}" if self.path else key

    def wrong(self, key: str, expected: str, found: object = None) -> NoReturn:
        """Raise ConfigError with the expected value of ``key``; ``found``: the found value, if it is not the key's
        own."""
        if found is None and key not in self.value:
            raise ConfigError(f"{self.file}: {self.at(key)}: expected {expected}, got nothing")
        value = self.value[key] if found is None else found
        hidden = f"a value of the type {type(value).__name__}, which is not shown: it may be a secret"
        shown = hidden if self._is_secret(key) else without_accounts(repr(value))
        written = self.written.get(self.at(key))
        source = "" if written is None else f", from {written!r}"
        raise ConfigError(f"{self.file}: {self.at(key)}: expected {expected}, got {shown}{source}")

    def _is_secret(self, key: str) -> bool:
        path = self.at(key)
        return any(path == each or path.startswith(f"{each}.") for each in _SECRETS)

    def only(self, known: Collection[str]) -> None:
        """Refuse unknown keys: a misspelled key would otherwise silently have its default."""
        for key in sorted(self.value.keys() - set(known)):
            nearest = get_close_matches(key, known, n=1)
            hint = f"did you mean {nearest[0]}? " if nearest else ""
            raise ConfigError(f"{self.file}: {self.at(key)}: unknown key; {hint}known: {', '.join(known)}")

    def table(self, key: str) -> Node:
        """A table inside this one; a missing one is empty."""
        value = self.value.get(key, {})
        if not isinstance(value, Mapping):
            self.wrong(key, "a table")
        return Node(value, self.file, self.at(key), self.written)
