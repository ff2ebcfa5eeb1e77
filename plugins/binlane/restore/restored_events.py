"""Events of restored and of replaced databases, all of which are disabled: what people are told of those that ran.

The target keeps it (``bootstrap.scheduled_events``), whatever process has loaded, rolled or replaced.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from binlane.bootstrap.scheduled_events import ScheduledEvent, running_events, stopped_events
from binlane.bootstrap.sessions import Session
from binlane.model import plural
from binlane.safe_text import shown

_SHOWN: Final = 50
"""Events that are named."""


def event_notes(session: Session, databases: Collection[str], kept: Mapping[str, str]) -> list[str]:
    """Of complete ``databases``, and of what they have replaced: ``kept``, by their names."""
    stopped, notes = stopped_events(session), list[str]()
    if ran := [each for each in stopped if each.database in databases]:
        statements = _listed([each.altered("ENABLE") for each in ran], "; ")
        notes.append(
            f"events are disabled, as on a replica; those that were enabled where the dump and the log come from run "
            f"again behind: {statements}; one that was disabled there stays so, unless the log has altered it since"
        )
    for database, name in kept.items():
        if ran := [each for each in stopped if each.database == name]:
            notes.append(f"events that ran in the former {database}, and are disabled in {name}: {_named(ran)}")
    return notes


def events_that_stop(session: Session, databases: Collection[str]) -> str:
    """What a plan says of events that run in ``databases``, which are replaced; empty: nothing."""
    if not (running := [each for each in running_events(session) if each.database in databases]):
        return ""
    return (
        f"{_named(running)}: enabled there; from the change of places on no event runs, neither these nor the restored "
        "ones, until somebody enables them (the end of the restore names the statements)"
    )


def _named(events: Sequence[ScheduledEvent]) -> str:
    return _listed([shown(str(each)) for each in events], ", ")


def _listed(texts: Sequence[str], separator: str) -> str:
    more = f" and {plural(len(texts) - _SHOWN, 'more event')}" if len(texts) > _SHOWN else ""
    return separator.join(texts[:_SHOWN]) + more
