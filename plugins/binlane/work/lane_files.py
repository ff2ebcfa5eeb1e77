"""Lane files: the blocks of one segment for one lane, as Parquet. A row is an item; rows are in the order of apply.

The columns repeat the block's header in every row, so that a reader knows the end of a block before reading it, and
any Parquet tool can show the file. Equal blocks give equal bytes.

Arrow's own threads are not used: with a Python file object they can outlive the last read, and then abort or hang the
interpreter at its end (https://github.com/apache/arrow/issues/34314, 50482). A lane would seem to have failed. Arrow
starts one for ``pre_buffer`` (on by default) even with ``use_threads=False``, and for each read by ``read_table``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
from collections.abc import Generator, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import IO, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from blake3 import blake3

from binlane.errors import PlanError
from binlane.json_codec.codec import Codec
from binlane.model import BlockHeader, Item, ItemKind, LogPosition, RowCounts, SessionContext
from binlane.plan.window_plan import Block, LaneFile
from binlane.work.arrow_arrays import array
from binlane.work.checked_file import CheckedFile
from binlane.work.files import WorkFolder

SCHEMA = pa.schema(
    [
        pa.field("first_seqno", pa.int64(), nullable=False),
        pa.field("last_seqno", pa.int64(), nullable=False),
        pa.field("transactions", pa.int32(), nullable=False),
        pa.field("source_file", pa.string(), nullable=False),
        pa.field("source_offset", pa.int64(), nullable=False),
        pa.field("gtid", pa.string(), nullable=False),
        pa.field("commit_time", pa.float64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
        pa.field("inserts", pa.int64(), nullable=False),
        pa.field("updates", pa.int64(), nullable=False),
        pa.field("deletes", pa.int64(), nullable=False),
        pa.field("context", pa.string()),
    ]
)
_FORMAT_KEY = b"binlane.format_description"
_ROW_GROUP_BYTES = 8 << 20
"""Payload gathered before a row group is written; bounds the memory of writer and reader."""


_OUTLINED_ROWS: Final = 4096
"""Rows that are in memory at once where payloads are not read."""


class LaneRow(NamedTuple):
    """One row of a lane file."""

    header: BlockHeader
    item: Item


class LaneFileWriter:
    """Writes one lane file into a work folder; ``close`` returns its entry for the plan."""

    def __init__(self, folder: WorkFolder, name: str, format_event: bytes) -> None:
        self._name = name
        self._schema = SCHEMA.with_metadata({_FORMAT_KEY: format_event.hex().encode()})
        self._rows: list[LaneRow] = []
        self._pending = 0
        self._headers: list[BlockHeader] = []
        self._creation = folder.create(name)
        self._file = _HashingFile(self._creation.__enter__())
        self._writer = pq.ParquetWriter(
            self._file, self._schema, compression="lz4", use_dictionary=["source_file", "kind"]
        )

    def add(self, header: BlockHeader, items: Iterable[Item]) -> None:
        """Append a block, or more items of the last one. An empty block still takes a row, because its transactions
        move the lane's position."""
        empty = not self._headers or self._headers[-1] != header
        for item in items:
            self._add_row(LaneRow(header, item))
            empty = False
        if empty:
            self._add_row(LaneRow(header, Item(ItemKind.ROWS, b"")))
        if not self._headers or self._headers[-1] != header:
            self._headers.append(header)

    @property
    def size(self) -> int:
        """Bytes so far: of the file, and of the payload that is not written yet."""
        return self._file.size + self._pending

    def _add_row(self, row: LaneRow) -> None:
        self._rows.append(row)
        self._pending += len(row.item.payload)
        if self._pending >= _ROW_GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        if self._rows:
            self._writer.write_table(_to_table(self._rows, self._schema), row_group_size=len(self._rows))
        self._rows, self._pending = [], 0

    def close(self) -> LaneFile:
        """Finish the file; from now on it exists under its name."""
        self._write_group()
        self._writer.close()
        self._creation.__exit__(None, None, None)
        return LaneFile(
            name=self._name,
            first_seqno=self._headers[0].first_seqno,
            last_seqno=self._headers[-1].last_seqno,
            blocks=len(self._headers),
            transactions=sum(header.transactions for header in self._headers),
            bytes=self._file.size,
            blake3=self._file.digest.hexdigest(),
        )

    def abandon(self, error: BaseException) -> None:
        """Remove the unfinished file after an error; a finished file stays."""
        # an open writer would write its footer at garbage collection, into a removed file
        with contextlib.suppress(Exception):
            self._writer.close()
        with contextlib.suppress(type(error)):
            self._creation.__exit__(type(error), error, error.__traceback__)


def read_blocks(folder: WorkFolder, name: str, after: int = 0, digest: str | None = None) -> Iterator[Block]:
    """The blocks of a lane file that end after seqno ``after``, in order: ``read_rows`` and ``blocks_of``."""
    return blocks_of(read_rows(folder, name, after, digest))


def blocks_of(rows: Iterable[tuple[bytes, LaneRow]]) -> Iterator[Block]:
    """Rows as blocks. A block's items are read as they are consumed, so a block may be larger than memory."""
    for (format_event, header), group in groupby(rows, key=lambda found: (found[0], found[1].header)):
        yield Block(header, format_event, (row.item for _, row in group if row.item.payload))


