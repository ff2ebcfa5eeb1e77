"""Which tables have columns or keys whose values depend on the session in which a server computes them: on its
``sql_mode``, its time zone or its ``lc_time_names``.

MySQL's replica computes stored generated columns, and keys over virtual columns and expressions, of row events in the
mode, time zone and locale that the session of the source has logged with them. So rows of these tables go to the
target with theirs (``Item.context``), and are never folded together with rows of others (``block.builder``).
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Final, NamedTuple, Protocol

from binlane.model import TableKey
from binlane.plan.block.reducible_tables import Exclusions
from binlane.schema.model import Schema, Table
from binlane.schema.session_columns import LC_TIME_NAMES, TIME_ZONE, computed
from binlane.sql.sql_modes import ALL_EVALUATED, EVALUATED

ZONE: Final = 1 << 40
"""Beside the bits of modes: the session's time zone is seen, too."""
LOCALE: Final = 1 << 41
"""Beside the bits of modes: the session's ``lc_time_names`` is seen, too."""
_LOCALE_AT: Final = 48
"""The bit at which the locale's number begins; 0 is en_US, which the log leaves out."""
_ZONE_AT: Final = 64
"""The bit at which the zone's name begins; none: the log does not have it."""
ALL_SEEN: Final = ALL_EVALUATED | ZONE | LOCALE
_MOST_LOCALES: Final = 0xFFFF


class ModeRules(Protocol):
    """The tables whose rows go to the target with the modes of their sessions."""

    @property
    def bits(self) -> int:
        """The modes that any of the tables sees; the others need not be known."""

    def sees(self, key: TableKey) -> bool:
        """Whether a value that the target computes for the table's rows may depend on these modes."""
        ...


class AllTables:
    """Nothing is known of the target's tables: the rows of all of them are computed in their own modes."""

    bits = ALL_SEEN

    def sees(self, key: TableKey) -> bool:
        """Any table may."""
        del key
        return True


class ComputedModes:
    """By the target's schema at the window's start. A table that is not in it, or that the window changes, may see any
    mode."""

    def __init__(self, schema: Schema, excluded: Exclusions) -> None:
        self._schema, self._changed = schema, excluded.reasons()
        # tables of tenants share their columns and keys
        self._made: dict[object, int] = {}
        changes = bool(excluded.tables or excluded.databases or excluded.everything)
        self.bits = ALL_SEEN if changes else reduce(or_, map(self._bits_of, schema.tables.values()), 0)

    def sees(self, key: TableKey) -> bool:
        """Whether a value that the target computes for the table's rows may depend on ``bits``."""
        table = self._schema.table(key)
        return table is None or self._changed.of(key) is not None or self._bits_of(table) != 0

    def _bits_of(self, table: Table) -> int:
        kind = id(table.columns), id(table.keys)
        if kind not in self._made:
            seen = {**EVALUATED, ZONE: TIME_ZONE, LOCALE: LC_TIME_NAMES}
            self._made[kind] = sum(bit for bit, name in seen.items() if computed(table, name) is not None)
        return self._made[kind]


class Session(NamedTuple):
    """What the log has of the session of rows."""

    mode: int
    zone: str | None = None
    """None: the log does not have it."""
    locale: int | None = None
    """The number of ``lc_time_names``; None for en_US."""

    def seen(self, bits: int) -> int:
        """What rows see of it, as one number: of its modes those of ``bits``, its time zone if these have ``ZONE``, its
        locale if they have ``LOCALE``."""
        seen = self.mode & bits & (ZONE - 1)
        if bits & ZONE:
            seen |= ZONE | int.from_bytes((self.zone or "").encode(), "big") << _ZONE_AT
        return seen | (self.locale or 0) << _LOCALE_AT if bits & LOCALE else seen

    @classmethod
    def of(cls, seen: int) -> Session:
        """What a number of ``seen`` was made of, as far as it is seen."""
        name = seen >> _ZONE_AT
        zone = name.to_bytes((name.bit_length() + 7) // 8, "big").decode() if name else None
        return cls(seen & (ZONE - 1), zone, seen >> _LOCALE_AT & _MOST_LOCALES or None)
