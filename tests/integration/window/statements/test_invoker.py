"""What an account of the source does in its own name is that account's on the target, not the applying one's."""

from __future__ import annotations

import contextlib

import pytest

from binlane.errors import UnsupportedEventError
from binlane.model import Flavor
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, ChannelOf, run_on

STATEMENTS = (
    "CREATE EVENT tenant_1.e ON SCHEDULE EVERY 1 DAY DO SET @a = 1",
    "ALTER EVENT tenant_1.e COMMENT 'changed'",
    "CREATE VIEW tenant_1.v AS SELECT CURRENT_USER() AS who",
    "GRANT SELECT ON tenant_1.* TO CURRENT_USER()",
)


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_definitions_and_grants_belong_to_who_made_them_on_the_source(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    source, target = channel.source, channel.target
    channel.source.query("CREATE DATABASE tenant_1")
    channel.source.query("CREATE USER 'test_ann'@'127.0.0.1' IDENTIFIED BY 'Ann-1234'")
    channel.source.query("GRANT ALL ON tenant_1.* TO 'test_ann'@'127.0.0.1' WITH GRANT OPTION")
    role = ("CREATE ROLE test_role",) if source.flavor is Flavor.MARIADB else ()
    if role:
        channel.source.query("GRANT CREATE USER ON *.* TO 'test_ann'@'127.0.0.1'")
    ann = channel.source.connect(user="test_ann", password="Ann-1234", autocommit=True)
    with contextlib.closing(ann), ann.cursor() as cursor:
        for statement in (*STATEMENTS, *role):
            cursor.execute(statement)
    try:
        assert channel.run() is not None
        definers = "SELECT definer FROM information_schema.events WHERE event_schema = 'tenant_1'"
        assert channel.target.query(definers) == [("test_ann@127.0.0.1",)]
        if role:
            admins = "SELECT user, host FROM mysql.roles_mapping WHERE role = 'test_role' AND admin_option = 'Y'"
            assert channel.target.query(admins) == [("test_ann", "127.0.0.1")] == channel.source.query(admins)
        grants = "SHOW GRANTS FOR 'test_ann'@'127.0.0.1'"
        assert channel.target.query(grants) == channel.source.query(grants)
    finally:
        for server in (source, target):
            for statement in ("DROP ROLE IF EXISTS test_role",) if role else ():
                server.query(statement)


ANY_PROXY = (
    "INSERT INTO mysql.proxies_priv (host, user, proxied_host, proxied_user, with_grant, grantor) "
    "VALUES ('%', '{}', '%', '', 1, '')"
)


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_privileges_that_the_account_cannot_grant_stop_the_window_before_its_first_write(
    family: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    """The source's account may; the target's has all privileges, and these two are none of them."""
    channel = channel_of(family, family)
    source, target = channel.source, channel.target
    made = ("CREATE ROLE test_role", "GRANT test_role TO test_ann") if family == "mariadb" else ()
    run_on(
        source,
        f"CREATE USER test_ann IDENTIFIED BY '{source.password}'",
        *("GRANT ALL ON *.* TO test_ann WITH GRANT OPTION", "CREATE USER test_bob"),
        *(ANY_PROXY.format("test_ann"), "FLUSH PRIVILEGES"),
        log=False,
    )
    run_on(target, "CREATE USER test_ann", "CREATE USER test_bob", log=False)
    ann = source.connect(user="test_ann", autocommit=True)
    try:
        with contextlib.closing(ann), ann.cursor() as cursor:
            for statement in ("CREATE DATABASE tenant_1", *made, "GRANT PROXY ON test_bob TO test_ann"):
                cursor.execute(statement)
        assert channel.cli("run", CHANNEL) == 1
        said = capsys.readouterr().err
        assert "expected PROXY on test_bob@%, to pass on" in said
        assert ("expected test_role, to pass on" in said) == bool(made)
        assert "makes another account its administrator" in said or not made
        assert target.query("SHOW DATABASES LIKE 'tenant%'") == []
        if not made:
            right = ANY_PROXY.format(target.user)
            run_on(target, right, "FLUSH PRIVILEGES", log=False)
            assert channel.run() is not None
            proxies = "SELECT user, proxied_user FROM mysql.proxies_priv WHERE proxied_user = 'test_bob'"
            assert target.query(proxies) == [("test_ann", "test_bob")]
    finally:
        for server in (source, target):
            run_on(
                server,
                f"DELETE FROM mysql.proxies_priv WHERE user IN ('test_ann', '{server.user}')",
                *("FLUSH PRIVILEGES", *(("DROP ROLE IF EXISTS test_role",) if made else ())),
                log=False,
            )


def test_the_source_s_role_is_not_the_role_of_the_applying_account(channel_of: ChannelOf) -> None:
    """The target's account has a default role of its own, which CURRENT_ROLE would be there."""
    channel = channel_of("mariadb", "mariadb")
    source, target = channel.source, channel.target
    password = source.password
    made = (
        f"CREATE USER test_ann IDENTIFIED BY '{password}'",
        *("CREATE ROLE test_boss", "CREATE ROLE test_lane", "GRANT test_lane TO CURRENT_USER"),
        *("SET DEFAULT ROLE test_lane", "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)"),
        *("GRANT ALL ON *.* TO test_ann WITH GRANT OPTION", "GRANT ALL ON *.* TO test_boss WITH GRANT OPTION"),
        "GRANT test_boss TO test_ann",
    )
    undone = ("DROP ROLE IF EXISTS test_boss, test_lane, test_one, test_two", "DROP DATABASE IF EXISTS tenant_1")
    for server in (source, target):
        run_on(server, *made, log=False)
    try:
        statements = (
            *("SET ROLE test_boss", "GRANT SELECT ON tenant_1.* TO CURRENT_ROLE"),
            *(
                "CREATE ROLE test_one WITH ADMIN CURRENT_ROLE -- the role",
                "SET ROLE NONE",
                "CREATE ROLE test_two; # mine",
            ),
            *("SET ROLE test_boss", "CREATE DEFINER=CURRENT_ROLE PROCEDURE tenant_1.p() SELECT 1"),
            "CREATE DEFINER=CURRENT_ROLE EVENT tenant_1.e ON SCHEDULE EVERY 1 DAY DO SET @a = 1",
            *("SET ROLE NONE", "ALTER EVENT tenant_1.e COMMENT 'ann'", "SET ROLE test_boss"),
            "ALTER DEFINER=CURRENT_ROLE EVENT tenant_1.e COMMENT 'boss'",
        )
        ann = source.connect(user="test_ann", autocommit=True)
        with contextlib.closing(ann), ann.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        assert channel.run() is not None
        for query in (
            "SELECT role, user, host FROM mysql.roles_mapping WHERE role IN ('test_one', 'test_two') ORDER BY 1, 2",
            "SELECT definer, event_comment FROM information_schema.events WHERE event_schema = 'tenant_1'",
            "SELECT definer FROM information_schema.routines WHERE routine_schema = 'tenant_1'",
            "SHOW GRANTS FOR test_boss",
            "SHOW GRANTS FOR test_lane",
        ):
            assert target.query(query) == source.query(query)
        assert ("test_one", "test_boss", "") in target.query("SELECT role, user, host FROM mysql.roles_mapping")
        with contextlib.closing(source.connect(user="test_ann", autocommit=True)) as ann, ann.cursor() as cursor:
            for statement in ("SET ROLE test_boss", "GRANT test_one TO CURRENT_ROLE"):
                cursor.execute(statement)
        with pytest.raises(UnsupportedEventError, match="CURRENT_ROLE, whose account the log does not name"):
            channel.run()
    finally:
        for server in (source, target):
            run_on(server, *undone, "SET DEFAULT ROLE NONE", log=False)
