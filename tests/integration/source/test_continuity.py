"""A window reads a file to where its server ended it, and then the next file of the same log, or nothing of it."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from binlane.binlog.wire import HEADER, EventType
from binlane.errors import EncryptedLogError, MissingLogError, PrecheckError, SourceError, SourceIdentityError
from binlane.model import Flavor
from binlane.source.archive import ArchiveSource
from binlane.source.archive_check import check_archive
from binlane.source.position_at import place_of
from binlane.source.protocol import LOG_START, file_number
from binlane.source.start_position import begin
from binlane.work.files import WorkFolder
from lab.programs import other_programs, server_binary
from lab.servers import PrivateServer, private_server
from tests.conftest import requires_mysql
from tests.damaged_archives import ANONYMOUS, FLUSH, HARMLESS, KILL, LOSING, RESTART, recorded
from tests.integration.source.continuity import damage_everywhere, put
from tests.integration.source.helpers import behind, fill, live, purge_to, run, wait_for_checkpoint, window

SERVERS = [
    pytest.param(Flavor.MARIADB, (), id="mariadb"),
    pytest.param(Flavor.MYSQL, (), id="mysql", marks=requires_mysql),
    # each kind of damage is one of a log with GTIDs, too
    pytest.param(Flavor.MYSQL, ANONYMOUS, id="mysql-anonymous", marks=(requires_mysql, pytest.mark.trial)),
]


@pytest.mark.parametrize(("flavor", "options"), SERVERS)
def test_a_damaged_archive_is_refused_or_read_as_it_was_written(
    flavor: Flavor, options: tuple[str, ...], tmp_path: Path
) -> None:
    archive = recorded(tmp_path / "servers", flavor, options, (FLUSH, RESTART, KILL))
    counted = damage_everywhere(archive, tmp_path, archive.names[:-1])
    assert {what.rpartition(": ")[0] for what in counted} >= {*LOSING, *HARMLESS}


@requires_mysql
def test_a_crash_without_gtids_is_believed_if_the_file_is_named(tmp_path: Path) -> None:
    archive = recorded(tmp_path / "servers", Flavor.MYSQL, ANONYMOUS, (KILL,))
    source = put(archive.files, tmp_path / "archive")
    start = begin(source, "oldest")
    with pytest.raises(MissingLogError, match=r"binlog\.000001 is not complete.*crashed.*name binlog\.000001"):
        window(source, start, tmp_path / "out")
    trusted = put(archive.files, tmp_path / "archive", frozenset({"binlog.000001"}))
    assert {each.source_file for each in window(trusted, start, tmp_path / "out").segments} == set(archive.names)


def test_a_file_that_was_copied_while_it_was_written_is_named(own_server: PrivateServer, tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    fill(own_server, 5)
    shutil.copy(own_server.datadir / "binlog.000001", folder)
    fill(own_server, 5)
    run(own_server, "FLUSH BINARY LOGS")
    fill(own_server, 5)
    shutil.copy(own_server.datadir / "binlog.000002", folder)
    archive = ArchiveSource(str(folder))
    start = begin(archive, "oldest")
    with pytest.raises(MissingLogError, match=r"binlog\.000001 is not complete.*copy it into the archive again"):
        window(archive, start, tmp_path / "refused")
    # the stale copy stays, and a complete one comes compressed
    (folder / "binlog.000001.gz").write_bytes(gzip.compress((own_server.datadir / "binlog.000001").read_bytes()))
    live_window = window(live(own_server), begin(live(own_server), "oldest"), tmp_path / "live")
    assert window(archive, start, tmp_path / "out").segments == live_window.segments


@requires_mysql
def test_transactions_that_a_dump_has_put_in_without_the_log_stop_a_window(tmp_path: Path) -> None:
    loaded = "11111111-2222-3333-4444-555555555555:1-7"
    with private_server(tmp_path / "server", Flavor.MYSQL, durable=False) as server:
        fill(server, 3)
        start = begin(live(server), "oldest")
        run(server, "SET SESSION sql_log_bin = 0", "CREATE DATABASE loaded", "CREATE TABLE loaded.t (id INT)")
        run(server, f"SET GLOBAL gtid_purged = '+{loaded}'")
        fill(server, 3)
        with pytest.raises(MissingLogError, match=rf"has the transactions {loaded}.*source\.unlogged_gtids"):
            window(live(server), start, tmp_path / "refused")
        believed = window(live(server, unlogged_gtids=loaded), start, tmp_path / "out")
        assert believed.transactions >= 8
        # no file's head tells when it was put in: a target of the place may lack it, or says that it has it
        for at in ("oldest", f"{start.position.file}:4", str(start.position)):
            with pytest.raises(MissingLogError, match=rf"has the transactions {loaded}.*source\.unlogged_gtids"):
                begin(live(server), at)
            assert begin(live(server, unlogged_gtids=loaded), at).position.file == start.position.file
            assert loaded in begin(live(server), at, loaded).gtid_set
        # a channel that begins now begins with what the source has
        later = begin(live(server), "now")
        assert loaded in later.gtid_set
        fill(server, 3, flush_every=2)
        assert window(live(server), later, tmp_path / "later").transactions >= 3
        assert begin(live(server), later.gtid_set) == later


def encrypting(tmp_path: Path, series: str) -> tuple[Path, tuple[str, ...]]:
    """A server program that can encrypt its log, and its options."""
    program = other_programs().get(series)
    if program is None:
        pytest.skip(f"no MariaDB {series} to test with: lab/server_programs.sh")
    keys = tmp_path / "keys"
    keys.write_text(f"1;{'ab' * 32}\n")
    return program, (
        f"--plugin-dir={program.parent.parent / 'root/usr/lib/mysql/plugin'}",
        "--plugin-load-add=file_key_management",
        f"--file-key-management-filename={keys}",
        "--encrypt-binlog=ON",
    )


def with_keyring(folder: Path) -> tuple[Path, tuple[str, ...]]:
    """A copy of the MySQL server that has a keyring, whose files lie beside its program, and its options."""
    script = server_binary(Flavor.MYSQL).read_text("utf-8", "replace")
    found = re.search(r"^r='(.+)'$", script, re.M)
    if found is None:
        pytest.skip("the MySQL server is not that of lab/server_programs.sh: its own folder cannot be copied")
    root = folder / "program"
    shutil.copytree(found[1], root, symlinks=True)
    (root / "usr/sbin/mysqld.my").write_text('{"components": "file://component_keyring_file"}')
    settings = json.dumps({"path": str(folder / "keyring"), "read_only": False})
    (root / "usr/lib/mysql/plugin/component_keyring_file.cnf").write_text(settings)
    program = folder / "mysqld"
    program.write_text(script.replace(found[1], str(root)))
    program.chmod(0o755)
    return program, ("--binlog-encryption=ON",)


ENCRYPTING = [
    pytest.param(Flavor.MARIADB, partial(encrypting, series="10.5"), id="mariadb-10.5"),
    pytest.param(Flavor.MARIADB, partial(encrypting, series="11.8"), id="mariadb-11.8"),
    pytest.param(Flavor.MYSQL, with_keyring, id="mysql", marks=[requires_mysql, pytest.mark.trial]),
]


@pytest.mark.parametrize(("flavor", "of_server"), ENCRYPTING)
def test_an_encrypted_log_is_read_from_its_server_and_named_in_an_archive(
    flavor: Flavor, of_server: Callable[[Path], tuple[Path, tuple[str, ...]]], tmp_path: Path
) -> None:
    program, options = of_server(tmp_path)
    with private_server(tmp_path / "server", flavor, options, durable=False, program=program) as server:
        fill(server, 6, flush_every=4)
        at = begin(live(server), "oldest")
        for number in range(3):
            folder = tmp_path / f"out{number}"
            manifest = window(live(server), at, folder, segment_bytes=1)
            assert manifest.transactions >= 5
            for seqno in range(at.seqno + 1, manifest.last_seqno):
                assert place_of(WorkFolder(str(folder)), manifest, at, seqno).seqno == seqno
            at = behind(manifest)
            fill(server, 5, flush_every=3)
        folder = tmp_path / "archive"
        shutil.copytree(server.datadir, folder, ignore=lambda _, names: [n for n in names if "binlog.0" not in n])
    for start in ("oldest", "now"):
        with pytest.raises(EncryptedLogError, match=r"events from here on are encrypted|by the server's keyring"):
            begin(ArchiveSource(str(folder)), start)


LEGITIMATE = {
    Flavor.MARIADB: (
        "SET gtid_domain_id = 7; INSERT INTO filled.items (word) VALUES ('a')",
        "FLUSH BINARY LOGS",
        "SET gtid_seq_no = 5000; INSERT INTO filled.items (word) VALUES ('b')",
        "SET server_id = 77; INSERT INTO filled.items (word) VALUES ('c')",
        "FLUSH BINARY LOGS",
        "SET gtid_domain_id = 7; SET gtid_seq_no = 3; INSERT INTO filled.items (word) VALUES ('d')",
        "SET gtid_domain_id = 7; SET gtid_seq_no = 2; INSERT INTO filled.items (word) VALUES ('e')",
        "FLUSH BINARY LOGS",
        "FLUSH BINARY LOGS",
        "INSERT INTO filled.items (word) VALUES ('f')",
    ),
    Flavor.MYSQL: (
        "SET gtid_next = 'AUTOMATIC:tagged'; INSERT INTO filled.items (word) VALUES ('a')",
        "FLUSH BINARY LOGS",
        "SET gtid_next = '11111111-2222-3333-4444-555555555555:9'; INSERT INTO filled.items (word) VALUES ('b')",
        "SET gtid_next = '11111111-2222-3333-4444-555555555555:3'; BEGIN; COMMIT",
        "FLUSH BINARY LOGS",
        *(f"SET GLOBAL gtid_mode = {mode}" for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE")),
        "INSERT INTO filled.items (word) VALUES ('c')",
        "SET gtid_next = '11111111-2222-3333-4444-555555555555:5'; INSERT INTO filled.items (word) VALUES ('d')",
        "FLUSH BINARY LOGS",
        "FLUSH BINARY LOGS",
        "SET GLOBAL gtid_mode = ON_PERMISSIVE",
        "INSERT INTO filled.items (word) VALUES ('e')",
    ),
}


@pytest.mark.parametrize("flavor", [Flavor.MARIADB, pytest.param(Flavor.MYSQL, marks=requires_mysql)])
def test_logs_of_every_way_to_number_transactions_are_read(flavor: Flavor, tmp_path: Path) -> None:
    with private_server(tmp_path / "server", flavor, durable=False) as server:
        fill(server, 2)
        starts = [begin(live(server), "oldest")]
        for lines in LEGITIMATE[flavor]:
            run(server, *lines.split("; "))
            starts.append(begin(live(server), "now"))
        run(server, "FLUSH BINARY LOGS")
        fill(server, 1)
        folder = tmp_path / "archive"
        shutil.copytree(server.datadir, folder, ignore=lambda _, names: [n for n in names if "binlog.0" not in n])
        archive = ArchiveSource(str(folder))
        for number, start in enumerate(starts):
            read = window(live(server), start, tmp_path / f"live{number}")
            archived = begin(archive, str(start.position))
            assert archived.gtid_set == start.gtid_set
            assert window(archive, archived, tmp_path / f"archive{number}").segments == read.segments
            assert read.transactions > 0


@requires_mysql
def test_a_server_that_got_another_server_id_is_read_on_by_the_name_of_the_file(tmp_path: Path) -> None:
    with private_server(tmp_path / "server", Flavor.MYSQL, ANONYMOUS, durable=False) as server:
        fill(server, 2)
        start = begin(live(server), "oldest")
        server.restart((*ANONYMOUS, "--server-id=77"))
        fill(server, 2)
        read = window(live(server), start, tmp_path / "live")
        folder = tmp_path / "archive"
        shutil.copytree(server.datadir, folder, ignore=lambda _, names: [n for n in names if "binlog.0" not in n])
    archive = ArchiveSource(str(folder))
    at = begin(archive, "oldest")
    with pytest.raises(SourceIdentityError, match=r"is of server_id 77, the file before it of another one") as refused:
        window(archive, at, tmp_path / "refused")
    [file] = re.findall(r"name (\S+) in source\.trusted_files", str(refused.value))
    trusting = ArchiveSource(str(folder), trusted_files=frozenset({file}))
    assert window(trusting, at, tmp_path / "trusted").transactions == read.transactions


ROTATING = [
    pytest.param(Flavor.MARIADB, "", id="mariadb"),
    *(pytest.param(Flavor.MARIADB, series, id=f"mariadb-{series}") for series in sorted(other_programs())),
    pytest.param(Flavor.MYSQL, "", id="mysql", marks=requires_mysql),
]


@pytest.mark.parametrize(("flavor", "series"), ROTATING)
def test_a_rotation_gives_the_end_of_a_file_and_the_next_ones_beginning_one_time(
    flavor: Flavor, series: str, tmp_path: Path
) -> None:
    options = ANONYMOUS if flavor is Flavor.MYSQL else ()
    program = other_programs().get(series)
    with private_server(tmp_path / "server", flavor, options, durable=False, program=program) as server:
        fill(server, 1)
        run(server, "DO SLEEP(1.2)", "FLUSH BINARY LOGS")
        insert = "INSERT INTO filled.items (word) VALUES (REPEAT('x', 5000))"
        run(server, "SET timestamp = 1000000000", insert, "FLUSH BINARY LOGS")
        run(server, "SET GLOBAL max_binlog_size = 4096", insert)
        # what fills a file has begun earlier than it is committed
        run(server, "BEGIN", insert, "DO SLEEP(1.2)", "COMMIT")
        run(server, "SET timestamp = 2000000000", insert, "SET timestamp = DEFAULT", insert)
        files = [name for name, *_ in server.query("SHOW BINARY LOGS")]
        datas = [(server.datadir / name).read_bytes() for name in files]
        os.kill(server.pid, signal.SIGHUP)
        time.sleep(2)
        fill(server, 1)
        server.restart()
        fill(server, 1)
        folder = tmp_path / "archive"
        shutil.copytree(server.datadir, folder, ignore=lambda _, names: [n for n in names if "binlog.0" not in n])
    assert len(files) >= 6
    ends = [HEADER.unpack_from(each, last_event(each))[:2] for each in datas[:-1]]
    begun = [HEADER.unpack_from(each, LOG_START)[0] for each in datas[1:]]
    assert ends == [(seconds, EventType.ROTATE) for seconds in begun]
    found = [*check_archive(ArchiveSource(str(folder)))]
    assert [fault for file in found for fault in file.faults] == []
    believed = [file.name for file in found if file.is_believed]
    # of the restart
    assert len(believed) == (1 if flavor is Flavor.MYSQL else 0)


def last_event(data: bytes) -> int:
    """Offset of a file's last event."""
    at = end = LOG_START
    while end < len(data):
        at, end = end, end + HEADER.unpack_from(data, end)[3]
    return at


