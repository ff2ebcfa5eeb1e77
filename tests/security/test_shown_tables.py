"""What a server shows as a definition has no clause that its owner has hidden there, and no comment that decides.

Attacker: whoever may make a table or a view in one database of the source. Binlane's account runs the text on the
target when it makes the object there. A line more is an attack more.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from typing import Final

import pytest

from binlane.bootstrap.definition_copy import make, read_definition, read_tables
from binlane.bootstrap.sessions import Session, read_session, write_session
from binlane.errors import PrecheckError, UnsupportedEventError
from binlane.model import Flavor, SchemaObject, SessionContext, TableKey
from binlane.sql.parse.shown_table import hidden_part
from binlane.sql.server_composed import hidden_clause
from binlane.verify.definitions.show_create import OTHER, parts_of_both, table_mend
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, run_on

_BAD: Final = "IGNORE_BAD_TABLE_OPTIONS"
_QUERY: Final = "AS SELECT 7 AS stolen -- "
TABLES: Final[dict[Flavor, tuple[tuple[str, str], ...]]] = {
    Flavor.MARIADB: (
        ("", f"(a INT) DATA DIRECTORY='{{folder}}/x'' {_QUERY}'"),
        ("", "(a INT) DATA DIRECTORY='{folder}/x'' ENGINE=MRG_MyISAM COMMENT='''"),
        (_BAD, f"(a INT) `x`='*/ {_QUERY}'"),
        (_BAD, f"(a INT) `*/ {_QUERY}`=1"),
        (_BAD, "(a INT) `x`='*/ /*M! AS SELECT 7 AS stolen */ /* '"),
        (_BAD, "(a INT `x`='*/, b INT DEFAULT 5 /* ')"),
        (_BAD, "(a INT, KEY k (a) `x`='*/, b INT DEFAULT 5 /* ')"),
        (_BAD, "(a INT) ENCRYPTED=`NO UNION=(other.t)`"),
        ("", "(a INT PRIMARY KEY, b INT, KEY (b), CONSTRAINT `x`` FOREIGN KEY(b) REFERENCES t(a),\n  CONSTRAINT ``y`"
         " FOREIGN KEY (b) REFERENCES t (a))"),
        ("", "(a INT PRIMARY KEY, b INT, KEY (b), CONSTRAINT `x``,\n  KEY ``k`` (a), RENAME TO o.t, ADD CONSTRAINT ``z`"
         " FOREIGN KEY (b) REFERENCES t (a))"),
    ),
    Flavor.MYSQL: (
        ("", "(a INT) SECONDARY_ENGINE='x AS SELECT 7 AS stolen'"),
        ("", "(a INT) SECONDARY_ENGINE='x TABLE mysql.user'"),
        ("", "(a INT) SECONDARY_ENGINE='x VALUES ROW(7)'"),
        ("", "(a INT) SECONDARY_ENGINE='x ENGINE=MRG_MYISAM UNION=(other.t)'"),
        ("", "(a INT) SECONDARY_ENGINE='x START TRANSACTION'"),
    ),
}  # fmt: skip
"""sql_mode, and a table's definition behind its name: refused."""
LOGGED: Final = {
    Flavor.MARIADB: (
        "(a INT) DATA DIRECTORY='{folder}/x'' AS SELECT 7 AS a -- ' AS SELECT 1 AS a",
        "(a INT) DATA DIRECTORY='{folder}/x'' ENGINE=MRG_MyISAM UNION=(other.t) COMMENT=''' AS SELECT 1 AS a",
        "(a INT) ENGINE=MyISAM INDEX DIRECTORY='{folder}/x'' AS SELECT 7 AS a -- ' AS SELECT 1 AS a",
        "(a INT) foo=`y AS SELECT 7 AS a -- ` AS SELECT 1 AS a",
        "(a INT) foo=`y AS (SELECT 7 AS a) -- ` AS SELECT 1 AS a",
        "(a INT) foo=`'y' TABLE other.t -- ` AS SELECT 1 AS a",
        "(a INT) foo=`y ENGINE=MRG_MyISAM UNION=(other.t) INSERT_METHOD=LAST` AS SELECT 1 AS a",
        "(a INT) ENGINE=MRG_MyISAM foo=`y UNION=(other.t)` AS SELECT 1 AS a LIMIT 0",
        "(a INT foo=`y) AS SELECT 7 AS a -- `) AS SELECT 1 AS a",
        "(a INT foo=`1,\n  CONSTRAINT ``x`` FOREIGN KEY (``a``) REFERENCES ``other``.``t`` (``a``)`) AS SELECT 1 AS a",
        "(a INT foo=`y DEFAULT (NEXTVAL(other.s))`) AS SELECT 1 AS a",
        "(a INT, KEY k (a) foo=`y, CONSTRAINT x FOREIGN KEY (a) REFERENCES other.t (a)`) AS SELECT 1 AS a",
        "(a INT, KEY (a), CONSTRAINT `x`` CHECK(1))AS SELECT 7 AS a/*` FOREIGN KEY (a) REFERENCES p (a))"
        " COMMENT='*/-- ' AS SELECT 1 AS a",
        "(a INT, KEY (a), CONSTRAINT `x``)ENGINE=MRG_MyISAM UNION=(other.t)/*` FOREIGN KEY (a) REFERENCES p (a))"
        " COMMENT='*/-- ' AS SELECT 1 AS a",
        "(a INT, KEY (a), CONSTRAINT `x``,c INT REFERENCES other.t(a),\n  CONSTRAINT ``y` FOREIGN KEY (a)"
        " REFERENCES p (a)) AS SELECT 1 AS a",
    ),
    Flavor.MYSQL: (
        "(a INT) SECONDARY_ENGINE='x AS SELECT 7 AS a' AS SELECT 1 AS a",
        "(a INT) SECONDARY_ENGINE='x ENGINE=MRG_MYISAM UNION=(other.t)' AS SELECT 1 AS a",
    ),
}
"""Definitions with a query, which a server writes anew for its log, with rows behind it."""
FORMS: Final = (
    ("USE app", "{}"),
    ("USE other", "app.{}"),
    ("USE other", "IF NOT EXISTS app.{}"),
    ("USE app; SET SESSION sql_quote_show_create = 0", "{}"),
    ("USE other; SET SESSION sql_mode = 'ANSI_QUOTES'", "app.{}"),
)
"""Settings in which a server writes the name and the columns of a table in another form, and the name as given."""
KEPT: Final = {
    Flavor.MARIADB: "(a INT, b INT DEFAULT 2, KEY (a), CONSTRAINT k FOREIGN KEY (a) REFERENCES p (a) ON DELETE CASCADE)"
    " ENCRYPTED=NO PAGE_COMPRESSED=1 COMMENT='FROM' DATA DIRECTORY='{folder}/x y' AS SELECT 1 AS a",
    Flavor.MYSQL: "(a INT) SECONDARY_ENGINE='x' AS SELECT 1 AS a",
}
LINES: Final = ("(a INT, `x\n) STATS_PERSISTENT=1,RENAME/**/TO/**/o.t` INT)", "(a INT, KEY `k\n  KEY `` (a)` (a))")
"""Of both families."""
VALUES: Final = {
    Flavor.MARIADB: (
        "(a INT PRIMARY KEY, b INT) `x`='a STATS_SAMPLE_PAGES=1,DROP`b` z'",
        "(a INT PRIMARY KEY, b INT) `x`='a COMMENT=1,RENAME`other`.`t` z'",
        "(a INT PRIMARY KEY, b INT) COMMENT='STATS_PERSISTENT=1,DROP`b` PARTITION BY HASH (a) '",
    ),
    Flavor.MYSQL: (
        "(a INT PRIMARY KEY, b INT) SECONDARY_ENGINE='x STATS_SAMPLE_PAGES=1,DROP`b`'",
        "(a INT PRIMARY KEY, b INT) SECONDARY_ENGINE='x COMMENT=1,RENAME`other`.`t`'",
        "(a INT PRIMARY KEY, b INT) COMMENT='STATS_PERSISTENT=1,DROP`b` PARTITION BY HASH (a) '",
    ),
}
"""Options whose values say other options, with a clause behind them."""
_COLUMN, _KEY, _FOREIGN = "x\n) y", "k\n  KEY `` (a)", "x``,\n  KEY ``k`` (a), RENAME TO o.t, ADD CONSTRAINT ``z"
_LAX: Final = f"SET SESSION sql_mode = '{_BAD}'"
_AGAIN: Final = (
    "CREATE TABLE n LIKE t",
    "INSERT INTO n SELECT * FROM t",
    "RENAME TABLE t TO o, n TO t",
    "DROP TABLE o",
)
WAYS_OUT: Final[dict[Flavor, tuple[tuple[str, str, tuple[str, ...]], ...]]] = {
    Flavor.MARIADB: (
        ("(a INT) `x`='*/'", "ALTER TABLE ... `option` = DEFAULT", (_LAX, "ALTER TABLE t `x` = DEFAULT")),
        ("(a INT) `*/`=1", "ALTER TABLE ... `option` = DEFAULT", (_LAX, "ALTER TABLE t `*/` = DEFAULT")),
        ("(a INT `x`='*/')", "ALTER TABLE ... MODIFY", ("ALTER TABLE t MODIFY a INT",)),
        ("(a INT, KEY k (a) `x`='*/')", "another ALTER TABLE ... ADD KEY",
         ("ALTER TABLE t DROP KEY k", "ALTER TABLE t ADD KEY k (a)")),
        ("(a INT) DATA DIRECTORY='{folder}/x'' ENGINE=MRG_MyISAM COMMENT='''", "CREATE TABLE ... LIKE, INSERT", _AGAIN),
        (f"(a INT, KEY (a), CONSTRAINT `{_FOREIGN}` FOREIGN KEY (a) REFERENCES t (a))", "drop a foreign key",
         (f"ALTER TABLE t DROP FOREIGN KEY `{_FOREIGN}`",)),
    ),
    Flavor.MYSQL: (
        ("(a INT) SECONDARY_ENGINE='x TABLE y'", "SECONDARY_ENGINE = NULL", ("ALTER TABLE t SECONDARY_ENGINE = NULL",)),
    ),
}  # fmt: skip
"""What a table hides, what its refusal says, and that to the letter."""
WAYS_OUT_OF_NAMES: Final = (
    (f"(a INT, `{_COLUMN}` INT)", "RENAME COLUMN", (f"ALTER TABLE t RENAME COLUMN `{_COLUMN}` TO x",)),
    (f"(a INT, KEY `{_KEY}` (a))", "RENAME KEY", (f"ALTER TABLE t RENAME KEY `{_KEY}` TO k",)),
)
WRITTEN_ANEW: Final = (
    "TABLE t (a VARCHAR(90), CONSTRAINT `c /*! */` CHECK (a <> 'x\\0y' /*M! OR 1 */ /*!99999 OR 2 */ AND a <> '*/'))",
    "TABLE t (a VARCHAR(90), b VARCHAR(190) AS (concat(a, 'x\\0y*/', /*M! 'm', */ 'z\\'')) VIRTUAL)",
    "TABLE t (a VARCHAR(90) DEFAULT (concat('x\\0y*/', 'm' /*M! , 'n' */ /*!99999 , 'o' */)))",
    "TABLE t (a VARCHAR(90) DEFAULT 'x\\0y*/\\'\\\\', b ENUM('q\\0''r\n) x', '*/ /*M!') COMMENT 'c\\0\\\\''*/\n  KEY')",
    "TABLE t (a VARCHAR(90)) COMMENT='*/ \\0' PARTITION BY LIST COLUMNS (a) (PARTITION `p*/` VALUES IN ('*/ x\\0\\''))",
    "TABLE t (a INT, `b\\` INT, `c'd` INT, `/*M! e` INT, `*/` INT, KEY `i*/` (`*/`), UNIQUE u (a, `c'd`))",
    "TABLE t (a INT, `SELECT` INT, `into` INT CHECK (`into` > 0), FULLTEXT KEY `table` (`values`), `values` TEXT)",
    "VIEW v AS SELECT 'a\\0b; /*M! */' AS x, 1 /*M! + 1 */ /*!99999 + 2 */ /* c */ -- c\n AS `/*! y */`",
    "VIEW v AS SELECT group_concat('a' SEPARATOR 'x''y\\\\\\0*/') AS x, 'x*/`y'",
    "VIEW v AS SELECT 'a' LIKE 'b' ESCAPE '\\'' AS x, trim(LEADING '''' FROM 'x') AS y, name_const('a''b', 'c''') AS z",
)
"""Definitions of which nothing hides behind a NUL, a comment or a quote: the server has written them anew, and makes
the same of what it shows."""
FOR_THE_MODE: Final = {
    "NO_BACKSLASH_ESCAPES": "VIEW v AS SELECT 'a\\' AS x, 'b\\''c' AS y",
    "ANSI_QUOTES": 'VIEW v AS SELECT \'a\' AS "x""y`z"',
    "PIPES_AS_CONCAT": "TABLE t (a VARCHAR(9), b VARCHAR(99) AS (a || 'x') VIRTUAL)",
}
UNREADABLE: Final = {
    Flavor.MARIADB: "WITH `c*/``(` AS (SELECT 1) SELECT * FROM `c*/``(`",
    Flavor.MYSQL: "SELECT 1 AS 'a\\0b'",
}
"""Views that their own server cannot read."""


