"""No program of the source has binlane's privileges while a first copy asks the target whether it takes it.

Attacker: a user of the source with CREATE ROUTINE on one database, who may call what is there on the target. All
programs are on the target at once then, in the databases that are copied, and stay behind an error.
"""

from __future__ import annotations

import contextlib
from typing import Any, Final

import pymysql
import pytest

from binlane.bootstrap import definition_copy
from binlane.bootstrap.definition_copy import Definition, make, read_programs, rehearse_programs
from binlane.bootstrap.sessions import read_session, write_session
from binlane.errors import PrecheckError, TargetError
from binlane.model import TableKey
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, run_on

FAMILIES: Final = ("mariadb", pytest.param("mysql", marks=requires_mysql))
DATABASES: Final = (
    "SET GLOBAL log_bin_trust_function_creators = ON",
    "CREATE DATABASE app",
    "CREATE TABLE app.t (id INT PRIMARY KEY)",
    "CREATE DATABASE victim",
    "CREATE TABLE victim.t (id INT)",
)
_OF: Final = "CREATE DEFINER=`test_a`@`%`"
MADE: Final = (
    f"{_OF} PROCEDURE app.p() INSERT INTO victim.t VALUES (1)",
    f"{_OF} FUNCTION app.f() RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO victim.t VALUES (2); RETURN 1; END",
    f"{_OF} FUNCTION app.g() RETURNS INT DETERMINISTIC NO SQL RETURN 1",
    f"{_OF} VIEW app.v AS SELECT id FROM app.t",
    f"{_OF} VIEW app.w AS SELECT id, ROUND(1.5, app.g()) AS g FROM app.v",
    f"{_OF} TRIGGER app.fires BEFORE INSERT ON app.t FOR EACH ROW INSERT INTO victim.t VALUES (3)",
    f"{_OF} EVENT app.e ON SCHEDULE EVERY 1 DAY DO INSERT INTO victim.t VALUES (4)",
)
"""Of a user who has no privileges on the database ``victim``."""
CALLS: Final = ("CALL app.p()", "DO app.f()", "INSERT INTO app.t VALUES (1)")
DEFINERS: Final = (
    "SELECT DISTINCT definer FROM (SELECT definer FROM information_schema.routines UNION ALL "
    "SELECT definer FROM information_schema.views UNION ALL SELECT definer FROM information_schema.triggers UNION ALL "
    "SELECT definer FROM information_schema.events) AS found WHERE definer NOT LIKE 'mysql.%'"
)
COUNT: Final = "SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = 'app'"


@pytest.mark.parametrize("is_there", [True, False], ids=["the definer is there", "it comes with the accounts"])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_program_has_the_privileges_of_the_copy(
    family: str, is_there: bool, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = channel_of(family, family)
    # which the account has not, by which binlane runs
    nonexistent = ["REVOKE ALLOW_NONEXISTENT_DEFINER, SUPER ON *.* FROM test_copier"] if family == "mysql" else []
    channel.on_both(*DATABASES)
    run_on(channel.source, "CREATE USER test_a", "GRANT ALL ON app.* TO test_a", *MADE, log=False)
    password = channel.target.password
    account = f"CREATE USER test_copier IDENTIFIED BY '{password}'"
    run_on(channel.target, account, "GRANT ALL ON *.* TO test_copier", *nonexistent, log=False)
    before = channel.target.query(DEFINERS)
    if is_there:
        run_on(channel.target, "CREATE USER test_a", log=False)
    channel.connect("target_server", channel.target, user="test_copier")
    called = list[Any]()

    def dropped(*arguments: Any) -> None:
        if not called:
            called.append(channel.target.query(COUNT))
            assert set(channel.target.query(DEFINERS)) - set(before) <= {("test_a@%",)}
            for call in CALLS:
                # without a program in its way an INSERT changes what it names alone
                with contextlib.suppress(pymysql.err.MySQLError):
                    run_on(channel.target, call, log=False)
            assert channel.target.query("SELECT id FROM victim.t") == []
        drop(*arguments)

    drop = definition_copy.drop
    monkeypatch.setattr("binlane.bootstrap.definition_copy.drop", dropped)
    source = channel.endpoints.source
    assert source is not None
    with contextlib.closing(read_session(source)) as reader:
        programs = read_programs(reader, ["app"], [TableKey("app", "t")])
    assert len(programs) == len(MADE)
    with contextlib.closing(write_session(channel.endpoints.target)) as writer:
        rehearse_programs(writer, programs)
        # MySQL makes none for a definer that it does not have
        assert called == [[(0 if nonexistent and not is_there else 3,)]]
        assert channel.target.query(COUNT) == [(0,)]
        # nor behind an error, where they stay
        refused = Definition(
            *("EVENT", "app", "x", b"CREATE DEFINER=`test_a`@`%` EVENT `x` ON SCHEDULE EVERY 1 WEAK DO 1"),
            *("latin1", "latin1_bin"),
        )
        with pytest.raises(TargetError, match=r"event app\.x: the server says"):
            rehearse_programs(writer, (*programs, refused))
    assert set(channel.target.query(DEFINERS)) - set(before) <= {("test_a@%",)}


@pytest.mark.parametrize("definer", ["", " DEFINER=CURRENT_USER", " DEFINER = `current_user`()"])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_program_is_made_of_the_account_that_makes_it(family: str, definer: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    run_on(channel.target, "CREATE DATABASE app", log=False)
    text = f"CREATE{definer} PROCEDURE `p`() DO 1".encode()
    with (
        contextlib.closing(write_session(channel.endpoints.target)) as session,
        pytest.raises(PrecheckError, match="expected its definition alone"),
    ):
        make(session, Definition("PROCEDURE", "app", "p", text, "latin1", "latin1_bin"))
    assert channel.target.query(COUNT) == [(0,)]
