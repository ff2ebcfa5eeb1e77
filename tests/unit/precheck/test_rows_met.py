"""What a body finds of the rows before: bodies that pass leave the same in each order of rows; sqlite runs them."""

from __future__ import annotations

import itertools
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

import pytest

from binlane.model import TableKey
from binlane.precheck.bodies.body_parts import Body
from binlane.precheck.bodies.row_effects import effects_in_turn
from binlane.precheck.bodies.rows_met import Beside, SetBefore
from binlane.schema.letter_case import ANY_CASE
from binlane.schema.model import Key, KeyColumn
from binlane.sql.parse.row_effects import may_set_of_row, sets_constants
from binlane.sql.programs.comparison import Difference
from tests.unit.precheck.test_row_effects import TABLES, body_of, named

SINGLE: Final = (
    "INSERT INTO c (id, n, m) VALUES (NEW.id, NEW.n, NEW.m)",
    "INSERT INTO c (id, n, m) VALUES (NEW.n, 1, NEW.m)",
    "INSERT INTO c (id, n, m) VALUES (NEW.n, 0, 0)",
    "INSERT INTO c (id, n, m) SELECT NEW.id, NEW.n, 2",
    "INSERT INTO c (id, n, m) SELECT NEW.n, 1, NEW.m",
    "REPLACE INTO c (id, n, m) VALUES (NEW.id, NEW.n, NEW.m)",
    "REPLACE INTO c (id, n, m) VALUES (NEW.n, 0, 0)",
    "UPDATE c SET n = n + NEW.m WHERE id = 1",
    "UPDATE c SET n = 1 WHERE m = NEW.m",
    "UPDATE c SET n = 3 WHERE id = 1",
    "UPDATE c SET n = n + 1 WHERE id = NEW.n",
    "UPDATE c SET n = n + NEW.n WHERE id = NEW.id",
    "UPDATE c SET m = m + 1 WHERE n >= NEW.n",
    "UPDATE c SET m = m - 1 WHERE id = NEW.n AND m > 0",
    "UPDATE c SET n = 2, m = m + NEW.m WHERE n = 1 AND id = NEW.n",
    "DELETE FROM c WHERE id = NEW.id",
    "DELETE FROM c WHERE id = NEW.n",
    "DELETE FROM c WHERE id = NEW.n AND n = 0",
    "DELETE FROM c WHERE n < NEW.m",
    "DELETE FROM c WHERE n > 1",
    "DELETE FROM c",
    "INSERT INTO c (id, n, m) VALUES (NEW.n, 1, 0) ON DUPLICATE KEY UPDATE n = n + 1",
    "INSERT INTO c (id, n, m) VALUES (NEW.n, NEW.m, 0) ON DUPLICATE KEY UPDATE n = n + VALUES(n)",
    "INSERT INTO c (id, n, m) VALUES (NEW.n, NEW.m, 0) AS fresh ON DUPLICATE KEY UPDATE n = c.n + fresh.n",
    "INSERT INTO c (id, n, m) VALUES (NEW.n, 5, 0) ON DUPLICATE KEY UPDATE n = VALUES(n)",
    "INSERT INTO c (id, n, m) VALUES (NEW.n, 5, NEW.m) ON DUPLICATE KEY UPDATE n = VALUES(n)",
    "INSERT INTO c (id, n, m) VALUES (NEW.n, 0, 0) ON DUPLICATE KEY UPDATE id = id",
    "INSERT IGNORE INTO c (id, n, m) VALUES (NEW.n, 0, 0)",
    "UPDATE c SET n = n + NEW.m WHERE id = NEW.n",
    "UPDATE c SET m = (SELECT n FROM c WHERE id = NEW.n) WHERE id = NEW.id",
    "UPDATE c SET m = 1 - (SELECT n FROM c WHERE id = NEW.n) WHERE id = NEW.n",
    "UPDATE c SET m = (SELECT COUNT(*) FROM c AS x)",
    "IF EXISTS (SELECT 1 FROM c WHERE id = NEW.n) THEN UPDATE c SET n = n + 1 WHERE id = NEW.n; "
    "ELSE INSERT INTO c (id, n, m) VALUES (NEW.n, 1, 0); END IF",
    "IF EXISTS (SELECT 1 FROM c WHERE id = NEW.n) THEN UPDATE c SET n = n + NEW.m WHERE id = NEW.n; "
    "ELSE INSERT INTO c (id, n, m) VALUES (NEW.n, NEW.m, 0); END IF",
    "IF NOT EXISTS (SELECT 1 FROM c WHERE id = NEW.n) THEN INSERT INTO c (id, n, m) VALUES (NEW.n, NEW.m, 0); "
    "ELSE UPDATE c SET n = n + 1 WHERE id = NEW.n; END IF",
    "IF EXISTS (SELECT 1 FROM c WHERE id = NEW.n) THEN DELETE FROM c WHERE id = NEW.id; ELSE DELETE FROM c; END IF",
    "IF NEW.m > 1 THEN UPDATE c SET n = 4 WHERE id = NEW.n; ELSE UPDATE c SET n = 4, m = 0 WHERE id = NEW.n; END IF",
    "IF NEW.m > 1 THEN UPDATE c SET n = 4 WHERE id = NEW.n; ELSE UPDATE c SET n = 5 WHERE id = NEW.n; END IF",
    "IF NEW.m > 1 THEN REPLACE INTO c VALUES (NEW.n, 1, 1); ELSE REPLACE INTO c VALUES (NEW.n, 2, 1); END IF",
)
OF_TEXTS: Final = (
    "INSERT INTO by_name (k, n) VALUES ('all', 1) ON DUPLICATE KEY UPDATE n = n + 1",
    "INSERT INTO by_name (k, n) VALUES ('today', NEW.n) ON DUPLICATE KEY UPDATE n = n + VALUES(n)",
    "INSERT INTO by_name (k, n) VALUES ('ALL', 1) ON DUPLICATE KEY UPDATE n = n + 1",
    "INSERT INTO by_name (k, n) VALUES (NEW.e, 1) ON DUPLICATE KEY UPDATE n = n + 1",
    "INSERT INTO by_name (k, n) VALUES (NEW.s, 1) ON DUPLICATE KEY UPDATE n = n + 1",
    "INSERT INTO by_name (k, n) VALUES ('all', 1) ON DUPLICATE KEY UPDATE k = VALUES(k)",
    "REPLACE INTO by_name (k, n) VALUES (NEW.e, 7)",
    "REPLACE INTO by_name (k, n) VALUES (NEW.s, 7)",
    "INSERT IGNORE INTO by_name (k, n) VALUES (NEW.e, 7)",
    "UPDATE by_name SET n = n + 1 WHERE k = NEW.e",
    "UPDATE by_name SET n = 7 WHERE k = 'all'",
    "UPDATE by_name SET k = 'b' WHERE k = 'all' AND n = 1",
    "DELETE FROM by_name WHERE k = 'today'",
)
ROWS: Final = (
    ((11, 1, 1, "a", "x"), (12, 1, 2, "b", "X"), (13, 2, 1, "a", "y")),
    ((11, 2, 0, "b", "all"), (12, 2, 2, "b", "ALL"), (13, 2, -1, "a", "A")),
    ((1, 1, 1, "a", "a"), (2, 3, 3, "a", "A"), (3, 2, 2, "b", "today")),
)
"""``id``, ``n``, ``m``, ``e`` and ``s`` of the rows at hand."""
FILLED: Final = (
    ((), ()),
    (((1, 0, 1), (2, 1, 2), (3, 2, 0)), (("All", 1), ("B", 7))),
    (((1, 2, 0), (2, 0, 1), (11, 1, 1), (13, 5, 2)), (("a", 0), ("TODAY", 3))),
)
"""The rows of ``c`` and of ``by_name``."""