def test_a_domain_that_its_server_has_forgotten_is_no_gap(tmp_path: Path) -> None:
    with private_server(tmp_path / "server", durable=False) as server:
        fill(server, 1)
        run(server, "SET gtid_domain_id = 9", "INSERT INTO filled.items (word) VALUES ('a')", "FLUSH BINARY LOGS")
        run(server, "SET gtid_domain_id = 9", "INSERT INTO filled.items (word) VALUES ('a')", "FLUSH BINARY LOGS")
        wait_for_checkpoint(server)
        first = behind(window(live(server), begin(live(server), "oldest"), tmp_path / "first"))
        purge_to(server, first.position.file)
        run(server, "FLUSH BINARY LOGS DELETE_DOMAIN_ID = (9)")
        fill(server, 2)
        read = window(live(server), first, tmp_path / "second")
        assert ("9-" in first.gtid_set, read.transactions >= 2) == (True, True)
        archive = tmp_path / "archive"
        shutil.copytree(server.datadir, archive, ignore=lambda _, names: [n for n in names if "binlog.0" not in n])
        assert window(ArchiveSource(str(archive)), first, tmp_path / "third").segments == read.segments


def test_the_log_of_another_server_that_stands_behind_the_watermark_is_refused(tmp_path: Path) -> None:
    archive = recorded(tmp_path / "servers", Flavor.MARIADB, (), (FLUSH,))
    first, second = archive.names
    source = put({first: archive.files[first]}, tmp_path / "archive")
    at = behind(window(source, begin(source, "oldest"), tmp_path / "first"))
    source = put({first: archive.files[first], second: archive.others[second]}, tmp_path / "archive")
    with pytest.raises(MissingLogError, match=rf"{second}: by its head, .* came before it, in no file before it"):
        window(source, at, tmp_path / "second")


