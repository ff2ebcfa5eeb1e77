"""Columns and keys whose values depend on the session in which a server computes them: on its ``sql_mode``, its time
zone or its ``lc_time_names``. ``plan.block.computed_modes`` says what follows for rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from binlane.schema.model import Column, Generated, Table

TIME_ZONE: Final = "time_zone"
"""In place of a mode in ``computed``."""
LC_TIME_NAMES: Final = "lc_time_names"
"""The same, where each value is computed in the present session's."""
OPENED_LOCALE: Final = "lc_time_names at opening"
"""The same, where the session that opens the table decides for all that use it afterwards."""
_OF_LOCALES: Final = re.compile(r"date_format|dayname|monthname", re.IGNORECASE)
_LOCALES_AT_OPENING: Final = re.compile(r"dayname|monthname", re.IGNORECASE)
"""Functions that keep the locale in which they were resolved (``Item_func_monthname`` in MySQL's
``sql/item_timefunc.cc``)."""
_OF_ZONES: Final = re.compile(r"from_unixtime|unix_timestamp|convert_tz|at\s+time\s+zone", re.IGNORECASE)
_TEMPORAL: Final = frozenset({"date", "datetime", "time", "timestamp", "year"})
_OF_TIMES: Final = re.compile(r"date|time|interval|year|quarter|month|week|day|hour|minute|second|_tz", re.IGNORECASE)


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
