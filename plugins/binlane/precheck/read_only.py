"""Databases with MySQL's option READ ONLY (ALTER SCHEMA .. READ ONLY = 1, since 8.0.22).

The option binds every session but the server's own replica threads, so a target that is kept safe by it, and a source
that writes again after lifting it with ``sql_log_bin = 0``, stop a lane (error 3989) where a replica goes on.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from binlane.precheck.finding import Finding
from binlane.precheck.situation import Situation
from binlane.schema.compare import Severity
from binlane.sql.logged_statement import LoggedText

_OPTION: Final = re.compile(r"\bREAD\s+ONLY\s*=?\s*(0|1|DEFAULT)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Spell:
    """The seqnos behind ``first``, and before ``last`` unless it is None, at which a database is READ ONLY."""

    first: int
    last: int | None

    def has(self, seqno: int) -> bool:
        return seqno > self.first and (self.last is None or seqno < self.last)


def check_read_only_databases(situation: Situation) -> Iterator[Finding]:
    """Databases that are READ ONLY where the window changes them."""
    if situation.begun:
        return
    for name, spells in sorted(_spells(situation).items()):
        changed = [(seqno, spell) for spell in spells for seqno in _changes(situation, name, spell)]
        if not changed:
            continue
        seqno, spell = min(changed, key=lambda each: each[0])
        todo = f"SET sql_log_bin = 0 and ALTER SCHEMA `{name}` READ ONLY = 0 on the target"
        if spell.first:
            todo = (
                f"the source has lifted it again without its log: run a window that ends with seqno {spell.first} "
                f"(--until), then {todo}, then go on"
            )
        yield Finding(
            Severity.FATAL,
            f"{name}: database, at seqno {seqno}",
            "one that sessions may change",
            f"READ ONLY since seqno {spell.first}" if spell.first else "READ ONLY",
            todo,
            seqno,
        )


def _spells(situation: Situation) -> dict[str, list[_Spell]]:
    """By name in lower case, on the target and as the window's statements change it."""
    switches: dict[str, list[tuple[int, bool]]] = defaultdict(list)
    for name in situation.target.read_only_databases:
        switches[name.lower()].append((0, True))
    for statement in situation.asked.texts:
        is_on = _option(statement)
        if is_on is not None:
            for name in statement.facts.databases:
                switches[name.lower()].append((statement.seqno, is_on))
    found: dict[str, list[_Spell]] = defaultdict(list)
    for name, given in switches.items():
        since: int | None = None
        for seqno, is_on in given:
            if since is not None and not is_on:
                found[name].append(_Spell(since, seqno))
            since = (seqno if since is None else since) if is_on else None
        if since is not None:
            found[name].append(_Spell(since, None))
    return found


def _option(statement: LoggedText) -> bool | None:
    """What ALTER DATABASE sets the option to; None for a statement that leaves it. The servers allow 0, 1 and
    DEFAULT."""
    words = statement.words
    if words[:1] != ("ALTER",) or words[1:2] not in (("DATABASE",), ("SCHEMA",)):
        return None
    found = _OPTION.findall(statement.sql)
    return found[-1] == "1" if found else None


def _changes(situation: Situation, name: str, spell: _Spell) -> Iterator[int]:
    """Seqnos in the spell at which the window changes the database."""
    plan = situation.plan
    for key in plan.applied_tables:
        if key.database.lower() == name:
            seqno = situation.first_rows(key, spell.first)
            if seqno is not None and spell.has(seqno):
                yield seqno
    for statement in situation.asked.texts:
        named = {each.lower() for each in statement.facts.databases}
        if name in named and spell.has(statement.seqno) and _option(statement) is None:
            yield statement.seqno
    # statements that commit with others have no seqno here
    if spell == _Spell(0, None) and any(key.database.lower() == name for key in plan.written):
        yield plan.first_seqno
