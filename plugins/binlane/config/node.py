"""One table of a TOML file with its path: errors name the file, the key, the expected and the found value."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NoReturn

from binlane.errors import ConfigError, without_accounts
from binlane.lazy_dataclass import dataclass
from binlane.regular_files import open_regular

_MOST_BYTES: Final = 4 << 20
"""Of a file: ten thousand channels of a template have a tenth."""
_DEEPEST: Final = 8
_LONGEST: Final = 400
"""Characters of a key, and of a value that an error quotes."""
_TOKEN: Final = re.compile(
    r"#[^\n]*"
    # texts of many lines, which may end in quotes of their own
    r"|\"{3}(?:[^\\\"]|\\.|\"{1,2}(?!\"))*(?:\"{3,5}|\Z)|'{3}.*?(?:'{3,5}|\Z)"
    r"|\"(?:[^\"\\\n]|\\[^\n])*\"?|'[^'\n]*'?"
    r"|(?P<dot>\.)|(?P<end>[\n=,{}\[\]])",
    re.DOTALL,
)
"""The parts of TOML that tell a dotted key's dots from others, up to the first error: tomllib reads no further."""
SECRETS: Final = ("announce.command", "spark.conf")
"""Keys whose values, or those below them, may be secrets: errors do not show them, nor does `binlane config` what may
be one."""


def _refuse_deep_keys(text: str, file: Path) -> None:
    """Raises ConfigError for a key of ``_DEEPEST`` parts or more: tomllib takes time with the square of their number,
    hours for one of a megabyte."""
    dots = 0
    for token in _TOKEN.finditer(text):
        if token["end"] is not None:
            dots = 0
        elif token["dot"] is not None:
            dots += 1
            if dots >= _DEEPEST - 1:
                raise _too_deep(file)


def _too_deep(file: Path) -> ConfigError:
    return ConfigError(f"{file}: expected at most {_DEEPEST} tables and lists in each other, found more")


def _refuse_bombs(tables: Mapping[str, Any], file: Path) -> None:
    """Raises ConfigError for keys and levels with which nothing else would end well: tomllib counts none of them."""
    level: list[Any] = [tables]
    for _ in range(_DEEPEST):
        keys = [key for each in level if isinstance(each, Mapping) for key in each]
        if long := next((key for key in keys if len(key) > _LONGEST), None):
            raise ConfigError(f"{file}: {long[:40]!r} ...: expected a key of at most {_LONGEST} characters, found more")
        level = [one for each in level for one in _inside(each)]
    if level:
        raise _too_deep(file)


def unknown_key(key: str, known: Collection[str]) -> str:
    """What is said of a key that nothing reads: a misspelled one would otherwise silently have its default."""
    nearest = get_close_matches(key, known, n=1)
    hint = f"did you mean {nearest[0]}? " if nearest else ""
    return f"unknown key; {hint}known: {', '.join(known)}"


def _inside(value: Any) -> Collection[Any]:
    return value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()


def _shown(value: object) -> str:
    text = without_accounts(repr(value))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ... ({len(text):,} characters)"


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
            with open_regular(file) as stream:
                data = stream.read(_MOST_BYTES + 1)
        except OSError as exc:
            raise ConfigError(f"{file}: cannot be read: {exc.strerror}") from exc
        if len(data) > _MOST_BYTES:
            raise ConfigError(f"{file}: expected a file of at most {_MOST_BYTES:,} bytes, found more")
        # beside its own errors tomllib raises ValueError for a number of very many digits, RecursionError for nesting
        try:
            text = data.decode("utf-8")
            _refuse_deep_keys(text, file)
            found = tomllib.loads(text)
        except (ValueError, RecursionError) as exc:
            raise ConfigError(f"{file}: expected TOML: {exc}") from exc
        _refuse_bombs(found, file)
        return cls(found, str(file))

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
        shown = hidden if self._is_secret(key) else _shown(value)
        written = self.written.get(self.at(key))
        source = "" if written is None else f", from {written!r}"
        raise ConfigError(f"{self.file}: {self.at(key)}: expected {expected}, got {shown}{source}")

    def _is_secret(self, key: str) -> bool:
        path = self.at(key)
        return any(path == each or path.startswith(f"{each}.") for each in SECRETS)

    def only(self, known: Collection[str]) -> None:
        """Refuse unknown keys."""
        for key in sorted(self.value.keys() - set(known)):
            raise ConfigError(f"{self.file}: {self.at(key)}: {unknown_key(key, known)}")

    def table(self, key: str) -> Node:
        """A table inside this one; a missing one is empty."""
        value = self.value.get(key, {})
        if not isinstance(value, Mapping):
            self.wrong(key, "a table")
        return Node(value, self.file, self.at(key), self.written)
