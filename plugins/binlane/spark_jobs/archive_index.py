"""The index of an archive on Spark: ``spark-submit archive_index.py --archive <folder or URI>``.

Only arguments, source and sink: ``binlane.restore.indexing`` does the work. One task a file; what each has become is
printed in a line.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

from binlane.errors import BinlaneError
from binlane.restore.indexing import make_index
from binlane.spark_engine import SubmittedEngine
from binlane.work.plan_job.errors import as_line


def main(argv: Sequence[str] | None = None) -> None:
    """Index the archive ``--archive``. An error is printed in one line, with exit code 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--archive", required=True, help="folder or URI of binlog files, for all executors the same")
    arguments = parser.parse_args(argv)
    spark = SparkSession.builder.appName("binlane.archive_index").getOrCreate()
    try:
        for each in make_index(arguments.archive, SubmittedEngine(spark)):
            print(each.as_line())  # noqa: T201
    except BinlaneError as exc:
        print(as_line(exc))  # noqa: T201
        sys.exit(1)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
