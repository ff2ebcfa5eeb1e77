"""An error of the filter job, from the process that had it to the one that waits for the job: of its own class, whole.

Between them stand an engine's retries, its traceback of a traceback and a log of thousands of lines, of which the end
says nothing. So a worker gives an error that trying again does not help back as a value, and the job's driver ends by
printing what stopped it in one line.
"""

from __future__ import annotations

import json
import re
from typing import Final

from binlane import errors
from binlane.errors import BinlaneError, PlanError

_MARK: Final = "binlane filter job stopped: "
_CHATTER: Final = re.compile(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d (INFO|WARN|DEBUG) ")
_MOST: Final = 4000


def as_line(error: BinlaneError) -> str:
    """For the job to print."""
    return _MARK + json.dumps({"error": type(error).__name__, "message": str(error)})


def error_of(command: str, exit_code: int, output: str) -> BinlaneError:
    """What stopped a job that has ended without a plan, by what it wrote.

    The error that the job names, or a PlanError with the end of what was written, without the engine's progress.
    """
    for line in reversed(output.splitlines()):
        if line.startswith(_MARK):
            told = json.loads(line.removeprefix(_MARK))
            kind = getattr(errors, told["error"], PlanError)
            found: BinlaneError = kind(told["message"])
            return found
    said = "\n".join(line for line in output.splitlines() if not _CHATTER.match(line))
    return PlanError(
        f"{command}: exit code {exit_code}, no plan, and no error of its own; look for what ended it (memory, a kill, "
        f"an executor that was lost) and run it again\n{said[-_MOST:]}"
    )
