"""Statements of two lanes that depend on each other by what no text of theirs says: windows that end in equal data.

The child's lane is run to its end before the parent's begins: what is in one lane is in order all the same, and what
foreign keys join over two lanes is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from binlane.model import Flavor
from binlane.orchestration import steps
from binlane.orchestration.plan_file import read_plan
from binlane.orchestration.request import WindowRequest
from binlane.schema.letter_case import lower
from binlane.shards.shard_list import hash_lane
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.servers import PrivateServer, private_server
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, fresh_channel, run_on
from tests.one_runner import apply_alone

LANES, FIRST, SECOND = 3, 1, 0
ROWS = (
    "DELETE FROM {p}.parent WHERE id = 1",
    "INSERT INTO {p}.parent VALUES (1, 2)",
    # gone again if its parent is deleted behind it
    "INSERT INTO {c}.child VALUES (1, 1)",
)
FOLDS = ("--lower-case-table-names=1",)
STATEMENTS = "SET SESSION binlog_format = 'STATEMENT'"


@dataclass(frozen=True)
class Joined:
    """Databases that a window's DDL joins; ``{c}``: where the child is at its end, ``{p}``: the parent.

    ``{C}`` and ``{P}`` are the same in capitals.
    """

    before: tuple[str, ...]
    """On both servers before the window."""
    ddl: tuple[str, ...]
    """In the window."""
    rows: tuple[str, ...] = ROWS
    """Behind the DDL: another end if the child's lane is first."""


def child(name: str, of: str) -> str:
    key = f"FOREIGN KEY (parent) REFERENCES {of} (id) ON DELETE CASCADE"
    return f"CREATE TABLE {name} (id INT PRIMARY KEY, parent INT, {key})"


def parent(name: str) -> tuple[str, str]:
    return f"CREATE TABLE {name} (id INT PRIMARY KEY, n INT)", f"INSERT INTO {name} VALUES (1, 1)"


JOINED = {
    "rename of the child": Joined(
        (*parent("{p}.parent"), child("{p}.child", "{p}.parent")), ("RENAME TABLE {p}.child TO {c}.child",)
    ),
    "rename of the parent": Joined(
        (*parent("{c}.parent"), child("{c}.child", "{c}.parent")), ("RENAME TABLE {c}.parent TO {p}.parent",)
    ),
    "alter rename": Joined(
        (*parent("{p}.parent"), child("{p}.child", "{p}.parent")), ("ALTER TABLE {p}.child RENAME TO {c}.child",)
    ),
    "a swap over databases": Joined(
        (*parent("{p}.parent"), child("{p}.child", "{p}.parent"), "CREATE TABLE {c}.child (id INT, parent INT)"),
        ("RENAME TABLE {c}.child TO {c}.old, {p}.child TO {c}.child, {c}.old TO {p}.child",),
    ),
    "made and moved in the window": Joined(
        (),
        (
            *parent("{p}.parent"),
            child("{p}.first", "{p}.parent"),
            "ALTER TABLE {p}.first RENAME {p}.second",
            "RENAME TABLE {p}.second TO {c}.child",
        ),
    ),
    "moved to and fro": Joined(
        (*parent("{p}.parent"), child("{p}.child", "{p}.parent")),
        (
            "RENAME TABLE {p}.child TO {c}.first",
            "RENAME TABLE {c}.first TO {p}.child",
            "RENAME TABLE {p}.child TO {c}.child",
        ),
    ),
    "a key that is dropped and added again": Joined(
        (*parent("{p}.parent"), child("{p}.child", "{p}.parent")),
        (
            "ALTER TABLE {p}.child ADD CONSTRAINT other FOREIGN KEY (parent) REFERENCES {p}.parent (id)",
            "ALTER TABLE {p}.child DROP FOREIGN KEY other",
            "RENAME TABLE {p}.child TO {c}.child",
        ),
    ),
    "a parent of another name": Joined(
        ("CREATE TABLE {p}.fresh (id INT PRIMARY KEY, n INT)", *parent("{p}.parent"), child("{p}.child", "{p}.parent")),
        (
            "RENAME TABLE {p}.child TO {c}.child",
            "RENAME TABLE {p}.parent TO {p}.gone, {p}.fresh TO {p}.parent",
            "RENAME TABLE {p}.parent TO {p}.fresh, {p}.gone TO {p}.parent",
        ),
    ),
}


