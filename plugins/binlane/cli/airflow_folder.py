"""The channels folder that Airflow's configuration names, for who calls ``binlane`` beside it.

Importing Airflow takes seconds, and a machine with the command line need not have it: its file is read instead.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_SECTION, _KEY = "binlane", "channels"
_VARIABLE: Final = f"AIRFLOW__{_SECTION.upper()}__{_KEY.upper()}"
IN_CHECKOUT: Final = Path("dags/channels")


def default_channels(environment: Mapping[str, str]) -> Path:
    """``[binlane] channels`` of Airflow's configuration, by its variable or in its file; else that of a checkout."""
    named = environment.get(_VARIABLE) or _in_file(environment)
    return Path(os.path.expandvars(named)).expanduser() if named else IN_CHECKOUT


def _in_file(environment: Mapping[str, str]) -> str | None:
    home = Path(environment.get("AIRFLOW_HOME") or "~/airflow").expanduser()
    file = Path(environment.get("AIRFLOW_CONFIG") or home / "airflow.cfg").expanduser()
    read = configparser.RawConfigParser(strict=False)
    try:
        read.read(file, encoding="utf-8")
    except (OSError, UnicodeError, configparser.Error):
        # Airflow's own file: it complains of it by itself
        return None
    return read.get(_SECTION, _KEY, fallback=None)
