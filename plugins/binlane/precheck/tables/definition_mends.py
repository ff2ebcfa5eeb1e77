"""The statements that give tables of the target the source's definitions, beside the findings that name them.

Only a window that is refused reads them. The definitions are those of now: of a table that the log has altered since,
no difference is found (``Situation.definition_differences``).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from binlane.binlog.types.literals import identifier
from binlane.errors import SourceError
from binlane.model import TableKey
from binlane.precheck.situation.situation import Situation
from binlane.schema.compare import Severity, compare

log = logging.getLogger(__name__)

_MOST: Final = 20
"""Tables whose definitions are read."""
_OLDER: Final = " /* mariadb-5.3 */"
_FORMAT: Final = "mysql56_temporal_format"
_TODAYS: Final = f"SET GLOBAL {_FORMAT} = ON"
"""Without it, the target would make MariaDB's older format of the columns again."""


def mends_of_tables(situation: Situation) -> Mapping[TableKey, str]:
    """For each table of the target whose definition stops the window: the statements, joined by semicolons."""
    source, target = situation.source, situation.target
    if source is None or situation.tables.flavor is not situation.plan.flavor or situation.renaming:
        return {}
    wrong = dict.fromkeys(one.table for one in situation.definition_differences if one.severity is Severity.FATAL)
    found = {}
    for key in islice(wrong, _MOST):
        # the finding itself does without them
        with suppress(SourceError, DBAPIError):
            if situation.begun and _has_gone_on(situation, key):
                continue
            ours, theirs = source.ask(_shown, key), target.ask(_shown, key)
            if statements := _alteration(key, ours, theirs):
                is_older = _OLDER in theirs and _OLDER not in ours and not target.is_on(_FORMAT)
                found[key] = "; ".join((*((_TODAYS,) if is_older else ()), *statements))
    return found


def _has_gone_on(situation: Situation, key: TableKey) -> bool:
    """Whether the source has another table than the one that a window which is begun was compared with."""
    planned, source = situation.planned.table(key), situation.source_tables
    ours = None if source is None else source.table(key)
    return planned is None or ours is None or any(one.severity is Severity.FATAL for one in compare(ours, planned))


def _alteration(key: TableKey, ours: str, theirs: str) -> tuple[str, ...]:
    # no window but a refused one needs the comparison of verifications
    from binlane.verify.definitions.table_alteration import table_alteration

    return table_alteration(f"{identifier(key.database)}.{identifier(key.table)}", ours, theirs)


def _shown(connection: Connection, key: TableKey) -> str:
    statement = f"SHOW CREATE TABLE {identifier(key.database)}.{identifier(key.table)}"
    return str(connection.exec_driver_sql(statement.replace("%", "%%")).one()[1])
