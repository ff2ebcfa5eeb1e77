"""A table that a user makes keeps its rows in the target's own server: none is on another server, in a file, or in
another table.

Attacker: whoever may create tables in one database of the source. A source without the engine makes an InnoDB table
where sql_mode allows it, and logs the engine's name.
"""

from __future__ import annotations

import contextlib
import struct
from typing import Any, Final

import pymysql
import pytest

from binlane.binlog.events import Query
from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import transactions
from binlane.bootstrap.definition_copy import Definition
from binlane.bootstrap.definition_proof import foreign_part
from binlane.errors import BinlaneError, UnsupportedEventError
from binlane.model import Flavor, SessionContext
from binlane.plan.transaction.decode import LogFormat, StatementPart, _engine_elsewhere, dissect
from binlane.sql.programs.of_server import never_in_lane
from binlane.sql.words import words_of
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, run_on
from tests.unit.binlog.cases import MARIADB, MYSQL, log, mariadb_gtid, mysql_gtid, query

_MODE: Final = b"\1" + struct.pack("<Q", 0)
"""The status variable of an empty sql_mode."""
_NO_FOLDERS: Final = 0x80

ELSEWHERE: Final = (
    "CREATE TABLE app.{} (a INT PRIMARY KEY) ENGINE=FEDERATED {}",
    "CREATE TABLE app.{} (a INT PRIMARY KEY) ENGINE FEDERATED {}",
    "CREATE TABLE app.{} (a INT PRIMARY KEY) ENGINE := `federated` {}",
    "CREATE TABLE app.{} (a INT PRIMARY KEY) ENGINE='FEDERATED' {}",
    'CREATE TABLE app.{} (a INT PRIMARY KEY) engine "Federated" {}',
    "CREATE TABLE app.{} (a INT PRIMARY KEY) ENGINE=InnoDB ENGINE='FEDERATED' {}",
    "CREATE TABLE app.{} (a INT PRIMARY KEY) {} ENGINE = 'FEDER\\ATED'",
    "CREATE TABLE app.{} (a INT PRIMARY KEY) ENGINE=CONNECT {}",
    "CREATE TABLE app.{} (a INT PRIMARY KEY) ENGINE='SPIDER' {}",
    "CREATE TABLE app.{} (a INT PRIMARY KEY) ENGINE=S3 {}",
    "CREATE TABLE app.{} (a INT PRIMARY KEY) ENGINE=OF_NOBODY {}",
    "CREATE TABLE app.{} (a INT PRIMARY KEY) PARTITION BY HASH (a) (PARTITION p ENGINE='SPIDER') /* {} */",
    "CREATE TABLE app.{} (a INT PRIMARY KEY) PARTITION BY HASH (a) (PARTITION p STORAGE ENGINE = SPIDER) /* {} */",
    "CREATE TABLE app.{} (a INT PRIMARY KEY) ENGINE=FEDERATED {} AS SELECT 1 AS a",
    "CREATE TEMPORARY TABLE app.{} (a INT PRIMARY KEY) ENGINE=FEDERATED {}",
    "CREATE TABLE app.{} (a INT PRIMARY KEY) ENGINE OF_NOBODY {}",
    "CREATE EXTERNAL TABLE app.{} (a INT PRIMARY KEY) FILE_FORMAT = (FORMAT csv) FILES = (URI 'x') /* {} */",
    "CREATE EXTERNAL TABLE app.{} (a INT PRIMARY KEY) ENGINE=InnoDB {}",
    "CREATE ANY_WORD TABLE app.{} (a INT PRIMARY KEY) ENGINE=FEDERATED {}",
    # which the analyzer does not read
    "CREATE TABLE app.{} (a INT PRIMARY KEY) ENGINE=FEDERATED {} TABLE app.t",
    "CREATE TABLE app.select (a INT PRIMARY KEY) ENGINE=FEDERATED {1} /* {0} */",
)
"""Definitions of a table with a name and a connection. A line more is an attack more."""
ALTERED: Final = (
    "ALTER TABLE app.t ENGINE='CONNECT'",
    "ALTER TABLE app.t ADD b INT, ENGINE = FEDERATED",
    "ALTER TABLE app.t PARTITION BY HASH (a) (PARTITION p ENGINE = SPIDER)",
    "ALTER TABLE app.t ENGINE OF_NOBODY",
    "ALTER TABLE after ENGINE OF_NOBODY",
    "ALTER TABLE app.change ENGINE OF_NOBODY",
    "ALTER TABLE IF EXISTS modify ENGINE OF_NOBODY, ADD engine INT",
    "ALTER TABLE app.t TABLESPACE after ENGINE OF_NOBODY",
    "ALTER TABLE app.t DROP engine, COMMENT 'x' ENGINE OF_NOBODY",
    "ALTER TABLE app.t ADD b INT AFTER engine, ENGINE `OF_NOBODY`",
    "ALTER TABLE app.t CHANGE a b INT, ENGINE OF_NOBODY",
    "ALTER ANY_WORD TABLE app.t ENGINE=FEDERATED",
    "CREATE SEQUENCE app.s ENGINE=FEDERATED",
    "SET STATEMENT default_storage_engine = FEDERATED FOR CREATE TABLE app.e (a INT) CONNECTION='x/t'",
    "SET STATEMENT default_storage_engine = 'CONNECT' FOR CREATE TABLE app.e (a INT) CONNECTION='x/t'",
    "SET STATEMENT `default_storage_engine` = FEDERATED FOR CREATE TABLE app.e (a INT) CONNECTION='x/t'",
    "SET STATEMENT default_storage_engine = ('FEDERATED') FOR CREATE TABLE app.e (a INT) CONNECTION='x/t'",
    "SET STATEMENT default_storage_engine = 'FEDE' 'RATED' FOR CREATE TABLE app.e (a INT) CONNECTION='x/t'",
    "SET STATEMENT enforce_storage_engine = 0x464544455241544544 FOR ALTER TABLE app.t ADD b INT",
    "SET STATEMENT max_statement_time = 1, default_storage_engine = @x FOR CREATE TABLE app.e (a INT)",
)
"""Other texts that name such an engine. A line more is an attack more."""
HERE: Final = (
    "CREATE TABLE app.engine (engine VARCHAR(9) DEFAULT 'V8', CHECK (engine <> 'x'), KEY engine (engine))",
    "CREATE TABLE app.x (a INT GENERATED ALWAYS AS (engine = 'V8'), engine VARCHAR(9)) ENGINE 'MyISAM'",
    "CREATE TABLE app.x ENGINE=Aria AS SELECT * FROM app.cars WHERE engine = 'V8'",
    "ALTER TABLE app.x ADD COLUMN engine VARCHAR(9)",
    "ALTER TABLE app.x CHANGE motor engine INT, DROP engine, ADD y INT AFTER engine",
    "ALTER TABLE app.x CHANGE COLUMN IF EXISTS motor engine INT, MODIFY COLUMN engine INT, RENAME COLUMN y TO engine",
    "ALTER TABLE app.x CHANGE COLUMN motor engine INT, ALTER engine SET DEFAULT 1, MODIFY engine VARCHAR(9) FIRST",
    "ALTER TABLE app.x MODIFY COLUMN IF EXISTS engine INT, DROP COLUMN IF EXISTS engine RESTRICT",
    "ALTER TABLE app.x ADD UNIQUE engine USING BTREE (y), ALTER INDEX engine VISIBLE, ADD CONSTRAINT engine CHECK (y)",
    "ALTER TABLE app.engine ADD INDEX engine (engine), ORDER BY engine",
    "ALTER TABLE app.x PARTITION BY HASH (a) (PARTITION p ENGINE = InnoDB)",
    "CREATE TABLE app.x (a INT) ENGINE=MERGE UNION=(app.y)",
    "CREATE TABLE app.x (a INT) COMMENT 'ENGINE=FEDERATED'",
    "CREATE TABLE app.x (a INT) ENGINE=INNOBASE",
    "CREATE TABLE engine LIKE app.engine",
    "CREATE TABLE IF NOT EXISTS engine (a INT) ENGINE InnoDB",
    "SET STATEMENT default_storage_engine = InnoDB, max_statement_time = 1 + 1 FOR CREATE TABLE app.x (a INT)",
)
"""Texts of tables whose rows are the server's own."""
PROGRAMS: Final = (
    "CREATE TRIGGER app.tr BEFORE UPDATE ON app.cars FOR EACH ROW SET NEW.engine = 'V8'",
    "CREATE TRIGGER app.tr BEFORE UPDATE ON app.cars FOR EACH ROW IF NEW.engine = OLD.engine THEN SET @a = 1; END IF",
    "CREATE DEFINER=`a`@`b` PROCEDURE app.p() UPDATE app.cars SET engine = 'V8' WHERE id = 1",
    "CREATE EVENT app.e ON SCHEDULE EVERY 1 DAY DO UPDATE app.cars SET engine = old WHERE engine = 'V8'",
    "CREATE FUNCTION app.f(engine INT) RETURNS INT RETURN engine = 8",
    "CREATE DEFINER=sequence@h TRIGGER app.tr BEFORE UPDATE ON app.cars FOR EACH ROW SET NEW.engine = 'V8'",
    "SET STATEMENT default_storage_engine = 'Aria' FOR CREATE VIEW app.v AS SELECT 1 FROM app.c WHERE engine = 'V8'",
)
"""Programs that compare or set a column of that name."""


