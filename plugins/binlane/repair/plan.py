"""The plan of a repair, row by row: made from a verification's drift, stored, reviewed, and applied unchanged."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Any, Final

from binlane.binlog.types.literals import identifier
from binlane.errors import PlanError
from binlane.formats import FORMATS, RELEASE
from binlane.json_codec.codec import Codec
from binlane.lazy_dataclass import dataclass
from binlane.model import SchemaObject, TableKey
from binlane.schema.model import Schema, Table
from binlane.schema.shell_names import shell_name
from binlane.state.records.verifications import Suspect
from binlane.verify.definitions.comparison import DefinitionDifference
from binlane.verify.definitions.definition_reader import SEQUENCE
from binlane.verify.rows.column_text import Key, Row
from binlane.verify.rows.pairing import with_way_out
from binlane.verify.rows.row_text import Changes, Values, changed_values, key_values, words

SEQUENCE_COLUMNS: Final = (
    *("next_not_cached_value", "minimum_value", "maximum_value", "start_value"),
    *("increment", "cache_size", "cycle_option", "cycle_count"),
)
"""Of MariaDB's sequences, which are read as tables of one row."""
_FORMAT: Final = FORMATS["repair plans"].version
_LARGE: Final = re.compile(r"(\d+):[0-9a-f]{64}(?:\+\d+)?")


class Action(StrEnum):
    """The action on a row of the target."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"

    @classmethod
    def of(cls, source: Row | None, target: Row | None) -> Action:
        """By which side has the row."""
        return cls.DELETE if source is None else cls.INSERT if target is None else cls.UPDATE


@dataclass(frozen=True, slots=True)
class RowRepair:
    """One row; ``source`` and ``target`` are the texts of the verification."""

    table: TableKey
    key: Key
    columns: tuple[str, ...]
    """Names of the differing columns, if both servers have the row."""
    source: Row | None
    """The row after the repair; None: the row will be deleted."""
    target: Row | None
    changes: Changes = ()
    """For the operator, strings as text: each differing column with the target's present and future value; of an insert
    or a delete, all columns outside of the primary key."""
    primary_key: Values = ()
    """For the operator."""

    @property
    def action(self) -> Action:
        """What is done, by which side has the row: what is shown and what is written cannot differ."""
        return Action.of(self.source, self.target)

    @property
    def key_text(self) -> str:
        """The primary key in words."""
        return words(self.primary_key or (("key", text) for text in self.key))

    @property
    def bytes(self) -> int:
        """Approximate bytes of the values; large values are stored as length and SHA-256."""
        large = (_LARGE.fullmatch(text) for text in self.source or () if text is not None)
        return sum(int(found[1]) for found in large if found) + sum(len(text or "") for text in self.source or ())


@dataclass(frozen=True, slots=True)
class DefinitionRepair:
    """Parts of one object's definition that the same statements correct."""

    kind: str
    database: str
    name: str
    parts: tuple[str, ...]
    """As ``verify.definitions.DefinitionDifference.what``; an empty one: the object itself."""
    statements: tuple[str, ...]
    group: tuple[str, ...] = ()
    """Names of the triggers that the statements create anew, in their order; empty: one object at most."""

    @property
    def schema_object(self) -> SchemaObject:
        """The object, by the target's names."""
        return SchemaObject(self.kind, self.database, self.name)

    def __str__(self) -> str:
        parts = f", {', '.join(self.parts)}" if any(self.parts) else ""
        return f"{self.schema_object}{parts}: {'; '.join(self.statements)}"


@dataclass(frozen=True, slots=True)
class UnrepairedTable:
    """A table with drift that is left as it is; without a name: an account."""

    table: TableKey
    why: str


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """All that a repair may write, and nothing else."""

    channel: str
    uuid: str
    """The channel's identity, which changes when the channel is begun again."""
    seqno: int
    """The watermark at which the rows were compared: the repair fits no other."""
    rows: tuple[RowRepair, ...]
    left: tuple[UnrepairedTable, ...]
    definitions: tuple[DefinitionRepair, ...] = ()
    """In the order in which they are corrected, after the rows."""

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.rows or self.definitions)

    @property
    def digest(self) -> str:
        """SHA-256 of the content."""
        return hashlib.sha256(json.dumps(self._content()).encode()).hexdigest()

    def to_json(self) -> bytes:
        """For a file that a person reads."""
        return json.dumps({**self._content(), "digest": self.digest}, indent=1).encode()

    @classmethod
    def from_json(cls, data: bytes, where: str) -> RepairPlan:
        """Raises PlanError if the file is not a plan, or was damaged after it was written. Who changes it can give it
        another digest: the target has that of the plan that was made (``state.records.repairs``)."""
        values = REPAIR.parsed(data, where)
        version, found = values.pop("format", None), values.pop("digest", None)
        if version != _FORMAT:
            raise PlanError(
                f"{where}: expected format {_FORMAT} of a repair's plan, got {version}: this is binlane {RELEASE}, and "
                "another release has written the plan; make a new one with `binlane verify CHANNEL --repair`"
            )
        plan = REPAIR.load(cls, values, where)
        if found != plan.digest:
            raise PlanError(
                f"{where}: expected content of SHA-256 {found}, found {plan.digest}: the plan was changed after "
                "it was written; nothing was repaired. Make a new plan with `binlane verify CHANNEL --repair`"
            )
        return plan

    def _content(self) -> dict[str, Any]:
        return {"format": _FORMAT, **REPAIR.dump(self)}


