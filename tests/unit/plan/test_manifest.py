"""manifest.json: canonical, strict, and coherent."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from binlane.binlog.wire import SegmentOffset
from binlane.errors import PlanError
from binlane.model import Flavor, LogPosition
from binlane.plan.manifest import Manifest, Segment

FIRST = Segment(
    name="segments/000001.binlog",
    bytes=1_260,
    blake3="ab" * 32,
    flavor=Flavor.MARIADB,
    server_version="10.11.6-MariaDB",
    checksum="CRC32",
    first_seqno=8,
    last_seqno=10,
    transactions=3,
    source_file="binlog.000001",
    start_offset=(1 << 32) + 5,
    end_offset=(1 << 32) + 1_005,
    first_time=1_700_000_000.0,
    last_time=1_700_000_001.25,
    first_gtid="0-1-8",
    last_gtid="0-1-10",
)
SECOND = replace(
    FIRST,
    name="segments/000002.binlog",
    first_seqno=11,
    last_seqno=11,
    transactions=1,
    start_offset=FIRST.end_offset,
    end_offset=FIRST.end_offset + 1_000,
)
MANIFEST = Manifest(
    channel="demo",
    window="2026-01-01T00:00:00+00:00",
    first_seqno=8,
    last_seqno=11,
    start=LogPosition("binlog.000001", FIRST.start_offset),
    end=LogPosition("binlog.000002", 256),
    gtid_set="0-1-11",
    end_time=1_700_000_001.25,
    identity="mariadb server_id 1",
    fingerprint="aa 256 -",
    segments=(FIRST, SECOND),
)


def test_a_manifest_comes_back_as_it_was_with_the_same_bytes() -> None:
    data = MANIFEST.to_json()
    again = Manifest.from_json(data, "manifest.json")
    assert again == MANIFEST
    assert again.to_json() == data
    assert again.digest == MANIFEST.digest != replace(MANIFEST, channel="other").digest


def test_the_largest_windows_have_names_too() -> None:
    last = replace(SECOND, name="segments/1000000.binlog")
    carried = replace(FIRST, name="carried/1234567890123456789.binlog")
    again = replace(MANIFEST, segments=(FIRST, last), carried=(carried,))
    assert Manifest.from_json(again.to_json(), "manifest.json") == again


def test_a_segments_bytes_have_64_bit_places_on_the_source() -> None:
    assert FIRST.header_length == 260
    assert FIRST.source_position(SegmentOffset(260)) == LogPosition("binlog.000001", (1 << 32) + 5)


def test_a_window_without_transactions_has_no_segments() -> None:
    empty = replace(MANIFEST, last_seqno=7, segments=())
    assert Manifest.from_json(empty.to_json(), "manifest.json").transactions == 0


def _set(path: tuple[Any, ...], value: object) -> Callable[[Any], None]:
    def change(manifest: Any) -> None:
        for key in path[:-1]:
            manifest = manifest[key]
        manifest[path[-1]] = value

    return change


def _carries(name: str) -> Callable[[Any], None]:
    return lambda manifest: manifest.update(carried=[{**manifest["segments"][0], "name": name}])


CHANGES = [
    pytest.param(_set(("extra",), 1), "unknown key 'extra'", id="unknown"),
    pytest.param(lambda m: m.pop("gtid_set"), "'gtid_set' is missing", id="missing"),
    pytest.param(_set(("segments", 1, "extra"), 1), r"segments\[1\]: unknown key 'extra'", id="unknown in segment"),
    pytest.param(lambda m: m["segments"][0].pop("blake3"), r"segments\[0\]: key 'blake3'", id="missing in segment"),
    pytest.param(_set(("end", "line"), 1), "end: unknown key 'line'", id="unknown in position"),
    pytest.param(_set(("version",), 2), "version 1, found 2", id="other version"),
    pytest.param(_set(("first_seqno",), "8"), "first_seqno: expected int", id="text for a number"),
    pytest.param(_set(("first_seqno",), True), "first_seqno: expected int", id="bool for a number"),
    pytest.param(_set(("segments",), {}), "segments: expected a list", id="segments"),
    pytest.param(
        _set(("segments", 0, "flavor"), "oracle"),
        "flavor: expected one of mariadb, mysql",
        id="flavor",
    ),
    pytest.param(_set(("start",), "here"), "start: expected an object", id="position"),
    pytest.param(lambda m: m["segments"].pop(0), "expected seqnos from 8, got 11..11", id="lost segment"),
    pytest.param(lambda m: m["segments"].pop(1), "expected last_seqno 10 by its segments, got 11", id="lost end"),
    pytest.param(lambda m: m["segments"].reverse(), "expected seqnos from 8", id="order"),
    pytest.param(_set(("segments", 0, "transactions"), 2), "for 2 transactions", id="count"),
    pytest.param(_set(("segments", 1, "start_offset"), 7), "expected to begin at binlog.000001", id="overlap"),
    *(
        pytest.param(_set(("segments", 1, "name"), name), r"expected segments/NNNNNN\.binlog, found '", id=name[:40])
        for name in (
            *(
                "../../../etc/passwd",
                "/etc/passwd",
                "segments/../../x",
                "segments/000001.binlog\n",
                "segments/1.binlog",
            ),
            *("carried/000000000007.binlog", "segments/" + "0" * 100_000),
        )
    ),
    pytest.param(_carries("../x"), r"expected carried/NNNNNNNNNNNN\.binlog, found '\.\./x'", id="carried"),
    pytest.param(_carries("segments/000001.binlog"), "expected carried/", id="a segment as a carried one"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_a_manifest_that_is_not_whole_known_and_coherent_is_refused(
    change: Callable[[Any], None], message: str
) -> None:
    value = json.loads(MANIFEST.to_json())
    change(value)
    with pytest.raises(
        PlanError, match=rf"^work/manifest\.json: .*{message}|^work/manifest\.json.*{message}"
    ) as refused:
        Manifest.from_json(json.dumps(value).encode(), "work/manifest.json")
    assert len(str(refused.value)) < 500


def test_invalid_json_and_every_truncated_file_are_refused() -> None:
    data = MANIFEST.to_json()
    for end in range(0, len(data) - 2, 7):
        with pytest.raises(PlanError, match=r"^work/manifest\.json: expected JSON"):
            Manifest.from_json(data[:end], "work/manifest.json")
