"""Generated schemas with unique keys of every kind, and changes that fight for their values: folded equals ordered.

Each example runs on a real source and twice on a real target of the same family: in the source's order, and folded.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.integration.reduce.test_reduced_equals_replayed import applied
from tests.integration.reduce.test_reduced_equals_replayed import servers as servers  # a fixture

EXAMPLES: Final = int(os.environ.get("BINLANE_EXAMPLES", "12"))
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
        """Its definition; c0 is the primary key's first column."""
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

    columns = tuple(column() for _ in range(draw(st.integers(3, 5))))
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


@st.composite
def changes(draw: st.DrawFn, table: Table) -> list[str]:
    """One change, or a few that hand values on: a chain over NULL, a swap. Any of them may fail."""
    known, name = table.columns, table.name

    def value(number: int, *, key: bool = False) -> str:
        return draw(st.sampled_from(known[number][1] if key else ("NULL", *known[number][1])))

    column = draw(st.integers(0, len(known) - 1))
    names = ", ".join(f"c{number}" for number in range(len(known)))
    row = ", ".join(value(number, key=number < 2) for number in range(len(known)))
    one, other = f"c0 = {value(0, key=True)}", f"c0 = {value(0, key=True)}"
    new, free = value(column), value(column)
    insert = f"INTO {name} ({names}) VALUES ({row})"
    return draw(
        st.sampled_from(
            [
                [f"INSERT {insert}"],
                [f"INSERT {insert}"],
                [f"REPLACE {insert}"],
                [f"INSERT {insert} ON DUPLICATE KEY UPDATE c{column} = {new}"],
                [f"UPDATE {name} SET c{column} = {new} WHERE {one} LIMIT 1"],
                [f"UPDATE {name} SET c0 = {value(0, key=True)} WHERE {one} LIMIT 1"],
                [f"UPDATE {name} SET c{column} = {new} LIMIT 2"],
                [f"DELETE FROM {name} WHERE {one} LIMIT 1"],
                [f"DELETE FROM {name} WHERE {one} LIMIT 1", f"INSERT {insert}"],
                [
                    f"SET @a = (SELECT c{column} FROM {name} WHERE {one} LIMIT 1)",
                    f"SET @b = (SELECT c{column} FROM {name} WHERE {other} LIMIT 1)",
                    f"UPDATE {name} SET c{column} = {free} WHERE {one} LIMIT 1",
                    f"UPDATE {name} SET c{column} = @a WHERE {other} LIMIT 1",
                    f"UPDATE {name} SET c{column} = @b WHERE {one} LIMIT 1",
                ],
            ]
        )
    )


@st.composite
def examples(draw: st.DrawFn, flavor: Flavor) -> tuple[list[Table], list[str]]:
    known = [draw(tables(f"t{number}", flavor)) for number in range(2)]
    said: list[str] = []
    for _ in range(draw(st.integers(5, 25))):
        said.append("BEGIN")
        for change in draw(st.lists(st.sampled_from(known).flatmap(changes), min_size=1, max_size=4)):
            said += change
        said.append(draw(st.sampled_from(["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"])))
    return known, said


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
@given(data=st.data(), way=st.sampled_from([("block", 3, 0), ("block", 9999, 0), ("window", 3, 1 << 30)]))
def test_what_is_folded_leaves_what_the_source_s_order_leaves(
    servers: tuple[PrivateServer, PrivateServer], data: st.DataObject, way: tuple[str, int, int]
) -> None:
    known, said = data.draw(examples(servers[0].flavor))
    by, transactions, window_bytes = way
    source, replayed, reduced, plan = applied(
        servers, [table.create() for table in known], sessions(said), by=by, block_transactions=transactions,
        window_bytes=window_bytes,
    )  # fmt: skip
    assert plan.kept_in_order == {}
    assert replayed.rows == source.rows
    assert reduced.rows == replayed.rows


def sessions(said: Sequence[str]) -> list[list[str]]:
    return [[f"-{statement}" for statement in said]]
