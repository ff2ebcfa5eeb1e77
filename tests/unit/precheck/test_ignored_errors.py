"""Constraints that decide which rows a statement with IGNORE leaves out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

import pytest

from binlane.model import BlockHeader, Flavor, Item, ItemKind, LogPosition, SessionContext, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.precheck.account.privileges import Grants, parse_grants
from binlane.precheck.situation.situation import Needs, Situation
from binlane.precheck.tables import ignored_errors
from binlane.schema.compare import Severity
from binlane.schema.model import ForeignKey, Schema, Table
from binlane.schema.programs import Program
from binlane.servers.check_constraints import NOT_ENFORCED, is_of_json, query_of_clauses
from binlane.shards.selection import Selection
from binlane.work.logged_statements import LaneStatement
from tests.unit.precheck.situations import PLAN, applying, findings, said, schema, situation, target_of

CHILD, PARENT = TableKey("shop", "child"), TableKey("shop", "parent")
KEY = ForeignKey("fk", ("p",), PARENT, ("id",), "RESTRICT", "RESTRICT")
PLACE = LogPosition("binlog.000001", 4)
ALL: Final = parse_grants(("GRANT ALL PRIVILEGES ON *.* TO `b`@`%`",), {})
OF_SHOP: Final = parse_grants(("GRANT SELECT ON `shop`.* TO `b`@`%`",), {})


def tables(*keys: ForeignKey, flavor: Flavor = Flavor.MYSQL, elsewhere: bool = False) -> Schema:
    """A parent and a child. ``elsewhere``: a table of another database refers to the parent as well."""
    references = {(CHILD, each.parent) for each in keys}
    references |= {(TableKey("other", "child"), PARENT)} if elsewhere else set()
    child = Table(CHILD, "InnoDB", (), foreign_keys=keys)
    return schema(
        *(child, Table(PARENT, "InnoDB", ())),
        flavor=flavor,
        databases=frozenset({"shop"}),
        references=frozenset(references),
    )


def of(
    sql: str,
    source: Schema | None,
    target: Schema,
    checks: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
    behind: Alterations | None = None,
    grants: tuple[Grants, Grants] = (ALL, ALL),
    triggers: tuple[Program, ...] = (),
    **changes: Any,
) -> Situation:
    """A window of one statement, twice. ``checks``: of each table, the source's and the target's; ``behind``: what the
    source has altered since; ``grants``: of the account on either."""
    header = BlockHeader(5, 5, 1, PLACE, "", 0.0)
    logged = LaneStatement(0, header, Item(ItemKind.STATEMENT, sql.encode(), context=SessionContext(database="shop")))
    made = situation(
        target_of(target.flavor, ask=_asked(checks[1]), grants=grants[1]),
        tables=target,
        source=source,
        needs=changes.pop("needs", Needs(statements=True)),
        **changes,
    )
    server = SimpleNamespace(ask=_asked(checks[0]), altered_behind=lambda **_: behind, read_grants=lambda: grants[0])
    vars(made).update(
        transactions_with=lambda pattern: 2 * [(logged, header)] if pattern.search(sql.encode()) else [],
        source=None if source is None else server,
        stored_triggers=((), triggers),
        stored_programs=((), ()),
        program_names=frozenset(),
    )
    return made


def _asked(checks: tuple[str, ...]) -> Callable[..., Mapping[TableKey, tuple[str, ...]]]:
    """A server that has these CHECKs of each table, and is asked for them once for all databases."""
    asked = list[Collection[str]]()

    def answer(_: object, databases: Collection[str]) -> Mapping[TableKey, tuple[str, ...]]:
        asked.append(databases)
        assert len(asked) == 1
        return {TableKey(each, name): checks for each in databases for name in ("child", "parent", "audit")}

    return answer


WITH, WITHOUT = tables(KEY), tables()
INSERT: Final = "INSERT IGNORE INTO child VALUES (1, 99)"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (INSERT, "foreign keys of shop.child: expected (p) to shop.parent (id)"),
        ("INSERT LOW_PRIORITY IGNORE INTO child SELECT * FROM parent", "foreign keys of shop.child: expected (p) to"),
        ("UPDATE IGNORE child SET p = 99", "foreign keys of shop.child: expected (p) to"),
        ("LOAD DATA INFILE 'x' IGNORE INTO TABLE child", "foreign keys of shop.child: expected (p) to"),
        ("DELETE IGNORE FROM parent WHERE id = 1", "foreign keys of shop.parent: expected shop.child (p) to"),
        ("UPDATE IGNORE parent SET id = id + 1", "foreign keys of shop.parent: expected shop.child (p) to"),
    ],
)
def test_a_foreign_key_of_one_server_alone_is_named_where_its_error_is_ignored(sql: str, expected: str) -> None:
    [found] = said(of(sql, WITH, WITHOUT), "ignored-errors")
    assert f"statement of seqno 5, {sql}: {expected}" in found
    assert ", found none; errors are ignored, so other rows are left out" in found
    [other] = said(of(sql, WITHOUT, WITH), "ignored-errors")
    assert ": expected none, found " in other
    assert said(of(sql, WITH, WITH), "ignored-errors") == []
    assert said(of(sql, WITH, WITHOUT, channel=applying(allow_unsafe=True)), "ignored-errors") == []


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO child VALUES (1, 99)",
        "INSERT INTO child SELECT * FROM parent IGNORE INDEX (k)",
        "LOAD DATA INFILE 'x' INTO TABLE child IGNORE 1 LINES",
        "INSERT IGNORE INTO parent VALUES (1)",
        "DELETE IGNORE FROM other WHERE id = 1",
        "REPLACE INTO child VALUES (1, 99)",
    ],
)
def test_what_ends_with_an_error_is_not_looked_at(sql: str) -> None:
    """And neither are the children of a table that only gets rows."""
    assert said(of(sql, WITH, WITHOUT, (("a > 1",), ("a > 1",))), "ignored-errors") == []


@pytest.mark.parametrize(
    ("sql", "excluded"),
    [
        (INSERT, "shop.parent"),
        ("DELETE IGNORE FROM parent", "shop.child"),
        ("DELETE IGNORE FROM parent", "other.child"),
    ],
)
def test_a_key_that_the_target_lacks_by_the_filter_has_a_way_out_of_its_own(sql: str, excluded: str) -> None:
    source = tables(*([] if excluded == "other.child" else [KEY]), elsewhere=excluded == "other.child")
    [found] = said(of(sql, source, WITHOUT, selection=Selection(exclude_tables=(excluded,))), "ignored-errors")
    assert ", found none; " in found
    assert "take both tables, or have the source log rows" in found
    assert "give the target's table" not in found
    assert said(of(sql, source, source, selection=Selection(exclude_tables=(excluded,))), "ignored-errors") == []
    [other] = said(of(sql, source, WITHOUT, selection=Selection(exclude_tables=("shop.x",))), "ignored-errors")
    assert "give the target's table the source's constraints" in other
    [extra] = said(of(sql, WITHOUT, source, selection=Selection(exclude_tables=(excluded,))), "ignored-errors")
    assert "give the target's table the source's constraints" in extra


def test_other_keys_beside_one_that_the_filter_takes_away_are_named_beside_it() -> None:
    other = ForeignKey("g", ("q",), TableKey("shop", "u"), ("id",), "RESTRICT", "RESTRICT")
    chosen = Selection(exclude_tables=("shop.parent",))
    first, second = said(of(INSERT, tables(KEY, other), WITHOUT, selection=chosen), "ignored-errors")
    assert "expected (p) to shop.parent (id)" in first
    assert "(q)" not in first
    assert "expected (q) to shop.u (id)" in second
    assert "give the target's table" in second
    [alone] = said(of(INSERT, tables(KEY, other), tables(KEY), selection=chosen), "ignored-errors")
    assert "(p)" not in alone
    assert "give the target's table" in alone


@pytest.mark.parametrize("is_source", [True, False])
def test_a_child_in_a_database_that_the_window_does_not_name_counts(*, is_source: bool) -> None:
    both = (tables(elsewhere=True), WITHOUT) if is_source else (WITHOUT, tables(elsewhere=True))
    [found] = said(of("DELETE IGNORE FROM parent", *both), "ignored-errors")
    assert "other.child" in found
    assert said(of("DELETE IGNORE FROM parent", tables(elsewhere=True), tables(elsewhere=True)), "ignored-errors") == []


@pytest.mark.parametrize("is_source", [True, False])
def test_a_child_out_of_one_account_s_sight_is_named_and_nothing_is_refused(*, is_source: bool) -> None:
    """A channel of one application's databases, with an account that sees these alone."""
    both = (tables(elsewhere=True), WITHOUT) if is_source else (WITHOUT, tables(elsewhere=True))
    grants = (ALL, OF_SHOP) if is_source else (OF_SHOP, ALL)
    [found] = findings(of("DELETE IGNORE FROM parent", *both, grants=grants), "ignored-errors")
    assert found.severity is Severity.INFO
    assert "other.child" in str(found)
    [found] = findings(of("DELETE IGNORE FROM parent", *both, grants=grants[::-1]), "ignored-errors")
    assert found.severity is Severity.FATAL
    both = (tables(KEY, elsewhere=True), WITHOUT) if is_source else (WITHOUT, tables(KEY, elsewhere=True))
    fatal, told = findings(of("DELETE IGNORE FROM parent", *both, grants=grants), "ignored-errors")
    assert (fatal.severity, told.severity) == (Severity.FATAL, Severity.INFO)
    assert "other.child" not in str(fatal)