REPAIR: Final = Codec(
    "`binlane verify --repair` writes such a plan",
    rows=frozenset({TableKey}),
)


def plan_repair(
    channel: str,
    uuid: str,
    seqno: int,
    drift: Iterable[Suspect],
    target: Schema,
    with_triggers: Collection[str],
    *,
    keeps_rows: bool = False,
    differences: Iterable[DefinitionDifference] = (),
) -> RepairPlan:
    """The plan for rows and definitions that have drifted. ``with_triggers``: tables, as database.table, whose triggers
    may fire.

    ``differences``: of the definitions among ``drift``. ``keeps_rows``: the channel's filter leaves out deletions, so
    rows that only the target has may be meant to stay.
    """
    rows: list[RowRepair] = []
    left: set[UnrepairedTable] = set()
    drift, differences = tuple(drift), tuple(differences)
    made = (each.schema_object for each in differences if each.what == "" and each.mend.is_run)
    sequences = {obj.key: "" for obj in made if obj.kind == SEQUENCE} | _sequences_left(drift, target)
    left.update(UnrepairedTable(table, why) for table, why in sequences.items() if why)
    for one in drift:
        if one.of_definition or one.table in sequences:
            continue
        why = with_way_out(one.note, one.table, channel) or obstacle(target.table(one.table), with_triggers)
        if not why and not one.key:
            why = (
                "it has no primary key that both servers order alike, so single rows cannot be told apart; "
                f"`binlane recopy {channel} --table {shell_name(one.table)}` copies the table again"
            )
        if not why and keeps_rows and one.source is None:
            why = (
                "rows that only the target has are kept: the channel's filter ignores deletions (filter.kinds), "
                "and such rows cannot be distinguished from others"
            )
        if why:
            left.add(UnrepairedTable(one.table, why))
        else:
            table = target.table(one.table)
            changes = changed_values(table, one.source, one.target, one.columns)
            named = key_values(table, one.key)
            rows.append(RowRepair(one.table, one.key, one.columns, one.source, one.target, changes, named))
    rows.sort(key=lambda row: (str(row.table), row.key))
    definitions: dict[tuple[SchemaObject, tuple[str, ...]], DefinitionRepair] = {}
    for each in sorted(differences, key=_in_order):
        if each.mend.is_run:
            work = each.schema_object, each.mend.statements
            before = definitions[work].parts if work in definitions else ()
            group = tuple(one.name for one in each.mend.made) if len(each.mend.made) > 1 else ()
            definitions[work] = DefinitionRepair(*work[0], (*before, each.what), work[1], group)
        else:
            why = f"{each}; not run, because {each.mend.left}" if each.mend.statements else str(each)
            left.add(UnrepairedTable(each.schema_object.key, why))
    ordered = sorted(left, key=lambda each: (str(each.table), each.why))
    return RepairPlan(channel, uuid, seqno, tuple(rows), tuple(ordered), tuple(definitions.values()))


def _sequences_left(drift: Iterable[Suspect], target: Schema) -> dict[TableKey, str]:
    """The sequences among the rows, and why each is left: its next value. Empty: it differs in its definition alone."""
    rows: dict[TableKey, dict[bool, Row | None]] = {}
    for one in drift:
        table = None if one.of_definition or one.note else target.table(one.table)
        if table is not None and tuple(column.name for column in table.columns) == SEQUENCE_COLUMNS:
            found = rows.setdefault(one.table, {})
            found |= {is_source: row for is_source, row in ((True, one.source), (False, one.target)) if row is not None}
    left = {}
    for table_key, sides in rows.items():
        ours, theirs = sides.get(True), sides.get(False)
        name = f"{identifier(table_key.database)}.{identifier(table_key.table)}"
        if ours is None:
            left[table_key] = "it is a sequence, and only the target has it"
        elif theirs is not None and ours[0] == theirs[0]:
            left[table_key] = ""
        else:
            statement = f"ALTER SEQUENCE {name} RESTART {ours[0]}"
            left[table_key] = f"it is a sequence, whose next value is {ours[0]} on the source: {statement}"
    return left


def _in_order(one: DefinitionDifference) -> tuple[int, bool, SchemaObject, str]:
    """Objects that others need come first."""
    kind = one.schema_object.kind
    return _ORDER.index(kind) if kind in _ORDER else _ROUTINES, one.what != "", one.schema_object, one.what


_ORDER: Final = ("database", "sequence", "table", "routine", "view", "trigger", "event")
_ROUTINES: Final = _ORDER.index("routine")


def obstacle(table: Table | None, with_triggers: Collection[str]) -> str:
    """Why statements cannot write a table as row events would; empty: they can."""
    if table is None:
        return "the table does not exist on the target"
    if table.triggers and str(table.key) not in with_triggers:
        names = ", ".join(trigger.name for trigger in table.triggers)
        return (
            f"statements would fire its triggers ({names}): drop them on the target, or name the table in "
            "apply.allow_triggers"
        )
    if table.system_versioned or table.without_overlaps:
        return "statements would write new history or periods: load the table from a backup of the source"
    return ""


def moves_unique(table: Table, row: RowRepair) -> bool:
    """Whether an update may need another row's value of a unique key: such rows of a table are written together."""
    if row.action is not Action.UPDATE:
        return False
    plain = {column.name for column in table.columns if column.generated is None}
    for key in table.keys:
        names = {part.name for part in key.columns}
        if key.unique and not key.primary and (not names <= plain or not names.isdisjoint(row.columns)):
            return True
    return False
