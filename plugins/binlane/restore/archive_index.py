"""The index of an archive: for each closed file a Parquet file beside it, in the folder ``binlane_index``.

Its rows are the tables of each megabyte. Its facts (in the Parquet file's own metadata) are what a reader of the log
has to know of a file that it does not read: where its transactions are and how many, their GTIDs and times, how it ends
and what it follows, and which databases it may concern. They are bound to the file by its size and BLAKE3.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import struct
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import IO, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from blake3 import blake3

from binlane.binlog.vector.arrays import Ints
from binlane.binlog.vector.frames import gather
from binlane.binlog.wire import HEADER, Buffer, EventType
from binlane.errors import PlanError, SourceError
from binlane.formats import FORMATS
from binlane.json_codec.codec import Codec
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, LogPosition, plural
from binlane.rename_rules import lower
from binlane.restore.file_content import FileContent
from binlane.restore.file_keys import LARGEST, KeyFilter
from binlane.restore.logged_transactions import LoggedTransaction, RowTransactions, TransactionReader
from binlane.source.archive import ArchiveSource
from binlane.source.end_position import UntilLogEnd, first_of
from binlane.source.identity import Start, canonical_header, described, digest
from binlane.source.protocol import LOG_START, LogChunk, LogState
from binlane.source.segment_writer import Nowhere
from binlane.source.segments import Extraction
from binlane.source.start_position import begin
from binlane.work.files import WorkFolder

log = logging.getLogger(__name__)

FOLDER: Final = "binlane_index"
"""Below the archive. Who can write there is believed as much as who writes the log: a restore passes over what an index
rules out. Every account may read it, if it comes to the archive: it has names and counts, no rows."""
FORMAT: Final = FORMATS["archive index"]
_KEY: Final = b"binlane.index"
_ROOT: Final = 0
SCHEMA: Final = pa.schema(
    [
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
        pa.field("database", pa.string(), nullable=False),
        # empty: the database as a whole
        pa.field("table", pa.string(), nullable=False),
        pa.field("transactions", pa.int64(), nullable=False),
        pa.field("row_changes", pa.int64(), nullable=False),
    ]
)
_SHAPE: Final = struct.Struct("<3q")
_ENDS: Final = 8
"""Bytes behind the metadata of a Parquet file: their length, and a word."""
_LARGEST_TEXTS: Final = (1 << 31) - 1
"""Bytes of a column of strings: its offsets have 32 bits."""
_LARGEST_FOOTER: Final = 64 << 20
"""Bytes. The metadata have the facts twice, with two GTID sets of at most 8 MiB."""


@dataclass(frozen=True, slots=True)
class DatabaseCount:
    """What a file changes in one database."""

    database: str
    transactions: int
    row_changes: int


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file of the log that its server has ended with ROTATE."""

    file: str
    """The log's name for it."""
    stored: str
    """Its name in the archive."""
    stored_bytes: int
    blake3: str
    """Of the file as it is in the archive, in hex."""
    flavor: Flavor
    server_version: str
    checksum: str
    server_id: int
    header: str
    """The digest of its FORMAT_DESCRIPTION."""
    is_after_start: bool
    """The file was begun by a start of the server, which has dropped temporary tables."""
    bytes: int
    """Decompressed."""
    begun: float
    ended: float
    """When its server has begun and ended it, in seconds since the epoch."""
    begin: int
    """Offset behind FORMAT_DESCRIPTION."""
    end: int
    """Offset behind the last transaction."""
    transactions: int
    first_time: float
    last_time: float
    """Commit times of the first and the last transaction, in seconds since the epoch."""
    latest: float
    """The latest one: clocks may be set back."""
    of_last_second: int
    """Transactions at the end whose commits are of one second."""
    lowest: int
    highest: int
    """Numbers of the GTIDs; 0 for a transaction without one, or with one whose number is not known."""
    gtids_before: str
    """GTID set of all transactions before the file, as its head says."""
    gtid_set: str
    """And up to its end."""
    shape: str
    """SHA-256 of the places and seconds of its transactions (``LogShape``), in hex."""
    databases: tuple[DatabaseCount, ...]
    """By the rows that it changes."""
    named: tuple[str, ...]
    """Databases that its DDL names."""
    of_any: int
    """Events that may concern any database: statements whose rows are not in the log, and what is not understood."""

    def may_concern(self, names: Iterable[str]) -> bool:
        """Whether the file may have something of one of the databases, in whatever case it is written."""
        return self.of_any > 0 or not self.names.isdisjoint(map(lower, names))

    @property
    def names(self) -> frozenset[str]:
        """The databases whose rows it changes, or that its DDL names, in lower case."""
        return frozenset(map(lower, (*(each.database for each in self.databases), *self.named)))


