"""Generated schemas with unique keys of every kind, and changes that fight for their values: folded equals ordered.

Each example runs on a real source and twice on a real target of the same family: in the source's order, and folded.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.integration.reduce.test_reduced_equals_replayed import applied
from tests.integration.reduce.test_reduced_equals_replayed import servers as servers  # a fixture

EXAMPLES: Final = int(os.environ.get("BINLANE_EXAMPLES", "8"))
PADDED: Final = ("utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_bin", "latin1_german2_ci", "latin1_bin")
"""Trailing spaces do not count; with and without accents and case, 'ä' equal to 'ae' in one of them."""
UNPADDED: Final = {
    Flavor.MARIADB: ("utf8mb4_general_nopad_ci", "utf8mb4_unicode_nopad_ci", "utf8mb4_nopad_bin"),
    Flavor.MYSQL: ("utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_0900_bin"),
}
WORDS: Final = ("'a'", "'A'", "'á'", "'a '", "'ä'", "'ae'", "'ß'", "'ss'", "'S'", "''", "' '", "'abc'", "'abd'")
OTHERS: Final = {
    "INT": ("0", "1", "2", "3", "4"),
    "DOUBLE": ("0", "-0e0", "1.5"),
    "DECIMAL(4,2)": ("0", "1.5", "-1.5"),
    "VARBINARY(9)": ("'a'", "'A'", "'a '", "''"),
    "DATETIME(3)": ("'2026-01-01'", "'2026-01-01 00:00:00.001'"),
    "ENUM('x','y','z')": ("'x'", "'y'", "'z'"),
}


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[tuple[str, tuple[str, ...]], ...]
    """Type and values of c0, c1, ... in their order."""
    keys: tuple[str, ...]
    computed: tuple[str, ...]

    def create(self) -> str:
        """c0 is the primary key's first column."""
        columns = [f"c{number} {kind}" for number, (kind, _) in enumerate(self.columns)]
        return f"CREATE TABLE {self.name} ({', '.join([*columns, *self.computed, *self.keys])})"


def is_text(kind: str) -> bool:
    return kind.startswith(("VARCHAR", "CHAR", "TEXT"))


@st.composite
def tables(draw: st.DrawFn, name: str, flavor: Flavor) -> Table:
    """Three to five columns; a primary key and up to three other keys over one or two of them, prefixes among them."""
    collation = st.sampled_from((*PADDED, *UNPADDED[flavor]))

    def column() -> tuple[str, tuple[str, ...]]:
        if draw(st.integers(0, 2)):
            of = draw(collation)
            kind = draw(st.sampled_from(("VARCHAR(9)", "CHAR(9)", "TEXT")))
            return f"{kind} CHARACTER SET {of.partition('_')[0]} COLLATE {of}", WORDS
        return draw(st.sampled_from(sorted(OTHERS.items())))

    def part(number: int) -> str:
        kind = columns[number][0]
        whole = not kind.startswith("TEXT") and (not is_text(kind) or draw(st.booleans()))
        return f"c{number}" if whole else f"c{number}(2)"

    first = ("INT", OTHERS["INT"]) if draw(st.booleans()) else column()
    columns = (first, *(column() for _ in range(draw(st.integers(2, 4)))))
    parts = draw(st.sampled_from(((0,), (0,), (0, 1))))
    keys = [f"PRIMARY KEY ({', '.join(map(part, parts))})"]
    for number in range(draw(st.integers(1, 3))):
        of = draw(st.lists(st.integers(0, len(columns) - 1), min_size=1, max_size=2, unique=True))
        keys.append(f"UNIQUE KEY u{number} ({', '.join(map(part, of))})")
    computed = []
    if draw(st.booleans()) and columns[-1][0].startswith("VARCHAR"):
        kind, stored = columns[-1][0], draw(st.sampled_from(("VIRTUAL", "STORED")))
        computed.append(f"g {kind} AS (UPPER(c{len(columns) - 1})) {stored}")
        keys.append("UNIQUE KEY ug (g)")
    elif draw(st.booleans()) and flavor is Flavor.MYSQL and columns[-1][0].startswith("INT"):
        keys.append(f"UNIQUE KEY uf ((c{len(columns) - 1} + 1))")
    return Table(name, columns, tuple(keys), tuple(computed))


