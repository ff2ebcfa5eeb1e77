"""Transactions that come together are what they are one by one, and so is each restore's plan."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import pytest

from binlane.model import Flavor
from binlane.orchestration.extraction.window_reading import source_of
from binlane.restore import archive_index, log_scan, ruled_out
from binlane.restore.archive_index import folder_of, name_of, read_facts
from binlane.restore.end import End, EndGtid, EndPosition, EndStatement, EndTime, LogEnd
from binlane.restore.file_content import FileContent
from binlane.restore.indexing import make_index
from binlane.restore.logged_transactions import LoggedTransaction, RowTransactions, logged_transactions
from binlane.restore.ruled_out import RuledOut
from binlane.source.archive import ArchiveSource
from binlane.source.identity import Start
from binlane.source.protocol import EventSource
from binlane.source.start_position import begin
from binlane.work.plan_job.job import InProcess
from tests.integration.restore.scene import archive_of
from tests.integration.window.conftest import Channel, ChannelOf, channel_of, clean_servers, run_on

__all__ = ["channel_of", "clean_servers"]

TENANTS = ("tenant_1", "tenant_2", "größe")
CHOICES = (frozenset({"tenant_1"}), frozenset({"größe", "tenant_2"}), frozenset({"absent"}), frozenset(TENANTS))
TAGGED = {Flavor.MYSQL: "SET SESSION gtid_next = 'AUTOMATIC:restored'", Flavor.MARIADB: "DO 0"}
COMPRESSED = {Flavor.MYSQL: "SET SESSION binlog_transaction_compression = ON", Flavor.MARIADB: "DO 0"}


def a_log(channel: Channel) -> tuple[EventSource, Start]:
    """Rows of one and of several databases, compressed ones, statements, and DDL."""
    start = f"{channel.source.query('SHOW BINARY LOGS')[-1][0]}:4"
    run_on(channel.source, "FLUSH BINARY LOGS")
    choose, source = random.Random(7), channel.source
    for name in TENANTS:
        run_on(
            source, f"CREATE DATABASE `{name}`", f"CREATE TABLE `{name}`.t (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT)"
        )
    for number in range(60):
        some = choose.sample(TENANTS, 1 if number % 5 else 2)
        # inside a value the name of another database proves nothing
        rows = [f"INSERT INTO `{name}`.t (v) VALUES ('{number} tenant_1'), (REPEAT('x', {number}))" for name in some]
        mode = COMPRESSED[source.flavor] if number % 3 == 0 else "DO 0"
        tag = TAGGED[source.flavor] if number % 4 == 1 else "DO 0"
        run_on(source, mode, tag, "BEGIN", *rows, f"UPDATE `{some[0]}`.t SET v = '{number}' WHERE id % 7 = 1", "COMMIT")
        if number % 20 == 7:
            run_on(source, f"ALTER TABLE `{some[0]}`.t ADD COLUMN c{number} INT DEFAULT 3", "FLUSH BINARY LOGS")
        if number == 40:
            run_on(source, "SET SESSION binlog_format = STATEMENT", "UPDATE tenant_1.t SET v = 'all' WHERE id < 4")
    quiet = ("INSERT INTO tenant_2.t (v) VALUES ('quiet')", "ALTER TABLE tenant_2.t FORCE")
    for _ in range(3):
        run_on(source, "FLUSH BINARY LOGS", *quiet)
    archive = archive_of(source, channel.project / "archive", start.partition(":")[0])
    channel.write_channel()
    file = channel.channels / "orders.toml"
    file.write_text(file.read_text().replace('connection = "source_server"', f'archive = "{archive}"'))
    log = source_of(channel.config, channel.endpoints)
    return log, begin(log, "oldest")


def one_by_one(log: EventSource, start: Start, databases: frozenset[str]) -> list[LoggedTransaction]:
    found = logged_transactions(log, start, databases, lambda run: 0, lambda count: None)
    return [each for each in found if isinstance(each, LoggedTransaction)]


@pytest.mark.parametrize("flavor", list(Flavor))
def test_transactions_that_come_together_are_those_that_come_alone(
    flavor: Flavor, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, start = a_log(channel_of(flavor.value, flavor.value))
    assert [made.fault for made in make_index(log.name, InProcess())] == [""] * (len(log.state().files) - 1)
    monkeypatch.setattr(ruled_out, "LEAST", 0)
    for databases in CHOICES:
        alone, together, runs = one_by_one(log, start, databases), [], 0
        for each in logged_transactions(log, start, databases, lambda run: run.end.size, lambda count: None):
            if isinstance(each, RowTransactions):
                runs += each.end.size
                read = [each.read(entry) for entry in range(each.end.size)]
                assert [(one.start.offset, one.end.offset, one.time) for one in read] == list(
                    zip(each.start.tolist(), each.end.tolist(), each.time.tolist(), strict=True)
                )
                assert [sum(count for _, count in one.rows) for one in read] == each.rows.tolist()
                assert [one.concerns for one in read] == each.concerns.tolist()
                together += read
            else:
                together.append(each)
        assert together == alone
        assert runs > 20
        assert flavor is Flavor.MARIADB or any(":restored:" in one.gtid for one in alone)
        compare_scans(log, start, databases, alone, monkeypatch)
    compare_untrue(log, start)


def compare_untrue(log: EventSource, start: Start) -> None:
    """An index that is damaged, of other files or not true changes nothing of a plan."""
    assert isinstance(log, ArchiveSource)
    choice = frozenset({"tenant_1"})
    expected = log_scan.scan(log, start, choice, LogEnd(), finds_begin=False)
    folder, stored = folder_of(log.uri), [names[0] for names in log.stored_files().values()][:-1]
    true = {name: folder.read(name_of(name)) for name in stored}
    facts = {name: read_facts(folder, name) for name in stored}

    def found(written: Mapping[str, bytes]) -> int:
        """Files that are passed over."""
        for name, data in written.items():
            folder.replace(name_of(name), data)
        scanned = log_scan.scan(log, start, choice, LogEnd(), finds_begin=False, ruled_out=RuledOut(log, choice))
        assert replace(scanned, bytes=0, ruled_out=[], bytes_ruled_out=0) == replace(expected, bytes=0)
        return len(scanned.ruled_out)

    def told(**changes: Any) -> dict[str, bytes]:
        return {
            name: archive_index.parquet_of(replace(each, **changes), FileContent("")) for name, each in facts.items()
        }

    assert found(true) > 1
    assert found({name: data[:-9] for name, data in true.items()}) == 0
    assert found(dict.fromkeys(true, b"")) == 0
    assert found(dict(zip(true, [*true.values()][::-1], strict=True))) == 0
    assert found(told(blake3="0" * 64)) == 0
    assert found(told(stored_bytes=7)) == 0
    assert found(told(server_id=7)) == 0
    assert found(told(gtids_before="")) == 0
    # where tables are in the log as they are, they are looked for
    assert 0 < found(told(databases=(), named=())) < len(stored)
    assert found(told(of_any=1)) == 0
    assert found(told(is_after_start=True)) == 0


def compare_scans(
    log: EventSource,
    start: Start,
    databases: frozenset[str],
    logged: list[LoggedTransaction],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of ends of each kind at random transactions."""
    choose = random.Random(3)
    ends: list[End] = [LogEnd()]
    passed = set[str]()
    # tagged GTIDs have their number elsewhere
    tagged = [one for one in logged if one.gtid.count(":") > 1]
    for one in (*choose.sample(logged, 4), *tagged[:1]):
        ends += [EndPosition("here", one.start), EndTime(dt.datetime.fromtimestamp(one.time).isoformat(), one.time)]
        if one.gtid:
            ends += [EndGtid(one.gtid, one.gtid, inclusive=True), EndGtid(one.gtid, one.gtid, inclusive=False)]
        ends += [EndStatement(text) for text in one.statements]
    indexed = RuledOut(log, databases)
    for number, end in enumerate(ends):
        plans: list[object] = []
        ways = (True, None), (False, None), (True, indexed)
        for is_together, out in ways[: 2 + (number % 3 == 0)]:
            with monkeypatch.context() as patch:
                if not is_together:
                    patch.setattr(log_scan._Run, "passes", lambda self, run: 0)
                try:
                    found = log_scan.scan(log, start, databases, end, finds_begin=False, ruled_out=out)
                except Exception as exc:
                    plans.append((type(exc), str(exc)))
                else:
                    passed |= {*found.ruled_out}
                    plans.append(asdict(found) | {"bytes": 0, "ruled_out": [], "bytes_ruled_out": 0})
        assert all(plan == plans[0] for plan in plans), end
    assert bool(passed) == ("tenant_2" not in databases)
