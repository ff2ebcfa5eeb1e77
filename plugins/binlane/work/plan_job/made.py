"""The files that a plan job has made and those that it has made them of, for the step that adopts the plan.

Until the target has the digests of a plan's files, who can write to the work folder could replace them all. So they go
from the job to the adoption beside the folder: in this process's memory, and from one task of Airflow to another in its
answer. A job of spark-submit answers by a file, with a code that only a holder of this job's token can make.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Final

from binlane.errors import NO_RECORD, PlanError
from binlane.work.files import SMALL, Digests, WorkFolder, digest_of

TOKEN: Final = "spark.binlane.token"
"""The Spark property with a job's token; Spark and binlane hide the values of such names."""
ANSWER: Final = "made.json"
_MADE: Final[dict[str, Digests]] = {}
"""By the URI of a window's folder, until its plan is adopted."""


def note_made(folder: WorkFolder, plans: WorkFolder, inputs: Digests, made: Mapping[str, bytes]) -> None:
    """The job of a window has read ``inputs`` and made the files ``made`` in its plan's folder."""
    _MADE[folder.uri] = {**inputs, **{f"{plans.below}{name}": digest_of(data) for name, data in made.items()}}


def made_here(uri: str) -> Digests | None:
    """What a job of this process, or one that has answered it, has made in a window's folder; None: there was none."""
    return _MADE.get(uri)


def forget_made(uri: str) -> None:
    """To be called when the target has the digests."""
    _MADE.pop(uri, None)


def answer(uri: str, token: str) -> None:
    """Leave what this process has made for the holder of the token."""
    made = json.dumps(_MADE[uri], sort_keys=True)
    with WorkFolder.of_window(uri).create(ANSWER) as file:
        file.write(json.dumps({"made": made, "code": _code(made, token)}).encode())


def take_answer(uri: str, token: str) -> None:
    """Note what the job with this token has made. Raises PlanError for another answer."""
    folder = WorkFolder.of_window(uri)
    try:
        found = json.loads(folder.read(ANSWER, SMALL))
        made, code = str(found["made"]), str(found["code"])
    except NO_RECORD as exc:
        raise _foreign(uri, repr(exc)) from exc
    if not hmac.compare_digest(code.encode(), _code(made, token).encode()):
        raise _foreign(uri, "another code")
    _MADE[uri] = json.loads(made)


def _code(made: str, token: str) -> str:
    return hmac.new(token.encode(), made.encode(), hashlib.sha256).hexdigest()


def _foreign(uri: str, found: str) -> PlanError:
    return PlanError(
        f"{uri}/{ANSWER}: expected the answer of this plan job, with its code, found {found}: another program has "
        "changed the file, or the job ran an older binlane than this one; see that Spark runs this binlane and who can "
        "write to the work folder, then run the plan job again: it writes the same files"
    )
