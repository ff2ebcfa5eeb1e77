"""Compares the tables of source and target for differences that would corrupt data without an error.

Row events identify columns by position. Both servers silently accept swapped columns of one type, another order of ENUM
members, an unsigned number in a signed column or latin1 bytes in a cp1251 column. This comparison is the only guard, so
every difference that can change data or its meaning is FATAL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.schema.letter_case import ANY_CASE, LetterCase, lower
from binlane.schema.model import Column, ForeignKey, Generated, Key, Schema, Table
from binlane.schema.normalize import NEAREST_COLLATION, OLD_FORMAT, SAME_COLLATION, across_families, comparable
from binlane.schema.shell_names import shell_name

JSON_HINT: Final = (
    "JSON can only be written to a JSON column, in utf8mb4 between MySQL and MariaDB: use a JSON column on both sides"
)


class Severity(StrEnum):
    """The consequence of a difference or finding for the window."""

    FATAL = "fatal"
    """The window must not start."""
    NOT_REDUCED = "not reduced"
    """The table's changes are applied one by one, in the source's order: correct, but slower."""
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between the two servers."""

    severity: Severity
    table: TableKey
    column: str | None
    what: str
    expected: str
    """The source's value."""
    found: str
    """The target's value."""
    hint: str

    @property
    def where(self) -> str:
        """``database.table`` or ``database.table.column``."""
        return str(self.table) if self.column is None else f"{self.table}.{self.column}"

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: expected {self.expected}, found {self.found}; {self.hint}"


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings of servers and channel that decide the severity of a difference."""

    same_flavor: bool = True
    target_collations: frozenset[str] = frozenset()
    """The target's collations. Empty: not known, so it is not known either whether the target lacks one."""
    row_triggers_fire: bool = False
    """MariaDB's ``slave_run_triggers_for_rbr``: row events run the target's triggers."""
    complete_images: bool = True
    """All changes are row events with full images. Otherwise (statements, MINIMAL or NOBLOB images) the target fills in
    values itself, so defaults, triggers and primary keys must be the same."""
    allow_non_transactional: bool = False
    """The channel accepts that rows in non-transactional tables stay after a block's rollback (invariant 2)."""
    collations: Mapping[str, str] = field(default_factory=dict)
    """The channel's ``[collations]``: the target's collation by the source's."""
    by_statements: Collection[TableKey] = ()
    """Tables whose rows statements change on the target: their unique keys decide which rows INSERT IGNORE, REPLACE and
    ON DUPLICATE KEY UPDATE meet."""
    converts_temporal: bool = False
    """Rows in MariaDB's old format of TIME, DATETIME and TIMESTAMP go to columns in today's: both servers are
    MariaDB."""
    letters: LetterCase = ANY_CASE
    """How names of tables are compared between the two servers."""


def rules_for(
    source: Schema | None,
    target: Schema,
    *,
    complete_images: bool = True,
    allow_non_transactional: bool = False,
    collations: Mapping[str, str] | None = None,
    by_statements: Collection[TableKey] = (),
) -> Rules:
    """The rules by the settings of the two servers."""
    return Rules(
        same_flavor=source is not None and source.flavor is target.flavor,
        converts_temporal=source is not None and source.flavor is target.flavor is Flavor.MARIADB,
        target_collations=target.collations,
        row_triggers_fire=target.settings.get("slave_run_triggers_for_rbr", "NO") != "NO",
        complete_images=complete_images,
        allow_non_transactional=allow_non_transactional,
        collations=collations or {},
        by_statements=by_statements,
        letters=LetterCase(target.folds_names or (source is not None and source.folds_names)),
    )


def compare_schemas(
    source: Schema | None,
    target: Schema,
    touched: Collection[TableKey],
    rules: Rules,
    *,
    created: Collection[TableKey] = (),
    altered: Collection[TableKey] = (),
) -> tuple[Difference, ...]:
    """Compare every table of ``touched``; sorted by table.

    ``created``: tables that the window's own DDL creates; they may be missing on the target. ``altered``: tables with a
    DDL in the window or after it. Their definition on the source is not the one that the events were written with, so
    only the target's table is judged, and ``logged`` compares it with the TABLE_MAPs. ``source`` is None if only an
    archive of its log is available: then every table counts as altered.
    """
    found: list[Difference] = []
    absent = [key for key in sorted(set(touched), key=str) if key not in created and target.table(key) is None]
    # compared once for all tenants that have the same tables
    alike = set[Hashable]()
    for key in sorted(set(touched), key=str):
        theirs = target.table(key)
        if theirs is None:
            if key not in created:
                found.append(_missing(key, target, absent))
            continue
        ours = None if source is None else source.table(key)
        if ours is None or key in altered or key in created:
            found.extend(_target_alone(theirs, rules))
            continue
        kind = ours.kind, theirs.kind
        if kind not in alike:
            differences = compare(ours, theirs, rules)
            found.extend(differences)
            if not differences:
                alike.add(kind)
    return (*_name_collisions(touched, target), *found)


