"""Windows that put one trap each before the reducer: a table ``t`` (and others), and what the source is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from binlane.model import Flavor

_CI: Final = "COLLATE utf8mb4_general_ci"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Tables and statements; ``{t}`` stands for a name of the scenario's own. A statement with ``-`` may fail."""

    columns: str
    statements: tuple[str, ...]
    flavor: Flavor | None = None
    others: tuple[str, ...] = ()
    options: str = ""
    """What follows the columns in CREATE TABLE."""


_WIDE: Final = ", ".join(f"c{number} {('INT', 'VARCHAR(10)', 'BIT(1)')[number % 3]}" for number in range(300))

SCENARIOS: Final[dict[str, Scenario]] = {
    "swaps_and_chains": Scenario(
        f"id INT PRIMARY KEY, e VARCHAR(9) {_CI} UNIQUE, n INT UNIQUE",
        (
            "INSERT INTO {t} VALUES (1,'a',1),(2,'b',2),(3,'c',3),(4,NULL,NULL),(5,NULL,NULL)",
            "UPDATE {t} SET e='x' WHERE id=1", "UPDATE {t} SET e='a' WHERE id=2", "UPDATE {t} SET e='b' WHERE id=1",
            "UPDATE {t} SET n=9 WHERE id=3", "UPDATE {t} SET n=3 WHERE id=2", "UPDATE {t} SET n=2 WHERE id=1",
            "UPDATE {t} SET n=1 WHERE id=4", "UPDATE {t} SET e='A' WHERE id=2", "UPDATE {t} SET e='á' WHERE id=2",
            "UPDATE {t} SET e='a ' WHERE id=2", "DELETE FROM {t} WHERE id=1", "INSERT INTO {t} VALUES (9,'B',77)",
            "UPDATE {t} SET id=1 WHERE id=9", "UPDATE {t} SET id=9 WHERE id=2", "UPDATE {t} SET id=2 WHERE id=3",
        ),
    ),
    "equal_primary_keys": Scenario(
        f"k VARCHAR(9) {_CI} PRIMARY KEY, v INT",
        (
            "INSERT INTO {t} VALUES ('a',1),('b',2)", "UPDATE {t} SET k='A' WHERE k='a'", "DELETE FROM {t} WHERE k='a'",
            "INSERT INTO {t} VALUES ('Á',3)", "UPDATE {t} SET k='a ' WHERE k='a'", "DELETE FROM {t} WHERE k='a'",
            "INSERT INTO {t} VALUES ('a',4)", "UPDATE {t} SET k='B' WHERE k='b'",
        ),
    ),
    "generated_keys": Scenario(
        "id INT PRIMARY KEY, a INT, b INT, v INT AS (a + b) VIRTUAL UNIQUE, s INT AS (a * 10 + b) STORED UNIQUE",
        (
            "INSERT INTO {t} (id,a,b) VALUES (1,1,1),(2,2,2),(3,3,3)", "UPDATE {t} SET a=100 WHERE id=1",
            "UPDATE {t} SET a=1, b=1 WHERE id=2", "UPDATE {t} SET a=2, b=2 WHERE id=1", "DELETE FROM {t} WHERE id=3",
            "INSERT INTO {t} (id,a,b) VALUES (4,3,3)", "UPDATE {t} SET b=b+1, a=a-1 WHERE id=4",
        ),
    ),
    "virtual_key": Scenario(
        "id INT PRIMARY KEY, a INT, v INT AS (a % 100) VIRTUAL UNIQUE",
        (
            "INSERT INTO {t} (id,a) VALUES (1,1),(2,2),(3,3)", "UPDATE {t} SET a=50 WHERE id=1",
            "UPDATE {t} SET a=101 WHERE id=2", "UPDATE {t} SET a=202 WHERE id=1", "UPDATE {t} SET a=NULL WHERE id=3",
        ),
    ),
    "functional_keys": Scenario(
        "id INT PRIMARY KEY, a VARCHAR(20), j JSON, UNIQUE ((LOWER(a))), UNIQUE ((CAST(j->'$.a' AS UNSIGNED)))",
        (
            """INSERT INTO {t} VALUES (1,'x','{"a": 1}'),(2,'y','{"a": 2}')""", "UPDATE {t} SET a='q' WHERE id=1",
            "UPDATE {t} SET a='X' WHERE id=2", "UPDATE {t} SET a='Y' WHERE id=1",
            "UPDATE {t} SET j=JSON_SET(j,'$.a',9) WHERE id=1", "UPDATE {t} SET j=JSON_SET(j,'$.a',1) WHERE id=2",
            "UPDATE {t} SET j=JSON_SET(j,'$.a',2) WHERE id=1",
        ),
        Flavor.MYSQL,
    ),
    "long_hash_keys": Scenario(
        f"id INT PRIMARY KEY, a TEXT {_CI} UNIQUE, b BLOB, UNIQUE (b), UNIQUE (a, b)",
        (
            "INSERT INTO {t} VALUES (1,'x','x'),(2,'y','y')", "UPDATE {t} SET a='q' WHERE id=1",
            "UPDATE {t} SET a='X' WHERE id=2", "UPDATE {t} SET a='Y' WHERE id=1", "UPDATE {t} SET b='9' WHERE id=1",
            "UPDATE {t} SET b='x' WHERE id=2", "UPDATE {t} SET b='y' WHERE id=1",
            "INSERT INTO {t} VALUES (3,REPEAT('z',5000),'w')", "DELETE FROM {t} WHERE id=3",
            "INSERT INTO {t} VALUES (4,REPEAT('Z',5000),'w')",
        ),
        Flavor.MARIADB,
    ),
    "prefix_keys": Scenario(
        "a TEXT, b INT, c VARCHAR(90), PRIMARY KEY (a(3), b), UNIQUE (c(2))",
        (
            "INSERT INTO {t} VALUES ('abcd',1,'xx1'),('abce',2,'yy1')", "UPDATE {t} SET a='abcX' WHERE b=1",
            "UPDATE {t} SET b=7 WHERE b=1", "UPDATE {t} SET b=1 WHERE b=2", "UPDATE {t} SET c='qq' WHERE b=7",
            "UPDATE {t} SET c='xx3' WHERE b=1", "UPDATE {t} SET c='yy3' WHERE b=7",
        ),
    ),
    "doubles": Scenario(
        "f DOUBLE PRIMARY KEY, g DOUBLE UNIQUE",
        (
            "INSERT INTO {t} VALUES (0,0),(1,1)", "UPDATE {t} SET g=5 WHERE f=0", "DELETE FROM {t} WHERE f=0",
            "INSERT INTO {t} VALUES (-0e0,5)", "UPDATE {t} SET f=0e0, g=-0e0 WHERE f=0", "UPDATE {t} SET g=0 WHERE f=0",
        ),
    ),
    "full_text": Scenario(
        "id INT PRIMARY KEY, FTS_DOC_ID BIGINT UNSIGNED NOT NULL, a TEXT, UNIQUE KEY FTS_DOC_ID_INDEX (FTS_DOC_ID), "
        "FULLTEXT (a)",
        (
            "INSERT INTO {t} VALUES (1,5,'a'),(2,6,'b'),(3,10,'c')", "UPDATE {t} SET FTS_DOC_ID=20, a='q' WHERE id=3",
            "UPDATE {t} SET FTS_DOC_ID=21, a='q' WHERE id=1", "UPDATE {t} SET FTS_DOC_ID=22, a='r' WHERE id=3",
        ),
    ),
    "many_columns": Scenario(
        f"id INT AUTO_INCREMENT PRIMARY KEY, {_WIDE}, UNIQUE (c255)",
        (
            "INSERT INTO {t} (c0,c255,c299) VALUES (1,1,1),(2,2,1),(3,NULL,NULL)", "UPDATE {t} SET c298='x', c100='y'",
            "UPDATE {t} SET c255=9 WHERE id=1", "UPDATE {t} SET c255=1 WHERE id=2", "DELETE FROM {t} WHERE id=1",
            "UPDATE {t} SET c299=NULL, c4='' WHERE id=3", "INSERT INTO {t} (c255) VALUES (2)",
            "DELETE FROM {t} ORDER BY id DESC LIMIT 1",
        ),
    ),
    "large_rows": Scenario(
        "id INT PRIMARY KEY, v LONGBLOB",
        (
            "INSERT INTO {t} VALUES (1,REPEAT('x',100000)),(2,REPEAT('y',1500000)),(3,'')",
            "UPDATE {t} SET v=CONCAT(v,'z')", "UPDATE {t} SET v='' WHERE id=1", "UPDATE {t} SET v=REPEAT('w',900000)",
        ),
    ),
    "cascades": Scenario(
        "id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES {t}_parent (id) ON DELETE CASCADE",
        (
            "INSERT INTO {t}_parent VALUES (1),(2)", "INSERT INTO {t}_free (u) VALUES (1),(2)",
            "INSERT INTO {t} VALUES (1,1),(2,2)", "DELETE FROM {t} WHERE id=1",
            "UPDATE {t}_free f JOIN {t}_log l ON l.a=f.id SET f.u=f.u+5, l.b=0", "UPDATE {t}_free SET u=u-1 WHERE id=1",
            "SET foreign_key_checks=0, unique_checks=0", "INSERT INTO {t} VALUES (7,77)",
            "DELETE f, l FROM {t}_free f JOIN {t}_log l ON l.a=f.id WHERE f.id=2",
        ),
        others=(
            "CREATE TABLE {t}_parent (id INT PRIMARY KEY)",
            "CREATE TABLE {t}_free (id INT AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE)",
            "CREATE TABLE {t}_log (a INT, b INT)",
            "CREATE TRIGGER {t}_trigger AFTER INSERT ON {t}_free FOR EACH ROW INSERT INTO {t}_log VALUES (NEW.id, 1)",
        ),
    ),
    "versions": Scenario(
        "id INT PRIMARY KEY, v INT",
        (
            "INSERT INTO {t} VALUES (1,1)", "UPDATE {t} SET v=2",
            "INSERT INTO {t}_overlaps VALUES (1,'2020-01-01','2020-02-01')",
            "DELETE FROM {t}_overlaps FOR PORTION OF p FROM '2020-01-10' TO '2020-01-15'",
            "UPDATE {t}_overlaps FOR PORTION OF p FROM '2020-01-02' TO '2020-01-05' SET id=3",
        ),
        Flavor.MARIADB,
        (
            "CREATE TABLE {t}_overlaps (id INT, a DATE, b DATE, PERIOD FOR p (a, b), "
            "PRIMARY KEY (id, p WITHOUT OVERLAPS))",
        ),
        " WITH SYSTEM VERSIONING",
    ),
    "invisible_key": Scenario(
        "my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE PRIMARY KEY, a INT, b INT UNIQUE",
        (
            "INSERT INTO {t} (a,b) VALUES (1,1),(2,2)", "UPDATE {t} SET b=5 WHERE a=1", "UPDATE {t} SET b=1 WHERE a=2",
            "INSERT INTO {t} (a,b) VALUES (3,3)", "DELETE FROM {t} WHERE a=3",
        ),
    ),
    "partial_images": Scenario(
        "id INT PRIMARY KEY, v INT, b BLOB",
        (
            "INSERT INTO {t} VALUES (1,1,'a'),(2,2,'b')", "SET binlog_row_image=MINIMAL",
            "UPDATE {t} SET v=5 WHERE id=1",
            "INSERT INTO {t} (id) VALUES (9)", "DELETE FROM {t} WHERE id=2", "SET binlog_row_image=NOBLOB",
            "UPDATE {t} SET v=6 WHERE id=1", "SET binlog_row_image=FULL", "UPDATE {t} SET v=7",
        ),
    ),
}  # fmt: skip
"""Each is one table's worth of a window without statements and DDL; all of them go into one block."""

