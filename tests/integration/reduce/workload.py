"""Random changes of tables with few keys and many constraints, so that values of unique keys are handed round."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from binlane.model import Flavor

_CI: Final = "COLLATE utf8mb4_general_ci"
_TEXTS: Final = ("NULL", "'a'", "'A'", "'á'", "'a '", "'b'", "'B'", "'ss'", "'ß'", "''")
_NUMBERS: Final = ("NULL", *map(str, range(7)))


@dataclass(frozen=True, slots=True)
class Shape:
    """A table and the values that its columns get."""

    columns: str
    values: Mapping[str, Sequence[str]]
    flavor: Flavor | None = None
    """The only family that knows such a table."""

    def create(self, name: str) -> str:
        """The statement that makes it."""
        return f"CREATE TABLE {name} ({self.columns}"


SHAPES: Final[Mapping[str, Shape]] = {
    "accounts": Shape(
        f"id INT AUTO_INCREMENT PRIMARY KEY, mail VARCHAR(9) {_CI} UNIQUE, n SMALLINT UNIQUE, note TEXT)",
        {"mail": _TEXTS, "n": _NUMBERS, "note": ("NULL", "REPEAT('x', 300)", "'y'")},
    ),
    "names": Shape(
        f"name VARCHAR(9) {_CI} PRIMARY KEY, id BIGINT UNSIGNED AUTO_INCREMENT UNIQUE, v INT)",
        {"name": _TEXTS[1:], "id": ("3", "5", "DEFAULT", "DEFAULT"), "v": _NUMBERS},
    ),
    "counted": Shape(
        "name VARCHAR(9) PRIMARY KEY, id INT AUTO_INCREMENT, v INT, KEY (id))",
        {"name": _TEXTS[1:], "id": ("1", "7", "90", "DEFAULT", "DEFAULT"), "v": _NUMBERS},
    ),
    "pairs": Shape(
        f"a INT, b VARCHAR(9) {_CI}, c DOUBLE, d INT, PRIMARY KEY (a, b(2)), UNIQUE (c, d), UNIQUE (d, a))",
        {"a": _NUMBERS[1:5], "b": _TEXTS[1:], "c": ("0", "-0e0", "1.5", "NULL"), "d": _NUMBERS},
    ),
    "made": Shape(
        f"id INT PRIMARY KEY, a VARCHAR(9) {_CI}, b INT, u VARCHAR(9) {_CI} AS (UPPER(a)) VIRTUAL UNIQUE, "
        "s INT AS (b * 2) STORED UNIQUE)",
        {"id": _NUMBERS[1:], "a": _TEXTS, "b": _NUMBERS},
    ),
    "kinds": Shape(
        "e ENUM('x', 'y', 'z'), f BIT(3), d DECIMAL(9, 3), t TIMESTAMP(3) NULL UNIQUE, y BINARY(4) UNIQUE, "
        "s SET('p', 'q') UNIQUE, PRIMARY KEY (e, f, d))",
        {
            "e": ("'x'", "'y'", "'z'"), "f": ("1", "2"), "d": ("-1.5", "0", "1.5"),
            "t": ("NULL", "'2026-01-01 00:00:00.123'", "'2026-01-01'"), "y": ("NULL", "'a'", "'a '", "''"),
            "s": ("NULL", "'p'", "'q'", "'p,q'"),
        },
    ),
    "parts": Shape(
        "a INT, b INT, v INT, PRIMARY KEY (a, b), UNIQUE (b)) PARTITION BY HASH (b) PARTITIONS 3",
        {"a": _NUMBERS[1:], "b": _NUMBERS[1:], "v": _NUMBERS},
    ),
    "loose": Shape("a INT, b INT)", {"a": _NUMBERS, "b": _NUMBERS}),
    "long_texts": Shape(
        f"id INT PRIMARY KEY, a TEXT {_CI} UNIQUE, b BLOB, UNIQUE (b))",
        {"id": _NUMBERS[1:], "a": (*_TEXTS, "REPEAT('z', 4000)", "REPEAT('Z', 4000)"), "b": _TEXTS},
        Flavor.MARIADB,
    ),
    "functional": Shape(
        "id INT PRIMARY KEY, a VARCHAR(9), b INT, UNIQUE ((LOWER(a))), UNIQUE ((b + 1)))",
        {"id": _NUMBERS[1:], "a": _TEXTS, "b": _NUMBERS},
        Flavor.MYSQL,
    ),
    "no_pad": Shape(
        "a VARCHAR(9) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, b VARCHAR(9) COLLATE utf8mb4_0900_as_cs UNIQUE)",
        {"a": _TEXTS[1:], "b": _TEXTS},
        Flavor.MYSQL,
    ),
}  # fmt: skip


def tables(*flavors: Flavor) -> list[str]:
    """The statements that create every table that all ``flavors`` know."""
    return [shape.create(name) for name, shape in _known(flavors)]


def statements(seed: int, count: int, *flavors: Flavor) -> Iterator[str]:
    """About ``count`` statements, many of which fail: a leading ``-`` says that this is of no matter."""
    chosen, known = random.Random(seed), _known(flavors)
    for _ in range(count // 4):
        yield "-BEGIN"
        for _ in range(chosen.randint(1, 6)):
            yield "-" + _change(chosen, *chosen.choice(known))
        yield "-COMMIT" if chosen.random() < 0.93 else "-ROLLBACK"


def _known(flavors: Sequence[Flavor]) -> list[tuple[str, Shape]]:
    return [(name, shape) for name, shape in SHAPES.items() if shape.flavor is None or {shape.flavor} == set(flavors)]


def _change(chosen: random.Random, name: str, shape: Shape) -> str:
    def value(column: str) -> str:
        return chosen.choice(shape.values[column])

    def condition() -> str:
        column = chosen.choice(list(shape.values))
        found = value(column)
        return f"{column} IS NULL" if found in ("NULL", "DEFAULT") else f"{column} = {found}"

    column = chosen.choice(list(shape.values))
    row = f"({', '.join(shape.values)}) VALUES ({', '.join(map(value, shape.values))})"
    match chosen.randrange(8):
        case 0 | 1 | 2:
            return f"INSERT INTO {name} {row}"
        case 3:
            return f"REPLACE INTO {name} {row}"
        case 4:
            return f"INSERT INTO {name} {row} ON DUPLICATE KEY UPDATE {column} = {value(column)}"
        case 5 | 6:
            return f"UPDATE {name} SET {column} = {value(column)} WHERE {condition()} LIMIT {chosen.randint(1, 3)}"
        case _:
            return f"DELETE FROM {name} WHERE {condition()} LIMIT {chosen.randint(1, 2)}"
