"""Output to a terminal and to a task's log; the only module that imports rich (tests/unit/test_imports.py).

No text is parsed as markup, and every text goes through ``safe_text``: a database's name may be ``[/x]``, have an
escape sequence or reverse the text's direction.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from textwrap import TextWrapper
from typing import Final, Literal, TextIO

from rich.cells import cell_len
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

from binlane.activity import newest, rested_until
from binlane.lazy_dataclass import dataclass
from binlane.safe_text import markdown_cell, one_line, printable

__all__ = ["Bars", "Grid", "Terminal", "View", "as_text"]

_WIDTH: Final = 110
_SILENCE: Final = 4.0
"""Seconds without output, behind which a command says what it is doing: with the imports before them, or the time until
the timer's next signal, no more than five."""
_LONGEST_SILENCE: Final = 60.0
"""In a log, where each line stays."""
_STDERR: Final = 2
_CLEARED: Final = "\r\x1b[K"
Justify = Literal["left", "right"]
Style = Literal["", "bold", "dim", "red", "bold red", "green", "italic"]


@dataclass(frozen=True, slots=True)
class _Column:
    heading: str
    justify: Justify
    no_wrap: bool

    def widths(self, cells: Sequence[str]) -> tuple[int, int]:
        """The longest part that is not broken, and the longest line. A heading is always wrapped between words."""
        lines = [line for text in cells for line in text.split("\n")]
        whole = lines if self.no_wrap else [word for line in lines for word in line.split(" ")]
        longest = max(map(cell_len, (self.heading, *lines)))
        return max(map(cell_len, (*self.heading.split(" "), *whole))), longest


class Grid:
    """A table. ``lines``: cells keep their line breaks; only for text of binlane's own.

    A name, a GTID or another word is never broken and never cut, however narrow the terminal is: somebody will copy it
    into a command. Cells are wrapped between words alone. Where the longest words have no place beside each other, the
    frame goes; where they still have none, each row becomes lines of heading and cell.
    """

    def __init__(self, title: str = "", *, lines: bool = False, caption: str = "") -> None:
        self._title, self.caption = title, caption
        self._safe = printable if lines else one_line
        self._columns: list[_Column] = []
        self._rows: list[tuple[str, ...]] = []
        self._has_frame = True

    @classmethod
    def of_facts(cls, title: str) -> Grid:
        """Names and values without a frame."""
        grid = cls(title, lines=True)
        grid._has_frame = False
        return grid

    def columns(self, *headings: str, justify: Justify = "left", no_wrap: bool = False) -> Grid:
        """Add columns with the same options; returns the grid, for further calls. ``no_wrap``: not between words."""
        self._columns += [_Column(one_line(heading), justify, no_wrap) for heading in headings]
        return self

    def row(self, *cells: str) -> None:
        """Add a row."""
        self._rows.append(tuple(map(self._safe, cells)))

    def fitted(self, width: int) -> Group:
        """Title and table for rich, which would break the title of a narrow table."""
        title = [_line(one_line(self._title), "italic")] if self._title else []
        if not self._has_frame:
            return Group(*title, *_facts(self._rows, width))
        cells = [[row[at] for row in self._rows] for at in range(len(self._columns))]
        widths = [column.widths(each) for column, each in zip(self._columns, cells, strict=True)]
        # rich would break a caption's names at the width of a narrow table
        caption = [_line(one_line(self.caption))] if self.caption else []
        for framed in (True, False):
            room = width - _between(len(widths), framed=framed)
            if sum(least for least, _ in widths) <= room:
                return Group(*title, self._table(_shares(widths, room), framed=framed), *caption)
        return Group(*title, *self._by_row(width), *caption)

    def markdown(self) -> str:
        """Title and table as Markdown, for a page of Airflow's, which shows no block of code line by line."""
        width = max(len(self._columns), *map(len, self._rows))
        headings = [column.heading for column in self._columns] or [""] * width
        lines = ["|".join(["", *map(_cell, row), ""]) for row in (headings, *self._rows)]
        return "\n".join([_cell(self._title), "", lines[0], "|".join(["", *["---"] * width, ""]), *lines[1:]])

    def _table(self, shares: Sequence[int], *, framed: bool) -> Table:
        table = Table() if framed else Table(box=None, pad_edge=False)
        for column, share in zip(self._columns, shares, strict=True):
            heading = Text(column.heading, no_wrap=False)
            table.add_column(heading, justify=column.justify, no_wrap=column.no_wrap, width=share)
        for row in self._rows:
            table.add_row(*map(Text, row))
        return table

    def _by_row(self, width: int) -> Iterator[Text]:
        """Headings and cells as facts, with an empty line between two rows."""
        headings = [column.heading for column in self._columns]
        for number, row in enumerate(self._rows):
            if number:
                yield _line("")
            yield from _facts([(heading, cell) for heading, cell in zip(headings, row, strict=True) if cell], width)


def _cell(text: str) -> str:
    return markdown_cell(" ".join(text.splitlines()))


def _between(columns: int, *, framed: bool) -> int:
    """Characters that are no column's: two spaces, in a frame two and a border each, and one border more."""
    return 3 * columns + 1 if framed else 2 * (columns - 1)