HANDLED: Final = "BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; INSERT INTO child VALUES (1, 99); END"


@pytest.mark.parametrize(
    ("body", "places"),
    [
        (INSERT, ["foreign keys of shop.child", "checks of shop.child"]),
        (HANDLED, ["foreign keys of shop.child", "checks of shop.child"]),
        (
            "DELETE IGNORE FROM parent WHERE id = OLD.id",
            ["foreign keys of shop.parent", "checks of shop.parent"],
        ),
        ("INSERT INTO child VALUES (1, 99)", []),
    ],
)
def test_a_trigger_that_ignores_errors_is_looked_at_like_a_statement(body: str, places: list[str]) -> None:
    fires = Program(TableKey("shop", "orders"), "trigger", body, name="x", time="AFTER INSERT")
    checks = (("a > 1",), ())
    sql = "INSERT INTO orders VALUES (1)"
    found = said(of(sql, WITH, WITHOUT, checks, triggers=(fires,)), "ignored-errors")
    assert [each for each in places if not any(f"trigger shop.x: {each}: " in one for one in found)] == []
    assert len(found) == len(places)
    assert said(of(sql, WITH, WITH, triggers=(fires,)), "ignored-errors") == []
    assert said(of("INSERT INTO other VALUES (1)", WITH, WITHOUT, triggers=(fires,)), "ignored-errors") == []


