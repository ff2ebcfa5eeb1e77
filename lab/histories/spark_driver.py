"""A Spark session that plans one window after another: ``spark-submit spark_driver.py SOCKET``.

Each line from the socket is a window's folder; the answer is ``planned``, or the error in one line. The driver ends
with the connection. The engine is the job's own.
"""

from __future__ import annotations

import socket
import sys

from pyspark.sql import SparkSession

from binlane.errors import BinlaneError
from binlane.spark_engine import SparkEngine
from binlane.work.files import WorkFolder
from binlane.work.plan_job.errors import as_line
from binlane.work.plan_job.job import run_plan_job
from binlane.work.plan_job.made import TOKEN, answer


def main(path: str) -> None:
    """Serve the caller that listens at ``path``."""
    spark = SparkSession.builder.appName("binlane.histories").getOrCreate()
    try:
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(path)
            for line in caller.makefile("r", encoding="utf-8"):
                caller.sendall(f"{_planned(spark, line.rstrip())}\n".encode())
    finally:
        spark.stop()


def _planned(spark: SparkSession, uri: str) -> str:
    try:
        run_plan_job(WorkFolder(uri), SparkEngine(spark))
        answer(uri, TOKEN)
    except BinlaneError as exc:
        return as_line(exc)
    except Exception as exc:
        return f"{type(exc).__name__}: {exc}".replace("\n", " ")
    return "planned"


if __name__ == "__main__":
    main(sys.argv[1])
