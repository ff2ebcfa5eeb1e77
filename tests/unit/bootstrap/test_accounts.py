"""Accounts of a first copy."""

from __future__ import annotations

from typing import Any

import pytest

from binlane.bootstrap.account_copy import Accounts, make_accounts, names_of, no_accounts, read_accounts
from binlane.bootstrap.sessions import Session
from binlane.model import Flavor


class _Server:
    """A session on a server with these accounts, and the lines that it shows of each."""

    source = None

    def __init__(self, flavor: Flavor, shown: dict[tuple[str, str, str], tuple[str, ...]]) -> None:
        self.flavor, self.shown, self.sent = flavor, shown, list[str]()

    def texts(self, statement: str) -> list[tuple[str, ...]]:
        return [key if "is_role" in statement or "account_locked" in statement else key[:2] for key in self.shown]

    def rows(self, statement: str) -> list[tuple[bytes, ...]]:
        verb, _, asked = statement.partition("SHOW ")[2].partition(" ")
        for (user, host, is_role), lines in self.shown.items():
            if asked.endswith(f" '{user}'" if is_role == "1" else f" '{user}'@'{host}'"):
                return [(line.encode(),) for line in lines if line.startswith("CREATE") is (verb == "CREATE")]
        raise AssertionError(statement)

    def execute(self, statement: str | bytes) -> int:
        self.sent.append(statement if isinstance(statement, str) else statement.decode())
        return 0


def test_a_role_that_the_target_has_gets_no_privilege_by_another_that_was_granted_it() -> None:
    """MariaDB shows with a role what the roles have that it was granted."""
    inner = "GRANT ALL PRIVILEGES ON `hr`.* TO `inner_r` WITH GRANT OPTION"
    outer = ("GRANT USAGE ON *.* TO `outer_r`", "GRANT `inner_r` TO `outer_r`")
    source: Any = _Server(Flavor.MARIADB, {("inner_r", "", "1"): (inner,), ("outer_r", "", "1"): (*outer, inner)})
    target: Any = _Server(Flavor.MARIADB, {("inner_r", "", "1"): ()})

    notes = make_accounts(target, read_accounts(source))

    assert target.sent == ["CREATE ROLE `outer_r`", *outer]
    assert notes == ("account 'inner_r': exists on the target already and was not changed",)


@pytest.mark.parametrize("flavor", Flavor)
def test_no_account_gets_privileges_on_the_target_s_state(flavor: Flavor) -> None:
    made = "CREATE USER `a`@`%`"
    lines = ("GRANT USAGE ON *.* TO `a`@`%`", "GRANT ALL PRIVILEGES ON `binlane`.* TO `a`@`%`")
    source: Any = _Server(flavor, {("a", "%", "0"): (made, *lines)})
    target: Any = _Server(flavor, {})

    [note] = make_accounts(target, read_accounts(source))

    assert target.sent == [made, lines[0]]
    assert note.startswith(f"account 'a'@'%': {lines[1]}: left out: the schema binlane is each target's own")


def test_an_account_whose_password_is_shown_without_escapes_stops_no_other() -> None:
    """Everybody may give himself such a password."""
    joe = "CREATE USER `joe`@`%` IDENTIFIED BY PASSWORD '', password for 'root'@'localhost'=''"
    ann = ("CREATE USER `ann`@`%`", "GRANT USAGE ON *.* TO `ann`@`%`")
    shown: dict[tuple[str, str, str], tuple[str, ...]] = {
        ("ann", "%", "0"): ann,
        ("joe", "%", "0"): (joe, joe.replace("CREATE USER", "GRANT USAGE ON *.* TO")),
    }
    source: Any = _Server(Flavor.MARIADB, shown)
    target: Any = _Server(Flavor.MARIADB, {})

    notes = make_accounts(target, read_accounts(source))

    assert target.sent == list(ann)
    assert notes == (
        "account 'joe'@'%': left out: its password is no hash, and the server shows it without escapes; set it again "
        "there (SET PASSWORD FOR 'joe'@'%' = PASSWORD('..'))",
    )


def test_without_accounts_the_target_is_not_asked_for_its_own_which_takes_a_privilege() -> None:
    assert make_accounts(Session(None, Flavor.MYSQL, None), no_accounts()) == ()


def test_accounts_that_are_there_are_left_out_with_their_grants() -> None:
    found = Accounts(
        (("'a'@'%'", b"CREATE USER a"), ("'r'", b"CREATE ROLE r")),
        (("'a'@'%'", b"GRANT x"), ("'r'", b"GRANT y"), ("'a'@'%'", b"GRANT z")),
    )

    left = found.without(names_of([("a", "%"), ("b", "h")]))

    assert left == Accounts((("'r'", b"CREATE ROLE r"),), (("'r'", b"GRANT y"),))
    assert found.without(names_of([("r", "")])).made == (("'a'@'%'", b"CREATE USER a"),)
