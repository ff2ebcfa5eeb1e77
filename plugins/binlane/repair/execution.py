"""Applies a repair plan: gives the plan's rows on the target the source's values, in short transactions, then corrects
definitions.

Every transaction first locks the channel's row, as the opening of a window does, and ends unless the target is at the
plan's watermark and no window is open: lanes and a repair never write at once. The plan's
rows are those whose values at that watermark are proved: by the source's log, which does not change them behind it, or
by its images. Both servers' rows are read
again, the target's under lock. Equal rows are left alone, rows that the source has changed since are left to the next
window, and written rows are read once more before the commit.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Final

import pymysql
from sqlalchemy import Connection, Engine

from binlane.apply.session.retry_verdicts import NO_GEOMETRY
from binlane.binlog.types.literals import Document, identifier, other_documents
from binlane.bootstrap.sessions import Session
from binlane.bootstrap.values import FAITHFUL, UNFAITHFUL, faithfulness, selected
from binlane.errors import ApplyError, DriftError, PlanError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.repair.definitions import DefinitionRepairer
from binlane.repair.fence import lock_at_watermark, writing
from binlane.repair.plan import Action, DefinitionRepair, RepairPlan, RowRepair, moves_unique, obstacle
from binlane.schema.model import Column, Generated, Schema
from binlane.sessions.state_guard import NO_SUCH_KEY
from binlane.state.channels import Channel
from binlane.state.records.repairs import begin_repair, forget_definition, forget_suspects, forget_table, save_repair
from binlane.verify.definitions.definition_reader import SEQUENCE, TRIGGER
from binlane.verify.rows.column_text import ComparedTable, Key, Row, is_key, one_of
from binlane.verify.rows.pairing import Tables
from binlane.verify.rows.row_text import row_values, words
from binlane.verify.rows.sides import row_of

BATCH: Final = 500
"""Rows in a transaction."""
BYTES: Final = 32 << 20
"""Bytes of values in a transaction, except for one larger row: they are held in memory."""
_TOGETHER: Final = 20_000
"""Rows in a transaction, for a table's updates that may exchange the values of a unique key."""
_COMPUTED: Final = frozenset({Generated.VIRTUAL, Generated.STORED})
_EXCHANGE: Final = 1
_NULL: Final = 1048
_FIRST_OF_JSON, _LAST_OF_JSON = 3140, 3910
_DUPLICATE: Final = 1062


@dataclass(frozen=True, slots=True)
class RepairResult:
    """The result of a repair: numbers of rows of its plan."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    equal_rows: int = 0
    """Rows that were equal already."""
    changed_rows: int = 0
    """Rows that the source has changed since; the next window writes them."""
    definitions: int = 0
    """Parts of definitions that were corrected. Those that were equal, or have changed since, count as rows."""


@dataclass(frozen=True, slots=True)
class _Ours:
    """The source's row: as texts for the comparison, and as literals for its stored columns."""

    spelled: Row
    literals: tuple[bytes, ...]


