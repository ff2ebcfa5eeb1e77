"""Names that two servers give one thing: collations of older servers, and roles."""

from __future__ import annotations

from binlane.verify.definitions.account_options import AccountOptions
from binlane.verify.definitions.accounts import Account, _as_accounts, _roles_beside_accounts
from binlane.verify.definitions.definition_reader import _spelled


def test_the_default_collation_of_a_database_has_its_name_of_today() -> None:
    facts = [("default collation", "utf8_general_ci"), ("comment", "utf8_general_ci"), ("default collation", None)]
    assert [*_spelled(iter(facts))] == [
        ("default collation", "utf8mb3_general_ci"), ("comment", "utf8_general_ci"), ("default collation", None)
    ]  # fmt: skip


def account(definition: str) -> Account:
    return Account(definition, (), {}, AccountOptions(""))


def test_a_role_hides_no_account_of_its_name() -> None:
    role, user, other = account(""), account("CREATE USER `app`@`%`"), account("")
    found = {"'app'": role, "'app'@'%'": user, "'reader'": other}
    both = _roles_beside_accounts(found)
    assert _as_accounts(found, both) == {"'app'": role, "'app'@'%'": user, "'reader'@'%'": other}
    # nor on the other server, which has the role alone
    assert _as_accounts({"'app'": role}, both) == {"'app'": role}
