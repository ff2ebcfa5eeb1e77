"""One thing that is wrong is found by one check, by the name that users read; and each check has a test of its name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import Mock

import pytest

from binlane.binlog.rows_payload import payload_limit
from binlane.errors import PrecheckError, SourceError
from binlane.model import BlockHeader, Flavor, Item, ItemKind, LogPosition, RowCounts, SessionContext, TableKey
from binlane.plan.division import Division
from binlane.plan.window_plan import RuleCounts, TableCounts, WindowPlan
from binlane.precheck.account.privileges import Grants, parse_grants
from binlane.precheck.bodies import row_order
from binlane.precheck.checks import ASKED_AGAIN, CHECKS, OF_PROGRAMS, TARGET_CHECKS, checks_of, run_checks
from binlane.precheck.definitions.noted import foreign_keys_as_they_are
from binlane.precheck.situation import situation as situation_module
from binlane.precheck.situation.facts import Accounts
from binlane.precheck.situation.finding import Finding, raise_if_fatal
from binlane.precheck.situation.parser import ParserAnswers, Verdict
from binlane.precheck.situation.situation import Needs, Situation, TargetSituation
from binlane.precheck.target import open_transactions
from binlane.precheck.target.portability import unsupported
from binlane.schema.compare import Severity
from binlane.schema.model import Column, ForeignKey, Generated, Key, KeyColumn, Schema, Table, Trigger
from binlane.schema.programs import Program
from binlane.servers.catalog import read_schema
from binlane.shards.selection import EVERYTHING, Selection
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.lexer import Unreadable
from binlane.sql.requirements import (
    BARE_CHARSET,
    CASCADE_TRIGGERS,
    COMPUTED_MODE,
    CONVERTED,
    DEFINER,
    PRIVILEGE,
    UNLOGGED_LENGTH,
    Requirement,
)
from binlane.work.logged_statements import LaneStatement
from tests.unit.binlog.row_events import EVERY_COLUMN, table_map_body
from tests.unit.plan.logs import settings
from tests.unit.precheck.situations import PLAN, applying, said, schema, situation, target_of

TESTS: Final = Path(__file__).parents[2]
KEY: Final = TableKey("shop", "t")
KEYS: Final = frozenset({KEY})
ALL: Final = parse_grants(["GRANT ALL PRIVILEGES ON *.* TO `x`@`%` WITH GRANT OPTION"])
SELECT: Final = parse_grants(["GRANT SELECT ON *.* TO `x`@`%`"])
VARIABLES: Final = {
    "binlog_format": "ROW", "gtid_mode": "ON", "local_infile": "ON", "log_bin": "ON", "max_allowed_packet": "67108864",
    "max_connections": "151", "plugin_dir": "/plugins", "table_definition_cache": "400", "table_open_cache": "400",
    "log_bin_trust_function_creators": "ON",
}  # fmt: skip
ID: Final = Column("id", 1, "int")


def facts(*, grants: Grants = ALL, flavor: Flavor = Flavor.MYSQL, version: str | None = None, **variables: str) -> Any:
    """A target on which nothing stands in the way, but for what is given."""
    return target_of(
        flavor, version, variables={**VARIABLES, **variables}, grants=grants, grant_lines=(), account="x@%",
        accounts=Accounts(), roles=frozenset(), loadable_functions={},
        read_only_databases=frozenset(), encrypting_databases=frozenset(), connection_numbers=(7, 7, 7),
        own_connections=0,
    )  # fmt: skip


def table(key: TableKey = KEY, engine: str = "InnoDB", columns: tuple[Column, ...] = (ID,), **changes: Any) -> Table:
    return Table(key, engine, columns, **changes)


def with_source(
    made: Situation, *, grants: Grants = ALL, behind: Sequence[LoggedText] = (), **variables: str
) -> Situation:
    """The same with a source that has the target's tables and these variables; ``behind``: its later definitions."""
    values = {"version": made.target.version, **variables}
    vars(made).update(
        source=SimpleNamespace(
            ask=lambda *_: values, read_schema=lambda: made.tables, read_grants=lambda: grants,
            definitions_behind=lambda: behind, unreadable=tuple, account="x@%",
        )
    )  # fmt: skip
    return made


def text(statement: str, seqno: int = 5) -> LoggedText:
    item = Item(ItemKind.DDL, statement.encode(), context=SessionContext(database="shop"))
    found = LoggedText.of(seqno, LogPosition("binlog.000007", 4711), item, Flavor.MYSQL)
    assert found is not None
    return found


def with_texts(*statements: str) -> Situation:
    """A window of these statements, for a target without another object."""
    made = situation(facts(), texts=[text(each) for each in statements])
    vars(made.target).update(has_table=lambda key: False, has_routine=lambda key: False)
    return made


def plan(**changes: Any) -> WindowPlan:
    return replace(PLAN, **changes)


def with_other_writers(*found: tuple[str, str]) -> Situation:
    made = situation(facts())
    vars(made).update(other_writers=found)
    return made


def with_statement(sql: str, *triggers: Program, selection: Selection = EVERYTHING, **changes: Any) -> Situation:
    """A window of one statement, for a target with these triggers."""
    made = situation(facts(), needs=Needs(statements=True), selection=selection, **changes)
    item = Item(ItemKind.STATEMENT, sql.encode(), context=SessionContext(database="shop"))
    header = BlockHeader(5, 5, 1, LogPosition("binlog.000007", 4711), "", 0.0)
    vars(made.target).update(has_table=lambda key: True, makes_temporary_tables=False)
    vars(made).update(
        stored_triggers=((), triggers),
        stored_programs=((), ()),
        program_names=frozenset(),
        transactions_with=lambda _: [(LaneStatement(0, header, item), header)],
    )
    return made


ROUTINES: Final = {
    "makes": "BEGIN CREATE TEMPORARY TABLE made (a INT); RETURN 1; END",
    "missing": "BEGIN CREATE TEMPORARY TABLE IF NOT EXISTS made (a INT); RETURN 1; END",
    "drops": "BEGIN DROP TEMPORARY TABLE made; RETURN 1; END",
    "unread": None,
}
PROGRAMS: Final = tuple(Program(TableKey("shop", name), "function", body) for name, body in ROUTINES.items())


