"""Which tables have columns or keys whose values depend on the session in which a server computes them: on its
``sql_mode``, its time zone or its ``lc_time_names``.

MySQL's replica computes stored generated columns, and keys over virtual columns and expressions, of row events in the
mode, time zone and locale that the session of the source has logged with them. So rows of these tables go to the
target with theirs (``Item.context``), and are never folded together with rows of others (``block.builder``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import Final, NamedTuple, Protocol

from binlane.model import TableKey
from binlane.plan.block.reducible_tables import Exclusions
from binlane.schema.model import Column, Generated, Schema, Table
from binlane.sql.sql_modes import ALL_EVALUATED, EVALUATED

ZONE: Final = 1 << 40
"""Beside the bits of modes: the session's time zone is seen, too."""
LOCALE: Final = 1 << 41
"""Beside the bits of modes: the session's ``lc_time_names`` is seen, too."""
_LOCALE_AT: Final = 48
"""The bit at which the locale's number begins; 0 is en_US, which the log leaves out."""
_ZONE_AT: Final = 64
"""The bit at which the zone's name begins; none: the log does not have it."""
TIME_ZONE: Final = "time_zone"
"""In place of a mode in ``computed``."""
LC_TIME_NAMES: Final = "lc_time_names"
"""The same, where each value is computed in the present session's."""
OPENED_LOCALE: Final = "lc_time_names at opening"
"""The same, where the session that opens the table decides for all that use it afterwards."""
ALL_SEEN: Final = ALL_EVALUATED | ZONE | LOCALE
_MOST_LOCALES: Final = 0xFFFF
_OF_LOCALES: Final = re.compile(r"date_format|dayname|monthname", re.IGNORECASE)
_LOCALES_AT_OPENING: Final = re.compile(r"dayname|monthname", re.IGNORECASE)
"""Functions that keep the locale in which they were resolved (``Item_func_monthname`` in MySQL's
``sql/item_timefunc.cc``)."""
_OF_ZONES: Final = re.compile(r"from_unixtime|unix_timestamp|convert_tz|at\s+time\s+zone", re.IGNORECASE)
_TEMPORAL: Final = frozenset({"date", "datetime", "time", "timestamp", "year"})
_OF_TIMES: Final = re.compile(r"date|time|interval|year|quarter|month|week|day|hour|minute|second|_tz", re.IGNORECASE)


class ModeRules(Protocol):
    """The tables whose rows go to the target with the modes of their sessions."""

    @property
    def bits(self) -> int:
        """The modes that any of the tables sees; the others need not be known."""

    def sees(self, key: TableKey) -> bool:
        """Whether a value that the target computes for the table's rows may depend on these modes."""
        ...


class AllTables:
    """Nothing is known of the target's tables: the rows of all of them are computed in their own modes."""

    bits = ALL_SEEN

    def sees(self, key: TableKey) -> bool:
        """Any table may."""
        del key
        return True


class ComputedModes:
    """By the target's schema at the window's start. A table that is not in it, or that the window changes, may see any
    mode."""

    def __init__(self, schema: Schema, excluded: Exclusions) -> None:
        self._schema, self._changed = schema, excluded.reasons()
        # tables of tenants share their columns and keys
        self._made: dict[object, int] = {}
        changes = bool(excluded.tables or excluded.databases or excluded.everything)
        self.bits = ALL_SEEN if changes else reduce(or_, map(self._bits_of, schema.tables.values()), 0)

    def sees(self, key: TableKey) -> bool:
        """Whether a value that the target computes for the table's rows may depend on ``bits``."""
        table = self._schema.table(key)
        return table is None or self._changed.of(key) is not None or self._bits_of(table) != 0

    def _bits_of(self, table: Table) -> int:
        kind = id(table.columns), id(table.keys)
        if kind not in self._made:
            seen = {**EVALUATED, ZONE: TIME_ZONE, LOCALE: LC_TIME_NAMES}
            self._made[kind] = sum(bit for bit, name in seen.items() if computed(table, name) is not None)
        return self._made[kind]


