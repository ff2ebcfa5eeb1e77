"""Sample outputs of the documentation: stored by a trial, written into the pages between two lines of comment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lab.written import replaced

DOCS: Final = Path(__file__).parents[2] / "docs"
SAMPLES: Final = DOCS / "samples"
_END: Final = "<!-- end of sample {name} -->\n"
_BEGIN: Final = "<!-- sample {name}: written by `make trial` -->\n"
_NAMES: Final = re.compile(r"^<!-- sample (\S+): written", re.MULTILINE)


def wanted() -> frozenset[str]:
    """The names of the samples that the pages have."""
    return frozenset(name for page in sorted(DOCS.glob("*.md")) for name in names_in(page.read_text("utf-8")))


def names_in(page: str) -> tuple[str, ...]:
    """The names of a page's samples."""
    return tuple(_NAMES.findall(page))


def store(shown: Mapping[str, str]) -> None:
    """Keep the samples of a trial that a page shows, and write them into the pages."""
    SAMPLES.mkdir(exist_ok=True)
    for name in wanted() & shown.keys():
        file_of(name).write_text(shown[name], "utf-8")
    for page in sorted(DOCS.glob("*.md")):
        page.write_text(rendered(page.read_text("utf-8")), "utf-8")


def file_of(name: str) -> Path:
    """The file of a sample."""
    return SAMPLES / f"{name}.txt"


def rendered(page: str) -> str:
    """The page with all samples as they are stored. Raises ValueError if a mark is missing, and if no trial has stored
    a sample."""
    for name in names_in(page):
        if not file_of(name).exists():
            raise ValueError(f"sample {name}: no trial has stored it: `make trial`")
        text = f"```\n{file_of(name).read_text('utf-8')}```\n\n"
        page = replaced(page, _BEGIN.format(name=name), _END.format(name=name), text, f"sample {name}")
    return page