def with_calls(*statements: str, blocks: tuple[int, ...] = (), **changes: Any) -> Situation:
    """Transactions from seqno 5 on; ``blocks``: the first seqno of each one's block, if it is not its own."""
    target = facts()
    vars(target).update(makes_temporary_tables=True, programs=PROGRAMS, triggers=(), has_table=lambda key: False)
    made = situation(target, **{"needs": Needs(statements=True), **changes})
    found = []
    for seqno, sql in enumerate(statements, 5):
        header = BlockHeader(seqno, seqno, 1, LogPosition("binlog.000007", 4711), "", 0.0)
        item = Item(ItemKind.STATEMENT, sql.encode(), context=SessionContext(database="shop", thread_id=7))
        block = replace(header, first_seqno=blocks[seqno - 5] if blocks else seqno)
        found.append((LaneStatement(0, header, item), block))
    vars(made).update(
        program_names=frozenset(),
        transactions_with=lambda pattern: [each for each in found if pattern.search(each[0].item.payload)],
    )
    return made


def logged_as(*columns: str, flavor: Flavor = Flavor.MYSQL) -> WindowPlan:
    """A plan with rows of a table with columns of these types, at seqno 5."""
    body = table_map_body(1, [EVERY_COLUMN[name] for name in columns])[6:]
    return plan(flavor=flavor, table_maps={KEY: {body.hex(): 5}})


def refused(sql: str, seqno: int = 5) -> ParserAnswers:
    header = BlockHeader(seqno, seqno, 1, LogPosition("binlog.000007", 4711), "", 0.0)
    item = Item(ItemKind.DDL, sql.encode(), context=SessionContext(database="shop"))
    return ParserAnswers(refused=[(LaneStatement(0, header, item), Verdict(1064, "You have an error", "syntax"))])


