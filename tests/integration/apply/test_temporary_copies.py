"""Copies of temporary tables, made again on another connection: every value, every definition."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from binlane.apply.session.connection import LaneSession, SessionLimits
from binlane.apply.session.context import ContextSetter
from binlane.apply.temporary_copies import CopyKeeper
from binlane.errors import ApplyError, PositionError
from binlane.model import Flavor
from binlane.state.migrations.upgrade import create
from lab.servers import PrivateServer
from tests.chaos.faults import plain_engine

THREAD = 471_100
TABLES = (
    "CREATE TEMPORARY TABLE d.a (id INT PRIMARY KEY AUTO_INCREMENT, v INT, g INT AS (v + 1) STORED, h INT AS (v * 2), "
    "KEY (v)) AUTO_INCREMENT = 10",
    "INSERT INTO d.a (v) VALUES (1), (2), (3)",
    "UPDATE d.a SET id = 0 WHERE v = 1",
    "INSERT INTO d.a (id) VALUES (500)",
    "DELETE FROM d.a WHERE id = 500",
    "CREATE TEMPORARY TABLE d.`t``y pes` (`f``1` FLOAT, d1 DOUBLE, n DECIMAL(38, 10), b BIT(7), u BIGINT UNSIGNED, "
    "z INT(6) UNSIGNED ZEROFILL, dt DATETIME(6), ts TIMESTAMP(3) NULL, t TIME(2), y YEAR, e ENUM('ä', 'b''c'), "
    "s SET('x', 'y'), vb VARBINARY(20), bl BLOB, tx TEXT CHARACTER SET latin1, ge POINT, j JSON, "
    "c CHAR(5) CHARACTER SET latin2 DEFAULT 'x', v VARCHAR(9) COLLATE utf8mb4_unicode_ci NOT NULL DEFAULT 'Ä')",
    "INSERT INTO d.`t``y pes` VALUES (1.1, 1e-300 / 3, -1.0000000001, b'1010101', 18446744073709551615, 7, "
    "'0000-00-00 00:00:00', '2020-10-25 01:30:00.123', '-838:59:59', 2026, 'ä', 'x,y', 0x00FF27, REPEAT('b', 70000), "
    "'é', POINT(0.1, -2e200), '{\"a\": [1.10, null]}', 'ő', 'ß')",
    "INSERT INTO d.`t``y pes` (`f``1`, e, dt) VALUES (-3.4028e38, '', '2026-02-30')",
    "CREATE TEMPORARY TABLE d.m (a INT, id INT AUTO_INCREMENT, PRIMARY KEY (a, id)) ENGINE=MyISAM",
    "INSERT INTO d.m (a) VALUES (2), (2), (1), (2)",
    "CREATE TEMPORARY TABLE d.h (w VARCHAR(30) DEFAULT '50%', UNIQUE KEY USING HASH (w)) ENGINE=MEMORY "
    "COMMENT='it''s %s'",
    "INSERT INTO d.h VALUES ('b'), ('a'), (NULL), (NULL)",
    "CREATE TEMPORARY TABLE d.hidden (n INT)",
    "INSERT INTO d.hidden VALUES (1)",
    "CREATE TEMPORARY TABLE d.empty_one (n INT CHECK (n > 0), UNIQUE KEY named (n))",
)
NAMES = ("a", "t`y pes", "m", "h", "hidden", "empty_one")
KEPT = tuple((THREAD, "d", name) for name in NAMES)


@pytest.fixture(params=list(Flavor))
def target(request: pytest.FixtureRequest) -> PrivateServer:
    """With the schema of the state, and a permanent table that one of the temporary ones hides."""
    server: PrivateServer = request.getfixturevalue(f"{request.param}_target")
    for statement in ("DROP DATABASE IF EXISTS d", "CREATE DATABASE d", "CREATE TABLE d.hidden (other INT)"):
        server.query(statement)
    create(plain_engine(server.url()))
    return server


@pytest.fixture
def sessions(target: PrivateServer) -> Iterator[list[LaneSession]]:
    """Two connections of lanes."""
    engine = plain_engine(target.url())
    found = [LaneSession.open(engine, SessionLimits()) for _ in range(2)]
    yield found
    for session in found:
        session.close()


def keeper(target: PrivateServer) -> CopyKeeper:
    return CopyKeeper(plain_engine(target.url()), SessionLimits(), "copied")


def copies(target: PrivateServer) -> set[str]:
    return {str(name) for (name,) in target.query("SHOW TABLES FROM binlane LIKE 'copies%%'")}


def contents(session: LaneSession) -> list[Any]:
    """Definitions and rows in the order they come, without a look through character sets and floats' spelling."""
    session.execute(f"SET SESSION pseudo_thread_id = {THREAD}, time_zone = '+00:00'")
    found: list[Any] = []
    for name in (name.replace("`", "``") for name in NAMES):
        found.append(session.rows(f"SHOW CREATE TABLE d.`{name}`"))
        columns = [str(row[0]).replace("`", "``") for row in session.rows(f"SHOW COLUMNS FROM d.`{name}`")]
        exact = ", ".join(f"HEX(`{column}`), `{column}` + 0e0" for column in columns if column not in ("ge", "j"))
        found.append(session.rows(f"SELECT *, {exact} FROM d.`{name}`"))
    session.execute(f"SET SESSION pseudo_thread_id = {session.connection_id}")
    return found