TRIGGERS: Final = {
    "SET NEW.m = 1": "AFTER INSERT ON c BEGIN UPDATE c SET m = 1 WHERE id = NEW.id; END",
    "SET NEW.n = NEW.m * 2": "AFTER INSERT ON c BEGIN UPDATE c SET n = m * 2 WHERE id = NEW.id; END",
    "BEGIN SET NEW.m = 3; END": "AFTER UPDATE ON c BEGIN UPDATE c SET m = 3 WHERE id = NEW.id; END",
    "SET NEW.n = NEW.n * 2": "AFTER UPDATE ON c BEGIN UPDATE c SET n = n * 2 WHERE id = NEW.id; END",
    "SET NEW.m = OLD.n": "AFTER UPDATE ON c BEGIN UPDATE c SET m = OLD.n WHERE id = NEW.id; END",
    "IF NEW.n > 2 THEN SET NEW.n = 0; END IF": (
        "AFTER UPDATE ON c BEGIN UPDATE c SET n = 0 WHERE id = NEW.id AND n > 2; END"
    ),
}
"""BEFORE triggers of ``c``, each with what does the same in sqlite, whose triggers give NEW no values."""


@cache
def filled_server(filled: Sequence[Sequence[Sequence[object]]], of_c: str) -> sqlite3.Connection:
    server = sqlite3.connect(":memory:", isolation_level=None)
    server.execute("CREATE TABLE c (id INT PRIMARY KEY, n INT DEFAULT 0, m INT DEFAULT 0)")
    server.execute("CREATE TABLE by_name (k VARCHAR(50) COLLATE NOCASE PRIMARY KEY, n INT NOT NULL)")
    server.executemany("INSERT INTO c VALUES (?, ?, ?)", filled[0])
    server.executemany("INSERT INTO by_name VALUES (?, ?)", filled[1])
    if of_c:
        server.execute(f"CREATE TRIGGER of_c {of_c}")
    return server


