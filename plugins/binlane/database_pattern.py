"""``(pattern)`` of a shard list: a regular expression over the names of databases, whose group ``shard`` is the shard.

The dialect is RE2's, which takes time linear in a name: no pattern, and no name that a user of the source invents, can
hold up a plan. PyArrow brings RE2, and every plan loads PyArrow.
"""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa

from binlane import arrow_compute as pc

GROUP: Final = "shard"
_MOST: Final = 10_000
"""Characters: room for a list of a thousand names."""
_OPENED: Final = re.compile(r"((?<!\\)(?:\\\\)*\(\?)<(?=[A-Za-z_])")


class DatabasePattern:
    """A compiled ``(pattern)``; it has to match the whole name."""

    def __init__(self, text: str, *, folds_names: bool = False) -> None:
        """``folds_names``: letter case does not count. Raises ValueError, with the reason, for a text that is no
        regular expression of RE2 or has no group ``shard``."""
        # (?<name>...) and (?P<name>...) are the same to RE2; Python's own dialect has the second form alone
        if len(text) > _MOST:
            raise ValueError(f"more than {_MOST:,} characters")
        text = _OPENED.sub(r"\1P<", text)
        self._expression = f"{'(?i)' if folds_names else ''}\\A(?:{text})\\z"
        self._texts: dict[str, str | None] = {}
        if "[:" in text:
            raise ValueError("a class such as [:alpha:]; write its letters, as in [a-z]")
        try:
            # Python counts the groups. It refuses some expressions that RE2 takes; without [:alpha:] and its like, it
            # never numbers groups otherwise.
            numbers = re.compile(text).groupindex
        except re.error as error:
            raise ValueError(f"{error.msg} at character {(error.pos or 0) + 1}") from None
        except RecursionError:
            raise ValueError("too many groups in each other") from None
        if GROUP not in numbers:
            raise ValueError(f"no group (?<{GROUP}>...)")
        self._replacement = f"\\{numbers[GROUP]}"
        if numbers[GROUP] > 9:
            raise ValueError(f"more than 8 groups before (?<{GROUP}>...); write them as (?:...)")
        try:
            self.shard_of("")
        except pa.ArrowInvalid as error:
            raise ValueError(str(error).partition("\n")[0]) from None

    def shard_of(self, database: str) -> str | None:
        """The text of the group; None if the name does not match, or the text is empty or begins with ``#``, as the
        names of special shards do."""
        if database not in self._texts:
            self._texts[database] = self._found(database)
        return self._texts[database]

    def _found(self, database: str) -> str | None:
        name = pa.scalar(database)
        if not pc.match_substring_regex(name, self._expression).as_py():
            return None
        text: str = pc.replace_substring_regex(name, self._expression, self._replacement, max_replacements=1).as_py()
        return None if text == "" or text.startswith("#") else text