def test_each_key_is_looked_at_once_a_server_for_all_tables_of_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """An application's statement in each tenant's database, say."""
    parents, asked = [TableKey(f"t{at}", "parent") for at in range(50)], list[ForeignKey]()
    keys = [replace(KEY, parent=each) for each in parents]
    children = [Table(TableKey(each.parent.database, "child"), "InnoDB", (), foreign_keys=(each,)) for each in keys]
    databases = frozenset(each.database for each in parents)
    both = schema(*children, *(Table(each, "InnoDB", ()) for each in parents), databases=databases)

    def is_plain(key: ForeignKey) -> bool:
        asked.append(key)
        return True

    monkeypatch.setattr(ignored_errors, "_is_plain", is_plain)
    sql = f"UPDATE IGNORE {', '.join(map(str, parents))} SET {', '.join(f'{each}.id = 1' for each in parents)}"
    assert said(of(sql, both, both), "ignored-errors") == []
    # of the source, of the target, and of what leads to tables that the filter leaves out
    assert asked.count(keys[0]) == 2
    assert len(asked) == 2 * len(keys)


def test_a_key_that_changes_rows_is_compared_by_another_check() -> None:
    cascade = ForeignKey("fk", ("p",), PARENT, ("id",), "RESTRICT", "CASCADE")
    for sql in (INSERT, "DELETE IGNORE FROM parent"):
        assert said(of(sql, tables(cascade), WITHOUT), "ignored-errors") == []


@pytest.mark.parametrize(
    ("source", "target", "flavor", "is_refused"),
    [
        (("(`a` > 1)",), ("`a` > 1",), Flavor.MYSQL, False),
        (("a > 1",), ("a > 2",), Flavor.MYSQL, True),
        (("a > 1",), (), Flavor.MYSQL, True),
        ((), ("a > 1",), Flavor.MYSQL, True),
        (("a > 1", "a > 1"), ("a > 1",), Flavor.MYSQL, True),
        (("a <> 1",), ("a != 1",), Flavor.MARIADB, False),
        (("a <> 1",), (), Flavor.MARIADB, True),
    ],
)
def test_checks_that_are_not_alike_are_named(
    source: tuple[str, ...], target: tuple[str, ...], flavor: Flavor, is_refused: bool
) -> None:
    """The source is a MySQL server; between the families they are counted."""
    found = said(of(INSERT, WITH, tables(KEY, flavor=flavor), (source, target)), "ignored-errors")
    assert [": checks of shop.child: expected " in each for each in found] == [True] * is_refused


@pytest.mark.parametrize("name", [CHILD, PARENT], ids=str)
def test_a_table_that_a_statement_alters_is_not_compared(name: TableKey) -> None:
    altered, checks = Alterations({name: (3,)}), (("a > 1",), ())
    sql = "UPDATE IGNORE parent, child SET parent.id = 9, child.p = 9"
    assert len(said(of(sql, WITH, WITHOUT, checks), "ignored-errors")) == 4
    for of_it in (
        of(sql, WITH, WITHOUT, checks, plan=replace(PLAN, altered=altered)),
        of(sql, WITH, WITHOUT, checks, behind=altered),
    ):
        found = said(of_it, "ignored-errors")
        assert all(f" of {name}: " not in each for each in found)
        assert all("foreign keys of shop.parent: " not in each for each in found)
    assert said(of(sql, WITH, WITHOUT, checks, behind=Alterations({TableKey("a", "b"): (1,)})), "ignored-errors") != []


def test_an_archive_and_a_window_of_rows_are_not_asked_about() -> None:
    assert said(of(INSERT, None, WITHOUT), "ignored-errors") == []
    assert said(of(INSERT, WITH, WITHOUT, needs=Needs()), "ignored-errors") == []


def test_the_catalogue_of_checks_is_that_of_the_version() -> None:
    assert query_of_clauses(Flavor.MYSQL, "8.0.15") is None
    ours, theirs = query_of_clauses(Flavor.MYSQL, "8.0.16"), query_of_clauses(Flavor.MARIADB, "10.5.1-MariaDB")
    assert ours is not None
    assert theirs is not None
    assert NOT_ENFORCED in ours.text
    assert is_of_json("json_valid(`a``b`)")
    assert not is_of_json("json_valid(`a`) and `b` > 1")