@cache
def left_by(
    body: Sequence[str],
    filled: Sequence[Sequence[Sequence[object]]],
    rows: Sequence[Sequence[object]],
    of_c: str = "",
) -> str:
    """What two tables have behind a body that runs for each of the rows; an error ends the statement. ``of_c``: a
    trigger of ``c``."""
    server = filled_server(filled, of_c)
    server.execute("BEGIN")
    try:
        for row, statement in itertools.product(rows, body):
            run(server, statement, dict(zip(("id", "n", "m", "e", "s"), row, strict=True)))
        return str([sorted(server.execute(f"SELECT * FROM {name}")) for name in ("c", "by_name")])
    except sqlite3.IntegrityError:
        return ""
    finally:
        server.execute("ROLLBACK")


def run(server: sqlite3.Connection, statement: str, row: dict[str, object]) -> None:
    """Run a statement, or the branches of an IF, for a row at hand."""
    if branch := re.fullmatch(r"IF (.*?) THEN (.*?); ELSE (.*); END IF", statement):
        condition, first, second = branch.groups()
        [is_met] = server.execute(of_sqlite(f"SELECT {condition}"), row).fetchone()
        run(server, first if is_met else second, row)
    else:
        server.execute(of_sqlite(statement), row)


@cache
def of_sqlite(statement: str) -> str:
    for own, of_others in (
        (r"NEW\.(\w+)", r":\1"),
        (r" AS fresh ON\b", " ON"),
        (r"\bfresh\.(\w+)", r"excluded.\1"),
        (r"\bVALUES\((\w+)\)", r"excluded.\1"),
        ("ON DUPLICATE KEY UPDATE", "ON CONFLICT DO UPDATE SET"),
        ("INSERT IGNORE", "INSERT OR IGNORE"),
    ):
        statement = re.sub(own, of_others, statement)
    return statement


def outcomes(body: Sequence[str], of_c: str = "") -> Iterator[set[str]]:
    """What different orders leave. Where one ends with an error the source or the target stops, and says so."""
    for filled, rows in itertools.product(FILLED, ROWS):
        yield {left_by(body, filled, order, of_c) for order in itertools.permutations(rows)} - {""}


def is_same(body: Sequence[str], of_c: str = "") -> bool:
    """Whether a body leaves the same in each order of rows."""
    return all(len(each) < 2 for each in outcomes(body, of_c))


def found_beside(body: Body, *others: Body, bases: dict[str, str] | None = None) -> list[str]:
    def bases_of(key: TableKey) -> Sequence[TableKey]:
        return (ANY_CASE.table(TableKey(key.database, (bases or {}).get(key.table, key.table))),)

    return [part.what for part in effects_in_turn(body, TABLES.get, Beside((), others, bases_of))]


@pytest.mark.parametrize("statements", [SINGLE, OF_TEXTS], ids=["numbers", "texts"])
def test_two_changes_of_a_table_pass_only_if_every_order_of_rows_leaves_the_same(statements: Sequence[str]) -> None:
    every = [*((each,) for each in statements), *itertools.permutations(statements, 2)]
    passed = [body for body in every if named(f"BEGIN {'; '.join(body)}; END") == []]
    assert len(passed) > len(every) / 10
    assert [body for body in passed if not is_same(body)] == []


@pytest.mark.parametrize("statements", [SINGLE, OF_TEXTS], ids=["numbers", "texts"])
def test_two_triggers_of_a_table_pass_only_if_every_order_of_rows_leaves_the_same(statements: Sequence[str]) -> None:
    bodies = {each: (body_of(each), body_of(each, name="u")) for each in statements}
    pairs = list(itertools.permutations(statements, 2))
    passed = [
        (one, other)
        for one, other in pairs
        if not found_beside(bodies[one][0], bodies[other][1]) and not found_beside(bodies[other][1], bodies[one][0])
    ]
    assert len(passed) > len(pairs) / 10
    assert [body for body in passed if not is_same(body)] == []


def found_with(trigger: str, body: Body) -> list[str]:
    """What is found of a body where this is a BEFORE trigger of ``c``."""
    tokens = body_of(trigger).tokens
    of_c = SetBefore(may_set_of_row(tokens), is_varied=not sets_constants(tokens))
    beside = Beside(set_before=lambda key: of_c if key.table == "c" else SetBefore())
    return [part.what for part in effects_in_turn(body, TABLES.get, beside)]


@pytest.mark.parametrize(("trigger", "of_sqlite"), TRIGGERS.items())
def test_changes_of_a_table_with_a_before_trigger_pass_only_if_every_order_of_rows_leaves_the_same(
    trigger: str, of_sqlite: str
) -> None:
    every = [*((each,) for each in SINGLE), *itertools.permutations(SINGLE, 2)]
    passed = [body for body in every if found_with(trigger, body_of(f"BEGIN {'; '.join(body)}; END")) == []]
    assert len(passed) > len(every) / 100
    assert [body for body in passed if not is_same(body, of_sqlite)] == []


def test_two_updates_by_different_keys_of_the_row_meet_in_what_a_trigger_sets() -> None:
    body = body_of("BEGIN UPDATE c SET n = NEW.m WHERE id = NEW.id; UPDATE c SET m = NEW.m WHERE id = NEW.n; END")
    fired = TABLES[body.difference.key]
    by_n = Key("n", True, False, (KeyColumn("n"),))
    tables = {**TABLES, body.difference.key: replace(fired, keys=(*fired.keys, by_n))}

    def found(of_c: SetBefore) -> list[str]:
        return [each.what for each in effects_in_turn(body, tables.get, Beside(set_before=lambda key: of_c))]

    assert found(SetBefore()) == found(SetBefore(frozenset({"f"}))) == []
    assert found(SetBefore(frozenset({"f"}), is_varied=True)) != []


