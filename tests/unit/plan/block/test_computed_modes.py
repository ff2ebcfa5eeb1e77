"""Which tables' rows are applied in the modes of their sessions, by the target's schema."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, TableKey
from binlane.plan.block.computed_modes import ALL_SEEN, LOCALE, ZONE, ComputedModes, Session
from binlane.plan.block.reducible_tables import Exclusions
from binlane.schema.model import Column, Generated, Key, KeyColumn, Schema, Table
from binlane.schema.session_columns import computed
from binlane.sql.sql_modes import EVALUATED, evaluated

NOTHING = Exclusions({}, {})
ZERO = {"NO_ZERO_IN_DATE", "NO_ZERO_DATE", "ALLOW_INVALID_DATES", "TIME_TRUNCATE_FRACTIONAL"}
PLAIN = (
    Column("id", 1, "int", unsigned=True),
    Column("padded", 2, "char"),
    Column("wording", 3, "varchar"),
    Column("moment", 4, "datetime"),
    Column("whole", 5, "int"),
)


def table(expression: str, kind: Generated = Generated.STORED, data_type: str = "varchar", *keys: Key) -> Table:
    made = Column("g", 6, data_type, generated=kind, expression=expression)
    return Table(TableKey("shop", "t"), "InnoDB", (*PLAIN, made), keys)


def over(name: str | None, expression: str | None = None) -> Key:
    return Key("k", False, False, (KeyColumn(name, expression=expression),))


def schema(*tables: Table) -> Schema:
    return Schema(Flavor.MYSQL, "9.7.0", tables={each.key: each for each in tables})


@pytest.mark.parametrize(
    ("one", "modes"),
    [
        pytest.param(table("concat(`padded`,'x')"), {"PAD_CHAR_TO_FULL_LENGTH"}, id="char"),
        pytest.param(table("concat(`wording`,'x')"), set(), id="varchar"),
        pytest.param(table("to_days(`moment`)"), ZERO, id="function-of-times"),
        pytest.param(table("quarter(`wording`)"), ZERO, id="text-as-a-date"),
        pytest.param(table("convert_tz(`wording`,`wording`,`wording`)"), ZERO, id="time-zone"),
        pytest.param(table("concat(`moment`)"), ZERO, id="column-of-times"),
        pytest.param(table("`whole`", Generated.STORED, "time"), ZERO, id="result-of-times"),
        pytest.param(table("(`id` - 1)"), {"NO_UNSIGNED_SUBTRACTION"}, id="unsigned"),
        pytest.param(table("(`whole` - 1)"), set(), id="signed"),
        pytest.param(table("concat(`padded`)", Generated.VIRTUAL), set(), id="virtual"),
        pytest.param(
            table("concat(`padded`)", Generated.VIRTUAL, "varchar", over("g")), {"PAD_CHAR_TO_FULL_LENGTH"}, id="keyed"
        ),
        pytest.param(
            table("concat(`padded`)", Generated.VIRTUAL, "varchar", over(None, "concat(`g`,1)")),
            {"PAD_CHAR_TO_FULL_LENGTH"},
            id="expression-over-a-virtual-column",
        ),
        pytest.param(table("`whole`", Generated.VIRTUAL, "int", over("whole")), set(), id="key-over-a-plain-column"),
    ],
)
def test_a_table_sees_the_modes_that_its_computed_values_depend_on(one: Table, modes: set[str]) -> None:
    assert {mode for mode in EVALUATED.values() if computed(one, mode) is not None} == modes
    rules = ComputedModes(schema(one), NOTHING)
    assert set(evaluated(rules.bits)) == modes
    assert rules.sees(one.key) == bool(modes)


@pytest.mark.parametrize(
    "excluded",
    [
        Exclusions({TableKey("Shop", "T"): "a DDL"}, {}),
        Exclusions({}, {"shop": "a DDL"}),
        Exclusions({}, {}, "unread"),
    ],
    ids=["table", "database", "everything"],
)
def test_a_table_that_the_window_changes_may_see_any_mode(excluded: Exclusions) -> None:
    rules = ComputedModes(schema(table("`whole`")), excluded)
    assert rules.bits == ALL_SEEN
    assert rules.sees(TableKey("shop", "t"))


def test_a_table_that_is_not_known_may_see_any_mode_that_others_see() -> None:
    rules = ComputedModes(schema(table("concat(`padded`)")), NOTHING)
    assert rules.sees(TableKey("shop", "other"))
    assert evaluated(rules.bits) == ("PAD_CHAR_TO_FULL_LENGTH",)


@pytest.mark.parametrize("locale", [None, 4, 111, 0xFFFF])
@pytest.mark.parametrize("zone", [None, "SYSTEM", "-11:00", "Europe/Berlin"])
@pytest.mark.parametrize("mode", [0, 1 << 32, (1 << 32) | (1 << 22)])
def test_a_mode_a_zone_and_a_locale_are_one_number(mode: int, zone: str | None, locale: int | None) -> None:
    session, kept = Session(mode, zone, locale), mode & 1 << 32
    assert Session.of(session.seen(ALL_SEEN)) == (kept, zone, locale)
    assert Session.of(session.seen(1 << 32)) == (kept, None, None)
    assert Session.of(session.seen(1 << 32 | LOCALE)) == (kept, None, locale)
    assert Session.of(session.seen(ZONE)) == (0, zone, None)
    # a zone that is seen and not logged is no zone that is not seen
    assert Session(mode).seen(ALL_SEEN) != Session(mode).seen(1 << 32)
