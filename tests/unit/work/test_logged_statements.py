"""The distinct statements of a plan's lane files: every DDL, each form of DML once, and nothing of rows."""

from __future__ import annotations

import dataclasses
import itertools
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from binlane.errors import PlanError
from binlane.model import Flavor, Item, ItemKind, RowCounts, SessionContext
from binlane.plan.window_plan import LaneFile, WindowPlan
from binlane.precheck.situation.situation import _kinds_of_files
from binlane.sql.charset import decoded, dialect_of
from binlane.sql.parse.facts import StatementKind
from binlane.sql.parse.lexer import Token, TokenKind, Unreadable, lex
from binlane.work import lane_files, logged_statements
from binlane.work.files import WorkFolder
from binlane.work.logged_statements import distinct_statements, every_form, item_kinds
from tests.unit.plan.logs import filtered, rows
from tests.unit.work.test_lane_files import BLOCKS, EVERY_FIELD, header, write


@pytest.fixture
def folder(tmp_path: Path) -> WorkFolder:
    return WorkFolder(str(tmp_path / "plan"))


def planned(*files: LaneFile) -> WindowPlan:
    plan = filtered([rows(1, "a")]).plan
    return dataclasses.replace(plan, files=(files, (), (), ()), kinds={"rows": 1, "dml": 1})


def statements(folder: WorkFolder, items: Sequence[tuple[ItemKind, bytes, SessionContext]]) -> list[bytes]:
    blocks = [(header(at, at), [Item(kind, sql, context=context)]) for at, (kind, sql, context) in enumerate(items, 1)]
    found = distinct_statements(folder, planned(write(folder, blocks)))
    return [each.item.payload for each in found]


def test_a_statement_comes_with_its_session_and_its_block(folder: WorkFolder) -> None:
    found = list(distinct_statements(folder, planned(write(folder))))
    assert [(each.lane, each.header, each.item) for each in found] == [
        (0, BLOCKS[1][0], BLOCKS[1][1][0]),
        (0, BLOCKS[0][0], BLOCKS[0][1][1]),
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES (-27, 'it''s \\' 2'), (3, NULL), (0x4a, \"b\")"),
        ("UPDATE t SET a = 1.5e3 WHERE b = 'x'", "UPDATE t SET a = 7 WHERE b = ''"),
        ("/* trace 17 */ DELETE FROM t WHERE a = 1", "/* trace 18 * */ DELETE FROM t WHERE a = 2"),
        ("INSERT INTO t VALUES ('\xe4')", "INSERT INTO t VALUES ('\xff\xfe')"),
    ],
)
def test_statements_of_one_form_are_one_and_the_shortest_stands_for_it(
    one: str, other: str, folder: WorkFolder
) -> None:
    texts = [each.encode("latin-1") for each in (one, other)]
    items = [(ItemKind.STATEMENT, sql, EVERY_FIELD) for sql in texts]
    assert statements(folder, items) == [min(texts, key=len)]


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (ItemKind.DDL, "ALTER TABLE t COMMENT 'a'", "ALTER TABLE t COMMENT 'b'"),
        (ItemKind.STATEMENT, "INSERT INTO t1 VALUES (1)", "INSERT INTO t2 VALUES (1)"),
        (ItemKind.STATEMENT, "INSERT INTO `t1` VALUES (1)", "INSERT INTO `t2` VALUES (1)"),
        (ItemKind.STATEMENT, "INSERT INTO t VALUES (f(1))", "INSERT INTO t VALUES (g(1))"),
        (ItemKind.STATEMENT, "INSERT INTO t VALUES (1) /*!80000 x */", "INSERT INTO t VALUES (1) /*!80000 y */"),
        (ItemKind.STATEMENT, "INSERT INTO # '\n a.t # '\n VALUES (1)", "INSERT INTO # '\n b.t # '\n VALUES (1)"),
        (ItemKind.STATEMENT, "# '\nDELETE FROM t # '\n", "# '\nSHUTDOWN # '\n"),
        (ItemKind.STATEMENT, "DELETE FROM t -- '\n, a -- '\n", "DELETE FROM t -- '\n, b -- '\n"),
        (ItemKind.STATEMENT, "INSERT INTO /**/ a /**/ VALUES (1)", "INSERT INTO /**/ b /**/ VALUES (1)"),
        (ItemKind.STATEMENT, "INSERT INTO t SELECT 1 /* x */", "INSERT INTO t SELECT 1 2"),
        (ItemKind.STATEMENT, "INSERT INTO t SELECT 1.5FROM a", "INSERT INTO t SELECT 1.5INTO a"),
        (ItemKind.STATEMENT, "DELETE FROM a.1st", "DELETE FROM a.2nd"),
        (ItemKind.STATEMENT, "DELETE FROM 1st", "DELETE FROM 2nd"),
        (ItemKind.LOAD, "LOAD DATA INFILE 'x' INTO TABLE t", "LOAD DATA INFILE 'x' REPLACE INTO TABLE t"),
    ],
)
def test_statements_that_a_parser_distinguishes_are_kept_apart(
    kind: ItemKind, one: str, other: str, folder: WorkFolder
) -> None:
    items = [(kind, sql.encode(), EVERY_FIELD) for sql in (one, other, one)]
    assert sorted(statements(folder, items)) == sorted((one.encode(), other.encode()))