ADDED: Final = "c SET n = n + NEW.m WHERE id = NEW.n"
FOUND: Final = {
    "a DELETE from a.stats, which finds what the rows before have inserted,": (
        "BEGIN DELETE FROM stats WHERE c = NEW.n; INSERT INTO stats (c, cnt) VALUES (NEW.n, NEW.m); END",
    ),
    "a DELETE from a.c, which finds what the rows before have inserted,": (
        "BEGIN INSERT INTO c (id, n) VALUES (NEW.id, NEW.n); DELETE FROM c WHERE n < NEW.m; END",
        "IF NEW.m THEN DELETE FROM c WHERE id = NEW.n; ELSE INSERT INTO c (id) VALUES (NEW.n); END IF",
        "BEGIN INSERT INTO c (id, n) VALUES (NEW.id, NEW.n); DELETE FROM c ORDER BY n, id LIMIT 1; END",
        "BEGIN INSERT INTO c (id, n) VALUES (NEW.id, NEW.n); IF NEW.m THEN DELETE FROM c WHERE n < 5; END IF; END",
        "BEGIN INSERT INTO c (id, n) VALUES (NEW.id, 7); DELETE FROM c WHERE n = @n; END",
        "BEGIN INSERT IGNORE INTO c (id, n) VALUES (NEW.id, 7); DELETE FROM c WHERE n < 5; END",
        "BEGIN DELETE FROM c WHERE n = 1 AND m = NEW.m; INSERT IGNORE INTO c (id, n) VALUES (NEW.id, 2); END",
        "BEGIN IF UPDATING AND NEW.n THEN DELETE FROM c WHERE id = NEW.n; END IF;"
        " IF INSERTING AND NEW.n THEN INSERT INTO c (id, n) VALUES (NEW.n, 0); END IF; END",
        "BEGIN DELETE FROM c WHERE n = 1 OR m = NEW.m; INSERT INTO c (id, n, m) VALUES (NEW.id, 2, NEW.m); END",
        "BEGIN DELETE FROM c WHERE id = OLD.id; INSERT INTO c (id, n) SELECT NEW.n, id FROM log; END",
        "BEGIN DELETE FROM c WHERE id = OLD.id; INSERT INTO c SELECT log.*, NEW.id FROM log; END",
        "BEGIN DELETE FROM c WHERE id = OLD.id; INSERT INTO c (id) SELECT NEW.id FROM log UNION SELECT 1; END",
        "BEGIN DELETE FROM c WHERE id = OLD.id; INSERT INTO c (id) SELECT id FROM log; END",
        "BEGIN DELETE FROM c WHERE id IN (OLD.id, NEW.code); INSERT INTO c (id, n) VALUES (NEW.id, NEW.n); END",
        *(
            f"BEGIN DECLARE v {kind}; {body} DELETE FROM c WHERE id = v; INSERT INTO c (id, n) VALUES (v, NEW.m); END"
            for kind, body in (
                ("INT", "SET v = NEW.n;"),
                ("INT", "SET v = 7;"),
                ("INT", ""),
                ("INT", "SET v = NEW.id; SET v = 7;"),
                ("INT", "SET v = NEW.id; SET v = NEW.n;"),
                ("INT", "SET v = NEW.id; SET @a = 1, v = 7;"),
                ("INT", "SET v = NEW.id; SELECT 7 INTO v;"),
                ("INT", "SET v = NEW.id; CALL p(v);"),
                ("INT", "IF NEW.n THEN SET v = NEW.id; END IF;"),
                ("INT", "IF NEW.n THEN SET @a = 1; SET v = NEW.id; END IF;"),
                ("INT", "DELETE FROM c WHERE id = v; SET v = NEW.id;"),
                ("TINYINT", "SET v = NEW.id;"),
                ("INT UNSIGNED", "SET v = NEW.id;"),
                ("VARCHAR(9)", "SET v = NEW.id;"),
            )
        ),
        "BEGIN DELETE FROM c WHERE id IN (OLD.id, 7); INSERT INTO c (id, n) VALUES (NEW.id, NEW.n); END",
        "BEGIN DELETE FROM c WHERE id = OLD.id OR n = NEW.id; INSERT INTO c (id, n) VALUES (NEW.id, NEW.n); END",
        "BEGIN DELETE FROM c WHERE id = OLD.id OR id = 7; INSERT INTO c (id, n) VALUES (NEW.id, NEW.n); END",
        "BEGIN DELETE FROM c WHERE id IN (OLD.n, NEW.n); INSERT INTO c (id, n) VALUES (NEW.n, 1); END",
    ),
    "a DELETE from a.c, which finds what the rows before have set,": (
        "BEGIN UPDATE c SET n = n + NEW.n WHERE id = 1; DELETE FROM c WHERE n > 100; END",
        "BEGIN UPDATE c SET n = n - OLD.m WHERE id = OLD.n; DELETE FROM c WHERE id = OLD.n AND n <= 0; END",
    ),
    "a DELETE from a.c, which finds what the rows before have left,": (
        "DELETE FROM c WHERE n < NEW.n ORDER BY n, id LIMIT 1",
    ),
    "an UPDATE of a.c, which finds what the rows before have inserted,": (
        "BEGIN UPDATE c SET n = 0 WHERE m = NEW.m; INSERT INTO c (id, m, n) VALUES (NEW.id, NEW.m, 1); END",
        "BEGIN UPDATE c SET f = NOW() WHERE m = NEW.m AND f IS NULL;"
        " INSERT INTO c (id, m, f) VALUES (NEW.id, NEW.m, NULL); END",
        "BEGIN UPDATE c SET m = m + 1 WHERE n >= NEW.n; INSERT INTO c (id, n, m) VALUES (NEW.id, NEW.n, 0); END",
        "BEGIN UPDATE c SET n = n + NEW.n WHERE m = NEW.m; INSERT INTO c (id, m, n) VALUES (NEW.id, NEW.m, NEW.n); END",
    ),
    "an UPDATE of a.c, which finds what the rows before have set,": (
        "BEGIN UPDATE c SET m = m + NEW.n WHERE id = 1; UPDATE c SET n = n + NEW.n WHERE id = 1 AND m < 5; END",
    ),
    "a DELETE from a.C, which finds what the rows before have inserted,": (
        "BEGIN DELETE FROM C WHERE n < 5; INSERT INTO c (id, n) VALUES (NEW.id, NEW.n); END",
    ),
    "a DELETE from a.by_time, which finds what the rows before have inserted,": (
        "BEGIN DELETE FROM by_time WHERE at < NOW() - INTERVAL 30 DAY; INSERT INTO by_time (at) VALUES (NEW.ts); END",
        "BEGIN DELETE FROM by_time WHERE at < NOW() - INTERVAL 0 DAY;"
        " INSERT INTO by_time (at, n) VALUES (NOW(), NEW.n); END",
        *(
            f"BEGIN DELETE FROM by_time WHERE {condition}; INSERT INTO by_time (at, n) VALUES (NOW(), NEW.n); END"
            for condition in (
                "at < DATE_ADD(NOW(), INTERVAL 30 DAY)",
                "at < DATE_SUB(NOW(), INTERVAL -30 DAY)",
                "at < DATE_SUB(NOW(), INTERVAL 0 DAY)",
                "at < DATE_SUB(NOW(), INTERVAL 1 SECOND)",
                "at < ADDDATE(CURDATE(), 30)",
                "at < DATE_SUB(NEW.ts, INTERVAL 30 DAY)",
                "at > NOW() - INTERVAL 30 DAY",
                "DATEDIFF(NOW(), at) < 30",
                "DATEDIFF(NOW(), at) >= 0",
                "DATEDIFF(NEW.ts, at) > 30",
                "30 > DATEDIFF(NOW(), at)",
            )
        ),
    ),
    "a DELETE from a.by_day, which finds what the rows before have inserted,": (
        *(
            f"BEGIN DELETE FROM by_day WHERE d = {day}; INSERT INTO by_day (d, n) VALUES ('2026-12-01', NEW.n); END"
            for day in ("'2026-12-01'", "'2026-02-30'", "'20261201'", "'26-12-01'")
        ),
        "BEGIN DELETE FROM by_day WHERE d < NOW() - INTERVAL 1 HOUR;"
        " INSERT INTO by_day (d, n) VALUES (NOW(), NEW.n); END",
    ),
    "a DELETE from a.by_name, which finds what the rows before have inserted,": (
        "BEGIN DELETE FROM by_name WHERE k = NEW.s; INSERT INTO by_name (k, n) VALUES (NEW.s, 0); END",
    ),
}
"""Bodies by what the rows before have done to the rows that a change of them finds."""
FOUND["an UPDATE of a.c, which finds what the rows before have inserted,"] += tuple(
    f"{begin}; UPDATE c SET n = n + NEW.m WHERE {condition}; END"
    for begin, condition in (
        ("BEGIN IF NEW.m THEN INSERT IGNORE INTO c (id, n) VALUES (NEW.n, 0); END IF", "id = NEW.n"),
        ("BEGIN INSERT IGNORE INTO c (id, n) VALUES (NEW.n, 0)", "id = NEW.n AND n > 5"),
        ("BEGIN INSERT IGNORE INTO c (id, n) VALUES (NEW.n, 0)", "id = NEW.m"),
        ("BEGIN INSERT IGNORE INTO c (id, n) VALUES (NEW.s, 0)", "id = NEW.s"),
        ("BEGIN INSERT INTO c (id, n) VALUES (NEW.n, 0)", "id = NEW.n"),
    )
)
FOUND["an UPDATE of a.c, which finds what the rows before have inserted,"] += (
    f"IF EXISTS (SELECT 1 FROM acc WHERE id = NEW.n) THEN UPDATE {ADDED};"
    " ELSE INSERT INTO c (id, n) VALUES (NEW.n, NEW.m); END IF",
)
FOUND["ON DUPLICATE KEY UPDATE into a.c, in which the first row or the last one remains,"] = (
    f"IF EXISTS (SELECT 1 FROM c WHERE id = NEW.n) THEN UPDATE {ADDED};"
    " ELSE INSERT INTO c (id, n) VALUES (NEW.n, NEW.id); END IF",
)
FOUND["a query of a.c, which the rows before have changed,"] = (
    "IF EXISTS (SELECT 1 FROM c WHERE id = NEW.n) THEN INSERT INTO log VALUES (NEW.id);"
    " ELSE INSERT INTO c (id, n) VALUES (NEW.n, 1); END IF",
    "IF EXISTS (SELECT 1 FROM c WHERE id = NEW.n) THEN SET NEW.m = 1; ELSE INSERT INTO c (id) VALUES (NEW.n); END IF",
    "IF EXISTS (SELECT 1 FROM c WHERE id = NEW.n) THEN SET @a = 1; ELSE INSERT INTO c (id) VALUES (NEW.n); END IF",
    *(
        f"IF {condition} THEN UPDATE {update}; ELSE INSERT {insert}; END IF"
        for condition, update, insert in (
            ("EXISTS (SELECT 1 FROM c WHERE id = NEW.m)", ADDED, "INTO c (id, n) VALUES (NEW.n, NEW.m)"),
            ("EXISTS (SELECT 1 FROM c WHERE id = NEW.n AND m = 1)", ADDED, "INTO c (id, n) VALUES (NEW.n, NEW.m)"),
            ("EXISTS (SELECT 1 FROM c WHERE id = NEW.n) OR NEW.m", ADDED, "INTO c (id, n) VALUES (NEW.n, NEW.m)"),
            ("EXISTS (SELECT 1 FROM c WHERE id = NEW.n)", ADDED, "INTO c (id, n) VALUES (NEW.m, NEW.m)"),
            ("EXISTS (SELECT 1 FROM c WHERE id = NEW.n)", f"{ADDED} OR n = 1", "INTO c (id, n) VALUES (NEW.n, NEW.m)"),
            ("EXISTS (SELECT 1 FROM c WHERE id = NEW.n)", ADDED, "IGNORE INTO c (id, n) VALUES (NEW.n, NEW.id)"),
            (
                "EXISTS (SELECT 1 FROM c WHERE n = NEW.n)",
                "c SET m = m + NEW.m WHERE n = NEW.n",
                "INTO c (n, m) VALUES (NEW.n, NEW.m)",
            ),
            (
                "EXISTS (SELECT 1 FROM c WHERE id = NEW.n)",
                "c SET id = NEW.m, n = n + NEW.m WHERE id = NEW.n",
                "INTO c (id, n) VALUES (NEW.n, NEW.m)",
            ),
        )
    ),
    "IF EXISTS (SELECT 1 FROM c WHERE id > NEW.n) THEN INSERT INTO c (id) VALUES (NEW.n); END IF",
    "IF EXISTS (SELECT 1 FROM c, acc WHERE c.id = NEW.n) THEN INSERT INTO c (id) VALUES (NEW.n); END IF",
    "IF EXISTS (SELECT 1 FROM c WHERE id = NEW.m) THEN INSERT INTO c (id) VALUES (NEW.n); END IF",
)
NOT_FOUND: Final = (
    "DELETE FROM c WHERE id = OLD.id",
    "DELETE FROM c WHERE n < OLD.n",
    "DELETE FROM c ORDER BY n, id LIMIT 1",
    "DELETE FROM c WHERE m = NEW.n ORDER BY n, id LIMIT 1",
    "BEGIN DELETE FROM c WHERE id = OLD.id; INSERT INTO c VALUES (NEW.id, NEW.n, 0, 0); END",
    "BEGIN DELETE FROM c WHERE id = OLD.id AND n = 0; INSERT INTO c (id, n, m) VALUES (NEW.id, NEW.n, NEW.id); END",
    "BEGIN DELETE FROM c WHERE id = NEW.n; INSERT INTO c (id, n) VALUES (NEW.n, 0); END",
    "BEGIN UPDATE c SET n = n - 1 WHERE id = OLD.n; DELETE FROM c WHERE id = OLD.n AND n = 0; END",
    "BEGIN UPDATE c SET n = n - OLD.m WHERE id = OLD.id; DELETE FROM c WHERE id = OLD.id AND n <= 0; END",
    "BEGIN UPDATE c SET f = NOW() WHERE id = OLD.id AND f IS NULL; INSERT INTO c (id, f) VALUES (NEW.id, NULL); END",
    "BEGIN UPDATE c SET m = m + 1 WHERE id = NEW.m; DELETE FROM c WHERE n = OLD.n; END",
    "BEGIN IF NEW.n THEN INSERT INTO c (id, n) VALUES (NEW.id, NEW.n); END IF; DELETE FROM c WHERE n < 5; END",
    "BEGIN DELETE FROM by_time WHERE at < NOW() - INTERVAL 30 DAY; INSERT INTO by_time (at, n) VALUES (NOW(), 1); END",
    *(
        f"BEGIN DELETE FROM by_time WHERE {condition}; INSERT INTO by_time (at, n) VALUES (NOW(), 1); END"
        for condition in (
            "at < DATE_SUB(NOW(), INTERVAL 30 DAY)",
            "at < SUBDATE(NOW(), INTERVAL 30 DAY)",
            "at < SUBDATE(CURDATE(), 30)",
            "at < DATE_ADD(CURRENT_TIMESTAMP, INTERVAL -30 DAY)",
            "at < CURDATE() - INTERVAL 1 MONTH",
            "NOW() - INTERVAL 30 DAY >= at AND n = 1",
            "DATEDIFF(NOW(), at) > 30",
            "30 <= DATEDIFF(CURDATE(), at)",
        )
    ),
    "BEGIN DELETE FROM by_day WHERE d < CURDATE() - INTERVAL 7 DAY; INSERT INTO by_day VALUES (CURDATE(), 1); END",
    "BEGIN DELETE FROM c WHERE id = OLD.id; INSERT INTO c (n, id) SELECT NEW.n, NEW.id FROM log WHERE x = NEW.m; END",
    "BEGIN INSERT INTO c (id, m) SELECT NEW.id, 1; UPDATE c SET m = 5 WHERE id = NEW.id AND m = 1; END",
    "BEGIN DECLARE v INT; SET v = NEW.id; DELETE FROM c WHERE id = v; INSERT INTO c (id, n) VALUES (v, NEW.n); END",
    "BEGIN DECLARE v INT; SET v = NEW.id; IF NEW.n THEN DELETE FROM c WHERE id = v AND n = 1; END IF;"
    " INSERT INTO c (n, id) VALUES (NEW.n, v); END",
    "BEGIN DELETE FROM c WHERE id IN (OLD.id, NEW.id); INSERT INTO c (id, n) VALUES (NEW.id, NEW.n); END",
    "BEGIN DELETE FROM c WHERE id = OLD.id OR id = NEW.id; INSERT INTO c (id, n) VALUES (NEW.id, NEW.n); END",
    "BEGIN DELETE FROM c WHERE n = 1 AND m = NEW.m; INSERT INTO c (id, n, m) VALUES (NEW.id, 2, NEW.m); END",
    "BEGIN UPDATE c SET m = NEW.m WHERE id = NEW.id; INSERT INTO log VALUES (NEW.n); DELETE FROM acc WHERE n = 1; END",
    "BEGIN INSERT IGNORE INTO c (id, n) VALUES (NEW.n, 0); UPDATE c SET n = n + NEW.m WHERE id = NEW.n; END",
    "BEGIN INSERT IGNORE INTO c (id, n) VALUES (NEW.n, 0); INSERT INTO log VALUES (NEW.id);"
    " UPDATE c SET n = n + NEW.m, f = NOW() WHERE id = NEW.n; END",
    "IF EXISTS (SELECT 1 FROM c WHERE id = NEW.n) THEN UPDATE c SET n = n + 1 WHERE id = NEW.n;"
    " ELSE INSERT INTO c (id, n) VALUES (NEW.n, 1); END IF",
    "IF EXISTS (SELECT 1 FROM c WHERE id = NEW.n) THEN UPDATE c SET n = n + NEW.m WHERE id = NEW.n;"
    " ELSE INSERT INTO c (id, n) VALUES (NEW.n, NEW.m); END IF",
    "IF EXISTS (SELECT 1 FROM by_bin WHERE k = NEW.k) THEN UPDATE by_bin SET n = n + NEW.m WHERE k = NEW.k;"
    " ELSE INSERT INTO by_bin (k, n) VALUES (NEW.k, NEW.m); END IF",
    "BEGIN IF NOT EXISTS (SELECT * FROM c WHERE c.id = NEW.n LIMIT 1) THEN INSERT INTO c SET id = NEW.n, n = NEW.m;"
    " ELSE UPDATE c AS x SET x.n = x.n + NEW.m WHERE x.id = NEW.n; END IF; INSERT INTO log VALUES (NEW.id); END",
    "BEGIN DECLARE v INT; SELECT n INTO v FROM c WHERE id = NEW.id; UPDATE c SET n = v + NEW.m WHERE id = NEW.id;"
    " INSERT INTO log VALUES (NEW.n, v); END",
)


