"""Real logs of other projects, if the folder with them is there: what MANIFEST.tsv says of them is what is read."""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from binlane.binlog.events import FormatDescription, parse_body
from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import IncompleteTail, transactions
from binlane.binlog.wire import CHECKSUM_LENGTH, EventType, computed_crc, stored_crc
from binlane.errors import BinlogError, ChecksumError

SMALL = 1300
"""Bytes of a file that every damage is tried on."""
CORPORA = Path(__file__).parents[4] / "shared" / "corpora"
PREFIXED = {"FORMAT_DESC": EventType.FORMAT_DESCRIPTION, "MA_BINLOG_CHECKPOINT": EventType.BINLOG_CHECKPOINT}
UNTERMINATED = {"osheroff__mysql-binlog-connector-java/src__test__resources__mysql-bin.aurora-padding": 216}
"""Files that end inside a transaction, and where it begins."""


@dataclass(frozen=True)
class Listed:
    path: Path
    version: str
    checksum: str
    histogram: Counter[str]
    crc_ok: int
    crc_bad: int


def listed() -> list[Listed]:
    manifest = CORPORA / "MANIFEST.tsv"
    if not manifest.exists():
        return []
    with manifest.open(encoding="utf-8", newline="") as lines:
        return [
            Listed(
                CORPORA / row["file"],
                row["server_version"],
                row["checksum_alg"],
                Counter({name: int(count) for name, count in map(split_count, row["event_histogram"].split(","))}),
                int(row["crc_ok"]),
                int(row["crc_bad"]),
            )
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]


def split_count(entry: str) -> tuple[str, str]:
    name, _, count = entry.rpartition(":")
    return name, count


def listed_name(code: int) -> str:
    """The manifest's name of a type."""
    known = {**{int(kind): kind.name for kind in EventType}, 100: "AURORA_PADDING_100"}
    known |= {int(kind): name for name, kind in PREFIXED.items()}
    return known[code].replace("MARIADB_", "MA_")


FILES = listed()
each_file = pytest.mark.parametrize("entry", FILES, ids=[f"{e.path.parent.name}/{e.path.name}" for e in FILES])


@pytest.mark.skipif(not FILES, reason=f"{CORPORA} is not there")
def test_the_corpora_are_listed() -> None:
    assert sum(entry.crc_ok for entry in FILES) > 0


@each_file
def test_events_are_those_that_the_manifest_counts(entry: Listed) -> None:
    reader = LogReader(entry.path.read_bytes(), entry.path.name, verify=False)

    codes = [event.header.type_code for event in reader.events()]

    assert Counter(listed_name(code) for code in codes) == entry.histogram
    assert reader.format.server_version == entry.version
    assert reader.format.checksum.name == entry.checksum.replace("pre-checksum", "NONE")


@each_file
def test_checksums_are_those_that_the_manifest_counts(entry: Listed) -> None:
    data = entry.path.read_bytes()
    reader = LogReader(data, entry.path.name, verify=False)
    wholes = [memoryview(data)[e.offset : e.offset + e.header.event_size] for e in reader.events()]
    good = Counter(computed_crc(whole) == stored_crc(whole) for whole in wholes)

    if reader.format.checksum.length == CHECKSUM_LENGTH:
        assert (good[True], good[False]) == (entry.crc_ok, entry.crc_bad)


@each_file
def test_a_file_is_read_to_its_end_or_refused_for_its_checksum(entry: Listed) -> None:
    data = entry.path.read_bytes()
    reader = LogReader(data, entry.path.name)
    if entry.crc_bad:
        bad = next(
            event.offset
            for event in LogReader(data, entry.path.name, verify=False).events()
            for whole in [memoryview(data)[event.offset : event.offset + event.header.event_size]]
            if computed_crc(whole) != stored_crc(whole)
        )
        with pytest.raises(ChecksumError, match=rf"^{re.escape(entry.path.name)}:{bad}: "):
            list(transactions(reader))
        return
    tails: list[IncompleteTail] = []
    found = list(transactions(reader, tails.append))

    name = f"{entry.path.parent.name}/{entry.path.name}"
    assert [tail.offset for tail in tails] == ([UNTERMINATED[name]] if name in UNTERMINATED else [])
    xids = sum(t.events[-1].header.type_code == EventType.XID for t in found)
    payloads = entry.histogram["TRANSACTION_PAYLOAD"]
    assert xids == entry.histogram["XID"] + payloads
    gtids = sum(entry.histogram[kind] for kind in ("GTID", "ANONYMOUS_GTID", "MA_GTID")) - len(tails)
    assert gtids in (0, len(found))


@each_file
def test_every_event_that_is_not_rows_is_parsed(entry: Listed) -> None:
    reader = LogReader(entry.path.read_bytes(), entry.path.name, verify=False)

    parsed = [parse_body(event, reader.format, reader.name) for event in reader.events()]

    assert isinstance(parsed[0], FormatDescription)
    assert len(parsed) == entry.histogram.total()


@pytest.mark.parametrize("entry", [e for e in FILES if e.path.stat().st_size <= SMALL], ids=lambda e: e.path.name)
def test_every_damaged_byte_is_an_error_of_the_project_or_changes_nothing_that_a_checksum_guards(entry: Listed) -> None:
    data = entry.path.read_bytes()
    try:
        whole = [
            transaction.events for transaction in transactions(LogReader(data, entry.path.name), lambda tail: None)
        ]
    except BinlogError:
        # it is damaged as it is
        whole = []
    for at, bit in itertools.product(range(len(data)), (0x01, 0x80)):
        damaged = data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]
        try:
            reader = LogReader(damaged, entry.path.name)
            found = [transaction.events for transaction in transactions(reader, lambda tail: None)]
        except BinlogError:
            continue
        if entry.checksum == "CRC32" and entry.crc_ok:
            assert found == whole[: len(found)], f"byte {at}"
