"""Every mismatch that a server accepts in silence must stop the window."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from binlane.model import Flavor, TableKey
from binlane.schema.compare import (
    Difference,
    Rules,
    Severity,
    compare,
    compare_schemas,
    letter_case,
    not_reduced,
    rules_for,
)
from binlane.schema.model import Column, ForeignKey, Generated, Key, KeyColumn, Schema, Table, Trigger

KEY = TableKey("shop", "t")
PRIMARY = Key("PRIMARY", unique=True, primary=True, columns=(KeyColumn("id"),))
ID = Column("id", 1, "int", nullable=False)
A, B = Column("a", 2, "int"), Column("b", 3, "int")
TEXT = Column("c", 2, "varchar", length=10, octets=40, charset="utf8mb4", collation="utf8mb4_general_ci")
ENUM = Column("e", 2, "enum", members=("x", "y"), charset="latin1", collation="latin1_swedish_ci")
PARENT = ForeignKey("f", ("a",), TableKey("shop", "p"), ("id",), "RESTRICT", "RESTRICT")
CASCADE = dataclasses.replace(PARENT, on_delete="CASCADE")
PARTIAL = Rules(complete_images=False)


def table(*columns: Column, **changes: Any) -> Table:
    return dataclasses.replace(Table(KEY, "InnoDB", (ID, *columns), (PRIMARY,)), **changes)


def change(column: Column, **changes: Any) -> Column:
    return dataclasses.replace(column, **changes)


def unique(*names: str) -> Key:
    return Key("u", unique=True, primary=False, columns=tuple(KeyColumn(name) for name in names))


FATAL = [
    pytest.param(table(A, B), table(change(B, ordinal=2), change(A, ordinal=3)), "name of column 2", id="swapped"),
    pytest.param(table(A, B), table(A), "columns", id="fewer-columns"),
    pytest.param(table(A), table(A, change(B, nullable=False)), "columns", id="extra-not-null-column"),
    pytest.param(table(ENUM), table(change(ENUM, members=("y", "x"))), "members", id="enum-order"),
    pytest.param(table(ENUM), table(change(ENUM, members=("x", "y", "z"))), "members", id="enum-more-members"),
    pytest.param(
        table(change(ENUM, data_type="set")),
        table(change(ENUM, data_type="set", members=("y", "x"))),
        "members",
        id="set",
    ),
    pytest.param(table(change(A, unsigned=True)), table(A), "sign", id="unsigned-into-signed"),
    pytest.param(table(A), table(change(A, unsigned=True)), "sign", id="signed-into-unsigned"),
    pytest.param(
        table(change(TEXT, charset="latin1", collation="latin1_swedish_ci")),
        table(change(TEXT, charset="cp1251", collation="cp1251_general_ci")),
        "character set",
        id="latin1-into-cp1251",
    ),
    pytest.param(table(TEXT), table(change(TEXT, charset=None, collation=None)), "character set", id="text-into-bytes"),
    pytest.param(table(TEXT), table(change(TEXT, collation="utf8mb4_bin")), "collation", id="collation"),
    pytest.param(table(TEXT), table(change(TEXT, length=20)), "type", id="length"),
    pytest.param(table(A), table(change(A, data_type="bigint")), "type", id="type"),
    pytest.param(
        table(change(A, data_type="decimal", precision=10, scale=2)),
        table(change(A, data_type="decimal", precision=10, scale=3)),
        "type",
        id="scale",
    ),
    pytest.param(
        table(change(A, data_type="datetime", fsp=0)), table(change(A, data_type="datetime", fsp=6)), "type", id="fsp"
    ),
    pytest.param(
        table(change(A, data_type="json")),
        table(change(A, data_type="json", charset="latin1", collation="latin1_swedish_ci")),
        "type",
        id="json-in-another-character-set",
    ),
    pytest.param(table(TEXT), table(change(TEXT, compressed=True)), "type", id="compressed"),
    pytest.param(table(A), table(change(A, nullable=False)), "nullability", id="null-into-not-null"),
    pytest.param(table(change(A, nullable=False)), table(A), "nullability", id="not-null-into-null"),
    pytest.param(
        table(A), table(change(A, generated=Generated.VIRTUAL, expression="`id`")), "generated", id="computed-there"
    ),
    pytest.param(
        table(change(A, generated=Generated.STORED, expression="`id`")), table(A), "generated", id="computed-here"
    ),
    pytest.param(
        table(change(A, generated=Generated.STORED, expression="`id` + 1")),
        table(change(A, generated=Generated.STORED, expression="`id` + 2")),
        "generated expression",
        id="another-expression",
    ),
    pytest.param(table(A), table(A, engine="MyISAM"), "engine", id="not-transactional"),
    pytest.param(table(A), table(A, engine="BLACKHOLE"), "engine", id="blackhole"),
    pytest.param(table(A), table(A, system_versioned=True), "versioning", id="versioned-there"),
    pytest.param(table(A, foreign_keys=(CASCADE,)), table(A), "foreign key", id="cascade-missing"),
    pytest.param(table(A), table(A, foreign_keys=(CASCADE,)), "foreign key", id="cascade-there-only"),
]


def test_json_of_one_family_is_the_json_of_the_other() -> None:
    mysql = table(change(A, data_type="json"))
    mariadb = table(change(A, data_type="json", charset="utf8mb4", collation="utf8mb4_bin"))

    assert compare(mysql, mariadb, Rules(same_flavor=False)) == ()
    assert compare(mariadb, mysql, Rules(same_flavor=False)) == ()


def test_a_compressed_column_is_the_plain_one_of_the_other_family_alone() -> None:
    compressed, plain = table(change(A, compressed=True)), table(A)

    assert compare(compressed, plain, Rules(same_flavor=False)) == ()
    assert fatal(compare(plain, compressed, Rules(same_flavor=False))) == ["type"]
    assert fatal(compare(compressed, plain)) == ["type"]


def fatal(differences: tuple[Difference, ...]) -> list[str]:
    return [one.what for one in differences if one.severity is Severity.FATAL]


@pytest.mark.parametrize(("source", "target", "what"), FATAL)
def test_differences_that_servers_accept_silently_are_fatal(source: Table, target: Table, what: str) -> None:
    assert what in fatal(compare(source, target))


@pytest.mark.parametrize(("source", "target", "what"), FATAL)
def test_a_table_is_no_different_from_itself(source: Table, target: Table, what: str) -> None:
    assert compare(source, source) == ()
    assert compare(target, target, Rules(allow_non_transactional=True)) == ()


def test_a_difference_says_where_what_was_expected_what_was_found_and_what_to_do() -> None:
    (one,) = compare(table(ENUM), table(change(ENUM, members=("y", "x"))))

    assert str(one) == (
        "shop.t.e: members: expected 'x', 'y', found 'y', 'x'; "
        "rows contain the numbers of the members: ALTER TABLE on the target, with the same members in the same order"
    )


@pytest.mark.parametrize(
    ("source", "target"),
    [
        pytest.param(table(A), table(A, keys=(PRIMARY, unique("a"))), id="one-more"),
        pytest.param(table(A, keys=(PRIMARY, unique("a"))), table(A), id="one-less"),
        pytest.param(table(A), table(A, keys=()), id="no-primary-key"),
        pytest.param(table(A, keys=(unique("id"),)), table(A), id="unique-for-primary"),
        pytest.param(
            table(TEXT, keys=(PRIMARY, Key("u", True, False, (KeyColumn("c", 5),)))),
            table(TEXT, keys=(PRIMARY, Key("u", True, False, (KeyColumn("c", 6),)))),
            id="another-prefix",
        ),
        pytest.param(table(A, foreign_keys=(PARENT,)), table(A), id="foreign-key"),
    ],
)
def test_another_key_set_is_applied_but_not_reduced(source: Table, target: Table) -> None:
    differences = compare(source, target)

    assert fatal(differences) == []
    assert not_reduced(differences) == {KEY}


@pytest.mark.parametrize(
    ("source", "target"),
    [
        pytest.param(table(change(A, default="'1'")), table(change(A, default="'2'")), id="default"),
        pytest.param(table(change(A, on_update=True)), table(A), id="on-update"),
        pytest.param(table(change(A, auto_increment=True)), table(A), id="auto-increment"),
        pytest.param(table(change(A, invisible=True)), table(A), id="invisible"),
        pytest.param(table(A), table(A, triggers=(Trigger("t", "BEFORE", "INSERT"),)), id="trigger"),
    ],
)
def test_values_that_the_target_generates_are_fatal_only_with_partial_images(source: Table, target: Table) -> None:
    assert {one.severity for one in compare(source, target)} == {Severity.INFO}
    assert len(fatal(compare(source, target, PARTIAL))) == 1


def test_partial_images_need_the_sources_primary_key() -> None:
    other = table(A, keys=(Key("PRIMARY", True, True, (KeyColumn("a"),)),))

    assert fatal(compare(table(A), other)) == []
    assert fatal(compare(table(A), other, PARTIAL)) == ["unique keys"]


def test_row_events_that_fire_triggers_stop_the_window() -> None:
    both = table(A, triggers=(Trigger("t", "BEFORE", "INSERT"),))

    assert fatal(compare(both, both)) == []
    assert fatal(compare(both, both, Rules(row_triggers_fire=True))) == ["triggers"]


def test_another_character_set_is_named_once_and_not_as_a_collation_too() -> None:
    other = change(TEXT, charset="latin1", collation="latin1_swedish_ci")

    assert [one.what for one in compare(table(TEXT), table(other))] == ["character set"]


def test_a_channel_may_allow_tables_that_do_not_roll_back() -> None:
    assert compare(table(A, engine="MyISAM"), table(A, engine="MyISAM"), Rules(allow_non_transactional=True)) == ()


OTHER = change(TEXT, collation="utf8mb4_0900_ai_ci")
LACKING = Rules(same_flavor=False, target_collations=frozenset({"utf8mb4_general_ci", "utf8mb4_uca1400_nopad_ai_ci"}))


def test_a_collation_that_the_target_lacks_is_named_with_the_nearest_one() -> None:
    (plain,) = compare(table(OTHER), table(TEXT), LACKING)
    (in_key,) = compare(table(OTHER, keys=(PRIMARY, unique("c"))), table(TEXT, keys=(PRIMARY, unique("c"))), LACKING)

    assert plain.severity is Severity.INFO
    assert "utf8mb4_uca1400_nopad_ai_ci comes closest" in plain.hint
    assert in_key.severity is Severity.NOT_REDUCED


def test_a_collation_that_the_target_has_must_be_used() -> None:
    knowing = dataclasses.replace(LACKING, target_collations=frozenset({"utf8mb4_0900_ai_ci", "utf8mb4_general_ci"}))

    assert fatal(compare(table(OTHER), table(TEXT), knowing)) == ["collation"]


def test_one_collation_under_two_names_is_one_collation() -> None:
    mysql, mariadb = (table(change(TEXT, collation=name)) for name in ("utf8mb4_0900_bin", "utf8mb4_nopad_bin"))
    rules = Rules(target_collations=frozenset({"utf8mb4_nopad_bin", "utf8mb4_general_ci"}))

    assert compare(mysql, mariadb) == compare(mariadb, mysql) == ()
    assert fatal(compare(mysql, table(TEXT), rules)) == ["collation"]


@pytest.mark.parametrize("charset", ["utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32"])
def test_one_name_of_two_collations_is_no_collation_of_both(charset: str) -> None:
    """MariaDB's own .._croatian_ci is another one than MySQL's, which it calls .._croatian_mysql561_ci."""
    name, renamed = f"{charset}_croatian_ci", f"{charset}_croatian_mysql561_ci"
    column = change(TEXT, charset=charset)
    mysqls, mariadbs = (table(change(column, collation=each)) for each in (name, renamed))
    on_mariadb, on_mysql = (
        Rules(same_flavor=False, target_collations=frozenset(known)) for known in ((name, renamed), (name,))
    )
    # from MySQL to MariaDB
    assert compare(mysqls, mariadbs, on_mariadb) == ()
    [other] = compare(mysqls, table(change(column, collation=name)), on_mariadb)
    assert (other.severity, other.expected, other.found) == (Severity.FATAL, renamed, name)
    # from MariaDB to MySQL
    assert compare(mariadbs, mysqls, on_mysql) == ()
    [lacking] = compare(mysqls, mysqls, on_mysql)
    assert (lacking.severity, lacking.expected) == (Severity.INFO, f"MariaDB's {name}")
    # in one family
    assert compare(mysqls, mysqls, Rules(target_collations=frozenset({name}))) == ()


def test_an_expression_that_only_prints_otherwise_is_no_difference() -> None:
    ours = table(change(A, generated=Generated.STORED, expression="(`id` + 1)"))
    theirs = table(change(A, generated=Generated.STORED, expression="`id` + 1"))
    another = table(change(A, generated=Generated.STORED, expression="`id` + 2"))

    assert compare(ours, theirs) == ()
    assert {one.severity for one in compare(ours, another, Rules(same_flavor=False))} == {Severity.INFO}


def schema(*tables: Table, **changes: Any) -> Schema:
    base = Schema(Flavor.MARIADB, "10.11.6", databases=frozenset({"shop"}), tables={one.key: one for one in tables})
    return dataclasses.replace(base, **changes)


def test_a_missing_table_is_fatal_unless_the_window_creates_it() -> None:
    source, target = schema(table(A)), schema()
    rules = rules_for(source, target)

    assert fatal(compare_schemas(source, target, [KEY], rules)) == ["table"]
    assert compare_schemas(source, target, [KEY], rules, created=[KEY]) == ()
    assert compare_schemas(source, target, [], rules) == ()


def test_a_missing_database_is_said_to_be_one() -> None:
    (one,) = compare_schemas(None, schema(databases=frozenset()), [KEY], Rules())

    assert "no such database" in one.found


def test_an_altered_table_is_not_held_against_the_sources_present_definition() -> None:
    source, target = schema(table(A, B)), schema(table(A, engine="MyISAM"))
    rules = rules_for(source, target)

    assert fatal(compare_schemas(source, target, [KEY], rules)) == ["columns", "engine"]
    assert fatal(compare_schemas(source, target, [KEY], rules, altered=[KEY])) == ["engine"]
    assert fatal(compare_schemas(None, target, [KEY], rules)) == ["engine"]


def test_two_names_that_the_target_cannot_tell_apart_are_fatal() -> None:
    upper = TableKey("shop", "T")
    source = schema(table(A), table(A, key=upper))
    target = schema(table(A), settings={"lower_case_table_names": "1"})

    assert fatal(compare_schemas(source, target, [KEY, upper], rules_for(source, target))) == ["name"]
    assert compare_schemas(source, target, [upper], rules_for(source, target)) == ()


def test_rules_come_from_the_servers_own_settings() -> None:
    target = schema(settings={"slave_run_triggers_for_rbr": "YES"}, collations=frozenset({"latin1_bin"}))
    rules = rules_for(schema(flavor=Flavor.MYSQL), target)

    assert rules.row_triggers_fire
    assert not rules.same_flavor
    assert rules.target_collations == {"latin1_bin"}
    assert not rules_for(schema(), schema()).row_triggers_fire


@pytest.mark.parametrize(
    ("ours", "theirs", "refused"),
    [("0", "0", []), ("1", "1", []), ("2", "1", []), ("0", "1", ["Shop", "shop.T"]), ("1", "0", ["Shop", "shop.T"])],
)
def test_capital_letters_are_named_where_the_servers_do_not_agree_on_them(
    ours: str, theirs: str, refused: list[str]
) -> None:
    source, target = (schema(settings={"lower_case_table_names": value}) for value in (ours, theirs))
    found = letter_case(source, target, ["shop.t", "shop.T", "Shop", "shop"])
    assert [name for name, *_ in found] == refused
    assert all(expected == f"lower_case_table_names = {ours}" for _, expected, _, _ in found)


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": (ID, change(TEXT, collation="utf8mb4_bin"))},
        {"keys": (PRIMARY, unique("c"))},
        {"engine": "MyISAM"},
        {"system_versioned": True},
        {"foreign_keys": (CASCADE,)},
        {"foreign_keys": (dataclasses.replace(PARENT, parent=TableKey("another", "p")),)},
        {"triggers": (Trigger("t", "BEFORE", "INSERT"),)},
    ],
    ids=lambda changes: next(iter(changes)),
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_tenant_whose_table_differs_is_found_among_those_whose_tables_do_not(
    changes: dict[str, Any], place: int
) -> None:
    """They share columns and keys, as they do where they are read from a server."""
    keys = [TableKey(f"tenant_{number}", "t") for number in range(3)]
    plain = table(TEXT, foreign_keys=(PARENT,))

    def schema(**changed: Any) -> Schema:
        tables = {
            key: dataclasses.replace(
                plain, key=key, foreign_keys=(dataclasses.replace(PARENT, parent=TableKey(key.database, "p")),)
            )
            for key in keys
        }
        tables[keys[place]] = dataclasses.replace(tables[keys[place]], **changed)
        return Schema(Flavor.MARIADB, "10.11.6-MariaDB", tables=tables, databases=frozenset(k.database for k in keys))

    found = compare_schemas(schema(), schema(**changes), keys, Rules())

    assert found
    assert {one.table for one in found} == {keys[place]}
    assert not compare_schemas(schema(**changes), schema(**changes), keys, Rules(allow_non_transactional=True))


@pytest.mark.parametrize(("setting", "are_one"), [("0", False), ("1", True)])
def test_a_parent_in_other_letters_is_the_same_where_a_server_takes_it_for_one(setting: str, are_one: bool) -> None:
    other = dataclasses.replace(PARENT, parent=TableKey("shop", "P"))
    source, target = (
        schema(table(A, foreign_keys=(each,)), settings={"lower_case_table_names": setting}) for each in (PARENT, other)
    )
    found = compare_schemas(source, target, source.tables, rules_for(source, target))
    assert [each.what for each in found] == ([] if are_one else ["foreign key"] * 2)


def over(*expressions: str) -> tuple[Key, ...]:
    keys = (Key(f"f{at}", True, False, (KeyColumn(None, expression=each),)) for at, each in enumerate(expressions))
    return PRIMARY, *keys


@pytest.mark.parametrize(
    ("source", "target", "same_flavor", "is_fatal"),
    [
        (over("lower(`a`)"), over(), True, True),
        (over(), over("lower(`a`)"), True, True),
        (over("lower(`a`)"), over("upper(`a`)"), True, True),
        (over("lower(`a`)"), over("LOWER(a)"), True, False),
        # each family spells an expression in its own way
        (over("lower(`a`)"), over("lcase(`a`)"), False, False),
        (over("lower(`a`)", "`a` + 1"), over("lcase(`a`)"), False, True),
    ],
)
def test_a_unique_key_over_an_expression_is_met_by_statements(
    source: tuple[Key, ...], target: tuple[Key, ...], same_flavor: bool, is_fatal: bool
) -> None:
    for statements in ((), {KEY}):
        rules = Rules(same_flavor=same_flavor, by_statements=statements)
        found = [
            each for each in compare(table(A, keys=source), table(A, keys=target), rules) if each.what == "unique keys"
        ]
        assert [each.severity for each in found if each.severity is Severity.FATAL] == (
            [Severity.FATAL] if is_fatal and statements else []
        )
