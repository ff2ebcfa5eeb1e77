"""Java's ``.properties`` syntax, the format of Tungsten's shard lists.

Rules: ``java.util.Properties.load(Reader)``. Keys end at an unescaped ``=``, ``:`` or blank; ``#`` and ``!`` begin
comments; a backslash escapes one character, begins ``\\uXXXX``, or at a line's end joins the next line. Unlike Java,
blanks at a value's end are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass

_BLANKS: Final = " \t\f"
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_UNWRITABLE: Final = {
    "\t": "\\t",
    "\n": "\\n",
    "\r": "\\r",
    "\f": "\\f",
    "\\": "\\\\",
    " ": "\\ ",
    "=": "\\=",
    ":": "\\:",
}
_HEX: Final = re.compile(r"[0-9a-fA-F]{4}")


@dataclass(frozen=True, slots=True)
class Property:
    """One entry: key and value without escapes, and its first line, counted from 1."""

    key: str
    value: str
    line: int


def parse_properties(text: str, path: str) -> Iterator[Property]:
    """The entries in the order of the file, repeated keys included. Raises ConfigError with file and line."""
    for line, logical in _logical_lines(text):
        cut = _key_end(logical)
        rest = logical[cut:].lstrip(_BLANKS)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANKS)
        where = f"{path}:{line}"
        yield Property(_unescaped(logical[:cut], where), _unescaped(rest, where).rstrip(), line)


def escape_key(key: str) -> str:
    """The key with the escapes that a reader of the file needs."""
    escaped = "".join(_UNWRITABLE.get(char, char) for char in key)
    return "\\" + escaped if escaped[:1] in ("#", "!") else escaped


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    begun, joined = 0, ""
    for number, natural in enumerate(_LINE_END.split(text), start=1):
        line = natural.lstrip(_BLANKS)
        if begun == 0:
            if line[:1] in ("", "#", "!"):
                continue
            begun = number
        slashes = len(line) - len(line.rstrip("\\"))
        if slashes % 2 == 1:
            joined += line[:-1]
            continue
        yield begun, joined + line
        begun, joined = 0, ""
    if begun != 0:
        yield begun, joined


def _key_end(line: str) -> int:
    at = 0
    while at < len(line) and line[at] not in "=:" + _BLANKS:
        at += 2 if line[at] == "\\" else 1
    return min(at, len(line))


def _unescaped(text: str, where: str) -> str:
    found: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "\\" and at < len(text):
            char = text[at]
            at += 1
            if char == "u":
                if _HEX.fullmatch(text, at, at + 4) is None:
                    raise ConfigError(f"{where}: expected four hex digits after \\u, got {text[at : at + 4]!r}")
                char = chr(int(text[at : at + 4], 16))
                at += 4
            else:
                char = _ESCAPES.get(char, char)
        found.append(char)
    try:  # two \u escapes may be the halves of one character
        return "".join(found).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise ConfigError(f"{where}: a \\u escape is half a character; write both of its surrogates") from None
