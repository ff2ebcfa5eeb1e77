"""A window that an older binlane has applied half, stored with all that a newer one needs to finish it.

    python -m lab.older_window COMMIT       play it with the binlane of this repository's COMMIT, for both families

An archive holds the source's log, the window's folder, dumps of the target behind the kill and of the source at the
log's end, the channel's files, and made.json: the commit and this command. Private servers of both families are needed.
``tests/integration/window/test_older_window.py`` finishes the windows with today's binlane.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from binlane.model import Flavor
from lab.programs import LabError
from lab.servers import PrivateServer, private_server
from lab.stored_windows import store
from lab.traffic import Mix, run_traffic

ROOT: Final = Path(__file__).parents[1]
STORED: Final = ROOT / "tests" / "data" / "older_windows"
CHANNEL: Final = "orders"
PLACE: Final = "/project"
"""The project's folder in the stored files."""
_SECONDS: Final = 300
_MEETING: Final = Mix(cross_database=0.04, reference=0.03, ddl=0.02, accounts=0.0, statements=0.04)
_ALONE: Final = Mix(cross_database=0.0, reference=0.0, ddl=0.0, accounts=0.0, statements=0.0)
"""No lane waits for another."""
_HELD: Final = "tenant_001.held"
_CHANNEL: Final = """[source]
archive = "{archive}"
[target]
connection = "target_server"
[lanes]
count = 3
fold_gap = 4
[blocks]
transactions = 10
[segments]
bytes = 65536
[apply]
lease_seconds = 5
"""
_BEHIND: Final = (
    "SELECT COUNT(*) FROM binlane.positions AS p JOIN binlane.windows AS w USING (channel, window_id) "
    "WHERE w.state = 'open' AND p.seqno {} w.last_seqno"
)


def stored() -> list[Path]:
    """The stored windows, by family."""
    return sorted(STORED.glob("*.zip"))


@dataclass(frozen=True, slots=True)
class _Play:
    """One family's servers, and the project of the older binlane."""

    code: Path
    """A checkout of the older binlane."""
    project: Path
    source: PrivateServer
    target: PrivateServer

    @property
    def archive(self) -> Path:
        return self.project / "archive"

    def lay_channel(self) -> None:
        """The channel's files."""
        for folder in ("dags/channels", "shard_list", "archive"):
            (self.project / folder).mkdir(parents=True)
        (self.project / "shard_list" / f"{CHANNEL}.list").write_text("(critical)=reference\n")
        self.channel_file.write_text(_CHANNEL.format(archive=self.archive))

    @property
    def channel_file(self) -> Path:
        return self.project / "dags" / "channels" / f"{CHANNEL}.toml"

    def command(self, *arguments: str) -> subprocess.Popen[bytes]:
        """The older binlane's command line."""
        account = f"{self.target.user}:{self.target.password}@{self.target.host}:{self.target.port}"
        environment = {
            "AIRFLOW_CONN_TARGET_SERVER": f"mysql://{account}/?ssl_mode=disabled",
            "BINLANE_CHANNELS": str(self.channel_file.parent),
            "PYTHONPATH": str(self.code / "plugins"),
        }
        program = [sys.executable, "-c", "from binlane.cli import main; main()", *arguments]
        return subprocess.Popen(program, env={**os.environ, **environment}, start_new_session=True)

    def run(self, *arguments: str) -> None:
        """The same, to its end. Raises LabError if it fails."""
        with self.command(*arguments) as running:
            if running.wait(_SECONDS) != 0:
                raise LabError(f"binlane {' '.join(arguments)}: exit code {running.returncode}")

    def write(self, transactions: int, seed: int, mix: Mix) -> None:
        """Traffic on the source."""
        run_traffic(self.source.connect, tenants=6, transactions=transactions, seed=seed, threads=2, mix=mix)

    def to_archive(self) -> None:
        """Copy the source's finished binlog files."""
        self.source.query("FLUSH BINARY LOGS")
        *ended, _open = [str(row[0]) for row in self.source.query("SHOW BINARY LOGS")]
        for name in ended:
            shutil.copy(self.source.datadir / name, self.archive)

    def apply_half(self) -> None:
        """Run the window with one lane held in its middle; kill it by SIGKILL when the others are at the end."""
        with self.held(), self.command("run", CHANNEL) as running:
            end = time.monotonic() + _SECONDS
            try:
                while (self.count("<"), self.count("=")) != (1, 3):
                    if running.poll() is not None or time.monotonic() > end:
                        raise LabError(f"expected one lane of four in the window's middle, got {self.count('<')}")
                    time.sleep(0.2)
            finally:
                os.killpg(running.pid, signal.SIGKILL)
        self.forget_machine()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep the row that the held lane needs locked on the target."""
        with contextlib.closing(self.target.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {_HELD} WHERE id = 1 FOR UPDATE")
            yield

    def count(self, relation: str) -> int:
        """How many lanes stand in such a relation to the open window's end; -1 before there are positions of it."""
        found = self.target.query(_BEHIND.format(relation))
        return int(found[0][0]) if found else -1

    def forget_machine(self) -> None:
        """Take this machine's paths and names out of the target's state."""
        update = "UPDATE binlane.windows SET work = REPLACE(work, %s, %s)"
        with contextlib.closing(self.target.connect(autocommit=True)) as connection, connection.cursor() as cursor:
            cursor.execute(update, (str(self.project), PLACE))
            cursor.execute("DELETE FROM binlane.heartbeats")
        self.channel_file.write_text(_CHANNEL.format(archive=f"{PLACE}/archive"))

    def dump(self, server: PrivateServer, name: str) -> None:
        """All databases of a server but its own."""
        own = ("mysql", "information_schema", "performance_schema", "sys")
        databases = [row[0] for row in server.query("SHOW DATABASES") if row[0] not in own]
        with (self.project / name).open("wb") as file:
            subprocess.run(
                [*dump_command(server), "--single-transaction", "--hex-blob", "--skip-dump-date", "--skip-comments",
                 "--skip-triggers", "--databases", *databases],
                stdout=file, check=True, timeout=_SECONDS,
            )  # fmt: skip