@pytest.fixture(params=["mariadb", pytest.param("mysql", marks=requires_mysql)])
def channel(request: pytest.FixtureRequest, channel_of: ChannelOf) -> Channel:
    return channel_of(request.param, request.param)


def _reading(channel: Channel) -> Session:
    assert channel.endpoints.source is not None
    return read_session(channel.endpoints.source)


def _in_app(server: PrivateServer, *statements: str) -> None:
    run_on(server, "CREATE DATABASE IF NOT EXISTS app CHARACTER SET utf8mb4", "USE app", *statements, log=False)


def _shown(server: PrivateServer, kind: str) -> str:
    return str(server.query(f"SHOW CREATE {kind} app.{kind[0].lower()}")[0][1])


def test_a_clause_that_a_table_hides_is_not_run(channel: Channel, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("x")
    cases = (*TABLES[channel.source.flavor], *(("", each) for each in LINES))
    with contextlib.closing(_reading(channel)) as session:
        for mode, text in cases:
            table = text.format(folder=folder)
            _in_app(channel.source, f"SET SESSION sql_mode = '{mode}'", f"CREATE TABLE t {table}")
            with pytest.raises(PrecheckError, match=r"table app\.t: expected columns, keys and options") as refused:
                read_definition(session, SchemaObject("table", "app", "t"))
            assert "ALTER TABLE" in str(refused.value), text
            with pytest.raises(PrecheckError, match=r"table app\.t: expected columns, keys and options"):
                read_tables(session, ["app"], [TableKey("app", "t")])
            shown = _shown(channel.source, "TABLE")
            plain = "CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB"
            assert parts_of_both(shown, plain) == ({OTHER: shown}, {OTHER: plain})
            assert parts_of_both(plain, shown) == ({OTHER: plain}, {OTHER: shown})
            _in_app(channel.source, "DROP TABLE t")


def test_a_value_becomes_no_clause_of_what_a_repair_runs(channel: Channel) -> None:
    for text in VALUES[channel.source.flavor]:
        bad = f"SET SESSION sql_mode = '{_BAD if channel.source.flavor is Flavor.MARIADB else ''}'"
        _in_app(channel.source, bad, f"CREATE TABLE t {text}")
        _in_app(channel.target, "CREATE TABLE t (a INT PRIMARY KEY, b INT)", "INSERT INTO t VALUES (1, 2)")
        parts = parts_of_both(_shown(channel.source, "TABLE"), _shown(channel.target, "TABLE"))
        differing = [part for part in dict.fromkeys((*parts[0], *parts[1])) if parts[0].get(part) != parts[1].get(part)]
        assert differing, text
        mends = [table_mend("`app`.`t`", part, *parts) for part in differing]
        _in_app(channel.target, *(statement for mend in mends if mend.is_run for statement in mend.statements))
        assert channel.target.query("SELECT a, b FROM app.t") == [(1, 2)], text
        for server in (channel.source, channel.target):
            _in_app(server, "DROP TABLE t")


def test_the_next_step_for_what_a_table_hides_leads_out(
    channel: Channel, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In the sql_mode that clients have, unless the next step says another one."""
    folder = tmp_path_factory.mktemp("x")
    usual = channel.source.query("SELECT @@GLOBAL.sql_mode")[0][0]
    made_in = _BAD if channel.source.flavor is Flavor.MARIADB else usual
    with contextlib.closing(_reading(channel)) as session:
        for text, said, way in (*WAYS_OUT[channel.source.flavor], *WAYS_OUT_OF_NAMES):
            create = f"CREATE TABLE t {text.format(folder=folder)}"
            _in_app(channel.source, f"SET SESSION sql_mode = '{made_in}'", create)
            with pytest.raises(PrecheckError) as refused:
                read_definition(session, SchemaObject("table", "app", "t"))
            assert said in str(refused.value), text
            assert _LAX not in way or _LAX in str(refused.value), text
            _in_app(channel.source, f"SET SESSION sql_mode = '{usual}'", *way)
            assert read_definition(session, SchemaObject("table", "app", "t")).name == "t"
            _in_app(channel.source, "DROP TABLE t")


def test_a_clause_that_a_logged_table_hides_is_not_run(
    channel: Channel, tmp_path_factory: pytest.TempPathFactory
) -> None:
    flavor, rows = channel.source.flavor, "SET SESSION binlog_format = ROW"
    folder = tmp_path_factory.mktemp("x")
    for number in range(len(FORMS) * len(LOGGED[flavor])):
        # a MyISAM table's folder has to be there
        (folder / str(number) / "x' AS SELECT 7 AS a -- ").mkdir(parents=True)
    kept = f"CREATE TABLE kept {KEPT[flavor]}".format(folder=folder)
    parent = ("CREATE TABLE p (a INT PRIMARY KEY)", "INSERT INTO p VALUES (1)")
    run_on(channel.source, "CREATE DATABASE app", "USE app", rows, *parent, kept)
    assert channel.run() is not None
    assert channel.target.query("SELECT a FROM app.kept") == [(1,)]
    run_on(channel.source, "CREATE DATABASE other", "CREATE TABLE other.t (a INT) ENGINE=MyISAM", log=False)
    lax = f"SET SESSION sql_mode = CONCAT(@@SESSION.sql_mode, ',{_BAD if flavor is Flavor.MARIADB else ''}')"
    for number, ((settings, name), text) in enumerate(itertools.product(FORMS, LOGGED[flavor])):
        # what ends a name is the quote that the server prints
        ended = text.replace("``", '"') if "ANSI_QUOTES" in settings else text
        table = f"CREATE TABLE {name.format(f't{number}')} {ended}".format(folder=folder / str(number))
        run_on(channel.source, rows, *settings.split("; "), lax, table)
        # the names of foreign keys are those of one database
        run_on(channel.source, f"DROP TABLE app.t{number}", log=False)
    logged = [text.partition(b"; ")[2] for text in _logged(channel.source) if re.search(rb"CREATE TABLE .*t\d", text)]
    assert len(logged) == len(LOGGED[flavor]) * len(FORMS)
    assert {sql[13:14] for sql in logged} == {b"`", b'"', b"t", b"I"}
    for sql in logged:
        mode = 4 if b'TABLE "' in sql else 0
        assert hidden_clause(sql, SessionContext(sql_mode=mode), flavor, composed=True) is not None, sql
    with pytest.raises(UnsupportedEventError, match=r"a table whose .* hides a clause behind it"):
        channel.run()
    assert channel.target.query("SHOW TABLES FROM app") == [("kept",), ("p",)]


def _logged(server: PrivateServer) -> list[bytes]:
    place = "SHOW BINARY LOG STATUS" if server.flavor is Flavor.MYSQL else "SHOW MASTER STATUS"
    events = server.query(f"SHOW BINLOG EVENTS IN '{server.query(place)[0][0]}'")
    return [info.encode() for _, _, kind, *_, info in events if kind == "Query"]


def test_nothing_hides_in_what_a_server_writes_anew(channel: Channel) -> None:
    cases = [*(("", each) for each in WRITTEN_ANEW), *FOR_THE_MODE.items()]
    with (
        contextlib.closing(_reading(channel)) as session,
        contextlib.closing(write_session(channel.endpoints.target)) as target,
    ):
        _in_app(channel.target)
        for mode, text in cases:
            kind, name = text.split()[:2]
            _in_app(channel.source, "SET NAMES utf8mb4", f"SET SESSION sql_mode = '{mode}'", f"CREATE {text}")
            make(target, read_definition(session, SchemaObject(kind.lower(), "app", name)))
            shown = _shown(channel.source, kind)
            assert _shown(channel.target, kind) == shown
            assert kind == "VIEW" or hidden_part(shown) is None
            for server in (channel.source, channel.target):
                _in_app(server, f"DROP {kind} {name}")


def test_a_table_of_options_of_another_engine_is_copied(channel: Channel) -> None:
    """MariaDB shows them in a comment. MySQL does not take them."""
    if channel.source.flavor is Flavor.MYSQL:
        return
    with (
        contextlib.closing(_reading(channel)) as session,
        contextlib.closing(write_session(channel.endpoints.target)) as target,
    ):
        _in_app(channel.target)
        _in_app(
            channel.source,
            f"SET SESSION sql_mode = '{_BAD}'",
            "CREATE TABLE t (a INT `x`='y''z', b TEXT COMPRESSED, KEY k (a) `x`=1) TRANSACTIONAL=1 `q``r`='s'",
        )
        make(target, read_definition(session, SchemaObject("table", "app", "t")))
    assert [name for (name, *_) in channel.target.query("SHOW COLUMNS FROM app.t")] == ["a", "b"]


def test_a_view_that_its_server_cannot_read_is_named(channel: Channel) -> None:
    flavor = channel.source.flavor
    _in_app(channel.source, f"CREATE VIEW v AS {UNREADABLE[flavor]}")
    with (
        contextlib.closing(_reading(channel)) as session,
        pytest.raises(PrecheckError, match=r"view app\.v: expected a definition that its own server can read.*drop it"),
    ):
        read_definition(session, SchemaObject("view", "app", "v"))
