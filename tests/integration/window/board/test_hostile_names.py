"""Names, values and texts that would act on a terminal, a page or a template reach every command and the board."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from binlane.safe_text import one_line, printable
from tests.conftest import requires_mysql
from tests.integration.window.board.test_board import API, client_of
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, channel_of, clean_servers, run_on

__all__ = ["channel_of", "clean_servers"]

BOTH: Final = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
DATABASE: Final = "tenant_app[/x]"
ODD: Final = "tenant_%s{0}:a\x1b[31m\u202e\x9b"
TABLE: Final = "[/bold]%(n)s:t\n\x1b]0;x\x07\u2066"
TABLE_OF: Final = {DATABASE: TABLE, ODD: TABLE.replace("\n", "")}
"""The definition of a table with a line break in its name is not corrected: see tests/security/test_shown_tables.py."""
COLUMN: Final = "n[/]\x1b%d:c"
VALUE: Final = "[/x]\x1b[2J\u202e\x9b"
REASON: Final = "because [/x] \x1b[2J\u202e%s{0}"


def name(*parts: str) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def said(channel: Channel, capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command prints: none of it may act."""
    capsys.readouterr()
    assert channel.cli(*arguments) == code, capsys.readouterr()
    captured = capsys.readouterr()
    text = captured.out + captured.err
    assert text == printable(text)
    assert "MarkupError" not in text
    assert "Traceback" not in text
    return text


def strings(found: Any) -> list[str]:
    match found:
        case str():
            return [found]
        case dict():
            return [each for pair in found.items() for one in pair for each in strings(one)]
        case list():
            return [each for one in found for each in strings(one)]
    return []


def fill(channel: Channel) -> None:
    """Create databases, tables, columns, views and rows with hostile names and values on the source."""
    for database, table in TABLE_OF.items():
        run_on(
            channel.source,
            f"CREATE DATABASE {name(database)}",
            f"CREATE TABLE {name(database, table)} (id INT PRIMARY KEY, {name(COLUMN)} VARCHAR(99), "
            f"KEY k ({name(COLUMN)}))",
            f"CREATE VIEW {name(database, 'v' + table)} AS SELECT id FROM {name(database, table)}",
        )
    insert = f"INSERT INTO {name(DATABASE, TABLE)} VALUES (%s, %s)"
    with channel.source.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for number in range(1, 4):
            cursor.execute(insert.replace("%(n)s:t", "%%(n)s:t"), (number, VALUE))


@BOTH
def test_every_command_shows_hostile_names_and_executes_none(
    family: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    channel = channel_of(family, family)
    fill(channel)
    assert DATABASE in said(channel, capsys, "plan", CHANNEL)
    assert "row changes" in said(channel, capsys, "run", CHANNEL)
    said(channel, capsys, "status", CHANNEL)
    said(channel, capsys, "status", "--all")
    assert "every" not in said(channel, capsys, "find", "*", "--sort", "rows")
    assert "clean" in said(channel, capsys, "verify", CHANNEL, "--full")

    text = said(channel, capsys, "find", "tenant_*")
    assert one_line(DATABASE) in text
    assert "every" in text
    names = {each["name"] for each in json.loads(said(channel, capsys, "find", "--json"))}
    assert {DATABASE, ODD} <= names
    said(channel, capsys, "find", "\x1b[2J[/x]\u202e")
    said(channel, capsys, "find", "--sort", "[/x]\u202e", code=2)

    # earlier files are of other tests
    logs = sorted(Path(channel.source.datadir).glob("binlog.0*"))[-1:]
    for options in ((), ("--rows",), ("--json", "--rows"), ("--sql",)):
        shown = said_inspect(channel, capsys, [*map(str, logs), *options], exact="--sql" in options)
        assert DATABASE in shown

    run_on(channel.target, f"UPDATE {name(DATABASE, TABLE)} SET {name(COLUMN)} = 'x'", log=False)
    run_on(channel.target, f"ALTER TABLE {name(ODD, TABLE_OF[ODD])} DROP KEY k", log=False)
    text = said(channel, capsys, "verify", CHANNEL, "--full", code=1)
    assert one_line(f"{DATABASE}.{TABLE}") in text
    assert one_line(f"{ODD}.{TABLE_OF[ODD]}") in text
    text = said(channel, capsys, "verify", CHANNEL, "--full", "--repair", "--yes")
    assert "3 updated" in text

    run_on(channel.target, f"INSERT INTO {name(DATABASE, TABLE)} VALUES (9, 'mine')", log=False)
    run_on(channel.source, f"INSERT INTO {name(DATABASE, TABLE)} VALUES (9, '[/x]')")
    assert "1062" in said(channel, capsys, "run", CHANNEL, code=1)
    assert "1062" in said(channel, capsys, "status", CHANNEL)
    assert "failed: lane " in said(channel, capsys, "check", CHANNEL, code=2)
    assert json.loads(said(channel, capsys, "status", CHANNEL, "--json"))["errors"]
    seqno = str(channel.status.low_water + 1)
    refused = channel.status.errors[0].text
    assert one_line(f"{DATABASE}.{TABLE}, primary key id=9: insert id=9 ") in one_line(refused)
    assert f"`binlane show {CHANNEL} {seqno}` shows the transaction" in refused
    assert "insert id=9 " in said(channel, capsys, "show", CHANNEL, seqno)
    assert channel.cli("show", CHANNEL, seqno, "--sql") == 0
    assert f"INSERT INTO {name(DATABASE, TABLE)} " in capsys.readouterr().out  # for a pipe: exact
    pages = [get(channel, path) for path in ("/api/channels", API, f"{API}/windows")]
    assert all(pages)
    assert one_line(DATABASE) in said(channel, capsys, "skip", CHANNEL, "--seqno", seqno, "--reason", REASON)
    for arguments in (("skip", CHANNEL, "--list"), ("skip", CHANNEL, "--show", seqno), ("status", CHANNEL)):
        assert "because" in said(channel, capsys, *arguments)
    said(channel, capsys, "run", CHANNEL)
    said(channel, capsys, "xa", CHANNEL)
    said(channel, capsys, "conflicts", CHANNEL)
    said(channel, capsys, "stop", CHANNEL, "--at-gtid", VALUE, code=1)
    said(channel, capsys, "xa", CHANNEL, "--done", VALUE, code=2)
    said(channel, capsys, "replay-skipped", CHANNEL, seqno, code=1)
    said(channel, capsys, "status", "no[/x]\x1b", code=2)
    said(channel, capsys, "status", CHANNEL, "more[/x]\x1b[2J", code=2)


def said_inspect(channel: Channel, capsys: pytest.CaptureFixture[str], arguments: list[str], *, exact: bool) -> str:
    """Statements for a pipe are exact; what stands beside them is a comment of one line."""
    capsys.readouterr()
    assert channel.cli("inspect", *arguments) == 0
    shown = capsys.readouterr().out
    lines = [line for line in shown.split("\n") if not exact or line.startswith("-- ")]
    assert all(line == printable(line) for line in lines)
    return shown


def get(channel: Channel, path: str) -> Any:
    answer = client_of(channel).get(path)
    assert answer.status_code == 200, answer.text
    assert "�" not in answer.text
    return answer.json()
