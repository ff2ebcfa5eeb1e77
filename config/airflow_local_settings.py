"""Loaded once by every Airflow service: task processes fork from them, so what is imported here costs a task nothing.

Put this folder on PYTHONPATH or copy the file to ``$AIRFLOW_HOME/config``. Measured: 1.6 s a task becomes 0.15 s.
"""

import contextlib
import importlib
import sys

HEAVY = (
    "airflow.sdk",
    "airflow.providers.apache.spark.operators.spark_submit",
    "pyarrow.parquet",
    "pymysql",
    "sqlalchemy.dialects.mysql.pymysql",
    "fsspec.implementations.local",
    "binlane.orchestration.steps",
    "binlane.orchestration.airflow.replicate_dag",
)
WITHOUT_TASKS = frozenset(("api-server", "config", "connections", "db", "info", "plugins", "providers", "version"))
"""Commands of ``airflow`` from which no task forks."""

# python -m airflow: the arguments are those of the command
if not WITHOUT_TASKS & set(sys.argv[1:2]):
    for name in HEAVY:
        # a service that has no use for one of them must start without it
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