def _facts(rows: Sequence[Sequence[str]], width: int) -> Iterator[Text]:
    """Lines of name and value. A word that is longer than the line is one line, which the terminal goes on with in its
    next one."""
    names = max((cell_len(row[0]) for row in rows), default=0)
    words = TextWrapper(
        max(width - names - 2, 1),
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        expand_tabs=False,
    )
    for name, *values in rows:
        wrapped = [part for value in values for line in value.split("\n") for part in words.wrap(line) or [""]]
        for number, line in enumerate(wrapped or [""]):
            shown = "" if number else name
            yield _line(f"{shown}{' ' * (names - cell_len(shown) + 2)}{line}".rstrip())


def _line(text: str, style: Style = "") -> Text:
    """One line, which rich neither breaks nor cuts."""
    return Text(text, style=style, no_wrap=True, overflow="ignore")


def _shares(widths: Sequence[tuple[int, int]], room: int) -> list[int]:
    """Of each column the longest line, if there is room for all; else the widest give way, down to their words."""

    def shares(limit: int) -> list[int]:
        return [max(least, min(most, limit)) for least, most in widths]

    # a line that is wider than the room ends nowhere, and may have a million characters
    limit = min(max((most for _, most in widths), default=0), room)
    while limit > 1 and sum(shares(limit)) > room:
        limit -= 1
    return shares(limit)


View = str | Grid | Sequence[Grid]
"""Output: a text of one or more lines, a table, or several tables."""


class _Silence:
    """How long this process has written nothing."""

    def __init__(self) -> None:
        self.bearable = _SILENCE
        self.has_bars = False
        self._since = self._told_at = time.monotonic()
        self._lines = 0
        self._has_line = False

    def breaks(self) -> None:
        """Something is written now."""
        self._since = self._told_at = time.monotonic()
        self._lines = 0
        if self._has_line:
            self._has_line = False
            _write(_CLEARED)

    def tell(self, *_: object) -> None:
        """A signal's handler: no buffer and no lock of an output is touched, whatever was interrupted."""
        now, is_terminal = time.monotonic(), os.isatty(_STDERR)
        due = self.bearable if is_terminal else min(self.bearable * 2**self._lines, _LONGEST_SILENCE)
        since = max(self._since, rested_until())
        if self.has_bars or now - max(self._told_at, since) < due:
            return
        self._told_at, self._lines, self._has_line = now, self._lines + 1, is_terminal
        text = f"... {one_line(str(newest() or 'at work'))} ({now - since:.0f} s)"
        _write(f"{_CLEARED}{text}" if is_terminal else f"{text}\n")


def _write(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(_STDERR, text.encode("utf-8", "backslashreplace"))


_silence: Final = _Silence()


def break_silence(seconds: float = _SILENCE) -> None:
    """From now on this process says on standard error what it is doing, if it has written nothing for some seconds.

    By a timer's signal, not by a thread: this process forks, and a signal also interrupts the waiting for a server.
    """
    _silence.bearable = seconds
    signal.signal(signal.SIGALRM, _silence.tell)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds / 5)
    # Python's end gives the signal back its own meaning, which is to end the process
    atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)


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
        _silence.breaks()
        if isinstance(view, str):
            self._console.print(Text(printable(view)), soft_wrap=True)
        elif isinstance(view, Grid):
            self._show([view])
        else:
            self._show(view)

    def _show(self, grids: Sequence[Grid]) -> None:
        """A line that is wider than the terminal goes on in its next line, where rich would cut it."""
        width = self._console.width
        self._console.print(Group(*(grid.fitted(width) for grid in grids)), crop=False)

    def line(self, *parts: tuple[str, Style]) -> None:
        """Print one line of texts, each in its style."""
        _silence.breaks()
        text = Text()
        for part, style in parts:
            text.append(one_line(part), style=style or None)
        self._console.print(text, soft_wrap=True)

    def message(self, *parts: tuple[str, Style]) -> None:
        """Print texts with their own line breaks, each in its style."""
        _silence.breaks()
        text = Text()
        for part, style in parts:
            text.append(printable(part), style=style or None)
        self._console.print(text, soft_wrap=True)

    def exactly(self, text: str) -> None:
        """Print a text unchanged to a pipe or file, and with escapes to a terminal."""
        _silence.breaks()
        self._console.file.write(printable(text) if self.is_terminal else text)

    @contextlib.contextmanager
    def bars(self, *, seconds_left: bool = False) -> Iterator[Bars]:
        """Progress bars inside the with block; none if the stream is not a terminal."""
        description = TextColumn("{task.description}", markup=False)
        counted: ProgressColumn = (
            TextColumn("{task.fields[said]}", markup=False) if seconds_left else MofNCompleteColumn()
        )
        times = (TimeElapsedColumn(), TimeRemainingColumn()) if seconds_left else (TimeElapsedColumn(),)
        hidden = not self.is_terminal
        columns = (description, BarColumn(), counted, *times)
        _silence.breaks()
        outer, _silence.has_bars = _silence.has_bars, _silence.has_bars or not hidden
        try:
            with Progress(*columns, console=self._console, transient=True, disable=hidden) as progress:
                yield Bars(progress)
        finally:
            _silence.has_bars = outer


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
    console.print(Group(*(grid.fitted(_WIDTH) for grid in grids)), crop=False)
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