MYISAM = ("CREATE TABLE {p}.t (id INT, n INT) ENGINE=MyISAM", "INSERT INTO {p}.t VALUES (1, 1)")
FOLDED = {
    "a parent in capitals": Joined(parent("{p}.parent"), (child("{C}.CHILD", "{P}.Parent"),)),
    "a child in capitals": Joined(
        (*parent("{p}.parent"), child("{p}.child", "{p}.parent")), ("RENAME TABLE {P}.CHILD TO {C}.Child",)
    ),
    "a view": Joined(
        parent("{p}.t"),
        ("CREATE VIEW {C}.V AS SELECT * FROM {P}.T",),
        ("UPDATE {p}.t SET n = n * 10", "UPDATE {c}.v SET n = n + 1"),
    ),
    "a view of before": Joined(
        (*parent("{p}.t"), "CREATE VIEW {c}.v AS SELECT * FROM {p}.t"),
        (),
        ("UPDATE {p}.t SET n = n * 10", "UPDATE {c}.V SET n = n + 1"),
    ),
    "a trigger": Joined(
        (*parent("{p}.t"), *parent("{c}.t")),
        ("CREATE TRIGGER {C}.g AFTER UPDATE ON {C}.T FOR EACH ROW UPDATE {p}.t SET n = n + 1",),
        ("UPDATE {p}.t SET n = n * 10", "UPDATE {c}.t SET n = n + 1"),
    ),
    "a function": Joined(
        (*parent("{p}.t"), *parent("{c}.t")),
        ("CREATE FUNCTION {C}.f() RETURNS INT READS SQL DATA RETURN (SELECT n FROM {p}.t)",),
        ("UPDATE {p}.t SET n = n * 10", "UPDATE {c}.t SET n = {c}.f()"),
    ),
    "one table in two spellings": Joined(
        parent("{c}.t"), (), ("UPDATE {c}.t SET n = n * 10", "UPDATE {C}.T SET n = n + 1")
    ),
}


MERGE = "CREATE TABLE {0} (id INT, n INT) ENGINE=MERGE UNION=({1}) INSERT_METHOD=LAST"
MERGED = {
    "made before": Joined(
        (*MYISAM, MERGE.format("{c}.m", "{p}.t")),
        (),
        ("UPDATE {p}.t SET n = n * 10", "UPDATE {c}.m SET n = n + 1"),
    ),
    "made in the window": Joined(
        MYISAM,
        (MERGE.format("{c}.m", "{p}.t"),),
        ("UPDATE {p}.t SET n = n * 10", "UPDATE {c}.m SET n = n + 1"),
    ),
    "altered in the window": Joined(
        (*MYISAM, "CREATE TABLE {c}.t LIKE {p}.t", MERGE.format("{c}.m", "{c}.t")),
        ("ALTER TABLE {c}.m UNION=({p}.t)",),
        ("UPDATE {p}.t SET n = n * 10", "INSERT INTO {c}.t SELECT id, n FROM {c}.m"),
    ),
    "copied in the window": Joined(
        (*MYISAM, MERGE.format("{p}.m", "{p}.t")),
        ("CREATE TABLE {c}.m LIKE {p}.m",),
        ("UPDATE {p}.t SET n = n * 10", "UPDATE {c}.m SET n = n + 1"),
    ),
}


def databases() -> Iterable[dict[str, str]]:
    """Pairs of names, the child's of the lane ``FIRST`` and the parent's of ``SECOND``."""
    lanes: dict[int, list[str]] = {FIRST: [], SECOND: []}
    for number in count():
        name = f"shop{number}"
        lanes.setdefault(hash_lane(name, LANES), []).append(name)
        if lanes[FIRST] and lanes[SECOND]:
            names = {"c": lanes[FIRST].pop(), "p": lanes[SECOND].pop()}
            yield names | {key.upper(): name.upper() for key, name in names.items()}


def window(channel: Channel) -> dict[str, int]:
    """A whole window, one lane behind the other; each shard's lane."""
    extracted = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(extracted["work"]), InProcess())
    adopted = steps.adopt_plan(channel.config, channel.endpoints, extracted["work"])
    lanes = sorted((each["lane"] for each in adopted["lanes"]), key=lambda lane: (lane != FIRST, lane))
    for lane in lanes:
        apply_alone(channel.config, channel.endpoints, adopted["plan"], lane)
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    plan = read_plan(adopted["plan"])
    return {shard: counts.lane for shard, counts in plan.shards.items()}


