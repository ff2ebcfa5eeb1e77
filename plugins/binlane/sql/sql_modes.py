"""Translates ``sql_mode`` between the families.

Sources: MySQL ``sql/system_variables.h`` (MODE_*), MariaDB ``sql/sql_class.h`` (MODE_*). Bits 1 to 2^31 have the same
meaning on both servers, apart from those named here. Above them MySQL has TIME_TRUNCATE_FRACTIONAL and MariaDB
TIME_ROUND_FRACTIONAL: each mode selects the other server's default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from binlane.model import Flavor
from binlane.safe_text import shown

_COMMON: Final = 0xFFFF_FFFF
_ORACLE: Final = 0x200
"""MariaDB since 10.3: another grammar, and functions of other values. Before, and in MySQL up to 5.7, the name of a
combination whose effects have bits of their own."""
_SINCE_ORACLE: Final = (10, 3, 0)
_TIME_TRUNCATE_FRACTIONAL: Final = 1 << 32
"""MySQL: without this mode, digits beyond a column's fraction are rounded."""
_TIME_ROUND_FRACTIONAL: Final = 1 << 34
"""MariaDB: without this mode, digits beyond a column's fraction are cut off."""
_ONLY_SHOWN: Final = 0x0003_FD00 | 0x10 | 1 << 28
"""MariaDB: NO_KEY_OPTIONS, NO_TABLE_OPTIONS, NO_FIELD_OPTIONS, MYSQL323, MYSQL40, the names of combinations (their
effects have bits of their own), IGNORE_BAD_TABLE_OPTIONS, NO_AUTO_CREATE_USER. MySQL 8 has none of them, and none
changes the result of a statement that succeeded."""
_IGNORE_BAD_TABLE_OPTIONS: Final = 0x10
_NO_DIR_IN_CREATE: Final = 0x80
"""DATA DIRECTORY and INDEX DIRECTORY name folders of the source's machine: with this mode, which no replica takes from
the log, a table is made in the server's own."""
_STRICT: Final = 0x0060_0000
"""STRICT_TRANS_TABLES and STRICT_ALL_TABLES."""
INVALID_DATES: Final = "ALLOW_INVALID_DATES"
_ANSI_QUOTES: Final = 0x4
_LIKE_ORACLE: Final = 0xE00E
"""PIPES_AS_CONCAT, ANSI_QUOTES, IGNORE_SPACE, NO_KEY_OPTIONS, NO_TABLE_OPTIONS, NO_FIELD_OPTIONS."""
_TRADITIONAL: Final = _STRICT | 0x4580_0000
"""And NO_ZERO_IN_DATE, NO_ZERO_DATE, ERROR_FOR_DIVISION_BY_ZERO, NO_ENGINE_SUBSTITUTION."""
_NO_AUTO_CREATE_USER: Final = 1 << 28
_HIGH_NOT_PRECEDENCE: Final = 1 << 29
_REMOVED: Final = 0x0003_FF00 | _NO_AUTO_CREATE_USER
"""Bits of MySQL up to 5.7 of which 8.0 makes nothing in a replica's session, and an error (1231) in others."""
_COMBINED: Final[Mapping[Flavor, Mapping[int, int]]] = {
    Flavor.MYSQL: {0x4_0000: 0x2F, 1 << 27: _TRADITIONAL},
    Flavor.MARIADB: {
        **dict.fromkeys((0x100, 0x400, 0x800), _LIKE_ORACLE),
        0x1000: _LIKE_ORACLE | _NO_AUTO_CREATE_USER,
        0x4_0000: 0xF,
        1 << 27: _TRADITIONAL | _NO_AUTO_CREATE_USER,
        **dict.fromkeys((0x1_0000, 0x2_0000), _HIGH_NOT_PRECEDENCE),
    },
}
"""Names of combinations, which decide nothing themselves, and the modes that a session gets with each when it takes its
bit: POSTGRESQL, MSSQL, DB2, MAXDB, ANSI, TRADITIONAL, MYSQL323, MYSQL40 (seen on MySQL 9.7 and MariaDB 10.11)."""
EVALUATED: Final = {
    1 << 6: "NO_UNSIGNED_SUBTRACTION",
    1 << 23: "NO_ZERO_IN_DATE",
    1 << 24: "NO_ZERO_DATE",
    1 << 25: INVALID_DATES,
    1 << 31: "PAD_CHAR_TO_FULL_LENGTH",
    1 << 32: "TIME_TRUNCATE_FRACTIONAL",
}
"""MySQL's modes that change the value of an expression, and so of a generated column. Strict modes make errors of
conversions, but not while row events are applied; the others are read with the expression's text, once."""
ALL_EVALUATED: Final = sum(EVALUATED)
_ONLY_MARIADB: Final = {
    _ORACLE: "ORACLE",
    1 << 32: "EMPTY_STRING_IS_NULL",
    1 << 33: "SIMULTANEOUS_ASSIGNMENT",
}
"""Modes that change the meaning of a statement."""

