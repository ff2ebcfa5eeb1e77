"""Where a restore ends: between two whole transactions, by a time, a GTID, a place or a statement."""

from __future__ import annotations

import re
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from binlane.errors import PlanError
from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition
from binlane.rename_rules import lower
from binlane.restore.archive_index import IndexedFile
from binlane.restore.logged_transactions import LoggedTransaction, RowTransactions
from binlane.source.end_position import first_of
from binlane.work.lookup import TIMES_DIFFER

_PIECE: Final = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`)|/\*.*?\*/|--\s[^\n]*|#[^\n]*|;""",
    re.DOTALL,
)
"""A literal or a quoted name, which may have the signs of a comment, or a comment."""
_PARTS: Final = re.compile(r"[-:]")
_SCHEMA: Final = re.compile(r"^((?:create|drop) )schema\b")


class End(Protocol):
    """Where a restore ends. ``text``: as it was asked for."""

    @property
    def text(self) -> str:
        """As it was asked for."""

    def is_before(self, one: LoggedTransaction) -> bool:
        """Whether the end is before this transaction."""

    def is_behind(self, one: LoggedTransaction) -> bool:
        """Whether the end is directly behind this transaction."""

    def passes(self, run: RowTransactions) -> int:
        """How many of a run's first transactions are surely in front of the end, and do not reach it."""

    def passes_file(self, file: IndexedFile) -> bool:
        """Whether all transactions of a file without a statement of the databases are surely in front of the end."""


@dataclass(frozen=True, slots=True)
class EndTime:
    """Before the first transaction of the time (seconds since the epoch) or later."""

    text: str
    time: float

    def is_before(self, one: LoggedTransaction) -> bool:
        """By the commit's time."""
        return one.time >= self.time

    def is_behind(self, one: LoggedTransaction) -> bool:
        """Never: the next one decides."""
        return False

    def passes(self, run: RowTransactions) -> int:
        """Those in front of the first one of the time or later."""
        return first_of(run.time >= self.time)

    def passes_file(self, file: IndexedFile) -> bool:
        """By its latest commit."""
        return file.latest < self.time

    def are_of_before(self, times: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of these commit times say, behind the end, that it is not where the time has come."""
        return times < self.time - TIMES_DIFFER


@dataclass(frozen=True, slots=True)
class EndGtid:
    """At a transaction. ``inclusive``: behind it, otherwise before it."""

    text: str
    gtid: str
    inclusive: bool

    def is_before(self, one: LoggedTransaction) -> bool:
        """At the transaction, unless it belongs to the restore."""
        return not self.inclusive and one.gtid == self.gtid

    def is_behind(self, one: LoggedTransaction) -> bool:
        """At the transaction, if it belongs to the restore."""
        return self.inclusive and one.gtid == self.gtid

    def passes(self, run: RowTransactions) -> int:
        """Those in front of the first one with the GTID's number, in any domain or of any server."""
        number = int(_PARTS.split(self.gtid)[-1])
        return run.end.size if number >> 64 else first_of(run.number == np.uint64(number))

    def passes_file(self, file: IndexedFile) -> bool:
        """By the numbers of its GTIDs, if all are known."""
        number = int(_PARTS.split(self.gtid)[-1])
        return file.transactions == 0 or (file.lowest > 0 and not file.lowest <= number <= file.highest)


@dataclass(frozen=True, slots=True)
class EndPosition:
    """At a place between two transactions."""

    text: str
    position: LogPosition
    files: tuple[str, ...] = ()
    """The log's, oldest first."""

    def is_before(self, one: LoggedTransaction) -> bool:
        """From the place on. Raises PlanError for a place inside a transaction."""
        if self.position.is_behind(one.start, self.files) and one.end.is_behind(self.position, self.files):
            raise PlanError(
                f"--until {self.text}: expected a place between two transactions, found one inside the transaction "
                f"from {one.start} to {one.end}; take one of these two"
            )
        return one.start == self.position or one.start.is_behind(self.position, self.files)

    def is_behind(self, one: LoggedTransaction) -> bool:
        """Where it ends at the place."""
        return one.end == self.position

    def passes(self, run: RowTransactions) -> int:
        """Those that end in front of the place."""
        if run.file != self.position.file:
            return run.end.size if self._is_behind_file(run.file) else 0
        return int(np.searchsorted(run.end, self.position.offset))

    def passes_file(self, file: IndexedFile) -> bool:
        """A file in front of that of the place."""
        return file.file != self.position.file and self._is_behind_file(file.file)

    def _is_behind_file(self, file: str) -> bool:
        return self.position.is_behind(LogPosition(file, 0), self.files)


@dataclass(frozen=True, slots=True)
class EndStatement:
    """Before the only transaction with this statement."""

    text: str

    def is_before(self, one: LoggedTransaction) -> bool:
        """The same words, without comments, quotes and IF EXISTS."""
        return spelled(self.text) in map(spelled, one.statements)

    def is_behind(self, one: LoggedTransaction) -> bool:
        """Never."""
        return False

    def passes(self, run: RowTransactions) -> int:
        """All: they have no statement."""
        return run.end.size

    def passes_file(self, file: IndexedFile) -> bool:
        """Every one."""
        return True


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Everything that the log has now."""

    text: str = "now"

    def is_before(self, one: LoggedTransaction) -> bool:
        """Never."""
        return False

    def is_behind(self, one: LoggedTransaction) -> bool:
        """Never."""
        return False

    def passes(self, run: RowTransactions) -> int:
        """All."""
        return run.end.size

    def passes_file(self, file: IndexedFile) -> bool:
        """Every one."""
        return True


def spelled(statement: str) -> str:
    """A statement in one spelling, to be compared."""
    without_comments = _PIECE.sub(lambda piece: piece["quoted"] or " ", statement)
    plain = lower(" ".join(without_comments.replace("`", "").split()))
    return _SCHEMA.sub(r"\1database", plain).replace(" if exists", "")
