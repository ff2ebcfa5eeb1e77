"""Defaults that give other values on another server are found whatever literals stand beside them; and generated
columns with such literals are read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.model import BlockHeader, Flavor, Item, ItemKind, LogPosition, RowCounts, SessionContext, TableKey
from binlane.plan.window_plan import TableCounts
from binlane.precheck.situation.situation import Needs
from binlane.schema.letter_case import lower
from binlane.schema.model import Column, Generated, Table
from binlane.schema.normalize import expression_sql, mariadb_default, mysql_default
from binlane.schema.programs import Program
from binlane.sql.parse.lexer import Dialect, Token, lex
from binlane.sql.parse.unsafe import fills_by_default
from binlane.work.logged_statements import LaneStatement
from tests.unit.precheck.situations import PLAN, said, schema, situation, target_of

KEY = TableKey("shop", "t")
CONTEXT = SessionContext(database="shop", charset_client=45)
UUID = "found UUID() as the default of shop.t.c;"
UNREAD = "found a text that cannot be split into words as the default of shop.t.c;"


@pytest.mark.parametrize(
    ("flavor", "shown", "found"),
    [
        (Flavor.MARIADB, r"concat('it\'s ',uuid())", UUID),
        (Flavor.MARIADB, r"concat('a\\',uuid())", UUID),
        (Flavor.MARIADB, "'5' + uuid()", UUID),
        (Flavor.MARIADB, "concat('a,uuid())", UNREAD),
        (Flavor.MARIADB, r"'it''s (\\'", None),
        (Flavor.MARIADB, r"concat('uuid()','\'')", None),
        (Flavor.MYSQL, r"concat(_utf8mb4\'it\\\'s\',uuid())", UUID),
        (Flavor.MYSQL, r"concat(_utf8mb4\'a\\\\\',uuid())", UUID),
        (Flavor.MYSQL, r"concat(_utf8mb4\'uuid()\',_utf8mb4\'\\\'\')", None),
    ],
)
def test_a_default_is_read_as_its_server_means_it(flavor: Flavor, shown: str, found: str | None) -> None:
    spelled = mysql_default(shown, is_expression=True, is_binary=False)
    default = mariadb_default(shown) if flavor is Flavor.MARIADB else spelled
    table = Table(KEY, "InnoDB", (Column("id", 1, "int"), Column("c", 2, "varchar", default=default)))
    item = Item(ItemKind.STATEMENT, b"INSERT INTO t (id) VALUES (1)", context=SessionContext(database="shop"))
    header = BlockHeader(5, 5, 1, LogPosition("binlog.000007", 4711), "", 0.0)
    tables = schema(table, flavor=flavor)
    plan = replace(PLAN, flavor=flavor, written=frozenset({KEY}))
    made = situation(target_of(flavor), plan, tables, needs=Needs(statements=True))
    vars(made.target).update(has_table=lambda key: True, makes_temporary_tables=False)
    vars(made).update(
        stored_triggers=((), ()),
        stored_programs=((), ()),
        program_names=frozenset(),
        transactions_with=lambda _: [(LaneStatement(0, header, item), header)],
    )
    texts = said(made, "unsafe-bodies")
    assert [found is not None and found in text for text in texts] == ([] if found is None else [True]), texts


@pytest.mark.parametrize(
    ("sql", "is_left"),
    [
        ("INSERT INTO t VALUES ()", True),
        ("INSERT t VALUE ( )", True),
        ("INSERT INTO t VALUES (), ()", True),
        ("INSERT INTO t () VALUES ()", True),
        ("INSERT INTO t VALUES (1, NOW())", False),
        ("INSERT INTO t VALUES (1, 'x')", False),
        ("INSERT INTO t SET id = c", True),
        ("INSERT INTO t SET id = 1 ON DUPLICATE KEY UPDATE id = 2, c = 3", True),
        ("INSERT INTO t SET id = 1, t.c = 3", False),
        ("LOAD DATA INFILE 'f' INTO TABLE t", True),
        ("LOAD DATA INFILE 'f' INTO TABLE t CHARACTER SET utf8mb4 FIELDS TERMINATED BY ';'", True),
        ("LOAD DATA INFILE 'f' INTO TABLE t (id, c)", False),
        ("LOAD DATA INFILE 'f' INTO TABLE t CHARACTER SET utf8mb4 (id, c)", False),
    ],
)
def test_a_column_without_a_value_is_left_to_its_default(sql: str, is_left: bool) -> None:
    tokens = list[Token]()
    lex(sql, Dialect(Flavor.MARIADB), tokens)
    assert fills_by_default(tokens, sql, "C") is is_left


@pytest.mark.parametrize(
    ("flavor", "shown", "found"),
    [
        (Flavor.MARIADB, r"replace(lcase(`name`),'\'','')", False),
        (Flavor.MARIADB, r"concat('\'',json_object())", True),
        (Flavor.MYSQL, r"replace(lower(`name`),_utf8mb4\'\\\'\',_utf8mb4\'\')", False),
        (Flavor.MYSQL, r"concat(_utf8mb4\'\\\'\',json_object())", True),
    ],
)
def test_a_generated_column_is_read_as_its_server_means_it(flavor: Flavor, shown: str, found: bool) -> None:
    """``flavor``: of the target, whose catalogue has the column."""
    expression = expression_sql(shown, flavor)
    column = Column("c", 2, "varchar", generated=Generated.VIRTUAL, expression=expression)
    source = Flavor.MARIADB if flavor is Flavor.MYSQL else Flavor.MYSQL
    plan = replace(PLAN, flavor=source, tables={KEY: TableCounts(read=RowCounts(1), written=RowCounts(1))})
    made = situation(
        target_of(flavor, variables={"sql_mode": ""}), plan, schema(Table(KEY, "InnoDB", (column,)), flavor=flavor)
    )
    texts = said(made, "generated-columns")
    assert ["found JSON_OBJECT()" in text for text in texts] == ([True] if found else []), texts


@pytest.mark.parametrize("settings", [{}, {"lower_case_table_names": "1"}])
@pytest.mark.parametrize("name", ["T", "\u0130", "\u039f\u0394\u039f\u03a3"])
def test_the_default_is_that_of_the_table_which_the_server_means(name: str, settings: dict[str, str]) -> None:
    """Beside one whose name is the same to who pays no regard to case; also as Python has it."""
    plain, unsafe = (Column("c", 2, "varchar", default=default) for default in ("'x'", "uuid()"))
    other = Table(TableKey("shop", name.lower()), "InnoDB", (Column("id", 1, "int"), plain))
    typed = name if not settings else lower(name)
    meant = Table(TableKey("shop", typed), "InnoDB", (Column("id", 1, "int"), unsafe))
    tables = schema(*(() if settings else (other,)), meant, flavor=Flavor.MARIADB, settings=settings)
    item = Item(ItemKind.STATEMENT, f"INSERT INTO `{name}` (id) VALUES (1)".encode(), context=CONTEXT)
    header = BlockHeader(5, 5, 1, LogPosition("binlog.000007", 4711), "", 0.0)
    plan = replace(PLAN, flavor=Flavor.MARIADB, written=frozenset({TableKey("shop", name)}))
    made = situation(target_of(Flavor.MARIADB), plan, tables, needs=Needs(statements=True))
    vars(made.target).update(has_table=lambda key: True, makes_temporary_tables=False)
    vars(made).update(
        stored_triggers=((), ()),
        stored_programs=((), ()),
        program_names=frozenset(),
        transactions_with=lambda _: [(LaneStatement(0, header, item), header)],
    )
    assert [f"UUID() as the default of shop.{name}.c" in text for text in said(made, "unsafe-bodies")] == [True]


@pytest.mark.parametrize(
    ("body", "is_named"),
    [
        ("INSERT INTO crm.log (id) VALUES (NEW.id)", True),
        ("INSERT INTO crm.log SET id = NEW.id", True),
        ("BEGIN INSERT INTO crm.log (id, c) VALUES (NEW.id, 'given'); END", False),
        ("INSERT INTO crm.other (id) VALUES (NEW.id)", False),
    ],
)
def test_a_default_of_a_table_that_a_body_fills_counts_in_any_database(body: str, is_named: bool) -> None:
    statement = b"INSERT INTO t (id) VALUES (1)"
    item = Item(ItemKind.STATEMENT, statement, context=SessionContext(database="shop"))
    header = BlockHeader(5, 5, 1, LogPosition("binlog.000007", 4711), "", 0.0)
    columns = (Column("id", 1, "int"), Column("c", 2, "varchar", default="uuid()"))
    log = Table(TableKey("crm", "log"), "InnoDB", columns)
    plan = replace(PLAN, flavor=Flavor.MARIADB, written=frozenset({KEY}))
    given = schema(Table(KEY, "InnoDB", columns[:1]), flavor=Flavor.MARIADB)
    planned = schema(log, flavor=Flavor.MARIADB)
    made = situation(target_of(Flavor.MARIADB), plan, given, planned=planned, needs=Needs(statements=True))
    trigger = Program(KEY, "trigger", body, name="logging", time="AFTER INSERT")
    vars(made.target).update(has_table=lambda key: True, makes_temporary_tables=False)
    vars(made).update(
        stored_triggers=((), (trigger,)),
        stored_programs=((), ()),
        program_names=frozenset(),
        transactions_with=lambda _: [(LaneStatement(0, header, item), header)],
    )
    texts = said(made, "unsafe-bodies")
    assert ["UUID() as the default of crm.log.c, of trigger shop.logging" in each for each in texts] == [
        True
    ] * is_named
