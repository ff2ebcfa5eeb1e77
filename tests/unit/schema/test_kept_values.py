"""Which columns have the values of others as they are."""

from __future__ import annotations

import pytest

from binlane.schema.kept_values import keeps
from binlane.schema.model import Column
from binlane.schema.normalize import parse_type


def column(text: str, collation: str | None = None, *, nullable: bool = True) -> Column:
    of = parse_type(text)
    return Column(
        "c",
        1,
        of.data_type,
        unsigned=of.unsigned,
        length=of.length,
        precision=of.precision,
        scale=of.scale,
        fsp=of.fsp,
        members=of.members,
        charset=None if collation is None else collation.partition("_")[0],
        collation=collation,
        nullable=nullable,
    )


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("int", "int"),
        ("bigint", "int unsigned"),
        ("bigint unsigned", "int unsigned"),
        ("decimal(12,2)", "decimal(10,2)"),
        ("decimal(12,2)", "int"),
        ("int", "decimal(9,0)"),
        ("date", "date"),
        ("datetime(6)", "datetime"),
        ("varbinary(16)", "binary(16)"),
        ("double", "double"),
        ("year", "year"),
        ("bit(3)", "bit(3)"),
        ("enum('a','b')", "enum('a','b')"),
    ],
)
def test_a_column_that_is_no_narrower_keeps_values(ours: str, theirs: str) -> None:
    assert keeps(column(ours), column(theirs))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("int", "bigint"),
        ("int", "int unsigned"),
        ("bigint unsigned", "int"),
        ("decimal(12,2)", "decimal(12,4)"),
        ("decimal(9,2)", "int"),
        ("decimal(12,2) unsigned", "decimal(12,2)"),
        ("int", "decimal(9,1)"),
        ("int", "double"),
        ("float", "double"),
        ("date", "datetime"),
        ("datetime", "datetime(6)"),
        ("timestamp", "datetime"),
        ("varbinary(3)", "varbinary(50)"),
        ("binary(16)", "varbinary(16)"),
        ("year", "int"),
        ("enum('b','a')", "enum('a','b')"),
    ],
)
def test_a_column_that_rounds_cuts_or_clips_does_not(ours: str, theirs: str) -> None:
    assert not keeps(column(ours), column(theirs))


def test_texts_are_kept_by_the_same_collation_alone() -> None:
    ours = column("varchar(50)", "utf8mb4_bin")
    assert keeps(ours, column("varchar(50)", "utf8mb4_bin"))
    assert keeps(ours, column("char(50)", "utf8mb4_bin"))
    assert not keeps(column("char(50)", "utf8mb4_bin"), ours)
    assert not keeps(column("varchar(50)", "utf8mb4_general_ci"), ours)
    assert not keeps(column("varchar(49)", "utf8mb4_bin"), ours)


def test_what_is_not_known_is_not_kept() -> None:
    unknown = Column("c", 1, "varchar", length=9, charset="")
    assert not keeps(unknown, unknown)
    for kind in ("decimal", "datetime", "varbinary", "bit"):
        assert not keeps(Column("c", 1, kind), Column("c", 1, kind))


def test_null_is_kept_only_as_null() -> None:
    assert not keeps(column("int", nullable=False), column("int"))
    assert keeps(column("int"), column("int", nullable=False))
