"""A private Spark Connect server: one JVM that stays, with executors in its own process."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from binlane.orchestration.plan_job.spark_submit import spark_properties
from lab.servers import HOST, LabError, free_port

PROJECT: Final = Path(__file__).resolve().parent.parent
_CLASS: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"
TOKEN: Final = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""The variable of a server's environment with the token of its clients: every account of the machine reaches the port,
and can read the arguments of a process."""
CLIENTS_HOST: Final = "localhost"
"""With a token Spark's client takes TLS for every host of another name."""
_START_SECONDS: Final = 120.0


def command(port: int, cores: int) -> list[str]:
    """The command of a server on a port of 127.0.0.1. Its environment needs ``PYTHONPATH`` with binlane, and ``TOKEN``:
    without it every account of the machine could run code as this one."""
    properties = {
        **spark_properties({}),
        "spark.master": f"local[{cores}]",
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.pyspark.python": sys.executable,
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
        "spark.driver.memory": "1g",
    }
    program = str(Path(sysconfig.get_path("scripts")) / "spark-submit")
    given = (f"--conf={name}={value}" for name, value in properties.items())
    return [program, "--class", _CLASS, *given, "spark-internal"]


def wait_for(port: int, process: subprocess.Popen[bytes] | None = None) -> None:
    """Return when the server takes connections. Raises LabError."""
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and (process is None or process.poll() is None):
        try:
            socket.create_connection((HOST, port), timeout=1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise LabError(f"the Spark Connect server on port {port} takes no connections: look at its log")


@contextmanager
def private_connect_server(folder: Path, cores: int = 2) -> Iterator[str]:
    """The URL of a server that ends with the block; its log is in ``folder``."""
    port, token = free_port(), secrets.token_urlsafe(18)
    # spark-submit finds Spark by the first python3 on PATH
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(PROJECT / "plugins"), "SPARK_LOCAL_IP": HOST}
    environment[TOKEN] = token
    with (folder / "spark-connect.log").open("wb") as log:
        process = subprocess.Popen(
            command(port, cores), env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        wait_for(port, process)
        yield f"sc://{CLIENTS_HOST}:{port}/;token={token}"
    finally:
        process.kill()
        process.wait()