@pytest.mark.parametrize(("body", "what"), [(body, what) for what, bodies in FOUND.items() for body in bodies])
def test_what_the_rows_before_have_done_is_named(body: str, what: str) -> None:
    assert what in named(body)


@pytest.mark.parametrize("body", NOT_FOUND)
def test_changes_that_find_rows_of_their_own_or_the_same_in_any_order_are_not(body: str) -> None:
    assert named(body) == []


def test_a_row_that_is_not_there_yet_has_no_rows_of_its_own() -> None:
    body = "BEGIN DELETE FROM c WHERE id = NEW.id; INSERT INTO c VALUES (NEW.id, NEW.n, 0, 0); END"
    assert named(body, "INSERT") == []
    assert named(body, "INSERT", is_before=True) != []


@pytest.mark.parametrize(("set_column", "is_named"), [("m", False), ("id", True)])
def test_a_row_that_gets_another_value_in_between_has_no_rows_of_its_own(set_column: str, is_named: bool) -> None:
    changes = "DELETE FROM c WHERE id = NEW.id; {}; INSERT INTO c (id, n) VALUES (NEW.id, NEW.n)"
    body = f"BEGIN {changes.format(f'SET NEW.{set_column} = 7')}; END"
    assert (named(body, is_before=True) != []) is is_named


