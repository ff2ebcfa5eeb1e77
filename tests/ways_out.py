"""Troubles on the target, and the next step that the message names: ``docs/troubleshooting.md`` has the same table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BEFORE: Final = (
    "CREATE DATABASE shop",
    "CREATE DATABASE crm",
    "CREATE TABLE shop.orders (id INT PRIMARY KEY, v INT, KEY by_v (v))",
    "CREATE TABLE shop.parent (id INT PRIMARY KEY, u INT UNIQUE)",
    "CREATE TABLE shop.child (id INT PRIMARY KEY, p INT, "
    "CONSTRAINT of_parent FOREIGN KEY (p) REFERENCES shop.parent (id) ON DELETE CASCADE)",
    "CREATE TABLE shop.heap (a INT, b INT)",
    "CREATE TABLE crm.line (id INT PRIMARY KEY, o INT, "
    "CONSTRAINT of_order FOREIGN KEY (o) REFERENCES shop.orders (id) ON DELETE CASCADE)",
    "CREATE TRIGGER shop.fires BEFORE INSERT ON shop.parent FOR EACH ROW SET NEW.u = NEW.u + 100",
    "INSERT INTO shop.orders VALUES (1, 1), (2, 2), (3, 3)",
    "INSERT INTO shop.parent VALUES (1, 1), (2, 2), (3, 3)",
    "INSERT INTO shop.child VALUES (1, 1), (2, 2), (3, 3)",
    "INSERT INTO shop.heap VALUES (1, 1), (2, 2), (2, 2)",
    "INSERT INTO crm.line VALUES (1, 1), (2, 2), (3, 3)",
)
"""On both servers."""
WINDOW: Final = (
    "UPDATE shop.orders SET v = 7 WHERE id = 1",
    "INSERT INTO shop.orders VALUES (4, 4)",
    "INSERT INTO crm.line VALUES (4, 4)",
    "DELETE FROM shop.orders WHERE id = 2",
    "INSERT INTO shop.parent VALUES (4, 4)",
    "INSERT INTO shop.child VALUES (4, 4)",
    "DELETE FROM shop.parent WHERE id = 2",
    "UPDATE shop.heap SET b = 5 WHERE a = 1",
)
"""On the source, behind what is broken; what a foreign key deletes is in no log of the older servers."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One row of the table."""

    what: str
    """As the page names it."""
    breaks: tuple[str, ...]
    """Statements on the target, without checks of foreign keys."""
    seen: str
    """A part of the message of the run."""
    typed: tuple[str, ...]
    """The commands and statements that the messages name, in order, as the page shows them."""
    in_window: bool = True
    """It can also happen to a window that has begun to write."""


RECOPY: Final = "binlane recopy shop --table {}"
OVERWRITE: Final = 'apply.on_conflict = "overwrite"'
TRIGGER: Final = "DROP TRIGGER shop.fires"
TROUBLES: Final = (
    Trouble(
        "a table was dropped",
        ("DROP TABLE shop.heap",),
        "expected the table, found no such table",
        (RECOPY.format("shop.heap"),),
        in_window=False,
    ),
    Trouble(
        "a table was dropped to which others refer by a foreign key",
        ("DROP TABLE shop.parent",),
        "expected the table, found no such table",
        (RECOPY.format("shop.parent"),),
    ),
    Trouble(
        "tables were dropped, of which one refers to another database",
        ("DROP TABLE shop.orders", "DROP TABLE crm.line"),
        "expected the table, found no such table",
        (RECOPY.format("crm.line --table shop.orders"),),
    ),
    Trouble(
        "a database was dropped",
        ("DROP DATABASE crm",),
        "found no such database",
        (RECOPY.format("crm.line"),),
    ),
    Trouble(
        "rows are in the way",
        ("INSERT INTO shop.orders VALUES (4, 9)", "INSERT INTO crm.line VALUES (4, 1)"),
        "1062 Duplicate entry",
        (OVERWRITE, TRIGGER),
    ),
    Trouble(
        "rows were deleted",
        ("DELETE FROM shop.orders WHERE id < 3",),
        "1032 Can't find record",
        (OVERWRITE, TRIGGER),
    ),
)  # fmt: skip
