"""Splits SHOW CREATE TABLE into parts, so that two tables' texts are compared part by part.

Only texts of one server version are compared: another version prints the same table differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_LINES: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), what)
    for pattern, what in (
        (r"`(?P<name>(?:[^`]|``)+)` ", "column"),
        (r"PRIMARY KEY", "primary key"),
        (r"(?:UNIQUE |FULLTEXT |SPATIAL |VECTOR )?KEY `(?P<name>(?:[^`]|``)+)`", "index"),
        (r"CONSTRAINT `(?P<name>(?:[^`]|``)+)` FOREIGN KEY", "foreign key"),
        (r"CONSTRAINT `(?P<name>(?:[^`]|``)+)` CHECK", "check"),
        (r"PERIOD FOR `?(?P<name>(?:[^`]|``)+?)`? ", "period"),
    )
)
_OPTION: Final = re.compile(r"(?P<name>(?:[A-Z_]+ )*?[A-Z_]+)=(?P<value>'(?:[^'\\]|''|\\.)*'|\S+)", re.DOTALL)
_PARTITIONS: Final = re.compile(r"\s*(?:/\*M?!\d+ )?PARTITION BY .*", re.DOTALL)
_COUNT: Final = re.compile(r"\s+PARTITIONS \d+")
_NEXT_ID: Final = "AUTO_INCREMENT"
OTHER: Final = "options"


def table_parts(statement: str) -> dict[str, str]:
    """The parts of a SHOW CREATE TABLE, by name: ``column `a```, ``index `k```, ``option ENGINE``, ``partitions`` ...

    The next AUTO_INCREMENT value is left out: it is not part of the definition, and folding may leave a lower one.
    """
    body, _, tail = statement.partition("\n) ")
    parts = dict(_part(line.strip().removesuffix(",")) for line in body.split("\n")[1:])
    found = _PARTITIONS.search(tail)
    if found is not None:
        # MariaDB adds history partitions automatically, each server at its own time
        automatic = "SYSTEM_TIME" in found[0] and " AUTO" in found[0]
        parts["partitions"] = (_COUNT.sub("", found[0]) if automatic else found[0]).strip()
        tail = tail[: found.start()]
    parts |= {f"option {each['name']}": each["value"] for each in _OPTION.finditer(tail) if each["name"] != _NEXT_ID}
    rest = " ".join(_OPTION.sub("", tail).split())
    return {**parts, OTHER: rest} if rest else parts


def _part(line: str) -> tuple[str, str]:
    for pattern, what in _LINES:
        match = pattern.match(line)
        if match is not None:
            name = match.groupdict().get("name")
            return (what if name is None else f"{what} `{name}`"), line
    return f"line {line}", line


def alter_statement(table: str, part: str, source: str | None, target: str | None) -> str:
    """The ALTER TABLE that gives the target's table the source's part; empty if no simple one does.

    ``table``: its quoted name on the target.
    """
    what, _, name = part.partition(" `")
    quoted = f"`{name}"
    make = _MENDS.get(what) or (_option if part.startswith("option ") else None)
    clause = "" if make is None else make(part if make is _option else quoted, source, target)
    return f"ALTER TABLE {table} {clause}" if clause else ""


def _column(name: str, source: str | None, target: str | None) -> str:
    if source is None:
        return f"DROP COLUMN {name}"
    return f"ADD COLUMN {source}" if target is None else f"MODIFY COLUMN {source}"


def _replaced(dropped: Callable[[str], str]) -> Callable[[str, str | None, str | None], str]:
    def clause(name: str, source: str | None, target: str | None) -> str:
        steps = [] if target is None else [f"DROP {dropped(name)}"]
        steps += [] if source is None else [f"ADD {source}"]
        return ", ".join(steps)

    return clause


def _option(part: str, source: str | None, target: str | None) -> str:
    return "" if source is None else f"{part.removeprefix('option ')}={source}"


_MENDS: Final[dict[str, Callable[[str, str | None, str | None], str]]] = {
    "column": _column,
    "primary key": _replaced(lambda _: "PRIMARY KEY"),
    "index": _replaced(lambda name: f"INDEX {name}"),
    "foreign key": _replaced(lambda name: f"FOREIGN KEY {name}"),
    "check": _replaced(lambda name: f"CONSTRAINT {name}"),
}
