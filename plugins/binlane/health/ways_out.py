"""What to do about an error that stopped a lane, by the server's error number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_SPACE: Final = "Free space on the target, then run the channel again."
_LOGIN: Final = "Compare the connection's user and password with the account on the server, then run the channel again."
_GRANT: Final = "Grant the account the missing privilege (docs/accounts.md), then run the channel again."
_SCHEMA: Final = "Give the target's table the definition that the source had at that time, then run the channel again."
_LOCK: Final = "Transient, retried automatically. Find the session that holds the lock on the target."
_DRIFT: Final = "Find the program that writes to the target, correct the row (docs/drift.md), then run again."
_PARENT: Final = (
    "The target lacks the row of the parent that the message names. If the channel's filter leaves this table out: "
    "ALTER TABLE .. DROP FOREIGN KEY on the target, or take both tables (docs/filters.md). Otherwise find the program "
    "that writes to the target, correct the row (docs/drift.md). Then run again."
)
_NULL: Final = (
    "If the source's session had explicit_defaults_for_timestamp = OFF, which MySQL does not log with it (and, in this "
    "window and file, with no definition of the session's before it): "
    "SET GLOBAL explicit_defaults_for_timestamp = OFF on the target, run the channel again, and set it back, unless it "
    "is OFF on the source, too. Otherwise "
    "the column is NOT NULL on the target alone: give it the source's definition."
)
_BY_CODE: Final[Mapping[int, str]] = {
    **dict.fromkeys((1032, 1062, 1451), _DRIFT),
    1452: _PARENT,
    **dict.fromkeys((1049, 1054, 1091, 1136, 1146, 1265, 1366, 1406, 1677), _SCHEMA),
    **dict.fromkeys((1021, 1114), _SPACE),
    1048: _NULL,
    **dict.fromkeys((1044, 1142, 1227), _GRANT),
    **dict.fromkeys((1045, 1698), _LOGIN),
    **dict.fromkeys((1020, 1205, 1213), _LOCK),
}
_OTHER: Final = "The message says what to do. Then run the channel again: it continues from its positions."


def way_out(code: int) -> str:
    """The next step; the error's message itself says where and what."""
    return _BY_CODE.get(code, _OTHER)
