"""What a lane has to know of a routine or view that the precheck has looked at, to see that it is still the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.schema.programs import DEFINER, MODE, SECURITY, Program


@dataclass(frozen=True, slots=True)
class ProgramMark:
    """A routine or view of the target that the window's statements reach."""

    kind: str
    """As ``Program``'s."""
    key: TableKey
    digest: str = ""
    """Of what it does, and with whose privileges; "" for one that the window itself makes, changes or drops."""


def mark_of(program: Program) -> ProgramMark:
    """The mark of what the catalogue shows."""
    facts = (program.facts.get(name, "") for name in (DEFINER, SECURITY, MODE))
    whole = "\0".join((program.text or "", *facts))
    return ProgramMark(program.kind, program.key, hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest())


def changed(marks: Iterable[ProgramMark], now: Iterable[Program]) -> list[ProgramMark]:
    """The marks of those that are not as they were; one that is gone is none: no statement runs it."""
    # of a view whose tables are missing just now MariaDB shows no query
    shown = (each for each in now if each.text is not None or each.kind != "view")
    there = {(each.kind, each.key): each for each in map(mark_of, shown)}
    found = ((mark, there.get((mark.kind, mark.key))) for mark in marks if mark.digest)
    return [mark for mark, each in found if each is not None and each != mark]
