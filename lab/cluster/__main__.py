"""``make cluster-test``: a cluster on this machine, whose parts are killed one by one in the middle of a window.

Every window has to end in equal data by itself: Airflow's retries are all the help that it gets.
"""

from __future__ import annotations

import itertools
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from binlane.model import Flavor, plural
from lab.airflow_api import ApiError
from lab.cluster.breaks import IN_LANES, IN_MAP, in_lanes, in_map, undisturbed
from lab.cluster.processes import missing_programs
from lab.cluster.site import WORKERS, Cluster, new_cluster
from lab.programs import WITHOUT_MYSQL, LabError, has_mysql

if TYPE_CHECKING:
    from types import FrameType

_TRANSACTIONS: Final = 3_000
Window = Callable[[Cluster, Flavor], int]
"""Runs a window; the most tries that a task had."""


def main() -> int:
    """0: every window arrived. 1: some did not, which is said. Without PostgreSQL or Redis: 0, and what is missing."""
    if missing := missing_programs():
        print(f"cluster-test: not run: {missing}")
        return 0
    families = [Flavor.MARIADB]
    if has_mysql():
        families.append(Flavor.MYSQL)
    else:
        print(f"MariaDB alone: {WITHOUT_MYSQL}")
    signal.signal(signal.SIGTERM, _interrupt)
    began = time.monotonic()
    try:
        with new_cluster(families) as cluster:
            _say(f"up after {time.monotonic() - began:.0f} s: {plural(WORKERS, 'worker')} of Celery and of Spark")
            return _walk(cluster, families)
    except (LabError, ApiError) as exc:
        print(f"cluster-test: {exc}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("cluster-test: interrupted", file=sys.stderr)
        return 1


def _walk(cluster: Cluster, families: list[Flavor]) -> int:
    """0: every window arrived. Raises LabError if a first one did not: nothing could be broken then."""
    for family in families:
        _say(cluster.binlane("init", family, "--start", "oldest"))
        _window(cluster, family, "first window", undisturbed)
    windows: list[tuple[str, Window]] = [
        *((name, partial(in_lanes, broken=broken)) for name, broken in IN_LANES.items()),
        *((name, partial(in_map, broken=broken)) for name, broken in IN_MAP.items()),
    ]
    failed = 0
    for (name, window), family in zip(windows, itertools.cycle(families), strict=False):
        try:
            _window(cluster, family, name, window)
        # the next window takes what this one has left
        except LabError as exc:
            print(f"cluster-test: {exc}", file=sys.stderr, flush=True)
            failed = 1
    return failed


def _window(cluster: Cluster, family: Flavor, name: str, window: Window) -> None:
    """Write, run, compare. Raises LabError."""
    began = time.monotonic()
    cluster.write(family, _TRANSACTIONS)
    try:
        tries = window(cluster, family)
        tables = cluster.equal(family)
    except LabError as exc:
        raise LabError(f"{family}, {name}: {exc}") from exc
    seconds = time.monotonic() - began
    _say(f"{family}, {name}: {plural(tables, 'table')} equal after {seconds:.0f} s, {plural(tries, 'try', 'tries')}")


def _say(text: str) -> None:
    """Print at once: the whole takes a while."""
    print(text, flush=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
