"""How a key of a channel file is declared: once, at its field, by ``key``.

Reading, errors, the run's form and docs/configuration.md all come from the declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import Any, Final

from binlane.choices import Word
from binlane.config.kinds import Kind
from binlane.lazy_dataclass import dataclass

REQUIRED: Final = object()
"""The default of a key that must be in the file."""
_KEY: Final = "key"


@dataclass(frozen=True, slots=True)
class PerChannel:
    """A default computed from the channel's name."""

    of: Callable[[str], object]
    shown: str
    """The default as markdown, for the docs."""


@dataclass(frozen=True, slots=True)
class Only:
    """A condition on a key: it is allowed only with some values of another key of its section."""

    key: str
    values: tuple[Word, ...]
    without: bool = False
    """Allowed with every value except these."""

    def holds(self, values: Mapping[str, object]) -> bool:
        """Whether the section's values fulfil the condition."""
        return (values[self.key] in self.values) is not self.without

    @property
    def condition(self) -> str:
        """The condition as text, for errors."""
        return f"only with{'out' if self.without else ''} {self.key} = {self.words}"

    @property
    def words(self) -> str:
        """The values, for errors and the docs."""
        return " or ".join(f'"{value}"' for value in self.values)


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its allowed values, default and meaning."""

    kind: Kind
    default: object
    """A value of the kind, ``PerChannel`` or ``REQUIRED``. None: the channel works without it."""
    help: str
    """Markdown, for docs/configuration.md."""
    only: Only | None = None
    form: str | None = None
    """The field of a run's form that overrides the key for that run; None: not in the form."""
    variable: str | None = None
    """The environment variable that is read if the file does not have the key."""


def key(
    kind: Kind,
    default: object,
    help: str,  # noqa: A002 - its name in argparse, click and typer
    *,
    only: Only | None = None,
    form: str | None = None,
    variable: str | None = None,
) -> Any:
    """A dataclass field that is a key of the file. ``config.load`` fills in the default; the dataclass has none."""
    return field(metadata={_KEY: Key(kind, default, help, only, form, variable)})


def keys_of(table: type) -> Mapping[str, Key]:
    """The keys of one table of the file, in the order of the docs. ``table``: a dataclass of ``config.channel``."""
    return {each.name: each.metadata[_KEY] for each in fields(table) if _KEY in each.metadata}