_LOGGED: Final = (ELSEWHERE[0], ELSEWHERE[2], ELSEWHERE[3])
"""Of these windows are made."""


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("text", [*(each.format("e", "CONNECTION='x/t'") for each in ELSEWHERE), *ALTERED])
def test_the_engine_of_rows_elsewhere_is_found(text: str, flavor: Flavor) -> None:
    assert _engine_elsewhere(Query("app", text.encode(), SessionContext()), flavor) is not None


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("text", [*HERE, *PROGRAMS])
def test_the_engine_of_the_server_s_own_rows_is_none_of_them(text: str, flavor: Flavor) -> None:
    assert _engine_elsewhere(Query("app", text.encode(), SessionContext()), flavor) is None


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("text", [each.format("e", "CONNECTION='x/t'") for each in ELSEWHERE])
def test_no_body_of_a_lane_makes_such_a_table(text: str, flavor: Flavor) -> None:
    body = f"BEGIN DECLARE c CURSOR FOR SELECT 1; IF @@server_id <> 1 THEN {text}; END IF; END"
    found = never_in_lane(words_of(body.encode(), SessionContext(), flavor).tokens)
    assert found is not None
    assert found.startswith("ENGINE ") or not text.startswith("CREATE TEMPORARY")


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("text", PROGRAMS)
def test_a_program_with_a_column_of_that_name_runs(text: str, flavor: Flavor) -> None:
    tokens = words_of(text.encode(), SessionContext(), flavor).tokens
    assert never_in_lane(tokens) is None


