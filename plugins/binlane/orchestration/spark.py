"""How the filter job is handed to spark-submit: properties in a file that only this account reads, no environment of
Airflow's.

A process's arguments and environment are open to others (``ps``, ``/proc``) and end up in logs. Connections and the
secrets of ``[spark.conf]`` must be in neither: the job reads the work folder and needs no server.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

_DAEMON: Final = "spark.python.daemon.module"
_CARRIED: Final = "spark.submit.pyFiles"
WITH_DEFAULTS: Final = "--load-spark-defaults"
"""Without it a properties file takes the place of Spark's own conf/spark-defaults.conf."""
_AIRFLOWS: Final = re.compile(r"_*AIRFLOW_")
# Spark's own default for what it hides in its logs, spark.redaction.regex, and the keys of object stores
_SECRET: Final = re.compile(r"(?i)secret|password|token|access[.]?key|credential")
_SPECIAL: Final = re.compile(r"[\\:=#! \t\f\n\r]")
_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def spark_properties(given: Mapping[str, str]) -> dict[str, str]:
    """The properties for spark-submit, by name; ``given`` are the channel's.

    Workers are forked from a daemon that has imported them, but not where the job carries binlane to its executors
    itself: tasks find it there, the daemon would not.
    """
    daemon = {} if _CARRIED in given else {_DAEMON: "binlane.spark_daemon"}
    return {"spark.ui.enabled": "false", **daemon, **given}


def spark_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without Airflow's variables: AIRFLOW_CONN_..., the metadata database, its keys."""
    return {name: value for name, value in environment.items() if _AIRFLOWS.match(name) is None}


@contextlib.contextmanager
def properties_file(properties: Mapping[str, str]) -> Iterator[str]:
    """The path of a file for ``--properties-file``, mode 0600, while this lasts."""
    handle, path = tempfile.mkstemp(prefix="binlane-spark-", suffix=".properties")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(f"{_escaped(name)}={_escaped(value)}\n" for name, value in properties.items())
        yield path
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(path).unlink()


def secrets_of(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Secret values that are hidden in output, the longest first, since one can contain another."""
    values = {value for name, value in properties.items() if value and _SECRET.search(name)}
    return tuple(sorted(values, key=len, reverse=True))


def without_secrets(text: str, properties: Mapping[str, str]) -> str:
    """``text``, as Spark wrote it, to be shown."""
    for value in secrets_of(properties):
        text = text.replace(value, "***")
    return text


def _escaped(text: str) -> str:
    """See java.util.Properties.load."""
    return _SPECIAL.sub(lambda found: _ESCAPES.get(found[0], f"\\{found[0]}"), text)
