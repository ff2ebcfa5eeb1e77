"""Applies the definitions of a repair plan: runs the plan's statements on the target, each after another comparison.

A DDL commits by itself, so each one runs on a connection of its own while the transaction of another connection holds
the channel's row. What an interrupted repair has done already is equal when the plan is applied again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from sqlalchemy import Connection

from binlane.apply.refusals import target_errors
from binlane.bootstrap.definition_copy import make, read_definition, set_sequence
from binlane.bootstrap.sessions import Session
from binlane.errors import PlanError, TargetError, TargetUnavailableError
from binlane.lazy_dataclass import dataclass
from binlane.model import SchemaObject
from binlane.repair.plan import DefinitionRepair
from binlane.verify.definitions.comparison import DefinitionDifference, Definitions
from binlane.verify.definitions.definition_reader import ORDER
from binlane.verify.definitions.object_mends import replacing


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
        done: Callable[[Connection, DefinitionRepair, str], None],
    ) -> None:
        """Correct all of them. ``fenced`` begins a transaction that holds the channel's row; ``done`` gets it with
        ``definitions``, ``equal_rows`` or ``changed_rows``, the column of ``tables.repairs`` that counts the result.

        A view that needs another one waits for it. Raises TargetError for the first statement that the target refuses,
        with the object's name, after all others have run.
        """
        left, refused = list(repairs), list[TargetError]()
        while left:
            waiting, refused = list[DefinitionRepair](), []
            for one in left:
                with fenced() as connection:
                    try:
                        result = self._repair(one)
                    except TargetUnavailableError:
                        raise
                    except TargetError as exc:
                        refused.append(exc)
                        waiting.append(one)
                    else:
                        done(connection, one, result)
            if len(waiting) == len(left):
                break
            left = waiting
        if refused:
            raise refused[0]

    def _repair(self, one: DefinitionRepair) -> str:
        found = self._found(one)
        if found is None:
            return "equal_rows"
        # the end of a group's statements creates its last objects
        if not found.mend.is_run or one.statements[-len(found.mend.statements) :] != found.mend.statements:
            return "changed_rows"
        if not found.mend.made:
            with target_errors(str(one.schema_object)):
                for statement in found.mend.statements:
                    self.target.execute(statement.encode())
        for obj in found.mend.made:
            self._make(obj)
        return "definitions"

    def _found(self, one: DefinitionRepair) -> DefinitionDifference | None:
        """The difference as both servers have it now; None: it is gone.

        A repair that was killed between DROP and CREATE has left no object, or, of a group, objects in another order.
        """
        names = [one.schema_object._replace(name=name) for name in one.group] or [one.schema_object]
        found = {name: list[DefinitionDifference]() for name in names}
        for each in self.definitions.differences(set(names)):
            found[each.schema_object].append(each)
        for name in names:
            wanted = {"", *(one.parts if name == one.schema_object else ()), *([ORDER] if one.group else ())}
            if (left := next((each for each in found[name] if each.what in wanted), None)) is not None:
                return left
            if hidden := [what for what in wanted if not self.definitions.shows(name, what)]:
                raise PlanError(
                    f"{name}: {hidden[0] or 'definition'}: expected a definition that both accounts see, found that "
                    "one of them does not any more; grant what it lacks (`binlane doctor CHANNEL` names it), then "
                    "repair again"
                )
        return None

    def _make(self, obj: SchemaObject) -> None:
        """Create an object with the bytes, and in the session state, of the source's."""
        definition = read_definition(self.source, obj)
        for statement in replacing(obj, definition.statement, self.source.flavor):
            make(self.target, replace(definition, statement=statement))
        if obj.kind == "sequence":
            set_sequence(self.source, self.target, definition)
