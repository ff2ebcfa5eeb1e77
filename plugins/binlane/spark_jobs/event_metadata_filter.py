"""The filter job on Spark: ``spark-submit event_metadata_filter.py --work <window folder>``.

Only arguments, source and sink: ``binlane.work.filter.job`` does the work and is tested without a JVM. Two maps over
segment names, without a shuffle; payloads never enter the JVM.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from binlane.errors import BinlaneError, ExecutorsLostError
from binlane.work.arrow_arrays import array
from binlane.work.files import WorkFolder
from binlane.work.filter.errors import as_line
from binlane.work.filter.job import Task, run_filter

_Result = TypeVar("_Result")

LOST_SECONDS: Final = 120.0
"""So long an application waits for new executors after it has lost all that it had."""
_LOOK_SECONDS: Final = 5.0


class SparkEngine:
    """Runs a task over segment names as one stage of Python workers."""

    def __init__(self, spark: SparkSession, lost_seconds: float = LOST_SECONDS) -> None:
        self._spark, self._lost_seconds = spark, lost_seconds
        self._had_executors: float | None = None
        """When the application had executors last; None: never."""

    def run(self, task: Task, names: Sequence[str]) -> list[bytes]:
        """One Spark task for each segment; results in the order of the names."""

        def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                found = [_attempt(task, name) for name in batch.column("name").to_pylist()]
                results = [array([one[at] for one in found], pa.binary()) for at in (0, 1)]
                yield pa.RecordBatch.from_arrays([batch.column("ordinal"), *results], ["ordinal", "result", "error"])

        rows = self._spark.createDataFrame(list(enumerate(names)), "ordinal long, name string")
        spread = rows.repartitionByRange(max(1, len(names)), "ordinal")
        mapped = spread.mapInArrow(call, "ordinal long, result binary, error binary")
        found = self._unless_lost(mapped.collect)
        found.sort(key=lambda row: row.ordinal)
        for row in found:
            if row.error is not None:
                raise pickle.loads(row.error)
        return [row.result for row in found]

    def close(self) -> None:
        """A no-op: the session owns the executors."""

    def _unless_lost(self, action: Callable[[], _Result]) -> _Result:
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
                f"the filter job has lost all its executors and got none for {self._lost_seconds:.0f} s: look at "
                "Spark's master and workers; a master that was started again does not know the applications of before. "
                "The task's next try submits the job anew"
            ) from exc
        finally:
            ended.set()
            watcher.join()

    def _are_lost(self) -> bool:
        return self._had_executors is not None and time.monotonic() - self._had_executors > self._lost_seconds


def _attempt(task: Task, name: str) -> tuple[bytes | None, bytes | None]:
    """A task's result, or, for an error that a retry cannot fix, the pickled error."""
    try:
        return task(name), None
    except BinlaneError as exc:
        if exc.retryable:
            raise
        return None, pickle.dumps(exc)


def main(argv: Sequence[str] | None = None) -> None:
    """Plan the window in the folder ``--work``. An error is printed in one line, with exit code 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--work", required=True, help="URI of the window's folder: manifest.json, channel.json, schema.json"
    )
    arguments = parser.parse_args(argv)
    spark = SparkSession.builder.appName("binlane.event_metadata_filter").getOrCreate()
    try:
        plan = run_filter(WorkFolder(arguments.work), SparkEngine(spark))
    except BinlaneError as exc:
        print(as_line(exc))  # noqa: T201
        sys.exit(1)
    finally:
        spark.stop()
    print(f"binlane: planned seqno {plan.first_seqno:,} to {plan.last_seqno:,}, digest {plan.digest}")  # noqa: T201


if __name__ == "__main__":
    main()
