"""What an account of the source does in its own name is that account's on the target, not the applying one's."""

from __future__ import annotations

import contextlib

import pytest

from binlane.model import Flavor
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf

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
