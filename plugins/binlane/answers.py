"""An answer of a server that binlane cannot use, as an error that names the server, the statement and what was found.

Wherever rows of a server are read, their values go into ``int()``, into a tuple of names, into a table of words. What
no MySQL or MariaDB server answers, such as NULL for a version, a word for a number, no row or a row more, ends there as
one of Python's errors. The doors through which a server's own errors go (``source.server.translated``,
``apply.refusals.target_errors``) and the command line make one error of it.
"""

from __future__ import annotations

import threading
from typing import Final

from binlane.errors import NO_RECORD, BinlaneError, UnusableAnswerError
from binlane.lazy_dataclass import dataclass
from binlane.safe_text import shown

_SHOWN: Final = 200
"""Characters of what was found."""
_PLACES: Final = 12
"""Of binlane's lines through which the error came: a defect of binlane may look like an answer, and whoever gets the
message has to find it without a traceback."""
_KEPT: Final = 500
"""Characters of a statement, of which fewer are shown."""
_COMPUTE: Final = frozenset({"binlog", "kernels", "plan", "work"})
"""Packages that get nothing from a server: an error that comes from them is no answer's."""
_OWN: Final = "binlane."


@dataclass(frozen=True, slots=True)
class Answer:
    """The last one of a thread."""

    server: str
    """Account, host and port."""
    statement: str


class _Last(threading.local):
    answer: Answer | None = None


_last: Final = _Last()


def answered(server: str, sql: str | bytes) -> None:
    """Note that a server has answered a statement without an error."""
    text = sql[:_KEPT]
    _last.answer = Answer(server, text if isinstance(text, str) else bytes(text).decode("utf-8", "replace"))


def unusable(exc: BaseException, server: str | None = None) -> BinlaneError | None:
    """The error of an answer that has let ``exc`` be raised; None if it has another cause. ``server``: its name, where
    it is known."""
    answer = _last.answer
    if answer is None or (not isinstance(exc, (*NO_RECORD, ArithmeticError, AssertionError)) and not _is_of_rows(exc)):
        return None
    places = _places(exc)
    if not places or places[-1].split(".")[1] in _COMPUTE:
        return None
    found = f"{type(exc).__name__}: {exc}"
    return UnusableAnswerError(
        f"{answer.server if server is None else server}: expected an answer of a MySQL or MariaDB server, found one "
        f"that cannot be used ({found[:_SHOWN]}, in {' from '.join(places[: -_PLACES - 1 : -1])}); the last statement "
        "answered was "
        f"{shown(answer.statement)!r}. Run that statement by a client of the server: if its answer is "
        "strange, look at host and port of the connection and at what stands between, such as a proxy; if it is not, "
        "this is a defect of binlane: report this message"
    )


def _is_of_rows(exc: BaseException) -> bool:
    """Whether it is SQLAlchemy's error of no row, of too many, or of a column that is not there; by name, since who has
    not imported SQLAlchemy has read nothing by it."""
    names = {kind.__name__ for kind in type(exc).__mro__ if kind.__module__ == "sqlalchemy.exc"}
    return "InvalidRequestError" in names and "PendingRollbackError" not in names


def _places(exc: BaseException) -> list[str]:
    """binlane's modules through which the error came, with the lines, the innermost one last."""
    places, trace = list[str](), exc.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        if module.startswith(_OWN) and module != __name__:
            places.append(f"{module}:{trace.tb_lineno}")
        trace = trace.tb_next
    return places
