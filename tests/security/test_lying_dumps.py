"""Answers to a dump that no server gives: an error that names the connection, and nothing of them in the state.

Attacker: what answers in the source's place (a connection without verify_ca or verify_identity).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import Final

import pytest

from binlane.errors import BinlaneError
from binlane.model import LOG_FILE_NAME
from tests.unit.binlog.cases import MARIADB, T, format_event, wire
from tests.unit.source.test_event_bytes import dumped, packets

_ARTIFICIAL: Final = 0x20


def _rotate(file: bytes) -> bytes:
    return wire(T.ROTATE, struct.pack("<Q", 4) + file, flags=_ARTIFICIAL)


_BEGIN: Final = (*packets(_rotate(b"binlog.000001")), *packets(format_event(MARIADB)))
NAMES: Final = (
    b"../../x.000002",
    b"/etc/x.000002",
    b"bin\0log.000002",
    b"bin\x1b[2Jlog.000002",
    b"b" * 600 + b".000002",
)
"""Of the log's next file. A line more is an attack more."""
ERRORS: Final[Mapping[str, bytes]] = {
    "without a number": b"\x01\0\0\1\xff",
    "with half a number": b"\x02\0\0\1\xff\x10",
}
"""Packets that end a dump by an error. A line more is an attack more."""


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name[:16]))
def test_a_file_has_no_name_that_the_state_would_not_hold(name: bytes) -> None:
    assert re.fullmatch(LOG_FILE_NAME, name.decode()) is None

    with pytest.raises(BinlaneError, match=r"expected the name of the log's next file, found .*which no server has"):
        dumped(*_BEGIN, *packets(_rotate(name)))


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_that_cannot_be_read_is_named(error: str) -> None:
    with pytest.raises(BinlaneError, match="an error of the server that cannot be read"):
        dumped(*_BEGIN, ERRORS[error])