def check(channel: Channel, cases: Iterable[Joined]) -> dict[str, int]:
    """All of the cases in one window."""
    named = list(zip(cases, databases(), strict=False))
    for case, names in named:
        before = [*(f"CREATE DATABASE {names[key]}" for key in "cp"), *case.before]
        for server in (channel.source, channel.target):
            run_on(server, *(statement.format(**names) for statement in before), log=False)
    ddl = [statement.format(**names) for case, names in named for statement in case.ddl]
    rows = [statement.format(**names) for case, names in named for statement in case.rows]
    run_on(channel.source, STATEMENTS, *ddl, *rows)
    lanes = window(channel)
    channel.assert_equal()
    return lanes


FAMILIES = ["mariadb", pytest.param("mysql", marks=requires_mysql)]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_foreign_key_that_a_rename_carries_joins_at_once(family: str, channel_of: ChannelOf) -> None:
    check(channel_of(family, family), JOINED.values())


@pytest.mark.parametrize("server", ["mariadb_source", pytest.param("mysql_source", marks=requires_mysql)])
def test_names_are_folded_letter_by_letter_as_the_servers_do(server: str, request: pytest.FixtureRequest) -> None:
    source: PrivateServer = request.getfixturevalue(server)
    letters = [chr(code) for code in range(0x80, 0xFFFE) if not 0xD800 <= code < 0xE000]
    for at in range(0, len(letters), 4000):
        part = "".join(letters[at : at + 4000])
        [(folded,)] = source.query("SELECT LOWER(CONVERT(%s USING utf8mb3) COLLATE utf8mb3_general_ci)", (part,))
        assert [lower(letter) for letter in folded] == [lower(letter) for letter in part]


@pytest.mark.parametrize("family", FAMILIES)
def test_names_in_capitals_are_those_in_small_letters_where_the_servers_take_them_so(
    family: str, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]
) -> None:
    with ExitStack() as stack:
        servers = [
            stack.enter_context(private_server(tmp_path / part, Flavor(family), FOLDS, name=part, durable=False))
            for part in ("source", "target")
        ]
        check(fresh_channel(servers[0], servers[1], tmp_path, clean_servers), FOLDED.values())


def test_a_merge_table_joins_the_databases_of_its_tables(channel: Channel) -> None:
    channel.write_channel("allow_nontransactional = true\n")
    check(channel, MERGED.values())


TENANTS = tuple(f"{tenant}_{part}" for tenant in ("acme", "kilo", "zulu") for part in ("main", "audit"))
OF_TENANTS = """(pattern)=^(?<shard>[a-z]+)_(main|audit)$
acme=0
kilo=1
zulu=2
"""


@pytest.mark.parametrize("family", FAMILIES)
def test_databases_of_one_tenant_share_a_lane_by_rows_statements_and_ddl(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    for name in TENANTS:
        channel.on_both(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY, n INT)")
    channel.write_channel()
    file = channel.channels / "orders.toml"
    file.write_text(file.read_text().replace("[lanes]\n", '[lanes]\nassigner = "pattern"\n'))
    channel.write_shard_list(OF_TENANTS)
    log = []
    for number in range(12):
        tenant = ("acme", "kilo", "zulu")[number % 3]
        both = [f"INSERT INTO {tenant}_{part}.t VALUES ({number}, {number})" for part in ("main", "audit")]
        log += ["BEGIN", *both, "COMMIT", f"UPDATE {tenant}_audit.t SET n = n + 1"]
    ddl = ["ALTER TABLE kilo_audit.t ADD COLUMN late INT", "CREATE TABLE acme_audit.fresh LIKE acme_main.t"]
    inserted = "INSERT INTO acme_audit.fresh SELECT * FROM acme_main.t"
    run_on(channel.source, *log, *ddl, STATEMENTS, inserted, "UPDATE zulu_main.t SET n = n * 2")
    lanes = window(channel)
    assert lanes == {"acme": 0, "kilo": 1, "zulu": 2}
    channel.assert_equal()
    assert channel.cli("verify", "orders", "--full", "--shard", "acme") == 0
