"""Reads a window's plan: only if its content has the digest that it names, and once for all steps of a command."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Final

from binlane.errors import PlanError
from binlane.garbage import uncollected
from binlane.plan.window_plan import WindowPlan, without_digest
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.folder_formats import check_formats

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


def _is_of(data: bytes, plan: WindowPlan) -> bool:
    """Whether a plan.json has the content of this plan, by its digest."""
    return hashlib.sha256(without_digest(data, plan.digest)).hexdigest() == plan.digest