INDEX: Final = Codec("`binlane archive index` makes it anew")


class NotIndexedError(SourceError):
    """A file that no index describes, with the reason."""


class LogShape:
    """A digest of transactions by their ends, seconds and row changes: file by file, so that a file of which nothing is
    read has its part all the same."""

    def __init__(self) -> None:
        self._whole, self._file, self._part = hashlib.sha256(), "", hashlib.sha256()

    def add(self, ends: Ints, seconds: Ints, rows: Ints) -> None:
        """Transactions of the present file; one entry each."""
        self._part.update(np.column_stack((ends, seconds, rows)).astype("<i8").tobytes())

    def add_one(self, end: int, second: int, rows: int) -> None:
        """One transaction of the present file."""
        self._part.update(_SHAPE.pack(end, second, rows))

    def part(self) -> str:
        """Of the present file, in hex."""
        return self._part.hexdigest()

    def begin(self, file: str) -> None:
        """The next transactions are of this file."""
        if file != self._file:
            self._close()
            self._file = file

    def add_file(self, file: str, part: str) -> None:
        """A whole file, by its ``part``."""
        self.begin(file)
        self._add(file, part)
        self._file = ""

    def digest(self) -> str:
        """Of all files; nothing can be added any more."""
        self._close()
        return self._whole.hexdigest()

    def _close(self) -> None:
        if self._file:
            self._add(self._file, self.part())
        self._part = hashlib.sha256()

    def _add(self, file: str, part: str) -> None:
        self._whole.update(f"{file} {part}\n".encode())


@dataclass(slots=True)
class _Facts:
    """Of the transactions of a file, in order."""

    transactions: int = 0
    first_time: float = 0.0
    last_time: float = 0.0
    latest: float = 0.0
    of_last_second: int = 0
    lowest: int = -1
    highest: int = 0
    end: int = 0
    shape: LogShape = field(default_factory=LogShape)

    def take(self, one: LoggedTransaction | RowTransactions) -> None:
        if isinstance(one, RowTransactions):
            ends, times, numbers = one.end, one.time, one.number
        else:
            number = int(one.gtid.replace(":", "-").rpartition("-")[2]) if one.gtid else 0
            ends, times = np.array([one.end.offset]), np.array([one.time])
            numbers = np.array([number], np.uint64)
        seconds = times.astype(np.int64)
        alike = first_of((seconds != seconds[-1])[::-1])
        goes_on = alike == seconds.size and self.transactions > 0 and int(self.last_time) == seconds[-1]
        self.of_last_second = self.of_last_second + alike if goes_on else alike
        self.first_time = float(times[0]) if self.transactions == 0 else self.first_time
        self.last_time, self.latest = float(times[-1]), max(self.latest, float(times.max()))
        lowest = int(numbers.min())
        self.lowest = lowest if self.lowest < 0 else min(self.lowest, lowest)
        self.highest = max(self.highest, int(numbers.max()))
        self.transactions += seconds.size
        self.end = int(ends[-1])
        self.shape.add(ends, seconds, np.zeros(ends.size, np.int64))


