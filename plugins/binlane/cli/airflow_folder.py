"""The channels folder that Airflow's configuration names, for who calls ``binlane`` beside it.

Importing Airflow takes seconds, and a machine with the command line need not have it: its file is read instead.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

IN_CHECKOUT: Final = Path("dags/channels")


def default_channels(environment: Mapping[str, str]) -> Path:
    """``[binlane] channels`` of Airflow's configuration, by its variable or in its file; else that of a checkout, or,
    outside of one, ``channels`` in the DAGs folder that Airflow's configuration names."""
    if named := _setting("binlane", "channels", environment):
        return _expanded(named)
    if not IN_CHECKOUT.is_dir() and (dags := _setting("core", "dags_folder", environment)):
        beside = _expanded(dags) / IN_CHECKOUT.name
        return beside if beside.is_dir() else IN_CHECKOUT
    return IN_CHECKOUT


def _expanded(named: str) -> Path:
    return Path(os.path.expandvars(named)).expanduser()


def _setting(section: str, key: str, environment: Mapping[str, str]) -> str | None:
    return environment.get(f"AIRFLOW__{section.upper()}__{key.upper()}") or _in_file(section, key, environment)


def _in_file(section: str, key: str, environment: Mapping[str, str]) -> str | None:
    home = Path(environment.get("AIRFLOW_HOME") or "~/airflow").expanduser()
    file = Path(environment.get("AIRFLOW_CONFIG") or home / "airflow.cfg").expanduser()
    read = configparser.RawConfigParser(strict=False)
    try:
        read.read(file, encoding="utf-8")
    except (OSError, UnicodeError, configparser.Error):
        # Airflow's own file: it complains of it by itself
        return None
    return read.get(section, key, fallback=None)
