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
LARGE: Final = (
    "INSERT INTO shop.heap WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250) "
    "SELECT n.i, m.i FROM n JOIN n AS m"
)
"""More than a small disk holds."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One row of the table."""

    what: str
    """As the page names it."""
    breaks: tuple[str, ...]
    """Statements on the target, without checks of foreign keys; empty: see ``test_ways_out.BREAKS``."""
    seen: str
    """A part of the message of the run, or of the verification behind it."""
    typed: tuple[str, ...]
    """The commands and statements that the messages name, in order, as the page shows them."""
    in_window: bool = True
    """It can also happen to a window that has begun to write."""
    window: tuple[str, ...] = WINDOW
    """On the source."""
    families: tuple[str, ...] = ("mariadb", "mysql")
    without: str = ""
    """Who does what the message names for another trouble."""


RECOPY: Final = "binlane recopy shop --table {}"
REPAIR: Final = "binlane verify shop --full --repair"
OVERWRITE: Final = 'apply.on_conflict = "overwrite"'
TRIGGER: Final = "DROP TRIGGER shop.fires"
SKIP: Final = "binlane skip shop"
ORDERS: Final = "ALTER TABLE shop.orders "
AGAIN: Final = "binlane run shop"
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
        "a table was dropped that statements of the window read, which change another one",
        ("DROP TABLE shop.child",),
        "expected the table, found no such table",
        (RECOPY.format("shop.child --table shop.orders"),),
        window=(
            *WINDOW,
            "SET SESSION binlog_format = 'STATEMENT'",
            "INSERT INTO shop.orders SELECT id + 100, COUNT(*) FROM shop.child GROUP BY id",
            "INSERT INTO shop.child VALUES (9, 1)",
        ),
    ),
    Trouble(
        "a database was dropped",
        ("DROP DATABASE crm",),
        "found no such database",
        (RECOPY.format("crm.line"),),
    ),
    Trouble(
        "a table was renamed",
        ("RENAME TABLE shop.heap TO shop.old",),
        "expected the table, found no such table",
        (RECOPY.format("shop.heap"),),
        in_window=False,
    ),
    Trouble(
        "rows are in the way",
        ("INSERT INTO shop.orders VALUES (4, 9)", "INSERT INTO crm.line VALUES (4, 1)"),
        "1062 Duplicate entry",
        (OVERWRITE,),
    ),
    Trouble(
        "rows are in the way, in a table with triggers",
        ("INSERT INTO shop.parent VALUES (4, 200)",),
        "1062 Duplicate entry",
        (OVERWRITE, TRIGGER),
    ),
    Trouble(
        "rows were deleted",
        ("DELETE FROM shop.orders WHERE id < 3",),
        "1032 Can't find record",
        (OVERWRITE,),
    ),
    Trouble(
        "a column was added",
        (f"{ORDERS}ADD extra INT FIRST",),
        "columns: expected 2 (id, v), found 3 (extra, id, v)",
        (f"{ORDERS}DROP COLUMN extra",),
    ),
    Trouble(
        "a column was dropped",
        (f"{ORDERS}DROP v",),
        "columns: expected 2 (id, v), found 1 (id)",
        (f"{ORDERS}ADD COLUMN v int DEFAULT NULL AFTER id",),
    ),
    Trouble(
        "a column has another type",
        (f"{ORDERS}MODIFY v VARCHAR(20)",),
        "shop.orders.v: type: expected int, found varchar(20)",
        (f"{ORDERS}MODIFY COLUMN v int DEFAULT NULL AFTER id",),
    ),
    Trouble(
        "a column has another name",
        (f"{ORDERS}CHANGE v w INT",),
        "shop.orders.w: name of column 2: expected v, found w",
        (f"{ORDERS}CHANGE COLUMN w v int DEFAULT NULL AFTER id",),
    ),
    Trouble(
        "columns are in another order",
        (f"{ORDERS}MODIFY v INT FIRST",),
        "shop.orders.v: name of column 1: expected id, found v",
        (f"{ORDERS}MODIFY COLUMN id int NOT NULL FIRST",),
    ),
    Trouble(
        "a foreign key was dropped",
        ("ALTER TABLE shop.child DROP FOREIGN KEY of_parent",),
        "foreign key: expected (p) to shop.parent (id)",
        (
            "ALTER TABLE shop.child ADD CONSTRAINT of_parent FOREIGN KEY (p) REFERENCES parent (id) "
            "ON DELETE CASCADE",
        ),
    ),
    Trouble(
        "a CHECK was added that rows do not meet",
        (f"{ORDERS}ADD CONSTRAINT small CHECK (v < 4)",),
        "small",
        (f"{ORDERS}DROP CONSTRAINT small",),
        in_window=False,
    ),
    Trouble(
        "a table was added",
        ("CREATE TABLE shop.mine (id INT PRIMARY KEY)",),
        "shop.mine: the table exists on the target and not on the source",
        ("DROP TABLE shop.mine",),
    ),
    Trouble(
        "a table was dropped that no window changes",
        ("DROP TABLE shop.heap",),
        "shop.heap: the table exists on the source and not on the target",
        (RECOPY.format("shop.heap"),),
        window=tuple(each for each in WINDOW if "heap" not in each),
    ),
    Trouble(
        "an index was dropped",
        (f"{ORDERS}DROP KEY by_v",),
        ", target none",
        (REPAIR,),
    ),
    Trouble(
        "a trigger was dropped",
        (TRIGGER,),
        "trigger shop.fires: exists on the source and not on the target",
        (REPAIR,),
    ),
    Trouble(
        "a trigger was added",
        ("CREATE TRIGGER shop.other BEFORE INSERT ON shop.orders FOR EACH ROW SET NEW.v = 1000",),
        "trigger shop.other: exists on the target and not on the source",
        ("DROP TRIGGER shop.other",),
    ),
    Trouble(
        "a CREATE TABLE of the window was run by hand",
        ("CREATE TABLE shop.made (id INT PRIMARY KEY)",),
        "1050 Table 'made' already exists",
        (SKIP,),
        window=(*WINDOW, "CREATE TABLE shop.made (id INT PRIMARY KEY)", "INSERT INTO shop.made VALUES (1)"),
    ),
    Trouble(
        "an ALTER TABLE of the window was run by hand",
        (f"{ORDERS}DROP KEY by_v",),
        "1091 Can't DROP",
        (SKIP,),
        window=(*WINDOW, f"{ORDERS}DROP KEY by_v", "INSERT INTO shop.orders VALUES (9, 9)"),
    ),
    Trouble(
        "an ALTER TABLE of the window was run by hand, and rows come before it",
        (f"{ORDERS}ADD COLUMN z INT",),
        "logged columns: expected 2, found 3",
        (f"{ORDERS}DROP COLUMN z",),
        in_window=False,
        window=(*WINDOW, f"{ORDERS}ADD COLUMN z INT", "INSERT INTO shop.orders VALUES (9, 9, 9)"),
    ),
    Trouble(
        "a column was dropped from a table that the window alters",
        (f"{ORDERS}DROP v",),
        "logged columns: expected 2, found 1",
        ("SET SESSION foreign_key_checks = OFF", "DROP TABLE shop.orders", RECOPY.format("shop.orders")),
        in_window=False,
        window=(*WINDOW, f"{ORDERS}ADD COLUMN z INT", "INSERT INTO shop.orders VALUES (9, 9, 9)"),
        without="undo",
    ),
    Trouble(
        "a DROP TABLE of the window was run by hand",
        ("DROP TABLE shop.heap",),
        "shop.heap: table: expected the table, found no such table",
        ('[filter] exclude_tables = ["shop.heap"]',),
        in_window=False,
        window=(*WINDOW, "DROP TABLE shop.heap"),
    ),
    Trouble(
        "somebody holds LOCK TABLES",
        (),
        "Lock wait timeout exceeded",
        ("KILL its connection",),
    ),
    Trouble(
        "read_only was set",
        (),
        "read_only = OFF on the target",
        ("SET GLOBAL read_only = OFF",),
    ),
    Trouble(
        "max_allowed_packet was lowered",
        (),
        "the target accepts at most",
        ("SET GLOBAL max_allowed_packet",),
        in_window=False,
    ),
    Trouble(
        "the target's account has lost a privilege",
        (),
        "privilege SELECT: expected granted on",
        ("GRANT SELECT ON crm.*", "GRANT SELECT ON shop.*"),
    ),
    Trouble(
        "the source's account has lost a privilege",
        (),
        "GRANT REPLICATION SLAVE",
        ("GRANT REPLICATION SLAVE ON *.*",),
        in_window=False,
    ),
    Trouble(
        "the target's password was changed",
        (),
        "check user and password of the connection",
        ("the new password in the connection",),
    ),
    Trouble(
        "the source's password was changed",
        (),
        "the login was refused: compare the connection's user and password",
        ("the new password in the connection",),
    ),
    Trouble(
        "the target's account was locked",
        (),
        "ACCOUNT UNLOCK there",
        ("ALTER USER the account ACCOUNT UNLOCK",),
    ),
    Trouble(
        "the target was stopped",
        (),
        "run again when the server answers",
        (AGAIN,),
    ),
    Trouble(
        "the source was stopped",
        (),
        "run the step again when the server answers",
        (AGAIN,),
        in_window=False,
    ),
    Trouble(
        "the source was started without its binary log",
        (),
        "found log_bin = OFF",
        ("log_bin in the source's option file, and a restart",),
        in_window=False,
    ),
    Trouble(
        "the source was restarted with other settings (`binlog_ignore_db`)",
        (),
        "the source leaves changes out of its log",
        ("binlog_ignore_db out of the source's option file, and a restart",),
        in_window=False,
    ),
    Trouble(
        "the work folder is full",
        (),
        "No space left on device; this step writes nothing to the target. Free space",
        ("free space, or a larger work.uri",),
        in_window=False,
    ),
    Trouble(
        "the source has purged its log",
        (),
        "it was purged before it was read",
        ("DELETE FROM binlane.channels WHERE channel = 'shop'", "binlane bootstrap shop --replace"),
        in_window=False,
    ),
    Trouble(
        "the connection leads to another source",
        (),
        "Point the connection at the channel's server",
        ("the right host in the connection",),
        in_window=False,
    ),
    Trouble(
        "the connection leads to another target",
        (),
        "Point the connection at the channel's target",
        ("the right host in the connection",),
    ),
    Trouble(
        "another server has replaced the target, with all its data",
        (),
        "if this server has replaced it on purpose",
        ("binlane adopt-target shop",),
    ),
    Trouble(
        "the target's disk is full",
        (),
        "free space on the target, then run again",
        ("free space on the target",),
        window=(*WINDOW, LARGE),
    ),
    Trouble(
        "GTIDs were switched off on the source (`gtid_mode = OFF`), and the log behind the watermark has some",
        (),
        "the server does not send transactions of its earlier gtid_mode",
        ("SET GLOBAL gtid_mode = OFF_PERMISSIVE",),
        in_window=False,
        families=("mysql",),
    ),
)  # fmt: skip
