"""The text of a server's error is cut where it comes in, whoever reads the packet."""

from __future__ import annotations

import struct

import pymysql
import pytest

from binlane.driver.wire import LONGEST_ERROR, raise_error
from binlane.errors import BinlaneError
from binlane.source.server import translated
from tests.unit.driver.test_results import by_chunks, stream
from tests.unit.test_imports import product_files

_HEAD = b"\xff" + struct.pack("<H", 1045) + b"#28000"
_LONG = _HEAD + b"a" * (1 << 20)


@pytest.mark.parametrize("sent", [_HEAD + b"a" * 512, _LONG], ids=["as servers send it", "a megabyte"])
def test_an_error_is_no_longer_than_servers_send_it(sent: bytes) -> None:
    with pytest.raises(pymysql.err.OperationalError) as by_driver:
        by_chunks(stream([sent]), [1 << 16])._read_query_result()
    with pytest.raises(pymysql.err.OperationalError) as by_reader:
        raise_error(sent)
    for found in (by_driver, by_reader):
        code, text = found.value.args
        assert code == 1045
        assert text.startswith("a" * 512)
        assert len(text) <= LONGEST_ERROR
    with pytest.raises(BinlaneError) as told, translated("db"):
        raise by_driver.value
    assert len(str(told.value)) <= 3_000


@pytest.mark.parametrize("packet", [b"", b"\xff\1", b"\xff\x15\x04#\xff\xfe"])
def test_a_packet_that_has_no_error_is_none_of_the_drivers(packet: bytes) -> None:
    with pytest.raises((ValueError, struct.error, IndexError)):
        raise_error(packet)


def test_nobody_else_reads_the_packet_of_an_error() -> None:
    readers = [file.name for file in product_files() if "raise_mysql_exception" in file.read_text()]
    assert readers == ["wire.py"]
