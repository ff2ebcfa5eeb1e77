"""Parts of the documentation that programs write: each stands between two lines of comment."""

from __future__ import annotations


def replaced(page: str, begin: str, end: str, part: str, what: str) -> str:
    """The page with the lines between its two marks replaced. Raises ValueError if a mark is missing; ``what`` names
    the part and its place."""
    before, first, rest = page.partition(begin)
    _, last, behind = rest.partition(end)
    if not first or not last:
        raise ValueError(f"{what}: expected the lines {begin!r} and {end!r}: put them back around the part")
    return f"{before}{begin}\n{part}{end}{behind}"