MYISAM: Final = schema(table(engine="MyISAM"))
SEQUENCE: Final = table(columns=(Column("next_not_cached_value", 1, "bigint", nullable=False),))
CASCADE: Final = ForeignKey("fk", ("id",), TableKey("shop", "parent"), ("id",), "RESTRICT", "CASCADE")
WINDOWS: Final[Mapping[str, tuple[Situation, str]]] = {
    "statement-privileges": (
        situation(facts(grants=SELECT), plan(requirements={Requirement(PRIVILEGE, "", "RELOAD"): 5})),
        "target: privilege RELOAD for the statement of seqno 5",
    ),
    "definers": (
        situation(facts(grants=SELECT), plan(requirements={Requirement(DEFINER, "view shop.v", "other@%"): 5})),
        "view shop.v: definer other@%, in the statement of seqno 5",
    ),
    "table-definitions": (situation(facts(), plan(loaded=KEYS)), "shop.t: table"),
    "sql-writer": (
        situation(facts(), tables=schema(table(triggers=(Trigger("tr", "BEFORE", "INSERT"),))), by_sql=KEYS),
        "shop.t: triggers",
    ),
    "long-statements": (
        situation(
            facts(), plan(longest_statement=(1 << 21, 5)), schema(settings={"max_allowed_packet": "1048576"}),
            settings=settings(largest_bytes=1 << 16),
        ),
        "statement of seqno 5",
    ),
    "filtered-parents": (
        situation(
            facts(), tables=schema(table(foreign_keys=(CASCADE,))),
            selection=Selection(exclude_tables=("shop.parent",)),
        ),
        "shop.t: foreign key fk",
    ),
    "renamed-databases": (
        situation(
            facts(), settings=settings(renames=[["old", "new"]]),
            source=schema(databases=frozenset({"old", "new"})),
        ),
        "new: database",
    ),
    "unseen-tables": (
        with_source(situation(facts(), plan(written=KEYS), schema(table())), grants=parse_grants([])),
        "source: privilege SELECT on shop.t",
    ),
    "other-channels": (with_other_writers(("shop", "crm")), "target: database shop"),
    "rolled-back-engines": (
        situation(
            facts(), plan(undone=KEYS), MYISAM, source=schema(table()), channel=applying(allow_nontransactional=True)
        ),
        "shop.t: engine",
    ),
    "gtid-consistency": (
        situation(
            facts(gtid_mode="OFF"), plan(written=KEYS),
            replace(MYISAM, settings={"enforce_gtid_consistency": "ON"}),
            channel=applying(allow_nontransactional=True),
        ),
        "shop.t: engine",
    ),
    "letter-case": (
        situation(
            facts(), plan(spelled=frozenset({TableKey("Shop", "t")})), source=schema(),
            tables=schema(settings={"lower_case_table_names": "1"}),
        ),
        "Shop.t: letters' case",
    ),
    "unsafe-statements": (situation(facts(), plan(unsafe={"UUID()": 5})), "statement of seqno 5"),
    "features": (
        situation(facts(), plan(requirements={Requirement("UUID column", "shop.t.id"): 5})),
        "shop.t.id: UUID column, in the statement of seqno 5",
    ),
    "syntax": (
        situation(facts(), read_statements=lambda: refused("ALTER TABLE t WAIT 5 ADD x INT")),
        "binlog.000007:4711: statement of seqno 5, GTID -, ALTER TABLE t WAIT 5 ADD x INT",
    ),
    "copied-engines": (
        situation(
            facts(), plan(written=frozenset({TableKey("shop", "made")})), MYISAM,
            texts=[text("CREATE TABLE shop.made LIKE shop.t")],
        ),
        "binlog.000007:4711: statement of seqno 5, CREATE TABLE shop.made LIKE shop.t: engine of shop.made",
    ),
    "grants": (
        situation(facts(grants=SELECT), texts=[text("GRANT DROP ON shop.* TO y")]),
        "binlog.000007:4711: statement of seqno 5, GRANT DROP ON shop.* TO y",
    ),
    "granted-objects": (
        with_texts("GRANT SELECT ON shop.v TO y"),
        "binlog.000007:4711: statement of seqno 5, GRANT SELECT ON shop.v TO y",
    ),
    "generated-columns": (
        situation(
            facts(),
            plan(
                tables={KEY: TableCounts(read=RowCounts(1), written=RowCounts(1))},
                requirements={Requirement(COMPUTED_MODE, "session", "TIME_TRUNCATE_FRACTIONAL"): 5},
            ),
            schema(table(keys=(Key("k", False, False, (KeyColumn(None, expression="cast(`id` as time(1))"),)),))),
            by_sql=KEYS,
        ),
        "shop.t: key k over a generated column",
    ),
    "fulltext-programs": (
        with_statement(
            "INSERT INTO t VALUES (1)",
            Program(KEY, "trigger", "SET NEW.id = (SELECT 1 FROM u WHERE MATCH (s) AGAINST ('a'))", name="x"),
        ),
        "binlog.000007:4711: statement of seqno 5, INSERT INTO t VALUES (1)",
    ),
    "account-programs": (
        with_statement(
            "INSERT INTO t VALUES (1)",
            Program(KEY, "trigger", "SET @x = USER() LIKE 'lane@%'", name="x"),
            selection=Selection(include_databases=("shop",)),
            # which other checks obey
            channel=applying(allow_unsafe=True),
        ),
        "trigger shop.x",
    ),
    "other-modes": (
        with_statement(
            "UPDATE `é` SET n = 1", channel=applying(), tables=schema(table(TableKey("shop", "Ã©"), "InnoDB", (ID,)))
        ),
        "binlog.000007:4711: statement of seqno 5, UPDATE `é` SET n = 1",
    ),
    "unsafe-bodies": (
        with_statement("INSERT INTO t VALUES (1)", Program(KEY, "trigger", "SET @x = UUID()", name="x")),
        "binlog.000007:4711: statement of seqno 5, INSERT INTO t VALUES (1)",
    ),
    "unread-bodies": (
        with_statement("INSERT INTO t VALUES (1)", Program(KEY, "trigger", "SHOW TABLES", name="x")),
        "binlog.000007:4711: statement of seqno 5, INSERT INTO t VALUES (1)",
    ),
    "session-variables": (
        with_source(
            situation(
                facts(div_precision_increment="4"),
                plan(tables={KEY: TableCounts(read=RowCounts(1), written=RowCounts(1))}),
                schema(table(columns=(ID, Column("n", 2, "int", generated=Generated.STORED, expression="(`id` / 3)")))),
            ),
            div_precision_increment="8",
        ),
        "shop.t, with an expression of a column or key: div_precision_increment of the target",
    ),
    "unlogged-lengths": (
        situation(
            facts(mysql56_temporal_format="ON"),
            plan(
                tables={KEY: TableCounts(read=RowCounts(1), written=RowCounts(1))},
                requirements={Requirement(UNLOGGED_LENGTH, "shop.t"): 5},
            ),
            schema(table()),
        ),
        "shop.t",
    ),
    "read-only-databases": (
        situation(
            facts(), texts=[text("ALTER SCHEMA shop READ ONLY = 1", 5), text("CREATE TABLE shop.n (a INT)", 6)]
        ),
        "shop: database, at seqno 6",
    ),
    "default-databases": (
        with_statement(
            "INSERT INTO tenant.t VALUES (DATABASE())",
            settings=settings(filters=Selection(exclude_databases=("shop",)).to_values()),
            planned=schema(databases=frozenset({"tenant"})),
        ),
        "binlog.000007:4711: statement of seqno 5, INSERT INTO tenant.t VALUES (DATABASE())",
    ),
    "libraries": (
        situation(facts(), texts=[text("CREATE FUNCTION f RETURNS INT SONAME 'f.so'")]),
        "binlog.000007:4711: statement of seqno 5, CREATE FUNCTION f RETURNS INT SONAME 'f.so'",
    ),
    "temporary-tables": (
        with_calls("SELECT makes()", "SELECT drops()"),
        "binlog.000007:4711: statement of seqno 6, SELECT drops()",
    ),
    "table-settings": (
        situation(facts(disabled_storage_engines="CSV"), texts=[text("CREATE TABLE c (a INT NOT NULL) ENGINE=CSV")]),
        "binlog.000007:4711: statement of seqno 5, CREATE TABLE c (a INT NOT NULL) ENGINE=CSV: "
        "disabled_storage_engines of the target",
    ),
    "logged-types": (
        situation(facts(flavor=Flavor.MARIADB), logged_as("vector"), schema(flavor=Flavor.MARIADB)),
        "shop.t, column 1: type, in the rows of seqno 5",
    ),
    "sequences": (
        situation(facts(flavor=Flavor.MARIADB, version="10.5.23-MariaDB"), logged_as("longlong", flavor=Flavor.MARIADB),
            schema(SEQUENCE, flavor=Flavor.MARIADB, version="10.5.23-MariaDB"),
        ),
        "shop.t: sequence",
    ),
    "system-versioning": (
        situation(
            facts(flavor=Flavor.MARIADB, version="11.8.6-MariaDB"),
            replace(
                logged_as("long", flavor=Flavor.MARIADB), requirements={Requirement("system versioning", "shop.t"): 4}
            ),
            schema(flavor=Flavor.MARIADB, version="11.8.6-MariaDB"),
            logged_by=frozenset({"10.11.14-MariaDB"}),
        ),
        "shop.t: end of current rows",
    ),
    "transaction-histories": (
        situation(
            facts(flavor=Flavor.MARIADB),
            plan(
                written=frozenset({TableKey("shop", "t")}),
                requirements={Requirement("history by transaction ids", "shop.t"): 5}, flavor=Flavor.MARIADB,
            ),
            schema(flavor=Flavor.MARIADB),
        ),
        "shop.t: history by transaction ids",
    ),
    "logged-tables": (situation(facts(), logged_as("long", "long"), schema(table())), "shop.t: logged columns"),
}  # fmt: skip
"""By check: a window that has one thing wrong, and where the finding says that it is."""
TARGETS: Final[Mapping[str, tuple[TargetSituation, Severity, str]]] = {
    "target-version": (TargetSituation(facts(version="8.0.25"), Needs(by_statements=True)), Severity.FATAL, "version"),
    "proxy": (TargetSituation(facts(), Needs()), Severity.FATAL, "CONNECTION_ID()"),
    "privileges": (
        TargetSituation(facts(grants=parse_grants([])), Needs()), Severity.FATAL, "privilege BINLOG_ADMIN",
    ),
    "max-allowed-packet": (
        TargetSituation(facts(max_allowed_packet="4096"), Needs(biggest_item=4096)),
        Severity.FATAL, "max_allowed_packet",
    ),
    "binlog-format": (TargetSituation(facts(binlog_format="STATEMENT"), Needs()), Severity.FATAL, "binlog_format"),
    "read-only": (TargetSituation(facts(super_read_only="ON"), Needs()), Severity.FATAL, "super_read_only"),
    "secure-timestamp": (
        TargetSituation(facts(secure_timestamp="YES"), Needs(ddl=True)), Severity.FATAL, "secure_timestamp",
    ),
    "local-infile": (TargetSituation(facts(local_infile="OFF"), Needs(loads=True)), Severity.FATAL, "local_infile"),
    "connections": (TargetSituation(facts(), Needs(connections=152)), Severity.FATAL, "max_connections"),
    "table-caches": (TargetSituation(facts(table_open_cache="3"), Needs(tables=4)), Severity.INFO, "table_open_cache"),
    "ddl-settings": (
        TargetSituation(facts(innodb_strict_mode="ON"), Needs(ddl=True)), Severity.INFO, "innodb_strict_mode",
    ),
    "type-conversions": (
        TargetSituation(facts(replica_type_conversions="ALL_LOSSY"), Needs()),
        Severity.INFO, "replica_type_conversions",
    ),
    "cluster": (TargetSituation(facts(wsrep_on="ON"), Needs()), Severity.INFO, "wsrep_on"),
    "passed-errors": (
        TargetSituation(facts(slave_skip_errors="1062"), Needs()), Severity.FATAL, "slave_skip_errors",
    ),
}  # fmt: skip
"""By check of a server that needs no question of its own: what stands in the way, how bad it is, and where."""
vars(TARGETS["proxy"][0].target).update(connection_numbers=(7, 7, 8))


