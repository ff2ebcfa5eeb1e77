"""The daemon from which Spark forks its Python workers: Spark's own, with the plan job's modules imported before.

Spark starts it once an executor as ``python -m binlane.spark_daemon pyspark.worker``, if
``spark.python.daemon.module`` names it. Spark's own daemon leaves all imports to the workers, because threads that an
import starts do not survive a fork. The modules imported here start threads of Arrow, which recreates them after a
fork.
"""

from __future__ import annotations

from pyspark.daemon import manager

from binlane.blas_threads import one_blas_thread

with one_blas_thread():
    from binlane.work.plan_job import tasks  # noqa: F401 -- for its import

if __name__ == "__main__":
    manager()