def test_a_log_that_got_another_name_is_read_on_if_the_index_has_both(
    tmp_path: Path, own_server: PrivateServer
) -> None:
    own_server.restart((*own_server.options, "--log-bin-index=both.index"))
    fill(own_server, 3, flush_every=2)
    start = begin(live(own_server), "oldest")
    own_server.restart((*own_server.options, "--log-bin=new"))
    fill(own_server, 3, flush_every=2)
    read = window(live(own_server), start, tmp_path / "out")
    assert {each.source_file.partition(".")[0] for each in read.segments} == {"binlog", "new"}
    own_server.restart((*own_server.options, "--log-bin=other", "--log-bin-index=other.index"))
    with pytest.raises(SourceIdentityError, match=r"another name than before .*give it its name new back"):
        window(live(own_server), behind(read), tmp_path / "refused")


def test_a_file_that_a_crash_has_torn_is_read_to_the_tear(own_server: PrivateServer, tmp_path: Path) -> None:
    """The last bytes of the log never reached the disk. MySQL cuts the rest of the event off; MariaDB leaves it."""
    fill(own_server, 4)
    first = window(live(own_server), begin(live(own_server), "oldest"), tmp_path / "first")
    fill(own_server, 3)
    before = window(live(own_server), behind(first), tmp_path / "before", segment_bytes=1).segments
    torn = own_server.datadir / before[-1].source_file
    own_server.kill()
    whole = torn.read_bytes()
    torn.write_bytes(whole[: before[-1].end_offset - 3])
    own_server.restart()
    fill(own_server, 2)
    if own_server.flavor is Flavor.MARIADB:
        assert torn.stat().st_size == before[-1].end_offset - 3
    else:
        assert torn.stat().st_size <= before[-1].start_offset
    read = window(live(own_server), behind(first), tmp_path / "later").segments
    assert sum(each.transactions for each in read if each.source_file == torn.name) == len(before) - 1
    assert read[-1].source_file != torn.name
    archive = tmp_path / "archive"
    archive.mkdir()
    for file in {each.source_file for each in read}:
        shutil.copy(own_server.datadir / file, archive)
    for trusted in (frozenset[str](), frozenset({torn.name})):
        source = ArchiveSource(str(archive), trusted_files=trusted)
        start = begin(source, "oldest")
        found = window(source, start, tmp_path / f"archive{len(trusted)}")
        assert found.last_seqno == first.last_seqno + sum(each.transactions for each in read)
    # a whole transaction, of which the next file knows
    torn.write_bytes(whole[: before[-2].end_offset - 3])
    refused = (
        pytest.raises(MissingLogError, match=r"by its head, .* came before it")
        if own_server.flavor is Flavor.MARIADB
        else pytest.raises(SourceError, match=r"truncated in the middle of event.*source\.trusted_files")
    )
    with refused:
        window(live(own_server), behind(first), tmp_path / "lost")