def index_file(source: ArchiveSource, file: str, stored: str) -> tuple[IndexedFile, bytes, bytes]:
    """The facts of one file, its index as a Parquet file, and the filter of its keys. Raises NotIndexedError for one
    that can have none, and BinlogError and SourceError for a damaged one."""
    hashed, read = blake3(), 0

    def told(data: Buffer) -> None:
        nonlocal read
        hashed.update(data)
        read += len(data)

    content, facts = FileContent(source.name), _Facts()
    transactions = TransactionReader(source.name, frozenset(), lambda run: run.end.size)
    run: Extraction | None = None
    header, begun, server_id, size = b"", 0, 0, 0
    for chunk in source.read_only_copy(file, stored, told):
        if run is None:
            header = chunk.data
            begun, _, server_id, *_ = HEADER.unpack_from(header)
            run = _extraction(source, chunk)
        run.take(chunk)
        content.take(chunk, run.framed)
        for one in transactions.take(chunk, run.framed):
            facts.take(one)
        size = chunk.offset + len(chunk.data)
    where = f"{source.name}/{file}"
    if run is None or content.last_type != EventType.ROTATE:
        raise NotIndexedError(f"{where}: its server has not ended it with ROTATE")
    run.finish()
    if run.seqno != facts.transactions:
        raise NotIndexedError(f"{where}: expected {plural(run.seqno, 'transaction')}, found {facts.transactions:,}")
    if read != (stored_bytes := source.stored_size(stored)):
        raise NotIndexedError(f"{where}: read {read:,} of {stored_bytes:,} bytes")
    log_format, before = described(header, where), begin(source, f"{file}:{LOG_START}").gtid_set
    found = IndexedFile(
        file=file, stored=stored, stored_bytes=stored_bytes, blake3=hashed.hexdigest(), flavor=log_format.flavor,
        server_version=log_format.server_version, checksum=log_format.checksum.name, server_id=server_id,
        header=digest(canonical_header(header, where)), is_after_start=log_format.created != 0, bytes=size,
        begun=float(begun), ended=float(content.last_time), begin=LOG_START + len(header), end=facts.end,
        transactions=facts.transactions,
        first_time=facts.first_time, last_time=facts.last_time, latest=facts.latest,
        of_last_second=facts.of_last_second, lowest=max(facts.lowest, 0), highest=facts.highest, gtids_before=before,
        gtid_set=str(run.gtids), shape=facts.shape.part(), databases=_databases(content),
        named=tuple(sorted(content.named)), of_any=content.of_any,
    )  # fmt: skip
    return found, parquet_of(found, content), content.keys.finish(size, found.blake3)


def _extraction(source: ArchiveSource, header: LogChunk) -> Extraction:
    """The proofs of a window, for one file."""
    flavor = described(header.data, f"{source.name}/{header.file}").flavor
    state = LogState(source.name, flavor, (header.file,), None, time.time(), closes_by_clock=False)
    start = Start(0, LogPosition(header.file, LOG_START), "", 0.0, source.name, "")
    # one file alone follows no other
    return Extraction(
        source.name, state, start, UntilLogEnd(), Nowhere(), event_bytes=source.event_bytes, first_bytes=lambda _: b""
    )


def _databases(content: FileContent) -> tuple[DatabaseCount, ...]:
    transactions, rows = Counter[str](), Counter[str]()
    changes = np.zeros(len(content.tables), np.int64)
    for piece in content.pieces:
        transactions.update(piece.transactions)
        changes[piece.tables] += piece.rows
    for (database, _), count in zip(content.tables, changes.tolist(), strict=True):
        rows[database] += count
    return tuple(DatabaseCount(name, transactions[name], count) for name, count in sorted(rows.items()))


def parquet_of(facts: IndexedFile, content: FileContent) -> bytes:
    """A file of the index. Raises NotIndexedError for names that are longer together than an index may be."""
    # databases behind tables: a table has a number, a database that of its first table, behind all of them
    databases = {
        name: len(content.tables) + at for at, name in enumerate(dict.fromkeys(name for name, _ in content.tables))
    }
    names = [*content.tables, *((name, "") for name in databases)]
    number, transactions, rows, sizes = [], [], [], []
    for piece in content.pieces:
        counts = [*piece.transactions.values()]
        number.append(np.append(piece.tables, [databases[name] for name in piece.transactions]).astype(np.int64))
        transactions.append(np.append(np.zeros(piece.tables.size, np.int64), counts).astype(np.int64))
        rows.append(np.append(piece.rows, np.zeros(len(counts), np.int64)))
        sizes.append(number[-1].size)
    which = _joined(number)
    columns = [
        _numbers(np.repeat(np.array([piece.start for piece in content.pieces], np.int64), sizes)),
        _numbers(np.repeat(np.array([piece.end for piece in content.pieces], np.int64), sizes)),
        _taken([name for name, _ in names], which, facts.stored),
        _taken([table for _, table in names], which, facts.stored),
        _numbers(_joined(transactions)),
        _numbers(_joined(rows)),
    ]
    text = json.dumps({"version": FORMAT.version, **INDEX.dump(facts)}, ensure_ascii=False).encode()
    out = io.BytesIO()
    table = pa.Table.from_arrays(columns, schema=SCHEMA.with_metadata({_KEY: text}))
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _numbers(values: Ints) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), values.size, [None, pa.py_buffer(values)])


