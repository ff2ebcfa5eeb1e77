"""Tables of servers of other versions or families, compared by facts: a few queries for any number of tables.

``schema.compare`` has the rules for columns, as the precheck uses them. A table's keys are compared by their columns,
because a key without a name of its own gets one from the server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from binlane.binlog.types.literals import identifier, quoted
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.schema.compare import Difference, Rules, Severity, compare
from binlane.schema.model import Column, ForeignKey, Schema, Table
from binlane.schema.normalize import comparable, expression_sql
from binlane.schema.partitions import Partition
from binlane.servers.catalog_queries import PARTITIONS
from binlane.servers.check_constraints import NOT_ENFORCED, is_of_json, query_of_clauses
from binlane.servers.names import among, literals
from binlane.verify.definitions.indexes import (
    INDEX_COMMENTS,
    PARSERS,
    IndexFacts,
    differing_indexes,
    hidden_indexes,
    kept_by,
)
from binlane.verify.definitions.mend import Mend, one
from binlane.verify.definitions.parts import Part, listed
from binlane.verify.definitions.show_create import table_mend
from binlane.verify.definitions.table_mends import OTHER_FAMILY, TableTexts
from binlane.verify.definitions.table_options import options_in
from binlane.verify.rows.sides import Side

_OWN_PARTS: Final = frozenset({"triggers", "unique keys", "keys", "foreign key"})
"""Parts that ``compare`` finds and that are compared here, or with the triggers."""


@dataclass(slots=True)
class TableFacts:
    """What ``Table`` does not have."""

    comment: str = ""
    column_comments: dict[str, str] = field(default_factory=dict)
    """By the column's name in lower case."""
    checks: list[str] = field(default_factory=list)
    """Clauses; not the checks that MariaDB adds to JSON columns."""
    partitions: list[Partition] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    """Those of ``_OPTIONS`` that were given, as SHOW CREATE TABLE names them."""
    indexes: IndexFacts = field(default_factory=IndexFacts)


def read_table_facts(side: Side, schema: Schema) -> dict[TableKey, TableFacts]:
    """The facts of all tables of ``schema``'s databases."""
    parsers = frozenset(name for [name] in side.texts(PARSERS) if name)
    found = {key: TableFacts(indexes=replace(kept_by(schema), parsers=parsers)) for key in schema.tables}
    if not schema.databases:
        return found
    chosen = literals(schema.databases)

    def rows(query: str) -> Iterator[tuple[TableFacts, Sequence[str]]]:
        for database, name, *values in side.texts(query.format(databases=chosen)):
            facts = found.get(TableKey(str(database), str(name)))
            if facts is not None:
                yield facts, [value or "" for value in values]

    for facts, [comment] in rows(_COMMENTS):
        facts.comment = comment
    for facts, [column, comment] in rows(_COLUMN_COMMENTS):
        facts.column_comments[column.lower()] = comment
    for facts, [clause] in rows(_checks_of(schema)):
        facts.checks += [] if is_of_json(clause) else [expression_sql(clause, schema.flavor)]
    for facts, [given] in rows(_GIVEN):
        facts.options |= {name: value.strip("'\"") for name, value in options_in(given).items() if name in _OPTIONS}
    for facts, values in rows(_PARTITIONS):
        facts.partitions.append(Partition(*values))
    for facts, [index, comment] in rows(INDEX_COMMENTS):
        facts.indexes.comments[index.lower()] = comment
    for facts, [index] in rows(hidden_indexes(schema)):
        facts.indexes.add_hidden(index)
    return found


def _checks_of(schema: Schema) -> str:
    """The query for database, table and clause of its checks."""
    query = query_of_clauses(schema.flavor, schema.version)
    return _NO_CHECKS if query is None else query.text.replace("{scope}", among(query.database, "{databases}"))


