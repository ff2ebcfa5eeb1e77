"""The content of a server of the suites that a log can change, without the drivers' own objects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Final

from lab.compare import contents

if TYPE_CHECKING:
    from lab.servers import PrivateServer

_DRIVERS: Final = re.compile(r"[\w ]+ mtr(\.|$)")
"""The driver's database, where tests list the server warnings that they expect."""
_EVENTS: Final = (
    "SELECT event_schema, event_name, event_definition, event_type, interval_value, interval_field, execute_at, "
    "starts, ends, on_completion, sql_mode, definer FROM information_schema.events"
)
"""Without the status, because events are disabled on a replica."""


def everything(server: PrivateServer) -> Mapping[str, str]:
    """By name: a definition, or a table's number of rows and checksum."""
    found = {name: text for name, text in contents(server).items() if _DRIVERS.match(name) is None}
    with closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute(_EVENTS)
        found |= {f"event {row[0]}.{row[1]}": repr(row[2:]) for row in cursor.fetchall()}
    return found


def differences(left: Mapping[str, str], right: Mapping[str, str]) -> Mapping[str, str]:
    """The differences: both sides' text by name."""
    return {
        name: f"{left.get(name, 'missing')} | {right.get(name, 'missing')}"
        for name in sorted(left.keys() | right.keys())
        if left.get(name) != right.get(name)
    }
