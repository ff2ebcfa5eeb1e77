"""What must not run in the session of a lane, whatever the channel allows."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.sql.programs.of_server import never_in_lane
from binlane.sql.temporary_routines import tokens_of


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("SET @x = RELEASE_ALL_LOCKS()", "RELEASE_ALL_LOCKS()"),
        ("RETURN `release_all_locks` ()", "RELEASE_ALL_LOCKS()"),
        ("SET @x = WAIT_FOR_EXECUTED_GTID_SET('')", "WAIT_FOR_EXECUTED_GTID_SET()"),
        ("KILL CONNECTION_ID()", "KILL"),
        ("SET /* x */ GLOBAL read_only = 1", "SET GLOBAL"),
        ("SET @@global.read_only = 1", "SET GLOBAL"),
        ("SET PERSIST read_only = 1", "SET GLOBAL"),
        ("BEGIN SHUTDOWN; END", "SHUTDOWN"),
        ("RESET MASTER", "RESET MASTER"),
        ("PURGE BINARY LOGS TO 'x'", "PURGE BINARY"),
        ("STOP SLAVE", "STOP SLAVE"),
        ("SELECT 1 INTO OUTFILE 'x'", "INTO OUTFILE"),
        ("BINLOG 'x'", "BINLOG"),
        ("FLUSH TABLES", "FLUSH TABLES"),
        ("LOCK TABLES t WRITE", "LOCK TABLES"),
        ("UNLOCK TABLES", "UNLOCK TABLES"),
        ("INSTALL SONAME 'x'", "INSTALL SONAME"),
        ("UNINSTALL PLUGIN x", "UNINSTALL PLUGIN"),
        ("XA START 'x'", "XA START"),
        ("BEGIN SAVEPOINT a; ROLLBACK TO a; END", None),
        ("SET @x = GET_LOCK('x', 1), @y = RELEASE_LOCK('x')", None),
        ("UPDATE t SET flush = 1, lock_tables = 2, xa = 3 WHERE t.kill = 'KILL'", None),
        ("SELECT a.release_all_locks, 'RELEASE_ALL_LOCKS()' FROM a", None),
        ("SELECT * FROM t FOR UPDATE", None),
    ],
)
def test_one_table_says_what_must_not_run_in_a_lane(body: str, expected: str | None) -> None:
    for flavor in Flavor:
        tokens = tokens_of(body, flavor)
        assert tokens is not None
        assert never_in_lane(tokens) == expected
