"""XA transactions of statements whose tables have transactions on one server only: exact, or named before a write."""

from __future__ import annotations

import contextlib
import functools
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pymysql
import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor
from binlane.orchestration.request import WindowRequest
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, database_of, in_database, last_gtid, run_on
from tests.integration.window.xa.test_xa_statements import TABLES, fill, made, mixing, session

__all__ = ["mixing"]
TO_INNODB = "ALTER TABLE tenant_1.kept ENGINE=InnoDB"
BETWEEN = "INSERT INTO tenant_2.t (v) VALUES ('between')"
PLAIN = "CREATE TABLE plain (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(80))"
JOURNAL = "CREATE TABLE tenant_1.journal (id INT PRIMARY KEY, v VARCHAR(80)) ENGINE=MyISAM"
FOLLOW = (
    "CREATE TRIGGER tenant_1.follow AFTER INSERT ON tenant_1.undone FOR EACH ROW "
    "INSERT INTO tenant_1.journal (id, v) VALUES (NEW.id, NEW.v)"
)
NAMED = r"tenant_1\.kept: engine: expected a kind as on the source \(MyISAM\), found InnoDB"
BEHIND = r"tenant_1\.journal: engine: expected a kind as on the source \(MyISAM\), found InnoDB"


def other_engine(channel: Channel, *, behind: bool = False) -> None:
    """The table without transactions becomes InnoDB on the target alone; ``behind``: one that a trigger changes."""
    made(channel)
    if behind:
        channel.on_both(JOURNAL, FOLLOW)
    run_on(channel.target, TO_INNODB.replace("kept", "journal") if behind else TO_INNODB, log=False)


def rows_of(server: PrivateServer, table: str = "kept", database: str = "tenant_1") -> list[str]:
    return [value for (value,) in server.query(f"SELECT v FROM {database}.{table} ORDER BY id")]


@requires_mysql
@pytest.mark.parametrize(
    ("direct", "behind", "statements"),
    [
        pytest.param("OFF", False, fill("1", "undone", "kept"), id="named"),
        pytest.param("OFF", True, fill("1", "undone"), id="behind a trigger"),
        pytest.param("ON", True, fill("1", "undone"), id="behind a trigger, logged directly"),
        pytest.param(
            "ON", False, (*fill("1", "undone"), "INSERT INTO kept (v) SELECT v FROM undone ORDER BY id"),
            id="read from another table, logged directly",
        ),
        pytest.param(
            "OFF", False, (*fill("1", "undone"), "SAVEPOINT s", *fill("2", "kept"), "ROLLBACK TO s"), id="savepoint"
        ),
    ],
)  # fmt: skip
def test_what_only_the_source_keeps_at_a_rollback_is_named_before_anything_is_written(
    mixing: Channel, direct: str, behind: bool, statements: tuple[str, ...]
) -> None:
    other_engine(mixing, behind=behind)
    with session(mixing, direct) as run:
        run("XA START 'x'", *statements, "XA END 'x'", "XA PREPARE 'x'", "XA ROLLBACK 'x'")
    table = "journal" if behind else "kept"
    assert len(rows_of(mixing.source, table)) == 1
    with pytest.raises(PrecheckError, match=BEHIND if behind else NAMED):
        mixing.run()
    assert rows_of(mixing.target, table) == []
    run_on(mixing.target, f"ALTER TABLE tenant_1.{table} ENGINE=MyISAM", log=False)
    assert mixing.run() is not None
    mixing.assert_equal()


@requires_mysql
@pytest.mark.parametrize("between", [(), ("UPDATE tenant_1.kept SET v = CONCAT(v, '+')",)], ids=["nothing", "another"])
def test_a_commit_is_exact_whatever_the_engines(mixing: Channel, between: tuple[str, ...]) -> None:
    other_engine(mixing)
    with session(mixing) as run:
        run("XA START 'x'", *fill("1", "undone", "kept"), "XA END 'x'", "XA PREPARE 'x'")
        run_on(mixing.source, *between)
        run("XA COMMIT 'x'")
    assert mixing.run() is not None
    for table in ("kept", "undone"):
        assert rows_of(mixing.target, table) == rows_of(mixing.source, table)
    assert rows_of(mixing.source) == ["1+" if between else "1"]