def read_rows(
    folder: WorkFolder, name: str, after: int = 0, digest: str | None = None
) -> Generator[tuple[bytes, LaneRow]]:
    """The rows of a lane file whose blocks end after seqno ``after``, in order, each with its FORMAT_DESCRIPTION.

    ``digest``: the file's BLAKE3, compared before the first row. Raises PlanError if the file is missing, has another
    digest or is not a lane file.
    """
    with open_parquet(folder, name, digest) as parquet:
        if not parquet.schema_arrow.equals(SCHEMA) or _FORMAT_KEY not in (parquet.schema_arrow.metadata or {}):
            raise PlanError(f"{folder.uri}/{name}: not a lane file of this version; run the plan job again")
        format_event = bytes.fromhex(parquet.schema_arrow.metadata[_FORMAT_KEY].decode())
        for row in _rows(parquet, after):
            yield format_event, row


@contextlib.contextmanager
def open_parquet(
    folder: WorkFolder, name: str, digest: str | None = None, size: int | None = None
) -> Iterator[pq.ParquetFile]:
    """A lane file as Parquet. ``digest``: the file's BLAKE3, compared with all that is read of it. ``size``: its bytes,
    where a longer one is not to be read. Raises PlanError if the file is missing, has another digest or size, or is not
    a lane file."""
    if size is not None and (found := folder.size(name)) != size:
        raise PlanError(
            f"{folder.uri}/{name}: expected {size:,} bytes as in the plan, found {found:,}: the file was changed or is "
            "damaged; remove the plan's folder and run the plan job again: it writes the same file"
        )
    with folder.open(name) as file:
        checked: IO[bytes] = file
        if digest is not None:
            checked = io.BufferedReader(CheckedFile(file, digest, f"{folder.uri}/{name}"))
        try:
            parquet = pq.ParquetFile(checked, pre_buffer=False)
        except pa.ArrowInvalid as exc:
            raise PlanError(f"{folder.uri}/{name}: not a readable lane file ({exc}); run the plan job again") from exc
        yield parquet


class BlockOutline(NamedTuple):
    """A block without its items, for lists of blocks."""

    header: BlockHeader
    items: int
    kinds: frozenset[ItemKind]
    rows: RowCounts


def block_outlines(folder: WorkFolder, file: LaneFile) -> Generator[BlockOutline]:
    """The blocks of a lane file in order, without their payloads. No more of it is in memory than some thousand rows:
    a column of equal values has as many as somebody likes, in a small file. Raises PlanError if the file is missing or
    is not that of the plan."""
    names = [each for each in SCHEMA.names if each not in ("payload", "context")]
    with open_parquet(folder, file.name, file.blake3, file.bytes) as parquet:
        batches = parquet.iter_batches(_OUTLINED_ROWS, columns=names, use_threads=False)
        rows = (_to_row(*values) for batch in batches for values in _values(batch.to_pydict()))
        for header, group in groupby(rows, key=attrgetter("header")):
            yield _outline(header, (row.item for row in group))


def _values(columns: dict[str, list[Any]]) -> Iterator[tuple[Any, ...]]:
    empty = {"payload": b"", "context": None}
    count = len(columns["kind"])
    return zip(*(columns.get(name, [empty.get(name)] * count) for name in SCHEMA.names), strict=True)


def _outline(header: BlockHeader, items: Iterable[Item]) -> BlockOutline:
    count, kinds, rows = 0, set[ItemKind](), RowCounts()
    for item in items:
        count, rows = count + 1, rows + item.rows
        kinds.add(item.kind)
    return BlockOutline(header, count, frozenset(kinds), rows)


def _rows(parquet: pq.ParquetFile, after: int) -> Iterator[LaneRow]:
    last_seqno = parquet.schema_arrow.get_field_index("last_seqno")
    for group in range(parquet.num_row_groups):
        if parquet.metadata.row_group(group).column(last_seqno).statistics.max <= after:
            continue
        columns = parquet.read_row_group(group, use_threads=False).to_pydict()
        for values in zip(*(columns[column] for column in SCHEMA.names), strict=True):
            row = _to_row(*values)
            if row.header.last_seqno > after:
                yield row


def _to_table(rows: list[LaneRow], schema: pa.Schema) -> pa.Table:
    headers = [row.header for row in rows]
    items = [row.item for row in rows]
    columns: list[list[Any]] = [
        [header.first_seqno for header in headers],
        [header.last_seqno for header in headers],
        [header.transactions for header in headers],
        [header.source.file for header in headers],
        [header.source.offset for header in headers],
        [header.gtid for header in headers],
        [header.commit_time for header in headers],
        [item.kind.value for item in items],
        [item.payload for item in items],
        [item.rows.inserts for item in items],
        [item.rows.updates for item in items],
        [item.rows.deletes for item in items],
        [_context_text(item.context) for item in items],
    ]
    return pa.Table.from_arrays(
        [array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def _to_row(
    first: int, last: int, transactions: int, file: str, offset: int, gtid: str, time: float,
    kind: str, payload: bytes, inserts: int, updates: int, deletes: int, context: str | None,
) -> LaneRow:  # fmt: skip
    header = BlockHeader(first, last, transactions, LogPosition(file, offset), gtid, time)
    return LaneRow(header, Item(ItemKind(kind), payload, RowCounts(inserts, updates, deletes), context_of(context)))


def _context_text(context: SessionContext | None) -> str | None:
    if context is None:
        return None
    return json.dumps(SESSION.dump(context))


def context_of(text: str | None) -> SessionContext | None:
    """The session of a row's statement; None for row events."""
    return None if text is None else SESSION.load(SessionContext, json.loads(text), "the session of a lane file's row")


SESSION: Final = Codec(
    "run the plan job again", left_out=frozenset(each.name for each in dataclasses.fields(SessionContext))
)


class _HashingFile:
    """A file opened for writing that computes its digest, so that nothing is read back."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = blake3()
        self.size = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        self.size += len(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """The folder's ``create`` closes the file itself."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False
