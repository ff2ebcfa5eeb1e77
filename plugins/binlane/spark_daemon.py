"""The daemon from which Spark forks its Python workers: Spark's own, with what the filter's tasks need in it already.

Spark starts it once an executor as ``python -m binlane.spark_daemon pyspark.worker``, if
``spark.python.daemon.module`` names it. Its own leaves all imports to the workers, because threads that an import
starts are not there behind a fork: here these are OpenBLAS's and Arrow's, and both make them anew in the fork.
"""

from __future__ import annotations

from pyspark.daemon import manager

from binlane.work.filter import warm  # noqa: F401 -- for its import

if __name__ == "__main__":
    manager()
