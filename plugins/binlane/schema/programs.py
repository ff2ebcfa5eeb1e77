"""Routines, views and triggers as a server's catalogue has them: their texts, and what else decides what they do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey

BODY: Final = "body"
QUERY: Final = "definition"
"""The text of a view, as the server prints it."""
MODE: Final = "sql_mode"
CLIENT: Final = "character set of the client"
CONNECTION: Final = "collation of the client"
DATABASE: Final = "collation of the database"
DEFINER: Final = "definer"
SECURITY: Final = "SQL SECURITY"
PARAMETERS: Final = "parameters"
RETURNED: Final = "returned type"


@dataclass(frozen=True, slots=True)
class Program:
    """A routine, view or trigger."""

    key: TableKey
    """Database and name; of a trigger, its table."""
    kind: str
    """``function``, ``procedure``, ``package``, ``package body``, ``view`` or ``trigger``."""
    text: str | None
    """Its body or query; None if the account may not read it."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """By the names above, and others that only its kind, or its server's family, has."""
    name: str = ""
    """A trigger's own."""
    time: str = ""
    """``AFTER INSERT``, for instance, of a trigger."""
    order: int = 0
    """Among the triggers of one table and time; the same for all on servers that do not tell it."""

    printed: str = ""
    """A view's query as MySQL's catalogue has it, without the names of its columns; "" if that is ``text``."""

    @property
    def sql_mode(self) -> str:
        """By which it is read."""
        return self.facts.get(MODE, "")
