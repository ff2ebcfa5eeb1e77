"""The JSON files of a MySQL Shell dump, each an object, and its values by their types.

An error says which key and which type, and never the value: a link in place of the file may lead to any file of this
machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass
from binlane.regular_files import open_regular

_T = TypeVar("_T")
_LARGEST: Final = 64 << 20
"""Bytes: a hundred for each of half a million files of rows."""
_MOST_VALUES: Final = 2_000_000
"""In a file: two bytes of JSON may be an object of a hundred bytes in memory."""
_MOST: Final = 1 << 63
_WORDS: Final[Mapping[type, str]] = {
    str: "a text", bool: "true or false", int: "a whole number", list: "a list of texts", dict: "an object",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Metadata:
    """One object of such a file. Methods raise ConfigError."""

    file: Path
    value: Mapping[str, Any]

    @classmethod
    def read(cls, file: Path, todo: str) -> Metadata:
        """``todo``: the next step if there is no such file."""
        try:
            with open_regular(file) as stream:
                data = stream.read(_LARGEST + 1)
        except OSError as exc:
            raise ConfigError(f"--from {file}: cannot be read: {exc.strerror}; {todo}") from exc
        if len(data) > _LARGEST:
            raise ConfigError(
                f"--from {file}: expected at most {_LARGEST:,} bytes, found more; take a dump of fewer tables, or one "
                "of mysqldump"
            )
        if sum(map(data.count, (b",", b"[", b"{"))) > _MOST_VALUES:
            raise ConfigError(
                f"--from {file}: expected at most {_MOST_VALUES:,} values, found more; take a dump of fewer tables, or "
                "one of mysqldump"
            )
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise ConfigError(f"--from {file}: expected a JSON object, found none; {_TODO}")
        return cls(file, value)

    def text(self, key: str) -> str:
        """Empty if it is not there."""
        return _proved(self, key, self._value(key, str, ""))

    def flag(self, key: str, default: bool) -> bool:
        """``default`` if it is not there."""
        return self._value(key, bool, default)

    def number(self, key: str) -> int:
        """0 if it is not there."""
        found = self._value(key, int, 0)
        if not 0 <= found < _MOST:
            raise self.wrong(key, "a number of bytes or rows", "another one")
        return found

    def texts(self, key: str) -> list[str]:
        """A list without repetitions; empty if it is not there."""
        found: list[str] = self._value(key, list, [])
        if not all(isinstance(each, str) for each in found):
            raise self.wrong(key, _WORDS[list], "other values")
        if len({*found}) < len(found):
            raise self.wrong(key, "each name once", "one that is repeated")
        return [_proved(self, key, each) for each in found]

    def part(self, key: str) -> Metadata:
        """An object inside of it; empty if it is not there."""
        return Metadata(self.file, self._value(key, dict, {}))

    def parts(self, key: str) -> list[Metadata]:
        """A list of objects; empty if it is not there."""
        found: list[Any] = self._value(key, list, [])
        if not all(isinstance(each, dict) for each in found):
            raise self.wrong(key, "a list of objects", "other values")
        return [Metadata(self.file, each) for each in found]

    def wrong(self, key: str, expected: str, found: str) -> ConfigError:
        """An error about a value of it."""
        return ConfigError(f"--from {self.file}: {key[:64]!r}: expected {expected}, found {found}; {_TODO}")

    def _value(self, key: str, kind: type[_T], default: _T) -> _T:
        found = self.value.get(key)
        if found is None:
            return default
        if type(found) is not kind:
            raise self.wrong(key, _WORDS[kind], type(found).__name__)
        return found


_TODO: Final = "take a dump that MySQL Shell has written, with its files as they were"


def _proved(where: Metadata, key: str, text: str) -> str:
    """A text of characters: JSON can spell halves of one."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise where.wrong(key, "a text in UTF-8", "half a character") from None
    return text
