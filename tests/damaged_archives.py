"""Archives of a real server's log, and the ways in which a pair of files in them may be wrong."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import zstandard

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import IncompleteTail, transactions
from binlane.binlog.wire import FLAGS_AT, HEADER, IN_USE, LOG_BEGIN, EventType
from binlane.model import Flavor
from lab.servers import PrivateServer, private_server

ANONYMOUS: Final = ("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF")
FLUSH, RESTART, KILL = "flush", "restart", "kill"
_U32: Final = struct.Struct("<I")

Files: TypeAlias = dict[str, bytes]
"""The files of an archive, by name."""


@dataclass(frozen=True, slots=True)
class Archive:
    """Closed files of one server's log, and the log of another server of the same family and options."""

    files: Files
    others: Files
    """Files of the other server, with its own server id."""
    has_gtids: bool
    ends: Sequence[str]
    """How each file but the last ends: FLUSH, RESTART or KILL."""

    @property
    def names(self) -> list[str]:
        return sorted(self.files)


def recorded(folder: Path, flavor: Flavor, options: tuple[str, ...], ends: Sequence[str]) -> Archive:
    """An archive whose files end in these ways; the last one is closed, too."""
    logs = []
    for name in ("one", "other"):
        with private_server(folder / name, flavor, options, name=name, durable=False) as server:
            # the server's own start may have left a file without transactions
            for number, end in enumerate((*ends, FLUSH)):
                _write(server, number)
                _end(server, end)
            found = sorted((folder / name).glob("binlog.0*[0-9]"))
            logs.append({path.name: path.read_bytes() for path in found[: len(ends) + 1]})
    one, other = logs
    return Archive(one, other, options != ANONYMOUS, ends)


def _write(server: PrivateServer, number: int) -> None:
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS written")
        cursor.execute("CREATE TABLE IF NOT EXISTS written.t (id INT PRIMARY KEY, word VARCHAR(80))")
        for row in range(4):
            cursor.execute("INSERT INTO written.t VALUES (%s, %s)", (10 * number + row, "word " * 12))


def _end(server: PrivateServer, end: str) -> None:
    if end == FLUSH:
        server.query("FLUSH BINARY LOGS")
    else:
        if end == KILL:
            server.kill()
        server.restart()


def bytes_of_transactions(data: bytes, name: str) -> list[bytes]:
    """The transactions of a file or segment, one after another."""
    left_out: list[IncompleteTail] = []
    return [data[each.start : each.end] for each in transactions(LogReader(data, name), left_out.append)]