COUNTERS: Final[dict[str, Scenario]] = {
    "key_beside": Scenario(
        "k VARCHAR(9) PRIMARY KEY, id INT AUTO_INCREMENT UNIQUE",
        ("DELETE FROM {t}", "INSERT INTO {t} VALUES ('x',9)", "DELETE FROM {t} WHERE k='x'"),
        others=("INSERT INTO {t} (k) VALUES ('x')",),
    ),
    "came_back": Scenario(
        "id INT AUTO_INCREMENT PRIMARY KEY, e VARCHAR(9) UNIQUE",
        (
            "UPDATE {t} SET e='b'", "INSERT INTO {t} (e) VALUES ('a')", "DELETE FROM {t} WHERE e='a'",
            "UPDATE {t} SET e='a'",
        ),
        others=("INSERT INTO {t} (e) VALUES ('a')",),
    ),
    "handed_on": Scenario(
        "id INT AUTO_INCREMENT PRIMARY KEY, e VARCHAR(9) UNIQUE",
        (
            "DELETE FROM {t}", "INSERT INTO {t} (e) VALUES ('a')", "DELETE FROM {t}", "INSERT INTO {t} VALUES (1,'a')",
            "INSERT INTO {t} (e) VALUES ('z')", "DELETE FROM {t} WHERE e='z'",
        ),
        others=("INSERT INTO {t} (e) VALUES ('a')",),
    ),
    "set_and_back": Scenario(
        "k VARCHAR(9) PRIMARY KEY, id INT AUTO_INCREMENT, KEY (id)",
        ("UPDATE {t} SET id=50", "UPDATE {t} SET id=3"),
        others=("INSERT INTO {t} (k) VALUES ('x')",),
    ),
    "moved_and_back": Scenario(
        "id INT AUTO_INCREMENT PRIMARY KEY",
        ("INSERT INTO {t} VALUES (1)", "UPDATE {t} SET id=50", "UPDATE {t} SET id=3"),
    ),
    "beyond_63_bits": Scenario(
        "id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, v INT",
        ("INSERT INTO {t} VALUES (9223372036854775900,1),(5,5)", "DELETE FROM {t} WHERE v=1"),
    ),
    "largest_signed": Scenario(
        "id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT",
        ("INSERT INTO {t} VALUES (-5,1),(9223372036854775000,1),(5,5)", "DELETE FROM {t} WHERE v=1"),
    ),
    "below_zero": Scenario(
        "id TINYINT AUTO_INCREMENT PRIMARY KEY, v INT",
        ("INSERT INTO {t} VALUES (-5,1),(-1,2)", "DELETE FROM {t} WHERE v=1"),
    ),
    "unsigned_byte": Scenario(
        "id TINYINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, v INT",
        ("INSERT INTO {t} VALUES (200,1),(100,2)", "DELETE FROM {t} WHERE v=1"),
    ),
    "zero": Scenario(
        "id INT AUTO_INCREMENT PRIMARY KEY, v INT",
        ("SET sql_mode='NO_AUTO_VALUE_ON_ZERO'", "INSERT INTO {t} VALUES (0,1),(7,2)", "UPDATE {t} SET v=3"),
    ),
}  # fmt: skip
"""``others`` here has run before the window begins."""

