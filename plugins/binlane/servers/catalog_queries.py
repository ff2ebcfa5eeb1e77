"""The queries over information_schema with which ``catalog`` reads a server's objects."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from binlane.model import TableKey
from binlane.servers.names import among, is_named
from binlane.servers.packed import PackedView


class Databases(NamedTuple):
    """The scope of all tables in these databases."""

    names: frozenset[str]


Scope: TypeAlias = Databases | TableKey
"""What a query is about: all tables of some databases, or one table."""


class Query(NamedTuple):
    """A query over a catalogue view, for all tables of some databases or for one."""

    text: str
    database: str = "table_schema"
    """The view's column with the database name."""
    table: str = "table_name"
    databases: str = ""
    """The condition for databases, if it is not ``database IN (...)``."""

    def over(self, scope: Scope) -> str:
        """The query's text. MariaDB reads one table instead of all only if its name is compared by ``=``."""
        if isinstance(scope, TableKey):
            condition = f"{is_named(self.database, ':database')} AND {is_named(self.table, ':table')}"
        else:
            condition = self.databases or among(self.database, ":databases")
        return self.text.replace("{scope}", condition)


COLLATIONS: Final = "collation_character_set_applicability"
CATALOG_COLUMNS: Final = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = 'information_schema' AND table_name IN ('STATISTICS', 'COLUMNS', 'CHECK_CONSTRAINTS')
"""
TABLES: Final = Query("""
SELECT table_schema AS db, table_name AS name, table_type AS kind, engine AS engine
FROM information_schema.tables
WHERE {scope} AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED', 'SEQUENCE')
ORDER BY table_schema, table_name
""")
PARTITIONED: Final = Query("""
SELECT table_schema AS db, table_name AS name FROM information_schema.tables
WHERE {scope} AND create_options LIKE '%partitioned%'
""")
PARTITIONS: Final = Query("""
SELECT table_schema, table_name, partition_method, subpartition_method, partition_name, subpartition_name,
  partition_expression, partition_description, subpartition_expression
FROM information_schema.partitions
WHERE partition_method IS NOT NULL AND {scope}
ORDER BY table_schema, table_name, partition_ordinal_position, subpartition_ordinal_position
""")
"""Of each partition and subpartition the fields of ``schema.partitions.Partition``."""
COLUMNS: Final = PackedView(
    "columns",
    {
        "column_name": "column_name",
        "ordinal": "ordinal_position",
        "type": "column_type",
        "octets": "character_octet_length",
        "charset": "character_set_name",
        "collation": "collation_name",
        "nullable": "is_nullable",
        "expression": "generation_expression",
        "column_default": "column_default",
        "extra": "extra",
    },
    order="ordinal_position",
)
KEYS: Final = PackedView(
    "statistics",
    {
        "key_name": "index_name",
        "non_unique": "non_unique",
        "column_name": "column_name",
        "prefix": "sub_part",
        "direction": "collation",
        "kind": "index_type",
        "expression": "expression",
    },
    order="index_name, seq_in_index",
)
_FOREIGN_KEYS: Final = """
SELECT table_schema AS db, table_name AS name, constraint_name AS key_name, column_name AS column_name,
  referenced_table_schema AS parent_db, referenced_table_name AS parent, referenced_column_name AS parent_column
FROM information_schema.key_column_usage
WHERE referenced_table_name IS NOT NULL AND ({scope})
ORDER BY table_schema, table_name, constraint_name, ordinal_position
"""
FOREIGN_KEYS: Final = Query(_FOREIGN_KEYS)
REFERENCES: Final = Query(
    _FOREIGN_KEYS,
    databases=" OR ".join(among(each, ":databases") for each in ("table_schema", "referenced_table_schema")),
)
"""Those of children in other databases, too: for this query MariaDB opens every table of the server."""
FOREIGN_KEY_RULES: Final = Query(
    """
SELECT constraint_schema AS db, table_name AS name, constraint_name AS key_name,
  update_rule AS on_update, delete_rule AS on_delete
FROM information_schema.referential_constraints WHERE {scope}
""",
    database="constraint_schema",
    table="table_name",
)
TRIGGERS: Final = PackedView(
    "triggers",
    {"trigger_name": "trigger_name", "timing": "action_timing", "event": "event_manipulation"},
    order="trigger_name",
    database="event_object_schema",
    table="event_object_table",
)
CHECKS: Final = PackedView(
    "check_constraints", {"clause": "check_clause"}, order="constraint_name", database="constraint_schema"
)
NEWER: Final = {"columns": frozenset({"generation_expression"}), "statistics": frozenset({"expression"})}
"""Columns that some servers' views do not have; they are read as NULL."""
VIEWS: Final = Query("""
SELECT table_schema AS db, table_name AS name FROM information_schema.views WHERE {scope}
""")
ROUTINES: Final = Query(
    """
SELECT routine_schema AS db, routine_name AS name FROM information_schema.routines
WHERE {scope}
""",
    database="routine_schema",
    table="routine_name",
)
EVENTS: Final = Query(
    """
SELECT event_schema AS db, event_name AS name FROM information_schema.events
WHERE {scope} AND status = 'ENABLED'
""",
    database="event_schema",
    table="event_name",
)
DEFAULTS: Final = (
    "SELECT schema_name, default_collation_name FROM information_schema.schemata "
    f"WHERE {among('schema_name', ':databases', ':folded')}"
)
