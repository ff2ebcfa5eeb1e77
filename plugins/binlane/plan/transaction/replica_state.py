"""Statements on the tables in which a MariaDB server keeps its own place as a replica.

A server that is a replica, too, is told by its administrator to keep its place in another engine (``ALTER TABLE
mysql.gtid_slave_pos ENGINE = InnoDB``), and logs it. What it writes into these tables as a replica it does not log. The
target has its own place, so the statement is left out and counted.
"""

from __future__ import annotations

from typing import Final

from binlane.model import Flavor, TableKey
from binlane.sql.parse.facts import StatementFacts, StatementKind

REPLICA_STATE: Final = "mysql.gtid_slave_pos is each server's own"
_TABLE: Final = "gtid_slave_pos"
"""With ``gtid_pos_auto_engines`` there is one for each engine, such as gtid_slave_pos_InnoDB."""


def replica_state(facts: StatementFacts, flavor: Flavor) -> str | None:
    """The rule that leaves out a statement of a ``flavor`` server that changes these tables, and names no other one."""
    named = facts.tables | facts.views
    is_read = facts.kind in (StatementKind.DDL, StatementKind.DML) and not facts.routines_used
    if flavor is not Flavor.MARIADB or not is_read or not named:
        return None
    return REPLICA_STATE if all(map(_is_own, named)) and facts.databases == {key.database for key in named} else None


def _is_own(key: TableKey) -> bool:
    name = key.table.lower()
    return key.database.lower() == "mysql" and (name == _TABLE or name.startswith(f"{_TABLE}_"))
