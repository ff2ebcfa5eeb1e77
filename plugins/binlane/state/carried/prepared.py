"""Prepared XA transactions that have not ended, kept on the target so that a purge of the source's log cannot lose
them.

They are stored and deleted in the transaction that moves the watermark past their XA PREPARE or their end, so the rows
are exactly the transactions that are prepared at the watermark. Each is a small binlog file, cut into chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from sqlalchemy import Connection, Engine, delete, insert, select

from binlane.errors import ConfigError, PositionError
from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition
from binlane.plan.manifest import Segment
from binlane.plan.transaction.xa import PreparedGroup, xa_name
from binlane.state.channels import read_channel
from binlane.state.stored_values import unexpected
from binlane.state.tables import NOW, prepared, prepared_chunks
from binlane.state.windows import read_open_window

CHUNK: Final = 256 << 10
"""Bytes in a row; with escapes at most twice as many, which every ``max_allowed_packet`` allows."""


@dataclass(frozen=True, slots=True)
class OpenXa:
    """An XA transaction that is prepared at the watermark."""

    xid: str
    seqno: int
    """Seqno of its XA PREPARE; 0 if an operator has recorded that the target has its changes."""
    gtid: str
    source: LogPosition
    rows: int
    segment: Segment | None
    at: str
    """When it was stored; UTC, by the target's clock."""


@dataclass(frozen=True, slots=True)
class CarriedOut:
    """A prepared transaction to store: its manifest entry and its bytes, read once."""

    group: PreparedGroup
    segment: Segment
    chunks: Callable[[], Iterator[bytes]]


def read_open_xa(connection: Connection, channel: str) -> tuple[OpenXa, ...]:
    """The channel's prepared XA transactions, in the order of their XA PREPARE."""
    query = select(prepared).where(prepared.c.channel == channel).order_by(prepared.c.seqno, prepared.c.xid)
    return tuple(
        OpenXa(
            xid=row.xid,
            seqno=row.seqno,
            gtid=row.gtid,
            source=LogPosition(row.source_file, row.source_offset),
            rows=row.changes,
            segment=_segment(row.segment, row.xid, row.seqno) if row.segment else None,
            at=str(row.at),
        )
        for row in connection.execute(query)
    )


def file_of(seqno: int) -> str:
    """The path below a window's folder of the file with the transaction that was prepared at ``seqno``."""
    return f"carried/{seqno:012d}.binlog"


def _segment(text: str, xid: str, seqno: int) -> Segment:
    """Raises StateSchemaError for a file that is another's: its bytes are of the target, and so would be its place."""
    segment = Segment.from_json(text, f"binlane.prepared, {xid}")
    if segment.name != file_of(seqno):
        raise unexpected(
            f"binlane.prepared.segment of XA transaction {xid}", f"the file {file_of(seqno)}", segment.name
        )
    return segment


def read_chunks(connection: Connection, channel: str, seqno: int) -> Iterator[bytes]:
    """The bytes of a prepared transaction's file, chunk by chunk."""
    this = (prepared_chunks.c.channel == channel, prepared_chunks.c.seqno == seqno)
    number = 0
    while (
        data := connection.execute(
            select(prepared_chunks.c.data).where(*this, prepared_chunks.c.chunk == number)
        ).scalar_one_or_none()
    ) is not None:
        yield bytes(data)
        number += 1


def settle_prepared(
    connection: Connection, channel: str, ended: Iterable[str], carried_out: Iterable[CarriedOut]
) -> None:
    """Delete the XA transactions that a window has ended and store those that it has prepared, in the caller's
    transaction.
    """
    for xid in ended:
        _remove(connection, channel, xid)
    for each in carried_out:
        group = each.group
        connection.execute(
            insert(prepared).values(
                channel=channel,
                xid=group.xid,
                seqno=group.seqno,
                gtid=group.gtid,
                source_file=group.source.file,
                source_offset=group.source.offset,
                changes=group.rows,
                segment=each.segment.to_json(),
                at=NOW,
            )
        )
        for number, data in enumerate(each.chunks()):
            connection.execute(
                insert(prepared_chunks).values(channel=channel, seqno=group.seqno, chunk=number, data=data)
            )


def _remove(connection: Connection, channel: str, xid: str) -> bool:
    this = (prepared.c.channel == channel, prepared.c.xid == xid)
    seqno = connection.execute(select(prepared.c.seqno).where(*this).with_for_update()).scalar_one_or_none()
    if seqno is None:
        return False
    chunks = (prepared_chunks.c.channel == channel, prepared_chunks.c.seqno == seqno)
    connection.execute(delete(prepared_chunks).where(*chunks))
    connection.execute(delete(prepared).where(*this))
    return True


def decide_xa(engine: Engine, channel: str, xid: str, *, done: bool) -> None:
    """Record an operator's decision on an XA transaction.

    ``done``: it was prepared before the channel began, and the target has its changes. Otherwise: delete a stored one
    that the source lost in a crash.

    Raises ConfigError for an invalid XID; PositionError while a window is open, if ``done`` and the transaction is
    stored, or if not ``done`` and it is not.
    """
    name = xa_name(xid)
    if name is None:
        raise ConfigError(f"{xid!r}: expected an XID as the error names it, such as X'6731',X'62',7")
    with engine.begin() as connection:
        read_channel(connection, channel, for_update=True)
        if read_open_window(connection, channel) is not None:
            raise PositionError(f"channel {channel}: a window is open; finish it first: `binlane run {channel}`")
        if not done:
            if not _remove(connection, channel, str(name)):
                raise PositionError(f"channel {channel}: {name} is not among the prepared XA transactions")
            return
        if any(each.xid == str(name) for each in read_open_xa(connection, channel)):
            raise PositionError(
                f"channel {channel}: {name} is stored as prepared, so its changes will be applied at its XA COMMIT; "
                "no decision is needed"
            )
        values = {"channel": channel, "xid": str(name), "seqno": 0, "gtid": "", "source_file": "", "source_offset": 0}
        connection.execute(insert(prepared).values(**values, changes=0, segment="", at=NOW))
