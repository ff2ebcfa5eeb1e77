"""How many statements that may change a definition a server has begun since its start, by its own counters.

A server counts statements by kind (``Com_alter_table`` ...), whoever sends them: with ``sql_log_bin = 0``, in routines
and events, prepared, or by replication (docs/decisions/0020-definitions-are-read-once-a-window.md). If no such count
has changed, no definition has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from binlane.lazy_dataclass import dataclass

_HARMLESS: Final = frozenset(
    {
        *("admin_commands", "begin", "binlog", "call_procedure", "change_db", "checksum", "commit", "compound_sql"),
        *("create_temporary_table", "dealloc_sql", "delete", "delete_multi", "do", "drop_temporary_table"),
        *("empty_query", "execute_immediate", "execute_sql", "explain_other", "get_diagnostics", "help", "insert"),
        *("insert_select", "kill", "load", "lock_tables", "prepare_sql", "purge", "purge_before_date"),
        *("release_savepoint", "replace", "replace_select", "resignal", "rollback", "rollback_to_savepoint"),
        *("savepoint", "select", "set_option", "signal", "unlock_tables", "update", "update_multi"),
    }
)
"""What runs all day and changes no definition. A statement in a routine, or a prepared one, is counted by its own kind,
too. MariaDB counts temporary tables apart; MySQL counts them as tables, so there they are taken for changes."""
_HARMLESS_FAMILIES: Final = ("show_", "stmt_", "xa_", "ha_")
"""SHOW, the protocol of prepared statements, XA, HANDLER."""


@dataclass(frozen=True, slots=True)
class StatementCounts:
    """The counts of one server at one moment."""

    server: str
    """Which server it is, and which account asks: another one may see other objects."""
    at: int
    """The moment, in seconds of the server's clock, rounded down."""
    since: int
    """When the server began to count, by the same clock, at most a second too early: its start or a FLUSH STATUS."""
    session: int
    """The number of the connection: they ascend from a server's start."""
    counts: Mapping[str, int]
    """By kind, of all statements that may change a definition, those of kinds that nobody knows among them."""

    def hold_until(self, later: StatementCounts | None) -> bool:
        """Whether no statement that may change a definition was begun between these counts and ``later``."""
        return (
            later is not None
            and later.server == self.server
            # counted without a break: it has neither started again nor begun to count again
            and later.since < self.at <= later.at
            and self.session <= later.session
            and later.counts == self.counts
        )


def may_change_definitions(kind: str) -> bool:
    """Whether statements of a kind, as servers name their counters behind ``Com_``, may change a definition."""
    return kind not in _HARMLESS and not kind.startswith(_HARMLESS_FAMILIES)
