"""JSON in columns of binlane's tables: small records and lists, read and written by one codec.

Text is compared as text in some columns (a row's key), so equal values always give equal text.
"""

from __future__ import annotations

import json
from typing import Final, TypeVar

from sqlalchemy import Column

from binlane.json_codec.codec import Codec

T = TypeVar("T")

STATE: Final = Codec(
    "another program has changed it: restore binlane's tables from a backup of the target",
)


def text_of(value: object) -> str:
    """A record, a list or a mapping as its column holds it."""
    return json.dumps(STATE.dump(value))


def value_of(kind: type[T], text: str, column: Column[str]) -> T:
    """What ``text_of`` wrote. Raises PlanError, naming the column, for anything else."""
    return STATE.read(kind, text, f"binlane.{column}")


def optional_value_of(kind: type[T], text: str | None, column: Column[str]) -> T | None:
    """The same; None for NULL."""
    return None if text is None else value_of(kind, text, column)
