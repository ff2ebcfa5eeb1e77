"""Plan jobs of many windows in one Spark session, so that a run starts one JVM for all histories."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from binlane.config.keys import ChannelConfig
from binlane.orchestration.plan_job import engines
from binlane.orchestration.plan_job.spark_submit import (
    WITH_DEFAULTS,
    properties_file,
    spark_properties,
    without_airflow,
)
from binlane.work.files import WorkFolder
from binlane.work.plan_job.errors import error_of
from binlane.work.plan_job.made import TOKEN, take_answer
from lab.programs import LabError
from lab.servers import SHORT_FOLDER

_PROJECT: Final = Path(__file__).resolve().parents[2]
_DRIVER: Final = Path(__file__).with_name("spark_driver.py")
_START_SECONDS: Final = 120.0
_JOB_SECONDS: Final = 300.0


@dataclass(slots=True)
class SparkJobs:
    """Runs plan jobs through Spark; the first as ``binlane run`` does, the others in one session. Close it."""

    folder: Path
    """For the session's log."""
    submitted: bool = False
    """Whether the first job, as ``binlane run`` does it, was run already."""
    _process: subprocess.Popen[bytes] | None = None
    _connection: socket.socket | None = None
    _answers: IO[str] | None = field(default=None, repr=False)

    def run(self, config: ChannelConfig, work: WorkFolder) -> None:
        """Plan the window in ``work``. Raises the job's error."""
        if not self.submitted:
            self.submitted = True
            engines.submit(config, work)
            return
        if self._answers is None:
            self._begin(config)
        assert self._connection is not None
        assert self._answers is not None
        self._connection.sendall(f"{work.uri}\n".encode())
        answer = self._answers.readline().rstrip("\n")
        if answer != "planned":
            raise error_of(str(_DRIVER), 1, answer or "the Spark session has ended")
        # nobody else writes to the work folder of a history: any token will do
        take_answer(work.uri, TOKEN)

    def close(self) -> None:
        """End the session: its driver ends with the connection."""
        if self._answers is not None:
            self._answers.close()
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_START_SECONDS)
            self._process.kill()
            self._process.wait()

    def _begin(self, config: ChannelConfig) -> None:
        beside = Path(sys.executable).parent
        program = shutil.which("spark-submit", path=f"{beside}{os.pathsep}{os.environ.get('PATH', '')}")
        if program is None:
            raise LabError("spark-submit is not on PATH: install pyspark, or try histories with --no-spark")
        environment = {"PYSPARK_PYTHON": sys.executable, **without_airflow(os.environ)}
        environment["PYTHONPATH"] = os.pathsep.join([str(_PROJECT / "plugins"), str(_PROJECT)])
        with (
            socket.socket(socket.AF_UNIX) as listening,
            properties_file(spark_properties(config.spark.conf)) as file,
            (self.folder / "spark.log").open("wb") as log,
            tempfile.TemporaryDirectory(prefix="binlane-", dir=SHORT_FOLDER) as place,
        ):
            path = f"{place}/spark.socket"
            listening.bind(path)
            listening.listen()
            listening.settimeout(_START_SECONDS)
            command = [program, WITH_DEFAULTS, "--properties-file", file, str(_DRIVER), path]
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            self._connection = listening.accept()[0]
        self._connection.settimeout(_JOB_SECONDS)
        self._answers = self._connection.makefile("r", encoding="utf-8")