def _taken(texts: Sequence[str], which: Ints, stored: str) -> pa.Array:
    """Some of the texts, by number: Arrow's own ``take`` loads pandas, and all functions that Arrow computes with."""
    data = [text.encode() for text in texts]
    lengths = np.array([len(each) for each in data], np.int64)
    begins = np.cumsum(lengths) - lengths
    ends = np.append(0, np.cumsum(lengths[which]))
    if ends[-1] > _LARGEST_TEXTS:
        raise NotIndexedError(f"{stored}: expected at most 2 GiB of names in its index, found {ends[-1]:,} bytes")
    buffers = [
        None,
        pa.py_buffer(ends.astype(np.int32)),
        pa.py_buffer(gather(b"".join(data), begins[which], lengths[which])),
    ]
    return pa.Array.from_buffers(pa.string(), which.size, buffers)


def folder_of(archive: str) -> WorkFolder:
    """Where the index of an archive is."""
    return replace(WorkFolder(archive).child(FOLDER), others_read=True)


def name_of(stored: str) -> str:
    """The index of a file, by the file's name in the archive."""
    return f"{stored}.parquet"


def keys_name_of(stored: str) -> str:
    """The filter of a file's keys, by the file's name in the archive."""
    return f"{stored}.keys"


def read_facts(folder: WorkFolder, stored: str) -> IndexedFile:
    """The facts of a file. Raises PlanError for an index that is damaged, too large, of another version, or another
    account's."""
    name = name_of(stored)
    where = f"{folder.uri}/{name}"
    try:
        with folder.open(name) as file:
            if folder.is_local:
                _require_owner(file, Path(folder.path("")).parent / stored, where)
            found = pq.read_metadata(io.BytesIO(_footer(file, where))).metadata or {}
    except (OSError, pa.ArrowException) as exc:
        raise PlanError(f"{where}: cannot be read: {exc}; `binlane archive index` makes it anew") from exc
    value = INDEX.parsed(found.get(_KEY, b""), where)
    if not FORMAT.reads(version := value.pop("version", None)):
        raise PlanError(
            f"{where}: expected version {FORMAT.versions}, found {version}; `binlane archive index` makes it anew"
        )
    return INDEX.load(IndexedFile, value, where)


def _require_owner(index: IO[bytes], log_file: Path, where: str) -> None:
    """Raises PlanError unless an index was written by an account that could say the same by the log, or by its own
    restore."""
    owner, others = _owner_of(index.fileno()), {_owner_of(log_file), os.geteuid(), _ROOT}
    if owner not in others:
        raise PlanError(
            f"{where}: expected an index by the account of the log's file, by this one or by root (user ids "
            f"{', '.join(map(str, sorted(others)))}), found one by the user id {owner}, who could rule out files that "
            "a restore needs; `binlane archive index` as one of these makes it anew"
        )


def _owner_of(file: int | Path) -> int:
    """The user id of a path's or an open file's owner."""
    return (os.fstat(file) if isinstance(file, int) else file.stat()).st_uid