def dump_command(server: PrivateServer) -> list[str]:
    """A dump program of the server's family, with the lab's account."""
    program = server.tool("dump")
    family = ["--set-gtid-purged=OFF"] if server.flavor is Flavor.MYSQL else []
    account = [
        f"--host={server.host}",
        f"--port={server.port}",
        f"--user={server.user}",
        f"--password={server.password}",
    ]
    return [str(program), "--no-defaults", *account, *family]


def load(server: PrivateServer, dump: Path) -> None:
    """Load a dump, outside of the server's binlog."""
    account = [
        f"--host={server.host}",
        f"--port={server.port}",
        f"--user={server.user}",
        f"--password={server.password}",
    ]
    program = [str(server.tool("client")), "--no-defaults", *account, "--init-command=SET SESSION sql_log_bin = 0"]
    with dump.open("rb") as file:
        subprocess.run(program, stdin=file, check=True, timeout=_SECONDS)


def make(commit: str) -> None:
    """Play and store the window of each family."""
    STORED.mkdir(parents=True, exist_ok=True)
    full = _git("rev-parse", commit)
    made = {
        "commit": full,
        "of": _git("log", "-1", "--format=%cI", full),
        "command": f"python -m lab.older_window {full[:7]}",
    }
    with tempfile.TemporaryDirectory(prefix="binlane-older-") as place:
        folder = Path(place)
        archive = folder / "code.tar"
        _git("archive", "--output", str(archive), full)
        shutil.unpack_archive(archive, folder / "code")
        for flavor in Flavor:
            _make(flavor, folder / "code", folder / flavor.value, made)


def _make(flavor: Flavor, code: Path, folder: Path, made: dict[str, str]) -> None:
    with (
        private_server(folder / "source", flavor, name="source", durable=False) as source,
        private_server(folder / "target", flavor, name="target", durable=False) as target,
    ):
        play = _Play(code, folder / "project", source, target)
        play.lay_channel()
        play.write(60, 1, _MEETING)
        source.query(f"CREATE TABLE {_HELD} (id INT PRIMARY KEY, n INT NOT NULL)")
        source.query(f"INSERT INTO {_HELD} VALUES (1, 0)")
        play.to_archive()
        play.run("init", CHANNEL, "--start", "oldest")
        play.run("run", CHANNEL)
        play.write(80, 2, _MEETING)
        play.write(60, 3, _ALONE)
        # not by another traffic, which begins with a barrier
        for number in range(1, 30):
            source.query(f"UPDATE {_HELD} SET n = n + 1 WHERE id = 1")
            source.query(f"INSERT INTO {_HELD} VALUES ({number + 1}, 0)")
            source.query(f"UPDATE tenant_{number % 6 + 1:03}.customers SET balance = balance + 1 LIMIT 3")
        play.to_archive()
        play.apply_half()
        # the next window is the newer binlane's
        play.write(60, 4, _MEETING)
        play.to_archive()
        play.dump(source, "source.sql")
        play.dump(target, "target.sql")
        (play.project / "made.json").write_text(json.dumps(made, indent=1) + "\n")
        store(play.project, STORED / f"{flavor.value}.zip")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def unpack(window: Path, project: Path) -> None:
    """The project's files, with the channel's archive in their folder."""
    with zipfile.ZipFile(window) as archive:
        archive.extractall(project)
    file = project / "dags" / "channels" / f"{CHANNEL}.toml"
    file.write_text(file.read_text().replace(PLACE, str(project)))


def main(arguments: Sequence[str]) -> None:
    """Store the window of one commit."""
    if len(arguments) != 1:
        sys.exit(__doc__)
    make(arguments[0])


if __name__ == "__main__":
    main(sys.argv[1:])
