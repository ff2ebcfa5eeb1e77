"""Whatever lies in an archive's folder, reading it ends soon and with little memory: in a window of the log's own
transactions, or in an error that names the file and a next step.

Attacker: whoever can write to the archive.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
import socket
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

import pytest
import zstandard

from binlane.binlog.format_description import FormatDescription
from binlane.binlog.wire import MAGIC, ChecksumAlgorithm
from binlane.errors import WorkError
from binlane.restore import indexing
from binlane.restore.archive_index import FOLDER
from tests.forked import telling
from tests.security.archive_reader import read_archive
from tests.unit.binlog.cases import (
    MARIADB,
    MYSQL,
    UUID_BYTES,
    T,
    crc,
    format_event,
    mariadb_gtid,
    mysql_gtid,
    query,
    wire,
)
from tests.unit.plan.logs import statements

NAME: Final = "binlog.000001"
_EVENTS: Final = (*statements(1, "INSERT INTO t VALUES (1)"), *statements(2, "INSERT INTO t VALUES (2)"))
LOG: Final = MAGIC + format_event(MARIADB) + b"".join(map(crc, _EVENTS))
SECONDS: Final = 120
"""Far more than any attack takes on a loaded machine, and far less than for ever."""
Attack: TypeAlias = Callable[[Path, Path], object]
"""Of the folder, which has the log, and of the log's file in it."""


def _instead(make: Callable[[Path], object]) -> Attack:
    def attack(_: Path, file: Path) -> None:
        file.unlink()
        make(file)

    return attack


def _beside(name: str, make: Callable[[Path], object]) -> Attack:
    return lambda folder, _: make(folder / name)


