"""Temporary tables of connections that are older than the channel: what they may use in a window, and drop behind it.

Nothing but its DROP proves that such a table was there (``plan.transaction.unseen_tables``). A server logs the DROP
when the connection ends, so it may lie behind the window's end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.plan.transaction.temporary_tables import Session, alike


@dataclass(slots=True)
class OlderTables:
    """Give it the marked statements of the log, in order."""

    highest: int
    """The highest id of a connection that may be older than the channel; 0: there is none."""
    used: dict[Session, set[TableKey]] = field(default_factory=dict)
    """Names that such a connection uses in the window, and whose DROP has not come."""
    names: set[TableKey] = field(default_factory=set)
    """All names that such connections use in the window, by statements that the server has marked."""
    dropped: list[tuple[Session, TableKey]] | None = None
    """Those whose DROP has come behind the window's end; None inside the window."""

    def has(self, session: Session) -> bool:
        """Whether the connection may be older than the channel."""
        return session[1] <= self.highest

    def take_use(self, session: Session, tables: Iterable[TableKey]) -> None:
        """A statement that may use the tables as temporary ones; their CREATE is not in the window."""
        if self.dropped is None:
            self.used.setdefault(session, set()).update(tables)

    def take_definition(self, session: Session, made: TableKey | None, dropped: Iterable[TableKey]) -> None:
        """A CREATE or DROP TEMPORARY. ``dropped``: those whose CREATE is not in the window."""
        used = self.used.get(session)
        if used is None:
            return
        for table in dropped:
            names = alike([table], used)
            if names and self.dropped is not None:
                self.dropped.append((session, table))
            # a server may have another table of another spelling
            used -= names & {table} or names
        if made is not None:
            # the DROP of this name will be that of this table
            used -= alike([made], used)

    def take_rename(self, session: Session, names: Iterable[TableKey]) -> None:
        """A rename from and to these names; nobody can tell whether it is one of temporary tables."""
        if self.dropped is None:
            self.take_use(session, names)
        elif session in self.used:
            self.used[session] -= alike(names, self.used[session])

    def take_call(self, session: Session) -> None:
        """A routine was called, which may make temporary tables of these names."""
        self.used.pop(session, None)

    def restart(self) -> None:
        """The server was restarted: it numbers its connections anew, and has logged all DROPs that it will."""
        self.highest = 0
        self.used.clear()

    @property
    def waits(self) -> bool:
        """Whether the DROP of a name may still come."""
        return any(self.used.values())

    def behind(self) -> OlderTables:
        """For reading on behind the window's end."""
        used = {session: set(names) for session, names in self.used.items()}
        return OlderTables(self.highest, used, set(), [])
