"""What an account may pass on and make: judged from its grants, and held against what the server then says."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

import pymysql
import pytest
from sqlalchemy import NullPool

from binlane.model import Flavor, Item, ItemKind, LogPosition, SessionContext
from binlane.precheck.situation.facts import Server
from binlane.servers.engines import engine_at
from binlane.sql.logged_statement import LoggedText
from lab.servers import PrivateServer
from tests.integration.precheck.helpers import asked, run
from tests.integration.precheck.test_server import USER, account
from tests.unit.precheck.situations import said, situation

BOTH = tuple(Flavor)
MARIADB, MYSQL = (Flavor.MARIADB,), (Flavor.MYSQL,)
ALL_WITH = "ALL ON *.* TO {user} WITH GRANT OPTION"
SOME_WITH = "SELECT, INSERT ON *.* TO {user} WITH GRANT OPTION"
DB_WITH = "SELECT, INSERT, DROP ON rights.* TO {user} WITH GRANT OPTION"
CASES: Sequence[tuple[tuple[str, ...], str, tuple[Flavor, ...]]] = [
    ((ALL_WITH,), "GRANT ALL ON *.* TO rights_user", MYSQL),
    ((ALL_WITH,), "GRANT ALL PRIVILEGES ON *.* TO rights_user WITH GRANT OPTION", BOTH),
    ((ALL_WITH,), "GRANT SELECT, DROP ON rights.* TO rights_user", BOTH),
    ((ALL_WITH,), "REVOKE DROP ON rights.* FROM rights_user", BOTH),
    ((ALL_WITH,), "GRANT SELECT (a), INSERT ON rights.t TO rights_user", BOTH),
    (("ALL ON *.* TO {user}",), "GRANT SELECT ON rights.* TO rights_user", BOTH),
    ((SOME_WITH,), "GRANT SELECT ON *.* TO rights_user", BOTH),
    ((SOME_WITH,), "GRANT SELECT, INSERT ON rights.* TO rights_user", BOTH),
    ((SOME_WITH,), "GRANT SELECT, DROP ON rights.* TO rights_user", BOTH),
    ((SOME_WITH,), "REVOKE DROP ON rights.* FROM rights_user", BOTH),
    ((SOME_WITH,), "GRANT UPDATE ON rights.t TO rights_user", BOTH),
    ((SOME_WITH,), "GRANT SELECT ON TABLE rights.t TO rights_user", BOTH),
    ((SOME_WITH,), "GRANT SELECT ON t TO rights_user", BOTH),
    ((SOME_WITH,), "GRANT DROP ON * TO rights_user", BOTH),
    ((SOME_WITH,), "GRANT USAGE ON *.* TO rights_user", BOTH),
    ((SOME_WITH,), "GRANT ALL ON rights.* TO rights_user", BOTH),
    ((SOME_WITH,), "GRANT ALL ON *.* TO rights_user", BOTH),
    ((SOME_WITH,), "GRANT PROCESS ON *.* TO rights_user", BOTH),
    ((DB_WITH,), "GRANT DROP ON rights.* TO rights_user", BOTH),
    ((DB_WITH,), "GRANT DROP ON rights.t TO rights_user", BOTH),
    ((DB_WITH,), "GRANT DROP ON *.* TO rights_user", BOTH),
    ((DB_WITH,), "GRANT SELECT ON other.* TO rights_user", BOTH),
    (("ALL ON rights.* TO {user} WITH GRANT OPTION",), "GRANT ALL ON rights.* TO rights_user", BOTH),
    (("ALL ON `right_`.* TO {user} WITH GRANT OPTION",), "GRANT SELECT ON rights.* TO rights_user", BOTH),
    (("ALL ON `rights\\_%`.* TO {user} WITH GRANT OPTION",), "GRANT SELECT ON `rights\\_%`.* TO rights_user", BOTH),
    (("ALL ON `rights\\_%`.* TO {user} WITH GRANT OPTION",), "GRANT SELECT ON rights.* TO rights_user", BOTH),
    (("SELECT, DROP ON rights.* TO {user}", "USAGE ON *.* TO {user} WITH GRANT OPTION"),
     "GRANT DROP ON rights.* TO rights_user", BOTH),
    (("SELECT ON rights.t TO {user} WITH GRANT OPTION",), "GRANT SELECT ON rights.t TO rights_user", BOTH),
    (("SELECT ON rights.t TO {user} WITH GRANT OPTION",), "GRANT SELECT ON rights.* TO rights_user", BOTH),
    ((SOME_WITH, "XA_RECOVER_ADMIN ON *.* TO {user}"), "GRANT XA_RECOVER_ADMIN ON *.* TO rights_user", MYSQL),
    (("XA_RECOVER_ADMIN ON *.* TO {user} WITH GRANT OPTION",), "GRANT XA_RECOVER_ADMIN ON *.* TO rights_user", MYSQL),
    ((SOME_WITH,), "GRANT XA_RECOVER_ADMIN ON *.* TO rights_user", MYSQL),
    ((SOME_WITH, "BINLOG ADMIN ON *.* TO {user}"), "GRANT BINLOG ADMIN ON *.* TO rights_user", MARIADB),
    ((SOME_WITH,), "GRANT BINLOG ADMIN ON *.* TO rights_user", MARIADB),
    ((), "GRANT rights_role TO rights_user", BOTH),
    (("rights_role TO {user}",), "GRANT rights_role TO rights_user", BOTH),
    (("rights_role TO {user} WITH ADMIN OPTION",), "GRANT rights_role TO rights_user", BOTH),
    (("rights_role TO {user} WITH ADMIN OPTION",), "REVOKE rights_role FROM rights_user", BOTH),
    (("ROLE_ADMIN ON *.* TO {user}",), "GRANT rights_role TO rights_user", MYSQL),
    (("CREATE USER ON *.* TO {user}",), "CREATE ROLE rights_new", BOTH),
    ((), "GRANT 'rights_role' TO rights_user", BOTH),
    (("rights_role TO {user} WITH ADMIN OPTION",), "GRANT 'rights_role' TO 'rights_user'@'%'", BOTH),
    (("rights_role TO {user} WITH ADMIN OPTION",), 'REVOKE ADMIN OPTION FOR "rights_role" FROM rights_user', MARIADB),
    ((), "GRANT `rights_role`@`%` /* all */ TO rights_user", MYSQL),
    (("rights_role@localhost TO {user} WITH ADMIN OPTION",), "GRANT rights_role TO rights_user", MYSQL),
    (("rights_role@localhost TO {user} WITH ADMIN OPTION",), "GRANT rights_role@localhost TO rights_user", MYSQL),
    (("rights_group TO {user}",), "GRANT rights_role TO rights_user", MARIADB),
    (("CREATE USER ON *.* TO {user}",), "CREATE ROLE rights_new WITH ADMIN rights_user /* ann */", MARIADB),
    (("CREATE USER ON *.* TO {user}", "SET USER ON *.* TO {user}"),
     "CREATE ROLE rights_new WITH /* a */ ADMIN rights_user -- b", MARIADB),
    (("CREATE USER ON *.* TO {user}",), "SET DEFAULT ROLE 'rights_role' FOR 'rights_user'@'%'", MARIADB),
    (("UPDATE ON mysql.* TO {user}",), "SET DEFAULT ROLE 'rights_role' FOR 'rights_user'@'%'", MARIADB),
    ((), "SET DEFAULT ROLE 'NONE' FOR '{user}'@'%'", MARIADB),
    ((), "GRANT SELECT (a) ON rights.t TO rights_user", BOTH),
    (("SELECT ON rights.* TO {user}",), "GRANT SELECT (a) ON rights.t TO rights_user", BOTH),
    (("SELECT ON rights.* TO {user}",), "REVOKE SELECT (a) ON rights.t FROM rights_user", BOTH),
    ((DB_WITH,), "GRANT SELECT (a), INSERT (a) ON rights.t TO rights_user", BOTH),
    ((DB_WITH,), "GRANT SELECT (a), UPDATE (a) ON rights.t TO rights_user", BOTH),
    (("SELECT (a) ON rights.t TO {user} WITH GRANT OPTION",), "GRANT SELECT (a) ON rights.t TO rights_user", BOTH),
    (("SELECT (b) ON rights.t TO {user} WITH GRANT OPTION",), "GRANT SELECT (a) ON rights.t TO rights_user", BOTH),
    ((), "GRANT EXECUTE ON PROCEDURE rights.p TO rights_user", BOTH),
    (("EXECUTE ON rights.* TO {user}",), "GRANT EXECUTE ON PROCEDURE rights.p TO rights_user", BOTH),
    (("EXECUTE ON rights.* TO {user} WITH GRANT OPTION",), "GRANT EXECUTE ON PROCEDURE p TO rights_user", BOTH),
    (("EXECUTE ON rights.* TO {user} WITH GRANT OPTION",), "GRANT ALTER ROUTINE ON PROCEDURE p TO rights_user", BOTH),
    (("EXECUTE ON PROCEDURE rights.p TO {user} WITH GRANT OPTION",),
     "GRANT EXECUTE ON PROCEDURE rights.P TO rights_user", BOTH),
    (("EXECUTE ON PROCEDURE rights.p TO {user} WITH GRANT OPTION",),
     "GRANT ALL ON PROCEDURE rights.p TO rights_user", BOTH),
    ((DB_WITH,), "REVOKE EXECUTE ON PROCEDURE rights.p FROM rights_user", BOTH),
    ((), "CREATE SERVER rights FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')", BOTH),
    ((), "CREATE SERVER role FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')", BOTH),
    (("SUPER ON *.* TO {user}",), "CREATE SERVER rights FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')", BOTH),
    (("FEDERATED ADMIN ON *.* TO {user}",),
     "CREATE SERVER rights FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')", MARIADB),
    ((), "CREATE TABLESPACE rights ADD DATAFILE 'rights.ibd'", MYSQL),
    (("CREATE TABLESPACE ON *.* TO {user}",), "CREATE TABLESPACE rights ADD DATAFILE 'rights.ibd'", MYSQL),
    ((), "CREATE RESOURCE GROUP rights TYPE = USER", MYSQL),
    (("RESOURCE_GROUP_ADMIN ON *.* TO {user}",), "CREATE RESOURCE GROUP rights TYPE = USER", MYSQL),
    ((), "CREATE SPATIAL REFERENCE SYSTEM 4711 NAME 'rights' DEFINITION 'GEOGCS[\"x\",DATUM[\"x\","
     "SPHEROID[\"x\",6378137,298.25]],PRIMEM[\"x\",0],UNIT[\"degree\",0.017453292519943278],AXIS[\"Lat\",NORTH],"
     "AXIS[\"Lon\",EAST]]'", MYSQL),
    ((), "CREATE FUNCTION rights_udf RETURNS STRING SONAME 'rights.so'", BOTH),
    (("INSERT ON mysql.* TO {user}",), "CREATE FUNCTION rights_udf RETURNS STRING SONAME 'rights.so'", BOTH),
]  # fmt: skip
MADE = (
    *(
        "CREATE DATABASE rights",
        "CREATE DATABASE other",
        "CREATE TABLE rights.t (a INT, b INT)",
        "CREATE ROLE rights_role",
    ),
    *("CREATE USER rights_user", "CREATE PROCEDURE rights.p() SELECT 1"),
)
MADE_ON: Mapping[Flavor, Sequence[str]] = {
    Flavor.MARIADB: ("CREATE ROLE rights_group", "GRANT rights_role TO rights_group WITH ADMIN OPTION"),
    Flavor.MYSQL: ("CREATE ROLE rights_role@localhost",),
}
EACH = (
    *("DROP USER rights_user", "CREATE USER rights_user", "GRANT DROP ON rights.* TO rights_user"),
    *("GRANT rights_role TO rights_user", "GRANT EXECUTE ON PROCEDURE rights.p TO rights_user"),
    "GRANT SELECT (a) ON rights.t TO rights_user",
)
UNDONE = {
    Flavor.MARIADB: ("DROP SERVER IF EXISTS rights", "DROP ROLE IF EXISTS rights_new"),
    Flavor.MYSQL: ("DROP SERVER IF EXISTS rights", "DROP TABLESPACE rights", "DROP RESOURCE GROUP rights"),
}
REFUSED = frozenset({1044, 1045, 1142, 1143, 1227, 1370, 1410, 1698, 1959, 6427})
"""What servers say to those who may not."""


def logged(statement: str, flavor: Flavor) -> LoggedText:
    item = Item(ItemKind.DDL, statement.encode(), context=SessionContext(database="rights"))
    found = LoggedText.of(5, LogPosition("binlog.000007", 4711), item, flavor)
    assert found is not None
    return found


def may(server: PrivateServer, statement: str) -> bool:
    """Whether the server lets the account run it."""
    with contextlib.closing(server.connect(user=USER, autocommit=True)) as connection:
        connection.cursor().execute("SET @unused = 1")
        try:
            with contextlib.suppress(pymysql.err.OperationalError):
                connection.select_db("rights")
            connection.cursor().execute(statement)
        except pymysql.err.MySQLError as exc:
            return exc.args[0] not in REFUSED
    return True


def test_the_check_of_grants_agrees_with_the_server(server: PrivateServer) -> None:
    run(server, *MADE, *MADE_ON[server.flavor])
    different: dict[str, object] = {}
    try:
        for grants, statement, flavors in CASES:
            if server.flavor not in flavors:
                continue
            statement = statement.format(user=USER)
            with account(server):
                run(server, *EACH, *(f"GRANT {each.format(user=USER)}" for each in grants))
                if any("rights_role" in each for each in grants) and server.flavor is Flavor.MYSQL:
                    run(server, f"ALTER USER {USER} DEFAULT ROLE ALL")
                with asked(server, USER) as target:
                    found = said(situation(target, texts=[logged(statement, server.flavor)]), "grants")
                if may(server, statement) != (found == []):
                    different[f"{grants}: {statement}"] = found
            for undo in UNDONE[server.flavor]:
                with contextlib.suppress(pymysql.err.MySQLError):
                    run(server, undo)
    finally:
        roles = (each.split()[2] for each in (*MADE, *MADE_ON[server.flavor]) if each.startswith("CREATE ROLE"))
        run(server, "DROP USER rights_user", *(f"DROP ROLE {role}" for role in roles))
        run(server, "DROP ROLE IF EXISTS rights_new")
    assert different == {}


def test_a_finding_says_where_what_and_what_to_grant(server: PrivateServer) -> None:
    statements = [
        logged("GRANT DROP, EVENT ON shop.* TO somebody", server.flavor),
        logged("CREATE ROLE of_the_window", server.flavor),
        logged("GRANT of_the_window TO somebody", server.flavor),
        logged(f"CREATE ROLE its_own, one_more WITH ADMIN '{USER}'@'%'", server.flavor),
        logged("GRANT its_own TO one_more", server.flavor),
        logged("CREATE ROLE of_another WITH ADMIN 'another'@'%'", server.flavor),
        logged("GRANT of_another TO somebody", server.flavor),
    ]
    setter = ("SET USER ON *.*",) if server.flavor is Flavor.MARIADB else ()
    with account(server, "SELECT, DROP ON *.*", *setter), asked(server, USER) as target:
        first, *others = said(situation(target, texts=statements), "grants")
    assert first.startswith("binlog.000007:4711: statement of seqno 5, GRANT DROP, EVENT ON shop.* TO somebody: ")
    assert "GRANT DROP, EVENT ON `shop`.* TO the account WITH GRANT OPTION" in first
    # on MariaDB the window's roles are their maker's to grant, unless it names another
    lacking = ["of_another"] if server.flavor is Flavor.MARIADB else ["of_the_window", "its_own", "of_another"]
    assert [other.partition("expected ")[2].partition(",")[0] for other in others] == lacking


PROXIED: Sequence[tuple[str, str, int] | None] = [
    *(None, ("", "%", 1), ("", "", 1), ("", "%", 0), ("", "localhost", 1)),
    *(("rights_user", "%", 1), ("rights_user", "", 1), ("rights_user", "%", 0), ("another", "%", 1)),
]
PROXIES: Sequence[str] = (
    "GRANT /* for */ PROXY ON 'rights_user'@'localhost' TO rights_user",
    *("GRANT PROXY ON rights_user@localhost TO rights_user", "REVOKE PROXY ON rights_user@localhost FROM rights_user"),
    *("GRANT PROXY ON 'rights_user' TO rights_user WITH GRANT OPTION", "GRANT PROXY ON ``@`%` TO rights_user"),
    f"GRANT PROXY ON `{USER}`@'%' TO rights_user",
)


def test_the_check_of_proxy_grants_agrees_with_the_server(server: PrivateServer) -> None:
    insert = (
        "INSERT INTO mysql.proxies_priv (host, user, proxied_user, proxied_host, with_grant, grantor) "
        f"VALUES ('%', '{USER}', '{{}}', '{{}}', {{}}, '')"
    )
    different: dict[str, object] = {}
    run(server, "CREATE USER rights_user")
    try:
        with account(server):
            for proxied in PROXIED:
                rows = [] if proxied is None else [insert.format(*proxied)]
                run(server, f"DELETE FROM mysql.proxies_priv WHERE user = '{USER}'", *rows, "FLUSH PRIVILEGES")
                for statement in PROXIES:
                    with asked(server, USER) as target:
                        found = said(situation(target, texts=[logged(statement, server.flavor)]), "grants")
                    if may(server, statement) != (found == []):
                        different[f"{proxied}: {statement}"] = found
    finally:
        run(server, f"DELETE FROM mysql.proxies_priv WHERE user = '{USER}'", "FLUSH PRIVILEGES")
        run(server, "DROP USER rights_user")
    assert different == {}


ADMINISTRATORS: Sequence[tuple[tuple[str, ...], str, str]] = [
    (("CREATE ROLE r",), "GRANT r TO rights_user", ""),
    ((), "CREATE ROLE r WITH ADMIN rights_user", "an account with SET USER or SUPER, as the administrator"),
    (("CREATE ROLE r WITH ADMIN CURRENT_USER",), "GRANT r TO rights_user", ""),
    (("CREATE ROLE r WITH ADMIN rights_user",), "GRANT r TO rights_user", "seqno 5 makes another account"),
    (("CREATE ROLE r WITH ADMIN 'rights_user'@'%'",), "REVOKE r FROM rights_user", "seqno 5 makes another account"),
    (("CREATE ROLE IF NOT EXISTS there",), "GRANT there TO rights_user", "without the ADMIN OPTION"),
    (("CREATE ROLE IF NOT EXISTS r",), "GRANT r TO rights_user", ""),
    (("CREATE ROLE r", "DROP ROLE r", "CREATE ROLE r WITH ADMIN rights_user"), "GRANT r TO rights_user", "makes"),
    (("CREATE ROLE r WITH ADMIN rights_user", "CREATE OR REPLACE ROLE r"), "GRANT r TO rights_user", ""),
    ((f"CREATE ROLE r WITH ADMIN {USER}",), "GRANT r TO rights_user", ""),
    (("CREATE ROLE r", f"REVOKE r FROM {USER}@'%'"), "GRANT r TO rights_user", "without the ADMIN OPTION"),
    (("CREATE ROLE r WITH ADMIN rights_user", "CREATE OR REPLACE ROLE r", f"REVOKE r FROM {USER}@'%'"),
     "GRANT r TO rights_user", "without the ADMIN OPTION; GRANT r TO the account"),
    (("CREATE ROLE r, s WITH ADMIN rights_user",), "GRANT s TO rights_user", "makes another account"),
    (("CREATE ROLE 'r' WITH ADMIN rights_user",), "GRANT r TO rights_user", "seqno 5 makes another account"),
    (("CREATE ROLE r /* of nobody */",), "GRANT 'r' TO rights_user", ""),
]  # fmt: skip


def test_a_role_is_its_administrator_s_to_grant_whoever_makes_it(mariadb_target: PrivateServer) -> None:
    """Each statement is judged behind those before it, and then run."""
    different: dict[str, object] = {}
    run(mariadb_target, "CREATE USER rights_user", "CREATE ROLE there")
    try:
        for before, statement, expected in ADMINISTRATORS:
            sent = [each.replace("CURRENT_USER", f"'{USER}'@'%'") for each in (*before, statement)]
            rights = (
                "CREATE USER ON *.*",
                "SELECT ON mysql.*",
                *(() if "SET USER" in expected else ("SET USER ON *.*",)),
            )
            with account(mariadb_target, *rights):
                with asked(mariadb_target, USER) as target:
                    texts = [logged(each, Flavor.MARIADB) for each in sent]
                    found = said(situation(target, texts=texts), "grants")
                answers = [may(mariadb_target, each) for each in sent]
                if all(answers) != (found == []) or expected not in "".join(found):
                    different[f"{before}: {statement}"] = found
            run(mariadb_target, "DROP ROLE IF EXISTS r, s")
    finally:
        run(mariadb_target, "DROP USER rights_user", "DROP ROLE there")
    assert different == {}


def test_the_creator_of_a_routine_needs_only_the_grant_option_to_grant_it(server: PrivateServer) -> None:
    run(server, "CREATE DATABASE rights", "CREATE USER rights_user")
    statements = ("CREATE PROCEDURE IF NOT EXISTS p() SELECT 1", "GRANT EXECUTE ON PROCEDURE p TO rights_user")
    texts = [logged(each, server.flavor) for each in statements]
    try:
        for grants in (("CREATE ROUTINE ON rights.*",), ("CREATE ROUTINE ON rights.*", DB_WITH.format(user=USER))):
            with account(server):
                run(server, *(f"GRANT {each}" if " TO " in each else f"GRANT {each} TO {USER}" for each in grants))
                with asked(server, USER) as target:
                    found = said(situation(target, texts=texts), "grants")
                assert all(may(server, each) for each in statements) == (found == []) == (len(grants) == 2)
            run(server, "DROP PROCEDURE rights.p")
    finally:
        run(server, "DROP DATABASE rights", "DROP USER rights_user")


def test_a_function_of_a_powerful_account_is_not_dropped_by_its_bare_name_either(mysql_target: PrivateServer) -> None:
    run(
        mysql_target,
        *("CREATE DATABASE rights", "CREATE USER rights_user", "GRANT SYSTEM_USER ON *.* TO rights_user"),
        *(f"CREATE DEFINER={who} FUNCTION rights.{name}() RETURNS INT DETERMINISTIC RETURN 1"
          for who, name in (("rights_user", "f"), (mysql_target.user, "g"))),
    )  # fmt: skip
    statements = [logged(f"DROP FUNCTION {each}", Flavor.MYSQL) for each in ("f", "IF EXISTS `F`", "nothing")]
    try:
        with account(mysql_target, "SELECT, ALTER ROUTINE, EXECUTE ON *.*"):
            with asked(mysql_target, USER) as target:
                found = said(situation(target, texts=statements), "dropped-functions")
            assert not may(mysql_target, "DROP FUNCTION f")
            # a loadable one goes first
            run(mysql_target, "INSERT INTO mysql.func VALUES ('f', 2, 'rights.so', 'function')")
            with asked(mysql_target, USER) as target:
                [loadable] = said(situation(target, texts=statements[:1]), "dropped-functions")
            assert "found f of a library, which would be dropped in place of rights.f" in loadable
    finally:
        run(mysql_target, "DELETE FROM mysql.func WHERE name = 'f'")
        run(mysql_target, "DROP DATABASE rights", "DROP USER rights_user")
    assert [one.partition(",")[0] for one in found] == ["function rights.f", "function rights.F"]
    assert "GRANT SYSTEM_USER ON *.* TO the account" in found[0]


@pytest.mark.parametrize("statement", ["GRANT", "GRANT SELECT ON", "REVOKE ALL", "CREATE", "DROP ROLE", "GRANT TO x"])
def test_incomplete_account_statements_are_left_to_the_parser(statement: str, mariadb_target: PrivateServer) -> None:
    with asked(mariadb_target) as target:
        found = said(situation(target, texts=[logged(statement, Flavor.MARIADB)]), "grants")
    assert found == [] or statement == "GRANT TO x"


@pytest.mark.parametrize("knows_all", [False, True], ids=["asked for alone", "behind all variables"])
def test_names_in_grants_are_read_by_the_rules_of_the_server(server: PrivateServer, knows_all: bool) -> None:
    """Grants without the server's variables are taken to have patterns, and names of any letter case."""

    def read() -> tuple[bool, bool]:
        with Server(engine_at(server.url(), poolclass=NullPool)) as target:
            assert not knows_all or target.variables
            return target.grants.has_wildcards, target.grants.ignores_case

    if server.flavor is Flavor.MARIADB:
        assert read() == (True, False)
        return
    for value, has_wildcards in (("ON", False), ("OFF", True)):
        server.query(f"SET GLOBAL partial_revokes = {value}")
        assert read() == (has_wildcards, False)