def differing_parts(
    source: Table,
    target: Table,
    facts: tuple[TableFacts, TableFacts],
    rules: Rules,
    flavors: tuple[Flavor, Flavor],
    texts: TableTexts,
) -> Iterator[Part]:
    """The parts that differ. ``source`` has the target's names of databases. ``texts``: of the same table."""
    name = f"ALTER TABLE {identifier(target.key.database)}.{identifier(target.key.table)}"
    yield from _columns(name, source, target, rules, flavors, texts)
    ours, theirs = facts
    yield from differing_indexes(name, (source.keys, target.keys), (ours.indexes, theirs.indexes), flavors[1], texts)
    foreign = (source.foreign_keys, target.foreign_keys)
    yield from listed(name, "foreign key", *foreign, _foreign_text, "FOREIGN KEY", _refuses)
    if ours.comment != theirs.comment:
        yield Part("comment", ours.comment, theirs.comment, one(f"{name} COMMENT={quoted(ours.comment)}"))
    for column, comment in ours.column_comments.items():
        other = theirs.column_comments.get(column, comment)
        if comment != other:
            spelled = next(each.name for each in target.columns if each.name.lower() == column)
            part = f"column {identifier(spelled)}"
            yield Part(f"{part}: comment", comment, other, texts.mend(part))
    yield from _checks(ours.checks, theirs.checks, texts)
    yield from _partitions(ours.partitions, theirs.partitions, texts)
    yield from _options(name, ours.options, theirs.options, across=flavors[0] is not flavors[1])


def _columns(
    name: str, source: Table, target: Table, rules: Rules, flavors: tuple[Flavor, Flavor], texts: TableTexts
) -> Iterator[Part]:
    columns = {column.name: column for column in target.columns}
    wanted = {column.name.lower(): column for column in source.columns}
    across = flavors[0] is not flavors[1]
    for found in compare(source, target, rules):
        if found.severity is Severity.FATAL:
            # the comparison of rows says why the rows cannot be compared; here is what changes it
            yield from _refused(found, texts)
            continue
        if found.what in _OWN_PARTS:
            continue
        if found.column is None:
            undecided = f"{found.expected} is not an engine of both families" if across else ""
            known = found.expected.lower() in _ENGINES_OF_BOTH
            engine = one(f"{name} ENGINE={found.expected}", _REBUILDS)
            yield Part(found.what, found.expected, found.found, engine, "" if known else undecided)
            continue
        part = f"column {identifier(found.column)}"
        what, mend, undecided = f"{part}: {found.what}", texts.mend(part), ""
        ours, theirs = wanted[found.column.lower()], columns[found.column]
        if found.what == "default":
            mend, undecided = _default(name, ours, theirs, mend, across)
        elif found.what == "collation":
            if ours.collation in rules.collations:
                continue
            undecided = f"the target has no collation {ours.collation}"
        elif found.what == "generated expression":
            undecided = "the two servers print expressions differently"
        yield Part(what, found.expected, found.found, mend, undecided)


def _refused(found: Difference, texts: TableTexts) -> Iterator[Part]:
    """The parts of columns whose rows cannot be compared: of another type, or of one server alone."""
    if found.what == "columns" or found.what.startswith("name of column"):
        ours, theirs = texts.parts
        for part in texts.columns():
            yield Part(part, ours.get(part), theirs.get(part), texts.mend(part))
    elif found.column is not None and found.what != "collation":
        part = f"column {identifier(found.column)}"
        yield Part(f"{part}: {found.what}", found.expected, found.found, texts.mend(part))


def _default(name: str, ours: Column, theirs: Column, mend: Mend, across: bool) -> tuple[Mend, str]:
    """The statement for a literal default; other defaults are spelled by the server, as in ``mend``."""
    if any(each.default is not None and not _is_literal(each.default) for each in (ours, theirs)):
        same_kind = ours.default is not None and theirs.default is not None
        return mend, "the two servers print expressions differently" if across and same_kind else ""
    column = f"{name} ALTER COLUMN {identifier(theirs.name)}"
    if ours.default is None:
        return one(f"{column} SET DEFAULT NULL" if ours.nullable else f"{column} DROP DEFAULT"), ""
    return one(f"{column} SET DEFAULT {quoted(ours.default[1:-1].replace(2 * _QUOTE, _QUOTE))}"), ""


