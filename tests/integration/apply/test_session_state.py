"""What a lane's session keeps and others change: each entry of the list, on both families."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import pymysql
import pytest
from sqlalchemy import NullPool

from binlane.apply.rows.writers import BlockWriter
from binlane.apply.session.cached_state import SESSION_STATE, UNLOGGED_VARIABLES, CachedState
from binlane.apply.session.connection import LaneSession, SessionLimits
from binlane.apply.session.context import ContextSetter
from binlane.model import Flavor, Item, ItemKind, SessionContext
from binlane.precheck.situation.parser import StatementJudge
from binlane.servers.engines import engine_at
from binlane.sql.session_variables import own_values
from tests.integration.apply.conftest import CREATED, DATABASE, Pair
from tests.waiting import wait_until

ACCOUNT: Final = "test_keeper"
LIMITS: Final = SessionLimits(lock_wait_timeout=5, innodb_lock_wait_timeout=5)
COLLATION: Final = "SELECT table_collation FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"


class Lane:
    """A lane's session on the target, and what it is told to run."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.session = LaneSession.open(pair.engine, LIMITS)
        self.context = ContextSetter(self.session)
        self.writer = BlockWriter(self.session, self.context)

    def ddl(self, sql: str, database: str = DATABASE) -> None:
        """As ``run_ddl`` does."""
        item = Item(ItemKind.DDL, sql.encode(), context=SessionContext(database=database))
        self.writer.run(item, self.writer.prepare(item))
        self.context.leave()

    def block(self, *statements: str, database: str = DATABASE) -> None:
        """A block of statements in one transaction."""
        context = SessionContext(database=database)
        self.session.begin()
        self.writer.write((Item(ItemKind.STATEMENT, sql.encode(), context=context) for sql in statements), 1)
        self.session.commit()

    def other(self, *statements: str) -> None:
        """What another session does."""
        for statement in statements:
            self.pair.target.query(statement)

    def collation(self, table: str, database: str = DATABASE) -> str:
        return str(self.pair.target.query(COLLATION, (database, table))[0][0])


def charset(lane: Lane) -> None:
    lane.ddl("CREATE TABLE ahead (s TEXT)")
    lane.other(f"ALTER DATABASE {DATABASE} CHARACTER SET latin1")
    lane.ddl("CREATE TABLE behind (s TEXT)")
    assert lane.collation("behind") == "latin1_swedish_ci"
    lane.other(f"ALTER DATABASE {DATABASE} CHARACTER SET greek")
    # not plain DML, in the middle of a block
    lane.block("INSERT INTO ahead VALUES ('a')", "CREATE TEMPORARY TABLE hidden (s TEXT)")
    assert "CHARSET=greek" in str(lane.session.rows(f"SHOW CREATE TABLE {DATABASE}.hidden"))
    lane.block("DROP TEMPORARY TABLE hidden")


def collation_database(lane: Lane) -> None:
    lane.ddl("CREATE TABLE seen (s TEXT)")
    lane.block("INSERT INTO seen VALUES (1)")
    lane.other(f"ALTER DATABASE {DATABASE} CHARACTER SET latin1")
    lane.block("INSERT INTO seen VALUES (@@collation_database)")
    assert ("latin1_swedish_ci",) in lane.pair.rows(f"SELECT s FROM {DATABASE}.seen")


def identity(lane: Lane) -> None:
    lane.other(f"CREATE DATABASE {CREATED} CHARACTER SET utf8mb4")
    lane.ddl("CREATE TABLE t (s TEXT)", CREATED)
    lane.other(f"DROP DATABASE {CREATED}")
    # its name is whole, so nobody looks for the default
    lane.ddl(f"CREATE TABLE {DATABASE}.elsewhere (s TEXT)", CREATED)
    lane.other(f"CREATE DATABASE {CREATED} CHARACTER SET latin1")
    lane.ddl("CREATE TABLE t (s TEXT)", CREATED)
    assert lane.collation("t", CREATED) == "latin1_swedish_ci"


