from __future__ import annotations

import pytest

from binlane.model import Flavor, TableKey
from binlane.precheck.account.privileges import (
    global_needs,
    held_on,
    on_column,
    parse_grants,
    read_only_exemptions,
    scope_of,
)


@pytest.mark.parametrize(
    ("lines", "missing"),
    [
        ([], ("SELECT", "DROP")),
        (["GRANT SELECT, DROP ON *.* TO `u`@`%`"], ()),
        (["GRANT ALL PRIVILEGES ON *.* TO `u`@`%` WITH GRANT OPTION"], ()),
        (["GRANT ALL PRIVILEGES ON `shop`.* TO `u`@`%`"], ()),
        (["GRANT SELECT ON `shop`.* TO `u`@`%`", "GRANT DROP ON `crm`.* TO `u`@`%`"], ("DROP",)),
        (["GRANT SELECT, DROP ON `shop`.`orders` TO `u`@`%`"], ("SELECT", "DROP")),
        (["GRANT SELECT (`a`, `b`), DROP ON `shop`.* TO `u`@`%`"], ("SELECT",)),
        (["GRANT SELECT, DROP ON `sh%`.* TO `u`@`%`"], ()),
        (["GRANT SELECT, DROP ON `sh__`.* TO `u`@`%`"], ()),
        (["GRANT SELECT, DROP ON `sh\\_\\_`.* TO `u`@`%`"], ("SELECT", "DROP")),
        (["GRANT SELECT, DROP ON *.* TO `u`@`%`", "REVOKE DROP ON `shop`.* FROM `u`@`%`"], ("DROP",)),
        (["GRANT SELECT, DROP ON *.* TO `u`@`%` IDENTIFIED BY PASSWORD '*15CFAE' REQUIRE SSL"], ()),
        (["GRANT `everything`@`%` TO `u`@`%`", "GRANT PROXY ON ``@`` TO `u`@`%`"], ("SELECT", "DROP")),
        (["GRANT EXECUTE ON PROCEDURE `shop`.`p` TO `u`@`%`"], ("SELECT", "DROP")),
    ],
)
def test_privileges_that_grants_lack_on_a_database(lines: list[str], missing: tuple[str, ...]) -> None:
    assert parse_grants(lines).missing(("SELECT", "DROP"), "shop") == missing


@pytest.mark.parametrize(
    ("shown", "column"),
    [("a", "a"), ("b, a", "a"), ("`a b`", "a b"), ("`x`, `a,b`", "a,b"), ("`a``b`", "a`b"), ("`a)b`", "a)b")],
)
def test_a_column_is_known_by_its_name_whatever_is_in_it(shown: str, column: str) -> None:
    [grant] = parse_grants([f"GRANT SELECT ({shown}), DROP ON `shop`.`t` TO `u`@`%`"]).granted

    assert on_column("SELECT", column) in grant.privileges
    assert {name for name in grant.privileges if "(" not in name} == {"DROP"}


@pytest.mark.parametrize(
    ("variable", "value", "granted", "database", "held"),
    [
        ("partial_revokes", "OFF", "a_b", "axb", True),
        ("partial_revokes", "ON", "a_b", "axb", False),
        ("partial_revokes", "ON", "a_b", "a_b", True),
        ("partial_revokes", "OFF", r"a\_b", "a_b", True),
        ("partial_revokes", "ON", r"a\_b", "a_b", False),
        ("partial_revokes", "OFF", r"a\\b", r"a\b", True),
        ("lower_case_table_names", "0", "SHOP", "shop", False),
        ("lower_case_table_names", "0", "SH%", "shop", False),
        ("lower_case_table_names", "1", "SHOP", "shop", True),
        ("lower_case_table_names", "2", "SH%", "shop", True),
        # letter by letter, as servers do: a sigma at the end of a word, and an I with a dot
        ("lower_case_table_names", "1", "\u039f\u03a3", "\u03bf\u03c3", True),
        ("lower_case_table_names", "1", "\u0130%", "ix", True),
    ],
)
def test_a_grant_names_databases_by_the_settings_of_its_server(
    variable: str, value: str, granted: str, database: str, held: bool
) -> None:
    grants = parse_grants([f"GRANT SELECT ON `{granted}`.* TO `u`@`%`"], {variable: value})

    assert grants.missing(("SELECT",), database) == (() if held else ("SELECT",))


