"""The target's global variables that decide what a window does: the same for each lane's connection as for the check.

A server that is started again has lost what SET GLOBAL had set, and lanes connect to it again by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from binlane.apply.session.cached_state import UNLOGGED_VARIABLES
from binlane.errors import ApplyError
from binlane.model import Flavor
from binlane.sql.session_variables import other_values, own_values

if TYPE_CHECKING:
    from binlane.apply.session.connection import LaneSession


def require_own_values(session: LaneSession, checked: Mapping[str, str]) -> None:
    """Raises ApplyError if a global variable of the target has another value than when the window was checked.

    ``checked``: as ``own_values``; empty: nothing is asked.
    """
    # a name is not taken from a file
    if not (before := own_values(checked, session.flavor)):
        return
    names = ", ".join(f"'{name}'" for name in before)
    found = session.rows(f"SHOW GLOBAL VARIABLES WHERE variable_name IN ({names})")
    now = {str(name).lower(): str(value) for name, value in found}
    for name, ours, theirs in other_values(before, now):
        lasts = "in its option file, too" if session.flavor is Flavor.MARIADB else "or SET PERSIST"
        written = "no statement of this window has run with it"
        if name not in UNLOGGED_VARIABLES:
            written = "if somebody has, statements of this window may have run with it (then verify --full behind it)"
        raise ApplyError(
            f"target: {name}: expected {ours or 'nothing'}, as when the window was checked, found "
            f"{theirs or 'nothing'}: the server was started again, or somebody has set it; {written}. SET GLOBAL it "
            f"on the target to the former value ({lasts}: the next start forgets SET GLOBAL), or start the target "
            "with the option where no SET changes it (error 1238), then run again; or, if the data is the same by "
            "both, set allow_unsafe in the channel's file"
        )
