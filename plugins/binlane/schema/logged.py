"""Compares a TABLE_MAP with the target's table, for tables whose definition on the source is not known.

The source's information_schema shows a table's present definition; a TABLE_MAP the definition when the rows were
written. It always has type codes, type metadata and nullability; signs, names and members only if the source logs them
(``binlog_row_metadata``). Layouts: MySQL ``libs/mysql/binlog/event/rows_event.h`` (Table_map_event) and
``Field::do_save_field_metadata``; MariaDB ``sql/field.h`` (``save_field_metadata``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from binlane.binlog.table_map import TableMap
from binlane.binlog.types import collations
from binlane.binlog.types.column_types import by_statements, logged_words
from binlane.binlog.types.sql_types import column_words
from binlane.model import Flavor
from binlane.schema.compare import JSON_HINT, Difference, Severity, is_of_today
from binlane.schema.model import Column, Generated, Key, KeyColumn, Table
from binlane.schema.normalize import charset_name


def compare_table_map(
    logged: TableMap, source: Flavor, target: Table, *, across: bool = False
) -> tuple[Difference, ...]:
    """Every difference between a TABLE_MAP of a ``source`` server and the target's table; all of them FATAL.

    ``across``: the target is of the other family, to which MariaDB's compressed columns go decompressed.
    """
    wanted = [*target.columns, *hidden_columns(target)]
    if logged.width != len(wanted):
        hint = "the target would drop columns or fill them in: apply the DDL between the two definitions first"
        return (_fatal(target, None, "logged columns", str(logged.width), str(len(wanted)), hint),)
    return tuple(
        _difference(target, column, *fact)
        for at, column in enumerate(wanted)
        for fact in _facts(logged, source, at, column, across=across)
        if fact[1] != fact[2]
    )


def compare_logged_key(logged: TableMap, target: Table, severity: Severity) -> tuple[Difference, ...]:
    """Compares the primary key that ``binlog_row_metadata=FULL`` logs with the target's; empty if it is not logged.

    With a different key, images that hold only the source's key would find other rows, and reduction would fold two
    rows of the source into one.
    """
    optional = logged.optional
    if optional.column_names is None:
        return ()
    names = [name.lower() for name in optional.column_names]
    # MariaDB adds ROW END to every unique key of a system-versioned table; information_schema does not show it
    ends = {column.name.lower() for column in target.columns if column.generated is Generated.ROW_END}
    ends |= {column.name for column in hidden_columns(target)}
    ours = sorted(
        (names[at] if at < len(names) else f"column {at + 1}") + (f"({prefix})" if prefix else "")
        for at, prefix in optional.primary_key or ()
        if at >= len(names) or names[at] not in ends
    )
    candidates = [
        sorted(text for part in key.columns if (text := _key_part(part)) not in ends) for key in _as_primary(target)
    ]
    if ours in candidates or (not ours and target.primary_key is None):
        return ()
    theirs = candidates[0] if candidates else []
    hint = "rows are looked up and reduced by the primary key: give the target's table the source's primary key"
    shown = (", ".join(one) or "none" for one in (ours, theirs))
    return (Difference(severity, target.key, None, "logged primary key", next(shown), next(shown), hint),)


def _as_primary(table: Table) -> list[Key]:
    """The primary key; without one, every unique key that a server may log as primary key: the first without prefixes
    and nullable columns (MySQL ``sql/table.cc``, MariaDB ``TABLE_SHARE::init_from_binary_frm_image``)."""
    if table.primary_key is not None:
        return [table.primary_key]
    filled = {column.name.lower() for column in table.columns if not column.nullable}
    return [
        key
        for key in table.keys
        if key.unique
        and all(part.prefix is None and part.name is not None and part.name.lower() in filled for part in key.columns)
    ]


def _key_part(part: KeyColumn) -> str:
    return (part.name or part.expression or "").lower() + ("" if part.prefix is None else f"({part.prefix})")


def _difference(target: Table, column: Column, what: str, expected: str, found: str) -> Difference:
    hint = "the rows were written with another definition than the target has: apply the DDL between them first"
    if "json" in (column.data_type, expected.partition(" ")[0]):
        hint = JSON_HINT
    return _fatal(target, column.name, what, expected, found, hint)


def _facts(
    logged: TableMap, source: Flavor, at: int, column: Column, *, across: bool
) -> Iterator[tuple[str, str, str]]:
    """Name of the compared property, its logged value, its value on the target."""
    logged_type = logged_words(logged.column_types[at], logged.metadata[at])
    converted = (column.data_type == "json" and logged_type == _JSON_OF[source]) or (
        # a type with fractions has another length, which no log tells
        source is Flavor.MARIADB and not across and is_of_today(logged_type, None, column)
    )
    compressed = column.compressed or (across and by_statements(logged.column_types[at]))
    yield "logged type", logged_type, logged_type if converted else column_words(column, compressed=compressed)
    if column.ordinal == _HIDDEN:
        return
    yield "logged nullability", _NULL[logged.null_bitmap[at // 8] >> at % 8 & 1], _NULL[column.nullable]
    optional = logged.optional
    if optional.unsigned is not None and column.data_type != "year":
        unsigned = optional.unsigned[at]
        if unsigned is not None:
            yield "logged sign", _SIGN[unsigned], _SIGN[column.unsigned]
    if optional.column_names is not None:
        yield "logged name", optional.column_names[at].lower(), column.name.lower()
    if optional.collations is not None and column.data_type != "json":
        yield from _charset(optional.collations[at], source, column)
    codec = _CODECS.get(column.charset or "binary")
    members = None if optional.members is None else optional.members[at]
    if members is not None and codec is not None:
        logged_members = [member.decode(codec, "backslashreplace") for member in members]
        yield "logged members", ", ".join(map(repr, logged_members)), ", ".join(map(repr, column.members))


def _charset(collation_id: int | None, source: Flavor, column: Column) -> Iterator[tuple[str, str, str]]:
    name = None if collation_id is None else collations.collation_name(collation_id, source)
    if name is not None:
        logged = charset_name(collations.charset_name(name)) or "binary"
        yield "logged character set", logged, column.charset or "binary"


def _fatal(target: Table, column: str | None, what: str, expected: str, found: str, hint: str) -> Difference:
    return Difference(Severity.FATAL, target.key, column, what, expected, found, hint)


def hidden_columns(table: Table) -> Iterator[Column]:
    """Columns that MariaDB logs behind the visible ones and information_schema does not show (seen on 10.11)."""
    if table.system_versioned and not any(column.generated is Generated.ROW_START for column in table.columns):
        for name in ("row_start", "row_end"):
            yield Column(name, _HIDDEN, "timestamp", fsp=6)
    if table.engine.lower() not in _REAL_HASH_ENGINES:
        for key in table.keys:
            if key.unique and key.kind == "HASH":
                yield Column(f"hash of {key.name}", _HIDDEN, "bigint", unsigned=True)


_HIDDEN: Final = 0
"""The ordinal of a hidden column."""
_NULL: Final = ("NOT NULL", "NULL")
_SIGN: Final = ("signed", "unsigned")
_CODECS: Final = {
    "ascii": "ascii",
    "binary": "latin-1",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "gbk": "gbk",
    "latin1": "cp1252",
    "latin2": "iso8859-2",
    "utf8mb3": "utf-8",
    "utf8mb4": "utf-8",
}
"""Character sets in which ENUM and SET members are compared; undecodable bytes become escapes and so a difference."""
_JSON_OF: Final = {Flavor.MYSQL: "json stored in binary", Flavor.MARIADB: "blob with 4 bytes of length"}
"""How each family logs JSON. Between the families JSON is written by statements."""
_REAL_HASH_ENGINES: Final = frozenset({"memory", "ndbcluster"})
