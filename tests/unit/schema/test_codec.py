"""schema.json gives back every table, although those with equal definitions share one."""

from __future__ import annotations

from binlane.model import Flavor, TableKey
from binlane.schema.codec import schema_from_json, schema_to_json
from binlane.schema.model import Column, ForeignKey, Schema, Table, Trigger

COLUMN = Column("id", 1, "int")
PLAIN = Table(TableKey("a", "t"), "InnoDB", (COLUMN,))


def test_a_schema_comes_back_as_it_was() -> None:
    tables = [
        PLAIN,
        Table(TableKey("b", "t"), "InnoDB", PLAIN.columns),
        Table(TableKey("b", "trigger"), "InnoDB", (COLUMN,), triggers=(Trigger("tr", "BEFORE", "INSERT"),)),
        Table(TableKey("b", "versioned"), "InnoDB", (COLUMN,), system_versioned=True),
        Table(TableKey("b", "overlaps"), "InnoDB", (COLUMN,), without_overlaps=True),
        *(
            Table(TableKey(name, "child"), "InnoDB", (COLUMN,), foreign_keys=(_key(parent),))
            for name, parent in (("a", TableKey("a", "t")), ("b", TableKey("b", "t")), ("c", TableKey("a", "t")))
        ),
    ]
    schema = Schema(Flavor.MARIADB, "10.11", databases=frozenset("abc"), tables={one.key: one for one in tables})
    assert schema_from_json(schema_to_json(schema)) == schema


def _key(parent: TableKey) -> ForeignKey:
    return ForeignKey("fk", ("id",), parent, ("id",), "RESTRICT", "CASCADE")
