"""The filter job on Spark: ``spark-submit event_metadata_filter.py --work <window folder>``.

Arguments, source and sink only: the work is ``binlane.work.filter_job``, tested without a JVM. Two maps over rows that
name segments; no shuffle, and no payload crosses into the JVM.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from binlane.work.arrow_arrays import array
from binlane.work.files import WorkFolder
from binlane.work.filter_job import Task, run_filter


class SparkEngine:
    """Runs a task over segment names as one stage of Python workers."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(self, task: Task, names: Sequence[str]) -> list[bytes]:
        """One Spark task a segment; results in the order of the names."""

        def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                results = [task(name) for name in batch.column("name").to_pylist()]
                yield pa.RecordBatch.from_arrays(
                    [batch.column("ordinal"), array(results, pa.binary())], ["ordinal", "result"]
                )

        rows = self._spark.createDataFrame(list(enumerate(names)), "ordinal long, name string")
        spread = rows.repartitionByRange(max(1, len(names)), "ordinal")
        return [row.result for row in sorted(spread.mapInArrow(call, "ordinal long, result binary").collect())]

    def close(self) -> None:
        """See Engine: the executors are the session's."""


def main(argv: Sequence[str] | None = None) -> None:
    """Plan the window in the folder that ``--work`` names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--work", required=True, help="URI of the window's folder: manifest.json, channel.json, schema.json"
    )
    arguments = parser.parse_args(argv)
    spark = SparkSession.builder.appName("binlane.event_metadata_filter").getOrCreate()
    try:
        plan = run_filter(WorkFolder(arguments.work), SparkEngine(spark))
    finally:
        spark.stop()
    print(f"binlane: planned seqno {plan.first_seqno:,} to {plan.last_seqno:,}, digest {plan.digest}")  # noqa: T201


if __name__ == "__main__":
    main()