DELETING: Final = "DELETE FROM c WHERE id = NEW.n"
INSERTING: Final = "INSERT INTO c (id, n) VALUES (NEW.n, NEW.m)"


def test_triggers_of_one_table_meet_by_their_tables() -> None:
    by_key = body_of("INSERT INTO c (id, n) VALUES (NEW.id, NEW.m)", name="u")
    assert found_beside(body_of(DELETING), body_of(INSERTING, name="u")) == [
        "a DELETE from a.c, which finds what the rows before have inserted,"
    ]
    assert found_beside(body_of(INSERTING), body_of(DELETING, name="u")) == []
    assert found_beside(body_of("DELETE FROM c WHERE id = OLD.id"), by_key) == []
    both = body_of(f"BEGIN {DELETING}; {INSERTING}; END", "", parameters="x int")
    assert found_beside(body_of("INSERT INTO acc (id) VALUES (NEW.id)"), both) == []


def test_rows_of_another_table_or_before_their_keys_are_not_told_apart_by_the_table_s_own_keys() -> None:
    by_key, other = body_of("UPDATE c SET n = NEW.n WHERE id = NEW.id"), "UPDATE c SET n = NEW.m WHERE id = NEW.id"
    named_so = ["an UPDATE of a.c in which the last row remains"]
    assert found_beside(by_key, body_of(other, name="u")) == []
    elsewhere = Difference(TableKey("a", "other"), "trigger a.u", "", "", is_trigger=True)
    assert found_beside(by_key, body_of(other, name="u")._replace(difference=elsewhere)) == named_so
    after, before = body_of("UPDATE c SET n = NEW.n WHERE id = NEW.id", "INSERT"), body_of(other, "INSERT", name="u")
    assert found_beside(after, before) == []
    assert found_beside(after, before._replace(is_before=True)) == named_so
    changes = f"BEGIN {DELETING}; {INSERTING}; END".replace("NEW.n", "NEW.id")
    assert found_beside(body_of(changes), body_of(changes, name="u")) == []
    assert found_beside(body_of(changes), body_of(changes, name="u")._replace(difference=elsewhere)) != []


