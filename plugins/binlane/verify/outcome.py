"""What a verification is asked, and what it answers."""

from __future__ import annotations

from dataclasses import field

from binlane.lazy_dataclass import dataclass
from binlane.schema.model import Schema
from binlane.state.records.coverage import CoverageRow
from binlane.state.records.verifications import Counts, Suspect
from binlane.verify.definitions.comparison import DefinitionDifference
from binlane.verify.scope import Scope


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a verification."""

    full: bool = False
    chunk_rows: int = 5_000
    rows_per_second: int | None = None
    """Limit of rows read from the target; None: no limit."""
    seconds: float | None = None
    """End a full verification after about so long; the next one continues it. None: go on to its end."""
    threads_running: int | None = None
    """Pause while a server has more threads running; None: never."""
    scope: Scope = field(default_factory=Scope)
    step_seconds: float = 20.0
    """Rows of a full verification that are compared between two looks at the source's log."""
    accounts: bool = False
    """With ``full``: compare accounts, too."""
    anew: bool = False
    """With ``full``: begin with the first table, also if a verification of these tables is unfinished."""
    is_of_copy: bool = False
    """The source's rows are those of a copy that stands at a watermark of its own, as in a drill."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a verification, or of a part of a full one."""

    channel: str
    kind: str
    state: str
    """``running``: a part of a full verification has ended, and the next one continues."""
    through_seqno: int
    counts: Counts
    suspects: tuple[Suspect, ...]
    target: Schema
    """The target's definitions, which say what the suspects' values are."""
    is_complete: bool
    """Whether the accounts saw everything that was to be compared, whatever was found in the rest."""
    windows: int = 0
    """Windows whose rows were compared; of kind window only."""
    covered: CoverageRow = field(default_factory=CoverageRow)
    """What all verifications of the channel have covered, this one included."""
    definitions: int = 0
    """Tables, views, routines, triggers, events and databases whose definitions were compared; of kind full only."""
    unseen: tuple[str, ...] = ()
    """Definitions that were not compared, with the reason."""
    differences: tuple[DefinitionDifference, ...] = ()
    """The parts of definitions that have drifted, with the statements that mend them."""
    tables_left: int = 0
    rows_left: int = 0
    """Approximate rows of the tables that are left."""
    rate: float = 0.0
    """Rows a second of this part, pauses included."""
    scope: tuple[str, ...] = ()
    """The tables that were asked for (``Scope.words``); empty: all."""
    rows_before: int = 0
    """Rows that earlier parts had compared: of later changes of the target there, this part knows nothing."""
    continued_since: str = ""
    """When the first of these parts began (UTC)."""

    def of_state(self, state: str) -> tuple[Suspect, ...]:
        """The suspects of one state: drift, or pending."""
        return tuple(one for one in self.suspects if one.state == state)
