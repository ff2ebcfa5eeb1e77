"""The codec of one kind of file: manifest.json, channel.json, schema.json, context.json, plan.json and their like.

The values become bytes by ``json.dumps`` or ``schema.canonical``: equal values give equal bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from binlane.errors import PlanError
from binlane.json_codec.layout import Layout, Mismatch
from binlane.json_codec.reading import Readers
from binlane.json_codec.writing import Writers

T = TypeVar("T")
_MOST: Final = 1 << 64
"""No number that binlane writes is as large: times, counts and places in a log."""
_LONGEST: Final = 200
"""Characters of a path that an error names."""
_LARGE: Final = re.compile(r"(?:\A|[\s:,\[])-?(?:[0-9]{19}|[0-9]+(?:\.[0-9]+)?[eE])")
"""A number that may be beyond it: digests and UUIDs have such digits, too, behind a quote."""
_LARGE_BYTES: Final = re.compile(_LARGE.pattern.encode())


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
        whole, number = (_integer, _number) if _has_large(data) else (None, None)
        try:
            return json.loads(data, parse_int=whole, parse_float=number, parse_constant=_no_number)
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
            path = path if len(path) <= _LONGEST else f"{path[:_LONGEST]} ..."
            raise PlanError(f"{where}: {at}{path}: {exc}; {self._todo}") from None


def _has_large(data: bytes | str) -> bool:
    """Whether a number may be too large; a function for each number takes three times as long."""
    return (_LARGE if isinstance(data, str) else _LARGE_BYTES).search(data) is not None  # type: ignore[arg-type]


def _integer(digits: str) -> int:
    value = int(digits)
    if abs(value) >= _MOST:
        raise ValueError(f"a whole number of {len(digits)} digits")
    return value


def _number(digits: str) -> float:
    value = float(digits)
    if abs(value) >= _MOST:
        raise ValueError(f"{digits[:40]} is too large")
    return value


def _no_number(word: str) -> float:
    """NaN and Infinity, which JSON does not have and the board's answers cannot have."""
    raise ValueError(f"{word} is no number")
