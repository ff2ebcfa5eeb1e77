"""Variables that no log holds and in which the source and the target differ, where a window sees them.

A replica has its own server's values for them, and so have lanes; a session of the source may have had others than its
server's, which nobody can tell afterwards. What can be told is compared: the two servers' global values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from binlane.model import Flavor, has_explicit_defaults
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.precheck.statements.sights import Sights, sees_variables
from binlane.precheck.statements.timestamp_nulls import nulls_for_timestamps
from binlane.schema.compare import Severity
from binlane.servers.variables import global_variables, version_number
from binlane.sql.session_variables import VARIABLES, Fate, Globals, leaves_timestamps_open

_TODO: Final = (
    "no log holds it, so the target would do something else, as a replica would: SET GLOBAL it on the target (on MySQL "
    "SET PERSIST, on MariaDB in the option file, too: the next start forgets SET GLOBAL), or start it with the option "
    "where no SET changes it (error 1238), to the source's until the window is applied, or, if the data is "
    "the same by both, set allow_unsafe in the channel's file"
)
_TODO_LANES: Final = (
    "no log holds it, and lanes that apply MariaDB's log to MySQL have OFF, the default of a MariaDB that does not log "
    "it: set allow_unsafe in the channel's file, and ALTER the column on the target if it must not be as OFF makes it, "
    "or bring the statement over by hand (docs/control.md, a transaction that is refused before the first write); "
    "MariaDB from 10.5.17, 10.6.9, 10.7.5, 10.8.4 and 10.9.2 on logs it"
)
_TODO_STORAGE: Final = "no log holds it: the target makes the table as its own setting says, as a replica would"
_DEFAULTS: Final = "explicit_defaults_for_timestamp"
_SWITCH: Final = {"1": "ON", "ON": "ON", "0": "OFF", "OFF": "OFF"}


def check_session_variables(situation: Situation) -> Iterator[Finding]:
    """Variables that no log holds and that source and target do not have alike, where the window's statements or tables
    see them."""
    yield from nulls_for_timestamps(situation)
    if not sees_variables(situation) or situation.source is None:
        return
    severity = Severity.INFO if situation.channel.apply.allow_unsafe else Severity.FATAL
    target = Globals(situation.target.variables, situation.target.number)
    names = {"version", _DEFAULTS, *(each.name for each in VARIABLES if each.sight is not None)}
    values = situation.source.ask(global_variables, names)
    source = Globals(values, version_number(values["version"]))
    yield from _unlogged_defaults(situation, source, target, severity)
    sights = Sights(situation)
    for variable in VARIABLES:
        if variable.sight is None or (differing := variable.differing(source, target)) is None:
            continue
        is_stored = variable.fate is Fate.STORAGE
        if (first := sights.first(variable.sight, with_programs=not is_stored)) is not None:
            where = f"{first.where}: {variable.name} of the target"
            rank, todo = (Severity.INFO, _TODO_STORAGE) if is_stored else (severity, _TODO)
            yield Finding(
                rank, where, f"{differing[0]}, as on the source", differing[1] or "nothing", todo, first.seqno
            )


def _unlogged_defaults(situation: Situation, source: Globals, target: Globals, severity: Severity) -> Iterator[Finding]:
    """``explicit_defaults_for_timestamp``, where a statement that defines a TIMESTAMP has no value of it in the log, or
    a target that no session can give one: MariaDB before 10.5.17, 10.6.9 ... has it for the whole server, and neither
    it nor MySQL before 8.0 logs it. What lanes have: the target's own, and OFF where they apply MariaDB's log to
    MySQL (``ContextSetter.make_null_now``)."""
    theirs, ours = (_SWITCH.get(each.values.get(_DEFAULTS, "").upper(), "") for each in (source, target))
    has_off = situation.plan.flavor is Flavor.MARIADB and situation.target.flavor is Flavor.MYSQL
    ours, todo = ("OFF", _TODO_LANES) if has_off else (ours, _TODO)
    is_fixed = situation.target.flavor is Flavor.MARIADB and not has_explicit_defaults(target.number)
    for text in situation.every_text if ours else ():
        logged = text.context.explicit_defaults_for_timestamp
        if logged is not None and not is_fixed:
            continue
        expected = theirs if logged is None else _SWITCH[str(int(logged))]
        if expected not in ("", ours) and leaves_timestamps_open(text.tokens):
            where = f"{text.where}: {_DEFAULTS} of the target"
            yield Finding(severity, where, f"{expected}, as on the source", ours, todo, text.seqno)
            return