class Session:
    """A seeded stream of statements; any of them may fail: what the source takes, counts."""

    def __init__(self, known: Sequence[Table], seed: int) -> None:
        self._known, self._draw = known, random.Random(seed)

    def rows(self, count: int) -> Iterator[str]:
        """Rows for every table."""
        for table in self._known:
            for _ in range(count):
                yield f"-INSERT {self._row(table)}"

    def transactions(self, count: int) -> Iterator[str]:
        """Transactions of one to four changes."""
        for _ in range(count):
            yield "-BEGIN"
            for _ in range(self._draw.randint(1, 4)):
                for statement in self._change(self._draw.choice(self._known)):
                    yield f"-{statement}"
            yield "-COMMIT" if self._draw.random() < 0.9 else "-ROLLBACK"

    def _value(self, table: Table, number: int) -> str:
        null = ("NULL",) if number > 1 else ()  # the primary key has at most two columns
        found: str = self._draw.choice((*null, *table.columns[number][1]))
        return found

    def _row(self, table: Table) -> str:
        numbers = range(len(table.columns))
        values = ", ".join(self._value(table, number) for number in numbers)
        return f"INTO {table.name} ({', '.join(f'c{number}' for number in numbers)}) VALUES ({values})"

    def _change(self, table: Table) -> Sequence[str]:
        """One change, or a few that hand values on: over NULL or another value, to and fro."""
        name, column = table.name, self._draw.randrange(len(table.columns))
        one, other, of = (f"c0 = {self._value(table, 0)} LIMIT 1" for _ in range(3))
        new = self._value(table, column)
        match self._draw.randrange(11):
            case 0 | 1:
                return (f"INSERT {self._row(table)}",)
            case 2:
                return (f"REPLACE {self._row(table)}",)
            case 3:
                return (f"INSERT {self._row(table)} ON DUPLICATE KEY UPDATE c{column} = {new}",)
            case 4:
                return (f"UPDATE {name} SET c{column} = {new} WHERE {one}",)
            case 5:
                return (f"UPDATE {name} SET c0 = {self._value(table, 0)} WHERE {one}",)
            case 6:
                return (f"DELETE FROM {name} WHERE {one}",)
            case 7:
                return f"DELETE FROM {name} WHERE {one}", f"INSERT {self._row(table)}"
        free = self._draw.choice(("NULL", "NULL", new))
        return (
            f"SET @a = (SELECT c{column} FROM {name} WHERE {one}), @b = (SELECT c{column} FROM {name} WHERE {other})",
            f"SET @c = (SELECT c{column} FROM {name} WHERE {of})",
            f"UPDATE {name} SET c{column} = {free} WHERE {one}",
            f"UPDATE {name} SET c{column} = @a WHERE {other}",
            *((f"UPDATE {name} SET c{column} = @b WHERE {of}",) if self._draw.random() < 0.5 else ()),
            f"UPDATE {name} SET c{column} = {self._draw.choice(('@b', '@c'))} WHERE {one}",
        )


def usual(count: int) -> settings:
    """The same examples each time, unless somebody asks for a number of them."""
    asked = "BINLANE_EXAMPLES" in os.environ
    return settings(
        max_examples=count,
        phases=(Phase.explicit, Phase.generate, Phase.shrink) if asked else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
        derandomize=not asked,
    )


@usual(EXAMPLES)
@given(
    data=st.data(),
    seed=st.integers(0, 2**32),
    way=st.sampled_from([("block", 3, 0), ("block", 9999, 0), ("window", 3, 1 << 30)]),
)
def test_a_folded_window_leaves_the_rows_of_the_source_s_order(
    servers: tuple[PrivateServer, PrivateServer], data: st.DataObject, seed: int, way: tuple[str, int, int]
) -> None:
    known = [data.draw(tables(f"t{number}", servers[0].flavor)) for number in range(3)]
    session = Session(known, seed)
    by, transactions, window_bytes = way
    source, replayed, reduced, plan = applied(
        servers,
        [table.create() for table in known],
        [list(session.transactions(80))],
        list(session.rows(8)),
        by=by,
        block_transactions=transactions,
        window_bytes=window_bytes,
    )
    assert plan.kept_in_order == {}
    assert replayed.rows == source.rows
    assert reduced.rows == replayed.rows