@pytest.mark.parametrize("name", WINDOWS)
def test_one_thing_that_is_wrong_is_found_by_its_check_alone(name: str) -> None:
    of, where = WINDOWS[name]

    found = run_checks(of, {each: check for each, check in CHECKS.items() if each not in TARGET_CHECKS})

    assert [(one.check, one.where, one.severity) for one in found] == [(name, where, Severity.FATAL)]
    with pytest.raises(PrecheckError, match=rf"^precheck failed: 1 finding; nothing was written:\n.* \[{name}\]$"):
        raise_if_fatal(found)
    with pytest.raises(PrecheckError, match=rf"^precheck failed: 1 finding; the window has begun, .*:\n.* \[{name}\]$"):
        raise_if_fatal(found, begun=True)


def test_what_one_step_mends_is_said_once_with_all_its_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("binlane.precheck.situation.finding.TOGETHER", 2)
    one = Finding(Severity.FATAL, "view a.v", "an account with SUPER", "none", "GRANT SUPER", check="definers")
    others = [replace(one, where=where) for where in ("view b.v", "view c\nv")]
    another = replace(one, where="view d.v", todo="GRANT SYSTEM_USER")
    with pytest.raises(PrecheckError) as error:
        raise_if_fatal([one, another, *others, replace(one, severity=Severity.INFO)])
    assert str(error.value).splitlines() == [
        "precheck failed: 4 findings; nothing was written:",
        str(one),
        r"the same of: view b.v; view c\nv",
        str(another),
    ]


def test_of_a_fleet_s_findings_each_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """What the error has no room for is in the log before it, by whole lines."""
    of_each = [Finding(Severity.FATAL, f"t{n:05}.a: key", f"key {n}", "none", "x" * 200) for n in range(3_000)]
    of_all = [Finding(Severity.FATAL, f"t{n:05}.a: engine", "InnoDB", "MyISAM", "ALTER") for n in range(40_000)]
    with pytest.raises(PrecheckError) as error:
        raise_if_fatal([*of_each, *of_all])
    shown = str(error.value).splitlines()
    logged = [record.getMessage().removeprefix("precheck: ") for record in caplog.records]
    assert "are left out" not in str(error.value)
    assert shown[-1] == f"and {len(logged):,} more lines, in the log before this error"
    said = [*shown[1:-1], *logged]
    assert said[:3_000] == [str(one) for one in of_each]
    assert "\n".join(said).count(".a: engine") == 40_000


@pytest.mark.parametrize("name", TARGETS)
def test_one_thing_that_is_wrong_with_a_server_is_found_by_its_check(name: str) -> None:
    of, severity, where = TARGETS[name]

    found = run_checks(of, {name: TARGET_CHECKS[name]})

    assert (found[0].check, found[0].where, found[0].severity) == (name, f"target: {where}", severity)


def test_settings_that_lanes_with_shares_cannot_have_count_as_unset_in_a_divided_window() -> None:
    allowed = applying(allow_nontransactional=True, allow_triggers=(str(KEY),))
    fires = table(triggers=(Trigger("tr", "BEFORE", "INSERT"),))
    for tables, given in ((MYISAM, {"written": KEYS}), (schema(fires), {"by_sql": KEYS})):
        by_sql = given.pop("by_sql", frozenset())
        together = situation(facts(), plan(**given), tables, channel=allowed, by_sql=by_sql)
        divided = plan(**given, division=Division(2, ("shop",), {"shop": None}, {}, folds_names=False))
        checks = {name: CHECKS[name] for name in ("table-definitions", "sql-writer")}
        assert run_checks(together, checks) == ()
        [finding] = run_checks(replace(together, plan=divided), checks)
        assert finding.severity is Severity.FATAL


