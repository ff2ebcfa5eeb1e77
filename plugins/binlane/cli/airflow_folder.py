"""The channels folder that Airflow's configuration names, for who calls ``binlane`` beside it.

Importing Airflow takes seconds, and a machine with the command line need not have it: its file is read instead.
"""

from __future__ import annotations

import configparser
import os
import pwd
import stat
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


def distrusted() -> str | None:
    """Why the folder of a checkout is not taken unless somebody names it: another account than this one and root can
    say what is in it. None if there is no reason. git is as careful with a repository: a channel file names a program
    to run, and where all rows go."""
    for folder in (Path(), *reversed(IN_CHECKOUT.parents[:-1]), IN_CHECKOUT):
        there = folder.stat()
        # a link is its owner's, and so is a folder in one where everybody may write only what is his own
        is_open = there.st_mode & stat.S_IWOTH and not (folder == Path() and there.st_mode & stat.S_ISVTX)
        others = {there.st_uid, folder.lstat().st_uid} - {0, os.geteuid()}
        if others or is_open:
            who = " and ".join([*map(_account, sorted(others)), *(["everybody"] if is_open else [])])
            return (
                "expected folders in which this account and root alone decide what is there, found "
                f"{folder.resolve()}, in which {who} may: a channel file says which program runs and where rows go; "
                f"if you trust it, name it: --channels {IN_CHECKOUT}, or BINLANE_CHANNELS"
            )
    return None


def _account(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"the account {uid}"


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
