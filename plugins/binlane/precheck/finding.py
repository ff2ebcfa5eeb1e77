"""What the precheck says of one thing that it has looked at."""

from __future__ import annotations

from dataclasses import dataclass

from binlane.schema.compare import Severity


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at and is not as it should be."""

    severity: Severity
    where: str
    expected: str
    found: str
    todo: str

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected}, found {self.found}; {self.todo}"