@pytest.mark.parametrize(
    ("flavor", "value", "engine", "allowed", "is_named"),
    [
        (Flavor.MYSQL, "2", "MyISAM", True, True),
        (Flavor.MYSQL, "0", "MyISAM", True, True),
        (Flavor.MYSQL, "1", "MyISAM", True, False),
        (Flavor.MARIADB, "2", "Aria", True, True),
        (Flavor.MARIADB, "3", "Aria", True, False),
        (Flavor.MYSQL, "2", "InnoDB", True, False),
        # refused by another check
        (Flavor.MYSQL, "2", "MyISAM", False, False),
    ],
)
def test_a_target_that_may_forget_what_tells_of_changes_that_stay_is_named_and_not_refused(
    flavor: Flavor, value: str, engine: str, *, allowed: bool, is_named: bool
) -> None:
    target = facts(flavor=flavor, innodb_flush_log_at_trx_commit=value)
    channel = applying(allow_nontransactional=allowed)
    of = situation(target, plan(written=KEYS), schema(table(engine=engine)), channel=channel)

    found = run_checks(of, {"lost-notes": CHECKS["lost-notes"]})

    assert [each.where for each in found] == ["target: innodb_flush_log_at_trx_commit"] * is_named
    assert all("SET GLOBAL innodb_flush_log_at_trx_commit = 1" in each.todo for each in found)
    assert all(str(each).endswith("are then made twice [lost-notes]") for each in found)
    raise_if_fatal(found)


def test_a_text_that_is_not_read_is_a_finding_of_the_check_that_has_met_it() -> None:
    def check(_: Situation) -> Sequence[Finding]:
        raise Unreadable("a parenthesis without an end")

    found = run_checks(situation(facts()), {"row-order": check})

    with pytest.raises(PrecheckError, match=r"found a parenthesis without an end; .* \[row-order\]"):
        raise_if_fatal(found)


def test_a_server_with_nothing_wrong_has_no_findings() -> None:
    asking = {"events", "time-zones"}  # nothing that the window has
    of = TargetSituation(facts(), Needs(ddl=True, loads=True, tables=400, connections=151))

    assert run_checks(of, {name: check for name, check in TARGET_CHECKS.items() if name not in asking}) == ()


def test_a_window_with_nothing_in_it_has_no_findings() -> None:
    assert run_checks(situation(facts()), CHECKS) == ()


def test_a_statement_that_another_check_names_is_not_named_by_its_syntax_again() -> None:
    found = run_checks(
        situation(facts(), plan(unsafe={"UUID()": 5}), read_statements=lambda: refused("SELECT UUID()")), CHECKS
    )
    assert [one.check for one in found] == ["unsafe-statements"]


@pytest.mark.parametrize(
    ("allowed", "found"),
    [(False, ["UUID()", "WAIT_FOR_EXECUTED_GTID_SET()"]), (True, ["WAIT_FOR_EXECUTED_GTID_SET()"])],
)
def test_a_statement_that_would_wait_for_the_targets_place_as_a_replica_is_never_allowed(
    allowed: bool, found: list[str]
) -> None:
    unsafe = plan(unsafe={"UUID()": 5, "WAIT_FOR_EXECUTED_GTID_SET()": 6})
    of = situation(facts(), unsafe, channel=applying(allow_unsafe=allowed))
    assert [one.found for one in run_checks(of, {"unsafe-statements": CHECKS["unsafe-statements"]})] == found


@pytest.mark.parametrize(
    ("target", "name", "is_named"),
    [
        (facts(log_bin="ON"), "UUID()", True),
        (facts(log_bin="OFF"), "UUID()", False),
        (facts(log_bin="ON"), "CONNECTION_ID()", False),
        (facts(log_bin="ON", flavor=Flavor.MARIADB), "UUID()", False),
    ],
)
def test_a_default_that_the_target_refuses_itself_is_never_allowed(target: Any, name: str, is_named: bool) -> None:
    unsafe = plan(unsafe={f"{name} as the default of a new column": 5})
    of = situation(target, unsafe, channel=applying(allow_unsafe=True))
    assert bool(run_checks(of, {"unsafe-statements": CHECKS["unsafe-statements"]})) is is_named


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (facts(), None),
        (facts(innodb_native_foreign_keys="ON"), "innodb_native_foreign_keys = ON, which fires none"),
        (facts(version="8.4.6"), "8.4.6: it came with 9.7.0"),
        (facts(flavor=Flavor.MARIADB), "mariadb 10.11.14-MariaDB-log, which does not have it"),
    ],
)
def test_triggers_on_cascades_need_a_target_that_fires_them(target: Any, found: str | None) -> None:
    asked = plan(requirements={Requirement(CASCADE_TRIGGERS, "session"): 5})
    said = [one.found for one in run_checks(situation(target, asked), {"features": CHECKS["features"]})]
    assert said == ([] if found is None else [found])


def test_a_name_with_a_line_break_is_no_finding_of_its_own() -> None:
    finding = Finding(Severity.FATAL, "a.`b\nERROR x`", "y", "z", "w", check="grants")
    with pytest.raises(PrecheckError, match=r"a\.`b\\nERROR x`: expected y, found z; w \[grants\]$"):
        raise_if_fatal([finding])


def test_a_window_that_is_begun_is_not_asked_about_again() -> None:
    of = situation(facts(), begun=True, read_statements=lambda: refused("SELECT"))
    assert run_checks(of, checks_of(of)) == ()


@pytest.mark.parametrize("name", sorted(CHECKS.keys() - ASKED_AGAIN))
def test_a_check_of_windows_that_are_not_begun_does_not_ask_whether_one_is(name: str) -> None:
    """``checks_of`` is the one door."""
    assert "begun" not in CHECKS[name].__code__.co_names