@requires_mysql
@pytest.mark.parametrize(
    ("steps", "way_out"), [((), "OFF_PERMISSIVE"), (("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"), "")]
)
def test_transactions_that_gtid_mode_keeps_from_being_sent_are_named(
    steps: tuple[str, ...], way_out: str, tmp_path: Path
) -> None:
    with private_server(tmp_path / "server", Flavor.MYSQL, durable=False) as server:
        fill(server, 2)
        start = behind(window(live(server), begin(live(server), "oldest"), tmp_path / "first"))
        fill(server, 2)
        for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF", *steps):
            run(server, f"SET GLOBAL gtid_mode = {mode}", "CREATE DATABASE IF NOT EXISTS other")
        mode = way_out or "ON_PERMISSIVE"
        with pytest.raises(PrecheckError, match=f"SET GLOBAL gtid_mode = {mode} on the source until"):
            window(live(server), start, tmp_path / "refused")
        run(server, f"SET GLOBAL gtid_mode = {mode}")
        assert window(live(server), start, tmp_path / "out").transactions >= 2


def test_a_log_without_numbers_is_named() -> None:
    with pytest.raises(SourceError, match=r"my\.log: expected a file of the log with a number"):
        file_number("my.log")


@requires_mysql
def test_a_file_that_was_read_to_its_end_is_followed_by_the_one_with_the_next_number(tmp_path: Path) -> None:
    archive = recorded(tmp_path / "servers", Flavor.MYSQL, ANONYMOUS, (FLUSH, FLUSH))
    one, two, three = archive.names
    source = put({one: archive.files[one]}, tmp_path / "archive")
    at = behind(window(source, begin(source, "oldest"), tmp_path / "first"))
    source = put({one: archive.files[one], two: archive.files[three]}, tmp_path / "archive")
    with pytest.raises(SourceIdentityError, match=rf"{two}: expected a file whose ROTATE names number 3"):
        window(source, at, tmp_path / "refused")
    source = put(archive.files, tmp_path / "archive")
    assert {each.source_file for each in window(source, at, tmp_path / "second").segments} == {two, three}


