"""Column types and the literals that histories write: few, so that keys collide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from binlane.model import Flavor
from lab.histories.world import Column, Dice

_NUMBERS: Final = ("0", "1", "2", "3", "4", "5", "7", "-1", "127", "255")
_TEXTS: Final = (
    "''", "'a'", "'A'", "'a '", "'b'", "'ab'", "'abc'", "'ABD'", "'ä'", "'Ä'", "'ß'", "'ss'", "'\\\\'", "'it''s'",
    "'x\\ny'", "REPEAT('z', 200)", "'💡'", "'é'", "X'61'", "_latin1'\\xe4'",
)  # fmt: skip
_BYTES: Final = ("''", "X'00'", "X'ff00'", "'a'", "X'61200a'", "REPEAT(X'fe', 99)", "'a '")
_TIMES: Final = (
    "'2026-01-31 23:59:59.987654'", "'1999-12-31 00:00:00'", "'2024-02-29 12:00:00.5'", "'2037-01-19 03:14:07'",
    "NOW()",
)  # fmt: skip
VALUES: Final[Mapping[str, Sequence[str]]] = {
    "INT": _NUMBERS,
    "BIGINT UNSIGNED": ("0", "1", "2", "9", "18446744073709551615"),
    "SMALLINT": _NUMBERS,
    "MEDIUMINT UNSIGNED": ("0", "1", "2", "16777215"),
    "DECIMAL(12,3)": ("0", "1", "1.5", "-2.125", "999999999.999"),
    "DOUBLE": ("0", "0.1", "-0e0", "1e300", "1/3"),
    "FLOAT": ("0", "0.1", "1.5", "-3e30"),
    "VARCHAR(40)": _TEXTS,
    "VARCHAR(20) CHARACTER SET latin1": _TEXTS,
    "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin": _TEXTS,
    "CHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci": _TEXTS,
    "VARCHAR(300) CHARACTER SET utf8mb4": _TEXTS,
    "VARCHAR(12) CHARACTER SET ucs2": _TEXTS,
    "TEXT": _TEXTS,
    "MEDIUMTEXT CHARACTER SET latin1": _TEXTS,
    "VARBINARY(120)": _BYTES,
    "BINARY(5)": ("''", "X'00'", "'a'", "'ab'"),
    "BLOB": _BYTES,
    "DATETIME(6)": _TIMES,
    "DATETIME": _TIMES,
    "TIMESTAMP(3) NULL": _TIMES,
    "TIME(2)": ("'-838:59:59'", "'12:34:56.78'", "'-00:00:00.01'"),
    "DATE": ("'2026-01-01'", "'1000-01-01'", "CURDATE()"),
    "YEAR": ("2026", "1901", "0"),
    "BIT(10)": ("b'1'", "b'1111111111'", "0"),
    "ENUM('x','y','ä')": ("'x'", "'y'", "2"),
    "SET('p','q','r')": ("'p'", "'p,r'", "''", "7"),
    "JSON": ('\'{"a": [1, null, "u"], "b": {"c": 1}}\'', "'[]'", "'[1, 2, 3]'", "'\"x\"'"),
    "POINT": ("ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('POINT(0 -1)')"),
    # of one family each
    "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci": _TEXTS,
    "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin": _TEXTS,
    "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_nopad_ci": _TEXTS,
    "UUID": ("'123e4567-e89b-12d3-a456-426655440000'", "'123e4567-e89b-12d3-a456-426655440001'"),
    "INET6": ("'::1'", "'ff::'"),
    "TEXT COMPRESSED": _TEXTS,
}
_OF_FAMILY: Final = {
    Flavor.MYSQL: (
        "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci",
        "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin",
    ),
    Flavor.MARIADB: (
        "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_nopad_ci", "UUID", "INET6", "TEXT COMPRESSED",
    ),
}  # fmt: skip
_FOREIGN: Final = {Flavor.MYSQL: _OF_FAMILY[Flavor.MARIADB], Flavor.MARIADB: _OF_FAMILY[Flavor.MYSQL]}


def kinds(flavor: Flavor) -> list[str]:
    """The types of a family; the most common types more often."""
    own = [kind for kind in VALUES if kind not in _FOREIGN[flavor]]
    return [*own, "INT", "INT", "VARCHAR(40)", "VARCHAR(40)", "DATETIME"]


def is_text(kind: str) -> bool:
    """Whether text functions accept the type."""
    return kind.startswith(("VARCHAR", "CHAR", "TEXT", "MEDIUMTEXT"))


def is_long(kind: str) -> bool:
    """Whether a key on the type needs a prefix."""
    return kind.startswith(("TEXT", "MEDIUMTEXT", "BLOB"))


def is_keyless(kind: str) -> bool:
    """Whether no ordinary key accepts the type."""
    return kind.startswith(("JSON", "POINT", "TEXT COMPRESSED"))


def value(dice: Dice, column: Column) -> str:
    """A literal, or NULL for a nullable column, sometimes also for another."""
    if dice.one_in(9 if "NOT NULL" not in column.extra else 60):
        return "NULL"
    return dice.choice(VALUES[column.kind])


def number(dice: Dice) -> str:
    """An id; few different ones, so that statements write the same rows."""
    return str(dice.randint(1, 14))
