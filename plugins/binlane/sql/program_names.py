"""Names of routines and triggers as the servers compare them, which is by ``utf8mb3_general_ci``.

For it a letter is its base letter, without regard to case: ``app.évil()`` calls ``app.evil``. So it is a table of one
letter for each letter, and not a rule of Unicode. Names of databases, tables and views are compared by bytes, or in
lower case (``schema.letter_case``); of a routine's database MySQL may take each spelling that this collation takes for
one.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Mapping
from typing import Final

_SPANS: Final = """
00b5-00dd 00e0-0148 014b-017f 0183-0199 01a0-0233 0253-025b 0260-0260 0263-0263 0268-0269 026f-026f 0272-0275 0280-0280
0283-0283 0288-0288 028a-028b 0292-0292 0345-0345 0386-0386 0388-03d6 03db-03f1 0400-040e 0430-0438 043a-0481 048d-04c4
04c8-04c8 04cc-04cc 04d0-04f5 04f8-04f9 0561-0586 1e00-1e99 1e9b-1ef9 1f00-1f70 1f72-1f72 1f74-1f74 1f76-1f76 1f78-1f78
1f7a-1f7a 1f7c-1f7c 1f80-1fba 1fbc-1fbe 1fc2-1fc8 1fca-1fca 1fcc-1fcc 1fd0-1fd2 1fd6-1fda 1fe0-1fe2 1fe4-1fea 1fec-1fec
1ff2-1ff8 1ffa-1ffa 1ffc-1ffc 2170-217f 24d0-24e9 ff41-ff5a
"""
"""Letters beyond ASCII that the collation takes for the first letter of their decomposition, in upper case."""
_OTHERS: Final = {
    0x00DF: "s",
    0x03F2: "\u03a3",
    0x0439: "\u0419",
    0x1F71: "\u1fbb",
    0x1F73: "\u1fc9",
    0x1F75: "\u1fcb",
    0x1F77: "\u1fdb",
    0x1F79: "\u1ff9",
    0x1F7B: "\u1feb",
    0x1F7D: "\u1ffb",
}
"""Those that it takes for another one."""
_BEYOND: Final = "?"
"""Stands for each letter beyond the Basic Multilingual Plane."""


def folded_name(name: str) -> str:
    """One spelling for all that the servers take for the same name: ASCII letters in lower case, others as the
    collation has them. Also for a text, in which names are looked for."""
    return name.lower() if name.isascii() else name.translate(_letters())


@functools.cache
def _letters() -> Mapping[int, str]:
    spans = [tuple(int(end, 16) for end in span.split("-")) for span in _SPANS.split()]
    found = {code: _lower_case(chr(code)) for first, last in spans for code in range(first, last + 1)}
    return _Letters(found | {code: _lower_case(chr(code)) for code in range(128)} | _OTHERS)


def _lower_case(letter: str) -> str:
    base = unicodedata.normalize("NFD", letter)[0].upper()
    return base.lower() if base.isascii() else base


class _Letters(dict[int, str]):
    """A table for ``str.translate``."""

    def __missing__(self, code: int) -> str:
        return _BEYOND if code > 0xFFFF else chr(code)