class Session(NamedTuple):
    """What the log has of the session of rows."""

    mode: int
    zone: str | None = None
    """None: the log does not have it."""
    locale: int | None = None
    """The number of ``lc_time_names``; None for en_US."""

    def seen(self, bits: int) -> int:
        """What rows see of it, as one number: of its modes those of ``bits``, its time zone if these have ``ZONE``, its
        locale if they have ``LOCALE``."""
        seen = self.mode & bits & (ZONE - 1)
        if bits & ZONE:
            seen |= ZONE | int.from_bytes((self.zone or "").encode(), "big") << _ZONE_AT
        return seen | (self.locale or 0) << _LOCALE_AT if bits & LOCALE else seen

    @classmethod
    def of(cls, seen: int) -> Session:
        """What a number of ``seen`` was made of, as far as it is seen."""
        name = seen >> _ZONE_AT
        zone = name.to_bytes((name.bit_length() + 7) // 8, "big").decode() if name else None
        return cls(seen & (ZONE - 1), zone, seen >> _LOCALE_AT & _MOST_LOCALES or None)


def computed(table: Table, mode: str) -> str | None:
    """The first stored column, or key over a virtual column or an expression, that the mode, or the session's
    ``TIME_ZONE`` or ``LC_TIME_NAMES``, may change."""
    sees, columns = _SEES[mode], {column.name: column for column in table.columns}
    for column in table.columns:
        if column.generated is Generated.STORED and sees(*_behind(table, column, column.expression or "")):
            return f"column {column.name}, which is generated"
    for key in table.keys:
        for part in key.columns:
            over = columns.get(part.name or "")
            expression = part.expression if over is None else over.expression
            is_computed = over is None or over.generated is Generated.VIRTUAL
            if is_computed and expression and sees(*_behind(table, over, expression)):
                return f"key {key.name} over a generated column"
    return None


def _behind(table: Table, column: Column | None, expression: str) -> tuple[str, tuple[Column, ...]]:
    """The text of an expression with those of all generated columns that it goes through, and the columns that have a
    part in the value: ``column``, which takes it, and all that these texts name."""
    texts, found = [expression], {} if column is None else {column.name: column}
    for text in texts:
        for each in table.columns:
            if each.name not in found and each.name.lower() in text.lower():
                found[each.name] = each
                if each.expression is not None:
                    texts.append(each.expression)
    return "\n".join(texts), tuple(found.values())


def _of_times(text: str, columns: tuple[Column, ...]) -> bool:
    return any(each.data_type in _TEMPORAL for each in columns) or _OF_TIMES.search(text) is not None


def _of_padding(_text: str, columns: tuple[Column, ...]) -> bool:
    return any(each.data_type == "char" for each in columns)


def _of_subtraction(text: str, columns: tuple[Column, ...]) -> bool:
    return "-" in text and ("unsigned" in text.lower() or any(each.unsigned for each in columns))


def _of_zones(text: str, columns: tuple[Column, ...]) -> bool:
    return any(each.data_type.startswith("timestamp") for each in columns) or _OF_ZONES.search(text) is not None


_SEES: Final[Mapping[str, Callable[[str, tuple[Column, ...]], bool]]] = {
    "TIME_TRUNCATE_FRACTIONAL": _of_times,
    "NO_ZERO_IN_DATE": _of_times,
    "NO_ZERO_DATE": _of_times,
    "ALLOW_INVALID_DATES": _of_times,
    "PAD_CHAR_TO_FULL_LENGTH": _of_padding,
    "NO_UNSIGNED_SUBTRACTION": _of_subtraction,
    TIME_ZONE: _of_zones,
    LC_TIME_NAMES: lambda text, _: _OF_LOCALES.search(text) is not None,
    OPENED_LOCALE: lambda text, _: _LOCALES_AT_OPENING.search(text) is not None,
}
"""Whether an expression's value may depend on the mode."""
