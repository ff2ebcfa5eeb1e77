"""Tables as arguments of a shell's command."""

from __future__ import annotations

import re
import shlex
from typing import Final

from binlane.binlog.types.literals import identifier
from binlane.model import TableKey

_PLAIN: Final = re.compile(r"[\w$]+\.[\w$]+", re.ASCII)


def shell_name(table: TableKey) -> str:
    """``database.table``, quoted where that would be ambiguous."""
    plain = str(table)
    if _PLAIN.fullmatch(plain):
        return plain
    return shlex.quote(f"{identifier(table.database)}.{identifier(table.table)}")
