"""Checks after a DDL of the window: does the target's table fit the rows that follow?

The precheck sees every table before the first write; the result of the window's own DDL can be checked only after the
DDL has run. The rows themselves hold the expectation: their TABLE_MAP describes the source's table at their time. It is
compared with the target's table once for each definition, before the first row is sent. After the window's last DDL the
table is also compared with the source's own definition, if the precheck found that unaltered since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace

from binlane.binlog.rows_payload import check_self_contained, table_maps_of
from binlane.binlog.table_map import TableMap
from binlane.errors import PlanError, TableMismatchError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.rename_rules import is_system
from binlane.schema.compare import Difference, Rules, Severity, compare, judge_alone, rules_for
from binlane.schema.logged import compare_logged_key, compare_table_map
from binlane.schema.model import Schema, Table

_TABLE_ID = 6


@dataclass(slots=True)
class TableGuard:
    """Checks tables that the window alters; knows the precheck's findings on others. One for each attempt of a lane."""

    altered: Alterations
    source: Flavor
    read: Callable[[TableKey], Table | None]
    """Reads the target's table as it is now."""
    read_database: Callable[[str], Mapping[TableKey, Table]] | None = None
    """Reads all tables of a small database of the target at once."""
    read_databases: Callable[[Iterable[str]], Mapping[TableKey, Table]] | None = None
    """Reads all tables of some databases of the target at once, without those of large databases."""
    definitions: Schema | None = None
    """The source's tables that the window alters, after its last DDL, as far as they are known."""
    partitioned: frozenset[TableKey] | None = None
    """The target's partitioned tables before the window; None if they are not known."""
    server: Callable[[], Schema] | None = None
    """Reads the target's settings and collations; called with the first definition."""
    last_seqno: int = 0
    """The window's last seqno."""
    across: bool = False
    """The target is of the other family."""
    complete_images: bool = True
    allow_nontransactional: bool = False
    allow_unsafe: bool = False
    """``apply.allow_unsafe``: values that depend on an unknown time zone, or on the family, may be others."""
    collations: Mapping[str, str] = field(default_factory=dict)
    """The channel's ``[collations]``."""
    allow_triggers: frozenset[str] = frozenset()
    """Tables, as ``database.table``, whose triggers may fire when statements write logged rows."""
    shortens_images: bool = False
    """Images of wide rows may be sent shorter (``row_images``)."""
    left_out: Callable[[TableKey], str | None] | None = None
    """The rule of the channel that leaves out a table of the target; None: it takes all."""
    _rules: Rules | None = None
    _fitting: set[tuple[bytes, int]] = field(default_factory=set)
    """TABLE_MAPs without table id, with the number of the definition that they fit."""
    _taken: set[TableKey] = field(default_factory=set)
    """Tables that no rule leaves out."""
    _read: dict[str, Mapping[TableKey, Table]] = field(default_factory=dict)
    """Tables that were read together, by database."""

    def is_partitioned(self, key: TableKey) -> bool | None:
        """Whether the target's table is partitioned, by the precheck; None if the window may have changed that."""
        return None if self.partitioned is None or self.altered.names(key) else key in self.partitioned

    def target(self, key: TableKey) -> Table | None:
        """The target's table, for rows; None if there is none. A table that the window alters is read anew each time,
        all others together with their databases' other tables, and once until ``forget_tables``."""
        if self.read_database is None or self.altered.names(key):
            return self.read(key)
        if key.database not in self._read:
            self._read[key.database] = self.read_database(key.database)
        return self._read[key.database].get(key) or self.read(key)

    def read_together(self, databases: Iterable[str]) -> None:
        """Read the tables of databases that ``target`` will be asked for: a query for all costs as much as one for
        each."""
        missing = frozenset(databases) - self._read.keys()
        if self.read_databases is None or not missing:
            return
        found = self.read_databases(missing)
        self._read |= {name: {} for name in missing}
        for key, table in found.items():
            self._read[key.database] = {**self._read.get(key.database, {}), key: table}

    def forget_tables(self) -> None:
        """Read the tables anew, after a DDL."""
        self._read.clear()

    def check(self, payload: bytes, seqno: int) -> None:
        """Raises TableMismatchError if a TABLE_MAP of a BINLOG payload does not fit the target's table at ``seqno``."""
        if not self.altered:
            return
        for body in table_maps_of(payload):
            table = TableMap.parse(memoryview(body), flavor=self.source)
            key = TableKey(table.database, table.table)
            if not self.altered.names(key):
                continue
            definition = body[_TABLE_ID:], self.altered.before(key, seqno)
            if definition not in self._fitting:
                self._compare(key, table, seqno)
                self._fitting.add(definition)

    def _compare(self, key: TableKey, logged: TableMap, seqno: int) -> None:
        target = self.read(key)
        if target is None:
            raise _mismatch(
                key, [f"expected the table to which the rows of seqno {seqno} were written, found none; create "
                      "the table with the definition that the source had then"],
            )  # fmt: skip
        other_key = Severity.NOT_REDUCED if self.complete_images else Severity.FATAL
        found = [
            *compare_table_map(logged, self.source, target, across=self.across),
            *compare_logged_key(logged, target, other_key),
            *self._differences(key, target, seqno),
        ]
        fatal = [str(one) for one in found if one.severity is Severity.FATAL]
        if fatal:
            raise _mismatch(key, fatal)

    def _differences(self, key: TableKey, target: Table, seqno: int) -> tuple[Difference, ...]:
        """Differences from the source's own definition, if that is still the one at the window's end."""
        rules = self._rules
        if rules is None:
            source, server = self.definitions, self.server
            rules = Rules(complete_images=self.complete_images, allow_non_transactional=self.allow_nontransactional)
            if source is not None and server is not None:
                rules = rules_for(
                    source,
                    server(),
                    complete_images=self.complete_images,
                    allow_non_transactional=self.allow_nontransactional,
                    collations=self.collations,
                )
            self._rules = rules
        ours = None if self.definitions is None else self.definitions.table(key)
        if ours is not None:
            # RENAME of a table changes the foreign keys that refer to it
            parents = {each.parent for table in (ours, target) for each in table.foreign_keys}
            altered = any(self._is_altered_later(each, seqno) for each in (key, *parents))
            # DROP TRIGGER names no table, and row events fire no triggers
            ours = None if altered else replace(ours, triggers=target.triggers)
        return judge_alone(target, rules) if ours is None else compare(ours, target, rules)

    def _is_altered_later(self, key: TableKey, seqno: int) -> bool:
        return self.altered.before(key, seqno) != self.altered.before(key, self.last_seqno)


