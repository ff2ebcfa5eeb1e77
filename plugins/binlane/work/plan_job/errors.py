"""Passes an error of the plan job to the process that waits for the job, with its class and its whole text.

Between the two are an engine's retries, nested tracebacks and a log of thousands of lines, whose end does not show the
cause. So a worker returns an error that a retry cannot help as a value, and the job's driver ends by printing it in one
line.
"""

from __future__ import annotations

import json
import re
from typing import Final

from binlane import errors
from binlane.errors import BinlaneError, PlanError
from binlane.json_codec.codec import Codec
from binlane.lazy_dataclass import dataclass

_MARK: Final = "binlane plan job stopped: "
_CHATTER: Final = re.compile(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d (INFO|WARN|DEBUG) ")
_MOST: Final = 4000


@dataclass(frozen=True, slots=True)
class _ErrorMessage:
    error: str
    """The error's class."""
    message: str


_TOLD: Final = Codec("run the plan job with the binlane that waits for it")


def as_line(error: BinlaneError) -> str:
    """The error as a line for the job to print."""
    return _MARK + as_text(error)


def as_text(error: BinlaneError) -> str:
    """The error's class and text, as JSON."""
    return json.dumps(_TOLD.dump(_ErrorMessage(type(error).__name__, str(error))))


def error_in(line: str) -> BinlaneError | None:
    """The error that a line of ``as_line`` tells; None for any other line."""
    if not line.startswith(_MARK):
        return None
    return error_of_text(line.removeprefix(_MARK))


def error_of_text(text: str) -> BinlaneError:
    """The error that ``as_text`` tells: of a class of ``errors``, or PlanError for another name. Raises PlanError for
    another text."""
    told = _TOLD.read(_ErrorMessage, text, "the plan job's error")
    kind = getattr(errors, told.error, None)
    known = isinstance(kind, type) and issubclass(kind, BinlaneError)
    return kind(told.message) if known and kind is not None else PlanError(told.message)


def error_of(command: str, exit_code: int, output: str) -> BinlaneError:
    """The cause of a job that ended without a plan, from its output.

    The error that the job printed, or a PlanError with the end of the output, without the engine's progress.
    """
    for line in reversed(output.splitlines()):
        if (found := error_in(line)) is not None:
            return found
    said = "\n".join(line for line in output.splitlines() if not _CHATTER.match(line))
    return PlanError(
        f"{command}: exit code {exit_code}, no plan, and no error of its own; look for the cause (memory, a kill, "
        f"a lost executor) and run it again\n{said[-_MOST:]}"
    )
