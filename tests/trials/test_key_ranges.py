"""First copies, verifications and repairs by ranges of keys: each collation of a server, kind of key and partition."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.model import Flavor
from tests.integration.bootstrap.conftest import either
from tests.integration.verify.key_ranges import LETTERS, check, inserted
from tests.integration.window.conftest import Channel, run_on
from tests.trials.sampling import sampled

__all__ = ["either"]

PARTS: Final = 16
"""Of a server's collations, one part a test."""
SIGNS: Final = (
    "",
    " ",
    "  ",
    "\\t",
    "\\n",
    "!",
    "a ",
    "a\\t",
    "a",
    "A",
    "á",
    "z",
    "\u00ad",
    "a\u00ad",
    "\u200b",
    "e\u0301",
    "é",
    "\u3042",
)
"""Texts with spaces at the end, letters of several code points, and letters that some collations ignore."""
KEYS: Final = {
    "full": "PRIMARY KEY (k, n)",
    "cut": "PRIMARY KEY (k(3), n)",
    "behind": "PRIMARY KEY (n, k(2))",
}
NUMBERS: Final = {
    "tiny": ("TINYINT", [str(n) for n in range(-128, 128)]),
    "big": ("BIGINT UNSIGNED", [str(n * n * 68_000_000_000_000) for n in range(500)]),
    "fill": ("INT ZEROFILL", [str(n) for n in range(300)]),
    "bits": ("BIT(9)", [str(n) for n in range(300)]),
    "dec": ("DECIMAL(30,10)", [f"{n - 150}.{n:010d}" for n in range(300)]),
    "real": ("FLOAT", [f"{n} / 7" for n in range(-150, 150)]),
    "wide": ("DOUBLE", [f"{n} / 7" for n in range(-150, 150)]),
    "years": ("YEAR", ["0", *(str(n) for n in range(1901, 2156))]),
    "days": (
        "DATE",
        ["'0000-00-00'", "'2020-00-00'", "'2021-02-31'", *(f"'19{n:02d}-0{n % 9 + 1}-07'" for n in range(100))],
    ),
    "at": (
        "DATETIME(6)",
        ["'0000-00-00'", *(f"'2020-01-01 00:{n % 60:02d}:{n // 60:02d}.{n:06d}'" for n in range(300))],
    ),
    "stamp": ("TIMESTAMP(3)", ["'0000-00-00'", *(f"'2021-10-31 0{n // 60}:{n % 60:02d}:00.125'" for n in range(300))]),
    "times": ("TIME(2)", [f"'{sign}{n}:0{n % 6}:01.25'" for n in range(1, 150) for sign in ("-", "")]),
    "bytes": ("VARBINARY(20)", [f"X'{n:04x}'" for n in range(300)]),
    "padded": ("BINARY(4)", [f"X'{n:04x}'" for n in range(1, 300)]),
    "picked": (f"ENUM({', '.join(repr(f'm{n * 7 % 300}') for n in range(300))})", [str(n) for n in range(1, 301)]),
    "some": (f"SET({', '.join(repr(f'm{n}') for n in range(53))})", [str(n * 30_000_000_000_000) for n in range(300)]),
    "most": (
        f"SET({', '.join(repr(f'm{n}') for n in range(64))})",
        [str(n * 30_000_000_000_000_000) for n in range(300)],
    ),
}
MARIADB: Final = {
    "ids": ("UUID", [f"'{n * 0x1234567890ABCDEF:032x}'" for n in range(300)]),
    "hosts": ("INET6", [f"'2001::{n:x}'" for n in range(300)]),
}
PARTITIONS: Final = (
    "HASH (n) PARTITIONS 3",
    "LINEAR HASH (n) PARTITIONS 4",
    "KEY (n) PARTITIONS 3",
    "RANGE (n) (PARTITION a VALUES LESS THAN (50), PARTITION b VALUES LESS THAN (200), "
    "PARTITION c VALUES LESS THAN MAXVALUE)",
    "RANGE COLUMNS (n, m) (PARTITION a VALUES LESS THAN (50, 7), PARTITION b VALUES LESS THAN (MAXVALUE, MAXVALUE))",
    "LIST (n % 3) (PARTITION a VALUES IN (0, 2), PARTITION b VALUES IN (1))",
    "RANGE (n) SUBPARTITION BY HASH (m) SUBPARTITIONS 2 (PARTITION a VALUES LESS THAN (99), "
    "PARTITION b VALUES LESS THAN MAXVALUE)",
)


@pytest.mark.parametrize("part", sampled(range(PARTS), (0, 7)))
def test_every_collation(either: Channel, part: int) -> None:
    names = [name for (name,) in either.source.query(COLLATIONS[Flavor(either.source.flavor)])][part::PARTS]
    statements, tables = ["CREATE DATABASE app", "SET SESSION sql_mode = ''"], dict[str, str]()
    for number, name in enumerate(names):
        for kind, key in KEYS.items():
            table = f"{kind}_{number}"
            texts = [*SIGNS, *LETTERS[::3]]
            rows = [(f"_utf8mb4'{text}'", str(n)) for n, text in enumerate(texts)]
            statements.append(f"CREATE TABLE app.{table} (k VARCHAR(40) COLLATE {name}, n INT, {key})")
            statements += [each.replace("INSERT", "INSERT IGNORE", 1) for each in inserted(f"app.{table}", rows)]
            tables[table] = "n % 13 = 0"
    run_on(either.source, *statements)
    check(either, tables)


def test_every_type_and_partition(either: Channel) -> None:
    statements, tables = ["CREATE DATABASE app", "SET SESSION sql_mode = 'ALLOW_INVALID_DATES'"], dict[str, str]()
    kinds = NUMBERS | (MARIADB if either.source.flavor == Flavor.MARIADB else {})
    for name, (kind, values) in kinds.items():
        for way in ("", " DESC") if either.source.flavor == Flavor.MYSQL else ("",):
            table = f"{name}{way.strip().lower()}"
            statements += [
                f"CREATE TABLE app.{table} (k {kind} NOT NULL, n INT, PRIMARY KEY (k{way}))",
                *inserted(f"app.{table}", [(value, str(n)) for n, value in enumerate(values)]),
            ]
            tables[table] = "n % 13 = 0"
    for number, partition in enumerate(PARTITIONS):
        statements += [
            f"CREATE TABLE app.parts_{number} (n INT, m INT, PRIMARY KEY (n, m)) PARTITION BY {partition}",
            *inserted(f"app.parts_{number}", [(str(n), str(n * 7 % 10)) for n in range(300)]),
        ]
        tables[f"parts_{number}"] = "n % 13 = 0"
    run_on(either.source, *statements)
    check(either, tables, outside=tuple(name for name in tables if name.startswith("most")))


COLLATIONS: Final = {
    Flavor.MARIADB: "SELECT full_collation_name FROM information_schema.collation_character_set_applicability "
    "ORDER BY 1",
    Flavor.MYSQL: "SELECT collation_name FROM information_schema.collations ORDER BY 1",
}
