"""Output to a terminal and to a task's log; the only module that imports rich (tests/unit/test_imports.py).

No text is parsed as markup, and every text goes through ``safe_text``: a database's name may be ``[/x]``, have an
escape sequence or reverse the text's direction.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Literal, TextIO

from rich.console import Console, Group
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from binlane.safe_text import one_line, printable

__all__ = ["Bars", "Grid", "Terminal", "View", "as_text"]

_WIDTH: Final = 110
Justify = Literal["left", "right"]
Style = Literal["", "bold", "dim", "red", "bold red", "green"]


class Grid:
    """A table. ``lines``: cells keep their line breaks; only for text of binlane's own."""

    def __init__(self, title: str = "", *, lines: bool = False, caption: str = "") -> None:
        self._title, self._table = title, Table()
        self.caption = caption
        self._lines = lines

    @classmethod
    def of_facts(cls, title: str) -> Grid:
        """Names and values without a frame."""
        grid = cls(title, lines=True)
        grid._table = Table(show_header=False, box=None, pad_edge=False)
        return grid

    def columns(self, *headings: str, justify: Justify = "left", fold: bool = False, no_wrap: bool = False) -> Grid:
        """Add columns with the same options; returns the grid, for further calls."""
        for heading in headings:
            overflow: Literal["fold", "ellipsis"] = "fold" if fold else "ellipsis"
            self._table.add_column(Text(one_line(heading)), justify=justify, overflow=overflow, no_wrap=no_wrap)
        return self

    def row(self, *cells: str) -> None:
        """Add a row."""
        safe = printable if self._lines else one_line
        self._table.add_row(*(Text(safe(cell)) for cell in cells))

    @property
    def whole(self) -> Group:
        """Title and table, for rich: it would break the title of a narrow table."""
        self._table.caption = Text(one_line(self.caption)) if self.caption else None
        title = [Text(one_line(self._title), style="italic")] if self._title else []
        return Group(*title, self._table)


View = str | Grid | Sequence[Grid]
"""Output: a text of one or more lines, a table, or several tables."""


class Terminal:
    """Standard output or standard error, or another stream."""

    def __init__(self, *, stderr: bool = False, file: TextIO | None = None, width: int | None = None) -> None:
        self._stderr = stderr
        self._console = Console(
            stderr=stderr, file=file, width=width, markup=False, emoji=False, highlight=False, soft_wrap=False
        )

    @property
    def is_terminal(self) -> bool:
        """Whether the stream is a terminal."""
        return self._console.is_terminal

    def print(self, view: View) -> None:
        """Print a view; text is not wrapped."""
        if isinstance(view, str):
            self._console.print(Text(printable(view)), soft_wrap=True)
        elif isinstance(view, Grid):
            self._console.print(view.whole)
        else:
            self._console.print(Group(*(grid.whole for grid in view)))

    def line(self, *parts: tuple[str, Style]) -> None:
        """Print one line of texts, each in its style."""
        text = Text()
        for part, style in parts:
            text.append(one_line(part), style=style or None)
        self._console.print(text, soft_wrap=True)

    def message(self, *parts: tuple[str, Style]) -> None:
        """Print texts with their own line breaks, each in its style."""
        text = Text()
        for part, style in parts:
            text.append(printable(part), style=style or None)
        self._console.print(text, soft_wrap=True)

    def exactly(self, text: str) -> None:
        """Print a text unchanged to a pipe or file, and with escapes to a terminal."""
        self._console.file.write(printable(text) if self.is_terminal else text)

    @contextmanager
    def bars(self, *, seconds_left: bool = False) -> Iterator[Bars]:
        """Progress bars inside the with block; none if the stream is not a terminal."""
        description = TextColumn("{task.description}", markup=False)
        counted: ProgressColumn = (
            TextColumn("{task.fields[said]}", markup=False) if seconds_left else MofNCompleteColumn()
        )
        times = (TimeElapsedColumn(), TimeRemainingColumn()) if seconds_left else (TimeElapsedColumn(),)
        hidden = not self.is_terminal
        columns = (description, BarColumn(), counted, *times)
        with Progress(*columns, console=self._console, transient=True, disable=hidden) as progress:
            yield Bars(progress)


class Bars:
    """Progress bars by number."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def add(self, description: str, total: int, said: str = "") -> int:
        """Add a bar; its number."""
        return int(self._progress.add_task(one_line(description), total=total, said=one_line(said)))

    def show(
        self, bar: int, completed: int, description: str | None = None, said: str = "", total: int | None = None
    ) -> None:
        """Set a bar's progress and texts, and a new ``total``."""
        from rich.progress import TaskID

        named = None if description is None else one_line(description)
        self._progress.update(TaskID(bar), completed=completed, description=named, said=one_line(said), total=total)


def as_text(view: View) -> str:
    """A view as plain text, for a task's log."""
    out = io.StringIO()
    console = Console(file=out, width=_WIDTH, no_color=True, force_terminal=False, markup=False, emoji=False)
    if isinstance(view, str):
        return printable(view)
    grids = [view] if isinstance(view, Grid) else view
    console.print(Group(*(grid.whole for grid in grids)))
    return out.getvalue().rstrip()


def unexpected(traceback: str) -> None:
    """Print the traceback of an unexpected error."""
    sys.stderr.write(printable(traceback))


def escape_unencodable() -> None:
    """From now on standard output writes a character that its encoding lacks as an escape, instead of failing."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def flushed() -> bool:
    """Whether standard output could be written to its end. If not, the rest is dropped: Python would try again when it
    ends, fail, and end with exit code 120."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def all_flushed() -> bool:
    """Whether both outputs could be written to their end. If not, the rest stays for Python's own end to report."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return False
    return True
