"""The ALTER TABLE that gives a target's table the source's columns and keys."""

from __future__ import annotations

import pytest

from binlane.verify.definitions.table_alteration import table_alteration

ID, V, W = "`id` int NOT NULL", "`v` int DEFAULT NULL", "`w` int DEFAULT NULL"
KEY = "PRIMARY KEY (`id`)"
PARENT = "CONSTRAINT `f` FOREIGN KEY (`v`) REFERENCES `p` (`id`) ON DELETE CASCADE"
ALTER = "ALTER TABLE `s`.`t` "


def table(*lines: str, tail: str = "ENGINE=InnoDB") -> str:
    body = ",\n  ".join(lines)
    return f"CREATE TABLE `t` (\n  {body}\n) {tail}"


@pytest.mark.parametrize(
    ("source", "target", "statements"),
    [
        ((ID, V, KEY), (ID, V, KEY), ()),
        ((ID, V, KEY), (ID, V, W, KEY), (f"{ALTER}DROP COLUMN `w`",)),
        ((ID, V, W, KEY), (ID, W, KEY), (f"{ALTER}ADD COLUMN {V} AFTER `id`",)),
        ((ID, V, KEY), (V, ID, KEY), (f"{ALTER}MODIFY COLUMN {ID} FIRST",)),
        ((ID, V, KEY), (ID, W, KEY), (f"{ALTER}CHANGE COLUMN `w` {V} AFTER `id`",)),
        ((ID, V, KEY), (ID, "`v` text", KEY), (f"{ALTER}MODIFY COLUMN {V} AFTER `id`",)),
        (
            (ID, V, KEY),
            (ID, "`w` text", KEY),
            (f"{ALTER}DROP COLUMN `w`, ADD COLUMN {V} AFTER `id`",),
        ),
        ((ID, V, KEY), (ID, V), (f"{ALTER}ADD PRIMARY KEY (`id`)",)),
        ((ID, V, KEY, PARENT), (ID, V, KEY), (f"{ALTER}ADD {PARENT}",)),
        ((ID, V, KEY), (ID, V, KEY, PARENT), (f"{ALTER}DROP FOREIGN KEY `f`",)),
        (
            (ID, V, KEY, PARENT),
            (ID, KEY, PARENT.replace("`p`", "`q`")),
            (f"{ALTER}DROP FOREIGN KEY `f`", f"{ALTER}ADD COLUMN {V} AFTER `id`", f"{ALTER}ADD {PARENT}"),
        ),
    ],
)
def test_the_statements_in_their_order(
    source: tuple[str, ...], target: tuple[str, ...], statements: tuple[str, ...]
) -> None:
    assert table_alteration("`s`.`t`", table(*source), table(*target)) == statements


def test_the_engine_is_the_source_s() -> None:
    assert table_alteration("`s`.`t`", table(ID), table(ID, tail="ENGINE=MyISAM")) == (f"{ALTER}ENGINE=InnoDB",)
