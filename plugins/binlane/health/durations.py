"""Durations as people write and read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from binlane.errors import ConfigError

_UNITS: Final = {"d": 86_400, "h": 3_600, "min": 60, "s": 1}
_WRITTEN: Final = re.compile(r"(\d{1,9})(w|d|h|min|m|s)?")
_SIZES: Final[Mapping[str, int]] = {**_UNITS, "w": 7 * 86_400, "m": 60}


def span(seconds: float) -> str:
    """In the two largest units that are not zero: ``2 h 5 min``."""
    rest, parts = max(0, round(seconds)), list[str]()
    for unit, size in _UNITS.items():
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}")
        elif parts:
            break
        if len(parts) == 2:
            break
    return " ".join(parts) or "0 s"


def seconds_of(option: str, text: str) -> int:
    """The seconds of ``90``, ``90s``, ``15m``, ``2h``, ``7d`` or ``2w``. Raises ConfigError, which names the option."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"{option}: expected a duration such as 90s, 15m, 2h, 7d or 2w, got {text!r}")
    return int(found[1]) * _SIZES[found[2] or "s"]
