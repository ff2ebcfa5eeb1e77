"""Splits SHOW CREATE TABLE into parts, so that two tables' texts are compared part by part.

Only texts of one server version are compared: another version prints the same table differently.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from binlane.sql.parse.shown_table import hidden_part, with_quoted_names
from binlane.verify.definitions.mend import Mend, nothing, one, replaced
from binlane.verify.definitions.table_options import is_value, table_options

_LINES: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), what)
    for pattern, what in (
        (r"`(?P<name>(?:[^`]|``)+)` ", "column"),
        (r"PRIMARY KEY", "primary key"),
        (r"(?:UNIQUE |FULLTEXT |SPATIAL |VECTOR )?KEY `(?P<name>(?:[^`]|``)+)`", "index"),
        (r"CONSTRAINT `(?P<name>(?:[^`]|``)+)` FOREIGN KEY \(", "foreign key"),
        (r"CONSTRAINT `(?P<name>(?:[^`]|``)+)` CHECK", "check"),
        (r"PERIOD FOR `?(?P<name>(?:[^`]|``)+?)`? ", "period"),
    )
)
_NEXT_ID: Final = "AUTO_INCREMENT"
OTHER: Final = "options"


def parts_of_both(source: str, target: str) -> tuple[dict[str, str], dict[str, str]]:
    """``table_parts`` of both servers; where one of them hides something, each is one part, which no statement changes:
    a statement of its lines could be any."""
    if any(hidden_part(with_quoted_names(text)) is not None for text in (source, target)):
        return {OTHER: source}, {OTHER: target}
    return table_parts(source), table_parts(target)


def table_parts(statement: str) -> dict[str, str]:
    """The parts of a SHOW CREATE TABLE, by name: ``column `a```, ``index `k```, ``option ENGINE``, ``partitions`` ...

    The next AUTO_INCREMENT value is left out: it is not part of the definition, and folding may leave a lower one. So
    are the folders of a table and its partitions, which are of a server's own machine.
    """
    body, _, tail = with_quoted_names(statement).partition("\n) ")
    parts = dict(_part(line.strip().removesuffix(",")) for line in body.split("\n")[1:])
    behind = table_options(tail)
    if behind.partitions is not None:
        parts["partitions"] = behind.partitions
    parts |= {f"option {name}": value for name, value in behind.options.items() if name != _NEXT_ID}
    return {**parts, OTHER: behind.rest} if behind.rest else parts


def _part(line: str) -> tuple[str, str]:
    for pattern, what in _LINES:
        match = pattern.match(line)
        if match is not None:
            name = match.groupdict().get("name")
            return (what if name is None else f"{what} `{name}`"), line
    return f"line {line}", line


def without_collation(column: str) -> str:
    """A column's line without character set and collation, which it has only where they are not the table's."""
    return _COLLATION.sub(r"\1", column, count=1)


def table_mend(
    table: str, part: str, source: Mapping[str, str], target: Mapping[str, str], *, same_collation: bool = False
) -> Mend:
    """The ALTER TABLE that gives the target's table the source's part.

    ``table``: its quoted name on the target. ``source`` and ``target``: all parts, as ``table_parts`` gives them.
    ``same_collation``: the part is a column with the same character set and collation on both servers.
    """
    what, _, name = part.partition(" `")
    ours, theirs = source.get(part), target.get(part)
    if what == "column":
        clause, left = _column(f"`{name}", source, ours, theirs, same_collation)
    elif what in _REPLACED:
        return _replaced(table, what, f"`{name}", ours, theirs)
    elif part.startswith("option "):
        clause, left = _option(part.removeprefix("option "), source, ours)
    elif part == "partitions":
        clause, left = ours or "REMOVE PARTITIONING", "it copies the table, and the new partitions may refuse rows"
    else:
        return nothing("no single statement changes it: compare SHOW CREATE TABLE of both servers")
    return one(f"ALTER TABLE {table} {clause}", left) if clause else nothing(left)


def sequence_mend(sequence: str, statement: str) -> Mend:
    """The ALTER SEQUENCE with the options of a SHOW CREATE SEQUENCE; the next value stays."""
    found = _SEQUENCE.fullmatch(statement)
    return nothing("see SHOW CREATE SEQUENCE") if found is None else one(f"ALTER SEQUENCE {sequence} {found[1]}")


def _column(
    name: str, parts: Mapping[str, str], source: str | None, target: str | None, same_collation: bool
) -> tuple[str, str]:
    if source is None:
        return f"DROP COLUMN {name}", "it removes the column's values"
    if target is None:
        columns = [each for each in parts if each.startswith("column `")]
        at = columns.index(f"column {name}")
        place = f"AFTER {columns[at - 1].removeprefix('column ')}" if at else "FIRST"
        return f"ADD COLUMN {source} {place}", "the new column has no values: copy the table again afterwards"
    lines = [without_collation(text) if same_collation else text for text in (source, target)]
    ours, theirs = map(_DEFAULT.fullmatch, lines)
    if ours and theirs and (ours["before"], ours["behind"]) == (theirs["before"], theirs["behind"]):
        return f"ALTER COLUMN {name} " + (f"SET DEFAULT {ours['value']}" if ours["value"] else "DROP DEFAULT"), ""
    return f"MODIFY COLUMN {source}", "it may convert or refuse values"


def _replaced(table: str, what: str, name: str, source: str | None, target: str | None) -> Mend:
    kind, left = _REPLACED[what]
    dropped = kind if what == "primary key" else f"{kind} {name}"
    # no server drops and adds a foreign key of one name in one statement (1826, 1005); MySQL takes an index of one name
    # for the same if only its parser differs, and does nothing
    apart = what == "foreign key" or any(" WITH PARSER " in (text or "") for text in (source, target))
    plain = what == "index" and all(text is None or text.startswith("KEY ") for text in (source, target))
    why = "only the target has it" if source is None else "" if plain else left
    return Mend(replaced(f"ALTER TABLE {table}", target and dropped, source, apart=apart), why)


def _option(option: str, parts: Mapping[str, str], source: str | None) -> tuple[str, str]:
    if any(name.startswith("option ") and not is_value(value) for name, value in parts.items()):
        return "", "the value of an option is more than a value: compare SHOW CREATE TABLE of both servers"
    if option in _COLLATIONS:
        both = (f"{each}={parts[f'option {each}']}" for each in _COLLATIONS if f"option {each}" in parts)
        return " ".join(both), ""
    value = _WITHOUT.get(option) if source is None else source
    if value is None:
        return "", f"no value of {option} means that it is not given"
    form = _METADATA.get(option)
    if form is not None and form.fullmatch(value) is None:
        return "", f"{value} is no value of {option}: compare SHOW CREATE TABLE of both servers"
    left = "it rebuilds the table" if form is None else ""
    return f"{option}={value}", left


_COLLATIONS: Final = ("DEFAULT CHARSET", "COLLATE")
_COLLATION: Final = re.compile(
    r"(`(?:[^`]|``)+` \w+(?:\((?:[^')]|'(?:[^'\\]|\\.)*')*\))?)(?: CHARACTER SET \w+)?(?: COLLATE \w+)?", re.DOTALL
)
_SEQUENCE: Final = re.compile(r"CREATE SEQUENCE `(?:[^`]|``)+` (.*?)(?: ENGINE=\w+.*)?", re.DOTALL)
_DEFAULT: Final = re.compile(
    r"(?P<before>.*?)(?: DEFAULT (?P<value>NULL|[-+]?[0-9.]+|'(?:[^'\\]|''|\\.)*'))?"
    r"(?P<behind>(?: COMMENT '(?:[^'\\]|''|\\.)*')?)",
    re.DOTALL,
)
"""A column's line with a literal default, or with none."""
_STATISTICS: Final = ("STATS_PERSISTENT", "STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES")
_METADATA: Final[Mapping[str, re.Pattern[str]]] = {
    "COMMENT": re.compile(r"'.*'", re.DOTALL),
    **dict.fromkeys(_STATISTICS, re.compile(r"\d+|DEFAULT")),
}
"""The forms of the values of options that change no row: MySQL prints SECONDARY_ENGINE as it was given, and that may be
another option."""
_WITHOUT: Final[Mapping[str, str]] = {
    "COMMENT": "''",
    **dict.fromkeys(
        ("STATS_PERSISTENT", "STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES", "ROW_FORMAT", "PACK_KEYS"), "DEFAULT"
    ),
    **dict.fromkeys(("KEY_BLOCK_SIZE", "MIN_ROWS", "MAX_ROWS", "AVG_ROW_LENGTH", "CHECKSUM", "DELAY_KEY_WRITE"), "0"),
}
"""The value that stands for an option that is not given."""
_REPLACED: Final[Mapping[str, tuple[str, str]]] = {
    "primary key": ("PRIMARY KEY", "it copies the table, and may refuse rows"),
    "index": ("INDEX", "it may refuse rows with duplicate values, or replace an index that does"),
    "foreign key": ("FOREIGN KEY", "it may refuse rows, and locks both tables"),
    "check": ("CONSTRAINT", "it may refuse rows"),
}
"""How ALTER TABLE drops it, and why a repair does not change it. Of indexes only plain ones are changed by a repair."""
