"""Tables of which statements would write rows with other values than the source has computed.

Row events on MySQL are computed in the modes and the time zone of their sessions, and MariaDB's bring the values of
stored columns. Statements that write logged rows have one mode and one zone. The check `generated-columns` refuses such
tables before a window's first write, for the way of writing that the channel's file has then: this is asked again where
rows are written, since the file, or the account's privileges, may be others by then.
"""

from __future__ import annotations

from typing import Final

from binlane.model import Flavor, SessionContext
from binlane.schema.model import Generated, Table
from binlane.schema.session_columns import TIME_ZONE, computed
from binlane.sql.sql_modes import EVALUATED, INVALID_DATES, evaluated

NAMED: Final = frozenset(EVALUATED.values()) - {"NO_ZERO_IN_DATE", "NO_ZERO_DATE"}
"""The modes that are compared: servers, families and the "sql" writer differ in the others as a rule."""
AT_OPENING: Final = frozenset({"NO_UNSIGNED_SUBTRACTION"})
"""A server looks at the mode when it opens the table, in whichever session does, and then keeps to it in all."""
UTC: Final = frozenset({"+00:00", "UTC"})
"""Names of the zone in which statements write rows."""
ALIKE_DOCUMENTS: Final = ("JSON_EXTRACT",)
"""Documents of a MySQL source have one form, which the target keeps."""
_ASKED: Final = NAMED - AT_OPENING - {INVALID_DATES}
"""``apply.rows.sql`` allows invalid dates where the session has."""


def computed_otherwise(
    table: Table, context: SessionContext | None, source: Flavor, target: Flavor, *, allow_unsafe: bool
) -> str | None:
    """What of the target's table would get another value from statements than from the source's session, and why; None
    if nothing would. ``context``: that of a ROWS item. ``allow_unsafe``: as ``apply.allow_unsafe``."""
    modes = () if context is None or context.sql_mode is None else evaluated(context.sql_mode)
    for mode in modes:
        if mode in _ASKED and (what := computed(table, mode)) is not None:
            return f"{what}, of a session with sql_mode {mode}"
    if allow_unsafe:
        return None
    if source is Flavor.MARIADB or context is not None:
        zone = None if context is None else context.time_zone
        if zone not in UTC and (what := computed(table, TIME_ZONE)) is not None:
            found = "no time zone in the log" if zone is None else f"time zone {zone}"
            return f"{what}, of a session with {found} (or set allow_unsafe, if all sessions have +00:00)"
    return _other_answer(table) if (source, target) == (Flavor.MYSQL, Flavor.MARIADB) else None


def _other_answer(table: Table) -> str | None:
    """The same of stored columns that MariaDB computes otherwise than MySQL."""
    stored = [column for column in table.columns if column.generated is Generated.STORED]
    if not stored:
        return None
    from binlane.sql.parse.other_answers import other_answer
    from binlane.sql.temporary_routines import tokens_of

    for column in stored:
        tokens = tokens_of(column.expression, Flavor.MARIADB)
        what = "an expression that cannot be read" if tokens is None else other_answer(tokens, ALIKE_DOCUMENTS)
        if what is not None:
            return f"column {column.name}, which is generated: {what}"
    return None
