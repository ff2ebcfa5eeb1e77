"""The ALTER TABLE that gives a target's table the columns, the primary key, the engine and the foreign keys of the
source's, for a finding that names the difference.

All columns are changed by one statement: those of one server alone, those with another definition, and those at another
place. A column that has only another name keeps its values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from binlane.verify.definitions.show_create import parts_of_both, table_mend

_COLUMN: Final = "column "
_WHOLE: Final = ("primary key", "option ENGINE", "option DEFAULT CHARSET", "option COLLATE")


def table_alteration(table: str, source: str, target: str) -> tuple[str, ...]:
    """``table``: its quoted name on the target. ``source`` and ``target``: SHOW CREATE TABLE of both servers, which are
    of one family."""
    ours, theirs = parts_of_both(source, target)
    foreign = [part for part in dict.fromkeys((*theirs, *ours)) if part.startswith("foreign key ")]
    changed = [part for part in (*foreign, *_WHOLE) if ours.get(part) != theirs.get(part)]
    mends = {part: table_mend(table, part, ours, theirs).statements for part in changed}
    dropped = [each for part in foreign for each in mends.get(part, ()) if part in theirs and " DROP " in each]
    added = [each for part in foreign for each in mends.get(part, ()) if each not in dropped]
    clauses = list(_columns(ours, theirs))
    columns = [f"ALTER TABLE {table} {', '.join(clauses)}"] if clauses else []
    others = [each for part in _WHOLE for each in mends.get(part, ())]
    return tuple(dict.fromkeys((*dropped, *columns, *others, *added)))


def _columns(ours: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[str]:
    """The clauses that give the target's columns the source's names, definitions and order."""
    wanted, present = _names(ours), _names(theirs)
    renamed = {
        after: before
        for after, before in zip(wanted, present, strict=False)
        if after not in present and before not in wanted
        and _definition(ours, after) == _definition(theirs, before)
    }  # fmt: skip
    yield from (f"DROP COLUMN {name}" for name in present if name not in wanted and name not in renamed.values())
    there = [name for name in present if name in wanted or name in renamed.values()]
    for at, name in enumerate(wanted):
        line, place = ours[f"{_COLUMN}{name}"], f"AFTER {wanted[at - 1]}" if at else "FIRST"
        before = renamed.get(name, name)
        if before not in there:
            yield f"ADD COLUMN {line} {place}"
            there.insert(at, name)
            continue
        if before != name:
            yield f"CHANGE COLUMN {before} {line} {place}"
        elif there.index(name) != at or line != theirs[f"{_COLUMN}{name}"]:
            yield f"MODIFY COLUMN {line} {place}"
        there.remove(before)
        there.insert(at, name)


def _names(parts: Mapping[str, str]) -> Sequence[str]:
    """The quoted names of the columns, in their order."""
    return [part.removeprefix(_COLUMN) for part in parts if part.startswith(f"{_COLUMN}`")]


def _definition(parts: Mapping[str, str], name: str) -> str:
    return parts[f"{_COLUMN}{name}"].removeprefix(name)