def read_only(lane: Lane) -> None:
    lane.ddl("CREATE TABLE t (id INT)")
    lane.other(f"ALTER DATABASE {DATABASE} READ ONLY = 1")
    with pytest.raises(pymysql.err.OperationalError, match="read only"):
        lane.block("INSERT INTO t VALUES (1)")
    lane.session.rollback()
    lane.other(f"ALTER DATABASE {DATABASE} READ ONLY = 0")
    lane.block("INSERT INTO t VALUES (1)")


def encryption(lane: Lane) -> None:
    lane.ddl("CREATE TABLE t (id INT)")
    lane.other(f"ALTER DATABASE {DATABASE} ENCRYPTION = 'Y'")
    # no keyring: that it is asked for shows that the new default is seen
    with pytest.raises(pymysql.err.OperationalError, match="keyring"):
        lane.ddl("CREATE TABLE encrypted (id INT)")
    lane.other(f"ALTER DATABASE {DATABASE} ENCRYPTION = 'N'")


@pytest.fixture
def lane(pair: Pair) -> Iterator[Lane]:
    opened = Lane(pair)
    yield opened
    opened.session.close()


@contextlib.contextmanager
def own_session(lane: Lane) -> Iterator[LaneSession]:
    """A lane's session of another account."""
    target = lane.pair.target
    url = target.url().replace(f"//{target.user}:", f"//{ACCOUNT}:")
    engine = engine_at(url, poolclass=NullPool, connect_args={"get_server_public_key": True})
    session = LaneSession.open(engine, LIMITS)
    yield session
    session.close()
    engine.dispose()


def privileges_here(lane: Lane) -> None:
    lane.other(f"GRANT SELECT ON {DATABASE}.* TO {ACCOUNT}")
    with own_session(lane) as own:
        own.select_database(DATABASE)
        with pytest.raises(pymysql.err.OperationalError, match="denied"):
            own.execute("CREATE TABLE mine (id INT)")
        lane.other(f"GRANT CREATE ON {DATABASE}.* TO {ACCOUNT}")
        own.select_database(DATABASE)
        own.execute("CREATE TABLE mine (id INT)")


def privileges_everywhere(lane: Lane) -> None:
    lane.other(f"GRANT SELECT ON {DATABASE}.* TO {ACCOUNT}")
    with own_session(lane) as own:
        lane.other(f"GRANT CREATE ON *.* TO {ACCOUNT}")
        own.select_database(DATABASE)
        with pytest.raises(pymysql.err.OperationalError, match="denied"):
            own.execute("CREATE TABLE mine (id INT)")
    with own_session(lane) as own:
        own.execute(f"CREATE TABLE {DATABASE}.mine (id INT)")


def roles(lane: Lane) -> None:
    role = f"{ACCOUNT}_role"
    lane.other(f"CREATE ROLE {role}", f"GRANT CREATE ON {DATABASE}.* TO {role}")
    word = "FOR" if lane.session.flavor is Flavor.MARIADB else "TO"
    with own_session(lane) as own:
        lane.other(f"GRANT {role} TO {ACCOUNT}", f"SET DEFAULT ROLE {role} {word} {ACCOUNT}")
        assert own.value("SELECT CURRENT_ROLE()") in (None, "NONE")
    with own_session(lane) as own:
        assert role in str(own.value("SELECT CURRENT_ROLE()"))
        own.execute(f"CREATE TABLE {DATABASE}.mine (id INT)")


def logged(lane: Lane) -> None:
    before = lane.pair.rows("SELECT @@global.time_zone")[0][0]
    lane.ddl("CREATE TABLE seen (s TEXT)")
    try:
        lane.block("INSERT INTO seen VALUES ('begun')")
        lane.other("SET GLOBAL time_zone = '-07:00'")
        lane.block("INSERT INTO seen VALUES (@@time_zone)")
    finally:
        lane.pair.target.query("SET GLOBAL time_zone = %s", (before,))
    assert ("-07:00",) in lane.pair.rows(f"SELECT s FROM {DATABASE}.seen")


def unlogged(lane: Lane) -> None:
    lane.ddl("CREATE TABLE ahead (id INT)")
    try:
        lane.other("SET GLOBAL default_storage_engine = MyISAM", "SET GLOBAL group_concat_max_len = 1234")
        lane.ddl("CREATE TABLE behind (s TEXT)")
        lane.block("INSERT INTO behind VALUES (@@group_concat_max_len)")
    finally:
        lane.other("SET GLOBAL default_storage_engine = DEFAULT", "SET GLOBAL group_concat_max_len = DEFAULT")
    assert lane.pair.rows(f"SELECT s FROM {DATABASE}.behind") == [("1234",)]
    query = "SELECT engine FROM information_schema.tables WHERE table_schema = %s AND table_name = 'behind'"
    assert lane.pair.target.query(query, (DATABASE,)) == [("MyISAM",)]


