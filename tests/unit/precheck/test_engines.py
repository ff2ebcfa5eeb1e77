"""Tables behind a routine, trigger or view of a statement that failed or was rolled back: of one kind, or named."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from binlane.binlog.wire import SegmentOffset
from binlane.model import ANY_TABLE, BlockHeader, Flavor, Item, ItemKind, LogPosition, SessionContext, TableKey
from binlane.plan.routing import Routing
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.transaction.xa import PreparedGroup
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.account.privileges import parse_grants
from binlane.precheck.situation.facts import Source
from binlane.precheck.situation.parser import ParserAnswers
from binlane.precheck.situation.situation import Situation
from binlane.schema.model import Column, Key, KeyColumn, Schema, Table, Trigger
from binlane.sql.logged_statement import LoggedText
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.logged_statements import LaneStatement
from tests.unit.precheck.situations import PLAN, applying, said, schema, situation, target_of

ALL = parse_grants(["GRANT ALL PRIVILEGES ON *.* TO `x`@`%` WITH GRANT OPTION"])
NAMED, HIDDEN = TableKey("shop", "t"), TableKey("other", "log")
TRIGGERED = Table(NAMED, "InnoDB", (), triggers=(Trigger("tr", "AFTER", "INSERT"),))
CHECK = "rolled-back-engines"
GROUP = PreparedGroup("X'78',X'',1", 3, "", LogPosition("binlog.000001", 4), 0, "", SegmentOffset(4), SegmentOffset(9))
ID = Column("id", 1, "int")
BY_ID = Key("id", unique=True, primary=False, columns=(KeyColumn("id"),))


def failed(*keys: TableKey, **changes: Any) -> WindowPlan:
    return replace(PLAN, undone=frozenset(keys), **changes)


def of(
    plan: WindowPlan,
    everything: tuple[Schema | None, Schema],
    tables: Schema | None = None,
    *,
    grants: Any = ALL,
    allowed: bool = True,
    source: Schema | None = None,
) -> Situation:
    made = situation(
        target_of(grants=grants), plan, schema(Table(NAMED, "InnoDB", ())) if tables is None else tables,
        channel=applying(allow_nontransactional=allowed),
        source=schema(Table(NAMED, "InnoDB", ())) if source is None else source,
    )  # fmt: skip
    vars(made).update(everything=everything)
    return made


def server(engine: str) -> Schema:
    tables = (Table(NAMED, "InnoDB", ()), Table(HIDDEN, engine, ()))
    return schema(*tables, databases=frozenset({"shop", "other"}))


MYISAM, INNODB = server("MyISAM"), server("InnoDB")
PLAIN = schema(Table(NAMED, "InnoDB", ()))


@pytest.mark.parametrize(
    ("plan", "tables", "source"),
    [
        pytest.param(failed(ANY_TABLE), PLAIN, PLAIN, id="routine"),
        pytest.param(failed(NAMED), schema(TRIGGERED), PLAIN, id="trigger-on-the-target"),
        pytest.param(failed(NAMED), PLAIN, schema(TRIGGERED), id="trigger-on-the-source"),
        pytest.param(failed(NAMED), schema(views=frozenset({NAMED})), PLAIN, id="view"),
        pytest.param(
            failed(TableKey("Shop", "T")),
            schema(views=frozenset({NAMED}), settings={"lower_case_table_names": "1"}),
            PLAIN,
            id="view-by-another-case",
        ),
        pytest.param(failed(NAMED, altered=Alterations({NAMED: (5,)})), PLAIN, PLAIN, id="altered-in-the-window"),
    ],
)
def test_all_tables_are_compared_where_those_that_were_changed_are_not_named(
    plan: WindowPlan, tables: Schema, source: Schema
) -> None:
    [text] = said(of(plan, (MYISAM, INNODB), tables, source=source), CHECK)
    assert "other.log: engine: expected a kind as on the source (MyISAM), found InnoDB" in text
    assert said(of(plan, (MYISAM, MYISAM), tables, source=source), CHECK) == []


def test_only_named_tables_are_compared_where_nothing_is_behind_them() -> None:
    assert said(of(failed(NAMED), (MYISAM, INNODB)), CHECK) == []


def test_a_table_without_transactions_behind_them_is_the_channels_to_allow() -> None:
    [text] = said(of(failed(ANY_TABLE), (MYISAM, MYISAM), allowed=False), CHECK)
    assert "other.log: engine: expected a transactional one, found MyISAM" in text
    assert "or apply.allow_nontransactional = true in the channel's file" in text


def test_another_key_behind_them_would_end_the_statement_at_another_row() -> None:
    keyed = replace(MYISAM, tables={**MYISAM.tables, HIDDEN: Table(HIDDEN, "MyISAM", (ID,), (BY_ID,))})
    without = replace(MYISAM, tables={**MYISAM.tables, HIDDEN: Table(HIDDEN, "MyISAM", (ID,))})
    assert said(of(failed(ANY_TABLE), (keyed, keyed)), CHECK) == []
    [text] = said(of(failed(ANY_TABLE), (without, keyed)), CHECK)
    assert text.startswith("other.log: unique keys")
    altered = failed(ANY_TABLE, altered=Alterations({HIDDEN: (5,)}))
    assert said(of(altered, (without, keyed)), CHECK) == []


def test_another_key_of_a_named_table_would_as_well() -> None:
    keyed, without = (schema(Table(NAMED, "MyISAM", (ID,), keys)) for keys in ((BY_ID,), ()))
    [text] = said(of(failed(NAMED), (None, without), without, source=keyed), CHECK)
    assert text.startswith("shop.t: unique keys: expected (id), found none")
    assert said(of(failed(NAMED), (None, keyed), keyed, source=keyed), CHECK) == []
    assert said(of(failed(), (None, without), without, source=keyed), CHECK) == []


def test_an_archive_does_not_tell_of_the_tables_behind_a_routine() -> None:
    made = of(failed(ANY_TABLE), (None, MYISAM))
    assert [text.partition(": engine")[0] for text in said(made, CHECK)] == ["other.log", "shop.t"]


def test_databases_that_the_source_does_not_have_are_not_its_routines() -> None:
    source = schema(Table(NAMED, "InnoDB", ()), databases=frozenset({"Shop", "shop"}))
    assert said(of(failed(ANY_TABLE), (source, MYISAM)), CHECK) == []


def test_an_account_that_does_not_see_all_tables_is_told_so() -> None:
    some = parse_grants(["GRANT SELECT ON `shop`.* TO `x`@`%`"])
    [text] = said(of(failed(ANY_TABLE), (INNODB, INNODB), grants=some), CHECK)
    assert "privilege SELECT" in text


def test_a_table_that_the_source_does_not_have_any_more_is_named_with_what_to_do() -> None:
    [text] = said(of(failed(ANY_TABLE), (replace(INNODB, tables=PLAIN.tables), INNODB)), CHECK)
    assert text.startswith("other.log: engine: expected a kind as on the source (unknown: no such table now)")
    assert "apply up to the statement (--until), then the statement by hand, and skip it" in text


def text(sql: str) -> LoggedText:
    item = Item(ItemKind.DDL, sql.encode(), context=SessionContext("shop"))
    found = LoggedText.of(5, LogPosition("binlog.000001", 4), item, Flavor.MYSQL)
    assert found is not None
    return found


NEW = "CREATE TABLE t (id INT)"


def undone_at(*seqnos: int) -> dict[str, Any]:
    """What is read of the window: transactions that were rolled back."""
    item = Item(ItemKind.STATEMENT, b"ROLLBACK TO SAVEPOINT s", context=SessionContext("shop"))
    headers = [BlockHeader(each, each, 1, LogPosition("binlog.000001", each), "", 0.0) for each in seqnos]
    found = [(LaneStatement(0, header, item), header) for header in headers]
    return {"transactions_with": lambda _pattern: iter(found), "every_text": (text(NEW),)}


@pytest.mark.parametrize(
    ("sql", "source", "default", "found"),
    [
        pytest.param(NEW, "MyISAM", "InnoDB", "on the source (MyISAM), found InnoDB, the target's def", id="default"),
        pytest.param(NEW, "InnoDB", "InnoDB", "", id="the-same-default"),
        pytest.param(NEW, "Aria", "MyISAM", "", id="the-same-kind-by-default"),
        pytest.param(
            NEW,
            None,
            "InnoDB",
            "on the source (unknown: no such table now, or another), found",
            id="gone-on-the-source",
        ),
        pytest.param(f"{NEW} ENGINE=MyISAM", "MyISAM", "InnoDB", "", id="named"),
        pytest.param("CREATE TEMPORARY TABLE t (id INT)", "MyISAM", "InnoDB", "", id="temporary"),
        pytest.param("CREATE TABLE t LIKE other.log", "MyISAM", "InnoDB", "", id="likeness"),
        pytest.param("ALTER TABLE t ENGINE=InnoDB", "InnoDB", "InnoDB", "up to binlog.000001:4", id="altered"),
        pytest.param("ALTER TABLE t ADD COLUMN c INT", "InnoDB", "InnoDB", "", id="altered-otherwise"),
    ],
)
@pytest.mark.parametrize("undone", [NAMED, HIDDEN, ANY_TABLE])
def test_engines_that_the_window_gives_to_tables_are_named(
    tmp_path: Path, sql: str, source: str | None, default: str, found: str, undone: TableKey
) -> None:
    plans = WorkFolder(str(tmp_path)).child("plan")
    plans.write_once(files.CONTEXT, Routing(1, {}, {}, ()).to_json())
    server = schema() if source is None else schema(Table(NAMED, source, ()))
    made = replace(
        of(failed(undone), (server, schema()), schema(), source=server),
        target=target_of(grants=ALL, makes_temporary_tables=False, variables={"default_storage_engine": default}),
        read_statements=lambda: ParserAnswers(texts=[text(sql)]),
        plans=plans,
    )
    vars(made).update(everything=(server, schema()), source_as_named=server, **undone_at(9))
    said_of = [line for line in said(made, CHECK) if line.startswith("shop.t: engine")]
    assert len(said_of) == (1 if found and undone != HIDDEN else 0)
    assert all(found in line for line in said_of)


@dataclass
class Behind:
    """A source that has given these tables engines behind the window."""

    tables: Alterations | None

    def engines_behind(self) -> Alterations | None:
        return self.tables


@pytest.mark.parametrize(
    ("undone", "behind", "found"),
    [
        pytest.param(NAMED, Alterations({NAMED: (0,)}), ["shop.t"], id="named"),
        pytest.param(NAMED, Alterations({HIDDEN: (0,)}), [], id="another"),
        pytest.param(ANY_TABLE, Alterations({HIDDEN: (0,)}), ["other.log"], id="behind-a-routine"),
        pytest.param(NAMED, None, ["shop.t"], id="not-known"),
        pytest.param(HIDDEN, Alterations({HIDDEN: (0,)}), [], id="not-on-the-target"),
    ],
)
def test_engines_that_the_source_gives_to_tables_behind_the_window_are_named(
    undone: TableKey, behind: Alterations | None, found: list[str]
) -> None:
    made = replace(of(failed(undone), (INNODB, INNODB)), source=cast(Source, Behind(behind)))
    vars(made).update(everything=(INNODB, INNODB), source_as_named=PLAIN)
    lines = [line for line in said(made, CHECK) if "perhaps another one since" in line]
    assert [line.partition(":")[0] for line in lines] == found