def test_the_members_of_another_table_s_enum_are_not_known() -> None:
    body = "INSERT INTO by_name (k, n) VALUES (NEW.e, 1) ON DUPLICATE KEY UPDATE n = n + 1"
    elsewhere = Difference(TableKey("a", "other"), "trigger a.u", "", "", is_trigger=True)
    assert found_beside(body_of(body), body_of(body, name="u")) == []
    assert found_beside(body_of(body), body_of(body, name="u")._replace(difference=elsewhere)) != []


def test_an_update_of_a_view_may_set_any_column_of_its_table() -> None:
    body = body_of("BEGIN UPDATE c SET n = 2 WHERE id = NEW.m; UPDATE shown SET x = 7 WHERE y = NEW.n; END")
    assert found_beside(body) == []
    assert found_beside(body, bases={"shown": "c"}) != []
    body = body_of("IF NEW.m THEN UPDATE c SET n = 2; ELSE UPDATE shown SET x = 7; END IF")
    assert found_beside(body) == []
    assert found_beside(body, bases={"shown": "c"}) != []
    body = body_of("BEGIN REPLACE INTO c (id) VALUES (NEW.m); REPLACE INTO shown (x) VALUES (NEW.n); END")
    assert len(found_beside(body, bases={"shown": "c"})) == len(found_beside(body)) + 1


@pytest.mark.parametrize(("caller", "called"), [(DELETING, INSERTING), (INSERTING, DELETING)])
def test_a_routine_that_a_body_calls_meets_it(caller: str, called: str) -> None:
    routine = body_of(called.replace("NEW.n", "x"), "", parameters="x int")
    assert [*found_beside(body_of(caller), routine), *found_beside(routine, body_of(caller))] == [
        "a DELETE from a.c, which finds what the rows before have inserted,"
    ]


def test_a_view_shows_the_rows_of_its_table_under_other_names() -> None:
    body = body_of("BEGIN UPDATE shown SET x = x + NEW.n WHERE y = 1; DELETE FROM c WHERE n > 100; END")
    found = "a DELETE from a.c, which finds what the rows before have set,"
    assert found not in found_beside(body)
    assert found in found_beside(body, bases={"shown": "c"})
