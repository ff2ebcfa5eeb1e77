"""Where the channel files of a site are, by its environment and Airflow's configuration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from airflow.configuration import conf

VARIABLE: Final = "BINLANE_CHANNELS"
"""The command line reads it, too."""


def channels_folder() -> Path:
    """``BINLANE_CHANNELS``, else ``channels`` of the section ``[binlane]`` of Airflow's configuration, else the folder
    ``channels`` in the DAGs folder."""
    named = os.environ.get(VARIABLE) or conf.get("binlane", "channels", fallback=None)
    return Path(named) if named else Path(conf.get_mandatory_value("core", "dags_folder")) / "channels"