FOLDERS: Final = (
    "SET STATEMENT sql_mode = '' FOR CREATE TABLE app.x (a INT) DATA DIRECTORY = '{}'",
    "SET STATEMENT min_examined_row_limit = 9, Sql_Mode = '' FOR CREATE TEMPORARY TABLE x (a INT) INDEX DIRECTORY '{}'",
    "SET STATEMENT sql_mode = '' FOR ALTER TABLE app.t PARTITION BY HASH (a) (PARTITION p DATA DIRECTORY = '{}')",
)
"""Tables with a folder of the server's machine, in a sql_mode of their own. A line more is an attack more."""


@pytest.mark.parametrize("text", FOLDERS)
def test_a_folder_is_named_in_the_log_s_sql_mode_alone(text: str) -> None:
    """The mode in which the target ignores it would be another."""
    with pytest.raises(UnsupportedEventError, match="a table with a folder, in another sql_mode than the log's"):
        _parts_of(text.format("/x"), Flavor.MARIADB, status=_MODE)


@pytest.mark.parametrize("flavor", Flavor)
def test_a_folder_in_a_session_without_a_sql_mode_is_refused(flavor: Flavor) -> None:
    """An archive's: servers log the mode of each statement."""
    text = "CREATE TABLE app.x (a INT) DATA DIRECTORY = '/x'"
    assert [part.context.sql_mode for part in _parts_of(text, flavor, status=_MODE)] == [_NO_FOLDERS]
    with pytest.raises(UnsupportedEventError, match="a table with a folder, in another sql_mode than the log's"):
        _parts_of(text, flavor, status=b"")


