"""The statements that would give the target's object the source's definition, and whether a repair may run them."""

from __future__ import annotations

from binlane.lazy_dataclass import dataclass
from binlane.model import SchemaObject


@dataclass(frozen=True, slots=True)
class Mend:
    """Statements for the target, in their order."""

    statements: tuple[str, ...] = ()
    """Empty: no simple statement corrects the target, see ``left``."""
    left: str = ""
    """Why a repair leaves the statements to an operator; empty: it runs them."""
    made: tuple[SchemaObject, ...] = ()
    """The objects that the statements create anew from the source's text, with the target's names: the statements show
    that text, and a repair sends the source's bytes."""

    @property
    def is_run(self) -> bool:
        """Whether a repair runs the statements: they remove no row, no column, and nothing that only the target has."""
        return bool(self.statements) and not self.left

    def __str__(self) -> str:
        return "; ".join(self.statements) or self.left


def one(statement: str, left: str = "") -> Mend:
    """A single statement."""
    return Mend((statement,), left)


def replaced(alter: str, dropped: str | None, added: str | None, *, apart: bool) -> tuple[str, ...]:
    """The statements that drop a part of a table and add another. ``apart``: one statement with both would not do."""
    clauses = [*([] if dropped is None else [f"DROP {dropped}"]), *([] if added is None else [f"ADD {added}"])]
    return tuple(f"{alter} {clause}" for clause in (clauses if apart else [", ".join(clauses)]))


def nothing(why: str) -> Mend:
    """No statement."""
    return Mend((), why)
