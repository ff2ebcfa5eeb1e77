"""What the window's statements ask of the account, held against real grants and accounts of both servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
import sqlalchemy

from binlane.model import Flavor
from binlane.precheck.checks import CHECKS, run_checks
from binlane.precheck.situation.situation import Needs
from binlane.servers.catalog import read_schema
from binlane.sql.requirements import CHANGED, DEFINER, PRIVILEGE, SESSION_COLLATION, Requirement
from binlane.state.migrations.upgrade import create
from lab.servers import PrivateServer
from tests.integration.precheck.helpers import asked, run
from tests.integration.precheck.test_grants import logged, may
from tests.integration.precheck.test_server import USER, account
from tests.unit.precheck.situations import PLAN, said, situation

BOTH = tuple(Flavor)
MYSQL = (Flavor.MYSQL,)
SETTERS = {Flavor.MARIADB: "SET USER", Flavor.MYSQL: "SET_ANY_DEFINER"}
CASES: Sequence[tuple[str, tuple[str, ...], tuple[Requirement, ...], str | None, tuple[Flavor, ...]]] = [
    ("itself", (), (Requirement(DEFINER, "view d.v", f"{USER}@%"),), None, BOTH),
    ("another", (), (Requirement(DEFINER, "view d.v", "asked_plain@%"),), "{setter}", BOTH),
    ("another-may", ("{setter}",), (Requirement(DEFINER, "view d.v", "asked_plain@%"),), None, BOTH),
    ("system", ("{setter}",), (Requirement(DEFINER, "view d.v", "asked_system@%"),), "SYSTEM_USER", MYSQL),
    ("system-by-role", ("{setter}",), (Requirement(DEFINER, "view d.v", "asked_member@%"),), "SYSTEM_USER", MYSQL),
    ("system-may", ("{setter}, SYSTEM_USER",), (Requirement(DEFINER, "view d.v", "asked_system@%"),), None, MYSQL),
    (
        "nobody",
        ("{setter}",),
        (Requirement(DEFINER, "view d.v", "asked_nobody@%"),),
        "ALLOW_NONEXISTENT_DEFINER",
        MYSQL,
    ),
    (
        "nobody-yet",
        ("{setter}",),
        (Requirement(CHANGED, "account asked_nobody@%"), Requirement(DEFINER, "view d.v", "asked_nobody@%")),
        None,
        MYSQL,
    ),
    (
        "nobody-may",
        ("{setter}, ALLOW_NONEXISTENT_DEFINER",),
        (Requirement(DEFINER, "view d.v", "asked_no@%"),),
        None,
        MYSQL,
    ),
    ("dropped", ("{setter}",), (Requirement(CHANGED, "procedure asked.p"),), "SYSTEM_USER", MYSQL),
    ("dropped-of-another", ("{setter}",), (Requirement(CHANGED, "procedure asked.q"),), None, MYSQL),
    ("dropped-view", ("{setter}",), (Requirement(CHANGED, "view asked.V"),), "SYSTEM_USER", MYSQL),
    ("changed-account", (), (Requirement(CHANGED, "account asked_system@%"),), "SYSTEM_USER", MYSQL),
    ("changed-plain-account", (), (Requirement(CHANGED, "account asked_plain@%"),), None, BOTH),
    ("flush", (), (Requirement(PRIVILEGE, "", "RELOAD"),), "RELOAD", BOTH),
    ("flush-may", ("RELOAD",), (Requirement(PRIVILEGE, "", "RELOAD"),), None, BOTH),
    ("read", (), (Requirement(PRIVILEGE, "other", "SELECT"),), "SELECT ON `other`.*", BOTH),
    ("read-may", (), (Requirement(PRIVILEGE, "asked", "SELECT"),), None, BOTH),
]
_SEES = "SELECT ON `mysql`.*"
BLIND: Sequence[tuple[str, tuple[str, ...], tuple[Requirement, ...], str | None, tuple[Flavor, ...]]] = [
    ("blind-itself", (), (Requirement(DEFINER, "view d.v", f"{USER}@%"),), None, BOTH),
    ("blind-another", ("{setter}",), (Requirement(DEFINER, "view d.v", "asked_plain@%"),), _SEES, MYSQL),
    ("blind-another", ("{setter}",), (Requirement(DEFINER, "view d.v", "asked_plain@%"),), None, (Flavor.MARIADB,)),
    ("blind-no-setter", (), (Requirement(DEFINER, "view d.v", "asked_system@%"),), "{setter}", BOTH),
    ("blind-may", ("{setter}, SYSTEM_USER",), (Requirement(DEFINER, "view d.v", "asked_system@%"),), None, MYSQL),
    ("blind-dropped", ("{setter}",), (Requirement(CHANGED, "procedure asked.p"),), _SEES, MYSQL),
    ("blind-dropped-view", ("{setter}",), (Requirement(CHANGED, "view asked.V"),), _SEES, MYSQL),
    ("blind-dropped-none", ("{setter}",), (Requirement(CHANGED, "view asked.none"),), None, BOTH),
    ("blind-changed-account", (), (Requirement(CHANGED, "account asked_system@%"),), _SEES, MYSQL),
    ("blind-changed-itself", (), (Requirement(CHANGED, f"account {USER}@%"),), None, BOTH),
]
"""Of an account that may not read the database ``mysql``."""


def test_each_missing_privilege_of_a_definer_is_named_and_each_sufficient_one_accepted(server: PrivateServer) -> None:
    """All cases on one server, each as the server itself would judge it (error 1227)."""
    made = [
        "CREATE DATABASE asked",
        *(f"CREATE USER {name}" for name in ("asked_plain", "asked_system", "asked_member")),
    ]
    if server.flavor is Flavor.MYSQL:
        made += [
            *("CREATE ROLE asked_role", "GRANT SYSTEM_USER ON *.* TO asked_role, asked_system"),
            *("GRANT asked_role TO asked_member", "CREATE DEFINER=asked_system PROCEDURE asked.p() SELECT 1"),
            *("CREATE DEFINER=asked_plain PROCEDURE asked.q() SELECT 1",
              "CREATE DEFINER=asked_member VIEW asked.v AS SELECT 1"),
        ]  # fmt: skip
    run(server, *made)
    different = {}
    cases = [*((*case, ("SELECT ON mysql.*",)) for case in CASES), *((*case, ()) for case in BLIND)]
    try:
        for name, grants, requirements, expected, flavors, sees in cases:
            if server.flavor not in flavors:
                continue
            setter = SETTERS[server.flavor]
            granted = [f"{grant.format(setter=setter)} ON *.*" for grant in grants]
            plan = replace(PLAN, requirements={requirement: seqno for seqno, requirement in enumerate(requirements, 5)})
            rights = (*sees, "SELECT, EXECUTE, SHOW VIEW, EVENT ON asked.*", *granted)
            with account(server, *rights), asked(server, USER) as target:
                found = said(situation(target, plan), "statement-privileges", "definers")
            wanted = [] if expected is None else [f"GRANT {expected.format(setter=setter)} "]
            if len(found) != len(wanted) or any(part not in one for part, one in zip(wanted, found, strict=True)):
                different[name] = found
    finally:
        run(server, "DROP USER asked_plain, asked_system, asked_member", "DROP ROLE IF EXISTS asked_role")
    assert different == {}


@pytest.mark.parametrize(
    ("collation", "known"),
    [("8", True), ("45", True), ("255", True), ("2304", True), ("2047", False)],
    ids=["latin1", "utf8mb4", "mysql-8", "mariadb-10.10", "nobody"],
)
def test_collations_of_sessions_are_known_or_have_a_substitute(
    server: PrivateServer, collation: str, known: bool
) -> None:
    plan = replace(PLAN, requirements={Requirement(SESSION_COLLATION, "session", collation): 7})
    with asked(server) as target:
        found = said(situation(target, plan, target.ask(read_schema, frozenset({"asked"}))), "features")
    assert (found == []) is known, found
    assert known or "in the statement of seqno 7" in found[0]


def test_no_fact_of_a_server_is_asked_for_twice(server: PrivateServer) -> None:
    """By the checks of the server and those of statements, which need the same variables, grants and accounts."""
    sent: list[str] = []
    texts = [logged(each, server.flavor) for each in ("GRANT SELECT ON *.* TO x", "CREATE TABLE c (a INT)")]
    requirements = {Requirement(DEFINER, "view d.v", "other@%"): 5, Requirement(PRIVILEGE, "", "RELOAD"): 6}
    needs = Needs(frozenset({"asked"}), statements=True, ddl=True, accounts=True)
    with asked(server) as target:
        create(target.engine)

        @sqlalchemy.event.listens_for(target.engine, "before_cursor_execute")
        def note(_c: object, _k: object, statement: str, *_: object) -> None:
            sent.append(statement)

        run_checks(situation(target, replace(PLAN, requirements=requirements), texts=texts, needs=needs), CHECKS)

    counts = Counter(statement for statement in sent if "CONNECTION_ID" not in statement)
    assert {"SHOW GRANTS", "SHOW GLOBAL VARIABLES", "SELECT CURRENT_USER()"} <= counts.keys()
    assert {each: count for each, count in counts.items() if count > 1} == {}


WITHOUT_HOSTS = (
    *(
        "DROP USER {}",
        "DROP USER IF EXISTS nobody, {}",
        "RENAME USER {} TO asked_other",
        "ALTER USER {} DEFAULT ROLE NONE",
    ),
    *("GRANT asked_role TO {}", "GRANT asked_role TO asked_user, '{}' WITH ADMIN OPTION", "REVOKE asked_role FROM {}"),
    *("REVOKE SELECT ON *.* FROM {}", "REVOKE ALL PRIVILEGES, GRANT OPTION FROM {}", "SET DEFAULT ROLE NONE TO {}"),
    "DROP ROLE {}",
)


def test_accounts_without_a_host_are_those_of_any_host(mysql_target: PrivateServer) -> None:
    """MySQL logs these statements as they were written."""
    different = {}
    for statement in WITHOUT_HOSTS:
        for name in ("asked_boss", "asked_plain"):
            sql = statement.format(name)
            run(mysql_target, *(f"CREATE USER asked_{each}" for each in ("boss", "plain", "user")))
            run(mysql_target, "GRANT SYSTEM_USER ON *.* TO asked_boss", "CREATE ROLE asked_role")
            run(mysql_target, *(f"GRANT SELECT ON *.* TO {each}" for each in ("asked_boss", "asked_plain")))
            try:
                rights = ("SELECT, CREATE USER ON *.*", "ROLE_ADMIN ON *.*")
                with account(mysql_target, *rights):
                    run(mysql_target, f"GRANT SELECT ON *.* TO {USER} WITH GRANT OPTION")
                    with asked(mysql_target, USER) as target:
                        found = said(situation(target, texts=[logged(sql, Flavor.MYSQL)]), "definers")
                    if may(mysql_target, sql) != (found == []):
                        different[sql] = found
            finally:
                names = ", ".join(f"asked_{each}" for each in ("boss", "plain", "user", "role", "other"))
                run(mysql_target, f"DROP USER IF EXISTS {names}")
    assert different == {}