PUT_IN = {
    "of another server": "0-77-1000",
    "of the server itself": "0-{server_id}-1000",
    "in another domain": "5-77-1000",
}


@pytest.mark.parametrize("position", PUT_IN.values(), ids=PUT_IN)
def test_transactions_that_a_dump_has_put_in_by_gtid_slave_pos_stop_a_window(position: str, tmp_path: Path) -> None:
    with private_server(tmp_path / "server", durable=False) as server:
        [(server_id,)] = server.query("SELECT @@GLOBAL.server_id")
        put_in = position.format(server_id=server_id)
        fill(server, 3)
        start = begin(live(server), "now")
        run(server, "SET SESSION sql_log_bin = 0", "CREATE DATABASE loaded", "CREATE TABLE loaded.t (id INT)")
        run(server, f"SET GLOBAL gtid_slave_pos = '{put_in}'")
        begun = begin(live(server), "now")
        # the log does not tell when it was put in
        for at in ("oldest", str(start.position), str(begun.position)):
            with pytest.raises(MissingLogError, match=rf"has the transactions {put_in}.*source\.unlogged_gtids"):
                begin(live(server), at)
            assert begin(live(server), at, put_in).gtid_set == begin(live(server), at, None).gtid_set
            assert begin(live(server, unlogged_gtids=put_in), at).position.file == start.position.file
        for later in (0, 3):
            fill(server, later)
            with pytest.raises(
                MissingLogError, match=rf"has the transactions {put_in}.*gtid_slave_pos.*source\.unlogged_gtids"
            ):
                window(live(server), start, tmp_path / "refused")
        assert window(live(server, unlogged_gtids=put_in), start, tmp_path / "out").transactions >= later
        # a channel that began behind it has what the dump held
        assert window(live(server), begun, tmp_path / "later").transactions >= later
        assert window(live(server), begin(live(server), "now"), tmp_path / "now").transactions == 0


