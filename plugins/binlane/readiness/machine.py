"""This machine and its disks: the work folder, the room on the target, Spark."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from binlane.choices import PlanEngine
from binlane.errors import BinlaneError
from binlane.model import Flavor, size_text
from binlane.precheck.situation.finding import Command, Finding
from binlane.readiness.situation import Readiness
from binlane.schema.compare import Severity
from binlane.servers.names import among, values_of
from binlane.work.files import WorkFolder

_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


def spark_submit() -> tuple[str | None, str]:
    """The program, if there is one, and the PATH that it is looked for in: first beside this interpreter, where pyspark
    was installed with it."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return shutil.which("spark-submit", path=path), path


def check_work_folder(situation: Readiness) -> Iterator[Finding]:
    """The work folder cannot be written."""
    work = WorkFolder(situation.channel.work.uri)
    folder = work.child(f"ready-{uuid.uuid4().hex}")
    try:
        try:
            with folder.create("probe") as file:
                file.write(b"binlane")
        finally:
            folder.remove()
    except (BinlaneError, OSError) as exc:
        # by its number: a pod's account may have no name
        mend = (Command(f"install -d -o {os.getuid()} {shlex.quote(work.path('').rstrip('/'))}"),)
        todo = "let this account write there, or set work.uri to another place"
        yield Finding(
            Severity.FATAL, f"work folder {work.uri}", "one that can be written", str(exc), todo,
            mend=mend if work.is_local else (),
        )  # fmt: skip


def check_work_room(situation: Readiness) -> Iterator[Finding]:
    """The work folder has less room than a window over the whole log takes (advice)."""
    folder = WorkFolder(situation.channel.work.uri)
    if situation.source is None or not folder.is_local:
        return
    needed = 2 * sum(int(row[1]) for row in situation.source.rows("SHOW BINARY LOGS"))
    place = folder.nearest()
    free = shutil.disk_usage(place).free
    if free < needed:
        todo = (
            f"free some of it, set work.uri to a larger place, or let each window end earlier (--until): df -h {place}"
        )
        expected = f"{size_text(needed)} free, for a window over the whole log"
        yield Finding(Severity.INFO, f"work folder {folder.uri}", expected, size_text(free), todo)


def check_target_room(situation: Readiness) -> Iterator[Finding]:
    """The target's disk has less room than the copied tables take; with a binary log, twice as much. Advice where the
    target holds some of them already."""
    source, target = situation.source, situation.target
    if source is None or not situation.databases:
        return
    [(found,)] = source.rows(
        "SELECT SUM(data_length + index_length) FROM information_schema.tables "
        f"WHERE {among('table_schema', ':databases')}",
        databases=values_of(situation.databases),
    )
    needed = int(found or 0) * (2 if target.is_on("log_bin") else 1)
    folder = target.variables["datadir"]
    free = _free_on_target(situation, folder)
    where, expected = f"target: room in {folder}", f"{size_text(needed)} free for the copied tables"
    if free is None:
        todo = "no statement tells: look at it on the target's machine"
        yield Finding(Severity.INFO, where, expected, "unknown", todo, mend=(Command(f"df -h {shlex.quote(folder)}"),))
    elif free < needed:
        todo, severity = "free some of it, or copy fewer databases (--databases)", Severity.FATAL
        if situation.finds_its_own:
            todo, severity = "less may do: earlier tables of this copy are kept, or dropped first", Severity.INFO
        yield Finding(severity, where, expected, size_text(free), todo)


def _free_on_target(situation: Readiness, folder: str) -> int | None:
    """Bytes, where the server says it (MariaDB's plugin DISKS) or is on this machine; else None."""
    target = situation.target
    if target.flavor is Flavor.MARIADB and target.rows(
        "SELECT 1 FROM information_schema.tables WHERE table_schema = 'information_schema' AND table_name = 'DISKS'"
    ):
        rows = target.rows("SELECT path, available FROM information_schema.disks")
        above = [(str(path), int(kib)) for path, kib in rows if Path(folder).is_relative_to(str(path))]
        if above:
            return max(above, key=lambda one: len(one[0]))[1] * 1024
    try:
        is_here = target.engine.url.host in _LOOPBACK and Path(target.variables["pid_file"]).exists()
        return shutil.disk_usage(folder).free if is_here else None
    except PermissionError:
        return None


def check_spark(situation: Readiness) -> Iterator[Finding]:
    """Spark, which the DAG and ``--engine spark`` run the plan job with, is not on this machine (advice)."""
    if situation.channel.spark.engine is PlanEngine.LOCAL:
        return
    program, path = spark_submit()
    if program is None:
        todo = "install Spark where the Airflow workers run; `binlane run CHANNEL --engine local` does without"
        yield Finding(Severity.INFO, "spark-submit", "a program on PATH", "none", todo)
    java = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=path) is None and (java is None or not (Path(java) / "bin" / "java").exists()):
        yield Finding(
            Severity.INFO, "java", "a program on PATH, or JAVA_HOME", "none", "install Java 17 or newer for Spark"
        )
