"""Which reader reads a dump, and what the readers have in common."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from binlane.restore.dump_file import DumpFile, DumpPlace
from binlane.restore.dump_folder import DumpFolder
from binlane.restore.shell_contents import ROOT
from binlane.restore.shell_folder import ShellFolder


class Dump(Protocol):
    """A dump, of which some databases are restored. Methods raise ConfigError for a dump that is not whole, and for
    one that a restore could not make exact."""

    @property
    def path(self) -> Path:
        """A file or a folder."""

    @property
    def digest(self) -> str:
        """Another one for another dump."""

    @property
    def counted_in(self) -> str:
        """Where ``row_counts`` are recorded, for messages."""

    def place(self) -> DumpPlace:
        """What the dump has recorded of itself."""

    def server(self) -> str:
        """The version of the server that was dumped; empty: not known."""

    def statements(self, usual_mode: str) -> Iterator[bytes]:
        """Every statement without its end. ``usual_mode``: the sql_mode of programs for which the dump has none."""

    def row_counts(self) -> Mapping[tuple[str, str], int]:
        """How many rows tables have in the dump, by database and table; empty: not known."""


def dump_of(path: Path, databases: Collection[str]) -> Dump:
    """The dump of that path, from which these databases are restored."""
    if not path.is_dir():
        return DumpFile(path)
    if os.path.lexists(path / ROOT):
        return ShellFolder(path, frozenset(databases))
    return DumpFolder(path, frozenset(databases))
