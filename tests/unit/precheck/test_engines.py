"""Tables behind a routine, trigger or view of a statement that failed or was rolled back: of one kind, or named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from binlane.model import ANY_TABLE, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.account.privileges import parse_grants
from binlane.precheck.situation import Situation
from binlane.schema.model import Column, Key, KeyColumn, Schema, Table, Trigger
from tests.unit.precheck.situations import PLAN, applying, said, schema, situation, target_of

ALL = parse_grants(["GRANT ALL PRIVILEGES ON *.* TO `x`@`%` WITH GRANT OPTION"])
NAMED, HIDDEN = TableKey("shop", "t"), TableKey("other", "log")
TRIGGERED = Table(NAMED, "InnoDB", (), triggers=(Trigger("tr", "AFTER", "INSERT"),))
CHECK = "rolled-back-engines"
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
        pytest.param(failed(TableKey("Shop", "T")), schema(views=frozenset({NAMED})), PLAIN, id="view-by-another-case"),
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
    assert "let the channel allow non-transactional tables" in text


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