def _footer(file: IO[bytes], where: str) -> bytes:
    """The end of a Parquet file, from its metadata on, whose length its last eight bytes begin with. Raises PlanError
    for one that no index has: pyarrow would allocate up to 4 GB before it reads it."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(size - _ENDS, 0))
    end = file.read(_ENDS)
    length = int.from_bytes(end[:4], "little")
    if length > _LARGEST_FOOTER:
        raise PlanError(
            f"{where}: expected at most {_LARGEST_FOOTER >> 20} MiB of metadata, found {plural(length, 'byte')}; "
            "`binlane archive index` makes it anew"
        )
    file.seek(max(size - _ENDS - length, 0))
    return file.read(length + _ENDS)


@dataclass(frozen=True, slots=True)
class Indexed:
    """A file of an archive, and its index."""

    file: str
    stored: str
    facts: IndexedFile | None
    why: str = ""
    """Why there is none that describes the file as it is; the beginning, without the name."""
    is_open: bool = False
    """It may still be written, or has copies: it gets no index."""


class ArchiveIndex:
    """The files of an archive with their index; each index is read when it is asked for."""

    def __init__(self, source: ArchiveSource) -> None:
        """Raises SourceError for a folder that is no archive of one log."""
        self._source, self._folder, self._stored = source, folder_of(source.uri), source.stored_files()
        self._is_told = False
        self._there = self._listed()
        self._read = dict[str, Indexed]()
        self._by_stored = {names[0]: file for file, names in self._stored.items() if len(names) == 1}
        self.files = tuple(self._stored)
        """The log's files, oldest first."""

    @property
    def is_empty(self) -> bool:
        """Whether there is no index at all, or none that this account may read."""
        return not self._there

    def of(self, file: str) -> Indexed:
        """A file with its index, if that is of a file of this size. The content is not compared."""
        found = self._read.get(file)
        if found is None:
            found = self._read[file] = self._indexed(file, self._stored[file])
        return found

    def of_stored(self, stored: str) -> IndexedFile | None:
        """The facts of the file that the archive has once, under this name, as ``of``."""
        file = self._by_stored.get(stored)
        return None if file is None else self.of(file).facts

    def keys_of(self, facts: IndexedFile) -> KeyFilter | None:
        """The filter of a file's keys; None if there is none, or it is not this file's."""
        name = keys_name_of(facts.stored)
        where = f"{self._folder.uri}/{name}"
        if name not in self._there:
            return None
        try:
            if self._folder.is_local:
                with self._folder.open(name) as file:
                    _require_owner(file, Path(self._folder.path("")).parent / facts.stored, where)
            return KeyFilter.parse(self._folder.read(name, LARGEST), facts.blake3, where)
        except (PlanError, OSError) as exc:
            self._tell(str(exc))
            return None

    def limited_to(self, one: Indexed) -> int | None:
        """The user id of this file's index where restores of other accounts than this one and root do not use it; None
        if all do."""
        if one.facts is None or not self._folder.is_local:
            return None
        with self._folder.open(name_of(one.stored)) as index:
            owner = _owner_of(index.fileno())
        log_file = Path(self._folder.path("")).parent / one.stored
        return None if owner in (_owner_of(log_file), _ROOT) else owner

    def _listed(self) -> frozenset[str]:
        try:
            return frozenset(self._folder.names())
        except OSError as exc:
            # another account has made it
            self._tell(f"{self._folder.uri}: cannot be read: {exc.strerror or exc}")
            return frozenset()

    def _tell(self, why: str) -> None:
        """Once: what is not read for one file is mostly not read for any."""
        if not self._is_told:
            log.warning("%s; the log's files themselves are read where their index is not", why)
        self._is_told = True

    def _indexed(self, file: str, names: tuple[str, ...]) -> Indexed:
        stored = names[0]
        if file == self.files[-1]:
            return Indexed(file, stored, None, "the newest file, which may still be written", is_open=True)
        if len(names) > 1:
            return Indexed(file, stored, None, f"it has copies: {', '.join(names)}", is_open=True)
        if name_of(stored) not in self._there:
            return Indexed(file, stored, None, "not indexed")
        try:
            facts = read_facts(self._folder, stored)
        except PlanError as exc:
            self._tell(str(exc))
            return Indexed(file, stored, None, str(exc))
        if (facts.file, facts.stored) != (file, stored) or facts.stored_bytes != self._source.stored_size(stored):
            return Indexed(file, stored, None, "the index is of another file")
        return Indexed(file, stored, facts)
