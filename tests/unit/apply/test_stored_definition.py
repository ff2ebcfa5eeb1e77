"""What makes a temporary table's definition more than columns, as an error names it."""

import pytest

from binlane.apply.stored_definition import beside_columns
from binlane.model import Flavor


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`t` (\n  `a` int DEFAULT 1\n) ENGINE=InnoDB", None),
        ("`t` (\n  `a` int DEFAULT (NEXT VALUE FOR `d`.`s`)\n) ENGINE=InnoDB", "NEXT"),
        ("`t` (\n  `a` text DEFAULT (sys_eval('id'))\n) ENGINE=InnoDB", "sys_eval()"),
        ("`t` (\n  `a` int\n) ENGINE=FEDERATED", "ENGINE FEDERATED"),
        ("`t` (\n  `a` int\n) ENGINE=MyISAM DATA DIRECTORY='/x/'", "DIRECTORY"),
        ("`t` (\n  `a` int\n)", "no list of columns with an engine behind it"),
        ("`t` (\n  `a` text DEFAULT 'x", "a text that cannot be read"),
    ],
)
def test_what_a_copy_cannot_hold_is_named(text: str, found: str | None, flavor: Flavor) -> None:
    assert beside_columns(f"CREATE TEMPORARY TABLE {text}", flavor) == found
