"""Spark properties of the filter job: ours, then the channel's ``[spark.conf]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_DAEMON: Final = "spark.python.daemon.module"
_CARRIED: Final = "spark.submit.pyFiles"


def spark_properties(given: Mapping[str, str]) -> dict[str, str]:
    """What spark-submit is given as ``--conf``, by name; ``given`` is the channel's.

    Workers are forked from a daemon that has imported them, but not where the job carries binlane to its executors
    itself: tasks find it there, the daemon would not.
    """
    daemon = {} if _CARRIED in given else {_DAEMON: "binlane.spark_daemon"}
    return {"spark.ui.enabled": "false", **daemon, **given}
