"""Numbers of thousands of digits, and places that no log has, are refused by the text's own error.

Attacker: whoever may fill in a form of Airflow or of the board, or writes a place into a backup's file that somebody
hands to ``--start``. Python raises ValueError for an integer of more than 4,300 digits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Final, cast

import numpy as np
import pytest

from binlane.errors import BinlaneError, PrecheckError
from binlane.model import Flavor, LogPosition
from binlane.orchestration.commands.copies.restore_plan import EndRequest, _end
from binlane.orchestration.commands.skip import Which
from binlane.orchestration.request import WindowRequest
from binlane.orchestration.stop import seqno_of
from binlane.restore.end import EndGtid
from binlane.restore.logged_transactions import RowTransactions
from binlane.sessions.server_proof import ServerProof
from binlane.source.end_position import AtGtid, UntilGtid
from binlane.source.gtid_set import parse_gtid_set
from binlane.source.start_position import begin
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, run_on

MANY: Final = "9" * 5_000
UUID: Final = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
TEXTS: Final = (
    MANY, f"-{MANY}", f"binlog.000001:{MANY}", f"0-1-{MANY}", f"{MANY}-1-1", f"0-{MANY}-1", f"{UUID}:{MANY}",
    f"{UUID}:1-{MANY}", f"{UUID}:tag:{MANY}", f"{MANY}-{MANY}", "\x1b[31m7", f"{UUID}:1-5," * 25_000 + "x",
    f"{UUID}" + ":1-2" * 25_000 + ":x", "٣" * 5_000,
)  # fmt: skip
"""A line more is an attack more, on every place that takes such a text."""


def _source(flavor: Flavor) -> Any:
    state = SimpleNamespace(flavor=flavor, files=("binlog.000001",), unlogged="")
    return SimpleNamespace(name="source", state=lambda: state)


PLACES: Final[Mapping[str, Callable[[str], object]]] = {
    "--start on MariaDB": lambda text: begin(_source(Flavor.MARIADB), text),
    "--start on MySQL": lambda text: begin(_source(Flavor.MYSQL), text),
    "--until": WindowRequest,
    "--until of a restore": lambda text: _end(EndRequest(text, None)),
    "--range": lambda text: Which(range=text),
    "stop": lambda text: seqno_of(cast(Any, SimpleNamespace(bounds=SimpleNamespace(window_id="w", work=""))), text,
                                  cast(Any, SimpleNamespace(of=lambda *_: None))),
    "the end's GTID": lambda text: AtGtid(UntilGtid(text), "source"),
    "a GTID set of MariaDB": lambda text: parse_gtid_set(Flavor.MARIADB, text),
    "a GTID set of MySQL": lambda text: parse_gtid_set(Flavor.MYSQL, text),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_number_without_an_end_is_refused_by_its_own_error(place: str) -> None:
    for text in TEXTS:
        with pytest.raises(BinlaneError, match="expected"):
            PLACES[place](text)


def test_a_gtid_above_every_number_is_behind_every_row() -> None:
    none, no, times = np.zeros(2, np.int64), np.zeros(2, bool), np.zeros(2, np.float64)
    numbers = none.astype(np.uint64)
    rows = RowTransactions("binlog.000001", none, none + 9, times, numbers, none, no, cast(Any, None))
    end = cast(EndGtid, _end(EndRequest(f"0-1-{'9' * 20}", None)))
    assert end.passes(rows) == rows.end.size


_ZEROS: Final = "0" * 5_000
STATEMENTS: Final = (
    f"INSERT INTO app.t (id, v) SELECT a, a FROM app.u ORDER BY {_ZEROS}1 LIMIT {_ZEROS}2",
    f"INSERT INTO app.t (v) SELECT a FROM app.u GROUP BY {_ZEROS}1 ORDER BY {_ZEROS}1",
    f"INSERT INTO app.t (id, v) VALUES (NULL, 1), ({_ZEROS}70, 2), (NULL, 3)",
    f"DELETE FROM app.t ORDER BY id LIMIT {_ZEROS}1",
    f"UPDATE app.t SET v = {_ZEROS}1 ORDER BY id LIMIT {_ZEROS}1",
    f"CREATE TABLE app.w (n VARCHAR({_ZEROS}10)) AUTO_INCREMENT = {_ZEROS}5",
    f"ALTER TABLE app.t AUTO_INCREMENT = {_ZEROS}99",
)
"""Servers take any number of zeros in front of a number. A line more is an attack more."""


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_statement_with_thousands_of_digits_is_applied_or_refused_by_its_name(
    family: str, channel_of: ChannelOf
) -> None:
    channel = channel_of(family, family)
    run_on(
        channel.source,
        "SET SESSION binlog_format = STATEMENT",
        "CREATE DATABASE app",
        "CREATE TABLE app.t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)",
        "CREATE TABLE app.u (a INT PRIMARY KEY)",
        "INSERT INTO app.u VALUES (1), (2), (3)",
    )
    channel.run()
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", *STATEMENTS)
    with contextlib.suppress(PrecheckError):
        channel.run()
    channel.write_channel("allow_unsafe = true\n")
    channel.run()
    rows = "SELECT id, v FROM app.t ORDER BY id"
    assert channel.target.query(rows) == channel.source.query(rows)


@pytest.mark.parametrize("text", ["0-1-x", f"0-1-{MANY}", f"{MANY}-1-1", "a-b-c", "0-1-5,0-1-²"])
def test_a_watermark_of_the_state_that_is_no_gtid_is_one_that_no_server_has_reached(text: str) -> None:
    proof = ServerProof("mariadb server_id 1", text, LogPosition("binlog.²", 4))
    assert "expected a server that has executed" in str(proof.refusal(Flavor.MARIADB, ("1", f"0-1-100,{text}", text)))
    assert proof.refused_end(LogPosition(f"binlog.{MANY}", 4)) is None
