"""Settings of the target that stand against the window's tables: judged, and held against what the server then does."""

from __future__ import annotations

from collections.abc import Sequence

import pymysql

from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.integration.precheck.helpers import asked, run, setting
from tests.integration.precheck.test_grants import logged
from tests.unit.precheck.situations import applying, said, situation

BOTH = tuple(Flavor)
MARIADB = (Flavor.MARIADB,)
TABLE = "CREATE TABLE settings.n "
CASES: Sequence[tuple[str, str, str, bool, tuple[Flavor, ...]]] = [
    ("innodb_force_primary_key", "ON", TABLE + "(a INT)", True, MARIADB),
    ("innodb_force_primary_key", "ON", TABLE + "AS SELECT 1 AS a", True, MARIADB),
    ("innodb_force_primary_key", "ON", TABLE + "(a INT PRIMARY KEY)", False, MARIADB),
    ("innodb_force_primary_key", "ON", TABLE + "(a INT NOT NULL UNIQUE)", False, MARIADB),
    ("innodb_force_primary_key", "ON", TABLE + "(a INT) ENGINE=MyISAM", False, MARIADB),
    ("innodb_force_primary_key", "ON", TABLE + "LIKE settings.t", False, MARIADB),
    ("innodb_force_primary_key", "ON", "ALTER TABLE settings.t DROP PRIMARY KEY", True, MARIADB),
    ("innodb_force_primary_key", "ON", "ALTER TABLE settings.t DROP PRIMARY KEY, ADD PRIMARY KEY (b)", False, MARIADB),
    ("innodb_force_primary_key", "OFF", TABLE + "(a INT)", False, MARIADB),
    ("enforce_storage_engine", "InnoDB", TABLE + "(a INT) ENGINE=MyISAM", True, MARIADB),
    ("enforce_storage_engine", "InnoDB", TABLE + "(a INT) ENGINE InnoDB", False, MARIADB),
    ("enforce_storage_engine", "InnoDB", TABLE + "(a INT)", False, MARIADB),
    ("enforce_storage_engine", "MyISAM", TABLE + "(a INT)", True, MARIADB),
    ("innodb_read_only_compressed", "ON", TABLE + "(a INT) ROW_FORMAT=COMPRESSED", True, MARIADB),
    ("innodb_read_only_compressed", "ON", TABLE + "(a INT) KEY_BLOCK_SIZE=8", True, MARIADB),
    ("innodb_read_only_compressed", "ON", TABLE + "(a INT) ROW_FORMAT=DYNAMIC", False, MARIADB),
    ("innodb_strict_mode", "ON", TABLE + "(a INT) ROW_FORMAT=DYNAMIC KEY_BLOCK_SIZE=8", True, BOTH),
    ("innodb_strict_mode", "ON", TABLE + "(a INT) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=32", True, BOTH),
    ("innodb_strict_mode", "ON", TABLE + "(a INT) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=5", True, BOTH),
    ("innodb_strict_mode", "ON", TABLE + "(a INT) ROW_FORMAT=FIXED", True, BOTH),
    ("innodb_strict_mode", "ON", TABLE + "(a INT) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8", False, BOTH),
    ("innodb_strict_mode", "ON", TABLE + "(a INT) KEY_BLOCK_SIZE=4", False, BOTH),
    ("innodb_strict_mode", "ON", "ALTER TABLE settings.t ROW_FORMAT=FIXED", True, BOTH),
    ("innodb_strict_mode", "OFF", TABLE + "(a INT) ROW_FORMAT=FIXED", False, BOTH),
    ("default_storage_engine", "MyISAM", TABLE + "(a INT)", True, BOTH),
    ("default_storage_engine", "MyISAM", TABLE + "(a INT) ENGINE=InnoDB", False, BOTH),
    ("default_storage_engine", "MyISAM", TABLE + "LIKE settings.t", False, BOTH),
    ("default_storage_engine", "MyISAM", "ALTER TABLE settings.t COMMENT 'x'", False, BOTH),
]


def is_as_written(server: PrivateServer, statement: str) -> bool:
    """Whether the server takes it, and makes a table of the engine that the statement names, or InnoDB."""
    wanted = "MyISAM" if "MyISAM" in statement else "InnoDB"
    try:
        run(server, "SET SESSION sql_mode = ''", statement)
    except pymysql.err.MySQLError:
        return False
    query = "SELECT engine FROM information_schema.tables WHERE table_schema = 'settings' ORDER BY table_name = 'n'"
    return str(list(server.query(query))[-1][0]) == wanted


def test_the_check_of_table_settings_agrees_with_the_server(server: PrivateServer) -> None:
    different = {}
    for name, value, statement, refused, flavors in CASES:
        if server.flavor not in flavors:
            continue
        run(server, "CREATE DATABASE settings", "CREATE TABLE settings.t (a INT PRIMARY KEY, b INT NOT NULL)")
        with setting(server, name, value):
            with asked(server) as target:
                found = said(situation(target, texts=[logged(statement, server.flavor)]), "table-settings")
            if (refused, not refused) != (found != [], is_as_written(server, statement)):
                different[f"{name} = {value}: {statement}"] = found
        assert all(f"{name} of the target: expected " in each for each in found)
        run(server, "DROP DATABASE settings")
    assert different == {}


def test_tables_without_transactions_are_the_channels_to_allow(server: PrivateServer) -> None:
    with setting(server, "default_storage_engine", "MyISAM"), asked(server) as target:
        texts = [logged(TABLE + "(a INT)", server.flavor)]
        allowed = situation(target, texts=texts, channel=applying(allow_nontransactional=True))
        assert said(allowed, "table-settings") == []