def compare(source: Table, target: Table, rules: Rules | None = None) -> tuple[Difference, ...]:
    """Every difference between a table of the source and the target's table of that name."""
    rules = Rules() if rules is None else rules
    return (
        *_compare_columns(source, target, rules),
        *_compare_keys(source, target, rules),
        *foreign_key_differences(target.key, source.foreign_keys, target.foreign_keys, rules.letters),
        *_compare_kind(source, target),
        *_compare_triggers(source, target, rules),
        *_target_alone(target, rules),
    )


def judge_alone(target: Table, rules: Rules) -> tuple[Difference, ...]:
    """The problems of a target's table that do not depend on the source's table."""
    return tuple(_target_alone(target, rules))


def not_reduced(differences: Collection[Difference]) -> frozenset[TableKey]:
    """The tables whose rows must not be reduced, because source and target differ."""
    return frozenset(one.table for one in differences if one.severity is Severity.NOT_REDUCED)


def _missing(key: TableKey, target: Schema, absent: Collection[TableKey]) -> Difference:
    """``absent``: all such tables, which one command makes."""
    if key.database not in target.databases and not target.folds_names:
        found = "no such database, or the account may not see it"
    else:
        found = "no such table, or the account may not see it"
    tables = " ".join(f"--table {shell_name(each)}" for each in absent)
    hint = (
        f"`binlane recopy CHANNEL {tables}` makes it with its rows; or create it from the source's dump, filter it "
        "out, or grant SELECT on it to the account"
    )
    return Difference(Severity.FATAL, key, None, "table", "the table", found, hint)


def _name_collisions(touched: Collection[TableKey], target: Schema) -> Iterator[Difference]:
    if not target.folds_names:
        return
    seen: dict[TableKey, TableKey] = {}
    for key in sorted(set(touched), key=str):
        other = seen.setdefault(target.letter_case.table(key), key)
        if other != key:
            hint = "the target has lower_case_table_names set and cannot hold both: rename one on the source"
            yield Difference(Severity.FATAL, key, None, "name", f"a table other than {other}", "the same table", hint)


def letter_case(source: Schema, target: Schema, names: Collection[str]) -> tuple[tuple[str, str, str, str], ...]:
    """Names whose letter case source and target treat differently (``lower_case_table_names``); empty if both agree.

    Each as name, expected, found and next step. ``names``: tables and databases as the window's log names them.
    """
    if source.folds_names == target.folds_names:
        return ()
    setting = "lower_case_table_names"
    expected, found = (f"{setting} = {one.settings.get(setting, '0')}" for one in (source, target))
    todo = (
        "only one of the two servers distinguishes the case of names: use the same setting on both (this needs a "
        "new data directory), or use names in lower case on the source"
    )
    return tuple((name, expected, found, todo) for name in sorted(set(names)) if name != lower(name))


def _target_alone(target: Table, rules: Rules) -> Iterator[Difference]:
    if not target.transactional and not rules.allow_non_transactional:
        hint = (
            "ALTER TABLE .. ENGINE=InnoDB on the target, or apply.allow_nontransactional = true in the channel's file"
        )
        yield Difference(Severity.FATAL, target.key, None, "engine", "a transactional one", target.engine, hint)
    if target.triggers and rules.row_triggers_fire:
        names = ", ".join(trigger.name for trigger in target.triggers)
        hint = "SET GLOBAL slave_run_triggers_for_rbr=NO on the target: the log holds the triggers' effects already"
        yield Difference(Severity.FATAL, target.key, None, "triggers", "none that row events fire", names, hint)


