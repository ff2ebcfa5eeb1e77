"""Two servers read one text differently: comments and hints that are SQL to one of them.

A user of the source who may write the database ``app`` tries to reach ``other``, which the channel leaves out.
"""

from __future__ import annotations

import pytest

from binlane.errors import UnsupportedEventError
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, run_on
from tests.security.readings import sweep

FILTER = '[filter]\ninclude_databases = ["app"]\n[filter.kinds]\naccounts = "refuse"\ndrop = "refuse"\n'
MYSQL_TO_MARIADB = pytest.param("mysql", "mariadb", marks=requires_mysql, id="mysql-to-mariadb")
MARIADB_TO_MYSQL = pytest.param("mariadb", "mysql", marks=requires_mysql, id="mariadb-to-mysql")
MYSQL_TO_MYSQL = pytest.param("mysql", "mysql", marks=requires_mysql, id="mysql-to-mysql")
MARIADB_TO_MARIADB = pytest.param("mariadb", "mariadb", id="mariadb-to-mariadb")
FAMILIES = (MYSQL_TO_MARIADB, MARIADB_TO_MYSQL, MYSQL_TO_MYSQL, MARIADB_TO_MARIADB)

STATEMENTS = (
    "RENAME TABLE app.x TO app.x9 /*M! , other.victim TO app.stolen */",
    "RENAME TABLE app.y TO app.y9 /*M!100000 , binlane.suspects TO app.suspects */",
    "CREATE TABLE app.c AS SELECT 1 AS n, 'a' AS a /*M! UNION SELECT n, 'b' FROM other.victim */",
    "CREATE TABLE app.d (n INT) /*M!50701 AS SELECT n FROM other.victim */",
    "ALTER TABLE app.t COMMENT 'c' /*!50700 , ADD COLUMN e INT */",
    "ALTER TABLE app.t COMMENT 'd' /*M! , ADD COLUMN f INT */ /*!100500 , ADD COLUMN g INT */",
    "INSERT INTO app.t (n) VALUES (1) /*M! ,(2) */",
    "INSERT INTO app.t (n) VALUES (3) /*!80000 ,(4) */ /*!100100 ,(5) */ /*!999999 ,(6) */",
    "INSERT INTO app.t (n /*M! , a */) VALUES (7 /*M! , 7 */)",
    "UPDATE app.t SET n = n + 100 /*!50800 + 1 */ WHERE n = 3 -- /*! OR 1 */",
    "DELETE FROM app.t WHERE n = 1 /*M! OR n = 7 */",
    "CREATE VIEW app.v AS SELECT n /*M! , a */ FROM app.t /* a comment of both */",
    "CREATE PROCEDURE app.p() INSERT INTO app.t (n) VALUES (10) /*M! ,(11) */ /* a comment of both */",
    "CREATE TRIGGER app.r BEFORE INSERT ON app.x9 FOR EACH ROW SET NEW.n = 12 /*M! + 1 */ /*!50700 + 2 */",
)


@pytest.mark.parametrize(("source", "target"), FAMILIES)
def test_the_target_executes_what_the_source_has_executed(source: str, target: str, channel_of: ChannelOf) -> None:
    channel = channel_of(source, target)
    channel.write_channel(FILTER)
    made = ("CREATE DATABASE app", *(f"CREATE TABLE app.{name} (n INT, a INT)" for name in "txy"))
    run_on(channel.source, *made)
    for server in (channel.source, channel.target):
        other = ("CREATE DATABASE other", "CREATE TABLE other.victim (n INT)", "INSERT INTO other.victim VALUES (42)")
        run_on(server, *other, log=False)
    assert channel.run() is not None
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", *_of_user(STATEMENTS, source))

    assert channel.run() is not None

    assert channel.target.query("SELECT n FROM other.victim") == [(42,)]
    for name in ("app.t", "app.c", "app.d", "app.v", "app.x9"):
        rows = [sorted(map(str, server.query(f"SELECT * FROM {name}"))) for server in (channel.source, channel.target)]
        assert rows[0] == rows[1], name
    tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'app' ORDER BY 1"
    assert channel.source.query(tables) == channel.target.query(tables)
    for server in (channel.source, channel.target):
        run_on(server, "CALL app.p()", "INSERT INTO app.x9 (n) VALUES (1)", log=False)
    for name in ("app.t", "app.x9"):
        assert sorted(map(str, channel.source.query(f"SELECT * FROM {name}"))) == sorted(
            map(str, channel.target.query(f"SELECT * FROM {name}"))
        )
    shown = "SELECT routine_definition FROM information_schema.routines WHERE routine_schema = 'app'"
    assert "a comment of both" in channel.target.query(shown)[0][0]


