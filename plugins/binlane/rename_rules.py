"""The rules of ``[rename]``: pairs of names, or of patterns with one star each, and the check of a list of rules; names
that belong to no user.

Imports no other package, so that a channel file can be checked without loading them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

Rule = tuple[str, str]
"""The source's side and the target's."""
SYSTEM: Final = frozenset({"mysql", "information_schema", "performance_schema", "sys", "binlane"})
"""The servers' own databases and binlane's on the target, which cannot be renamed."""
_FILE: Final = "#mysql50#"
NAMES_A_FILE: Final = f"a name that begins with {_FILE}, with which MariaDB finds an object of another name"
"""Behind this prefix stands the name of a file or folder as it is on the disk, so every object has two names: whoever
compares names, as a filter, takes one object for two."""
USERS_DATABASE: Final = f"a database that is neither the server's own nor binlane's, and not {NAMES_A_FILE}"
"""What is expected where ``is_system`` is true."""
LONGEST: Final = 64
"""Maximum characters of a database's name."""
_STAR: Final = "*"


def text_of(rule: Rule) -> str:
    """A rule as in the channel's file."""
    return f'"{rule[0]}" = "{rule[1]}"'


def problem_of(rules: Sequence[Rule]) -> tuple[str, str] | None:
    """The source's side of the first invalid rule, and the expected value; None if all are valid."""
    for old, new in rules:
        if max(old.count(_STAR), new.count(_STAR)) > 1 or old.count(_STAR) != new.count(_STAR):
            return old, "one star on each side, or no star at all"
        if not new or not old or max(len(old), len(new)) > LONGEST:
            return old, f"names or patterns of 1 to {LONGEST} characters"
        if is_system(old) or is_system(new):
            return old, USERS_DATABASE
    for (old, new), (other, its_new) in combinations(rules, 2):
        if matches(other.replace(_STAR, "\0"), old, folds=True):
            return other, (f"a rule that can apply: {text_of((old, new))} comes first and matches the same databases")
        if _meet(lower(new), lower(its_new)):
            return other, (f"new names that differ from those of {text_of((old, new))}: two databases would become one")
    return None


def lower(name: str) -> str:
    """A name in lower case, letter by letter, as the servers' ``my_casedn_str`` does in their system character set.

    Not ``str.lower``, which depends on a letter's neighbours (final sigma) and may turn one letter into two.
    """
    return name.lower() if name.isascii() else "".join(letter.lower()[:1] for letter in name)


def is_system(database: str) -> bool:
    """Whether a server takes the name for one of its own databases, or for binlane's, or may take it for any one."""
    return lower(database) in SYSTEM or names_a_file(database)


def names_a_file(name: str) -> bool:
    """Whether it is a name of ``NAMES_A_FILE``, of a database or of a table. To MySQL 8.0 and newer it is a name as
    any other, but the other server of a channel may be MariaDB."""
    return name[: len(_FILE)].lower() == _FILE


def matches(name: str, pattern: str, folds: bool) -> bool:
    """Whether a name matches a pattern with at most one star; ``folds``: without regard to letter case."""
    if folds:
        name, pattern = lower(name), lower(pattern)
    if _STAR not in pattern:
        return name == pattern
    before, _, behind = pattern.partition(_STAR)
    return len(name) >= len(before) + len(behind) and name.startswith(before) and name.endswith(behind)


def carried(name: str, old: str, new: str) -> str:
    """The new name of ``name``, which matches ``old``."""
    before, _, behind = old.partition(_STAR)
    return new.replace(_STAR, name[len(before) : len(name) - len(behind)]) if _STAR in old else new


def _meet(one: str, other: str) -> bool:
    """Whether some name may match both patterns."""
    if _STAR not in one or _STAR not in other:
        return matches(one, other, folds=False) if _STAR not in one else matches(other, one, folds=False)
    (before, _, behind), (its_before, _, its_behind) = one.partition(_STAR), other.partition(_STAR)
    starts = before.startswith(its_before) or its_before.startswith(before)
    return starts and (behind.endswith(its_behind) or its_behind.endswith(behind))
