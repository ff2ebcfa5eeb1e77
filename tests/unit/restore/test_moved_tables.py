"""A moved table names its sequences and its merged tables where they are, and nothing else of it changes."""

from __future__ import annotations

import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor, TableKey
from binlane.restore.moved_tables import alteration

NAMES = {"shop_unfinished": "shop"}
HEAD = "CREATE TABLE `t` (\n  "
TAIL = "\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
CASES = {
    "nothing": ("`id` int(11) DEFAULT 1,\n  `v` varchar(9) DEFAULT '`shop_unfinished`.`s`'" + TAIL, None),
    "a sequence": (
        "`id` bigint(20) NOT NULL DEFAULT nextval(`shop_unfinished`.`s`) COMMENT '`shop_unfinished`.`s`'" + TAIL,
        "ALTER COLUMN `id` SET DEFAULT nextval(`shop`.`s`)",
    ),
    "expressions": (
        "`a,b` int DEFAULT (lastval(`shop_unfinished`.`s`) + nextval(`other`.`s`)),\n  `c` int DEFAULT 2,\n"
        "  `d` int DEFAULT nextval(`shop_unfinished`.`shop_unfinished`) CHECK (`d` > 0)" + TAIL,
        "ALTER COLUMN `a,b` SET DEFAULT (lastval(`shop`.`s`) + nextval(`other`.`s`)), "
        "ALTER COLUMN `d` SET DEFAULT nextval(`shop`.`shop_unfinished`)",
    ),
    "a foreign key": (
        "`id` int,\n  CONSTRAINT `f` FOREIGN KEY (`id`) REFERENCES `shop_unfinished`.`p` (`id`)" + TAIL, None,
    ),
    "merged tables": (
        "`id` int\n) ENGINE=MRG_MyISAM INSERT_METHOD=LAST UNION=(`m1`,`shop_unfinished`.`m2`)",
        "UNION = (`m1`,`shop`.`m2`)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_names_a_former_database_is_set_anew(case: str) -> None:
    text, expected = CASES[case]
    found = alteration(TableKey("shop", "t"), (HEAD + text).encode(), NAMES, Flavor.MARIADB, "go on")
    assert found == (None if expected is None else f"ALTER TABLE `shop`.`t` {expected}".encode())


def test_a_name_in_another_place_is_refused() -> None:
    text = f"{HEAD}`id` int GENERATED ALWAYS AS (lastval(`shop_unfinished`.`s`)) VIRTUAL{TAIL}".encode()
    with pytest.raises(PrecheckError, match=r"table shop\.t: .* found it elsewhere .*, go on"):
        alteration(TableKey("shop", "t"), text, NAMES, Flavor.MARIADB, "go on")
