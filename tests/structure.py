"""``make structure``: the order of imports as a drawing, docs/images/structure.svg, and as lists in CONTRIBUTING.md.

Both come from the tables of ``tests/unit/test_imports.py``, which every import is checked against.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from lab.written import replaced
from tests.unit.test_imports import MAY_IMPORT, ONLY_IN, PURE

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "CONTRIBUTING.md"
DRAWING: Final = ROOT / "docs" / "images" / "structure.svg"
_BEGIN: Final = "<!-- imports: written by `make structure` from tests/unit/test_imports.py -->\n"
_END: Final = "<!-- end of imports -->\n"


@dataclass(frozen=True, slots=True)
class Layer:
    """Packages that belong together: a band of the drawing."""

    name: str
    subject: str
    packages: tuple[str, ...]
    """The first words of the parts: ``plan`` stands for ``plan.block``, too."""


LAYERS: Final = (
    Layer("doors", "what people, Airflow and Spark call", ("airflow_plugin", "cli", "board", "spark_jobs")),
    Layer("orchestration", "the steps of a window, and the commands", ("orchestration", "health")),
    Layer("copies", "first copies, readiness, corrections, restores", ("readiness", "repair", "restore", "bootstrap")),
    Layer("proof", "before the first write, and afterwards", ("precheck", "verify")),
    Layer("apply", "blocks, DDL and barriers on the target", ("apply",)),
    Layer("servers", "what the servers hold, and binlane's state on the target", ("source", "servers", "state")),
    Layer(
        "work",
        "a window's files, and the job that plans it",
        ("spark_engine", "spark_daemon", "work"),
    ),
    Layer("plan", "transactions -> shards -> lanes -> blocks; no I/O", ("plan", "shards")),
    Layer("log", "bytes -> events -> statements and rows; no I/O", ("sql", "schema", "binlog", "kernels")),
    Layer("channel", "a channel's file, and connections", ("driver", "connections", "config")),
    Layer(
        "base",
        "values and errors that all share",
        (
            *("json_codec", "formats", "extension", "sessions"),
            *("errors", "model", "choices", "rename_rules", "arrow_compute", "database_pattern", "collation_rules"),
            *("garbage", "blas_threads", "regular_files", "safe_path", "safe_text", "activity"),
            *("lazy_dataclass", "answers", ""),
        ),
    ),
)  # fmt: skip
"""From the top to the bottom: a layer imports itself and those below it."""

_WIDTH, _LEFT, _BOX, _GAP, _ROW = 1240, 410, 24, 8, 32
_LETTER: Final = 7.3
"""Width of a letter in the drawing's monospaced font at 12 px, with its share of the box's edges."""


def layer_of(part: str) -> int:
    """The number of a part's layer, 0 at the top. Raises KeyError for a part that no layer has."""
    first = part.partition(".")[0]
    for number, layer in enumerate(LAYERS):
        if first in layer.packages:
            return number
    raise KeyError(f"{part}: no layer of tests/structure.py has it: add it to the one that it belongs to")


def upward() -> list[tuple[str, str]]:
    """Imports that the table allows and that lead to a layer above."""
    return [(part, each) for part, row in MAY_IMPORT.items() for each in row if layer_of(each) < layer_of(part)]


def parts_of(number: int) -> list[str]:
    """A layer's parts, those that import others of the layer first."""
    parts = [part for part in MAY_IMPORT if part and layer_of(part) == number]
    return sorted(parts, key=lambda part: (-_height(part), LAYERS[number].packages.index(part.partition(".")[0]), part))


def _height(part: str) -> int:
    """How many steps lead down from a part inside its layer."""
    below = [each for each in MAY_IMPORT[part] if each != part and layer_of(each) == layer_of(part)]
    return 1 + max(map(_height, below), default=-1)


def drawing() -> str:
    """The layers as an SVG."""
    lines, y = [], 16
    for number, layer in enumerate(LAYERS):
        rows = list(_rows(parts_of(number)))
        height = len(rows) * _ROW + 12
        lines.append(f'<rect class="band" x="8" y="{y}" width="{_WIDTH - 16}" height="{height}" rx="6"/>')
        lines.append(f'<text class="layer" x="20" y="{y + 22}">{escape(layer.name)}</text>')
        lines.append(f'<text class="subject" x="20" y="{y + 38}">{escape(layer.subject)}</text>')
        for row, parts in enumerate(rows):
            for x, width, part in parts:
                top = y + 10 + row * _ROW
                lines.append(f'<rect class="part" x="{x}" y="{top}" width="{width}" height="{_BOX}" rx="4"/>')
                lines.append(f'<text class="name" x="{x + width / 2:g}" y="{top + 16}">{escape(part)}</text>')
        y += height
        if number < len(LAYERS) - 1:
            lines.append(f'<path class="arrow" d="M{_WIDTH / 2:g} {y} v12 m-4 -5 l4 5 l4 -5"/>')
            y += 14
    body = "\n".join(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y + 8}" role="img">\n'
        "<title>binlane's packages: a layer imports itself and the layers below it</title>\n"
        f"<style>{_STYLE}</style>\n{body}\n</svg>\n"
    )


_STYLE: Final = (
    "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1f2933}"
    ".layer{font-weight:700;font-size:13px}.subject{font-size:11px;fill:#52606d}.name{text-anchor:middle}"
    ".band{fill:#f5f7fa;stroke:#cbd2d9}.part{fill:#fff;stroke:#7b8794}.arrow{fill:none;stroke:#7b8794;stroke-width:1.5}"
    "@media(prefers-color-scheme:dark){text{fill:#e4e7eb}.subject{fill:#9aa5b1}.band{fill:#1f2933;stroke:#3e4c59}"
    ".part{fill:#323f4b;stroke:#7b8794}}"
)


def _rows(parts: list[str]) -> Iterator[list[tuple[int, int, str]]]:
    """The boxes of a layer: left edge, width and name, row by row."""
    row: list[tuple[int, int, str]] = []
    x = _LEFT
    for part in parts:
        width = round(len(part) * _LETTER + 16)
        if row and x + width > _WIDTH - 20:
            yield row
            row, x = [], _LEFT
        row.append((x, width, part))
        x += width + _GAP
    yield row


def rendered(page: str) -> str:
    """CONTRIBUTING.md with its lists of imports. Raises ValueError if a mark is missing."""
    rows = "".join(f"| {layer.name} | {_code(layer.packages)} | {layer.subject} |\n" for layer in LAYERS)
    return replaced(
        page,
        _BEGIN,
        _END,
        f"| layer | packages and modules | subject |\n|---|---|---|\n{rows}\n"
        f"- {_code(PURE)} compute: no I/O, no clock, no environment.\n"
        f"{''.join(f'- {line}' for line in _libraries(ONLY_IN))}",
        f"{PAGE}: the imports",
    )


def _libraries(only_in: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for library, parts in only_in.items():
        firsts = dict.fromkeys(part.partition(".")[0] for part in parts)
        whole = [first for first in firsts if all(part in parts for part in MAY_IMPORT if part.split(".")[0] == first)]
        shown = [*whole, *(part for part in parts if part.partition(".")[0] not in whole)]
        yield f"only {_code(shown)} {'import' if len(shown) > 1 else 'imports'} {library}\n"


def _code(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names if name)


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text("utf-8")), "utf-8")
    DRAWING.write_text(drawing(), "utf-8")
    sys.stdout.write(f"{PAGE}\n{DRAWING}\n")
