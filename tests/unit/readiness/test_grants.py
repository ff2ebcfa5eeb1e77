"""GRANT statements: the databases that a filter takes, and privileges put together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from binlane.config import ChannelConfig
from binlane.connections import Endpoint, Endpoints
from binlane.errors import ConfigError
from binlane.model import Flavor
from binlane.orchestration.commands.setup import grants as command
from binlane.precheck.account.privileges import Need, Order
from binlane.readiness.channel_grants import OF_THE_CHANNEL, merged, orders, scopes_of, servers_own
from binlane.readiness.needs import COMPARED_ACCOUNTS, applies_accounts, channel_needs, source_privileges
from binlane.servers.greeting import Greeting
from binlane.shards.renaming import Renaming
from tests.unit.precheck.situations import CHANNEL


def filtered(**rules: Any) -> ChannelConfig:
    return replace(CHANNEL, filter=replace(CHANNEL.filter, **rules))


@pytest.mark.parametrize(
    ("rules", "scopes"),
    [
        ({}, ["*.*"]),
        ({"include_databases": ("shop",)}, ["`shop`.*"]),
        ({"include_databases": ("tenant_*", "a?")}, [r"`tenant\_%`.*", "`a_`.*"]),
        ({"include_databases": ("10%`x",)}, [r"`10\%``x`.*"]),
        ({"include_databases": ("shop", "[ab]")}, ["*.*"]),
        ({"include_databases": ("*",)}, ["*.*"]),
        ({"include_tables": ("crm.orders", "crm.items", "log_*.x")}, ["`crm`.*", r"`log\_%`.*"]),
        ({"exclude_databases": ("test",)}, ["*.*"]),
    ],
)
def test_grant_names_the_databases_that_the_filter_takes(rules: dict[str, Any], scopes: list[str]) -> None:
    assert list(scopes_of(filtered(**rules))) == scopes


@pytest.mark.parametrize(
    ("databases", "scopes"), [(("sh_op", "10%", "a`b"), ["`sh_op`.*", "`10%`.*", "`a``b`.*"]), (("t_*", "x"), ["*.*"])]
)
def test_a_server_with_partial_revokes_gets_exact_names_or_all_databases(
    databases: tuple[str, ...], scopes: list[str]
) -> None:
    assert list(scopes_of(filtered(include_databases=databases), has_patterns=False)) == scopes


def test_on_the_target_databases_have_their_new_names() -> None:
    renaming = Renaming((("prod", "copy"), ("t_*", "u_*")))

    assert scopes_of(filtered(include_databases=("prod",)), renaming) == ("`copy`.*",)
    assert scopes_of(filtered(include_databases=("prod", "t_*")), renaming) == ("*.*",)


@pytest.mark.parametrize(
    ("pattern", "own"),
    [("my*", "mysql"), ("MY*", "mysql"), ("m????", "mysql"), ("s*", "sys"), ("p*", "performance_schema"), ("my_*", "")],
)
def test_a_pattern_that_includes_a_server_s_own_database_is_named(pattern: str, own: str) -> None:
    assert servers_own(filtered(include_databases=("shop", pattern))) == (((pattern, own),) if own else ())
    assert servers_own(filtered(include_tables=(f"{pattern}.t",))) == (((pattern, own),) if own else ())


def test_a_statement_holds_what_has_one_scope_and_reason() -> None:
    needs = [
        Need("SELECT", (), "reads", OF_THE_CHANNEL),
        Need("SELECT", (), "accounts", frozenset({"mysql"})),
        Need("RELOAD", (), "locks"),
        Need("EVENT", (), "reads", OF_THE_CHANNEL),
    ]

    assert [str(order) for order, _ in orders(needs, ("`a`.*",), "o'x@10.%")] == [
        "GRANT RELOAD ON *.* TO 'o''x'@'10.%'",
        "GRANT SELECT, EVENT ON `a`.* TO 'o''x'@'10.%'",
        "GRANT SELECT ON `mysql`.* TO 'o''x'@'10.%'",
    ]
    # what is granted everywhere is not granted on a database again
    assert [str(order) for order, _ in orders(needs, ("*.*",), "u@h")] == [
        "GRANT SELECT, EVENT ON *.* TO 'u'@'h'",
        "GRANT RELOAD ON *.* TO 'u'@'h'",
    ]


def test_orders_of_one_scope_become_one() -> None:
    given: list[Order | str] = [
        Order(("PROCESS",), "*.*", "u@h", with_option=True),
        "GRANT PROXY ON 'a'@'%' TO 'u'@'h' WITH GRANT OPTION",
        Order(("RELOAD", "PROCESS"), "*.*", "u@h", with_option=True),
        Order(("SELECT", "ALL PRIVILEGES"), "`a`.*", "u@h"),
        "GRANT PROXY ON 'a'@'%' TO 'u'@'h' WITH GRANT OPTION",
    ]

    assert list(map(str, merged(given))) == [
        "GRANT PROCESS, RELOAD ON *.* TO 'u'@'h' WITH GRANT OPTION",
        "GRANT ALL PRIVILEGES ON `a`.* TO 'u'@'h'",
        "GRANT PROXY ON 'a'@'%' TO 'u'@'h' WITH GRANT OPTION",
    ]


@pytest.mark.parametrize(("policy", "applied"), [("apply", True), ("ignore", False), ("refuse", False)])
def test_only_a_channel_that_applies_accounts_needs_to_create_them(policy: str, applied: bool) -> None:
    channel = filtered(kinds={"accounts": policy})

    assert applies_accounts(channel) is applied


def test_a_channel_without_ddl_needs_ddl_for_its_first_copy_alone() -> None:
    channel = filtered(
        kinds=dict.fromkeys(("create", "alter", "rename", "drop", "drop_database", "truncate"), "ignore")
    )

    assert channel_needs(channel, OF_THE_CHANNEL, copies=False, users=False).ddl is False
    assert channel_needs(channel, OF_THE_CHANNEL, copies=True, users=False).ddl is True


def test_an_old_mariadb_has_other_names_for_reading_the_log() -> None:
    needs = source_privileges(Flavor.MARIADB, (10, 4, 1), None, copies=False, users=False)

    assert [need.name for need in needs][:2] == ["REPLICATION SLAVE", "REPLICATION CLIENT"]


def test_a_verification_of_accounts_reads_the_servers_own_tables() -> None:
    (found,) = orders([COMPARED_ACCOUNTS], ["`shop`.*"], "b@%")
    assert (str(found[0]), found[1]) == (
        "GRANT SELECT ON `mysql`.* TO 'b'@'%'", "accounts are compared by `verify --full --accounts`",
    )  # fmt: skip
    assert [str(each) for each, _ in orders([Need("SELECT", (), "rows"), COMPARED_ACCOUNTS], ["*.*"], "b@%")] == [
        "GRANT SELECT ON *.* TO 'b'@'%'"
    ]


@pytest.mark.parametrize("account", ["mallory@%", "@localhost", "binlane@x@%", "Binlane@%"])
def test_no_statement_is_for_an_account_that_an_unknown_server_names(
    account: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = account
    endpoint = Endpoint("t", "127.0.0.1", 1, "binlane", "")
    monkeypatch.setattr(command, "load", lambda *_: (filtered(include_databases=("shop",)), Endpoints(None, endpoint)))
    monkeypatch.setattr(command, "greet", lambda _: Greeting(Flavor.MARIADB, "10.11.18-MariaDB", said))

    with pytest.raises(ConfigError, match=r"expected CURRENT_USER\(\) with the name of the login, 'binlane', found '"):
        command.grants("shop", tmp_path)

    said = "binlane@10.%"
    assert "TO 'binlane'@'10.%';" in command.grants("shop", tmp_path)
