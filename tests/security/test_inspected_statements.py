"""What `binlane inspect --sql` prints of a log runs nothing on the machine of who pipes it to a client.

Attacker: a user of the source, whose statements are valid there, and whoever can write to the archive.
"""

from __future__ import annotations

import io
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from binlane.orchestration.commands.inspection.events import Detail, inspect_files
from binlane.orchestration.terminal import Terminal
from lab.servers import PrivateServer
from tests.emptied import drop_databases
from tests.unit.binlog.cases import T, log, mariadb_gtid, query, wire

_NO_BACKSLASH_ESCAPES: Final = 1 << 20
_IN_TRANSACTION: Final = 4
_RUN: Final = "\\! touch {}\n"

COMMANDS: Final[Mapping[str, str]] = {
    "a command behind a statement": f"INSERT INTO app.t VALUES (1)\n{_RUN}",
    "a text that ends elsewhere under NO_BACKSLASH_ESCAPES": f"INSERT INTO app.t VALUES ('\\'), (' {_RUN}')",
    "a quote in a comment to the line's end": f"INSERT INTO app.t VALUES (1) # it's\n{_RUN}-- '\n",
    "the same behind dashes": f"INSERT INTO app.t VALUES (1) -- it's\n{_RUN}-- '\n",
    "dashes without a blank": f"--x'\n{_RUN}'",
    "a conditional comment": f"INSERT INTO app.t VALUES (1) /*! {_RUN}*/",
    "one of MariaDB": f"INSERT INTO app.t VALUES (1) /*M!' {_RUN}'*/",
    "a word of the client": "system touch {}\nSELECT 1",
    "the same behind a comment": "-- x\nSYSTEM touch {}\nSELECT 1",
    "the same behind the delimiter": "SELECT 1 ;;\nsystem touch {}\n;;SELECT 2",
}
"""Statements that make a file if a client reads commands in them. A line more is an attack more."""
PLAIN: Final = (
    "INSERT INTO app.t VALUES ('it\\'s \\\\'), (\\N), (\"a'b\") /*!40000 */ -- it's\n",
    "CREATE PROCEDURE app.p() BEGIN SELECT 1; SELECT 2/1; END",
)


def _printed(folder: Path, statement: str, database: str = "app") -> str:
    status = struct.pack("<BQ", 1, _NO_BACKSLASH_ESCAPES if "VALUES ('\\')" in statement else 0)
    event = query(statement.encode(), database=database.encode(), status=status)
    file = folder / "binlog.000001"
    file.write_bytes(log(mariadb_gtid(1, _IN_TRANSACTION), event, wire(T.XID, struct.pack("<Q", 42))))
    out = io.StringIO()
    inspect_files([file], as_json=False, out=Terminal(file=out), err=Terminal(file=out), detail=Detail(sql=True))
    return out.getvalue()


def _piped(server: PrivateServer, text: str) -> str:
    command = [str(server.tool("client")), "--no-defaults", "--force", f"--host={server.host}", f"--port={server.port}"]
    command += [f"--user={server.user}", f"--password={server.password}"]
    return subprocess.run(command, input=text, text=True, capture_output=True, check=False).stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_client_runs_nothing_of_a_log(command: str, mariadb_target: PrivateServer, tmp_path: Path) -> None:
    made = tmp_path / "made"
    printed = _printed(tmp_path, COMMANDS[command].format(made))
    _piped(mariadb_target, printed)

    assert not made.exists()
    assert "-- a client would find commands of its own in it, and run them: " in printed


def test_a_database_with_a_line_break_is_not_selected(tmp_path: Path) -> None:
    printed = _printed(tmp_path, "SELECT 1", "x\nsystem true\n")

    assert all(line.startswith("-- ") for line in printed.splitlines())


def test_what_a_client_sends_as_it_is_reaches_the_server(mariadb_target: PrivateServer, tmp_path: Path) -> None:
    drop_databases(mariadb_target)
    mariadb_target.query("CREATE DATABASE app")
    mariadb_target.query("CREATE TABLE app.t (a VARCHAR(9))")
    for statement in PLAIN:
        assert _piped(mariadb_target, _printed(tmp_path, statement)) == ""

    assert mariadb_target.query("SELECT a FROM app.t") == [("it's \\",), (None,), ("a'b",)]
    assert mariadb_target.query("SELECT routine_name FROM information_schema.routines WHERE routine_schema = 'app'")


def test_a_file_that_is_cut_while_it_is_read_ends_no_process(tmp_path: Path) -> None:
    event = query(b"INSERT INTO app.t VALUES (1)", database=b"app")
    file = tmp_path / "binlog.000001"
    file.write_bytes(log(*(mariadb_gtid(1, _IN_TRANSACTION), event, wire(T.XID, struct.pack("<Q", 42))) * 2000))
    program = (
        "import io, os, sys\n"
        "from pathlib import Path\n"
        "from binlane.orchestration.commands.inspection.events import Detail, inspect_files\n"
        "from binlane.orchestration.terminal import Terminal\n"
        "class Cutting(io.StringIO):\n"
        "    def write(self, text):\n"
        "        os.truncate(sys.argv[1], 0)\n"
        "        return super().write(text)\n"
        "out = Terminal(file=Cutting())\n"
        "inspect_files([Path(sys.argv[1])], as_json=False, out=out, err=out, detail=Detail())\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True, check=False)
    assert (ended.returncode, file.stat().st_size) == (0, 0), ended.stderr
