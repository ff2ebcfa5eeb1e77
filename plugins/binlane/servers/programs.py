"""Reads what stands behind statements: the texts of routines, views and triggers, and when triggers fire."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, text

from binlane.model import TableKey
from binlane.schema.model import Program, StoredTrigger

_OWN: Final = "('mysql', 'sys', 'information_schema', 'performance_schema')"
_TRIGGERS: Final = f"""
SELECT event_object_schema, event_object_table, trigger_name, action_timing, event_manipulation, action_order,
  action_statement, sql_mode
FROM information_schema.triggers WHERE event_object_schema NOT IN {_OWN}
"""
_ROUTINES: Final = f"""
SELECT routine_schema, routine_name, 'routine', routine_definition, sql_mode
FROM information_schema.routines WHERE routine_schema NOT IN {_OWN}
"""
_VIEWS: Final = f"""
SELECT table_schema, table_name, 'view', NULLIF(view_definition, ''), ''
FROM information_schema.views WHERE table_schema NOT IN {_OWN}
"""


def read_triggers(connection: Connection) -> tuple[StoredTrigger, ...]:
    """The triggers of all databases but the server's own."""
    return tuple(
        StoredTrigger(
            TableKey(str(database), str(table)), str(name), f"{timing} {event}", int(order or 0), str(body), str(mode)
        )
        for database, table, name, timing, event, order, body, mode in connection.execute(text(_TRIGGERS))
    )


def read_programs(connection: Connection) -> tuple[Program, ...]:
    """The routines and views of all databases but the server's own, as far as the account sees them."""
    return tuple(
        Program(TableKey(str(database), str(name)), str(kind), None if body is None else str(body), str(mode or ""))
        for query in (_ROUTINES, _VIEWS)
        for database, name, kind, body, mode in connection.execute(text(query))
    )
