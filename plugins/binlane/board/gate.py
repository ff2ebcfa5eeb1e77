"""What readers of a channel's DAG are shown, and what only those who may edit it.

Errors quote rows, statements and the accounts of servers, and nobody can tell which of their words are values. So a
reader gets no free text of the state, of a server or of an error: one function decides, for each answer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from binlane.errors import BinlaneError, naming

Value = TypeVar("Value")
Instead = TypeVar("Instead")
Method = TypeVar("Method", bound=Callable[..., Any])
HIDDEN: Final = "shown to those who may edit the DAG"


def gated(value: Value, instead: Instead, *, may_edit: bool) -> Value | Instead:
    """What may hold values of rows, statements or accounts, or what a reader is shown in its place."""
    return value if may_edit else instead


class ReaderError(BinlaneError):
    """An error whose text a reader is not shown. ``cause`` says whether the answer is to try again."""

    def __init__(self, cause: BinlaneError) -> None:
        super().__init__(f"{type(cause).__name__}: its text is {HIDDEN}")
        self.cause = cause


def as_user_may_read(method: Method) -> Method:
    """Around an answer to a user about a channel: binlane's errors have their text for those who may edit the DAG
    alone. The method's object has ``may_edit``."""

    @functools.wraps(method)
    def answer(self: Any, user: Any, name: str, *arguments: Any, **named: Any) -> Any:
        try:
            with naming(name):
                return method(self, user, name, *arguments, **named)
        except BinlaneError as exc:
            if self.may_edit(user, name):
                raise
            raise ReaderError(exc) from exc

    return cast(Method, answer)