def before_the_last(source: PrivateServer) -> WindowRequest:
    """Up to the newest transaction, which stays outside."""
    return WindowRequest(last_gtid(source))


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_rows_and_what_the_log_proves_to_be_transactional_need_no_equal_engines(
    family: str, channel_of: ChannelOf
) -> None:
    """Changes of tables without transactions are logged in front of these transactions."""
    channel = channel_of(family, family)
    other_engine(channel)
    for form in ("ROW", "MIXED", "STATEMENT"):
        with session(channel, "ON") as run:
            run(f"SET SESSION binlog_format = {form}")
            for end in ("ROLLBACK", "COMMIT"):
                run("XA START 'x'", *fill(form, "kept", "undone"), "XA END 'x'", "XA PREPARE 'x'")
                channel.source.query(BETWEEN)
                run(f"XA {end} 'x'")
    assert channel.run() is not None
    for table in ("kept", "undone"):
        assert rows_of(channel.target, table) == rows_of(channel.source, table)
    assert len(rows_of(channel.target)) == 6


@requires_mysql
@pytest.mark.parametrize("direct", ["OFF", "ON"])
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
@pytest.mark.paired
def test_others_may_change_what_a_trigger_has_changed_without_transactions(
    mixing: Channel, direct: str, end: str
) -> None:
    made(mixing)
    mixing.on_both(JOURNAL, FOLLOW)
    with session(mixing, direct) as run:
        run("XA START 'x'", *fill("1", "undone"), "XA END 'x'", "XA PREPARE 'x'")
        mixing.source.query("UPDATE tenant_1.journal SET v = CONCAT(v, '+')")
        run(f"XA {end} 'x'")
    assert mixing.run() is not None
    assert rows_of(mixing.target, "journal") == rows_of(mixing.source, "journal") == ["1+"]
    mixing.assert_equal()


def as_archive(channel: Channel, folder: Path) -> None:
    """The channel's source is a folder with the files of the source's log."""
    folder.mkdir()
    for file in channel.source.datadir.glob("*bin*.0*"):
        shutil.copy(file, folder)
    text = channel.channels / f"{CHANNEL}.toml"
    text.write_text(text.read_text().replace('connection = "source_server"', f'archive = "{folder}"'))


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_an_archive_of_mariadb_tells_which_transactions_can_be_rolled_back(
    channel: Channel, tmp_path: Path, end: str
) -> None:
    other_engine(channel)

    def xa(*tables: str) -> None:
        with session(channel) as run:
            run("XA START 'x'", *fill("1", *tables), "XA END 'x'", "XA PREPARE 'x'")
            channel.source.query(BETWEEN)
            run(f"XA {end} 'x'")

    xa("undone")
    channel.source.query("FLUSH BINARY LOGS")
    as_archive(channel, tmp_path / "archive")
    assert channel.run() is not None
    assert rows_of(channel.target, "undone") == rows_of(channel.source, "undone")
    xa("undone", "kept")
    channel.source.query("FLUSH BINARY LOGS")
    for file in channel.source.datadir.glob("*bin*.0*"):
        shutil.copy(file, tmp_path / "archive")
    if end == "COMMIT":
        assert channel.run() is not None
        assert rows_of(channel.target) == rows_of(channel.source) == ["1"]
        return
    with pytest.raises(PrecheckError, match=r"tenant_1\.kept: engine: .* \(unknown: an archive does not say it\)"):
        channel.run()


@pytest.mark.parametrize(
    "ended",
    [("BEGIN", "ROLLBACK"), ("XA START 'x'", "XA END 'x'", "XA PREPARE 'x'", "XA ROLLBACK 'x'")],
    ids=["plain", "xa"],
)
@pytest.mark.parametrize("altered", [False, True], ids=["made by default", "altered behind it"])
@pytest.mark.paired
def test_an_engine_that_the_window_gives_a_table_is_named(
    channel: Channel, ended: tuple[str, ...], altered: bool
) -> None:
    """The source's table has no transactions when the statement runs: by a default that is in no log, or as yet."""
    made(channel)
    if altered:
        run_on(channel.target, TO_INNODB, log=False)
    table = "kept" if altered else "late"
    with session(channel) as run:
        run("SET SESSION default_storage_engine = MyISAM")
        if not altered:
            run("CREATE TABLE late (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(80))")
        run(ended[0], *fill("1", "undone", table), *ended[1:])
        if altered:
            run("ALTER TABLE kept ENGINE=InnoDB")
    assert rows_of(channel.source, table) == ["1"]
    default = r"source \(MyISAM\), found InnoDB, the target's default, since .* names none; SET GLOBAL default_storage"
    changed = "one engine in the whole window, .* found perhaps another one up to binlog"
    with pytest.raises(
        PrecheckError, match=rf"tenant_1\.{table}: engine: expected .*{changed if altered else default}"
    ):
        channel.run()
    if altered:
        assert rows_of(channel.target) == []
        return
    channel.target.query("SET GLOBAL default_storage_engine = MyISAM")
    try:
        assert channel.run() is not None
    finally:
        channel.target.query("SET GLOBAL default_storage_engine = InnoDB")
    channel.assert_equal()


