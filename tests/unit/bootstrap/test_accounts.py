"""Accounts of a first copy."""

from __future__ import annotations

from binlane.bootstrap.account_copy import Accounts, make_accounts, names_of, no_accounts
from binlane.bootstrap.sessions import Session
from binlane.model import Flavor


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