def _of_user(statements: tuple[str, ...], source: str) -> list[str]:
    """Those that a user with rights on ``app`` alone may execute on a source of that family."""
    if source == "mysql":
        return list(statements)
    # on MariaDB the comments of these are SQL, for which the user has no privilege
    plain = ("RENAME TABLE app.x TO app.x9", "CREATE TABLE app.c (n INT)", "CREATE TABLE app.d (n INT)")
    return [*plain, *(each for each in statements if "other." not in each and "binlane." not in each)]


HINTS = (
    ("SET_VAR(div_precision_increment=0)", "INSERT {} INTO app.t (n, a) SELECT 1, 10 * (2 / 3)"),
    ("SET_VAR(group_concat_max_len=4)", "INSERT {} INTO app.t (n, a) SELECT 1, GROUP_CONCAT(n ORDER BY n) FROM app.x"),
    ("SET_VAR(sql_mode='ANSI_QUOTES')", 'INSERT {} INTO app.t (n, a) VALUES (1, "2")'),
    ("SET_VAR(foo='*/ INTO app.t (n) VALUES (7) -- ')", "INSERT {} INTO app.t (n) VALUES (8)"),
)


@requires_mysql
@pytest.mark.parametrize(("hint", "statement"), HINTS)
def test_a_hint_that_sets_a_variable_on_the_source_alone_is_refused(
    hint: str, statement: str, channel_of: ChannelOf
) -> None:
    channel = channel_of("mysql", "mariadb")
    channel.on_both("CREATE DATABASE app", "CREATE TABLE app.t (n INT, a INT)", "CREATE TABLE app.x (n INT)")
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", statement.format(f"/*+ {hint} */"))

    with pytest.raises(UnsupportedEventError, match=r"hint.*nothing of the window was written"):
        channel.run()


@requires_mysql
def test_hints_whose_variables_are_logged_or_without_effect_reach_the_other_family(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mariadb")
    channel.on_both("CREATE DATABASE app", "CREATE TABLE app.t (n INT, a DATETIME)")
    hint = "/*+ SET_VAR(timestamp=86400) SET_VAR(sort_buffer_size=65536) SET_VAR(foreign_key_checks=0) */"
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", f"INSERT {hint} INTO app.t VALUES (1, NOW())")

    assert channel.run() is not None

    found = [server.query("SELECT a FROM app.t") for server in (channel.source, channel.target)]
    assert found[0] == found[1]
    assert found[0][0][0].year == 1970


@requires_mysql
def test_what_a_newer_server_skips_or_executes_does_not_depend_on_the_target_s_version(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "11.8")
    channel.on_both("CREATE DATABASE app", "CREATE TABLE app.t (n INT)")
    run_on(
        channel.source,
        "SET SESSION binlog_format = STATEMENT",
        "INSERT INTO app.t VALUES (1) /*!110000 ,(2) */ /*!100500 ,(3) */ /*M!110400 ,(4) */",
    )

    assert channel.run() is not None

    assert channel.target.query("SELECT n FROM app.t ORDER BY n") == [(1,), (3,)]


@pytest.mark.parametrize(("source", "target"), FAMILIES)
def test_any_text_is_read_alike_or_refused(source: str, target: str, request: pytest.FixtureRequest) -> None:
    """A slice of ``tests/trials/test_readings.py``."""
    ours, theirs = request.getfixturevalue(f"{source}_source"), request.getfixturevalue(f"{target}_target")
    tally = sweep(ours, [theirs], seed=1, texts=1000)
    assert tally.wrong == []
    assert tally.resolved > 30
    assert tally.ambiguous < tally.read / 5
