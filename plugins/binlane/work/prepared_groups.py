"""Prepared XA transactions, read from the segments that hold them, for the map of a segment with their XA COMMIT."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from binlane.binlog.format_description import FormatDescription
from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import Ending, transactions
from binlane.binlog.wire import Buffer, BufferOffset, EventType
from binlane.errors import PlanError, UnsupportedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.plan.manifest import Segment
from binlane.plan.routing import Routing
from binlane.plan.segment.reader import segment_log
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.plan.transaction.decode import Part, dissect
from binlane.plan.transaction.xa import PreparedGroup

_T = EventType
_ROW_TYPES: Final = (
    _T.TABLE_MAP,
    *range(_T.WRITE_ROWS_V1, _T.DELETE_ROWS_V1 + 1),
    *range(_T.WRITE_ROWS_V2, _T.DELETE_ROWS_V2 + 1),
)


@dataclass(frozen=True, slots=True)
class SegmentGroups:
    """``plan.transaction.xa.Groups`` over the window's folder, for the map of one segment."""

    routing: Routing
    format: FormatDescription
    """Of the segment that is mapped; lane files announce this format to the target."""
    target: Flavor
    entry: Callable[[str], Segment]
    open: Callable[[Segment], AbstractContextManager[Buffer]]
    rules: ChannelRules
    """The channel's filter and renames."""

    def parts(self, seqno: int) -> tuple[Part, ...]:
        """The parts of the prepared transaction that the XA COMMIT at ``seqno`` commits.

        Raises PlanError if context.json does not name it, UnsupportedEventError if it cannot be applied exactly.
        """
        if seqno not in self.routing.prepared:
            raise PlanError(f"seqno {seqno}: an XA COMMIT that the scan did not see; run the plan job again")
        group = self.routing.prepared[seqno]
        return () if group is None else self._read(group)

    def is_committed(self, seqno: int) -> bool | None:
        """As ``plan.transaction.xa.Groups``."""
        return self.routing.at_prepare.get(seqno)

    def _read(self, group: PreparedGroup) -> tuple[Part, ...]:
        held_by = self.entry(group.file)
        with self.open(held_by) as data:
            reader = LogReader(data, held_by.source_file, verify=False)
            self._check_format(reader.format, group.xid, str(group.source))
            log = segment_log(reader, held_by, self.target, self.rules)
            # offsets are those of the segment's file, which is read without decompression
            transaction = next(transactions(reader, start=BufferOffset(group.start)))
            if (log.segment_offset(transaction.end), transaction.ending) != (group.end, Ending.XA_PREPARE):
                raise PlanError(
                    f"{held_by.name}: no XA PREPARE of {group.xid} at {group.start}; run the plan job again"
                )
            return dissect(transaction, log)

    def _check_format(self, found: FormatDescription, xid: str, where: str) -> None:
        """A lane file announces one format; raises UnsupportedEventError for row events that need another one."""
        if any(found.post_header_length(code) != self.format.post_header_length(code) for code in _ROW_TYPES):
            raise UnsupportedEventError(
                f"{where}: XA PREPARE of {xid}: written by {found.server_version}, ended on a server of version "
                f"{self.format.server_version} whose row events differ; bring its changes to the target by hand "
                f'and record that: binlane xa CHANNEL --done "{xid}"'
            )
