"""Which values the first columns of a file's row changes have: a Bloom filter beside the file's index, so that a search
for one row's history reads few files.

A table is in the filter if its first column is an integer or a text of printable ASCII in every row image of the file,
which is read as the bytes that are logged (a BINARY has zeros behind them); all others are listed in its head, and may
have any value. So are all tables where there is no filter. The filter is
bound to the log's file by the file's BLAKE3. It says "may have" of one value in a hundred that is not there, and never
"has not" of one that is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from binlane.binlog.table_map import TableMap, charset_of
from binlane.binlog.types.column_types import LOGGED_TYPES
from binlane.binlog.types.readers import gets_zeros_back
from binlane.binlog.types.type_codes import ColumnType
from binlane.binlog.vector.arrays import Bytes, Ints
from binlane.binlog.vector.frames import gather
from binlane.errors import PlanError
from binlane.formats import FORMATS
from binlane.json_codec.codec import Codec
from binlane.kernels.rows import value_ranges
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.rename_rules import lower

FORMAT: Final = FORMATS["archive keys"]
LARGEST: Final = 64 << 20
"""Bytes of a filter with its head, at most."""
_HEAD: Final = Codec("`binlane archive index` makes it anew, if its file is removed")
_C = ColumnType
_INTEGERS: Final = frozenset((_C.TINY, _C.SHORT, _C.INT24, _C.LONG, _C.LONGLONG))
_TEXTS: Final = frozenset((_C.VARCHAR, _C.VAR_STRING, _C.STRING))
_SIZES: Final = (1, 2, 3, 4, 8)
"""Bytes of integers."""
_SHARE: Final = 200
"""One byte of the filter for so many of the log, at most."""
_BITS: Final = 10
"""Of a key, at most; a filter with less than half of them would say "may have" too often."""
_LEAST: Final = 4096
"""Bits of a filter, at least."""
_TIMES: Final = 4
"""Bits that a key sets."""
_MOST: Final = 1 << 24
"""Distinct keys of a file that are remembered."""
_ONE_BY_ONE: Final = 64
"""Tables that are looked at one by one where one of them has a value that is not known here."""
_EDGE: Final = 32
"""Bytes at either end of a text that count."""
_PRINTABLE: Final = (0x20, 0x7E)
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)

Hashes = NDArray[np.uint64]


def seed_of(table: str) -> int:
    """Where a table's hashes begin. ``table``: ``database.table``; letter case does not count."""
    return int.from_bytes(blake3(lower(table).encode()).digest(8), "little")


def _mixed(hashes: Hashes, words: Hashes) -> Hashes:
    mixed: Hashes = (hashes ^ words) * _FACTOR
    return mixed ^ (mixed >> _SHIFT)


def _of_integers(seeds: Hashes, data: Bytes, start: Ints, size: int) -> Hashes:
    """Of ``size`` bytes each, little-endian."""
    if data.size < 8:
        data, start = np.concatenate((np.zeros(8, np.uint8), data)), start + 8
    # eight bytes from each place on, or the last eight of the buffer
    every = np.ndarray((data.size - 7,), "<u8", data, 0, (1,))
    begin = np.minimum(start, data.size - 8)
    words: Hashes = every[begin].astype(np.uint64) >> ((start - begin) * 8).astype(np.uint64)
    if size < 8:
        words &= np.uint64((1 << 8 * size) - 1)
    return _mixed(seeds, words ^ np.uint64(size << 60))


def _of_texts(seeds: Hashes, data: Bytes, start: Ints, end: Ints) -> Hashes:
    """By their lengths, and their first and last bytes."""
    hashes = _mixed(seeds, (end - start).astype(np.uint64))
    at = np.arange(_EDGE)
    for begin in (start, np.maximum(end - _EDGE, start)):
        places = begin[:, None] + at
        found = np.where(places < end[:, None], data[np.minimum(places, data.size - 1)], 0).astype(np.uint8)
        for words in np.ascontiguousarray(found).view("<u8").T:
            hashes = _mixed(hashes, words)
    return hashes


class _Form(NamedTuple):
    """How the first column of an image is found and read."""

    is_text: bool
    rule: int
    """Bytes that have the value's length; 0: it is ``length``."""
    length: int
    nulls: int
    """Bytes of the image in front of it."""