MODES_OF_ONE_FAMILY: Final = frozenset(
    {
        *("TIME_TRUNCATE_FRACTIONAL", "TIME_ROUND_FRACTIONAL", "NO_AUTO_CREATE_USER", "IGNORE_BAD_TABLE_OPTIONS"),
        *("NO_KEY_OPTIONS", "NO_TABLE_OPTIONS", "NO_FIELD_OPTIONS", "MYSQL323", "MYSQL40"),
        *("DB2", "MAXDB", "MSSQL", "POSTGRESQL"),
    }
)
"""Modes that the other family does not have, or that MySQL has had up to 5.7, and that ``translated`` translates or
leaves out."""
REMOVED_FROM_MYSQL: Final = frozenset(
    {
        *("DB2", "MAXDB", "MSSQL", "MYSQL323", "MYSQL40", "ORACLE", "POSTGRESQL", "NO_AUTO_CREATE_USER"),
        *("NO_FIELD_OPTIONS", "NO_KEY_OPTIONS", "NO_TABLE_OPTIONS"),
    }
)
"""Modes of MySQL 5.7 that 8.0 refuses (1231). None has an effect on definitions or rows: those of the combinations have
names of their own, which a server shows beside."""


def alike_modes(names: str, flavor: Flavor) -> tuple[str, ...]:
    """Of the modes that a server of a family lists, those that the other one has as well; not ORACLE of MySQL, which
    means something else there."""
    left_out = MODES_OF_ONE_FAMILY | ({"ORACLE"} if flavor is Flavor.MYSQL else frozenset())
    return tuple(name for name in names.split(",") if name not in left_out)


def calls_bare(mode: int | str | None) -> bool:
    """Whether a body of that sql_mode, a number of the log or the names of a catalogue, may call a procedure without
    CALL and parentheses."""
    return "ORACLE" in mode.split(",") if isinstance(mode, str) else bool((mode or 0) & _ORACLE)


def settable(mode: int, flavor: Flavor) -> int:
    """The number of which a session of this family makes exactly these modes: the one value by which a statement is
    read and its session is set.

    A server makes more modes of a combination's name, so it is left out where one of them is not there. Raises
    ValueError, whose text is part of an error message, for a mode that cannot be had without ANSI_QUOTES.
    """
    if flavor is Flavor.MYSQL:
        mode &= ~_REMOVED
    elif mode & _ORACLE and not mode & _ANSI_QUOTES:
        raise ValueError("sql_mode ORACLE without ANSI_QUOTES, which no server logs,")
    for name, modes in _COMBINED[flavor].items():
        if mode & name and mode & modes != modes:
            mode &= ~name
    return mode


_BRINGING_ANSI_QUOTES: Final = frozenset({"ANSI", "DB2", "MAXDB", "MSSQL", "ORACLE", "POSTGRESQL"})
_MODE: Final = re.compile("[A-Z0-9_]+")


def modes_there(names: str, flavor: Flavor) -> str:
    """What a session of a target of this family is sent for the modes that a server lists, and by which a text is read:
    without those that MySQL 5.7 shows with each program and 8.0 has removed, and with ANSI_QUOTES where a server makes
    it of another name, which stands alone in a dump (``mysqldump --compatible``). Raises ValueError for what no server
    lists: the target would take ``ansi_quotes``, or a blank behind it, too."""
    listed = [name for name in names.split(",") if name]
    if (strange := next((name for name in listed if _MODE.fullmatch(name) is None), None)) is not None:
        raise ValueError(f"the sql_mode {shown(strange)!r}")
    kept = [name for name in listed if flavor is not Flavor.MYSQL or name not in REMOVED_FROM_MYSQL]
    if "ANSI_QUOTES" not in kept and not _BRINGING_ANSI_QUOTES.isdisjoint(listed):
        kept.append("ANSI_QUOTES")
    return ",".join(kept)


def without_folders(mode: int, target: Flavor) -> int:
    """The mode of a definition with DATA DIRECTORY or INDEX DIRECTORY, which are left to the target.

    MariaDB makes an error of an ignored folder (1618) in strict mode; what the source has made needs none.
    """
    return (mode & ~_STRICT if target is Flavor.MARIADB else mode) | _NO_DIR_IN_CREATE


def untranslatable(mode: int, source: Flavor, version: tuple[int, int, int], target: Flavor) -> str | None:
    """The first mode of the source that changes a statement's meaning and that the target does not have; None for
    none."""
    if source is Flavor.MARIADB and target is Flavor.MYSQL:
        mode &= ~_name_alone(source, version)
        return next((name for bit, name in _ONLY_MARIADB.items() if mode & bit), None)
    return None


def translated(mode: int, source: Flavor, version: tuple[int, int, int], target: Flavor) -> int:
    """The ``sql_mode`` for ``target`` that is equivalent to ``mode``, a status variable of QUERY in the log of a source
    of this version. Raises as ``settable``."""
    if Flavor.MARIADB in (source, target):
        mode &= ~_name_alone(source, version)
    if source is not target and target is Flavor.MARIADB:
        mode = mode & _COMMON | (0 if mode & _TIME_TRUNCATE_FRACTIONAL else _TIME_ROUND_FRACTIONAL)
    elif source is not target:
        mode = mode & _COMMON & ~_ONLY_SHOWN | (0 if mode & _TIME_ROUND_FRACTIONAL else _TIME_TRUNCATE_FRACTIONAL)
    return settable(mode, target)


def _name_alone(source: Flavor, version: tuple[int, int, int]) -> int:
    return 0 if source is Flavor.MARIADB and version >= _SINCE_ORACLE else _ORACLE


def evaluated(mode: int) -> tuple[str, ...]:
    """The names of the modes of ``mode`` that change a value, ascending by bit."""
    return tuple(name for bit, name in EVALUATED.items() if mode & bit)


def with_unknown_options(mode: int) -> int:
    """The ``sql_mode`` in which MariaDB keeps options that it does not know as text; strict modes make errors of them
    (``report_unknown_option`` in ``sql/create_options.cc``)."""
    return (mode | _IGNORE_BAD_TABLE_OPTIONS) & ~_STRICT