def _is_literal(default: str) -> bool:
    return default[:1] == default[-1:] == _QUOTE and len(default) > 1


def _refuses(_foreign: ForeignKey) -> str:
    return "it may refuse rows, and locks both tables"


def _foreign_text(foreign: ForeignKey, name: str) -> str:
    columns, parents = (", ".join(map(identifier, names)) for names in (foreign.columns, foreign.parent_columns))
    parent = f"{identifier(foreign.parent.database)}.{identifier(foreign.parent.table)}"
    actions = f"ON UPDATE {foreign.on_update} ON DELETE {foreign.on_delete}"
    return f"CONSTRAINT {name} FOREIGN KEY ({columns}) REFERENCES {parent} ({parents}) {actions}"


def _checks(source: Sequence[str], target: Sequence[str], texts: TableTexts) -> Iterator[Part]:
    ours, theirs = (Counter(map(comparable, clauses)) for clauses in (source, target))
    if ours != theirs:
        printed, other = (Counter(comparable(each.removesuffix(NOT_ENFORCED)) for each in s) for s in (source, target))
        is_open = len(source) == len(target) and printed != other
        undecided = "the two servers print expressions differently" if is_open else ""
        yield Part("checks", _text(source), _text(target), texts.checks(), undecided)


def _options(name: str, source: Mapping[str, str], target: Mapping[str, str], *, across: bool) -> Iterator[Part]:
    for option in sorted(source.keys() | target.keys()):
        ours, theirs = source.get(option), target.get(option)
        if (ours or "").lower() != (theirs or "").lower():
            texts = ({f"option {option}": text} if text else {} for text in (ours, theirs))
            mend = table_mend(name.removeprefix("ALTER TABLE "), f"option {option}", *texts)
            left = mend.left or (OTHER_FAMILY if across else "")
            yield Part(f"option {option}", ours, theirs, replace(mend, left=left))


def _partitions(source: Sequence[Partition], target: Sequence[Partition], texts: TableTexts) -> Iterator[Part]:
    if [each.rule for each in source] != [each.rule for each in target]:
        same = [each.names for each in source] == [each.names for each in target]
        undecided = "the two servers print expressions differently" if same else ""
        ours, theirs = (_text(list(map(str, rows))) for rows in (source, target))
        yield Part("partitions", ours, theirs, texts.mend("partitions"), undecided)


def _text(parts: Sequence[str]) -> str | None:
    return ", ".join(parts) or None


_QUOTE: Final = "'"
_ENGINES_OF_BOTH: Final = frozenset({"innodb", "myisam", "memory", "csv", "archive", "blackhole", "mrg_myisam"})
_COMMENTS: Final = (
    "SELECT table_schema, table_name, table_comment FROM information_schema.tables "
    f"WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND {among('table_schema', '{databases}')}"
)
_COLUMN_COMMENTS: Final = (
    "SELECT table_schema, table_name, column_name, column_comment FROM information_schema.columns "
    f"WHERE {among('table_schema', '{databases}')}"
)
_NO_CHECKS: Final = "SELECT NULL, NULL, NULL FROM DUAL WHERE FALSE AND '' IN {databases}"
_REBUILDS: Final = "it rebuilds the table"
_OPTIONS: Final = frozenset(
    {
        *("ROW_FORMAT", "KEY_BLOCK_SIZE", "STATS_PERSISTENT", "STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES"),
        *("MIN_ROWS", "MAX_ROWS", "AVG_ROW_LENGTH", "CHECKSUM", "DELAY_KEY_WRITE", "PACK_KEYS"),
    }
)
"""Of both families and all versions, with one meaning. Comment and default collation are compared for themselves."""
_GIVEN: Final = (
    "SELECT table_schema, table_name, create_options FROM information_schema.tables "
    f"WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND {among('table_schema', '{databases}')}"
)
# MariaDB adds those of history by itself
_PARTITIONS: Final = PARTITIONS.text.replace(
    "{scope}", f"partition_method <> 'SYSTEM_TIME' AND {among('table_schema', '{databases}')}"
)