@pytest.mark.parametrize("flavor", Flavor)
def test_the_modes_of_a_program_about_folders_are_its_own(flavor: Flavor) -> None:
    text = "CREATE PROCEDURE app.p() COMMENT 'makes a DATA DIRECTORY' DO 1"
    assert [part.context.sql_mode for part in _parts_of(text, flavor, status=_MODE)] == [0]


@pytest.mark.parametrize("option", ["DATA DIRECTORY = '/x'", "INDEX DIRECTORY '/x'", "DATA DIRECTORY := '/x'"])
def test_no_body_of_a_lane_names_a_folder(option: str) -> None:
    body = f"BEGIN CREATE TEMPORARY TABLE app.x (a INT) {option}; END"
    assert never_in_lane(words_of(body.encode(), SessionContext(), Flavor.MARIADB).tokens) == " ".join(
        option.split()[:2]
    )


@pytest.mark.parametrize("engine", ["FEDERATED", "CONNECT", "SPIDER", "OF_NOBODY"])
def test_no_copy_makes_such_a_table(engine: str) -> None:
    """What poses as a source shows it."""
    server: Any = None
    for options in (f"ENGINE={engine}", f"ENGINE=InnoDB\n PARTITION BY HASH (`a`)\n(PARTITION `p` ENGINE = {engine})"):
        shown = f"CREATE TABLE `t` (\n  `a` int(11) DEFAULT NULL\n) {options}"
        server = type("_Server", (), {"flavor": Flavor.MARIADB})()
        assert foreign_part(Definition("TABLE", "app", "t", shown.encode()), server) is not None


def _parts_of(text: str, flavor: Flavor, status: bytes) -> list[StatementPart]:
    """What becomes of a statement of a log, between servers of one family."""
    is_mariadb = flavor is Flavor.MARIADB
    gtid = mariadb_gtid(1, 1) if is_mariadb else mysql_gtid(1)
    data = log(gtid, query(text.encode(), database=b"app", status=status), log_format=MARIADB if is_mariadb else MYSQL)
    reader = LogReader(memoryview(data), "binlog.000001")
    (transaction,) = transactions(reader)
    found = dissect(transaction, LogFormat(reader.format, reader.name, 0, flavor))
    return [part for part in found if isinstance(part, StatementPart)]


def test_no_table_of_the_log_reaches_another_server(channel_of: ChannelOf) -> None:
    """Between MariaDB servers: the target has the engine, and the source has none of that name."""
    channel = channel_of("mariadb", "11.8")
    with contextlib.suppress(pymysql.err.MySQLError):
        run_on(channel.target, "INSTALL SONAME 'ha_federatedx'", log=False)
    _attacked(channel, channel.source, channel.target)


@requires_mysql
def test_no_table_of_mysql_s_log_reaches_another_server(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    _attacked(channel, channel.source, channel.target)


def _attacked(channel: Any, source: PrivateServer, target: PrivateServer) -> None:
    place = f"CONNECTION='mysql://{target.user}:{target.password}@{target.host}:{target.port}/other/victim'"
    channel.on_both("CREATE DATABASE app", "CREATE DATABASE other", "CREATE TABLE other.victim (a INT PRIMARY KEY)")
    channel.write_channel('allow_nontransactional = true\n[filter]\nexclude_databases = ["other"]\n')
    for number, text in enumerate(_LOGGED):
        # an option that the engine does not know is a warning there
        definition = text.format(f"e{number}", place)
        run_on(source, "SET SESSION sql_mode = ''", definition, f"INSERT INTO app.e{number} VALUES (42)")
        with pytest.raises(BinlaneError, match=r"a table whose rows are elsewhere \(ENGINE \w+\)"):
            channel.run()
        run_on(target, "DROP DATABASE binlane")
        channel.init()
    assert target.query("SELECT * FROM other.victim") == []
    assert target.query("SELECT table_name FROM information_schema.tables WHERE table_schema = 'app'") == []