@dataclass(slots=True)
class Repairer:
    """Applies a plan."""

    plan: RepairPlan
    place: str
    """Where the plan is stored."""
    by: str
    engine: Engine
    """The target's engine."""
    source: Session
    """A session by ``read_session``."""
    target: Schema
    tables: Tables
    definitions: DefinitionRepairer
    with_triggers: frozenset[str] = frozenset()
    _counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys((one.name for one in fields(RepairResult)), 0)
    )

    def run(self) -> RepairResult:
        """Apply the plan. An interrupted run is repeated with the same plan.

        Raises PlanError if the plan no longer fits, WindowBusyError while a window is open; ApplyError, DriftError, and
        the driver's errors unchanged.
        """
        self._require_tables()
        plan = self.plan
        with self._fenced() as connection:
            number = begin_repair(connection, plan.channel, plan.digest, self.place, plan.seqno, self.by)
        for batch in self._batches():
            counts = dict(self._counts)
            with self._fenced() as connection:
                self._apply(connection, batch, counts)
                save_repair(connection, number, counts)
            self._counts = counts

        left = {each.table for each in plan.left}

        def corrected(connection: Connection, one: DefinitionRepair, result: str) -> None:
            self._counts[result] += 1
            save_repair(connection, number, self._counts)
            if result != "changed_rows":
                forget_definition(connection, self.plan.channel, one.schema_object, one.parts)
                if one.kind == SEQUENCE and one.schema_object.key not in left:
                    # its row is its definition, and its next value is right
                    forget_table(connection, self.plan.channel, one.schema_object.key)

        # triggers last: the statements for rows would fire them
        self.definitions.run(self.plan.definitions, self._fenced, corrected)
        with self.engine.begin() as connection:
            save_repair(connection, number, self._counts, done=True)
        return RepairResult(**self._counts)

    def _require_tables(self) -> None:
        for table in {row.table: None for row in self.plan.rows}:
            why = self.tables.not_comparable.get(table) or self._obstacle(table)
            compared = self.tables.compared.get(table)
            if not why and (compared is None or not compared.key):
                why = "the table or its primary key has changed"
            of_table = (row.key for row in self.plan.rows if row.table == table)
            if not why and compared is not None and (strange := [key for key in of_table if not is_key(compared, key)]):
                why = f"the primary key or the plan has changed: {strange[0]!r:.60} is not the key of a row"
            if why:
                raise PlanError(f"{self.place}: {table}: {why}; nothing was repaired, verify again")

    def _obstacle(self, table: TableKey) -> str:
        """Triggers that the plan creates do not count: an interrupted repair has created them after all rows."""
        found = self.target.table(table)
        made = {one.name for one in self.plan.definitions if one.schema_object.kind == TRIGGER}
        if found is not None and {trigger.name for trigger in found.triggers} <= made:
            found = replace(found, triggers=())
        return obstacle(found, self.with_triggers)

    @contextlib.contextmanager
    def _fenced(self) -> Iterator[Connection]:
        with self.engine.begin() as connection:
            self._fence(connection)
            yield connection

    def _fence(self, connection: Connection) -> None:
        """Lock the channel's row. Raises if a window is open or the target has left the plan's watermark."""
        plan = self.plan
        # a connection may lead to another server since the last transaction, through a proxy
        self.source.prove()
        lock_at_watermark(connection, self.engine, plan.channel, (plan.uuid, plan.seqno), self._outdated)

    def _outdated(self, channel: Channel) -> PlanError:
        plan = self.plan
        return PlanError(
            f"{self.place}: expected the channel {plan.channel} ({plan.uuid}) at seqno {plan.seqno:,}, where "
            f"the plan was made, found {channel.uuid} at seqno {channel.watermark.seqno:,}: the rows may "
            f"have changed since; make a new plan with `binlane verify {plan.channel} --repair`"
        )

    def _batches(self) -> Iterator[Sequence[RowRepair]]:
        """Deletes first, then updates that may exchange values of unique keys, then the rest; each batch has one
        table."""
        order: list[tuple[int, list[RowRepair]]] = []
        for table, rows in itertools.groupby(self.plan.rows, key=lambda row: row.table):
            found = self.target.table(table)
            assert found is not None
            phases: tuple[list[RowRepair], ...] = ([], [], [])
            for row in rows:
                phases[0 if row.action is Action.DELETE else _EXCHANGE if moves_unique(found, row) else 2].append(row)
            order += [(phase, each) for phase, each in enumerate(phases)]
        for phase, left in sorted(order, key=lambda each: each[0]):
            if phase == _EXCHANGE:
                yield from (left[at : at + _TOGETHER] for at in range(0, len(left), _TOGETHER))
            else:
                yield from _cut(left)

    def _apply(self, connection: Connection, batch: Sequence[RowRepair], counts: dict[str, int]) -> None:
        table = self.tables.compared[batch[0].table]
        with writing(connection, table.flavors[1]) as target:
            right = self._write(target, table, batch, counts)
        forget_suspects(connection, self.plan.channel, table.target, right)

    def _write(
        self, target: Session, table: ComparedTable, batch: Sequence[RowRepair], counts: dict[str, int]
    ) -> Sequence[Key]:
        """Write the rows of a batch whose source has not changed since; the keys of these."""
        ours, theirs = self._ours(table, batch), _theirs(target, table, batch)
        todo, right = [], []
        for row in batch:
            found = ours.get(row.key)
            if (None if found is None else found.spelled) != row.source:
                counts["changed_rows"] += 1
                continue
            right.append(row.key)
            if theirs.get(row.key) == row.source:
                counts["equal_rows"] += 1
            else:
                todo.append(row)
        if todo and (why := obstacle(self.target.table(table.target), self.with_triggers)):
            raise PlanError(f"{self.place}: {table.target}: {why}; this transaction was rolled back, verify again")
        _Writer(target, table, self.target).write(todo, ours, theirs, counts)
        now = _theirs(target, table, todo)
        for row in todo:
            if now.get(row.key) != row.source:
                written = now.get(row.key)
                found_row = "no row" if written is None else words(row_values(table.columns, written))
                raise DriftError(
                    f"{_named(row)}: expected the source's row after the repair, found {found_row}: a trigger or a "
                    "setting of the target changes the written values; this transaction was rolled back"
                )
        return right

    def _ours(self, table: ComparedTable, batch: Sequence[RowRepair]) -> Mapping[Key, _Ours]:
        """The source's rows. One statement reads the compared texts and the literals, so both are of one state."""
        columns = _stored(table)
        names, literals = zip(*(selected(table.source, column) for column in columns), strict=True)
        # ``columns`` are the target's: a MariaDB source has no JSON values of MySQL's kind to check
        asked = faithfulness(columns) if table.flavors[0] is Flavor.MYSQL else FAITHFUL.decode()
        parts = (*table.key_expressions, *table.row_expressions, asked, *names)
        width, compared = len(table.key), len(table.columns)
        query = f"SELECT {', '.join(parts)} FROM {_name(table.source)} WHERE "
        conditions = _conditions(table, batch, table.flavors[0])
        found = {}
        for values in itertools.chain.from_iterable(self.source.rows(query + where) for where in conditions):
            key, row = row_of(table, values[: width + compared])
            kept, *stored = values[width + compared :]
            if kept == UNFAITHFUL:
                named = next(row.key_text for row in batch if row.key == key)
                raise ApplyError(
                    f"{table.source}, primary key {named}: a JSON document contains SQL values that its text "
                    "does not preserve, so no statement can store it unchanged; load the table from a backup of "
                    "the source"
                )
            spellers = [each if kept == FAITHFUL else each.with_number_types for each in literals]
            spelled = (b"NULL" if each is None else spell(each) for spell, each in zip(spellers, stored, strict=True))
            found[key] = _Ours(row, tuple(spelled))
        return found


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes rows of one table inside its caller's transaction."""

    session: Session
    table: ComparedTable
    schema: Schema

    def write(
        self,
        rows: Sequence[RowRepair],
        ours: Mapping[Key, _Ours],
        theirs: Mapping[Key, Row],
        counts: dict[str, int],
    ) -> None:
        """Write the rows; first deletes, and rows that may hold a unique key's value which another row needs."""
        found = self.schema.table(self.table.target)
        assert found is not None
        gone = {row.key for row in rows if row.key in theirs and (row.source is None or moves_unique(found, row))}
        for row in rows:
            if row.key in gone:
                self._one(row, f"DELETE FROM {_name(self.table.target)} WHERE {self._where(row)}".encode())
        documents = [
            place
            for place, column in enumerate(_stored(self.table))
            if column.data_type == "json" and self.session.flavor is Flavor.MYSQL
        ]
        for row in rows:
            if row.source is None:
                counts["deleted"] += 1
            elif row.key in theirs:
                counts["updated"] += 1
                if documents and row.key not in gone:
                    self._set_apart(row, ours[row.key], documents)
                self._one(row, self._insert(ours[row.key]) if row.key in gone else self._update(row, ours[row.key]))
            else:
                counts["inserted"] += 1
                self._one(row, self._insert(ours[row.key]))

    def _insert(self, ours: _Ours) -> bytes:
        names = ", ".join(identifier(column.name) for column in _stored(self.table))
        return f"INSERT INTO {_name(self.table.target)} ({names}) VALUES (".encode() + b", ".join(ours.literals) + b")"

    def _update(self, row: RowRepair, ours: _Ours) -> bytes:
        # all columns, or one with ON UPDATE CURRENT_TIMESTAMP would get the present time
        pairs = zip(_stored(self.table), ours.literals, strict=True)
        values = b", ".join(f"{identifier(column.name)} = ".encode() + literal for column, literal in pairs)
        return f"UPDATE {_name(self.table.target)} SET ".encode() + values + f" WHERE {self._where(row)}".encode()

    def _set_apart(self, row: RowRepair, ours: _Ours, documents: Sequence[int]) -> None:
        """MySQL would not change a document for one that equals it, and is not the same. The UPDATE behind it sets all
        columns."""
        columns = _stored(self.table)
        values = (ours.literals[place].decode("utf-8", "surrogateescape") for place in documents)
        lists, where = other_documents(
            Document(identifier(columns[place].name), value, columns[place].nullable)
            for place, value in zip(documents, values, strict=True)
        )
        for sets in lists:
            statement = f"UPDATE {_name(self.table.target)} SET {sets} WHERE ({self._where(row)}) AND {where}"
            try:
                self.session.execute(statement.encode("utf-8", "surrogateescape"))
                return
            except pymysql.err.MySQLError as exc:
                if not _is_of_value(exc.args[0]):
                    raise
                if sets == lists[-1]:
                    raise self._unreachable(row, exc) from exc

    def _unreachable(self, row: RowRepair, error: pymysql.err.MySQLError) -> DriftError:
        delete = f"SET foreign_key_checks = 0; DELETE FROM {_name(self.table.target)} WHERE {self._where(row)}"
        return DriftError(
            f"{_named(row)}: the target says: {error.args[1]} ({error.args[0]}): MySQL keeps a document that equals "
            "the new one (1 and 1.0) unless the column has another value in between, which a CHECK, a computed "
            f"column or a key refuses; this transaction was rolled back. Run `{delete}` on the target, verify with "
            "--full and repair by the new plan, which inserts the row"
        )

    def _where(self, row: RowRepair) -> str:
        return one_of(self.table, [row.key], self.table.flavors[1])

    def _one(self, row: RowRepair, statement: bytes) -> None:
        named = _named(row)
        try:
            changed = self.session.execute(statement)
        except pymysql.err.IntegrityError as exc:
            if exc.args[0] != _DUPLICATE:
                raise
            raise DriftError(
                f"{named}: the target says: {exc.args[1]} ({_DUPLICATE}): another row, which is not in the "
                "plan, has this key; this transaction was rolled back. Verify with --full and repair by the new plan"
            ) from exc
        except pymysql.err.MySQLError as exc:
            if exc.args[0] != NO_GEOMETRY:
                raise
            raise DriftError(
                f"{named}: the target says: {exc.args[1]} ({NO_GEOMETRY}): the source's row has a geometry that is no "
                "geometry, such as an empty one (LENGTH() = 0), which no statement can write; this transaction was "
                "rolled back. Give it a value on the source (with SET sql_log_bin = 0 if the target does not have the "
                "row), verify with --full and repair by the new plan"
            ) from exc
        if changed != 1:
            raise DriftError(f"{named}: expected one written row, the target reports {changed}; rolled back")


