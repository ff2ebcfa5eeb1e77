"""Options for the JVM of a spark-submit: a quick compiler, and an archive of classes that it maps instead of jars.

The plan job's JVM lives for seconds and hands no rows through, so the second compiler costs more than it brings.
Loading and checking classes is half of what else a small spark-submit costs. A JVM writes the archive, at its end
(class data sharing, https://openjdk.org/jeps/350), and uses it only with the Java and the jars that it was made of.
They are its name here, since a JVM says nothing about an archive that it cannot use.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shlex
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from binlane.errors import ConfigError
from binlane.orchestration.plan_job.spark_submit import without_airflow
from binlane.safe_path import with_safe_path
from binlane.work.real_folders import make_folder

LOADING_JOB: Final = Path(__file__).parents[2] / "spark_jobs" / "loading_job.py"
"""The job whose classes are archived."""
OPTIONS: Final = "SPARK_SUBMIT_OPTS"
"""Environment variable of spark-submit with options for its JVM; those of Spark's properties come behind them."""
_QUICK_COMPILER: Final = "-XX:TieredStopAtLevel=1"
# the JVM tells on its standard output which classes an archive cannot have
_QUIET: Final = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
_UNUSED_SECONDS: Final = 30 * 86_400
_ENDING: Final = ".jsa"
_OF_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


def with_jvm_options(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a spark-submit with the JVM's options: its classes are read from the archive, if there is
    one."""
    archive = _archive(environment)
    if archive is None or not archive.exists():
        return _with_options(environment)
    with contextlib.suppress(OSError):
        os.utime(archive)
    return _with_options(environment, *_archived(f"-XX:SharedArchiveFile={archive}"))


def write_class_archive() -> Path:
    """Run a small Spark job in a JVM that writes the archive at its end; the archive's file.

    Raises ConfigError where Java, Spark or a folder for the archive is missing, or the job has failed.
    """
    # imported only here: with it comes all of readiness, which no DAG file should wait for
    from binlane.readiness.machine import spark_submit

    program, path = spark_submit()
    environment = {"PYSPARK_PYTHON": sys.executable, **without_airflow(os.environ), "PATH": path}
    archive = _archive(environment)
    if archive is None or program is None:
        raise ConfigError(
            "class archive: expected Java, spark-submit and a cache folder that can be written, found not all of them; "
            "install Java 17 or newer and binlane[spark], or see that ~/.cache (XDG_CACHE_HOME) can be written, and "
            "that its folder binlane, if it is there, is this account's own, no link, and written by nobody else"
        )
    written = archive.with_name(f"{archive.name}.{os.getpid()}")
    try:
        done = subprocess.run(
            [program, "--master", "local[2]", "--conf", "spark.ui.enabled=false", str(LOADING_JOB)],
            env=_with_options(environment, *_archived(f"-XX:ArchiveClassesAtExit={written}")),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0 or not written.exists():
            raise ConfigError(
                f"class archive: expected spark-submit to end with {written} written, it ended with {done.returncode} "
                f"and this output:\n{done.stdout}\n{done.stderr}"
            )
        written.chmod(0o600)
        written.rename(archive)
    finally:
        written.unlink(missing_ok=True)
    _remove_unused(archive.parent)
    return archive


def _archive(environment: Mapping[str, str]) -> Path | None:
    """The archive's file, whether it is there or not."""
    java, jars = _java_library(environment), _jars(environment)
    if java is None or jars is None:
        return None
    # the order in which the folder tells its files is that of the class path
    parts = [java, *(Path(entry) for entry in os.scandir(jars))]
    text = "".join(f"{part}\0{(found := part.stat()).st_size}\0{int(found.st_mtime)}\0" for part in parts)
    try:
        folder = Path(environment.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "binlane"
        make_folder(folder)
        is_ours = _is_ours(folder.lstat())
    except (OSError, RuntimeError):
        return None
    if not is_ours:
        return None
    return folder / f"spark-{hashlib.sha256(text.encode()).hexdigest()[:16]}{_ENDING}"


def _is_ours(found: os.stat_result) -> bool:
    """Whether it is a folder to which no other account can write: a JVM executes what is in it."""
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & _OF_OTHERS


def _java_library(environment: Mapping[str, str]) -> Path | None:
    """The virtual machine of the Java that Spark takes."""
    home = environment.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else shutil.which("java", path=environment.get("PATH"))
    if program is None:
        return None
    library = Path(program).resolve().parents[1] / "lib" / "server" / "libjvm.so"
    return library if library.exists() else None


def _jars(environment: Mapping[str, str]) -> Path | None:
    """The jars of the Spark that spark-submit takes: of SPARK_HOME, else of pyspark's package."""
    home = environment.get("SPARK_HOME")
    if home is None:
        found = importlib.util.find_spec("pyspark")
        home = None if found is None or found.origin is None else str(Path(found.origin).parent)
    jars = None if home is None else Path(home) / "jars"
    return jars if jars is not None and jars.is_dir() else None


def _archived(option: str) -> tuple[str, ...]:
    return (*_QUIET, shlex.quote(option))


def _with_options(environment: Mapping[str, str], *options: str) -> dict[str, str]:
    """The JVM takes the last of several values: a site's options come behind the quick compiler's, and those of Spark's
    properties behind all of these."""
    given = " ".join(filter(None, (_QUICK_COMPILER, environment.get(OPTIONS), *options)))
    # Spark starts its Python processes with `python -m`
    return with_safe_path({**environment, OPTIONS: given})


def _remove_unused(folder: Path) -> None:
    """Archives of a Java or a Spark that was replaced."""
    for file in folder.glob(f"spark-*{_ENDING}*"):
        with contextlib.suppress(OSError):
            if time.time() - file.stat().st_mtime > _UNUSED_SECONDS:
                file.unlink()
