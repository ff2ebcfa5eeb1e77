"""GTIDs that mysqldump has recorded alone: whether they are those of the rows.

mysqldump reads GTID_EXECUTED by a statement of its own (client/mysqldump.cc: main, process_set_gtid_purged). With
--source-data it does so under the global lock under which it takes its snapshot, so a place beside the GTIDs shows that
both are of one moment. Without that option there is a lock for --lock-all-tables, and since 8.0.32 and 5.7.41 (MySQL
bug 105761) for --single-transaction; older programs read the set behind the snapshot, some of 5.7 behind all rows, and
with --lock-tables (the default) each one reads it in front of its locks. No text of a dump tells with
which of these options it was made. (mariadb-dump has GTIDs only at the place of --master-data.)
"""

from __future__ import annotations

import re
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.safe_text import shown

PROGRAM: Final = re.compile(rb"-- MySQL dump [\d.]{1,20} +Distrib (\d{1,3})\.(\d{1,3})\.(\d{1,3})(?![\w.-]*MariaDB)")
"""The head's line of a dump of mysqldump. Older programs of MariaDB call themselves so, too."""
_LOCKS: Final = ((5, 7, 41), (5, 8, 0)), ((8, 0, 32), (1000, 0, 0))
"""From which version on, and up to which, --single-transaction reads the GTIDs under its lock."""
_SHOWN: Final = 600


@dataclass(frozen=True, slots=True)
class LoneGtids:
    """A GTID set that a dump has recorded without a place."""

    gtids: str
    program: tuple[int, ...]
    """The version of mysqldump by the dump's head; empty: not known."""
    is_late: bool
    """Whether it stands behind the rows."""

    @property
    def doubt(self) -> str:
        """Why it cannot be taken for the place of the rows; empty: it can, by ``belief``."""
        if not self.is_late and any(low <= self.program < high for low, high in _LOCKS):
            return ""
        return (
            f"beside its GTIDs, as --source-data writes it under a lock, found GTIDs alone ({shown(self.gtids, _SHOWN)}"
            f"), which {self._by} reads without a lock {'behind all rows' if self.is_late else 'of the rows'}: what "
            "was committed meanwhile would be lost, or applied twice; they are the place only if nothing was written "
            "while the dump was made; dump again with --source-data=2 --single-transaction"
        )

    @property
    def belief(self) -> str:
        """What nothing shows of it."""
        return (
            f"the dump was made with --single-transaction or --lock-all-tables: it has GTIDs alone as its place, and "
            f"{self._by} reads them under a lock of the rows with one of these alone; otherwise what was committed "
            "meanwhile is lost, or applied twice; a dump with --source-data=2 shows its place"
        )

    @property
    def _by(self) -> str:
        version = ".".join(map(str, self.program))
        return f"mysqldump {version}" if version else "a program that its head does not name"
