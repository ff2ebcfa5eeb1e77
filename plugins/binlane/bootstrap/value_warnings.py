"""What a server says of values that it has stored otherwise than they were sent.

Rows of a first copy, a recopy, a repair or a dump come from a server that stores them, so the target stores them
unchanged or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from binlane.bootstrap.sessions import Session
from binlane.errors import ApplyError
from binlane.model import TableKey
from binlane.sessions.pins import MOST_WARNINGS

_TRUNCATED: Final = 1265
_OF_TEXT: Final = frozenset({1287, 1300, 1681, 3719, 3720, 3778})
"""Codes that tell of a statement's words, or of the bytes of a literal, and of no stored value: deprecated character
sets and collations, and bytes for a binary column that are no text (1300; in a column of text they have 1366, too)."""
_CUT: Final = 0
"""The code of what is said of warnings that the server does not list."""


def value_warnings(session: Session, enums: Callable[[], Collection[str]]) -> list[tuple[int, str]]:
    """Of the warnings of the last statement, codes and texts of those that tell of a changed value. ``enums``: the
    names of the table's columns of type ENUM, whose error value is stored unchanged, with a warning."""
    if not (count := session.warnings):
        return []
    texts = [(int(code), message.decode(errors="replace")) for _, code, message in session.rows("SHOW WARNINGS")]
    names = tuple(f"'{name}'" for name in enums()) if any(code == _TRUNCATED for code, _ in texts) else ()
    changed = [
        (code, text)
        for code, text in texts
        if code not in _OF_TEXT and not (code == _TRUNCATED and any(name in text for name in names))
    ]
    # the list ends at max_error_count, and so may the answer's count
    is_cut = count > len(texts) or count >= MOST_WARNINGS
    return changed or [(_CUT, f"{count:,} warnings or more, of which it lists {len(texts):,}")] * is_cut


def require_unchanged(session: Session, table: TableKey, enums: Callable[[], Collection[str]]) -> None:
    """Raise ApplyError if the last statement, which has written rows, has stored another value than it has sent."""
    for code, text in value_warnings(session, enums):
        if code == _CUT:
            raise ApplyError(
                f"{table}: expected all warnings of a statement, to know whether the target has stored its values "
                f"unchanged, found {text}: SET GLOBAL max_error_count = {MOST_WARNINGS} on the target, or give "
                "binlane's account SESSION_VARIABLES_ADMIN there; if that is so already, give the table's ENUM columns "
                "members instead of their error value '' on the source (of a dump: make it with --hex-blob and a "
                "smaller --net-buffer-length)"
            )
        raise ApplyError(
            f"{table}: the target would not store the source's value unchanged: {text} ({code}); the source's row is "
            "damaged, or the target's definitions, version and settings differ from the source's"
        )
