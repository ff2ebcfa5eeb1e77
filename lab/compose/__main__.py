"""``make compose-test``: docker-compose.yml built, started, used, broken and started again by this machine's engine."""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from binlane.model import plural
from lab.airflow_api import FINAL_STATES, AirflowApi, ApiError
from lab.compose.engine import Site, compose_command, images, provided_images, run
from lab.programs import LabError
from lab.servers import free_port

Answer = TypeVar("Answer")

DAG: Final = "replicate_fleet"
DATABASES: Final = 8
KILLED: Final = (
    "spark-worker",
    "spark-master",
    "scheduler",
    "dag-processor",
    "apiserver",
    "postgres",
    "source",
    "target",
)
"""Services that are killed, one in the middle of each window."""
HOSTILE: Final = ' it\'s "a\\b" @/:%#p'
"""At the end of the two servers' passwords: what a URL, JSON, SQL and a shell each escape in their own way."""
_SECRETS: Final = ("JWT_SECRET", "SPARK_SECRET", "ADMIN_PASSWORD", "POSTGRES_PASSWORD", "MYSQL_ROOT_PASSWORD")


def main() -> int:
    """0: every window arrived. 1: something failed, which is said. Without an engine: 0, and what is missing."""
    command = compose_command()
    if command is None:
        print(
            "compose-test: not run: no Docker engine answers, or no Compose: apt-get install docker.io docker-compose"
        )
        return 0
    port = free_port()
    environment = {name: secrets.token_hex(24) for name in _SECRETS} | {"BOARD_PORT": str(port)}
    environment |= {f"{name}_PASSWORD": secrets.token_hex(8) + HOSTILE for name in ("SOURCE", "TARGET")}
    try:
        with provided_images() as made:
            for variable in made:
                say(f"{images()[variable]}: cannot be pulled here; one made from Debian's packages takes its place")
            built = [f"{variable}={name}" for variable, name in made.items() if variable == "PYTHON_IMAGE"]
            arguments = [word for each in built for word in ("--build-arg", each)]
            run(["docker", "build", "--network", "host", "--quiet", *arguments, "--tag", "binlane:0.1.0", "."], 3600)
            size = int(run(["docker", "image", "inspect", "--format", "{{.Size}}", "binlane:0.1.0"]))
            say(f"image: {size / 1e6:,.0f} MB")
            site = Site(command, f"binlane-test-{os.getpid()}", environment | dict(made))
            try:
                walk(site, AirflowApi(f"http://127.0.0.1:{port}", "admin", environment["ADMIN_PASSWORD"]))
            finally:
                site.compose("down", "--volumes")
    except (LabError, ApiError) as exc:
        print(f"compose-test: {exc}", file=sys.stderr)
        return 1
    return 0


def walk(site: Site, api: AirflowApi) -> None:
    """First window, a killed service in each further one, ``down`` and ``up``, a last window. Raises LabError."""
    start(site)
    site.sql("source", "".join(_schema(number) for number in range(DATABASES)))
    say(site.compose("run", "--rm", "--no-deps", "scheduler", "binlane", "init", "fleet", "--start", "oldest").strip())
    api.unpause(DAG)
    window(site, api, "first window")
    for service in KILLED:
        window(site, api, f"{service} killed", service)
    # containers and networks go, volumes stay
    site.compose("down")
    start(site)
    window(site, api, "after down and up")


def start(site: Site) -> None:
    """``up`` until every service is well. Raises LabError."""
    began = time.monotonic()
    site.compose("up", "--detach", "--no-build")
    say(f"up after {time.monotonic() - began:.0f} s")


def window(site: Site, api: AirflowApi, name: str, killed: str | None = None) -> None:
    """Write, run a window (the next one too, if the first fails with the service), and compare the servers.

    :raises LabError: two runs failed, or source and target differ.
    """
    began = time.monotonic()
    with traffic(site):
        time.sleep(5)
    for attempt in (1, 2):
        state = _run(site, api, killed if attempt == 1 else None)
        if state == "success":
            break
    else:
        raise LabError(f"{name}: two runs in a row ended {state}")
    source, target = (_checksums(site, server) for server in ("source", "target"))
    if source != target:
        raise LabError(f"{name}: tables differ: {sorted(set(source.items()) ^ set(target.items()))[:10]}")
    again = ", by the next run" if attempt == 2 else ""
    say(f"{name}: {plural(len(source), 'table')} equal after {time.monotonic() - began:.0f} s{again}")


@contextmanager
def traffic(site: Site) -> Iterator[None]:
    """Transactions on the source while the block runs, and 2,000 in any case."""
    ends = threading.Event()

    def write() -> None:
        while True:
            site.sql("source", "".join(_transaction(number) for number in range(2000)))
            if ends.is_set():
                return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ends.set()
        writer.join()


def say(text: str) -> None:
    """Print at once: the whole takes a while."""
    print(text, flush=True)


def _run(site: Site, api: AirflowApi, killed: str | None) -> str:
    """The final state of a new run, in whose middle a service is killed."""
    run_id = _patiently(lambda: api.trigger(DAG))
    if killed is not None:
        while _patiently(lambda: api.run(DAG, run_id))["state"] == "queued":
            time.sleep(1)
        # into extraction, planning or apply: the windows differ in length, which is as good as a random choice
        time.sleep(secrets.randbelow(15))
        site.kill(killed)
    while (state := str(_patiently(lambda: api.run(DAG, run_id))["state"])) not in FINAL_STATES:
        time.sleep(2)
    return state


def _patiently(call: Callable[[], Answer], seconds: float = 300) -> Answer:
    """The answer of an api-server that may have been killed a moment ago."""
    ends = time.monotonic() + seconds
    while True:
        try:
            return call()
        except ApiError:
            if time.monotonic() > ends:
                raise
            time.sleep(2)


def _schema(number: int) -> str:
    return (
        f"CREATE DATABASE shop_{number};"
        f"CREATE TABLE shop_{number}.orders "
        "(id INT PRIMARY KEY AUTO_INCREMENT, amount DECIMAL(10,2), note VARCHAR(50));"
    )


def _transaction(number: int) -> str:
    table = f"shop_{number % DATABASES}.orders"
    return (
        f"BEGIN; INSERT INTO {table} (amount, note) VALUES ({number}.25, 'order {number}');"
        f"UPDATE {table} SET amount = amount + 1 WHERE id <= {number % 7}; COMMIT;"
    )


def _checksums(site: Site, server: str) -> dict[str, str]:
    tables = ", ".join(f"shop_{number}.orders" for number in range(DATABASES))
    return {row[0]: row[1] for row in site.sql(server, f"CHECKSUM TABLE {tables}")}


if __name__ == "__main__":
    sys.exit(main())