def _mismatch(key: TableKey, found: list[str]) -> TableMismatchError:
    return TableMismatchError(
        f"{key}: after a DDL of this window the target's table differs from the one to which the next rows were "
        "written; none of these rows was written: " + "; ".join(found)
    )


def users_tables(payload: bytes, guard: TableGuard | None) -> frozenset[TableKey]:
    """The tables that a payload changes. Raises PlanError if it is not self-contained, or changes one of the server's
    own, of binlane's, or one that the channel leaves out: for BINLOG a server does not ask which tables the account may
    change, so rows of ``mysql.*`` would make accounts. No plan job writes such rows; a lane file may be of another's
    making."""
    tables = check_self_contained(payload)
    for key in tables:
        if is_system(key.database):
            raise _not_written(f"rows of users' tables in a lane file, found rows of {key}")
    if guard is not None and guard.left_out is not None and not tables <= guard._taken:
        for key in tables - guard._taken:
            if (rule := guard.left_out(key)) is not None:
                raise _not_written(f"rows of tables that the channel takes, found rows of {key}, left out ({rule})")
            guard._taken.add(key)
    return tables


def _not_written(expected: str) -> PlanError:
    return PlanError(
        f"expected {expected}; no plan job of binlane writes them, so another program has changed the window's files: "
        "find out who can write to the work folder, remove the window's folder there, and run again: the same files "
        "are made from the log"
    )
