"""Folds a lane's files across segments: from the blocks in ``parts/<lane>`` to those in ``lanes/<lane>``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from binlane.model import BlockHeader, Item, RowCounts
from binlane.plan.window.reduce import FoldedLane, LaneFolder
from binlane.plan.window_plan import Block, LaneFile
from binlane.work.files import WorkFolder
from binlane.work.lane_files import LaneFileWriter, read_blocks

_FILE_BYTES: Final = 64 << 20
"""A file ends with the block that reaches this size: its digest is compared before its first block."""


def fold_files(folder: WorkFolder, lane: int, parts: Sequence[LaneFile], folding: LaneFolder) -> FoldedLane:
    """Fold the blocks of ``parts`` into new files. Raises PlanError for a part that is missing or changed."""
    files = _Files(folder, lane)
    try:
        for format_event, block in folding.fold(_blocks(folder, parts)):
            files.add(format_event, block.header, block.items)
        return FoldedLane(lane, files.closed(), files.rows, folding.saved)
    except BaseException as exc:
        files.abandon(exc)
        raise


def _blocks(folder: WorkFolder, parts: Sequence[LaneFile]) -> Iterator[Block]:
    for part in parts:
        yield from read_blocks(folder, part.name, 0, part.blake3)


class _Files:
    """Files of one lane, in sequence: a new one for each FORMAT_DESCRIPTION, and when one is full."""

    def __init__(self, folder: WorkFolder, lane: int) -> None:
        self.rows = RowCounts()
        self._folder, self._lane = folder, lane
        self._format = b""
        self._writers: list[LaneFileWriter] = []
        self._files: list[LaneFile] = []

    def add(self, format_event: bytes, header: BlockHeader, items: Iterable[Item]) -> None:
        """Append a block."""
        if format_event != self._format or len(self._files) == len(self._writers):
            self._end()
            name = f"lanes/{self._lane:04d}/{len(self._writers):06d}.parquet"
            self._writers.append(LaneFileWriter(self._folder, name, format_event))
            self._format = format_event
        self._writers[-1].add(header, self._counted(items))
        if self._writers[-1].size >= _FILE_BYTES:
            self._end()

    def _counted(self, items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            self.rows += item.rows
            yield item

    def _end(self) -> None:
        if len(self._files) < len(self._writers):
            self._files.append(self._writers[-1].close())

    def closed(self) -> tuple[LaneFile, ...]:
        """Finish; returns the files in the order of apply."""
        self._end()
        return tuple(self._files)

    def abandon(self, error: BaseException) -> None:
        """Remove the unfinished files after an error."""
        for writer in self._writers[len(self._files) :]:
            writer.abandon(error)