BETWEEN: Final = (
    "INSERT INTO a (v) VALUES (1),(2)", "SET binlog_format=STATEMENT", "UPDATE a SET v=v+1 WHERE id=1",
    "INSERT INTO b SELECT id, v FROM a", "SET binlog_format=ROW", "UPDATE a SET v=v*2", "UPDATE b SET v=v+1",
    "DELETE FROM a WHERE id=1", "SET binlog_format=STATEMENT", "UPDATE b SET v=v+(SELECT SUM(v) FROM a)",
    "INSERT INTO a (v) VALUES (5)", "SET binlog_format=ROW", "DELETE FROM a WHERE v=5", "UPDATE b SET v=10-v",
    "ALTER TABLE c ADD UNIQUE (v)", "UPDATE c SET v=10 WHERE id=1", "UPDATE c SET v=1 WHERE id=2",
    "UPDATE c SET v=2 WHERE id=1", "ALTER TABLE c ADD w INT", "UPDATE c SET w=1", "UPDATE b SET v=v-1",
    "TRUNCATE b", "INSERT INTO b VALUES (1,5)", "DELETE FROM b", "UPDATE a SET v=v+1",
    "FLUSH NO_WRITE_TO_BINLOG TABLES", "UPDATE a SET v=v+1",
)  # fmt: skip
"""Statement format and DDL in one window with rows. Tables a, b and c begin with (1, 1), (2, 2) in c."""
