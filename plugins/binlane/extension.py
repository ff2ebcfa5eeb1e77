"""Choices that a user can extend: a word of a literal table, or a class of their own as ``package.module:Class``.

The class (for ``--engine`` a function) implements the Protocol beside the table. Its module must be importable wherever
the choice is used: in tasks, in the plan job, and for ``lanes.consistency`` also on Spark's executors.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from binlane.errors import ConfigError

T = TypeVar("T")
_CLASS_PATH: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def is_class_path(word: object) -> bool:
    """Whether a choice has the form ``package.module:Class``."""
    return isinstance(word, str) and _CLASS_PATH.fullmatch(word) is not None


def chosen(table: Mapping[str, T], word: str, key: str) -> T:
    """The entry of ``table`` for ``word``, or the class that ``word`` names.

    ``key``: the key of the channel file or the option, for errors. Raises ConfigError for a word that is not in the
    table, and for a class that cannot be imported.
    """
    if word in table:
        return table[word]
    if not is_class_path(word):
        raise ConfigError(f"{key}: expected one of {', '.join(table)}, or package.module:Class; got {word!r}")
    module, _, name = word.partition(":")
    try:
        found: Any = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as exc:
        raise ConfigError(
            f"{key}: {word!r} cannot be imported here ({exc}); put its module on the Python path of this process, or "
            f"choose one of {', '.join(table)}"
        ) from exc
    return found  # type: ignore[no-any-return]  # must implement the Protocol beside the table