@pytest.mark.parametrize(("revoked", "missing"), [("shop", ("SELECT",)), ("mysql", ())])
def test_a_privilege_revoked_on_one_database_is_not_held_everywhere(revoked: str, missing: tuple[str, ...]) -> None:
    lines = ["GRANT SELECT ON *.* TO `u`@`%`", f"REVOKE SELECT ON `{revoked}`.* FROM `u`@`%`"]

    assert parse_grants(lines).missing(("SELECT",)) == missing
    assert parse_grants(lines).missing(("SELECT",), revoked) == ("SELECT",)


def test_a_database_is_named_as_its_server_reads_names() -> None:
    assert scope_of(r"a_b\c%") == r"`a\_b\\c\%`.*"
    assert scope_of("a_b", has_wildcards=False) == "`a_b`.*"


@pytest.mark.parametrize(
    ("read", "written", "shown"),
    [
        ("shop%", r"shop\_a", ()),  # the name itself decides
        ("shop_a", r"shop\_a", ()),
        ("sh%", "shop%", ()),  # the longer beginning
        ("%", "s%", ()),
        ("shop%", "shop_a", ()),  # which of them decides differs between servers
        (r"shop\_%", "shop_a", ()),
        ("shop_%", "s%", ("shop_a", "shop_b")),
        (r"shop\_a", "shop%", ("shop_a",)),
        ("shop%", r"other\_a", ("shop_a", "shop_b")),
    ],
)
def test_of_several_grants_that_name_a_database_the_most_exact_one_counts(
    read: str, written: str, shown: tuple[str, ...]
) -> None:
    lines = [f"GRANT SELECT ON `{read}`.* TO `u`@`%`", f"GRANT INSERT ON `{written}`.* TO `u`@`%`"]
    databases = ("shop_a",) if written in ("shop_a", r"shop\_a") else ("shop_a", "shop_b")

    for ordered in (lines, lines[::-1]):
        grants = parse_grants(ordered)
        found = tuple(name for name in databases if not grants.missing(("SELECT",), name))
        assert found == tuple(name for name in shown if name in databases)


def test_what_a_role_holds_adds_to_what_the_account_holds() -> None:
    grants = parse_grants(["GRANT SELECT ON `shop%`.* TO `u`@`%`", "GRANT INSERT ON `shop`.* TO `writer`"])

    assert grants.missing(("SELECT", "INSERT"), "shop") == ()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("GRANT SELECT ON *.* TO `u`@`%`", True),
        ("GRANT SELECT ON `shop`.* TO `u`@`%`", True),
        ("GRANT SELECT ON `shop`.`orders` TO `u`@`%`", True),
        ("GRANT SELECT (`a`) ON `shop`.`orders` TO `u`@`%`", False),
        ("GRANT SELECT (`a`), INSERT ON `shop`.`orders` TO `u`@`%`", False),
        ("GRANT INSERT ON `shop`.* TO `u`@`%`", False),
        ("GRANT SELECT ON `shop`.`other` TO `u`@`%`", False),
        ("GRANT SELECT ON `sho_`.`orders` TO `u`@`%`", False),
    ],
)
def test_a_table_is_shown_to_who_may_read_all_its_columns(line: str, shown: bool) -> None:
    assert parse_grants([line]).shows(TableKey("shop", "orders")) is shown


def test_a_grant_on_a_database_is_none_everywhere() -> None:
    assert parse_grants(["GRANT SELECT ON `shop`.* TO `u`@`%`"]).missing(("SELECT",)) == ("SELECT",)


