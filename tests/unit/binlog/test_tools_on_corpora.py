"""Real logs of other projects, read by the servers' own tools: positions, transactions and GTIDs are the same."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import Ending, IncompleteTail, transactions
from binlane.binlog.wire import EventType
from binlane.model import Flavor
from lab.programs import LabError, server_binary
from tests.unit.binlog.test_corpora import Listed, each_file

ENDED = frozenset({Ending.XID, Ending.COMMIT})
GTIDS = {Flavor.MARIADB: r"\tGTID (\d+-\d+-\d+)", Flavor.MYSQL: r"GTID_NEXT= '([0-9a-f-]+:\d+)'"}
BEFORE_5_6 = re.compile(r"5\.[15]\.")
"""MySQL's tool of today reads them no more; MariaDB's does."""


def tool(flavor: Flavor) -> Path:
    """The server's own reader of its logs; skips the test where there is none."""
    name = {Flavor.MARIADB: "mariadb-binlog", Flavor.MYSQL: "mysqlbinlog"}[flavor]
    try:
        beside = server_binary(flavor).parent / name
    except LabError as exc:
        pytest.skip(str(exc))
    found = beside if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}")
    return Path(found)


def printed(entry: Listed) -> str:
    flavor = Flavor.MARIADB if "MariaDB" in entry.version or BEFORE_5_6.match(entry.version) else Flavor.MYSQL
    # -f: files that have no good checksums are read all the same
    command = [str(tool(flavor)), "--no-defaults", "--base64-output=decode-rows", "-f", str(entry.path)]
    return subprocess.run(command, check=True, capture_output=True).stdout.decode("utf-8", "replace")


@each_file
def test_positions_transactions_and_gtids_are_those_of_the_server_s_tool(entry: Listed) -> None:
    text, data = printed(entry), entry.path.read_bytes()
    reader = LogReader(data, entry.path.name, verify=False)
    events = list(reader.events())
    told = [int(offset) for offset in re.findall(r"^# at (\d+)$", text, re.M)]
    if any(event.header.type_code == EventType.TRANSACTION_PAYLOAD for event in events):
        # the events inside a payload are told at the payload's own end
        assert {event.offset for event in events} <= set(told)
    else:
        assert [event.offset for event in events] == told

    tails: list[IncompleteTail] = []
    found = list(transactions(LogReader(data, entry.path.name, verify=False), tails.append))
    commits = len(re.findall(r"^(?:/\*!\d+ )?COMMIT\b", text, re.M))
    assert sum(transaction.ending in ENDED for transaction in found) == commits
    named = [transaction.gtid for transaction in found if transaction.gtid]
    assert named == re.findall(GTIDS[reader.format.flavor], text)