@pytest.mark.parametrize("pair", [each.value for each in Flavor], indirect=True)
def test_a_statement_has_the_values_of_the_check_whatever_is_set_since(pair: Pair, lane: Lane) -> None:
    names = ", ".join(f"'{name}'" for name in UNLOGGED_VARIABLES)
    shown = f"SHOW {{}} VARIABLES WHERE variable_name IN ({names})"
    checked = {str(name).lower(): str(value) for name, value in pair.rows(shown.format("GLOBAL"))}
    lane.context.checked = own_values(checked, lane.session.flavor)
    assert len(lane.context.checked) > 8
    lane.ddl("CREATE TABLE seen (s TEXT)")
    set_since = {"div_precision_increment": 30, "group_concat_max_len": 1234, "default_storage_engine": "MyISAM"}
    try:
        lane.other(*(f"SET GLOBAL {name} = {value}" for name, value in set_since.items()))
        lane.block("INSERT INTO seen VALUES (CONCAT_WS(' ', @@group_concat_max_len, 1 / 3))")
        now = {str(name).lower(): str(value) for name, value in lane.session.rows(shown.format("SESSION"))}
    finally:
        lane.other(*(f"SET GLOBAL {name} = DEFAULT" for name in set_since))
    assert {name: now[name] for name in lane.context.checked} == dict(lane.context.checked)
    assert pair.rows(f"SELECT s FROM {DATABASE}.seen") == [(f"{checked['group_concat_max_len']} 0.3333",)]


def prepared(lane: Lane) -> None:
    count = "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'"
    lane.other(f"CREATE TABLE {DATABASE}.t (id INT)")
    judge, before = StatementJudge.open(lane.pair.engine), lane.pair.rows(count)
    insert = Item(ItemKind.STATEMENT, b"INSERT INTO t (n) VALUES (1)", context=SessionContext(database=DATABASE))
    assert judge.judge(insert) is None
    lane.other(f"ALTER TABLE {DATABASE}.t ADD COLUMN n INT")
    assert judge.judge(insert) is None
    # a server does not answer the command that closes a statement, so another connection may be ahead of it
    wait_until(lambda: lane.pair.rows(count) == before)
    judge.close()


TESTS: Final[Mapping[str, Callable[[Lane], None]]] = {
    "the default database's character set": charset,
    "collation_database": collation_database,
    "the default database's identity": identity,
    "the default database's READ ONLY": read_only,
    "the default database's encryption": encryption,
    "privileges on the default database": privileges_here,
    "privileges on all databases": privileges_everywhere,
    "roles": roles,
    "variables that the log holds": logged,
    "variables that no log holds": unlogged,
    "prepared statements of the precheck's parser": prepared,
}


def test_the_list_has_a_test_for_each_of_its_entries() -> None:
    assert [kept.name for kept in SESSION_STATE] == list(TESTS)


CASES: Final = [
    pytest.param(flavor.value, kept, id=f"{flavor}-{kept.name}")
    for kept in SESSION_STATE
    for flavor in sorted(kept.flavors)
]


@pytest.mark.parametrize(("pair", "kept"), CASES, indirect=["pair"])
def test_cached_session_state_is_read_again_after_a_change_by_another_session(
    pair: Pair, kept: CachedState, lane: Lane
) -> None:
    lane.other(f"DROP USER IF EXISTS {ACCOUNT}", f"DROP ROLE IF EXISTS {ACCOUNT}_role")
    lane.other(f"CREATE USER {ACCOUNT} IDENTIFIED BY '{pair.target.password}'")
    try:
        assert_read_again = TESTS[kept.name]
        assert_read_again(lane)
    finally:
        lane.other(f"DROP USER {ACCOUNT}", f"DROP ROLE IF EXISTS {ACCOUNT}_role", f"DROP DATABASE IF EXISTS {CREATED}")