def _compare_columns(source: Table, target: Table, rules: Rules) -> Iterator[Difference]:
    expected, found = ([column.name for column in table.columns] for table in (source, target))
    if [name.lower() for name in expected] != [name.lower() for name in found]:
        yield _names_differ(target.key, expected, found)
        return
    in_keys = _in_keys(target)
    for ours, theirs in zip(source.columns, target.columns, strict=True):
        if ours.compressed and not rules.same_flavor:
            ours = replace(ours, compressed=False)  # MySQL gets the values decompressed
        if rules.converts_temporal and is_of_today(ours.data_type, ours.fsp, theirs):
            yield _temporal_format(target.key, ours, theirs)
            ours = replace(ours, data_type=theirs.data_type)
        for what, severity, describe, hint in _FACTS:
            if describe(ours) != describe(theirs):
                if "json" in (ours.data_type, theirs.data_type) and what == "type":
                    hint = JSON_HINT
                yield Difference(severity, target.key, theirs.name, what, describe(ours), describe(theirs), hint)
        yield from _compare_collation(target.key, ours, theirs, rules, in_keys.get(theirs.name.lower()))
        yield from _compare_generated(target.key, ours, theirs, rules)
        for what, describe in _FILLED_IN:
            if describe(ours) != describe(theirs):
                severity = Severity.INFO if rules.complete_images else Severity.FATAL
                hint = "it decides what statements and partial row images leave in the row: ALTER TABLE on the target"
                yield Difference(severity, target.key, theirs.name, what, describe(ours), describe(theirs), hint)


def is_of_today(data_type: str, fsp: int | None, target: Column) -> bool:
    """Whether values of an old temporal type are exact in the target's column: it is of today's form of the type, and
    neither has fractions. MariaDB converts them, as its replicas do."""
    return data_type == f"{target.data_type}{OLD_FORMAT}" and not fsp and not target.fsp


def _temporal_format(table: TableKey, ours: Column, theirs: Column) -> Difference:
    hint = "the target converts the rows, exactly: ALTER TABLE .. FORCE on the source brings it today's format"
    return Difference(Severity.INFO, table, theirs.name, "temporal format", _type(ours), _type(theirs), hint)


def _names_differ(table: TableKey, expected: Sequence[str], found: Sequence[str]) -> Difference:
    hint = "row events name columns by their place alone: ALTER TABLE .. MODIFY .. FIRST or AFTER on the target"
    if len(expected) == len(found):
        at = next(at for at, (a, b) in enumerate(zip(expected, found, strict=True)) if a.lower() != b.lower())
        what = f"name of column {at + 1}"
        return Difference(Severity.FATAL, table, found[at], what, expected[at], found[at], hint)
    shown = (f"{len(names)} ({', '.join(names)})" for names in (expected, found))
    return Difference(Severity.FATAL, table, None, "columns", next(shown), next(shown), hint)


def _type(column: Column) -> str:
    arguments = [
        str(value) for value in (column.length, column.precision, column.scale, column.fsp) if value is not None
    ]
    text = f"{column.data_type}({','.join(arguments)})" if arguments else column.data_type
    if column.data_type == "json":
        # MySQL's has no character set, MariaDB's is text with a check
        text = "json" if column.charset in (None, "utf8mb4") else f"json stored as {column.charset} text"
    return f"{text} compressed" if column.compressed else text


def _members(column: Column) -> str:
    return ", ".join(repr(member) for member in column.members)


_Describe = Callable[[Column], str]
_FACTS: Final[tuple[tuple[str, Severity, _Describe, str], ...]] = (
    ("type", Severity.FATAL, _type, "ALTER TABLE on the target until both are alike"),
    (
        "sign",
        Severity.FATAL,
        lambda column: "unsigned" if column.unsigned else "signed",
        "the target would turn large numbers negative or refuse them: ALTER TABLE on the target",
    ),
    (
        "character set",
        Severity.FATAL,
        lambda column: "none" if column.charset is None or column.data_type == "json" else column.charset,
        "bytes are copied unconverted and would become other letters: ALTER TABLE .. CONVERT on the target",
    ),
    (
        "members",
        Severity.FATAL,
        _members,
        ("rows contain the numbers of the members: ALTER TABLE on the target, with the same members in the same order"),
    ),
    (
        "nullability",
        Severity.FATAL,
        lambda column: "NULL" if column.nullable else "NOT NULL",
        "NULL would become 0 or an empty string, or the other way round: ALTER TABLE on the target",
    ),
)
_FILLED_IN: Final[tuple[tuple[str, _Describe], ...]] = (
    ("default", lambda column: "none" if column.default is None else comparable(column.default)),
    ("ON UPDATE", lambda column: "CURRENT_TIMESTAMP" if column.on_update else "none"),
    ("AUTO_INCREMENT", lambda column: "yes" if column.auto_increment else "no"),
    ("visibility", lambda column: "invisible" if column.invisible else "visible"),
)