def test_all_privileges_do_not_include_passing_them_on() -> None:
    plain, with_option = (f"GRANT ALL PRIVILEGES ON *.* TO `u`@`%`{end}" for end in ("", " WITH GRANT OPTION"))

    assert parse_grants([plain]).missing(("GRANT OPTION",)) == ("GRANT OPTION",)
    assert parse_grants([with_option]).missing(("GRANT OPTION",)) == ()


@pytest.mark.parametrize(
    ("flavor", "version", "names", "super_is_enough"),
    [
        (Flavor.MARIADB, (10, 4, 0), ["SUPER"], True),
        (Flavor.MARIADB, (10, 11, 6), ["BINLOG REPLAY", "BINLOG ADMIN"], True),
        (Flavor.MARIADB, (11, 4, 2), ["BINLOG REPLAY", "BINLOG ADMIN"], False),
        (Flavor.MYSQL, (5, 7, 44), ["SUPER"], True),
        (Flavor.MYSQL, (8, 0, 11), ["BINLOG_ADMIN", "SYSTEM_VARIABLES_ADMIN"], True),
        (Flavor.MYSQL, (8, 4, 0), ["BINLOG_ADMIN", "SESSION_VARIABLES_ADMIN", "REPLICATION_APPLIER"], True),
        (Flavor.MYSQL, (9, 7, 4), ["BINLOG_ADMIN", "SESSION_VARIABLES_ADMIN", "REPLICATION_APPLIER"], False),
    ],
)
def test_privileges_have_the_names_of_their_version(
    flavor: Flavor, version: tuple[int, int, int], names: list[str], super_is_enough: bool
) -> None:
    needs = global_needs(flavor, version)

    assert [need.name for need in needs] == names
    assert all("SUPER" in (need.name, *need.substitutes) for need in needs) == super_is_enough


def test_read_only_is_passed_by_the_privilege_of_the_version() -> None:
    assert read_only_exemptions(Flavor.MARIADB, (10, 4, 0)) == ("SUPER",)
    assert read_only_exemptions(Flavor.MARIADB, (10, 11, 6)) == ("READ_ONLY ADMIN",)
    assert read_only_exemptions(Flavor.MYSQL, (8, 4, 0)) == ("CONNECTION_ADMIN", "SUPER")


@pytest.mark.parametrize(
    ("lines", "database", "table", "held"),
    [
        (["GRANT DROP ON *.* TO `u`@`%`"], "", "", True),
        (["GRANT DROP ON *.* TO `u`@`%`"], "shop", "", True),
        (["GRANT DROP ON `shop`.* TO `u`@`%`"], "", "", False),
        (["GRANT DROP ON `shop`.* TO `u`@`%`"], "shop", "orders", True),
        (["GRANT DROP ON `shop`.`orders` TO `u`@`%`"], "shop", "orders", True),
        (["GRANT DROP ON `shop`.`orders` TO `u`@`%`"], "shop", "other", False),
        (["GRANT DROP ON `shop`.`orders` TO `u`@`%`"], "shop", "", False),
        (["GRANT DROP ON `sh\\_%`.* TO `u`@`%`"], "sh\\_%", "", True),
        (["GRANT DROP ON *.* TO `u`@`%`", "REVOKE DROP ON `shop`.* FROM `u`@`%`"], "shop", "orders", False),
        (["GRANT DROP ON *.* TO `u`@`%`", "REVOKE DROP ON `shop`.* FROM `u`@`%`"], "crm", "", True),
        (["GRANT DROP ON *.* TO `u`@`%`", "REVOKE DROP ON `shop`.* FROM `u`@`%`"], "", "", True),
    ],
)
def test_a_privilege_to_grant_is_held_on_its_scope_or_a_wider_one(
    lines: list[str], database: str, table: str, held: bool
) -> None:
    assert held_on(parse_grants(lines), "DROP", database, table) is held
