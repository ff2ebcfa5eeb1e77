"""Texts as a column compares them."""

from __future__ import annotations

import pytest

from binlane.schema.common_values import compared_text
from binlane.schema.model import Column


def text(collation: str, kind: str = "varchar", length: int | None = 9, members: tuple[str, ...] = ()) -> Column:
    charset = collation.partition("_")[0] or None
    return Column("a", 1, kind, length=length, charset=charset, collation=collation or None, members=members)


@pytest.mark.parametrize(
    ("column", "written", "expected"),
    [
        (text("utf8mb4_general_ci"), "All_1", "all_1"),
        (text("utf8mb4_0900_ai_ci"), "all", "all"),
        (text("utf8mb4_uca1400_ai_ci"), "all", "all"),
        (text("latin1_swedish_ci"), "all", "all"),
        # i is y there, and v is w
        (text("utf8mb4_lithuanian_ci"), "all", None),
        (text("utf8mb4_sv_0900_ai_ci"), "all", None),
        (text("utf8mb4_general_ci"), "", None),
        (text("utf8mb4_general_ci"), "a b", None),
        (text("utf8mb4_general_ci"), "ä", None),
        # it would be cut
        (text("utf8mb4_general_ci", length=2), "all", None),
        (text("utf8mb4_general_ci", length=None), "all", None),
        (text("utf8mb4_general_ci", "text"), "all", None),
        (text("", "int"), "1", None),
        (text("utf8mb4_general_ci", "enum", members=("ALL", "b")), "all", "all"),
        (text("utf8mb4_general_ci", "enum", members=("a", "b")), "all", None),
    ],
)
def test_a_text_is_told_from_others_where_every_collation_of_its_kind_does(
    column: Column, written: str, expected: str | None
) -> None:
    assert compared_text(column, written) == expected
