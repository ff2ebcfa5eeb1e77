"""Arguments and environment of spark-submit: properties in a file that only this account can read, without Airflow's
environment variables.

Other accounts can read a process's arguments and environment (``ps``, ``/proc``), and both appear in logs. So neither
may have connections or secrets of ``[spark.conf]``: the job reads only the work folder and needs no server.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from binlane.errors import BinlaneError, has_secret
from binlane.work.plan_job.errors import error_in

PLAN_JOB: Final = Path(__file__).parents[2] / "spark_jobs" / "event_metadata_filter.py"
"""The plan job's file, as spark-submit wants it."""
INDEX_JOB: Final = PLAN_JOB.with_name("archive_index.py")
"""The file of the job that indexes an archive."""
_DAEMON: Final = "spark.python.daemon.module"
_CARRIED: Final = "spark.submit.pyFiles"
WITH_DEFAULTS: Final = "--load-spark-defaults"
"""Without this option a properties file replaces Spark's own conf/spark-defaults.conf."""
_AIRFLOWS: Final = re.compile(r"_*AIRFLOW_")
_SECRET: Final = re.compile(r"(?i)secret|passw|passphrase|token|access[.]?key|credential|signature")
"""Spark's default of spark.redaction.regex, and the names of object stores' keys."""
_KEY: Final = re.compile(r"(?i)key(?![a-z])|(?<![a-z])(?:sas|private)(?![a-z])")
"""Words of names that may stand for a secret: ``fs.azure.account.key.x``, ``fs.azure.sas.x``."""
_SETTING: Final = re.compile(r"(?i)true|false|\d{1,6}[a-z]{0,2}")
"""A value that is no secret behind such a word."""
_IN_VALUE: Final = re.compile(r"(?i)(?:secret|passw(?:or)?d|passphrase|token|key)\w*[=:]([^\s'\"]+)")
"""A secret in a list of options, such as ``-Djavax.net.ssl.trustStorePassword=x``."""
_SPECIAL: Final = re.compile(r"[\\:=#! \t\f\n\r]")
_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


def spark_properties(given: Mapping[str, str]) -> dict[str, str]:
    """The properties for spark-submit, by name; ``given``: the channel's.

    Workers are forked from ``binlane.spark_daemon``, which has imported binlane; not if the job ships binlane to its
    executors (``--py-files``), where the daemon could not import it.
    """
    daemon = {} if _CARRIED in given else {_DAEMON: "binlane.spark_daemon"}
    return {"spark.ui.enabled": "false", **daemon, **given}


def with_token(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of one job, with a token of its own: its answer has a code that only this job can make."""
    # a DAG file, which is parsed in every task process, imports this module
    from binlane.work.plan_job.made import TOKEN

    return {**properties, TOKEN: secrets.token_hex(32)}


def without_airflow(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without Airflow's variables: AIRFLOW_CONN_..., the metadata database, its keys."""
    return {name: value for name, value in environment.items() if _AIRFLOWS.match(name) is None}


@contextlib.contextmanager
def properties_file(properties: Mapping[str, str]) -> Iterator[str]:
    """A temporary file for ``--properties-file``, mode 0600; its path."""
    handle, path = tempfile.mkstemp(prefix="binlane-spark-", suffix=".properties")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(f"{_escaped(name)}={_escaped(value)}\n" for name, value in properties.items())
        yield path
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(path).unlink()


class JobOutput:
    """The output of a spark-submit that runs the driver; with the driver in the cluster nothing of it is the job's."""

    def __init__(self) -> None:
        self.error: BinlaneError | None = None
        """The last error that the job has named."""
        self.lines: list[str] = []
        """What binlane has printed."""

    def listened(self, lines: Iterable[str]) -> Iterator[str]:
        """The lines as they are."""
        for line in lines:
            self.error = error_in(line) or self.error
            if line.startswith("binlane "):
                self.lines.append(line)
            yield line


def secrets_of(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Secret values to hide in output, the longest first, since one can contain another."""
    values = {value for name, value in properties.items() if value and _is_secret(name, value)}
    values |= {found for value in properties.values() for found in _IN_VALUE.findall(value)}
    return tuple(sorted(values, key=len, reverse=True))


def _is_secret(name: str, value: str) -> bool:
    if _SECRET.search(name) is not None or _IN_VALUE.search(value) is not None or has_secret(value):
        return True
    return _KEY.search(name) is not None and _SETTING.fullmatch(value) is None


def without_secrets(text: str, properties: Mapping[str, str]) -> str:
    """``text``, Spark's output, with the secrets hidden."""
    for value in secrets_of(properties):
        text = text.replace(value, "***")
    return text


def _escaped(text: str) -> str:
    """See java.util.Properties.load."""
    return _SPECIAL.sub(lambda found: _ESCAPES.get(found[0], f"\\{found[0]}"), text)
