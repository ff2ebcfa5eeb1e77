"""A reader of a channel's DAG sees names and numbers on the board: no value of a row, no statement, no account.

Attacker: whoever has Airflow's role Viewer. Every GET route of the board is asked, so a new one is tried by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from binlane.state.json_columns import text_of
from binlane.state.records.audit import Arguments
from binlane.state.records.bootstraps import CopyResult
from binlane.state.records.drills import DrillResults
from binlane.state.records.restores import RestoreDefinition
from tests.conftest import requires_mysql
from tests.integration.window.board.test_board import API, EDIT, READ, client_of, half_way
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on

SECRET: Final = "s3cret-value"
_NOTES: Final = (f"account 'a'@'%': GRANT .. IDENTIFIED BY '{SECRET}'",)
_RESTORE: Final = RestoreDefinition(
    f"/dumps/{SECRET}", "/log/", (("tenant_1", "back"),), (), "b.000001:4", "b.000001", 9,
    f"UPDATE t SET v = {SECRET}", (), "", (f"{SECRET}@host",),
)  # fmt: skip
_RESULT: Final = CopyResult(1, 1, 0, 1, 0, 0, _NOTES, 1, ((), False), 0, SECRET)
STATEMENTS: Final = (
    "INSERT INTO binlane.errors (channel, window_id, lane, seqno, reached, gtid, source_file, source_offset, code, "
    f"text, at) VALUES ('{CHANNEL}', '{{window}}', 0, 1, 0, '', '', 0, 1062, "
    f"'Duplicate entry {SECRET} for key PRIMARY', NOW(6))",
    "INSERT INTO binlane.ddl (channel, seqno, lane, statement, fingerprint, state, at) "
    f"VALUES ('{CHANNEL}', 1, 0, 'ALTER TABLE t ALTER c SET DEFAULT ''{SECRET}''', '', 'asked', NOW(6))",
    "INSERT INTO binlane.skips (channel, seqno, window_id, lane, gtid, source_file, source_offset, commit_time, "
    "summary, bytes, sha256, reason, by_whom, at, state, state_at) "
    f"VALUES ('{CHANNEL}', 2, '{{window}}', 0, '', '', 0, 0, 'insert ({SECRET})', 1, REPEAT('a', 64), 'r', 'b', "
    "NOW(6), 'skipped', NOW(6))",
    "INSERT INTO binlane.bootstraps (channel, database_names, source_identity, source_file, source_offset, gtid_set, "
    "source_time, fingerprint, replaced_for, outcome, finished_for, attempts, updated_at) "
    f"VALUES ('{CHANNEL}', '[]', '', '', 0, '', 0, '', '', '{text_of(_RESULT).replace(chr(39), chr(39) * 2)}', '', 1, "
    "NOW(6))",
    "INSERT INTO binlane.repairs (channel, digest, plan, seqno, requested_by, state, inserted, updated, deleted, "
    f"equal_rows, changed_rows, started_at) VALUES ('{CHANNEL}', REPEAT('a', 64), '/work/{SECRET}', 1, 'b', 'done', "
    "0, 0, 0, 0, 0, NOW(6))",
    "INSERT INTO binlane.audit (channel, at, by_whom, account, command, arguments, digest, result, error) VALUES "
    f"('{CHANNEL}', NOW(6), 'b', '{SECRET}', 'xa', '{text_of(Arguments((('--xid', SECRET),)))}', '', 'failed', 'X')",
    "INSERT INTO binlane.restores (channel, definition, stage, created_at, updated_at) VALUES "
    f"('restore_1', '{text_of(_RESTORE)}', 'loading', NOW(6), NOW(6))",
    "INSERT INTO binlane.drills (channel, seed, base, log, log_bytes, state, results, error, requested_by, started_at, "
    f"ended_at) VALUES ('{CHANNEL}', 1, '/dumps/{SECRET}', '/log/', 1, 'failed', '{text_of(DrillResults(()))}', "
    f"'expected {SECRET}', 'b', NOW(6), NOW(6))",
)
"""Records of the channel that quote a value. A line more is an attack more; those who may edit see each of them."""


def _answers(client: TestClient, window: str, headers: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Every GET route of the API, with the values of this window, and its answer."""
    values: dict[str, Any] = {
        "name": CHANNEL, "window_id": window, "lane": 0, "first_seqno": 1, "seqno": 1, "file_name": "x",
    }  # fmt: skip
    blocks = client.get(f"{API}/windows/{window}/lanes/0/blocks", headers=EDIT)
    if blocks.status_code == 200 and blocks.json()["blocks"]:
        values["first_seqno"] = values["seqno"] = blocks.json()["blocks"][0]["first_seqno"]
    for route in client.app.routes:  # type: ignore[attr-defined]
        if isinstance(route, APIRoute) and "GET" in route.methods and "static" not in route.path:
            path = route.path.format(**values)
            yield path, client.get(path, headers=headers).text


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_no_answer_to_a_reader_has_a_value_a_statement_or_an_account(channel_of: ChannelOf, family: str) -> None:
    channel = channel_of(family, family)
    run_on(
        channel.source,
        "CREATE DATABASE tenant_1",
        "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, v VARCHAR(99))",
        f"INSERT INTO tenant_1.t VALUES (1, '{SECRET}')",
    )
    window = half_way(channel)["window"]
    run_on(channel.target, *(each.replace("{window}", window) for each in STATEMENTS), log=False)
    client = client_of(channel)
    assert sum(SECRET in text for _, text in _answers(client, window, EDIT)) >= 3
    assert client.get(f"{API}/records", headers=EDIT).json()["commands"][0]["account"] == SECRET
    [restore], [drill] = (client.get(f"{API}/records", headers=EDIT).json()[each] for each in ("restores", "drills"))
    assert SECRET in restore["base"]
    assert SECRET in restore["asked"]
    assert SECRET in drill["error"]
    _assert_hidden(channel, client, window)
    found = client.get(API, headers=READ).json()
    assert [each["text"] for each in found["errors"]] == ["shown to those who may edit the DAG"]
    assert found["target"] is None
    assert client.get(API, headers=EDIT).json()["target"] is not None

    # errors, whatever raises them: a damaged plan, a damaged state, a target that is another server, one that is away
    [settings] = channel.work.glob(f"**/{window}/channel.json")
    before = settings.read_bytes()
    settings.write_text(f'"{SECRET}"')
    assert (
        "the window's files cannot be read" in client.get(f"{API}/windows/{window}/lanes/0/blocks", headers=READ).text
    )
    _assert_hidden(channel, client, window)
    settings.write_bytes(before)
    channel.connect("target_server", channel.source)
    elsewhere = client_of(channel)
    assert "TargetIdentityError: " in elsewhere.get(API, headers=EDIT).text
    _assert_hidden(channel, elsewhere, window)
    channel.connect("target_server", channel.target)
    run_on(channel.target, f"UPDATE binlane.windows SET end_file = '../{SECRET}'", log=False)
    _assert_hidden(channel, client, window)
    channel.connect("target_server", channel.target, port=1)
    _assert_hidden(channel, client_of(channel), window)