def _bytes(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


def _link(to: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(to)


def _packed(name: str, data: Callable[[], bytes]) -> Attack:
    """The compressed file alone, whose data are made for its own attack: every worker imports all of them."""

    def attack(folder: Path, file: Path) -> None:
        file.unlink()
        (folder / name).write_bytes(data())

    return attack


def _socket(path: Path) -> None:
    # the name of a socket is shorter than a test's folder
    with socket.socket(socket.AF_UNIX) as found, pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)
        found.bind(path.name)


def _link_to_fifo(path: Path) -> None:
    os.mkfifo(path.parent / "other")
    path.symlink_to("other")


def _endless(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def _outside(path: Path) -> None:
    """A file behind a link is the archive's: an archive may be a folder of links."""
    other = path.parents[1] / "other"
    other.write_bytes(LOG)
    path.symlink_to(other)


_GZIP: Final = gzip.compress(LOG)
_EMPTY: Final = gzip.compress(b"")
_FRAME: Final = struct.pack("<I", 0xFD2FB528)
_BLOCK: Final = struct.pack("<I", (len(LOG) << 3) | 1)[:3] + LOG
_HEARTBEAT: Final = crc(wire(T.HEARTBEAT, bytes(65_000)))
_IS_FILE: Final = rf"/{NAME}(\.gz)?: expected a file, found {{}}; put the file there, or remove this"
_WHOLE: Final = "^2 transactions$"
_INDEX: Final = r"binlog\.index: expected names of the folder's 1 binlog file, found none .*or remove it"

_XID: Final = wire(T.XID, struct.pack("<Q", 42))
_CHANGE: Final = (query(b"BEGIN"), query(b"INSERT INTO t VALUES (1)"), _XID)


def _log(log_format: FormatDescription, *events: bytes) -> Attack:
    """The file alone, with a server's head."""
    return lambda _, file: file.write_bytes(
        MAGIC + b"".join([format_event(replace(log_format, checksum=ChecksumAlgorithm.CRC32)), *map(crc, events)])
    )


def _tagged(fields: bytes) -> bytes:
    """GTID_TAGGED with a UUID, fields that are smaller than 128 are twice their value."""
    uuid = b"\2" + b"".join(
        bytes([value << 1]) if value < 128 else bytes([value << 2 & 255 | 1, value >> 6]) for value in UUID_BYTES
    )
    body = uuid + fields
    return wire(T.GTID_TAGGED, bytes((2, (len(body) + 3) << 1, 0)) + body)


def _previous(*beginnings: int) -> bytes:
    """A GTID set of intervals of one transaction each."""
    pairs = b"".join(struct.pack("<QQ", number, number + 1) for number in beginnings)
    return wire(T.PREVIOUS_GTIDS, struct.pack("<Q", 1) + UUID_BYTES + struct.pack("<Q", len(beginnings)) + pairs)


def _log_behind(beginnings: Iterable[int]) -> Attack:
    """The file alone, with a transaction behind a GTID set that is made when the test runs, not when it is found."""
    return lambda folder, file: _log(MYSQL, _previous(*beginnings), mysql_gtid(1), *_CHANGE)(folder, file)


def _rotate(name: bytes) -> bytes:
    return wire(T.ROTATE, struct.pack("<Q", 4) + name)


_OTHERS: Final = r"{}: no server of version .* writes it"

ATTACKS: Final[Mapping[str, tuple[Attack, str]]] = {
    "a FIFO": (_instead(os.mkfifo), _IS_FILE.format("a FIFO")),
    "a FIFO beside the file": (_beside(f"{NAME}.gz", os.mkfifo), _IS_FILE.format("a FIFO")),
    "a link to a FIFO": (
        _instead(_link_to_fifo),
        _IS_FILE.format("a FIFO"),
    ),
    "a folder": (_instead(Path.mkdir), _IS_FILE.format("a folder")),
    "a socket": (_instead(_socket), _IS_FILE.format("a socket")),
    "an endless device": (_instead(_link("/dev/zero")), _IS_FILE.format("a device")),
    "an endless device beside the file": (_beside(f"{NAME}.gz", _link("/dev/zero")), _IS_FILE.format("a device")),
    "a link to itself": (_instead(_link(NAME)), _IS_FILE.format("a loop of symbolic links")),
    "a link to nothing": (_instead(_link("nothing")), f"{NAME}: cannot be read"),
    "a link to another program's file": (_instead(_link("/etc/passwd")), f"{NAME}:0: expected fe62696e, found"),
    "a link out of the folder": (_instead(_outside), _WHOLE),
    "a file without an end": (_instead(_endless), f"{NAME}:0: expected fe62696e, found 00000000"),
    "a log without an end": (lambda _, file: os.truncate(file, 1 << 40), f"{NAME}:{len(LOG)}: event_size 0"),
    "an index that is a FIFO": (_beside("binlog.index", os.mkfifo), "index: expected a file, found a FIFO"),
    "an index that is a folder": (_beside("binlog.index", Path.mkdir), "index: expected a file, found a folder"),
    "an endless index": (_beside("binlog.index", _link("/dev/zero")), "index: expected a file, found a device"),
    "an index of a terabyte": (_beside("binlog.index", _endless), r"binlog\.index: .*more than 16 MiB"),
    "an empty index": (_beside("binlog.index", _bytes(b"")), _INDEX),
    "an index in no character set": (_beside("binlog.index", _bytes(b"\xff\xfe\0\n")), _INDEX),
    "an index that is another program's": (_beside("binlog.index", _link("/etc/passwd")), _INDEX),
    "an index of other folders": (_beside("binlog.index", _bytes(f"/etc/x/../{NAME}\n".encode())), _WHOLE),
    "a name with other digits": (_beside("binlog.٠٠٠٠٠٢", _bytes(LOG)), _WHOLE),
    "a name with a line break": (_beside("bin\nlog.000002", _bytes(LOG)), _WHOLE),
    "a name that moves the cursor": (_beside("\x1b[Hbinlog.000002", _bytes(LOG)), r"one log, found \\x1b\[Hbinlog"),
    "a name in no character set": (_beside(os.fsdecode(b"\xff.000002"), _bytes(LOG)), r"one log, found .*udcff"),
    "a number of 200 digits": (_beside(f"binlog.{'9' * 200}", _bytes(LOG)), "after binlog.000001 expected number 2"),
    "gzip: 200,000 empty members": (_packed(f"{NAME}.gz", lambda: _EMPTY * 200_000 + _GZIP), _WHOLE),
    "gzip: a member for each byte": (
        _packed(f"{NAME}.gz", lambda: b"".join(gzip.compress(bytes([each])) for each in LOG)),
        _WHOLE,
    ),
    "gzip: a name of 32 MiB": (
        _packed(f"{NAME}.gz", lambda: _GZIP[:3] + b"\x08" + _GZIP[4:10] + b"x" * (32 << 20) + b"\0" + _GZIP[10:]),
        _WHOLE,
    ),
    "gzip: padding of 64 MiB": (_packed(f"{NAME}.gz", lambda: _GZIP + bytes(64 << 20)), _WHOLE),
    "gzip: something else behind it": (
        _packed(f"{NAME}.gz", lambda: _GZIP + b"garbage"),
        "cannot be decompressed: .*copy the file",
    ),
    "gzip: a wrong checksum": (
        _packed(f"{NAME}.gz", lambda: _GZIP[:-5] + bytes([_GZIP[-5] ^ 1]) + _GZIP[-4:]),
        "cannot be decompressed: .*incorrect data check",
    ),
    "gzip: cut": (_packed(f"{NAME}.gz", lambda: _GZIP[:-1]), "the compressed file ends too early"),
    "gzip: 10 GiB of zeros": (
        _packed(f"{NAME}.gz", lambda: _GZIP + gzip.compress(bytes(10 << 20)) * 1024),
        f"{NAME}:{len(LOG)}: event_size 0",
    ),
    "gzip: events of 200 MiB": (_packed(f"{NAME}.gz", lambda: _GZIP + gzip.compress(_HEARTBEAT * 160) * 20), _WHOLE),
    "zstd: 200,000 empty frames": (
        _packed(f"{NAME}.zst", lambda: zstandard.compress(b"") * 200_000 + zstandard.compress(LOG)),
        _WHOLE,
    ),
    "zstd: 200,000 frames to skip": (
        _packed(f"{NAME}.zst", lambda: struct.pack("<II", 0x184D2A50, 0) * 200_000 + zstandard.compress(LOG)),
        _WHOLE,
    ),
    "zstd: a window of 2 GiB": (
        _packed(f"{NAME}.zst", lambda: _FRAME + bytes([0, 21 << 3]) + _BLOCK),
        "cannot be decompressed: .*too much memory",
    ),
    "zstd: a frame of a terabyte, by what it says": (
        _packed(f"{NAME}.zst", lambda: _FRAME + b"\xe0" + struct.pack("<Q", 1 << 40) + _BLOCK),
        "cannot be decompressed: .*too much memory",
    ),
    "zstd: a dictionary": (
        _packed(f"{NAME}.zst", lambda: _FRAME + bytes([1, 0, 7]) + _BLOCK),
        "cannot be decompressed: .*[Dd]ictionary",
    ),
    "zstd: something else behind it": (
        _packed(f"{NAME}.zst", lambda: zstandard.compress(LOG) + b"garbage"),
        "cannot be decompressed: .*copy the file",
    ),
    "zstd: 10 GiB of zeros": (
        _packed(f"{NAME}.zst", lambda: zstandard.compress(LOG) + zstandard.compress(bytes(10 << 20)) * 1024),
        f"{NAME}:{len(LOG)}: event_size 0",
    ),
    "zstd: events of 200 MiB": (
        _packed(f"{NAME}.zst", lambda: zstandard.compress(LOG) + zstandard.compress(_HEARTBEAT * 160) * 20),
        _WHOLE,
    ),
    "GTIDs of MariaDB in MySQL's log": (_log(MYSQL, mariadb_gtid(1, 4), *_CHANGE[1:]), _OTHERS.format("MARIADB_GTID")),
    "GTIDs of MySQL in MariaDB's log": (_log(MARIADB, mysql_gtid(1), *_CHANGE), _OTHERS.format("GTID")),
    "a GTID set of MySQL in MariaDB's log": (_log(MARIADB, _previous()), _OTHERS.format("PREVIOUS_GTIDS")),
    "a GTID list of MariaDB in MySQL's log": (
        _log(MYSQL, wire(T.MARIADB_GTID_LIST, bytes(4))),
        _OTHERS.format("MARIADB_GTID_LIST"),
    ),
    "a negative number of a transaction": (
        _log(MYSQL, wire(T.GTID, b"\0" + UUID_BYTES + struct.pack("<q", -5)), *_CHANGE),
        "GTID: number -5 of a transaction",
    ),
    "a tag that is none": (_log(MYSQL, _tagged(b"\4\4\6\4x'"), *_CHANGE), "GTID_TAGGED: tag "),
    "a commit in the year 586524": (
        _log(MYSQL, _tagged(b"\4\4\x0c" + b"\xff" * 9), *_CHANGE),
        "GTID_TAGGED: a commit at 18446744073709551615 microseconds",
    ),
    "a GTID set from its end": (
        _log_behind(range(1_000_001, 1, -2)),
        "PREVIOUS_GTIDS: interval 999999-999999 of a GTID set behind 1000001",
    ),
    "a GTID set of half a million intervals": (
        _log_behind(range(3, 1_000_001, 2)),
        "^1 transaction",
    ),
    "a GTID set of 38 MiB": (
        _log(MYSQL, wire(T.PREVIOUS_GTIDS, bytes(38 << 20)), mysql_gtid(1), *_CHANGE),
        "PREVIOUS_GTIDS: GTIDs of 39,845,888 bytes at the head of a file, 8,388,608 at most",
    ),
    "a GTID list of 38 MiB": (
        _log(MARIADB, wire(T.MARIADB_GTID_LIST, bytes(38 << 20)), mariadb_gtid(1, 4), *_CHANGE[1:]),
        "MARIADB_GTID_LIST: GTIDs of 39,845,888 bytes at the head of a file",
    ),
    "a next file of 400 digits": (_log(MYSQL, _rotate(b"binlog." + b"9" * 400)), "expected a file of the log"),
    "a next file of 5,000 digits": (
        _log(MYSQL, _rotate(b"binlog." + b"9" * 5000)),
        "5,007 bytes, expected at most 512",
    ),
}
"""What is done to the folder, and what is said then. A line more is an attack more."""


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_folder_of_an_attacker_ends_in_a_window_or_an_error_that_names_the_file(tmp_path: Path, attack: str) -> None:
    do, expected = ATTACKS[attack]
    folder = tmp_path / "archive"
    folder.mkdir()
    (folder / NAME).write_bytes(LOG)
    do(folder, folder / NAME)
    with telling(read_archive, str(folder), str(tmp_path / "work")) as (_, answer):
        assert answer.poll(SECONDS), "it waits, or reads on and on"
        said = answer.recv()
    assert re.search(expected, said), said


def test_an_index_that_cannot_be_written_is_one_error_that_names_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an account that may not write there; who runs the tests may, so the system's answer is injected."""

    def denied(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(indexing, "index_file", lambda *_: (None, b"x", b"x"))
    monkeypatch.setattr("binlane.work.files.WorkFolder.replace", denied)
    with pytest.raises(
        WorkError, match=f"{FOLDER}: cannot be written: Permission denied; .*as an account that may write"
    ):
        indexing._index_one(str(tmp_path), f"{NAME}/{NAME}")