def _is_of_value(code: int) -> bool:
    """Whether an error is of what a column may hold: a NULL, a key, a CHECK, a document that cannot be cast."""
    return code in (_NULL, _DUPLICATE) or _FIRST_OF_JSON <= code <= _LAST_OF_JSON


def _named(row: RowRepair) -> str:
    return f"{row.table}, primary key {row.key_text}"


def _cut(rows: Sequence[RowRepair]) -> Iterator[Sequence[RowRepair]]:
    batch: list[RowRepair] = []
    size = 0
    for row in rows:
        if batch and (len(batch) == BATCH or size + row.bytes > BYTES):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += row.bytes
    if batch:
        yield batch


def _theirs(target: Session, table: ComparedTable, batch: Sequence[RowRepair]) -> Mapping[Key, Row]:
    """The target's rows, locked; the table stays this one until the transaction's end.

    A view may have taken its place, whose function would run as the repair's account. A server refuses the name of a
    key for a view before it calls anything.
    """
    texts = ", ".join((*table.key_expressions, *table.row_expressions))
    query = f"SELECT {texts} FROM {_name(table.target)} FORCE INDEX (PRIMARY) WHERE "
    conditions = _conditions(table, batch, table.flavors[1])
    try:
        return dict(row_of(table, row) for where in conditions for row in target.rows(f"{query}({where}) FOR UPDATE"))
    except pymysql.err.MySQLError as exc:
        if exc.args[0] != NO_SUCH_KEY:
            raise
        raise PlanError(
            f"{table.target}: expected a table with a primary key, found a view, or a table without one, which another "
            "session has put in its place; this transaction was rolled back. Find out who, and verify again"
        ) from exc


def _conditions(table: ComparedTable, batch: Sequence[RowRepair], flavor: Flavor) -> Iterator[str]:
    """One condition for each statement: the servers' memory for ranges of keys is bounded."""
    for at in range(0, len(batch), BATCH):
        yield one_of(table, [row.key for row in batch[at : at + BATCH]], flavor)


def _stored(table: ComparedTable) -> tuple[Column, ...]:
    return tuple(column for column in table.columns if column.generated not in _COMPUTED)


def _name(table: TableKey) -> str:
    return f"{identifier(table.database)}.{identifier(table.table)}"
