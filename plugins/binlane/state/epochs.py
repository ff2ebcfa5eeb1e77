"""The ends of epochs at which all lanes have stood, each written by the transaction that brings the last lane there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from binlane.state.tables import UTC_NOW

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

    from binlane.model import Epoch
    from binlane.state.positions import PlanKey

_NEWEST: Final = "SELECT number, seqno FROM binlane.epochs WHERE channel = %s ORDER BY seqno DESC LIMIT 1"
_RECORD: Final = (
    "INSERT INTO binlane.epochs (channel, seqno, number, window_id, source_identity, source_file, source_offset, "
    f"gtid_set, source_time, at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, {UTC_NOW})"
)


def record_epoch(cursor: Cursor, key: PlanKey, source_identity: str, epoch: Epoch) -> None:
    """Record that all lanes stand at the epoch's end; a no-op if it is recorded already.

    On the connection of the serialized lane, in the transaction that moves its position there, or in one of its own.
    """
    cursor.execute(_NEWEST, (key.channel,))
    row = cursor.fetchone()
    number, seqno = (0, 0) if row is None else map(int, row)
    if seqno < epoch.seqno:
        place = (epoch.end.file, epoch.end.offset, epoch.gtid_set, epoch.time)
        cursor.execute(_RECORD, (key.channel, epoch.seqno, number + 1, key.window_id, source_identity, *place))
