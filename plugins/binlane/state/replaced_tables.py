"""Tables of the schema ``binlane`` in whose place is a view, or which have a trigger.

Who may DROP and CREATE there can put a view in a table's place. A function in it, with its invoker's privileges, would
run as binlane's account, whose privileges reach every database. So no table of the state is read before the server has
told that it is one. A trigger runs as its definer, but in binlane's session, which it could change.
"""

from __future__ import annotations

from typing import Final

from binlane.errors import StateSchemaError
from binlane.state.tables import SCHEMA

_LOST: Final = "`The schema binlane is lost` in docs/recovery.md"


def view_in_place(table: str) -> StateSchemaError:
    """The error of a view that has the name of a table of the state."""
    return StateSchemaError(
        f"target: {SCHEMA}.{table}: expected a table, found a view, whose functions would run as binlane's account; "
        f"nothing was read from it. Find out who has made it, and take CREATE VIEW and DROP on `{SCHEMA}`.* from that "
        f"account; then DROP VIEW {SCHEMA}.{table}, give the table its name again by RENAME TABLE if it is there under "
        f"another one (otherwise see {_LOST}), and run again"
    )


def trigger_of(table: str, name: str) -> StateSchemaError:
    """The error of a trigger of a table of the state."""
    spelled = name.replace("`", "``")
    return StateSchemaError(
        f"target: {SCHEMA}.{table}: expected a table without triggers, found one of the name {name!r}, which would run "
        f"in binlane's session; nothing was changed. Find out who has made it, and take TRIGGER on `{SCHEMA}`.* from "
        f"that account; then DROP TRIGGER {SCHEMA}.`{spelled}`, and run again"
    )
