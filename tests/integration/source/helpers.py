"""What the tests of the source do with a server."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from binlane.model import Flavor
from binlane.plan.consistency import EpochStarts
from binlane.plan.manifest import Manifest, Segment
from binlane.source.end_position import Until, UntilLogEnd
from binlane.source.identity import Start
from binlane.source.protocol import EventSource
from binlane.source.segments import extract
from binlane.source.stream import ServerSource
from binlane.work.files import WorkFolder
from lab.servers import PrivateServer

SERVER_ID = 4_000_000_001


def live(server: PrivateServer, **changes: Any) -> ServerSource:
    """The server as a source."""
    arguments = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    return ServerSource("source", arguments | changes.pop("arguments", {}), SERVER_ID, "test", **changes)


def run(server: PrivateServer, *statements: str) -> None:
    """Run statements one after another, each its own transaction, on one connection."""
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def purge_to(server: PrivateServer, file: str) -> None:
    """A new file, and no file before ``file``. MariaDB keeps one as long as InnoDB needs it for recovery."""
    run(server, "FLUSH BINARY LOGS")
    for _ in range(100):
        run(server, f"PURGE BINARY LOGS TO '{file}'")
        if server.query("SHOW BINARY LOGS")[0][0] == file:
            return
        time.sleep(0.05)
    raise AssertionError(f"{file} is still not the oldest: {server.query('SHOW BINARY LOGS')}")


def fill(server: PrivateServer, transactions: int, *, flush_every: int = 0) -> None:
    """Small transactions on ``filled.items``; ``flush_every``: a new binlog file after so many.

    Both are made if missing. No other test has a database of that name: the servers are shared.
    """
    with contextlib.closing(server.connect(autocommit=False)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS filled")
        cursor.execute("CREATE TABLE IF NOT EXISTS filled.items (id INT PRIMARY KEY AUTO_INCREMENT, word LONGTEXT)")
        for number in range(1, transactions + 1):
            cursor.execute("INSERT INTO filled.items (word) VALUES (%s), ('b')", (f"word {number}",))
            cursor.execute("UPDATE filled.items SET word = CONCAT(word, '!') WHERE id = %s", (cursor.lastrowid,))
            connection.commit()
            if flush_every and number % flush_every == 0:
                cursor.execute("FLUSH BINARY LOGS")
    if flush_every and server.flavor is Flavor.MARIADB:
        wait_for_checkpoint(server)


def wait_for_checkpoint(server: PrivateServer) -> None:
    """MariaDB writes a checkpoint into a new file when it has the time for it; the log is at rest behind that."""
    newest = server.query("SHOW BINARY LOGS")[-1][0]
    for _ in range(200):
        events = server.query(f"SHOW BINLOG EVENTS IN '{newest}'")
        if any((event[2], event[5]) == ("Binlog_checkpoint", newest) for event in events):
            return
        time.sleep(0.05)
    raise AssertionError(f"{newest}: still no checkpoint of its own")


def window(
    source: EventSource,
    start: Start,
    folder: Path,
    until: Until | None = None,
    *,
    segment_bytes: int = 1 << 20,
    epochs: EpochStarts | None = None,
) -> Manifest:
    """One window, written into ``folder``."""
    wanted = UntilLogEnd() if until is None else until
    place = WorkFolder(str(folder))
    return extract(source, start, wanted, place, channel="test", window="w", segment_bytes=segment_bytes, epochs=epochs)


def behind(manifest: Manifest) -> Start:
    """Where the window after ``manifest`` begins."""
    return Start(
        seqno=manifest.last_seqno,
        position=manifest.end,
        gtid_set=manifest.gtid_set,
        time=manifest.end_time,
        identity=manifest.identity,
        fingerprint=manifest.fingerprint,
    )


def log_bytes(folder: Path, segments: tuple[Segment, ...]) -> bytes:
    """The stretches of all segments behind each other, without magic and FORMAT_DESCRIPTION."""
    return b"".join((folder / segment.name).read_bytes()[segment.header_length :] for segment in segments)


def counted_by_server(server: PrivateServer, path: Path) -> int:
    """How many transactions the server's own tool finds in a segment."""
    command = [str(server.tool("binlog")), "--base64-output=decode-rows", str(path)]
    text = subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "replace")
    mark = r"^#.*\tGTID \d+-\d+-\d+" if server.flavor is Flavor.MARIADB else r"^#.*\tGTID\t"
    return len(re.findall(mark, text, re.MULTILINE))


@contextlib.contextmanager
def registered(source: ServerSource) -> Iterator[None]:
    """Another reader that has registered with the source's server id."""
    connection = source.connected()
    try:
        source._prepare(connection)
        yield
    finally:
        connection.close()
