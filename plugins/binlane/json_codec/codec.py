"""The codec of one kind of file: manifest.json, channel.json, schema.json, context.json, plan.json and their like.

The values become bytes by ``json.dumps`` or ``schema.canonical``: equal values give equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar, cast

from binlane.errors import PlanError
from binlane.json_codec.layout import Layout, Mismatch
from binlane.json_codec.reading import Readers
from binlane.json_codec.writing import Writers

T = TypeVar("T")


class Codec:
    """Writes and reads the records of one file. ``todo``: the next step, for errors about an unreadable file."""

    def __init__(
        self,
        todo: str,
        *,
        rows: frozenset[type] = frozenset(),
        left_out: frozenset[str] = frozenset(),
        numbers: frozenset[str] = frozenset(),
        by_text: frozenset[str] = frozenset(),
        order: Callable[[Any], Any] | None = None,
    ) -> None:
        self.layout = Layout(rows, left_out, numbers, by_text, order)
        self._todo = todo
        self._writers, self._readers = Writers(self.layout), Readers(self.layout)

    def dump(self, record: object) -> Any:
        """The record as JSON values."""
        write = self._writers.of(type(record))
        return record if write is None else write(record)

    def parsed(self, data: bytes | str, where: str) -> dict[str, Any]:
        """A file's JSON object, for ``load``. Raises PlanError, naming ``where``, for anything else."""
        value = self._json(data, where)
        if type(value) is not dict:
            raise PlanError(f"{where}: $: expected an object, got {type(value).__name__}; {self._todo}")
        return value

    def _json(self, data: bytes | str, where: str) -> Any:
        try:
            return json.loads(data, parse_constant=_no_number)
        except (ValueError, RecursionError) as exc:
            raise PlanError(f"{where}: expected JSON: {exc}; {self._todo}") from exc

    def read(self, kind: type[T], data: bytes | str, where: str) -> T:
        """A whole file, or a whole column, as ``dump`` wrote it. Raises PlanError that names ``where``."""
        return self.load(kind, self._json(data, where), where)

    def load(self, kind: type[T], value: object, where: str, at: str = "$") -> T:
        """What ``dump`` wrote. Raises PlanError, naming ``where`` and the path (from ``at``), for anything else."""
        try:
            return cast(T, self._readers.of(kind)(value))
        except Mismatch as exc:
            path = "".join(reversed(exc.path))
            raise PlanError(f"{where}: {at}{path}: {exc}; {self._todo}") from None


def _no_number(word: str) -> float:
    """NaN and Infinity, which JSON does not have and the board's answers cannot have."""
    raise ValueError(f"{word} is no number")
