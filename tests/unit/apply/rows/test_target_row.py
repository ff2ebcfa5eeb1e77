"""Values of the target's rows that are kept of a conflict."""

from __future__ import annotations

from typing import Any, Final, cast

from binlane.apply.rows.target_row import rows_where
from binlane.model import TableKey
from binlane.schema.model import Column, Table

ANSWERS: Final = ("16777216", "0.12345670163631439", "3.4028234663852886e38", "9.99994610111476e-41", None)
"""Of MySQL 9.7 and MariaDB 10.11 for a FLOAT * 1e0; its own text is 16777200, 0.123457 and so on."""


def test_a_float_is_kept_by_all_of_its_digits() -> None:
    asked = []

    class Session:
        def rows(self, sql: str) -> list[tuple[str | None, ...]]:
            asked.append(sql)
            return [(None if text is None else text.encode().hex(),) for text in ANSWERS]

    class Known:
        target = Table(TableKey("app", "t"), "InnoDB", (Column("f", 1, "float", nullable=True),))

    found = rows_where(cast(Any, Session()), cast(Any, Known()), "`app`.`t`", "TRUE")
    assert [row["f"] for row in found] == ["16777216", "0.1234567", "3.4028235e38", "1e-40", None]
    assert asked == ["SELECT HEX(CONVERT(LEFT(`f` * 1e0, 65537) USING utf8mb4)) FROM `app`.`t` WHERE TRUE FOR UPDATE"]
