"""Generated columns and keys whose values depend on the ``sql_mode`` in which a server computes them.

MySQL's replica computes them for each transaction in the mode of its session, lanes in one mode, the target's own:
where the two differ, and the expression can see the difference, a row would get another value than on the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from binlane.model import Flavor, TableKey
from binlane.precheck.finding import Finding
from binlane.precheck.situation import Situation
from binlane.schema.compare import Severity
from binlane.schema.model import Column, Generated, Table
from binlane.sql.requirements import ROW_MODE
from binlane.sql.sql_modes import EVALUATED

_TEMPORAL: Final = frozenset({"date", "datetime", "time", "timestamp", "year"})
_OF_TIMES: Final = re.compile(r"date|time|interval|year|month|day|hour|second", re.IGNORECASE)
_GENERATES: Final = re.compile(r"\bAS\s*\(", re.IGNORECASE)


def check_generated_columns(situation: Situation) -> Iterator[Finding]:
    """Columns and keys that the target computes, of tables with rows from sessions whose sql_mode changes the value."""
    why = tuple(_differences(situation))
    source = situation.source_tables if why else None
    for key in sorted(situation.plan.applied_tables, key=str) if why else ():
        # the window may make it
        table = situation.tables.table(key) or (None if source is None else source.table(key))
        for mode, found, todo, seqno in why:
            computed = _made_with(situation, key) if table is None else _computed(table, mode)
            if computed is not None:
                todo = (
                    f"{todo}, or leave the table out (docs/filters.md), or drop the {computed.split()[0]} on both sides"
                )
                yield Finding(Severity.FATAL, f"{key}: {computed}", "rows of usual modes", found, todo, seqno)
                break


def _differences(situation: Situation) -> Iterator[tuple[str, str, str, int]]:
    """Modes that sessions of the source have and the target has not, or the other way round: each with where it is,
    what to do, and the first seqno. A mode that both have is taken for one that all sessions have."""
    plan, target = situation.plan, situation.target
    logged = {each.detail: seqno for each, seqno in plan.requirements.items() if each.feature == ROW_MODE}
    own = set(target.value("sql_mode").split(",")) if target.flavor is Flavor.MYSQL else set[str]()
    for mode, seqno in sorted(logged.items(), key=lambda each: each[1]):
        if mode not in own:
            found = f"sql_mode {mode} in a transaction of seqno {seqno}"
            yield mode, found, f"let the source's sessions write the table without {mode}", seqno
    for mode in sorted((own & set(EVALUATED.values())) - logged.keys()) if plan.flavor is Flavor.MYSQL else ():
        todo = f"SET GLOBAL sql_mode without {mode} on the target"
        yield mode, f"sql_mode {mode} on the target alone", todo, plan.first_seqno


def _made_with(situation: Situation, key: TableKey) -> str | None:
    """For a table that is on neither server: made by the window, and dropped or renamed since."""
    texts = (each for each in situation.asked.texts if key in each.facts.tables)
    return "column that the window generates" if any(_GENERATES.search(each.sql) for each in texts) else None


def _computed(table: Table, mode: str) -> str | None:
    """The first stored column, or key over a virtual column or an expression, that the mode may change."""
    sees, columns = _SEES[mode], {column.name: column for column in table.columns}
    for column in table.columns:
        if column.generated is Generated.STORED and sees(column, column.expression or "", _named(table, column)):
            return f"column {column.name}, which is generated"
    for key in table.keys:
        for part in key.columns:
            over = columns.get(part.name or "")
            expression = part.expression if over is None else over.expression
            is_computed = over is None or over.generated is Generated.VIRTUAL
            if is_computed and expression and sees(over, expression, _named(table, over, expression)):
                return f"key {key.name} over a generated column"
    return None


def _named(table: Table, column: Column | None, expression: str | None = None) -> tuple[Column, ...]:
    """The columns whose names are in an expression."""
    text = (expression if column is None else column.expression) or ""
    return tuple(each for each in table.columns if each is not column and each.name.lower() in text.lower())


def _of_times(column: Column | None, expression: str, named: tuple[Column, ...]) -> bool:
    types = {each.data_type for each in (*named, *(() if column is None else (column,)))}
    return bool(types & _TEMPORAL) or _OF_TIMES.search(expression) is not None


def _of_padding(_column: Column | None, _expression: str, named: tuple[Column, ...]) -> bool:
    return any(each.data_type == "char" for each in named)


def _of_subtraction(_column: Column | None, expression: str, named: tuple[Column, ...]) -> bool:
    return "-" in expression and ("unsigned" in expression.lower() or any(each.unsigned for each in named))


_SEES: Final[Mapping[str, Callable[[Column | None, str, tuple[Column, ...]], bool]]] = {
    "TIME_TRUNCATE_FRACTIONAL": _of_times,
    "ALLOW_INVALID_DATES": _of_times,
    "PAD_CHAR_TO_FULL_LENGTH": _of_padding,
    "NO_UNSIGNED_SUBTRACTION": _of_subtraction,
}
"""Whether an expression's value may depend on the mode: by its column, its text and the columns named in it."""
