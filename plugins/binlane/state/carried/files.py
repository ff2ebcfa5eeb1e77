"""Prepared XA transactions between windows: copied from segments to the target, and back into a later window's
files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from blake3 import blake3
from sqlalchemy import Connection

from binlane.errors import PlanError
from binlane.lazy_dataclass import dataclass
from binlane.plan.manifest import Manifest, Segment
from binlane.plan.transaction.xa import PreparedGroup
from binlane.plan.window_plan import WindowPlan
from binlane.state.carried.prepared import CHUNK, CarriedOut, OpenXa, file_of, read_chunks, settle_prepared
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import segment_bytes


def with_carried(
    connection: Connection, manifest: Manifest, known: tuple[OpenXa, ...], ended: set[str], folder: WorkFolder
) -> Manifest:
    """Write the XA transactions that the window commits or rolls back into its folder; the manifest with these files.

    Raises PlanError if the target's copy is damaged.
    """
    needed = [each for each in known if each.xid in ended]
    segments = [each.segment for each in needed if each.segment is not None]
    for segment in segments:
        if not folder.exists(segment.name):
            _write(connection, manifest.channel, segment, folder)
    done = tuple(each.xid for each in needed if each.segment is None)
    return replace(manifest, carried=tuple(segments), done=done)


def _write(connection: Connection, channel: str, segment: Segment, folder: WorkFolder) -> None:
    digest = blake3()
    with folder.create(segment.name) as file:
        for chunk in read_chunks(connection, channel, segment.first_seqno):
            digest.update(chunk)
            file.write(chunk)
        if digest.hexdigest() != segment.blake3:
            raise PlanError(
                f"binlane.prepared_chunks, channel {channel}, seqno {segment.first_seqno}: expected BLAKE3 "
                f"{segment.blake3}, found {digest.hexdigest()}: the target's copy of a prepared XA transaction is "
                "damaged; restore the schema binlane from a backup"
            )


@dataclass(frozen=True, slots=True)
class Settlement:
    """Stores and deletes prepared XA transactions when ``finish_window`` moves the watermark."""

    plan: WindowPlan
    folder: WorkFolder
    """The window's folder."""

    def __call__(self, connection: Connection) -> None:
        """Store the transactions that stay prepared, delete those that have ended. Raises PlanError for a missing
        segment."""
        ended = [each.xid for each in self.plan.carried_in]
        settle_prepared(connection, self.plan.channel, ended, self._carried_out())

    def _carried_out(self) -> Iterator[CarriedOut]:
        if not self.plan.carried_out:
            return
        where = f"{self.folder.uri}/{files.MANIFEST}"
        manifest = Manifest.from_json(self.folder.read(files.MANIFEST), where)
        for group in self.plan.carried_out:
            held_by = next(segment for segment in manifest.segments if segment.name == group.file)
            yield CarriedOut(group, self._entry(group, held_by), partial(self._chunks, group, held_by))

    def _entry(self, group: PreparedGroup, held_by: Segment) -> Segment:
        """The manifest entry of a transaction as a segment of its own."""
        digest = blake3()
        size = 0
        for chunk in self._chunks(group, held_by):
            digest.update(chunk)
            size += len(chunk)
        return replace(
            held_by,
            name=file_of(group.seqno),
            bytes=size,
            blake3=digest.hexdigest(),
            first_seqno=group.seqno,
            last_seqno=group.seqno,
            transactions=1,
            start_offset=group.source.offset,
            end_offset=group.source.offset + group.end - group.start,
            first_gtid=group.gtid,
            last_gtid=group.gtid,
        )

    def _chunks(self, group: PreparedGroup, held_by: Segment) -> Iterator[bytes]:
        """Magic and FORMAT_DESCRIPTION of the segment, then the transaction's events."""
        with segment_bytes(self.folder, held_by) as data:
            if group.end > len(data):
                raise PlanError(f"{self.folder.uri}/{held_by.name}: it ends before the XA PREPARE of {group.xid}")
            yield bytes(data[: held_by.header_length])
            for at in range(group.start, group.end, CHUNK):
                yield bytes(data[at : min(at + CHUNK, group.end)])