def _assert_hidden(channel: Channel, client: TestClient, window: str) -> None:
    target = channel.target
    # of which the names of the lanes' locks are made
    [(uuid,)] = target.query("SELECT uuid FROM binlane.channels")
    for path, text in _answers(client, window, READ):
        assert SECRET not in text, path
        assert str(uuid) not in text, path
        assert f"{target.user}@" not in text, path
        assert f"{target.host}:{target.port}" not in text, path
        assert f"{target.host}:1" not in text, path


ACTIONS: Final = ("stop", "verify", "decide", "skip", "cancel-skip")
BODIES: Final = (
    "NaN",
    "[NaN]",
    '{"seqno": NaN}',
    '{"full": Infinity, "now": -Infinity}',
    "1e999",
    "[" * 5000,
    "\\x00",
    "",
)
QUERIES: Final = ("windows?before=", "windows?limit=", "databases?lane=", "databases?after=")
VALUES: Final = ("NaN", "Infinity", "-1", "1e9", str(1 << 63), str(1 << 70), "'; DROP TABLE t", "%00", "")


def test_values_that_are_no_numbers_are_refused_by_name(channel: Channel) -> None:
    """NaN and Infinity are values for Python's reader of JSON, and for no other."""
    client = client_of(channel)
    token = client.get("/api/session", headers=EDIT).json()["token"]
    headers = {"X-Binlane-Token": token, "Content-Type": "application/json", **EDIT}
    for action, body in itertools.product(ACTIONS, BODIES):
        answer = client.post(f"{API}/{action}", content=body, headers=headers)
        assert answer.status_code in (400, 422), (action, body, answer.text)
        detail = answer.json()["detail"]
        assert isinstance(detail, str) or all({*each} == {"type", "loc", "msg"} for each in detail)
    for query, value in itertools.product(QUERIES, VALUES):
        answer = client.get(f"{API}/{query}{value}", headers=READ)
        assert answer.status_code in (200, 422), (query, value, answer.text)


def test_no_answer_says_where_the_files_of_a_window_are(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "mariadb")
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)")
    window = half_way(channel)["window"]
    place = channel.config.work.uri
    for file in ("plan.json", "manifest.json"):
        for found in Path(place).rglob(file):
            found.unlink()
        answers = dict(_answers(client_of(channel), window, READ))
        assert "the web server's log says why" in answers[f"{API}/windows/{window}/lanes/0/blocks"]
        assert [path for path, text in answers.items() if place in text] == []