TWICE = "INSERT INTO late VALUES (5, 'stays'), (5, 'twice')"
AWAY, BACK = "RENAME TABLE late TO later", "RENAME TABLE later TO late"


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
@pytest.mark.parametrize(
    ("statements", "named"),
    [
        pytest.param((TWICE,), "one without transactions, since the failed statement of seqno", id="as logged"),
        pytest.param(("BEGIN", *fill("1", "undone", "late"), "ROLLBACK"), "unknown: no such", id="rollback"),
        pytest.param((*fill("1", "late"), "DROP TABLE late", "CREATE TABLE late LIKE kept", TWICE), "", id="another"),
        pytest.param((AWAY, TWICE.replace("late", "later"), BACK), "unknown: no such", id="renamed"),
    ],
)  # fmt: skip
def test_a_table_that_is_gone_needs_the_kind_that_its_failed_statement_shows(
    channel_of: ChannelOf, family: str, statements: tuple[str, ...], named: str
) -> None:
    """A failed statement is in the log only if it changed a table without transactions. Before it was there, and behind
    its end, nothing depends on it."""
    channel = made(channel_of(family, family))
    with session(channel) as run:
        run("SET SESSION default_storage_engine = MyISAM")
        run("CREATE TABLE late (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(80))")
        for statement in statements:
            with contextlib.suppress(pymysql.err.IntegrityError, pymysql.err.OperationalError):
                run(statement)
        run("INSERT INTO undone (v) SELECT v FROM late ORDER BY id", "DROP TABLE late")
    if named and not (family == "mysql" and "BEGIN" in statements):  # with GTIDs, it lets nobody mix engines
        with pytest.raises(PrecheckError, match=rf"tenant_1\.late: engine: expected .*\({named}") as said:
            channel.run()
        if named.startswith("unknown"):
            assert re.search(r"seqno \d+ failed or was rolled back behind it: apply up to", str(said.value))
            return
        assert "SET GLOBAL default_storage_engine on the target" in str(said.value)
        channel.target.query("SET GLOBAL default_storage_engine = MyISAM")
    try:
        assert channel.run() is not None
    finally:
        channel.target.query("SET GLOBAL default_storage_engine = InnoDB")
    channel.assert_equal()


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
@pytest.mark.parametrize(
    ("statement", "is_named"),
    [
        pytest.param("ALTER TABLE kept ENGINE=InnoDB", True, id="altered"),
        pytest.param("RENAME TABLE kept TO was, other TO kept", True, id="swapped"),
        pytest.param("ALTER TABLE kept ADD COLUMN c INT, ADD KEY (v)", False, id="altered otherwise"),
        pytest.param("ALTER TABLE other ENGINE=MyISAM", False, id="of another table"),
    ],
)
def test_an_engine_that_the_source_gives_a_table_behind_the_window_is_named(
    channel_of: ChannelOf, family: str, statement: str, is_named: bool
) -> None:
    channel = made(channel_of(family, family))
    channel.on_both("CREATE TABLE tenant_1.other LIKE tenant_1.undone")
    with session(channel) as run, contextlib.suppress(pymysql.err.IntegrityError):
        run("INSERT INTO kept VALUES (1, 'stays'), (1, 'never')")
    with session(channel) as run:
        run(statement)
    until = before_the_last(channel.source)
    if is_named:
        run_on(channel.target, TO_INNODB, log=False)
        with pytest.raises(PrecheckError, match=r"tenant_1\.kept: engine: .*found perhaps another one since"):
            channel.run(until)
        assert rows_of(channel.target) == []
    else:
        assert channel.run(until) is not None
        assert rows_of(channel.target) == rows_of(channel.source) == ["stays"]


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
@pytest.mark.parametrize("again", [False, True], ids=["altered behind the window", "made again in the window"])
def test_the_engine_that_the_source_has_now_is_not_that_of_a_failed_statement_before(
    channel_of: ChannelOf, family: str, again: bool
) -> None:
    channel = made(channel_of(family, family))
    with session(channel) as run:
        run("SET SESSION default_storage_engine = MyISAM")
        run("CREATE TABLE late (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(80))")
        with contextlib.suppress(pymysql.err.IntegrityError):
            run(TWICE)
        run("INSERT INTO undone (v) SELECT v FROM late ORDER BY id")
        if again:
            run("DROP TABLE late", "CREATE TABLE late (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(80)) ENGINE=InnoDB")
        run(BETWEEN if again else "ALTER TABLE late ENGINE=InnoDB")
    until = before_the_last(channel.source)
    with pytest.raises(PrecheckError, match=r"tenant_1\.late: engine: .*one without transactions, since the failed"):
        channel.run(until)
    channel.target.query("SET GLOBAL default_storage_engine = MyISAM")
    try:
        assert channel.run(until) is not None
        assert rows_of(channel.target, "undone") == rows_of(channel.source, "undone") == ["stays"]
    finally:
        channel.target.query("SET GLOBAL default_storage_engine = InnoDB")


