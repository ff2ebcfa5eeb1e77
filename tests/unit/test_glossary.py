"""docs/glossary.md: one word for each thing, and no second meaning for the words that matter most."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "glossary.md"
MOST_WORDS: Final = 40

OTHER_MEANINGS: Final = {
    "filter": r"[Ff]ilter[ _](?:job|step|task|worker|engine)|Filter(?:Settings|Engine|Job|Progress)\b|work[./]filter\b",
    "fold": r"\bfold_(?:scans|window|requests)\b|\b_folded\(|\bthe fold\b|\bfolds? (?:requests|barriers|names|scans)\b",
    "EventMetadataFilter": r"\bmetadata[ _-]filter job\b|\bEventMetadata(?!Filter)\w*",
    "window": r"\b[Aa] batch of (?:the )?log\b|\bbatch window\b",
    "segment": r"\b(?:log|binlog) (?:chunk|slice)s?\b",
    "block": r"\b(?:transaction|lane) (?:batch|group)es?\b",
    "watermark": r"\bhigh[- ]water mark\b|\bcheckpoint (?:of|on) the target\b",
    "position": r"\blane'?s? offsets?\b",
    "first copy": r"\b(?:initial|full) (?:load|copy|snapshot) of the source\b|\bseed copy\b",
    "drift": r"\b(?:data|row) (?:divergence|skew)\b",
}
"""By word: what must not be written, in the package and its pages, because it gives the word a second meaning, or its
meaning a second word."""


def words() -> list[str]:
    return [line.split("|")[1].strip() for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")][1:]


def texts() -> Iterator[Path]:
    for folder, pattern in (("plugins", "*.py"), ("dags", "*.py"), ("docs", "*.md"), ("shard_list", "*.md")):
        yield from sorted((ROOT / folder).rglob(pattern))
    yield from (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))


def test_the_page_has_each_word_once_in_order() -> None:
    assert words() == sorted(set(words()), key=str.lower)
    assert len(words()) <= MOST_WORDS


@pytest.mark.parametrize("word", OTHER_MEANINGS)
def test_a_word_has_one_meaning(word: str) -> None:
    assert word in words()
    pattern = re.compile(OTHER_MEANINGS[word])
    assert not [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
