"""Programs that both servers are known to have alike where a window begins, whose texts of then no catalogue has.

A window's log may drop or replace a program behind its use. By then the source's text is gone. An earlier window knows
it: it has compared both servers' texts, or its log has made the program on both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition, TableKey
from binlane.schema.programs import Program
from binlane.sql.programs.changes import ProgramChange
from binlane.sql.programs.reach import folded

_Name = tuple[str, TableKey]


@dataclass(frozen=True, slots=True)
class KnownProgram:
    """A routine, view or trigger."""

    kind: str
    key: TableKey
    """Database and name, without regard to case; a trigger's own name."""
    digest: str = ""
    """Of the target's; empty for one that the log has made."""
    seen: LogPosition | None = None
    """Where the source's log ended when its catalogue was read; None for one that the log has made."""


@dataclass(frozen=True, slots=True)
class KnownPrograms:
    """programs.json: what is alike behind a window."""

    source: str = ""
    """The source's identity."""
    last_seqno: int = 0
    """The window's last."""
    programs: tuple[KnownProgram, ...] = ()

    @property
    def by_name(self) -> Mapping[_Name, KnownProgram]:
        """By kind and name."""
        return {(each.kind, each.key): each for each in self.programs}


@dataclass(frozen=True, slots=True)
class ProgramSet:
    """What is known before a window."""

    programs: Mapping[_Name, KnownProgram] = field(default_factory=dict)

    def holds(self, kind: str, name: TableKey, target: Program | None, at: LogPosition | None) -> bool:
        """Whether both servers have had it alike up to ``at``, where the log first changes it."""
        known = self.programs.get((kind, folded(name)))
        if known is None or target is None or known.digest not in ("", digest_of(target)):
            return False
        return known.seen is None or (at is not None and (at == known.seen or at.is_behind(known.seen)))


NOTHING: Final = ProgramSet()


def digest_of(program: Program) -> str:
    """Of all that decides what it does."""
    shown = (program.kind, program.text, sorted(program.facts.items()), program.time)
    return hashlib.sha256(repr(shown).encode()).hexdigest()[:32]


def behind(
    before: Mapping[_Name, KnownProgram], compared: Iterable[KnownProgram], changes: Iterable[ProgramChange]
) -> tuple[KnownProgram, ...]:
    """What is alike behind a window: before it, or found by its precheck, and not touched by its log; or made by it."""
    known = {**before, **{(each.kind, each.key): each for each in compared}}
    for change in changes:
        if change.name is not None:
            known.pop((change.kind, change.name), None)
            if change.makes and change.settles:
                known[change.kind, change.name] = KnownProgram(change.kind, change.name)
        gone = {folded(each) for each in (*change.replaced, *(name for pair in change.renames for name in pair))}
        databases = {key.database for key in gone if not key.table}
        of_tables = {folded(each).database for each in change.replaced}
        for kind, key in tuple(known):
            if key.database in databases or (kind == "view" and key in gone):
                del known[kind, key]
            elif kind == "trigger" and key.database in of_tables:
                # the name of its table is not known
                del known[kind, key]
    return tuple(known[name] for name in sorted(known, key=str))


def found_alike(programs: Iterable[tuple[str, TableKey, Program]], seen: LogPosition) -> tuple[KnownProgram, ...]:
    """Of the target's programs that the source has alike."""
    return tuple(KnownProgram(kind, folded(key), digest_of(each), seen) for kind, key, each in programs)


def on_source(known: KnownPrograms, source: str, first_seqno: int) -> ProgramSet:
    """What an earlier window knows, if this window begins where it ends, in the same source's log."""
    if known.source != source or known.last_seqno != first_seqno - 1:
        return NOTHING
    return ProgramSet(known.by_name)