def test_what_a_dump_has_put_in_is_missed_inside_a_run_of_transactions(tmp_path: Path) -> None:
    with private_server(tmp_path / "server", durable=False) as server:
        [(server_id,)] = server.query("SELECT @@GLOBAL.server_id")
        fill(server, 3)
        start = begin(live(server), "now")
        fill(server, 2)
        put_in = f"0-{server_id}-1000"
        run(server, f"SET GLOBAL gtid_slave_pos = '{put_in}'", *("INSERT INTO filled.items (word) VALUES ('c')",) * 3)
        with pytest.raises(MissingLogError, match=rf"has the transactions {put_in}, "):
            window(live(server), start, tmp_path / "refused")
        assert window(live(server, unlogged_gtids=put_in), start, tmp_path / "out").transactions >= 5
        begun = begin(live(server), "now")
        fill(server, 1)
        assert window(live(server), begun, tmp_path / "behind").transactions >= 1


def test_what_a_replica_was_seeded_with_anew_is_missed_when_it_has_gone_on(tmp_path: Path) -> None:
    def replicate(server: PrivateServer, *numbers: int) -> None:
        logged = [
            text
            for number in numbers
            for text in (f"SET SESSION gtid_seq_no = {number}", "INSERT INTO filled.items (word) VALUES ('r')")
        ]
        run(server, "SET SESSION server_id = 77, SESSION gtid_domain_id = 7", *logged)
        run(server, f"SET GLOBAL gtid_slave_pos = '7-77-{numbers[-1]}'")

    with private_server(tmp_path / "server", durable=False) as server:
        fill(server, 1)
        replicate(server, 499, 500)
        start = begin(live(server), "now")
        # what has changed nothing is in no replica's log
        replicate(server, 501, 570, 571)
        between = window(live(server), start, tmp_path / "holes")
        assert between.transactions == 3
        # nor is a night of such changes
        replicate(server, 700)
        assert window(live(server), start, tmp_path / "night").transactions == 4
        run(server, "FLUSH BINARY LOGS")
        replicate(server, 1001, 1002, 1100)
        with pytest.raises(MissingLogError, match=r"has the transactions 7-77-1000, .*source\.unlogged_gtids"):
            window(live(server), start, tmp_path / "refused")
        for named in ("7-77-1000", "7-77-2000"):
            assert window(live(server, unlogged_gtids=named), start, tmp_path / named).transactions == 7
        # a copy that was made behind it has what the dump held
        assert begin(live(server), "now").gtid_set.endswith("7-77-1100")


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to a source between two windows."""

    statements: Mapping[Flavor, Sequence[str]]
    refused: str = ""
    """What a window says of it; empty: it reads on."""


_IDENTITY, _RESET = "a new source needs a new channel", "changed since the watermark was stored"
CHANGES = {
    "begun anew and written to the same place": Change(
        {Flavor.MARIADB: ("RESET MASTER",), Flavor.MYSQL: ("RESET BINARY LOGS AND GTIDS",)}, _RESET
    ),
    "begun anew with a higher number": Change(
        {Flavor.MARIADB: ("RESET MASTER TO 9",), Flavor.MYSQL: ("RESET BINARY LOGS AND GTIDS TO 9",)},
        r"expected binlog\.000001, the oldest is binlog\.000009",
    ),
    "begun anew with transactions that it never had": Change(
        {
            Flavor.MARIADB: ("RESET MASTER", "SET GLOBAL gtid_binlog_state = '0-1-900'"),
            Flavor.MYSQL: (
                "RESET BINARY LOGS AND GTIDS",
                "SET GLOBAL gtid_purged = '11111111-2222-3333-4444-555555555555:1-9'",
            ),
        },
        f"{_RESET}|gtid_purged",
    ),
    "another id": Change({Flavor.MARIADB: ("SET GLOBAL server_id = 9191",)}, _IDENTITY),
    "another id, with a UUID": Change({Flavor.MYSQL: ("SET GLOBAL server_id = 9191",)}),
    "another domain": Change({Flavor.MARIADB: ("SET GLOBAL gtid_domain_id = 8",)}),
    "a higher number": Change({Flavor.MARIADB: ("SET SESSION gtid_seq_no = 7000", "CREATE DATABASE jumped")}),
    "other checksums": Change(dict.fromkeys(Flavor, ("SET GLOBAL binlog_checksum = NONE",))),
    "compressed": Change(
        {
            Flavor.MARIADB: ("SET GLOBAL log_bin_compress = 1", "SET GLOBAL log_bin_compress_min_len = 10"),
            Flavor.MYSQL: ("SET GLOBAL binlog_transaction_compression = 1",),
        }
    ),
}


@pytest.mark.parametrize("flavor", [Flavor.MARIADB, pytest.param(Flavor.MYSQL, marks=requires_mysql)])
def test_what_happens_to_a_source_between_two_windows_is_named_or_read_on(flavor: Flavor, tmp_path: Path) -> None:
    for name, change in CHANGES.items():
        if flavor not in change.statements:
            continue
        with private_server(tmp_path / "server", flavor, durable=False) as server:
            fill(server, 3)
            oldest = begin(live(server), "oldest")
            at = behind(window(live(server), oldest, tmp_path / name / "first"))
            run(server, *change.statements[flavor])
            fill(server, 4)
            if change.refused:
                with pytest.raises(SourceError, match=change.refused):
                    window(live(server), at, tmp_path / name / "refused")
            else:
                assert window(live(server), at, tmp_path / name / "second").transactions >= 4, name
        # the same log without its server
        if not change.refused:
            archive = tmp_path / name / "archive"
            shutil.copytree(server.datadir, archive, ignore=lambda _, names: [n for n in names if "binlog.0" not in n])
            source = ArchiveSource(str(archive))
            for start in ("oldest", str(at.position)):
                assert window(source, begin(source, start), tmp_path / name / f"from {start}").transactions >= 4, name
        shutil.rmtree(tmp_path / "server")
