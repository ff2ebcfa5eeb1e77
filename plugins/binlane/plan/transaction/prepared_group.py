"""The first half of an XA transaction, as plan files and the target's state name it."""

from __future__ import annotations

from dataclasses import dataclass

from binlane.binlog.gtids import XaName
from binlane.binlog.wire import SegmentOffset
from binlane.model import LogPosition


@dataclass(frozen=True, slots=True)
class PreparedGroup:
    """The first half of an XA transaction: its XID, and where its events are."""

    xid: str
    """The XID as servers log it: ``X'6731',X'62',7``."""
    seqno: int
    gtid: str
    source: LogPosition
    """Its begin in the source's log."""
    rows: int
    """Row changes of the transaction."""
    file: str
    """The segment that holds it: path in the window's folder."""
    start: SegmentOffset
    end: SegmentOffset
    """Offsets in that file as it is stored, not in its decompressed form."""


def xa_name(text: str) -> XaName | None:
    """The XID of a text in the servers' own form; None for any other text."""
    given = text.strip().upper()
    name = XaName.of_statement(given.encode())
    return name if name is not None and str(name).upper() == given else None