class KeyCollector:
    """Give it the row images of a file, a chunk at a time; then ``finish``."""

    def __init__(self) -> None:
        self._hashes: list[Hashes] = []
        self._count = 0
        self._unkeyed: set[str] = set()
        self._seeds: dict[str, int] = {}
        self._forms: dict[_Form, int] = {}

    def form_of(self, table: TableMap, flavor: Flavor) -> int:
        """The number of the form of a table's first column, for ``take``; -1: it is not in the filter."""
        code = table.real_types[0] if table.width else 0
        if code not in _INTEGERS and code not in _TEXTS:
            return -1
        rule, length = LOGGED_TYPES[code].length(table.metadata[0], "")
        if code in _TEXTS and not rule:
            return -1
        if code == _C.STRING and gets_zeros_back(charset_of(table, 0, flavor)):
            return -1
        form = _Form(code in _TEXTS, rule, length, (table.width + 7) >> 3)
        return self._forms.setdefault(form, len(self._forms))

    def leave_out(self, tables: Iterable[TableMap]) -> None:
        """Tables with rows that are not in the log as they are."""
        self._unkeyed.update(lower(f"{each.database}.{each.table}") for each in tables)

    def take(self, data: Bytes, tables: Sequence[TableMap], forms: Ints, definition: Ints, images: Ints) -> None:
        """``forms``: of each of the ``tables``; ``definition``: the table's number of each row change; ``images``: as
        ``frames.row_images``."""
        kept = images[:, ::2] >= 0
        starts, of = images[:, ::2][kept], np.repeat(definition, kept.sum(axis=1))
        form = forms[of]
        order = np.argsort(form.astype(np.min_scalar_type(-len(self._forms) - 1)), kind="stable")
        edges = np.flatnonzero(np.append(True, form[order][1:] != form[order][:-1])[: order.size])
        every = [*self._forms]
        for rows in np.split(order, edges[1:]) if edges.size > 1 else [slice(None)]:
            number = int(form[rows][0])
            if number < 0:
                self.leave_out(tables[each] for each in np.flatnonzero(np.bincount(of[rows])).tolist())
            else:
                self._take_alike(data, tables, every[number], of[rows], starts[rows])
        if self._count > 2 * _MOST:
            self._compact()

    def _take_alike(self, data: Bytes, tables: Sequence[TableMap], form: _Form, of: Ints, starts: Ints) -> None:
        used = np.flatnonzero(np.bincount(of))
        ranges = np.empty((starts.size, 2), np.int64)
        rule, length = np.array([form.rule], np.uint8), np.array([form.length], np.int64)
        is_whole = value_ranges(data, starts, 8 * form.nulls, rule, length, 0, ranges)
        if not is_whole or (form.is_text and not _are_printable(data, ranges)):
            if not 1 < used.size <= _ONE_BY_ONE:
                self.leave_out(tables[each] for each in used.tolist())
                return
            # the others of that form stay
            for each in used.tolist():
                rows = np.flatnonzero(of == each)
                self._take_alike(data, tables, form, of[rows], starts[rows])
            return
        seeds = np.zeros(len(tables), np.uint64)
        seeds[used] = [self._seed(tables[each]) for each in used.tolist()]
        if form.is_text:
            hashes = _of_texts(seeds[of], data, ranges[:, 0], ranges[:, 1])
        else:
            hashes = _of_integers(seeds[of], data, ranges[:, 0], form.length)
        # most updates leave the key as it is
        self._hashes.append(hashes[np.append(True, hashes[1:] != hashes[:-1])[: hashes.size]])
        self._count += self._hashes[-1].size

    def _seed(self, table: TableMap) -> int:
        name = f"{table.database}.{table.table}"
        if (found := self._seeds.get(name)) is None:
            found = self._seeds[name] = seed_of(name)
        return found

    def _compact(self) -> None:
        # numpy's own unique takes twenty times as long as a sort
        found = np.sort(np.concatenate((*self._hashes, np.zeros(0, np.uint64))))
        self._hashes = [found[np.append(True, found[1:] != found[:-1])[: found.size]]]
        self._count = self._hashes[0].size

    def finish(self, log_bytes: int, digest: str) -> bytes:
        """The filter's file. ``log_bytes``: of the file, decompressed; ``digest``: its BLAKE3."""
        self._compact()
        hashes = self._hashes[0]
        bits = min(_BITS * hashes.size, log_bytes // _SHARE * 8, (LARGEST // 2) * 8) // 8 * 8
        if hashes.size > _MOST or bits < _BITS * hashes.size // 2:
            return _file(_FilterHead(FORMAT.version, digest, 0, 1, ()), b"")
        times = _TIMES
        there = np.zeros(max(bits, _LEAST), np.bool_)
        for place in _places(hashes, there.size, times):
            there[place] = True
        head = _FilterHead(FORMAT.version, digest, there.size, times, tuple(sorted(self._unkeyed)))
        return _file(head, np.packbits(there, bitorder="little").tobytes())


def _are_printable(data: Bytes, ranges: Ints) -> bool:
    """Whether all texts are of printable ASCII: their bytes are what a person sees and types."""
    texts = np.frombuffer(gather(data, ranges[:, 0], ranges[:, 1] - ranges[:, 0]), np.uint8)
    low, high = _PRINTABLE
    return not texts.size or bool(texts.min() >= low and texts.max() <= high)


def _places(hashes: Hashes, bits: int, times: int) -> list[NDArray[np.int64]]:
    """The places of the keys' bits: the upper half of a number, as a share of all bits."""
    half = np.uint64(32)
    step = (hashes << half) | np.uint64(1)
    return [
        ((((hashes + np.uint64(each) * step) >> half) * np.uint64(bits)) >> half).astype(np.int64)
        for each in range(times)
    ]


@dataclass(frozen=True, slots=True)
class _FilterHead:
    """The first line of a filter's file."""

    version: int
    blake3: str
    """Of the log's file as it is in the archive, in hex."""
    bits: int
    """0: there is no filter, and each table may have any value."""
    hashes: int
    """Bits of a key."""
    unkeyed: tuple[str, ...]
    """Tables that may have any value, in lower case."""


HEAD: Final = (_HEAD, _FilterHead)
"""For lab/stored_shapes.py."""


def _file(head: _FilterHead, data: bytes) -> bytes:
    return json.dumps(_HEAD.dump(head)).encode() + b"\n" + data


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """The filter of a file."""

    _head: _FilterHead
    _bits: Bytes
    """Eight in a byte, the lowest first."""

    @classmethod
    def parse(cls, content: bytes, digest: str, where: str) -> KeyFilter:
        """``digest``: that of the file's index. Raises PlanError for a filter of another file, of another version, or
        whose bits are not as many as its head says."""
        line, _, data = content.partition(b"\n")
        head = _HEAD.read(_FilterHead, line, where)
        if not FORMAT.reads(head.version) or head.blake3 != digest:
            raise PlanError(f"{where}: expected the keys of the file that is indexed, found others")
        if head.bits != 8 * len(data) or not 1 <= head.hashes <= 8:
            raise PlanError(f"{where}: expected {head.bits:,} bits and up to 8 hashes, found {8 * len(data):,}")
        return cls(head, np.frombuffer(data, np.uint8))

    def may_have(self, table: str, value: str) -> bool:
        """Whether a row change of ``table`` (``database.table``) may have the value in its first column, as it is
        printed. True for a value that is neither an integer nor printable ASCII."""
        low, high = _PRINTABLE
        raw = value.encode()
        if not self._head.bits or lower(table) in self._head.unkeyed or not all(low <= each <= high for each in raw):
            return True
        seeds, found = np.array([seed_of(table)], np.uint64), list[Hashes]()
        if value.removeprefix("-").isdecimal() and len(value) <= 20:
            for size in _SIZES:
                number = int(value)
                if -(1 << 8 * size - 1) <= number < 1 << 8 * size:
                    bytes_of = (number % (1 << 8 * size)).to_bytes(size, "little")
                    found.append(_of_integers(seeds, np.frombuffer(bytes_of, np.uint8), np.zeros(1, np.int64), size))
        text = np.frombuffer(raw or b"\0", np.uint8)
        found.append(_of_texts(seeds, text, np.zeros(1, np.int64), np.array([len(raw)], np.int64)))
        return any(map(self._has, found))

    def _has(self, hashes: Hashes) -> bool:
        places = [int(place[0]) for place in _places(hashes, self._head.bits, self._head.hashes)]
        return all(int(self._bits[place >> 3]) >> (place & 7) & 1 for place in places)
