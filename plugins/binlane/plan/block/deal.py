"""Which lanes get the row changes of a divided database."""

from __future__ import annotations

from collections.abc import Callable

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey


@dataclass(frozen=True, slots=True)
class Deal:
    """Which lane gets a row change."""

    lanes: int
    lane_of: Callable[[TableKey], int | None]
    """The lane of a table's changes; None: each change goes by its primary key."""
    ranged_column: Callable[[TableKey], int | None]
    """The place of the key's integer column whose neighbouring values go together; None: each key goes by itself."""