def test_tables_made_again_are_what_they_were(target: PrivateServer, sessions: list[LaneSession]) -> None:
    first, second = sessions
    first.execute("SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', time_zone = '+00:00'")
    first.execute(f"SET SESSION pseudo_thread_id = {THREAD}")
    first.begin()
    for statement in TABLES:
        first.execute(statement)
    keeper(target).keep(first, ContextSetter(first), 17, KEPT)
    first.commit()
    keeper(target).bring_back(second, ContextSetter(second), 17)
    expected = contents(first)
    assert contents(second) == expected
    assert second.value("SELECT COUNT(other) FROM d.hidden") == 0, "the permanent table"
    for session in sessions:
        session.execute(f"SET SESSION pseudo_thread_id = {THREAD}")
        session.execute("INSERT INTO d.a (v) VALUES (9)")
        assert session.value("SELECT id FROM d.a WHERE v = 9") == 501


def test_a_timestamp_without_a_default_is_made_again_where_null_is_now(
    target: PrivateServer, sessions: list[LaneSession]
) -> None:
    """The servers' own text of it has no default, to which OFF would add one."""
    contexts = [ContextSetter(session) for session in sessions]
    sessions[0].execute(f"SET SESSION explicit_defaults_for_timestamp = ON, pseudo_thread_id = {THREAD}")
    sessions[0].execute("CREATE TEMPORARY TABLE d.k (n INT, a TIMESTAMP NOT NULL, b TIMESTAMP NOT NULL)")
    sessions[0].execute("INSERT INTO d.k VALUES (1, '2020-01-01', '2020-01-02')")
    for context in contexts:
        context.make_null_now()
    sessions[0].begin()
    keeper(target).keep(sessions[0], contexts[0], 7, ((THREAD, "d", "k"),))
    sessions[0].commit()
    keeper(target).bring_back(sessions[1], contexts[1], 7)
    assert sessions[1].value("SELECT @@session.explicit_defaults_for_timestamp") == 0
    sessions[1].execute(f"SET SESSION pseudo_thread_id = {THREAD}")
    sessions[1].execute("UPDATE d.k SET n = 2")
    assert sessions[1].rows("SELECT n, a + 0, b + 0 FROM d.k") == [(2, 20200101000000, 20200102000000)]


def test_a_copy_counts_with_its_transaction_alone_and_takes_the_place_of_the_ones_before(
    target: PrivateServer, sessions: list[LaneSession]
) -> None:
    session, kept = sessions[0], ((THREAD, "d", "k"),)
    context, keeping = ContextSetter(session), keeper(target)
    session.execute(f"SET SESSION pseudo_thread_id = {THREAD}")
    session.execute("CREATE TEMPORARY TABLE d.k (n INT)")
    others = copies(target)
    # another attempt of the same transactions drops nothing that one has committed
    for seqno, ends in ((20, session.commit), (20, session.rollback), (30, session.rollback)):
        session.execute(f"SET SESSION pseudo_thread_id = {THREAD}")
        session.execute(f"INSERT INTO d.k VALUES ({seqno})")
        session.begin()
        keeping.keep(session, context, seqno, kept)
        ends()
    with pytest.raises(PositionError, match=r"expected copies of temporary tables of seqno 30 .* found 20"):
        keeping.bring_back(sessions[1], ContextSetter(sessions[1]), 30)
    assert len(copies(target) - others) == 3
    keeping.sweep(30)
    assert len(copies(target)) == 1
    keeping.bring_back(sessions[1], ContextSetter(sessions[1]), 20)
    sessions[1].execute(f"SET SESSION pseudo_thread_id = {THREAD}")
    assert sessions[1].rows("SELECT n FROM d.k") == [(20,)]


def test_an_attempt_that_fails_drops_its_own_tables_alone(target: PrivateServer, sessions: list[LaneSession]) -> None:
    session, keeping, others = sessions[0], keeper(target), copies(target)
    for name in ("k", "l"):
        session.execute(f"SET SESSION pseudo_thread_id = {THREAD}")
        session.execute(f"CREATE TEMPORARY TABLE d.{name} (n INT)")
    session.begin()
    keeping.keep(session, ContextSetter(session), 20, ((THREAD, "d", "k"),))
    session.commit()
    # the answer to that COMMIT was lost
    (committed,) = copies(target) - others
    session.begin()
    with pytest.raises(ApplyError, match=r"expected the temporary table d\.hidden to be open"):
        keeping.keep(session, ContextSetter(session), 30, tuple((THREAD, "d", name) for name in ("k", "l", "hidden")))
    assert len(copies(target) - others) > 1
    session.close()
    keeping.drop_made()
    assert copies(target) - others == {committed}
    keeping.drop_made()
    assert copies(target) - others == {committed}


def test_a_table_that_is_not_open_or_not_what_was_kept_is_an_error(
    target: PrivateServer, sessions: list[LaneSession]
) -> None:
    session = sessions[0]
    with pytest.raises(ApplyError, match=r"expected the temporary table d\.hidden to be open"):
        keeper(target).keep(session, ContextSetter(session), 5, ((THREAD, "d", "hidden"),))
    session.execute(f"SET SESSION pseudo_thread_id = {THREAD}")
    session.execute("CREATE TEMPORARY TABLE d.k (n INT)")
    session.execute("INSERT INTO d.k VALUES (1), (2)")
    keeper(target).keep(session, ContextSetter(session), 6, ((THREAD, "d", "k"),))
    with closing(target.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT copy FROM binlane.temporary")
        [(name,)] = cursor.fetchall()
        cursor.execute(f"DELETE FROM binlane.{name} LIMIT 1")
    with pytest.raises(ApplyError, match=r"d\.k was created again from its copy and differs: expected 2 rows"):
        keeper(target).bring_back(sessions[1], ContextSetter(sessions[1]), 6)