@pytest.mark.parametrize("is_left", [True, False])
@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_that_is_begun_is_asked_for_what_the_target_is_now_alone(
    name: str, is_left: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its own statements have done, and what became of the source, stands in no way of its end; but programs are
    looked at again where ``reached.json`` is gone."""
    monkeypatch.setattr("binlane.precheck.checks.has_left_programs", lambda _: is_left)
    of = replace(WINDOWS[name][0], begun=True)
    # what the case gives beside its fields
    vars(of).update(vars(WINDOWS[name][0]) | {"begun": True})
    asked = {each: check for each, check in checks_of(of).items() if each not in TARGET_CHECKS}
    found = run_checks(of, {each: check for each, check in asked.items() if each == name})
    assert (found != ()) is (name in ASKED_AGAIN or (not is_left and name in OF_PROGRAMS))


@pytest.mark.parametrize("source", ["as it was", "mended", "altered since", "gone"])
def test_a_table_that_somebody_has_altered_since_a_window_began_is_named(source: str) -> None:
    was, now = schema(table()), schema(table(columns=(replace(ID, data_type="bigint"),)))
    written = plan(tables={KEY: TableCounts(read=RowCounts(1), written=RowCounts(1))})
    of = situation(facts(), written, now, planned=was, begun=True)
    theirs = {"as it was": was, "mended": now, "altered since": schema(table(columns=(ID, replace(ID, name="x"))))}
    with_source(of)
    vars(of).update(source_as_named=theirs.get(source), source_tables=theirs.get(source))
    vars(of)["source"].altered_behind = lambda **_: None
    if source == "gone":
        vars(of).pop("source_tables"), vars(of).pop("source_as_named")
        vars(of)["source"].read_schema = _gone

    found = [each for each in run_checks(of, checks_of(of)) if each.check == "table-definitions"]

    assert [each.severity for each in found] == ([] if source == "mended" else [Severity.FATAL])


def _gone() -> None:
    raise SourceError("no answer")


def test_every_check_has_a_test_that_has_its_name_in_it() -> None:
    """In the tables above, in the text of a finding, or where a test runs the check by name."""
    folders = ("integration/precheck", "integration/window", "security", "unit/precheck")
    texts = "".join(file.read_text("utf-8") for folder in folders for file in (TESTS / folder).rglob("*.py"))
    shown = set(re.findall(r"\[([a-z-]+)\\?\]", texts))
    run = set(re.findall(r"\"([a-z-]+)\"", "".join(re.findall(r"\b(?:said|findings)\(.*", texts))))
    assert set(CHECKS) - set(WINDOWS) - set(TARGETS) - shown - run == set()


@pytest.mark.parametrize("packet", [2048, 8192, 65536, 1 << 20, 1 << 24, 1 << 30])
def test_a_window_s_statements_fit_the_packet_that_they_were_planned_for(packet: int) -> None:
    planned = Needs(biggest_item=payload_limit(packet))
    check = TARGET_CHECKS["max-allowed-packet"]
    assert list(check(TargetSituation(facts(max_allowed_packet=str(packet)), planned))) == []
    assert list(check(TargetSituation(facts(max_allowed_packet=str(packet // 2)), planned))) != []


@pytest.mark.parametrize(
    ("logged", "column", "theirs", "is_refused"),
    [
        (None, "ts TIMESTAMP", "OFF", True),
        (None, "ts TIMESTAMP", "ON", False),
        (None, "ts TIMESTAMP NULL", "OFF", False),
        (False, "ts TIMESTAMP", "OFF", False),
    ],
)
def test_a_timestamp_whose_meaning_no_log_has(logged: bool | None, column: str, theirs: str, is_refused: bool) -> None:
    """MariaDB 10.4 logs no explicit_defaults_for_timestamp, and newer servers have another default."""
    made = text(f"CREATE TABLE t ({column})")
    made = replace(made, context=replace(made.context, explicit_defaults_for_timestamp=logged))
    of = situation(facts(explicit_defaults_for_timestamp="1"), PLAN, texts=(made,), needs=Needs(ddl=True))
    found = said(with_source(of, explicit_defaults_for_timestamp=theirs), "session-variables")
    assert [("explicit_defaults_for_timestamp of the target" in each) for each in found] == [True] * is_refused


@pytest.mark.parametrize(("theirs", "is_refused"), [("ON", True), ("OFF", False)])
@pytest.mark.parametrize("ours", ["0", "1"])
def test_a_timestamp_of_mariadb_is_made_on_mysql_as_lanes_make_it(theirs: str, ours: str, is_refused: bool) -> None:
    """They have OFF whatever the target has."""
    made = text("CREATE TABLE t (ts TIMESTAMP)")
    plan = replace(PLAN, flavor=Flavor.MARIADB)
    of = situation(facts(explicit_defaults_for_timestamp=ours), plan, texts=(made,), needs=Needs(ddl=True))
    found = said(with_source(of, explicit_defaults_for_timestamp=theirs), "session-variables")
    assert [("lanes that apply MariaDB's log to MySQL have OFF" in each) for each in found] == [True] * is_refused


@pytest.mark.parametrize(("logged", "is_refused"), [(True, True), (False, False)])
def test_a_timestamp_of_a_session_whose_value_no_session_of_the_target_can_have(logged: bool, is_refused: bool) -> None:
    """MariaDB before 10.5.17 has explicit_defaults_for_timestamp for the whole server."""
    made = text("CREATE TABLE t (ts TIMESTAMP)")
    made = replace(made, context=replace(made.context, explicit_defaults_for_timestamp=logged))
    for version, is_old in (("10.5.16-MariaDB", True), ("10.5.17-MariaDB", False)):
        target = facts(flavor=Flavor.MARIADB, version=version, explicit_defaults_for_timestamp="OFF")
        plan_of = replace(PLAN, flavor=Flavor.MARIADB)
        of = situation(target, plan_of, schema(flavor=Flavor.MARIADB), texts=(made,), needs=Needs(ddl=True))
        found = said(with_source(of, explicit_defaults_for_timestamp="ON"), "session-variables")
        assert [("explicit_defaults_for_timestamp of the target" in each) for each in found] == [True] * (
            is_refused and is_old
        )


def test_a_table_without_transactions_is_known_by_the_name_that_a_statement_spells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typed = frozenset({TableKey("Shop", "T")})
    source = schema(Table(TableKey("shop", "t"), "MyISAM", ()), settings={"lower_case_table_names": "1"})
    look = Mock(return_value=[])
    monkeypatch.setattr(open_transactions, "_findings", look)
    of = situation(plan=replace(PLAN, written=typed), source=source, needs=Needs(statements=True), older_sessions=1)
    assert list(open_transactions.check_open_transactions(of)) == []
    look.assert_called_once_with(of, typed)


@pytest.mark.parametrize(
    ("sql", "since"),
    [
        ('INSERT INTO t (doc) VALUES (\'{"a": 1, "a": 2}\')', "a JSON document with a key twice, .* 8.0.3 on"),
        ("INSERT INTO t (g) VALUES (ST_GeomFromText('POINT(10 20)', 4326))", "SRID, which MySQL .* 8.0.0 on"),
        ("UPDATE t SET n = 1 WHERE s REGEXP '^.$'", "a regular expression, which MySQL .* 8.0.4 on"),
        ("UPDATE t SET b = b | X'0100'", "a bit operation with a binary column, .* 8.0.1 on"),
        ("UPDATE t SET s = FROM_UNIXTIME(2147483648)", "a Unix time behind 2036, .* 8.0.28 on"),
        ("UPDATE t SET at = '2024-02-29 10:00:00+02:00'", "a time with an offset, .* 8.0.19 on"),
        ('UPDATE t SET n = n | 4, s = \'b | {"a": 1}\', doc = \'{"a": 1, "b": 1}\'', ""),
    ],
)
def test_what_an_older_mysql_has_answered_otherwise_is_named(sql: str, since: str) -> None:
    types = {"b": "varbinary", "doc": "json", "n": "int", "s": "varchar", "at": "datetime", "g": "geometry"}
    columns = tuple(Column(name, at, kind) for at, (name, kind) in enumerate(types.items(), 1))
    tables = schema(Table(KEY, "InnoDB", columns))
    for logged_by, is_older in (("5.7.44-log", True), (facts().version, False)):
        found = said(with_statement(sql, tables=tables, logged_by=frozenset({logged_by})), "other-versions")
        assert len(found) == (is_older and since != "")
        assert all(re.search(since, each) for each in found)


@pytest.mark.parametrize("feature", [BARE_CHARSET, CONVERTED])
@pytest.mark.parametrize(
    ("detail", "source", "is_refused"),
    [
        ("utf8mb4 = utf8mb4_bin", Flavor.MARIADB, True),
        ("latin1 = latin1_bin", Flavor.MARIADB, True),
        ("utf8mb4 = utf8mb4_uca1400_ai_ci", Flavor.MARIADB, False),
        ("utf8mb4 = utf8mb4_general_ci", Flavor.MYSQL, False),
    ],
)
def test_a_collation_that_a_session_of_mariadb_has_chosen_for_a_character_set_is_none_of_mysql(
    feature: str, detail: str, source: Flavor, is_refused: bool
) -> None:
    """MySQL would convert and compare by its own: other rows."""
    found = unsupported(Requirement(feature, "t", detail), facts(), source, frozenset())
    assert (found is not None) == is_refused
    if found is not None:
        assert "which has no character_set_collations" in found[0]


def test_an_update_of_a_view_that_the_server_names_in_other_letters_is_looked_at_for_its_order() -> None:
    made = with_statement("UPDATE V SET n = 1", tables=schema(settings={"lower_case_table_names": "1"}))
    view = Program(TableKey("shop", "v"), "view", "select 1 AS n from t limit 1")
    vars(made).update(may_reach_programs=True, stored_programs=((), (view,)))
    looked_at = row_order.RowOrder(made)
    assert looked_at.view_of(TableKey("shop", "V")) is not None
    assert list(looked_at.of_texts()) == []


def with_children(*children: TableKey) -> Schema:
    """Tables with a foreign key to ``shop.parent``, and that."""
    keys = {each: replace(CASCADE, parent=TableKey("shop", "parent")) for each in children}
    tables = (Table(key, "InnoDB", (ID,), (), (foreign,)) for key, foreign in keys.items())
    pairs = frozenset((each, TableKey("shop", "parent")) for each in children)
    return schema(Table(TableKey("shop", "parent"), "InnoDB", (ID,), ()), *tables, references=pairs)


@pytest.mark.parametrize(("filtered", "is_named"), [({"exclude_databases": RuleCounts(1, 0)}, True), ({}, False)])
def test_a_child_in_a_database_that_the_window_does_not_name_counts_where_something_is_left_out(
    filtered: Mapping[str, RuleCounts], is_named: bool
) -> None:
    made = situation(
        facts(), plan(filtered=filtered), schema(), planned=with_children(TableKey("crm", "child")),
        selection=Selection(exclude_databases=("shop",)),
    )  # fmt: skip
    found = said(made, "filtered-parents")
    assert ["crm.child: foreign key fk" in each for each in found] == [True] * is_named


@pytest.mark.parametrize("of_restore", [True, False])
@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(
    ("body", "is_elsewhere"),
    [
        ("INSERT INTO crm.audit VALUES (NEW.id)", True),
        ("SET NEW.n = (SELECT MAX(n) FROM `shop`.rates)", True),
        ("INSERT INTO back.audit VALUES (NEW.id)", False),
        ("INSERT INTO audit VALUES (NEW.id)", False),
    ],
)
def test_a_trigger_of_a_restore_names_no_database_that_is_not_restored(
    body: str, is_elsewhere: bool, flavor: Flavor, of_restore: bool
) -> None:
    """``shop`` is restored as ``back``, beside the one in use."""
    made = with_statement(
        "INSERT INTO back.t VALUES (1)", Program(TableKey("back", "t"), "trigger", body, name="x"),
        plan=plan(flavor=flavor), selection=Selection(include_databases=("shop",)), channel=applying(allow_unsafe=True),
        settings=settings(renames=[["shop", "back"]]),
    )  # fmt: skip
    names = [(name,) for name in ("back", "shop", "crm", "mysql", "binlane")]
    vars(made).update(of_restore=of_restore)
    vars(made.target).update(rows=lambda *_, **__: names)
    found = said(made, "account-programs")
    assert ["trigger back.x" in each for each in found] == [True] * (of_restore and is_elsewhere)
    assert all("binlane restore --drop CHANNEL" in each for each in found)


@pytest.mark.parametrize("of_restore", [True, False])
@pytest.mark.parametrize("parent", ["back", "shop"])
def test_no_row_of_another_database_follows_those_of_a_restore(parent: str, of_restore: bool) -> None:
    child = table(TableKey("crm", "child"), foreign_keys=(replace(CASCADE, parent=TableKey(parent, "parent")),))
    made = situation(
        facts(), tables=schema(), planned=schema(child), selection=Selection(include_databases=("shop",)),
        settings=settings(renames=[["shop", "back"]]),
    )  # fmt: skip
    vars(made).update(of_restore=of_restore)
    found = said(made, "filtered-parents")
    assert ["crm.child: foreign key fk" in each for each in found] == [True] * (of_restore and parent == "back")


def test_the_source_s_keys_count_before_the_target_s() -> None:
    asked = list[object]()
    children = {TableKey("crm", "child"): (replace(CASCADE, parent=TableKey("shop", "parent")),)}

    def ask(question: object, *given: object) -> object:
        asked.append((question, *given))
        return children

    made = with_source(
        situation(
            facts(), plan(filtered={"exclude_databases": RuleCounts(0, 1)}), schema(),
            selection=Selection(exclude_databases=("shop",)),
        )
    )  # fmt: skip
    vars(made).update(source=SimpleNamespace(ask=ask, read_schema=lambda: made.tables))
    assert len(said(made, "filtered-parents")) == 1
    assert asked == [(foreign_keys_as_they_are, made.selection, made.noted)]


DELETED: Final = {TableKey("shop", "parent"): TableCounts(read=RowCounts(deletes=1), written=RowCounts(deletes=1))}
INSERTED: Final = {TableKey("shop", "parent"): TableCounts(read=RowCounts(inserts=1), written=RowCounts(inserts=1))}
LEFT_OUT: Final = {TableKey("shop", "parent"): TableCounts(read=RowCounts(deletes=1), filtered=RowCounts(deletes=1))}
WITHOUT_KEY: Final = schema(Table(TableKey("shop", "parent"), "InnoDB", (ID,), ()), Table(KEY, "InnoDB", (ID,), ()))


@pytest.mark.parametrize(
    ("tables", "cascading", "is_named"),
    [(DELETED, True, True), (DELETED, False, False), (INSERTED, True, False), (LEFT_OUT, True, False)],
)
def test_the_key_of_a_child_without_rows_counts_where_rows_of_its_parent_are_deleted(
    monkeypatch: pytest.MonkeyPatch, tables: Mapping[TableKey, TableCounts], cascading: bool, is_named: bool
) -> None:
    found = frozenset(tables) if cascading else frozenset()
    monkeypatch.setattr(situation_module, "tables_that_cascade", lambda *_: found)
    ours, theirs = with_children(KEY), WITHOUT_KEY
    for source, target in ((ours, theirs), (theirs, ours)):
        made = situation(facts(), plan(tables=tables), target, source=source)
        assert ["shop.t: foreign key" in each for each in said(made, "table-definitions")] == [True] * is_named
        left_out = replace(made, selection=Selection(exclude_tables=("shop.t",)))
        vars(left_out).update(source_as_named=source)
        assert said(left_out, "table-definitions") == []


def test_a_child_in_another_database_is_read_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(situation_module, "tables_that_cascade", lambda *_: frozenset(DELETED))
    every = with_children(TableKey("crm", "child"))
    source = replace(every.of(frozenset({"shop"})), databases=frozenset({"shop"}))
    crm = frozenset({"crm"})
    planned = replace(every, databases=frozenset({"shop", "crm"}))
    without = {key: replace(table, foreign_keys=()) for key, table in planned.tables.items()}
    for known, expected in ((planned, 0), (replace(planned, tables=without), 1)):
        made = situation(facts(), plan(tables=DELETED), source, source=source, planned=known)
        asked = list[object]()

        def ask(question: object, *given: object, asked: list[object] = asked) -> object:
            asked.append((question, *given))
            if question is foreign_keys_as_they_are:
                return {key: table.foreign_keys for key, table in planned.tables.items()}
            return replace(planned.of(crm), databases=crm)

        vars(made).update(source=SimpleNamespace(ask=ask, altered_behind=lambda *, whole: None))
        found = made.definition_differences
        assert [str(each.table) for each in found] == ["crm.child"] * expected
        assert (read_schema, crm) in asked


def test_tenants_with_plain_keys_to_a_shared_table_are_not_read_for_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(situation_module, "tables_that_cascade", lambda *_: frozenset(DELETED))
    plain = replace(CASCADE, parent=TableKey("shop", "parent"), on_update="RESTRICT", on_delete="RESTRICT")
    every = with_children(*(TableKey(f"tenant_{number}", "child") for number in range(9)))
    tables = {
        key: replace(table, foreign_keys=(plain,)) if table.foreign_keys else table
        for key, table in every.tables.items()
    }
    planned = replace(every, tables=tables)
    source = replace(every.of(frozenset({"shop"})), databases=frozenset({"shop"}))
    asked = list[object]()

    def ask(question: object, *_: object) -> object:
        asked.append(question)
        return {key: table.foreign_keys for key, table in planned.tables.items()}

    made = situation(facts(), plan(tables=DELETED), source, source=source, planned=planned)
    vars(made).update(source=SimpleNamespace(ask=ask, altered_behind=lambda *, whole: None))
    assert made.definition_differences == ()
    assert asked == [foreign_keys_as_they_are]
