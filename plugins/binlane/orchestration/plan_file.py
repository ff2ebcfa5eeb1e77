"""Reads a window's plan: only if its content has the digest that it names, and once for all steps of a command.

A plan says whose it is: of which channel and window, and where that one ends. A step asks the target by these names, so
it takes no plan but its own window's (``read_own_plan``): who makes plans, as Spark does, may have those of other
channels of the same target.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from binlane.errors import PlanError
from binlane.garbage import uncollected
from binlane.plan.window_plan import WindowPlan, without_digest
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.folder_formats import check_formats

if TYPE_CHECKING:
    from binlane.plan.manifest import Manifest
    from binlane.state.windows import WindowBounds

_SHOWN: Final = 200
"""Characters of a plan's own words in an error."""
_NEWEST_PLAN: Final[dict[str, WindowPlan]] = {}
"""No more than one: of a folder."""


@uncollected()
def read_plan(place: WorkFolder | str, digest: str | None = None) -> WindowPlan:
    """The plan in a plan's folder, or in the folder of a URI. ``digest``: the one that the target has of it, if it is
    known; no other plan is parsed, which takes many times the memory of its file. Raises PlanError if this binlane does
    not read it, or its content does not match its digest."""
    folder = WorkFolder(place) if isinstance(place, str) else place
    plan_uri = folder.uri
    check_formats(folder)
    data = folder.read(files.PLAN)
    if digest is not None and (found := hashlib.sha256(without_digest(data, digest)).hexdigest()) != digest:
        raise PlanError(
            f"{plan_uri}/{files.PLAN}: expected the plan {digest}, which is stored on the target, found content of "
            f"SHA-256 {found}: the file was changed or is damaged; find out who can write to the work folder"
        )
    kept = _NEWEST_PLAN.get(plan_uri)
    # a plan of these bytes has been read before: by an earlier step of a command
    plan = kept if kept is not None and _is_of(data, kept) else WindowPlan.from_json(data, f"{plan_uri}/{files.PLAN}")
    # of the file as it is: writing the plan of a fleet again would take longer than all else that a lane does first
    if plan is kept or _is_of(data, plan):
        _NEWEST_PLAN.clear()
        _NEWEST_PLAN[plan_uri] = plan
        return plan
    found = hashlib.sha256(dataclasses.replace(plan, digest="").to_json()).hexdigest()
    if found != plan.digest:
        raise PlanError(
            f"{plan_uri}/{files.PLAN}: expected content of SHA-256 {plan.digest}, found {found}: the file was "
            "changed or is damaged; remove the plan's folder and run the plan job again: it writes the same "
            "files"
        )
    return plan


def read_own_plan(plans: WorkFolder, channel: str, of_window: Mapping[str, object]) -> WindowPlan:
    """The plan in a plan's folder of a channel's window. ``of_window``: what else it has to say about the window, by
    the names of its fields (``said_by_manifest``, ``said_by_target``). Raises PlanError as ``read_plan``, and for the
    plan of another channel or window, or of another end."""
    plan = read_plan(plans)
    for name, expected in {"channel": channel, "window_id": plans.window.name, **of_window}.items():
        if (found := getattr(plan, name)) != expected:
            raise PlanError(
                f"{plans.uri}/{files.PLAN}: expected a plan whose {name} is {str(expected)[:_SHOWN]!r}, as of its "
                f"window, found {str(found)[:_SHOWN]!r}: it is the plan of another window, and whoever makes plans or "
                f"can write to the work folder has put it there. Find out who that is, remove {plans.window.uri}, and "
                "run again: the same part of the log is read"
            )
    return plan


def said_by_manifest(manifest: Manifest) -> Mapping[str, object]:
    """What the plan of a window says, too."""
    first = manifest.segments[0].flavor if manifest.segments else None
    return {
        "first_seqno": manifest.first_seqno,
        "last_seqno": manifest.last_seqno,
        "source": manifest.identity,
        "end": manifest.end,
        "end_gtid_set": manifest.gtid_set,
        "end_time": manifest.end_time,
        **({} if first is None else {"flavor": first}),
    }


def said_by_target(bounds: WindowBounds) -> Mapping[str, object]:
    """The same by a window's row on the target."""
    return {"first_seqno": bounds.first_seqno, "last_seqno": bounds.last_seqno, "end": bounds.end}


def _is_of(data: bytes, plan: WindowPlan) -> bool:
    """Whether a plan.json has the content of this plan, by its digest."""
    return hashlib.sha256(without_digest(data, plan.digest)).hexdigest() == plan.digest