def _events(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Type, offset and end of each event."""
    at = LOG_BEGIN
    while at < len(data):
        _, code, _, size, *_ = HEADER.unpack_from(data, at)
        yield code, at, at + size
        at += size


def _ends(data: bytes) -> list[int]:
    return [each.end for each in transactions(LogReader(data, "file"), lambda _: None)]


def in_use(data: bytes) -> bytes:
    """The file as it was while its server wrote it. The checksum of FORMAT_DESCRIPTION leaves the flag out."""
    changed = bytearray(data)
    changed[LOG_BEGIN + FLAGS_AT] |= IN_USE
    return bytes(changed)


def without_end(data: bytes) -> bytes:
    """The file up to its last transaction's end."""
    return data[: _ends(data)[-1]]


def _head_end(data: bytes) -> int:
    return next(
        at
        for code, at, _ in _events(data)
        if code not in (EventType.FORMAT_DESCRIPTION, EventType.PREVIOUS_GTIDS, EventType.MARIADB_GTID_LIST)
    )


def _next_to(files: Files, name: str) -> str:
    names = sorted(files)
    return names[names.index(name) + 1]


def cut(at: Callable[[bytes], int]) -> Damage:
    """The first file of the pair, cut at an offset, with the flag of a file that was copied while it was written."""

    def damage(archive: Archive, name: str) -> Files:
        data = archive.files[name]
        return {**archive.files, name: in_use(data[: at(data)])}

    return damage


def cut_closed(at: Callable[[bytes], int]) -> Damage:
    """The same of a file that its server had closed."""

    def damage(archive: Archive, name: str) -> Files:
        data = archive.files[name]
        return {**archive.files, name: data[: at(data)]}

    return damage


def _doubled(archive: Archive, name: str) -> Files:
    return {**archive.files, _next_to(archive.files, name): archive.files[name]}


def _doubled_and_stale(archive: Archive, name: str) -> Files:
    data = archive.files[name]
    return {**archive.files, _next_to(archive.files, name): in_use(data[: _ends(data)[-2]])}


def _missing(archive: Archive, name: str) -> Files:
    return {other: data for other, data in archive.files.items() if other != name}


def _renumbered(archive: Archive, name: str) -> Files:
    """The second file is missing, and the files behind it have the numbers before theirs."""
    names, datas = archive.names, [archive.files[each] for each in archive.names]
    del datas[names.index(name) + 1]
    return dict(zip(names, datas, strict=False))


def _swapped(archive: Archive, name: str) -> Files:
    after = _next_to(archive.files, name)
    return {**archive.files, name: archive.files[after], after: archive.files[name]}


def _of_another_server(archive: Archive, name: str) -> Files:
    after = _next_to(archive.files, name)
    return {**archive.files, after: archive.others[after]}


def _with_server_id_of(data: bytes, other: bytes) -> bytes:
    """A file whose events have another server id; their checksums are right."""
    server_id, changed = HEADER.unpack_from(other, LOG_BEGIN)[2], bytearray(data)
    for _, at, end in _events(data):
        _U32.pack_into(changed, at + 5, server_id)
        _U32.pack_into(changed, end - 4, zlib.crc32(changed[at : end - 4]))
    return bytes(changed)


def _of_another_server_with_the_same_id(archive: Archive, name: str) -> Files:
    after = _next_to(archive.files, name)
    return {**archive.files, after: _with_server_id_of(archive.others[after], archive.files[name])}


def _packed_beside(plain: Callable[[bytes], bytes], packed: Callable[[bytes], bytes]) -> Damage:
    def damage(archive: Archive, name: str) -> Files:
        data = archive.files[name]
        return {**archive.files, name: plain(data), f"{name}.gz": gzip.compress(packed(data), 1)}

    return damage


def _another_packed_beside(archive: Archive, name: str) -> Files:
    return {**archive.files, f"{name}.gz": gzip.compress(archive.others[name], 1)}


def _packed_is_growing(archive: Archive, name: str) -> Files:
    packed = gzip.compress(archive.files[name], 1)
    return {**archive.files, f"{name}.gz": packed[: len(packed) // 2]}


def _all_packed(archive: Archive, name: str) -> Files:
    return {
        (f"{other}.gz" if other <= name else other): (gzip.compress(data, 1) if other <= name else data)
        for other, data in archive.files.items()
    }


def _newer_part_is_missing(archive: Archive, name: str) -> Files:
    return {other: data for other, data in archive.files.items() if other <= name}


def _stale(data: bytes) -> bytes:
    return in_use(data[: _ends(data)[-2]])


def _two_pieces(compress: Callable[[bytes], bytes], data: bytes) -> tuple[bytes, bytes]:
    """A file as its server's log was compressed while it grew: all but its last transaction, and the rest."""
    at = _ends(data)[-2]
    return compress(data[:at]), compress(data[at:])


def _packed_and_cut(suffix: str, cut_off: Callable[[bytes, bytes], bytes]) -> Damage:
    """The first file of the pair, compressed in two pieces, of which a part is there."""

    def damage(archive: Archive, name: str) -> Files:
        pieces = _two_pieces(COMPRESS[suffix], archive.files[name])
        others = {other: data for other, data in archive.files.items() if other != name}
        return {**others, f"{name}{suffix}": cut_off(*pieces)}

    return damage


def packed(files: Files, suffixes: Sequence[str]) -> Files:
    """The files compressed in turn in these ways; those that are compressed already, or have such a copy, stay."""
    turns = itertools.cycle(suffixes)
    found = {}
    for name, data in sorted(files.items()):
        suffix = "" if name.endswith(tuple(COMPRESS)) else next(turns)
        is_free = bool(suffix) and f"{name}{suffix}" not in files
        found[f"{name}{suffix}" if is_free else name] = COMPRESS[suffix](data) if is_free else data
    return found


COMPRESS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    ".gz": lambda data: gzip.compress(data, 1),
    ".zst": zstandard.compress,
}
Damage: TypeAlias = Callable[[Archive, str], Files]
"""The archive after damage to the pair whose first file has this name."""

LOSING: Final[Mapping[str, Damage]] = {
    "copied while it was written, between transactions": cut(lambda data: _ends(data)[-2]),
    "copied while it was written, inside a transaction": cut(lambda data: _ends(data)[-2] + 60),
    "copied while it was written, inside an event": cut(lambda data: _ends(data)[-1] - 3),
    "copied before its first transaction": cut(_head_end),
    "copied with its first transaction alone": cut(lambda data: _ends(data)[0]),
    "cut between transactions": cut_closed(lambda data: _ends(data)[-2]),
    "cut inside a transaction": cut_closed(lambda data: _ends(data)[-2] + 60),
    "cut inside an event": cut_closed(lambda data: _ends(data)[-1] - 3),
    "cut behind its header": cut_closed(_head_end),
    "cut inside its header": cut_closed(lambda data: 60),
    "empty": cut_closed(lambda data: 0),
    "missing": _missing,
    "followed by itself": _doubled,
    "followed by an older copy of itself": _doubled_and_stale,
    "renumbered": _renumbered,
    "swapped": _swapped,
    "followed by a file of another server": _of_another_server,
    "another file compressed beside it": _another_packed_beside,
    "stale, plain and compressed": _packed_beside(_stale, _stale),
    **{
        f"{suffix} {what}": _packed_and_cut(suffix, cut_off)
        for suffix in COMPRESS
        for what, cut_off in (
            ("cut in its first piece", lambda one, _: one[: len(one) // 2]),
            ("without its last piece", lambda one, _: one),
            ("cut in its last piece", lambda one, two: one + two[: len(two) // 2]),
            ("without its last byte", lambda one, two: one + two[:-1]),
        )
    },
}
"""Damage by which transactions are lost or invented if the files are believed."""

LOSING_WITH_GTIDS: Final[Mapping[str, Damage]] = {
    "followed by a file of another server with the same id": _of_another_server_with_the_same_id,
}
"""The same; without GTIDs nothing in the log shows it."""

HARMLESS: Final[Mapping[str, Damage]] = {
    "as it is": lambda archive, _: archive.files,
    "stale, and compressed beside it": _packed_beside(_stale, bytes),
    "stale compressed beside it": _packed_beside(bytes, _stale),
    "compressed beside it": _packed_beside(bytes, bytes),
    "being compressed": _packed_is_growing,
    "compressed up to it": _all_packed,
    **{f"{suffix} in two pieces": _packed_and_cut(suffix, lambda one, two: one + two) for suffix in COMPRESS},
    "the newest": _newer_part_is_missing,
}
"""Nothing before the archive's end is lost."""

PROVED_BY_GTIDS: Final[Mapping[str, Damage]] = {
    "without its last event": cut_closed(lambda data: _ends(data)[-1]),
    "copied before its last event was written": cut(lambda data: _ends(data)[-1]),
}
"""A file has all its transactions, which only GTIDs show."""