def _compare_collation(
    table: TableKey, source: Column, target: Column, rules: Rules, in_key: bool | None
) -> Iterator[Difference]:
    """``in_key``: True for a column of a unique key, False for a column of another key, None for a column of none."""
    ours, theirs = source.collation, target.collation
    if ours is None or theirs is None or source.charset != target.charset:
        return
    given = rules.collations.get(ours)
    if not rules.same_flavor:
        ours = across_families(ours, rules.target_collations)
    if SAME_COLLATION.get(ours, ours) == SAME_COLLATION.get(theirs, theirs):
        return
    if given is not None:
        if given == theirs:
            yield from _given_collation(table, target, ours, in_key)
        else:
            hint = f"ALTER TABLE .. COLLATE on the target, or another rule for {ours} in the channel's [collations]"
            found = f"{given}, which [collations] gives for {ours}"
            yield Difference(Severity.FATAL, table, target.name, "collation", found, theirs, hint)
        return
    twin = SAME_COLLATION.get(ours)
    if not rules.target_collations or ours in rules.target_collations or twin in rules.target_collations:
        hint = "keys and comparisons would treat other values as equal: ALTER TABLE .. COLLATE on the target"
        yield Difference(Severity.FATAL, table, target.name, "collation", ours, theirs, hint)
        return
    # the target has no such collation: bytes stay the same, equality of values may not
    near = NEAREST_COLLATION.get(ours)
    advice = f"the target does not know {ours}"
    if near is not None and near != theirs and near in rules.target_collations:
        advice += f"; {near} comes closest"
    if in_key:
        advice += "; a unique key may find other values equal, which shows as a duplicate key"
    severity = Severity.NOT_REDUCED if in_key else Severity.INFO
    yield Difference(severity, table, target.name, "collation", ours, theirs, advice)


def _given_collation(table: TableKey, column: Column, ours: str, in_key: bool | None) -> Iterator[Difference]:
    """A collation chosen by ``[collations]``: reported where a key may order or compare values in another way."""
    if in_key is None:
        return
    severity = Severity.NOT_REDUCED if in_key else Severity.INFO
    hint = "by [collations]: a key on the column orders values in another way than on the source"
    if in_key:
        hint += ", and may find two values equal that the source tells apart, which ends in a duplicate key"
    yield Difference(severity, table, column.name, "collation", ours, column.collation or "", hint)


def _in_keys(table: Table) -> dict[str, bool]:
    """The columns of all keys, in lower case, each with whether one of its keys is unique."""
    found: dict[str, bool] = {}
    for key in table.keys:
        for part in key.columns:
            if part.name is not None:
                found[part.name.lower()] = key.unique or found.get(part.name.lower(), False)
    return found


def _compare_generated(table: TableKey, source: Column, target: Column, rules: Rules) -> Iterator[Difference]:
    if source.generated is not target.generated:
        hint = "the target would compute what the source stores, or the other way round: ALTER TABLE on the target"
        yield Difference(Severity.FATAL, table, target.name, "generated", _generated(source), _generated(target), hint)
    elif source.expression is not None and target.expression is not None:
        if comparable(source.expression) == comparable(target.expression):
            return
        # MySQL and MariaDB print the same expression differently, so a difference proves nothing between them
        severity = Severity.FATAL if rules.same_flavor else Severity.INFO
        hint = "the target computes the column itself: give it the same expression"
        yield Difference(
            severity, table, target.name, "generated expression", source.expression, target.expression, hint
        )


def _generated(column: Column) -> str:
    names = {None: "a plain column", Generated.ROW_START: "ROW START", Generated.ROW_END: "ROW END"}
    return names.get(column.generated) or f"a {column.generated} generated column"


