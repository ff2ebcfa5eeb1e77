"""What a body leaves that runs once for each row: the same in any order, or named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from binlane.model import Flavor, TableKey
from binlane.precheck.bodies import row_effects, rows_met
from binlane.precheck.bodies.body_parts import Body, BodyPart
from binlane.precheck.bodies.own_keys import ways_of
from binlane.precheck.bodies.row_effects import effects_in_turn
from binlane.schema.model import Column, Generated, Key, KeyColumn, Table
from binlane.sql.parse.row_effects import may_set_of_row
from binlane.sql.programs.comparison import Difference
from binlane.sql.temporary_routines import tokens_of

PRIMARY = Key("PRIMARY", True, True, (KeyColumn("id"),))
INTS = (Column("id", 1, "int"), Column("n", 2, "int"), Column("m", 3, "int"), Column("f", 4, "double"))


def unique(name: str, prefix: int | None = None) -> Key:
    return Key(name, True, False, (KeyColumn(name, prefix),))


def text(name: str, collation: str) -> Column:
    return Column(name, 1, "varchar", length=50, octets=200, charset="utf8mb4", collation=f"utf8mb4_{collation}")


def table(name: str, columns: tuple[Column, ...] = INTS, keys: tuple[Key, ...] = (PRIMARY,)) -> Table:
    return Table(TableKey("a", name), "InnoDB", columns, keys)


N = Column("n", 2, "int", nullable=False)
K, S = text("k", "bin"), text("s", "general_ci")
B = Column("b", 1, "varbinary", length=50, octets=50)
TS, AT = Column("ts", 1, "datetime", fsp=6), Column("at", 1, "datetime", fsp=6)
AMOUNT = Column("amount", 3, "decimal", precision=12, scale=4, nullable=False)
CENTS = Column("cents", 3, "decimal", precision=12, scale=2, nullable=False)
MAY_BE_NULL = Column("may", 3, "decimal", precision=12, scale=2)
BAL, WHOLE = Column("bal", 3, "decimal", precision=12, scale=2), Column("i", 4, "int")
CUSTOMER, COUNT = Column("c", 1, "int", nullable=False), Column("cnt", 2, "int", nullable=False, default="'0'")
TOTAL = Column("total", 3, "decimal", precision=14, scale=4, nullable=False, default="'0.0000'")
E = Column("e", 1, "enum", charset="utf8mb4", collation="utf8mb4_general_ci", members=("a", "b"))
ES = replace(E, name="es", data_type="set")
FIRED = (*INTS, K, S, B, E, ES, TS, AMOUNT, CENTS, MAY_BE_NULL, Column("code", 9, "int", nullable=False))
TABLES = {
    each.key: each
    for each in (
        table("fired", FIRED, (PRIMARY, *map(unique, ("k", "ts", "b", "code", "may")))),
        table("c"),
        table("by_name", (text("k", "general_ci"), N), (unique("k"),)),
        table("by_bin", (K, N), (unique("k"),)),
        table("by_day", (Column("d", 1, "date"), N), (unique("d"),)),
        table("by_time", (AT, N), (unique("at"),)),
        table("by_prefix", (B, N), (unique("b", 3),)),
        table("acc", (*INTS, BAL, WHOLE, S, AT, Column("x", 9, "double"))),
        table("stats", (CUSTOMER, COUNT, TOTAL), (Key("PRIMARY", True, True, (KeyColumn("c"),)),)),
        table("numbered", (Column("id", 1, "int", nullable=False, auto_increment=True), N)),
        table("sums", (Column("id", 1, "int"), replace(BAL, nullable=False))),
        table("by_amount", (replace(MAY_BE_NULL, nullable=False), N), (unique("may"),)),
    )
}


def body_of(
    body: str, event: str = "UPDATE", *, is_before: bool = False, parameters: str = "", name: str = "t"
) -> Body:
    tokens = tokens_of(body, Flavor.MYSQL, has_numbers=True)
    assert tokens is not None
    difference = Difference(TableKey("a", "fired"), f"trigger a.{name}", "", "", is_trigger=bool(event))
    given = tokens_of(parameters, Flavor.MYSQL, has_numbers=True) or ()
    return Body(
        difference,
        "a",
        tokens,
        by_definer=True,
        events=frozenset({event} - {""}),
        name=name,
        is_before=is_before,
        parameters=given,
    )


def named(body: str, event: str = "UPDATE", *, is_before: bool = False, parameters: str = "") -> list[str]:
    return [part.what for part in parts_of(body, event, is_before=is_before, parameters=parameters)]


def parts_of(
    body: str,
    event: str = "UPDATE",
    *,
    is_before: bool = False,
    parameters: str = "",
    set_before: frozenset[str] | None = None,
) -> list[BodyPart]:
    of = body_of(body, event, is_before=is_before, parameters=parameters)
    return list(effects_in_turn(of, TABLES.get, set_before=set_before))


LAST = "an UPDATE of a.c in which the last row remains"
FELT = [
    "UPDATE c SET n = NEW.n WHERE id = 1",
    "UPDATE c SET n = n + m * NEW.n, m = m + 1 WHERE id = 1",
    "UPDATE c SET n = n + m * NEW.n WHERE id = 1",
    "UPDATE c SET n = n + c.m * NEW.n WHERE id = 1",
    "BEGIN UPDATE c SET m = m + NEW.n WHERE id = 1; UPDATE c SET n = n * 2 + m WHERE id = 1; END",
    "BEGIN UPDATE c SET n = n + NEW.n WHERE id = 1; UPDATE c SET n = 5 WHERE id = 1; END",
    "BEGIN UPDATE c SET n = n + NEW.n WHERE id = 1; UPDATE c SET n = n * 2 WHERE id = 1; END",
    "BEGIN UPDATE c SET n = n + NEW.n WHERE id = 1; UPDATE c SET n = GREATEST(n, NEW.m) WHERE id = 1; END",
    "BEGIN UPDATE c SET n = 1 WHERE id = NEW.n; UPDATE c SET n = 0 WHERE id = OLD.n; END",
    "BEGIN DECLARE x INT DEFAULT NEW.n; UPDATE c SET n = x WHERE id = 1; END",
    "BEGIN IF NEW.n THEN UPDATE c SET n = 1 WHERE id = 1; ELSE UPDATE c SET n = 0 WHERE id = 1; END IF; END",
    "BEGIN IF @x THEN UPDATE c SET n = 1 WHERE id = 1; ELSE UPDATE c SET n = 0 WHERE id = 1; END IF; END",
    "BEGIN INSERT INTO C (id) VALUES (NEW.n); UPDATE c SET n = 1 WHERE id = 1; UPDATE c SET n = 0 WHERE n = 1; END",
    "BEGIN SET NEW.m = 1, @x = NEW.n; UPDATE c SET n = 1 WHERE id = 1; UPDATE c SET n = 0 WHERE id = 2; END",
    "BEGIN CALL p(NEW.n); UPDATE c SET n = 1 WHERE id = 1; UPDATE c SET n = 0 WHERE id = 2; END",
    "BEGIN UPDATE c SET n = 1 WHERE id = NEW.n; UPDATE c SET n = 2 WHERE id = OLD.n; END",
    "BEGIN UPDATE c SET n = NOW() WHERE id = NEW.n; UPDATE c SET n = NULL WHERE id = OLD.n; END",
    "BEGIN UPDATE c SET n = RAND() WHERE id = NEW.n; UPDATE c SET n = RAND() WHERE id = OLD.n; END",
    "UPDATE c SET n = n + NEW.n ORDER BY n, id LIMIT 1",
    "UPDATE c SET n = 1, m = m + NEW.m WHERE n = 0 AND id = NEW.n",
    "UPDATE c SET n = n - 1 WHERE id = NEW.n AND n > NEW.m",
]
SAME = [
    "UPDATE c SET n = n + NEW.n WHERE id = 1",
    "UPDATE c SET n = n + NEW.n, m = m + 1 WHERE id = 1",
    "UPDATE c SET n = n - OLD.n WHERE id = 1",
    "BEGIN UPDATE c SET n = n - OLD.n WHERE id = 1; UPDATE c SET n = n + NEW.n WHERE id = 2; END",
    "BEGIN DECLARE x INT DEFAULT NEW.n; UPDATE c SET n = n + x WHERE id = 1; END",
    "UPDATE c SET n = GREATEST(n, NEW.n) WHERE id = 1",
    "UPDATE c SET m = 5, n = NULL, f = NOW() WHERE id = NEW.m",
    "UPDATE c SET m = m * 2, n = 1 - n WHERE id = NEW.m",
    "UPDATE c SET n = NEW.n WHERE id = NEW.id",
    "BEGIN UPDATE c SET n = 1 WHERE id = 1; UPDATE c SET n = 1 WHERE id = 2; END",
    "BEGIN UPDATE c SET n = NOW() WHERE id = 1; UPDATE c SET n = NOW() WHERE id = 2; END",
    "BEGIN UPDATE c SET n = n + 1 WHERE id = 1; UPDATE c SET n = 0 WHERE id = 2; END",
    "BEGIN INSERT INTO log VALUES (NEW.id); UPDATE c SET n = 1 WHERE id = 1; UPDATE c SET n = 0 WHERE id = 2; END",
    "BEGIN SET NEW.m = NEW.n + 1, NEW.n = 2; UPDATE c SET n = 1 WHERE id = 1; UPDATE c SET n = 0 WHERE id = 2; END",
    "CREATE TRIGGER t AFTER UPDATE ON fired FOR EACH ROW BEGIN INSERT INTO log VALUES (NEW.id);"
    " UPDATE c SET n = 1 WHERE id = 1; UPDATE c SET n = 0 WHERE id = 2; END",
    "BEGIN UPDATE c SET n = NOW() WHERE id = NEW.n; UPDATE c SET n = NOW() WHERE id = OLD.n; END",
    "BEGIN IF NEW.n THEN UPDATE c SET n = NULL WHERE id = 1; END IF; UPDATE c SET n = NULL WHERE id = 2; END",
    "UPDATE c SET n = n + NEW.n ORDER BY id LIMIT 1",
    "UPDATE c SET n = n - 1 WHERE id = NEW.n AND n > 0",
    "UPDATE c SET n = 1, m = m + 1 WHERE n = 0 AND id = NEW.n",
    "UPDATE c SET n = TRUE, f = CURRENT_TIMESTAMP WHERE n = FALSE AND id < NEW.n",
]


@pytest.mark.parametrize("body", FELT)
def test_what_the_last_row_decides_is_named(body: str) -> None:
    assert LAST in named(body)


@pytest.mark.parametrize("body", SAME)
def test_what_is_the_same_in_any_order_is_not(body: str) -> None:
    assert named(body) == []


def test_rows_that_a_join_finds_are_no_rows_of_the_firing_one() -> None:
    assert named("UPDATE c, fired SET c.n = NEW.n WHERE fired.id = NEW.id") != []


@pytest.mark.parametrize(
    "declared",
    ["DECLARE CONTINUE HANDLER FOR NOT FOUND, SQLEXCEPTION SET @a = 1", "DECLARE EXIT HANDLER FOR 1062 DO 0"],
)
def test_a_handler_of_errors_keeps_the_row_that_came_first(declared: str) -> None:
    assert named(f"BEGIN {declared}; INSERT INTO c VALUES (NEW.n, 1, 1, 1); END") == [
        "a handler of errors that depend on the rows before"
    ]
    assert named("BEGIN INSERT INTO c VALUES (NEW.n, 1, 1, 1); EXCEPTION WHEN OTHERS THEN NULL; END") != []


def test_a_list_of_rows_whose_first_ones_are_literals_is_no_row() -> None:
    upsert = "INSERT INTO c (id, n) VALUES {} ON DUPLICATE KEY UPDATE n = NEW.n"
    assert named(upsert.format("(NEW.id, 0)")) == []
    assert named(upsert.format("(0, 0), (NEW.id, 0)")) != []


MEETING = [
    "INSERT IGNORE INTO by_name (k, n) VALUES (NEW.k, NEW.n)",
    "BEGIN INSERT INTO c (id, n) VALUES (NEW.n, 1); REPLACE INTO c (id, n) VALUES (NEW.m, 2); END",
    "INSERT INTO by_name (k, n) VALUES (NEW.k, NEW.n) ON DUPLICATE KEY UPDATE n = NEW.n",
    "REPLACE INTO by_name (k, n) VALUES (NEW.k, NEW.n)",
    "REPLACE INTO by_day (d, n) VALUES (NEW.ts, NEW.n)",
    "INSERT INTO by_day (d, n) VALUES (NEW.ts, NEW.n) ON DUPLICATE KEY UPDATE n = NEW.n",
    "REPLACE INTO by_prefix (b, n) VALUES (NEW.b, NEW.n)",
    "INSERT IGNORE INTO by_prefix (b, n) VALUES (NEW.b, 1)",
    "INSERT IGNORE INTO by_bin (k, n) VALUES (NEW.s, 1)",
    "INSERT IGNORE INTO by_amount (may, n) VALUES (NEW.may, NEW.n)",
    "BEGIN INSERT IGNORE INTO acc (id, s) VALUES (NEW.n, 0); INSERT IGNORE INTO acc (id, s) VALUES (NEW.n, 0.0); END",
    "BEGIN REPLACE INTO c (id, n) VALUES (NEW.id, 0); REPLACE INTO c (id, n) VALUES (NEW.code, 1); END",
    "BEGIN INSERT IGNORE INTO acc (id, s) VALUES (NEW.n, 'a'); INSERT IGNORE INTO acc (id, s) VALUES (OLD.n, 'b'); END",
    "BEGIN INSERT INTO c (id, n) VALUES (NEW.n, 1) ON DUPLICATE KEY UPDATE n = n + 1;"
    " INSERT INTO c (id, m) VALUES (OLD.n, 1) ON DUPLICATE KEY UPDATE m = m + 1; END",
]
"""Rows that a key of the firing table tells apart, and that of the written one does not."""
APART = [
    "REPLACE INTO by_bin (k, n) VALUES (NEW.k, NEW.n)",
    "REPLACE INTO by_time (at, n) VALUES (NEW.ts, NEW.n)",
    "INSERT IGNORE INTO c (id, n) VALUES (NEW.id, NEW.n)",
    "BEGIN REPLACE INTO c (id, n) VALUES (OLD.id, 0); REPLACE INTO c (id, n) VALUES (NEW.id, 1); END",
    "INSERT IGNORE INTO by_day (d, n) VALUES (NEW.ts, 1)",
    "BEGIN INSERT IGNORE INTO c (id, n) VALUES (NEW.n, 0); INSERT IGNORE INTO c (id, n) VALUES (OLD.n, 0); END",
    "BEGIN INSERT INTO c (id, n) VALUES (NEW.n, 1) ON DUPLICATE KEY UPDATE n = n + 1;"
    " INSERT INTO c (id, n) VALUES (OLD.n, -1) ON DUPLICATE KEY UPDATE n = n - 1; END",
]
UPSERT = "INSERT INTO stats (c, cnt, total) VALUES {} ON DUPLICATE KEY UPDATE {}"
BOTH = "cnt = cnt + 1, total = total + NEW.amount"
COUNTED = UPSERT.format("(NEW.n, 1, 0)", "cnt = cnt + 1")
MEETING += [
    f"BEGIN {COUNTED}; {UPSERT.format('(NEW.n, 1, 5)', 'cnt = cnt + 1')}; END",
    f"BEGIN {COUNTED}; {UPSERT.format('(NEW.n, -1, 0)', 'cnt = GREATEST(cnt, VALUES(cnt))')}; END",
    f"BEGIN {COUNTED.replace('NEW.n', '9999999999')}; {UPSERT.format('(2147483647, 1, 5)', 'cnt = cnt + 1')}; END",
    f"BEGIN {COUNTED.replace('NEW.n', '1')}; {UPSERT.format('(NEW.n, 1, 5)', 'cnt = cnt + 1')}; END",
]
NUMBERED = "INSERT INTO numbered VALUES ({0}, {1}) ON DUPLICATE KEY UPDATE n = {1}"
MEETING.append(f"BEGIN {NUMBERED.format(0, 2)}; {NUMBERED.format(1, 3)}; END")
MARKED = "INSERT INTO acc (id, s, n) VALUES (NEW.n, {0}, {1}) ON DUPLICATE KEY UPDATE n = n + {1}"
MEETING += [
    f"BEGIN {MARKED.format(one, 1)}; {MARKED.format(other, 2)}; END"
    for one, other in (("'x'", "'X'"), ("'x'", "_latin1'x'"), ("'x'", "'x '"))
]
APART += [f"IF NEW.m THEN {MARKED.format(text, 1)}; ELSE {MARKED.format(text, 2)}; END IF" for text in ("'x'", "''")]
APART += [
    f"BEGIN {NUMBERED.format(1, 2)}; {NUMBERED.format(2, 3)}; END",
    f"IF NEW.m THEN {UPSERT.format('(NEW.n, 1, NEW.amount)', BOTH)}; ELSE {COUNTED}; END IF",
    f"BEGIN {COUNTED}; {UPSERT.format('(NEW.n, 0, NEW.amount)', 'total = total + NEW.amount')}; END",
    f"BEGIN {COUNTED}; INSERT INTO stats (c, total) VALUES (NEW.n, NEW.amount)"
    " ON DUPLICATE KEY UPDATE total = total + NEW.amount; END",
    f"BEGIN {COUNTED.replace('NEW.n', '1')}; {UPSERT.format('(2, 1, 5)', 'cnt = cnt + 1')}; END",
]
ALIASED = "INSERT INTO stats (c, cnt, total) VALUES (NEW.n, 1, NEW.amount) AS fresh ON DUPLICATE KEY UPDATE "
SEEN = "INSERT INTO acc (id, at, s) VALUES (NEW.n, NOW(), 'x') ON DUPLICATE KEY UPDATE "
NAMED = "INSERT INTO by_name (k, n) VALUES ({}, 1) ON DUPLICATE KEY UPDATE n = n + 1"
APART += [
    "IF NEW.m THEN {}; ELSE {}; END IF".format(*(MARKED.format("'ä'", each) for each in (1, 2))),
    "IF NEW.m THEN UPDATE acc SET s = 'ä' WHERE id = NEW.n; ELSE UPDATE acc SET s = 'ä', n = 5; END IF",
    f"{ALIASED}cnt = stats.cnt + fresh.cnt, total = stats.total + fresh.total",
    f"{ALIASED}cnt = cnt + 1, total = total + fresh.total",
    f"{SEEN}at = VALUES(at), s = VALUES(s)",
    f"{SEEN}at = NOW(), s = 'x'",
    f"{SEEN}id = id",
    f"{SEEN}acc.id = acc.id, at = NOW()",
    f"{SEEN}id = VALUES(id)",
    NAMED.format("'all'"),
    NAMED.format("NEW.e"),
    "; ".join(("BEGIN", NAMED.format("'all'"), NAMED.format("'each'"), "END")).replace("BEGIN;", "BEGIN"),
    "IF NEW.m THEN UPDATE acc SET s = 'x', n = 5 WHERE id = NEW.n; ELSE UPDATE acc SET s = 'x', n = 5, m = 1; END IF",
    "BEGIN UPDATE acc SET n = 5 WHERE s = 'old' AND m = NEW.m; INSERT INTO acc (id, s) VALUES (NEW.id, 'new'); END",
    "BEGIN DELETE FROM by_day WHERE d = '2020-02-29'; INSERT INTO by_day (d, n) VALUES ('2026-12-01', NEW.n); END",
]
MEETING += [
    f"{ALIASED}cnt = stats.cnt + fresh.total",
    f"{SEEN}s = VALUES(at)",
    f"{SEEN}at = NEW.ts",
    f"{SEEN}n = NEW.n",
    NAMED.format("NEW.es"),
    NAMED.format("x'616c6c'"),
    *(
        f"BEGIN {MARKED.format(one, 1)}; {MARKED.format(other, 2)}; END"
        for one, other in (("'a\\\\b'", "'a\\\\b'"), ("'ä'", "'Ä'"))
    ),
    "INSERT INTO by_name (k, n) VALUES (NEW.e, 1) ON DUPLICATE KEY UPDATE k = VALUES(k)",
    NAMED.format("NEW.k"),
    NAMED.format("CONCAT('a', 'b')"),
    NAMED.format("_latin1'all'"),
    *(
        f"BEGIN {NAMED.format(one)}; {NAMED.format(other)}; END"
        for one, other in (
            ("'all'", "'ALL'"),
            ("NEW.e", "'A'"),
            ("NEW.e", "NEW.s"),
            ("'all'", "'all '"),
            ("'ä'", "'all'"),
        )
    ),
]


@pytest.mark.parametrize("body", MEETING)
def test_rows_that_meet_on_another_key_are_named(body: str) -> None:
    assert any("in which the first row or the last one remains" in part for part in named(body))


@pytest.mark.parametrize("body", APART)
def test_rows_that_each_write_one_of_their_own_are_not(body: str) -> None:
    assert named(body) == []


def test_a_row_that_is_not_there_yet_is_told_apart_by_no_key() -> None:
    body = "REPLACE INTO c (id, n) VALUES (NEW.id, NEW.n)"
    assert named(body, "INSERT") == []
    assert named(body, "INSERT", is_before=True) != []


@pytest.mark.parametrize(
    ("column", "set_before", "is_apart"),
    [
        ("code", frozenset(), True),
        ("code", frozenset({"n"}), True),
        ("code", frozenset({"code"}), False),
        ("code", None, False),
        # of no key that takes no NULL
        ("m", frozenset(), False),
        ("may", frozenset(), False),
    ],
)
def test_a_row_that_is_not_there_yet_is_told_apart_by_a_key_that_is_given_where_equal_ones_are_errors(
    column: str, set_before: frozenset[str] | None, is_apart: bool
) -> None:
    for body in (
        f"REPLACE INTO c (id, n) VALUES (NEW.{column}, NEW.n)",
        f"UPDATE c SET n = NEW.n WHERE id = NEW.{column}",
    ):
        found = parts_of(body, "INSERT", is_before=True, set_before=set_before)
        assert [part.among for part in found] == [TableKey("a", "fired") if is_apart else None], body
    # which rows meet does not matter to it
    [read] = parts_of("INSERT INTO c SELECT id, 1, 1, 1 FROM fired", "INSERT", is_before=True, set_before=frozenset())
    assert read.among is None


@pytest.mark.parametrize(
    "column",
    [
        Column("code", 9, "int", nullable=False, auto_increment=True),
        Column("code", 9, "int", nullable=False, generated=Generated.STORED, expression="n + 1"),
        Column("code", 9, "int", nullable=False, default="uuid_short()"),
    ],
)
def test_a_value_that_the_server_makes_tells_no_row_apart_that_is_not_there_yet(
    column: Column, monkeypatch: pytest.MonkeyPatch
) -> None:
    fired = TABLES[TableKey("a", "fired")]
    monkeypatch.setitem(TABLES, fired.key, replace(fired, columns=(*fired.columns[:-1], column)))
    body = "REPLACE INTO c (id, n) VALUES (NEW.code, NEW.n)"
    assert [part.among for part in parts_of(body, "INSERT", is_before=True, set_before=frozenset())] == [None]


FOUND = {
    "UPDATE by_bin SET n = NEW.n WHERE k = NEW.k": False,
    "UPDATE by_name SET n = NEW.n WHERE k = NEW.k": True,
    "UPDATE by_day SET n = NEW.n WHERE d = NEW.ts": True,
    "UPDATE c SET n = NEW.n WHERE NEW.id = OLD.id": True,
    "UPDATE c SET n = NEW.n, id = NEW.m WHERE id = NEW.id": True,
    "BEGIN UPDATE c SET n = NEW.n WHERE id = NEW.id; UPDATE c SET n = 0 WHERE id = OLD.id; END": False,
    "BEGIN UPDATE c SET n = NEW.n WHERE id = NEW.id; UPDATE c SET n = 0 WHERE id = NEW.code; END": True,
    "BEGIN UPDATE c SET n = n + NEW.n WHERE id = 1; UPDATE c SET n = NEW.n WHERE id = NEW.id; END": True,
}


@pytest.mark.parametrize(("body", "is_named"), FOUND.items())
def test_an_update_finds_one_row_for_each_only_by_values_that_both_compare_alike(body: str, is_named: bool) -> None:
    assert any("in which the last row remains" in part for part in named(body)) is is_named


ROUNDED = "a sum that may be rounded at each row in a.acc"
TIED = "GREATEST() of equal values that may differ in a.acc"
IN_TURN = {
    "SET bal = bal + NEW.amount": ROUNDED,
    "SET bal = bal + NEW.cents * NEW.cents": ROUNDED,
    "SET bal = bal + NEW.n / 2": ROUNDED,
    "SET bal = bal + NEW.n * 0.005": ROUNDED,
    "SET bal = bal + NEW.n * 1e0": ROUNDED,
    "SET bal = bal + NEW.s": ROUNDED,
    "SET bal = bal + SOMETHING(NEW.n)": ROUNDED,
    "SET bal = bal + NEW.cents * -NEW.cents": ROUNDED,
    "SET bal = bal + ROUND(NEW.amount, 3)": ROUNDED,
    "SET bal = bal + ROUND(NEW.amount, NEW.n)": ROUNDED,
    "SET bal = bal + ROUND(NEW.f, 2)": ROUNDED,
    "SET bal = bal + CAST(NEW.amount AS DOUBLE)": ROUNDED,
    "SET bal = bal + CAST(NEW.amount AS DECIMAL(12, 3))": ROUNDED,
    "SET bal = bal + CONVERT(NEW.cents USING utf8mb4)": ROUNDED,
    "SET bal = IFNULL(bal, 0) + NEW.code % NEW.code": ROUNDED,
    "SET bal = IFNULL(bal, 0) + CHAR_LENGTH(NEW.k)": ROUNDED,
    "SET i = GREATEST(i, 1 + NEW.f)": TIED,
    "SET i = i + NEW.amount": ROUNDED,
    "SET i = i + NEW.f": ROUNDED,
    "SET x = x + NEW.n": ROUNDED,
    "SET bal = IFNULL(bal, 0) + NEW.may": ROUNDED,
    "SET s = GREATEST(s, NEW.s)": TIED,
    "SET s = LEAST(s, NEW.s)": TIED.replace("GREATEST", "LEAST"),
    "SET x = GREATEST(x, NEW.f)": TIED,
    "SET n = GREATEST(n, NEW.s)": TIED,
    "SET at = GREATEST(at, NEW.s)": TIED,
}
IN_ANY_ORDER = [
    "SET bal = bal + NEW.cents",
    "SET bal = bal + NEW.may",
    "SET bal = bal - OLD.cents + NEW.cents",
    "SET bal = bal + NEW.cents * NEW.n",
    "SET bal = bal + NEW.cents - NEW.n * 2 + 0.01",
    "SET bal = bal + IF(NEW.n, NEW.cents, 0)",
    "SET bal = IFNULL(bal, 0) + NEW.cents",
    "SET bal = IFNULL(bal, 0) + IFNULL(NEW.may, 0)",
    "SET i = i + 1 + NEW.n",
    "SET bal = bal + ROUND(NEW.amount * NEW.n, 2)",
    "SET bal = bal + ROUND(NEW.amount / 3, 2)",
    "SET bal = bal - TRUNCATE(OLD.amount, 1)",
    "SET bal = bal + (NEW.cents + NEW.n) * 2",
    "SET bal = bal + CAST(NEW.amount AS DECIMAL(10,2))",
    "SET bal = bal + CONVERT(NEW.s, DECIMAL(10, 2))",
    "SET bal = IFNULL(bal, 0) + CAST(NEW.amount AS DEC(10,2))",
    "SET bal = IFNULL(bal, 0) + COALESCE(NEW.may, NEW.cents)",
    "SET bal = bal + IF(NEW.f, NEW.cents, 0)",
    "SET i = i + CAST(NEW.s AS SIGNED)",
    "SET i = i + FLOOR(NEW.amount) + CEILING(NEW.amount) + ROUND(NEW.amount)",
    "SET i = i + CHAR_LENGTH(NEW.k) + SIGN(NEW.f) + DATEDIFF(NEW.ts, OLD.ts)",
    "SET i = i + TIMESTAMPDIFF(SECOND, OLD.ts, NEW.ts)",
    "SET i = GREATEST(i, NEW.amount, 3)",
    "SET at = GREATEST(at, NEW.ts)",
]


@pytest.mark.parametrize(("values", "expected"), IN_TURN.items())
def test_sums_that_are_rounded_and_equal_values_depend_on_the_first_row(values: str, expected: str) -> None:
    assert named(f"UPDATE acc {values} WHERE id = NEW.n") == [expected]


@pytest.mark.parametrize("values", IN_ANY_ORDER)
def test_sums_of_digits_that_the_column_has_do_not(values: str) -> None:
    assert named(f"UPDATE acc {values} WHERE id = NEW.n") == []


@pytest.mark.parametrize("statement", [COUNTED, "UPDATE c SET n = n + 1, m = m + NEW.n WHERE id = NEW.n"])
def test_each_change_of_a_table_is_compared_with_the_keys_once(statement: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[object]()

    def counted(*given: Any) -> Any:
        calls.append(given)
        return ways_of(*given)

    for module in (row_effects, rows_met):
        monkeypatch.setattr(module, "ways_of", counted)
    assert named(f"BEGIN {f'IF NEW.m THEN {statement}; END IF; ' * 100} END") == []
    assert len(calls) <= 200


@pytest.mark.parametrize("function", ["ABS(", "(", "IFNULL(0, ", "CONVERT(0, ", "-ABS("])
def test_calls_may_be_nested_as_deeply_as_a_statement_is_long(function: str) -> None:
    named(f"UPDATE acc SET bal = bal + {function * 2000}NEW.cents{')' * 2000} WHERE id = NEW.n")


@pytest.mark.parametrize(("kind", "is_named"), [("INT", False), ("NUMERIC(9,2)", False), ("DEC(9, 3)", True)])
def test_variables_and_parameters_have_the_digits_of_their_types(kind: str, is_named: bool) -> None:
    update = "UPDATE acc SET bal = bal + v WHERE id = 1"
    assert bool(named(f"BEGIN DECLARE v {kind} DEFAULT NEW.n; {update}; END")) is is_named
    assert bool(named(update, "", parameters=f"IN y text, v {kind}")) is is_named


@pytest.mark.parametrize(
    ("inserted", "update", "is_named"),
    [
        ("NEW.cents", "bal + NEW.cents", False),
        ("NEW.amount", "bal + NEW.amount", True),
        ("NEW.amount", "bal + VALUES(bal)", False),
        ("NEW.n * 2", "bal + NEW.n * 3", True),
        ("NEW.n > 1", "bal + NEW.n > 1", True),
        ("NEW.cents", "GREATEST(bal, VALUES(bal))", False),
    ],
)
def test_what_the_first_row_inserts_and_the_others_add(inserted: str, update: str, is_named: bool) -> None:
    body = f"INSERT INTO sums (id, bal) VALUES (NEW.n, {inserted}) ON DUPLICATE KEY UPDATE bal = {update}"
    assert bool(named(body)) is is_named


@pytest.mark.parametrize("engine", ["BLACKHOLE", "MRG_MyISAM", "FEDERATED"])
def test_a_table_whose_engine_keeps_no_keys_has_rows_of_one_value(monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    body = "UPDATE c SET n = NEW.n WHERE id = NEW.code"
    assert named(body, "INSERT") == []
    [before] = parts_of(body, "INSERT", is_before=True, set_before=frozenset())
    assert before.among is not None
    key = TableKey("a", "fired")
    monkeypatch.setitem(TABLES, key, replace(TABLES[key], engine=engine))
    assert named(body, "INSERT") == [LAST]
    [before] = parts_of(body, "INSERT", is_before=True, set_before=frozenset())
    assert before.among is None


@pytest.mark.parametrize("body", ["SELECT 1, 2 INTO @x, NEW.code", "SELECT 1, 2 INTO NEW.n, x"])
def test_a_column_of_the_row_may_be_set_behind_another_target(body: str) -> None:
    assert may_set_of_row(tokens_of(body, Flavor.MYSQL) or ()) is None
    for plain in ("INSERT INTO a.log SELECT NEW.code, n FROM t", "SELECT 1, 2 INTO @x, y FROM t WHERE n = NEW.code"):
        assert may_set_of_row(tokens_of(plain, Flavor.MYSQL) or ()) == frozenset()
