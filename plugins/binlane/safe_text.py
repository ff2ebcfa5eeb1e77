"""Makes text from a log, a server or a file safe to show: it can neither control a terminal nor change a page.

Escapes such as ``\\x1b`` and ``\\u202e`` replace control characters, as in terminals' escape sequences, and invisible
characters that change the text around them: bidirectional controls, invisible separators, halves of surrogate pairs.
A statement is shown without what may be a password in it.
board/static/draw.js has the same list of characters; a test compares the two.
"""

from __future__ import annotations

import re
from typing import Final

ACTIVE: Final = (
    (0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x61C, 0x61C), (0x180E, 0x180E), (0x200B, 0x200F),
    (0x2028, 0x202E), (0x2060, 0x206F), (0xD800, 0xDFFF), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB), (0xE0000, 0xE007F),
)  # fmt: skip
"""First and last character of each range. Tab and newline are left out; ``one_line`` escapes them, too."""


def _class(ranges: tuple[tuple[int, int], ...]) -> str:
    return "[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges) + "]"


_ACTIVE: Final = re.compile(_class(ACTIVE))
_BREAKING: Final = re.compile(_class((*ACTIVE, (0x09, 0x0A))))
_SECRET: Final = re.compile(
    r"(?<![a-z])(?:IDENTIFIED|PASSWORD|SERVER|OPTION_LIST|(?<!_)CONNECTION(?!_))(?![a-z])|://(?=[^\s'\"]{0,400}@)", re.I
)
"""What stands in front of a password: of an account, of a table with its rows elsewhere (FEDERATED, CONNECT), of a
URL."""
_QUOTE: Final = re.compile(r"['\"]")
_SHOWN: Final = 120
"""Characters of a statement in a message."""
_MARKDOWN: Final = re.compile(r"[\\\[\]<>]")
_MARKS: Final = re.compile(r"[!-/:-@\[-`{-~]")
"""All that Markdown gives a meaning."""
_BORDER: Final = re.compile(r"(?<!\\)\|")
_ADDRESS: Final = re.compile(
    # letters are looked at once: from the first one of them
    r"(?:(?<![a-z0-9+.-])[a-z0-9+.-]++://|www\.|(?<![\w.+-])[\w.+-]++@[\w-]++\.(?=\w))[^\s`<>\[\]()]*",
    re.IGNORECASE,
)
"""What Markdown makes a link of, also without brackets and behind a backslash: the address of a page or of a person."""
_NAMED: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def cut(text: str, characters: int) -> str:
    """The beginning and the end of a text of more than so many characters, some more with what says how many are
    missing: an error has its next step at its end. A text of many lines keeps whole ones."""
    if len(text) <= characters:
        return text
    half = characters // 2
    head, tail = half, len(text) - half
    if (at := text.rfind("\n", half // 2, half)) >= 0:
        head = at + 1
    if (at := text.find("\n", tail, tail + half // 2)) >= 0:
        tail = at
    return f"{text[:head]} ... ({tail - head:,} characters are left out) ... {text[tail:]}"


def printable(text: str) -> str:
    """Text of several lines for a terminal, a task's log or an error."""
    return _ACTIVE.sub(_escaped, text)


def shown(sql: str, characters: int = _SHOWN) -> str:
    """The beginning of a statement in one line, cut before anything that may be a password: where a literal ends is
    told by the session's modes, not by the text."""
    text = " ".join(sql[: 4 * characters].split())
    if (secret := _SECRET.search(text)) is not None:
        quote = _QUOTE.search(text, 0, secret.end())
        return f"{text[: min(characters, secret.end() if quote is None else quote.start())]} ..."
    return text if len(text) <= characters else f"{text[:characters]}..."


def hides_secrets(sql: str) -> bool:
    """Whether a statement may hold a password."""
    return _SECRET.search(sql) is not None


def one_line(text: str) -> str:
    """A name or value inside a line: line breaks become escapes, too."""
    return _BREAKING.sub(_escaped, text)


def json_text(encoded: str) -> str:
    """JSON with these characters as JSON escapes in its strings; it decodes to the same values."""
    return _ACTIVE.sub(_unit, encoded)


def markdown(text: str) -> str:
    """Text for a note, which Airflow renders as Markdown: without links, images and HTML. Addresses are code, which is
    no link; their fence is longer than any other in the text, so that none of these opens or closes it."""
    return _as_markdown(printable(text), _MARKDOWN)


def cut_markdown(text: str, characters: int) -> str:
    """The beginning of what ``markdown`` has made: an address has its fences, or is not there."""
    if len(text) <= characters:
        return text
    for found in _ADDRESS.finditer(text):
        begin = len(text[: found.start()].rstrip("`"))
        if begin >= characters:
            break
        if len(text) - len(text[found.end() :].lstrip("`")) > characters:
            return text[:begin]
    return text[:characters]


def markdown_cell(text: str) -> str:
    """A cell of a table of such a text, whose marks are all shown as they are: no emphasis, no code, no border."""
    return _BORDER.sub(r"\|", _as_markdown(one_line(text), _MARKS))


def _as_markdown(shown: str, marks: re.Pattern[str]) -> str:
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    parts, at = list[str](), 0
    for found in _ADDRESS.finditer(shown):
        parts += [marks.sub(r"\\\g<0>", shown[at : found.start()]), f"{fence}{found[0]}{fence}"]
        at = found.end()
    return "".join((*parts, marks.sub(r"\\\g<0>", shown[at:])))


def _escaped(match: re.Match[str]) -> str:
    number = ord(match[0])
    if match[0] in _NAMED:
        return _NAMED[match[0]]
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _unit(match: re.Match[str]) -> str:
    data = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))