def test_a_rollback_that_only_the_target_would_not_undo_is_named(channel: Channel) -> None:
    made(channel)
    run_on(channel.target, "ALTER TABLE tenant_1.undone ENGINE=MyISAM", log=False)
    with session(channel) as run:
        run("XA START 'x'", *fill("1", "undone"), "XA END 'x'", "XA PREPARE 'x'", "XA ROLLBACK 'x'")
    with pytest.raises(PrecheckError, match=r"tenant_1\.undone: engine: .* source \(InnoDB\), found MyISAM"):
        channel.run()
    assert channel.source.flavor is Flavor.MARIADB
    assert rows_of(channel.target, "undone") == []


LIKENESSES = {
    "of a table that was there": ("CREATE TABLE late LIKE kept",),
    "of one made by default": (PLAIN, "CREATE TABLE late LIKE plain", "DROP TABLE plain"),
    "of one made by default that is there": (PLAIN, "CREATE TABLE late LIKE plain"),
    "of a likeness": ("CREATE TABLE nearer LIKE kept", "CREATE TABLE late LIKE nearer", "DROP TABLE nearer"),
    "renamed": ("CREATE TABLE other LIKE kept", "RENAME TABLE other TO late"),
    "of one that was renamed": ("RENAME TABLE kept TO was", "CREATE TABLE late LIKE was", "RENAME TABLE was TO kept"),
}


@dataclass(frozen=True, slots=True)
class Likeness:
    """What a case of the shared window has come to."""

    on_the_source: list[str]
    on_the_target: list[str]
    findings: list[str]


@pytest.fixture(scope="module")
def likenesses_on(shared_channel_of: ChannelOf) -> Callable[[str], Mapping[tuple[str, bool], Likeness]]:
    """One window that has all cases and is refused, by the servers' family."""

    @functools.cache
    def likenesses(family: str) -> Mapping[tuple[str, bool], Likeness]:
        channel = shared_channel_of(family, family)
        channel.write_channel("allow_nontransactional = true\n")
        cases = {(name, gone): database_of(f"{name} {gone}") for name in LIKENESSES for gone in (False, True)}
        for (name, is_gone), database in cases.items():
            channel.on_both(*in_database(database, *(each for each in TABLES if "tenant_2" not in each)))
            if PLAIN not in LIKENESSES[name]:
                run_on(channel.target, *in_database(database, TO_INNODB), log=False)
            with session(channel, database=database) as run:
                run("SET SESSION default_storage_engine = MyISAM", *LIKENESSES[name])
                with contextlib.suppress(pymysql.err.IntegrityError):
                    run(TWICE)
                run("INSERT INTO undone (v) SELECT v FROM late ORDER BY id", *(["DROP TABLE late"] if is_gone else []))
        with pytest.raises(PrecheckError) as refused:
            channel.run()
        lines = str(refused.value).splitlines()
        return {
            case: Likeness(
                rows_of(channel.source, "undone", database),
                rows_of(channel.target, "undone", database),
                [line for line in lines if re.search(rf"\b{database}\.\w+: engine: ", line)],
            )
            for case, database in cases.items()
        }

    return likenesses


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
@pytest.mark.parametrize("is_gone", [False, True], ids=["there", "gone"])
@pytest.mark.parametrize("name", LIKENESSES)
def test_the_likeness_of_a_table_of_another_kind_is_named_where_a_statement_fails_behind_it(
    likenesses_on: Callable[[str], Mapping[tuple[str, bool], Likeness]], family: str, name: str, is_gone: bool
) -> None:
    """CREATE TABLE .. LIKE takes the engine that the other table has on each server."""
    likeness = likenesses_on(family)[name, is_gone]
    assert likeness.on_the_source == ["stays"]
    assert likeness.findings
    assert likeness.on_the_target == []


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
@pytest.mark.parametrize("is_gone", [False, True], ids=["there", "gone"])
def test_the_likeness_of_a_table_of_one_kind_is_filled_alike(channel_of: ChannelOf, family: str, is_gone: bool) -> None:
    channel = made(channel_of(family, family))
    with session(channel) as run:
        run("CREATE TABLE late LIKE kept")
        with contextlib.suppress(pymysql.err.IntegrityError):
            run(TWICE)
        run("INSERT INTO undone (v) SELECT v FROM late ORDER BY id")
        if is_gone:
            run("DROP TABLE late")
    assert channel.run() is not None
    channel.assert_equal()
