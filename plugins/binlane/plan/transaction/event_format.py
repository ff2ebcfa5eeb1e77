"""Rewrites rows events for targets that refuse their version in a BINLOG statement.

MySQL 9 refuses rows events of version 1 (error 1730). MariaDB writes no others; MySQL writes them up to 5.5, and later
with ``log_bin_use_v1_row_events``. Version 2 differs by its type code and by extra data, empty here, between the flags
and the width (MySQL ``rows_event.h``). The images are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from binlane.binlog.format_description import FormatDescription
from binlane.binlog.rows_payload import events_of, with_body
from binlane.binlog.table_map import TABLE_ID_AND_FLAGS
from binlane.binlog.vector.frames import frame
from binlane.binlog.wire import HEADER, EventType
from binlane.model import Flavor

Translation = Callable[[bytes], bytes]

_VERSION_2: Final[Mapping[int, int]] = {
    EventType.WRITE_ROWS_V1: EventType.WRITE_ROWS_V2,
    EventType.UPDATE_ROWS_V1: EventType.UPDATE_ROWS_V2,
    EventType.DELETE_ROWS_V1: EventType.DELETE_ROWS_V2,
}
_HEAD_END: Final = HEADER.size + TABLE_ID_AND_FLAGS
_IS_VERSION_1: Final = np.isin(np.arange(256), list(_VERSION_2))
_NO_EXTRA: Final = b"\x02\x00"
"""Empty extra data: its length, which includes itself."""


def translation(target: Flavor) -> Translation | None:
    """The function that rewrites BINLOG payloads for ``target``; None if they are sent as logged."""
    return to_version_2 if target is Flavor.MYSQL else None


def format_for(source: FormatDescription, target: Flavor, target_version: str) -> bytes:
    """The FORMAT_DESCRIPTION event to send before payloads: the source's, or one of the target's version.

    MySQL before 5.6 does not announce version 2.
    """
    known = source.flavor is Flavor.MYSQL and len(source.post_header_lengths) >= EventType.DELETE_ROWS_V2
    if target is Flavor.MYSQL and not known:
        return FormatDescription(target_version).without_checksum()
    return source.without_checksum()


def to_version_2(payload: bytes) -> bytes:
    """A payload of TABLE_MAP and rows events without checksums, with all rows events in version 2."""
    if not _has_version_1(payload):
        return payload
    return b"".join(map(_as_version_2, events_of(payload)))


def _as_version_2(event: bytes) -> bytes:
    newer = _VERSION_2.get(event[4])
    if newer is None:
        return event
    return with_body(event, event[HEADER.size : _HEAD_END] + _NO_EXTRA + event[_HEAD_END:], newer)


def _has_version_1(payload: bytes) -> bool:
    """Whether any event must be rewritten: a check of every payload for MySQL, as MySQL sources rarely need it."""
    return bool(_IS_VERSION_1[frame(payload, 0, 0).type_code].any())
