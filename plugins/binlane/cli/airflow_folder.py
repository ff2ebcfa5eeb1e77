"""The channels folder that Airflow's configuration names, for who calls ``binlane`` beside it.

Importing Airflow takes seconds, and a machine with the command line need not have it: its file is read instead.
"""

from __future__ import annotations

import configparser
import grp
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
    write it, a folder above it or a channel file in it. None if there is no reason. git is as careful with a
    repository: a channel file names a program to run, and where all rows go."""
    folders = (Path(), *reversed(IN_CHECKOUT.parents[:-1]), IN_CHECKOUT)
    for path in (*folders, *sorted(IN_CHECKOUT.glob("*.toml"))):
        try:
            writers = _other_writers(path)
        except OSError:
            # what this account cannot reach, it does not read
            continue
        if writers:
            return (
                "expected folders and channel files that this account and root alone can write, found "
                f"{path.resolve()}, which {' and '.join(writers)} may write: a channel file says which program runs "
                f"and where rows go; if you trust it, name it: --channels {IN_CHECKOUT}, or BINLANE_CHANNELS"
            )
    return None


def _other_writers(path: Path) -> list[str]:
    """Who can write it besides this account and root, for a message."""
    there = path.stat()
    # a link is its owner's
    accounts = {there.st_uid, path.lstat().st_uid} - {0, os.geteuid()}
    # and so is a folder in one where everybody may write only what is his own
    mode = 0 if path == Path() and there.st_mode & stat.S_ISVTX else there.st_mode
    group = [_group(there.st_gid)] if mode & stat.S_IWGRP and not _is_of_one(there.st_gid) else []
    return [*map(_account, sorted(accounts)), *group, *(["everybody"] if mode & stat.S_IWOTH else [])]


def _is_of_one(gid: int) -> bool:
    """Whether the group is that of this account, or root's, alone: it has the account's name and no other member."""
    try:
        group = grp.getgrgid(gid)
        return any({group.gr_name, *group.gr_mem} == {pwd.getpwuid(uid).pw_name} for uid in (0, os.geteuid()))
    except KeyError:
        return False


def _group(gid: int) -> str:
    try:
        return f"the group {grp.getgrgid(gid).gr_name}"
    except KeyError:
        return f"the group {gid}"


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