def _compare_keys(source: Table, target: Table, rules: Rules) -> Iterator[Difference]:
    ours, theirs = (_key_texts([key for key in table.keys if key.unique]) for table in (source, target))
    if ours != theirs:
        primary_differs = {text for text in ours ^ theirs if text.startswith("PRIMARY")}
        is_met = target.key in rules.by_statements and _met_keys(source, rules) != _met_keys(target, rules)
        is_fatal = is_met or (primary_differs and not rules.complete_images)
        severity = Severity.FATAL if is_fatal else Severity.NOT_REDUCED
        hint = "changes are applied one by one; ALTER TABLE on the target to have them reduced"
        if is_met:
            hint = "statements that meet a key would change other rows: ALTER TABLE on the target"
        elif is_fatal:
            hint = "partial row images hold the source's primary key only: ALTER TABLE on the target"
        yield Difference(severity, target.key, None, "unique keys", _listed(ours), _listed(theirs), hint)
    plain = [_key_texts([key for key in table.keys if not key.unique]) for table in (source, target)]
    if plain[0] != plain[1]:
        hint = "only speed depends on it"
        yield Difference(Severity.INFO, target.key, None, "keys", _listed(plain[0]), _listed(plain[1]), hint)


def _met_keys(table: Table, rules: Rules) -> frozenset[str]:
    """The unique keys as statements meet them. Each family spells expressions in its own way: between the two, keys
    over them are counted."""
    unique = [each for each in table.keys if each.unique]
    plain = [each for each in unique if all(part.name is not None for part in each.columns)]
    if rules.same_flavor or len(plain) == len(unique):
        return _key_texts(unique)
    return _key_texts(plain) | {f"{len(unique) - len(plain)} over expressions"}


def _key_texts(keys: Sequence[Key]) -> frozenset[str]:
    texts = set()
    for key in keys:
        parts = []
        for part in key.columns:
            text = comparable(part.expression or "") if part.name is None else part.name.lower()
            parts.append(text if part.prefix is None else f"{text}({part.prefix})")
        texts.add(("PRIMARY" if key.primary else "") + f"({', '.join(parts)})")
    return frozenset(texts)


def _listed(texts: frozenset[str]) -> str:
    return ", ".join(sorted(texts)) or "none"


def foreign_key_differences(
    child: TableKey, source: Collection[ForeignKey], target: Collection[ForeignKey], letters: LetterCase
) -> Iterator[Difference]:
    """Foreign keys of a table that one of the servers alone has. ``child``: the target's name of it."""
    ours, theirs = ({_foreign_key_text(one, letters): one for one in keys} for keys in (source, target))
    for text in sorted(ours.keys() ^ theirs.keys()):
        one = ours.get(text) or theirs[text]
        acts = {one.on_update, one.on_delete} != {"RESTRICT"}
        severity = Severity.FATAL if acts else Severity.NOT_REDUCED
        hint = "changes are applied one by one, and the target may refuse some (1451, 1452)"
        if acts:
            hint = "the server's own cascades are not in every log: give both sides the same foreign keys"
        expected, found = (text, "none") if text in ours else ("none", text)
        yield Difference(severity, child, None, "foreign key", expected, found, hint)


def foreign_key_texts(keys: Iterable[ForeignKey], letters: LetterCase) -> frozenset[str]:
    """Foreign keys in a spelling that is the same on both servers, without their names."""
    return frozenset(_foreign_key_text(each, letters) for each in keys)


def _foreign_key_text(one: ForeignKey, letters: LetterCase) -> str:
    columns, parents = (", ".join(each).lower() for each in (one.columns, one.parent_columns))
    return f"({columns}) to {letters.table(one.parent)} ({parents}) on update {one.on_update} on delete {one.on_delete}"


def _compare_kind(source: Table, target: Table) -> Iterator[Difference]:
    hint = "history and periods are kept by the server itself: create both sides alike"
    if source.system_versioned != target.system_versioned:
        names = {True: "system-versioned", False: "not system-versioned"}
        expected, found = names[source.system_versioned], names[target.system_versioned]
        yield Difference(Severity.FATAL, target.key, None, "versioning", expected, found, hint)
    if source.engine.lower() != target.engine.lower() and target.transactional:
        hint = "rows are the same; limits and locking may differ"
        yield Difference(Severity.INFO, target.key, None, "engine", source.engine, target.engine, hint)


def _compare_triggers(source: Table, target: Table, rules: Rules) -> Iterator[Difference]:
    ours, theirs = (
        frozenset(f"{one.timing} {one.event} {one.name}".lower() for one in table.triggers)
        for table in (source, target)
    )
    if ours != theirs:
        severity = Severity.INFO if rules.complete_images else Severity.FATAL
        hint = "statements fire the target's triggers, row events do not: create or drop them on the target"
        yield Difference(severity, target.key, None, "triggers", _listed(ours), _listed(theirs), hint)