SESSIONS = (
    SessionContext(sql_mode=0, charset_client=45),
    SessionContext(sql_mode=4, charset_client=45),
    SessionContext(sql_mode=0x200, charset_client=45),
    SessionContext(sql_mode=1 << 20, charset_client=8),
    SessionContext(sql_mode=0, charset_client=28),
    SessionContext(sql_mode=0, charset_client=13),
)
"""Of default modes, ANSI_QUOTES, ORACLE (which makes it), NO_BACKSLASH_ESCAPES; in gbk and sjis."""
PIECES = (
    *(b"'", b"''", b'"', b"`", b"\\", b"#", b"--", b"-- ", b"\n", b" ", b"/*", b"/**/", b"*/", b"/*!", b"/*M!", b"*"),
    *(
        b"a",
        b"mysql",
        b"b.",
        b".",
        b"1",
        b"1e5",
        b"0x4a",
        b"1.5",
        b"\x83",
        b"\xe4`",
        b"$",
        b"@",
        b"(",
        b")",
        b",",
        b"NULL",
    ),
)


@pytest.mark.parametrize("context", SESSIONS, ids=lambda each: f"{each.sql_mode}-{each.charset_client}")
def test_statements_of_one_form_have_the_same_tokens(context: SessionContext) -> None:
    chosen = random.Random(1)
    texts = [b"".join(chosen.choices(PIECES, k=chosen.randint(1, 9))) for _ in range(10_000)]
    sessions = pa.chunked_array([pa.array([lane_files._context_text(context)] * len(texts))])
    forms = logged_statements.forms_of(pa.chunked_array([pa.array(texts, pa.binary())]), sessions)
    alike: dict[bytes, list[bytes]] = {}
    for form, text in zip(forms.to_pylist(), texts, strict=True):
        alike.setdefault(form, []).append(text)
    differing = []
    for flavor, group in itertools.product(Flavor, alike.values()):
        read = {text: kept for text in set(group) if (kept := kept_tokens(text, context, flavor)) is not None}
        if len(set(read.values())) > 1:
            differing.append(read)
    assert differing == []
    assert len(alike) < len(set(texts))


def kept_tokens(text: bytes, context: SessionContext, flavor: Flavor) -> tuple[str, ...] | None:
    """The tokens without the values of literals, signs and lists of values; None for what is no SQL."""
    tokens: list[Token] = []
    try:
        lex(decoded(text, context), dialect_of(context, flavor), tokens)
    except Unreadable:
        return None
    words = ("?" if each.kind in LITERALS else each.upper or each.text for each in tokens)
    kept = "\0".join("?" if each == "NULL" else each for each in words)
    for pattern, value in ((r"[-+*]\0\?", "?"), (r"\(\0\?(\0,\0\?)*\0\)", "(?)"), (r"\(\?\)(\0,\0\(\?\))+", "(?)")):
        kept = re.sub(pattern, value, kept)
    return tuple(kept.split("\0"))


LITERALS = (TokenKind.STRING, TokenKind.NUMBER)
PARSED = (
    *("database", "sql_mode", "charset_client", "collation_connection", "collation_server", "collation_database"),
    "default_collation_for_utf8mb4",
)
OWN = ("timestamp", "insert_id", "last_insert_id", "rand_seeds", "user_variables", "thread_id", "logged_text")


@pytest.mark.parametrize("name", PARSED)
def test_the_session_that_a_parser_asks_for_is_part_of_a_statement(name: str, folder: WorkFolder) -> None:
    changes: dict[str, Any] = {name: "other" if name == "database" else 7}
    other = dataclasses.replace(EVERY_FIELD, **changes)
    items = [(ItemKind.STATEMENT, b"DELETE FROM t", context) for context in (EVERY_FIELD, other)]
    assert len(statements(folder, items)) == 2


@pytest.mark.parametrize("name", OWN)
def test_timestamps_ids_and_user_variables_do_not_distinguish_statements(name: str, folder: WorkFolder) -> None:
    values: dict[str, Any] = {
        "timestamp": 1.5,
        "rand_seeds": (3, 4),
        "user_variables": (("a", "'x\" y'"), ("b", "1")),
        "logged_text": "QQ==",
    }
    other = dataclasses.replace(EVERY_FIELD, **{name: values.get(name, 99)})
    items = [(ItemKind.STATEMENT, b"DELETE FROM t", context) for context in (EVERY_FIELD, other)]
    assert len(statements(folder, items)) == 1


