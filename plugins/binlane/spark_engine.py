"""The plan job's engines on Spark, and the job on a Spark Connect server."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import pyarrow as pa

from binlane.errors import BinlaneError, ConfigError, ExecutorsLostError, SparkServerError
from binlane.work.arrow_arrays import array
from binlane.work.files import WorkFolder
from binlane.work.plan_job.errors import as_text, error_of_text
from binlane.work.plan_job.job import MOST_BATCHES, Task, run_plan_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.core import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession as ConnectSession

_Result = TypeVar("_Result")

LOST_SECONDS: Final = 120.0
"""So long an application waits for new executors after it has lost all that it had."""
_LOOK_SECONDS: Final = 5.0
_CONNECT_SECONDS: Final = 10.0
_RETRIES: Final = 6
"""Attempts of Spark's client after a lost connection: about a minute."""
_HEADER: Final = re.compile(r"[0-9a-z_.-]+")
"""A name that gRPC sends."""


class SparkEngine:
    """Runs a task over batches of names, one Spark job of one stage of Python workers after another."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(self, stage: str, task: Task, batches: Sequence[Sequence[str]]) -> Iterator[bytes]:
        """One Spark task for each batch of names; results in the order of the names."""
        names = sum(map(len, batches))
        for first in range(0, len(batches), MOST_BATCHES):
            part = batches[first : first + MOST_BATCHES]
            of = f" from {first + 1:,}" if len(part) < len(batches) else ""
            self.describe(f"{stage}: files {names:,}, tasks {len(batches):,}{of}")
            yield from self._one_job(task, part)

    def _one_job(self, task: Task, batches: Sequence[Sequence[str]]) -> Iterator[bytes]:
        starts = [0, *accumulate(map(len, batches))]

        def call(ids: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for at in chain.from_iterable(batch.column("id").to_pylist() for batch in ids):
                found = [_attempt(task, name) for name in batches[at]]
                ordinals = pa.array(range(starts[at], starts[at + 1]), pa.int64())
                results = [array([one[field] for one in found], pa.binary()) for field in (0, 1)]
                yield pa.RecordBatch.from_arrays([ordinals, *results], ["ordinal", "result", "error"])

        # numbers in as many partitions: names that were rows would be shuffled into theirs
        numbers = self._spark.range(0, len(batches), numPartitions=len(batches))
        mapped = numbers.mapInArrow(call, "ordinal long, result binary, error binary")
        found = self.awaited(mapped.collect)
        found.sort(key=lambda row: row.ordinal)
        for row in found:
            if row.error is not None:
                raise error_of_text(bytes(row.error).decode("utf-8", "backslashreplace"))
        return (bytes(row.result) for row in found)

    def describe(self, job: str) -> None:
        """Name the next job for Spark's UI, where the session can."""

    def awaited(self, action: Callable[[], _Result]) -> _Result:
        """The action's result."""
        return action()

    def close(self) -> None:
        """A no-op: the session owns the executors."""


class SubmittedEngine(SparkEngine):
    """The engine of an application of its own. It ends if its executors are lost."""

    def __init__(self, spark: SparkSession, lost_seconds: float = LOST_SECONDS) -> None:
        super().__init__(spark)
        self._lost_seconds = lost_seconds
        self._had_executors: float | None = None
        """When the application had executors last; None: never."""

    def describe(self, job: str) -> None:
        """See SparkEngine."""
        self._spark.sparkContext.setJobDescription(job)

    def awaited(self, action: Callable[[], _Result]) -> _Result:
        """The action's result. Raises ExecutorsLostError if the application has no executors for ``lost_seconds``.

        The master of a standalone cluster that was started again does not know the application, which would wait for
        ever. One that has had no executor yet waits for its turn, as long as the cluster lets it.
        """
        context, ended, is_lost = self._spark.sparkContext, threading.Event(), threading.Event()

        def watch() -> None:
            while not ended.wait(min(_LOOK_SECONDS, self._lost_seconds / 4)):
                # the driver is one of them
                if len(context._jsc.sc().statusTracker().getExecutorInfos()) > 1:
                    self._had_executors = time.monotonic()
                elif self._are_lost():
                    is_lost.set()
                    context.cancelAllJobs()
                    return

        watcher = threading.Thread(target=watch, name="binlane-executors", daemon=True)
        watcher.start()
        try:
            return action()
        except Exception as exc:
            if not is_lost.is_set():
                raise
            raise ExecutorsLostError(
                f"the plan job has lost all its executors and got none for {self._lost_seconds:.0f} s: look at "
                "Spark's master and workers; a master that was started again does not know the applications of before. "
                "The task's next try submits the job anew"
            ) from exc
        finally:
            ended.set()
            watcher.join()

    def _are_lost(self) -> bool:
        return self._had_executors is not None and time.monotonic() - self._had_executors > self._lost_seconds


def _attempt(task: Task, name: str) -> tuple[bytes | None, bytes | None]:
    """A task's result, or, for an error that a retry cannot fix, its class and text."""
    try:
        return task(name), None
    except BinlaneError as exc:
        if exc.retryable:
            raise
        return None, as_text(exc).encode()


def plan_on_server(remote: str, work: WorkFolder, name: str) -> None:
    """Run the plan job of a window's folder on the Spark Connect server ``remote`` (``sc://host:15002``).

    The server's session stays, so a window starts no JVM. Its executors need binlane installed and must reach the
    folder. Raises the errors of ``run_plan_job`` and of ``on_server``.
    """
    on_server(remote, name, "plan job", partial(run_plan_job, work))


def on_server(remote: str, name: str, job: str, run: Callable[[SparkEngine], _Result]) -> _Result:
    """Run a job on a Spark Connect server. ``name``: of the session; ``job``: what it is, for errors. Raises
    ConfigError for another form of URL, and SparkServerError."""
    from pyspark.errors import PySparkException

    channel = _channel(remote)
    try:
        session = _session(channel, name)
        try:
            return run(SparkEngine(cast(Any, session)))
        finally:
            # releases this session; the server stays
            session.stop()
    except (PySparkException, OSError) as exc:
        raise SparkServerError(
            # the URL's account and parameters may be secret
            f"Spark Connect server sc://{channel.endpoint}: expected it to run the {job}, got: {exc}; look at "
            "the server and its log. The task's next try begins the job anew"
        ) from exc


def _channel(remote: str) -> DefaultChannelBuilder:
    """What Spark's client makes of the URL. Raises ConfigError without any part of it: it may have a token, and Spark's
    own errors quote it."""
    from pyspark.sql.connect.client.core import DefaultChannelBuilder

    with contextlib.suppress(ValueError):
        channel = DefaultChannelBuilder(remote)
        # of another form than a parameter's name, Spark's client quotes all parameters with their values
        if all(_HEADER.fullmatch(key) and value.isascii() and value.isprintable() for key, value in channel.metadata()):
            return channel
    raise ConfigError(
        "Spark Connect URL (SPARK_REMOTE, or of spark.connection): expected sc://host:port/;token=... with = and ; in "
        "a value as %3D and %3B, and names of parameters in lower case, found another form (it is not shown: it may "
        "have a token)"
    )


def _session(channel: DefaultChannelBuilder, name: str) -> ConnectSession:
    """A session of its own. Raises OSError at once for a server that does not answer: Spark's client would try for ten
    minutes."""
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    host, _, port = channel.endpoint.rpartition(":")
    socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    session = SparkSession.builder.channelBuilder(channel).appName(f"binlane {name}").create()
    # a server that was started again does not know this session
    session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
    return session
