"""Applies the definitions of a repair plan: runs the plan's statements on the target, each after another comparison.

A DDL commits by itself, so each one runs on a connection of its own while the transaction of another connection holds
the channel's row. What an interrupted repair has done already is equal when the plan is applied again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection

from binlane.apply.refusals import target_errors
from binlane.apply.session.retry_verdicts import error_code
from binlane.bootstrap.definitions import make, read_definition, set_sequence
from binlane.bootstrap.sessions import Session
from binlane.errors import TargetError
from binlane.model import SchemaObject
from binlane.repair.plan import DefinitionRepair
from binlane.verify.definitions import DefinitionDifference, Definitions
from binlane.verify.object_mends import replacing

_NO_OBJECT_YET: Final = frozenset({1146, 1305, 1356})
"""Errors for a table, a function or a view that does not exist yet."""


@dataclass(frozen=True, slots=True)
class DefinitionRepairer:
    """Corrects definitions of the target."""

    definitions: Definitions
    source: Session
    target: Session
    """For the statements; its state is not used by anything else."""

    def run(
        self,
        repairs: tuple[DefinitionRepair, ...],
        fenced: Callable[[], AbstractContextManager[Connection]],
        done: Callable[[Connection, str], None],
    ) -> None:
        """Correct all of them. ``fenced`` begins a transaction that holds the channel's row; ``done`` gets it with
        ``definitions``, ``equal_rows`` or ``changed_rows``, the column of ``tables.repairs`` that counts the result.

        A view that needs another one waits for it. Raises TargetError with the object's name.
        """
        left, waited = deque(repairs), 0
        while left:
            one = left.popleft()
            with fenced() as connection:
                try:
                    result = self._repair(one)
                except TargetError as exc:
                    cause = exc.__cause__
                    if cause is None or error_code(cause) not in _NO_OBJECT_YET or waited >= len(left):
                        raise
                    waited += 1
                    left.append(one)
                else:
                    waited = 0
                    done(connection, result)

    def _repair(self, one: DefinitionRepair) -> str:
        found = self._found(one)
        if found is None:
            return "equal_rows"
        if found.mend.statements != one.statements:
            return "changed_rows"
        if not found.mend.made:
            with target_errors(str(one.schema_object)):
                for statement in one.statements:
                    self.target.execute(statement.encode())
        for obj in found.mend.made:
            self._make(obj)
        return "definitions"

    def _found(self, one: DefinitionRepair) -> DefinitionDifference | None:
        """The difference as both servers have it now; None: it is gone.

        A repair that was killed between DROP and CREATE has left no object."""
        found = self.definitions.differences({one.schema_object})
        return next((each for each in found if each.what in (*one.parts, "")), None)

    def _make(self, obj: SchemaObject) -> None:
        """Create an object with the bytes, and in the session state, of the source's."""
        definition = read_definition(self.source, obj)
        for statement in replacing(obj, definition.statement, self.source.flavor):
            make(self.target, replace(definition, statement=statement))
        if obj.kind == "sequence":
            set_sequence(self.source, self.target, definition)