def test_no_spelling_of_a_session_hides_a_part_of_it(folder: WorkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    spelled = (
        '{{"user_variables": [["a", "1"]] , "sql_mode": {}, "character_set_collations": [[1, 2]], "thread_id": 1}}'
    )
    monkeypatch.setattr(lane_files, "_context_text", lambda context: spelled.format(context.sql_mode))
    items = [(ItemKind.STATEMENT, b"DELETE FROM t", SessionContext(sql_mode=mode)) for mode in (0, 4)]
    assert len(statements(folder, items)) == 2


def test_forms_are_bounded_and_ddl_is_not(folder: WorkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged_statements, "MOST_FORMS", 2)
    items = [(ItemKind.STATEMENT, f"DELETE FROM t{at}".encode(), EVERY_FIELD) for at in range(5)]
    items += [(ItemKind.DDL, f"DROP TABLE t{at}".encode(), EVERY_FIELD) for at in range(5)]
    found = statements(folder, items)
    assert [sql[:4] for sql in found].count(b"DELE") == 2
    assert [sql[:4] for sql in found].count(b"DROP") == 5


def test_groups_of_rows_alone_are_not_read(folder: WorkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_files, "_ROW_GROUP_BYTES", 1)
    blocks = [
        (header(1, 1), [Item(ItemKind.ROWS, b"x", RowCounts(1))]),
        (header(2, 2), [Item(ItemKind.DDL, b"DROP TABLE t", context=SessionContext())]),
    ]
    plan = planned(write(folder, blocks))
    read: list[int] = []
    whole = pq.ParquetFile.read_row_group

    def noted(self: pq.ParquetFile, at: int, **named: Any) -> pa.Table:
        read.append(at)
        return whole(self, at, **named)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", noted)
    assert item_kinds(folder, plan) == {ItemKind.ROWS, ItemKind.DDL}
    read.clear()
    assert [each.item.payload for each in distinct_statements(folder, plan)] == [b"DROP TABLE t"]
    assert read == [1]


def test_a_file_of_rows_alone_is_opened_once(folder: WorkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each opening reads all of it, for its digest."""
    plan = planned(write(folder, [(header(1, 1), [Item(ItemKind.ROWS, b"x", RowCounts(1))])]))
    opened = list[str]()
    whole = lane_files.open_parquet

    def noted(of: WorkFolder, name: str, digest: str | None = None) -> Any:
        opened.append(name)
        return whole(of, name, digest)

    monkeypatch.setattr(logged_statements, "open_parquet", noted)
    assert item_kinds(folder, plan) == {ItemKind.ROWS}
    assert [*every_form(folder, plan), *distinct_statements(folder, plan)] == []
    assert len(opened) == 1


def test_what_a_plan_or_statistics_say_hides_no_statement(folder: WorkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [
        (header(1, 1), [Item(ItemKind.ROWS, b"x", RowCounts(1))]),
        (header(2, 2), [Item(ItemKind.DDL, b"DROP TABLE t", context=SessionContext())]),
    ]
    plan = dataclasses.replace(planned(write(folder, blocks)), kinds={"rows": 2})
    assert [each.item.payload for each in distinct_statements(folder, plan)] == [b"DROP TABLE t"]
    assert item_kinds(folder, plan) == {ItemKind.ROWS, ItemKind.DDL}
    logged_statements._kinds_of_file.cache_clear()
    monkeypatch.setattr(logged_statements, "_says_rows", lambda *_: True)
    with pytest.raises(PlanError, match="expected statistics of its rows, found statements in part 0"):
        item_kinds(folder, plan)


def test_a_damaged_file_is_named(folder: WorkFolder) -> None:
    file = write(folder)
    Path(folder.path(file.name)).write_bytes(b"nothing")
    with pytest.raises(PlanError, match="the file was changed or is damaged"):
        list(distinct_statements(folder, planned(file)))


@pytest.mark.parametrize(
    ("sql", "kinds"),
    [
        # servers log it at each connection's end, in windows of rows, too
        (b"DROP TEMPORARY TABLE IF EXISTS t", {StatementKind.DDL}),
        (b"UPDATE t SET a = 1", {StatementKind.DML}),
    ],
)
def test_the_kinds_that_a_plan_does_not_count_are_those_of_the_texts(
    folder: WorkFolder, sql: bytes, kinds: set[StatementKind]
) -> None:
    item = Item(ItemKind.STATEMENT, sql, context=SessionContext(database="d"))
    plan = dataclasses.replace(planned(write(folder, [(header(1, 1), [item])])), kinds={"rows": 1, "ddl": 1})
    assert _kinds_of_files(folder, plan) == kinds
    assert _kinds_of_files(folder, dataclasses.replace(plan, kinds={"dml": 1})) == set()
