"""Copies of a whole server by its own tools: MySQL's CLONE, mariadb-backup."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pymysql

from lab.programs import LabError
from lab.servers import PrivateServer

_CLONE: Final = "mysql_clone.so"


def clone(source: PrivateServer, target: PrivateServer) -> None:
    """Fill ``target`` with a clone of ``source``, and start it again."""
    for server in (source, target):
        if not server.query("SELECT 1 FROM information_schema.plugins WHERE plugin_name = 'clone'"):
            server.query(f"INSTALL PLUGIN clone SONAME '{_CLONE}'")
    target.query(f"SET GLOBAL clone_valid_donor_list = '{source.host}:{source.port}'")
    with contextlib.suppress(pymysql.err.MySQLError):  # the server ends, and nobody starts it again
        target.query(
            f"CLONE INSTANCE FROM '{source.user}'@'{source.host}':{source.port} IDENTIFIED BY '{source.password}'"
        )
    target.restart()


def has_backup_tool() -> bool:
    """Whether mariadb-backup is installed."""
    return shutil.which("mariadb-backup") is not None


def back_up(source: PrivateServer, folder: Path) -> None:
    """Write a backup of ``source``, not prepared yet."""
    account = f"--user={source.user}", f"--password={source.password}"
    place = f"--host={source.host}", f"--port={source.port}", f"--datadir={source.datadir}"
    _tool("--backup", f"--target-dir={folder}", *place, *account)


def prepare(folder: Path) -> None:
    """Bring a backup's data to the place that it has recorded."""
    _tool("--prepare", f"--target-dir={folder}")


def restore(folder: Path, target: PrivateServer) -> None:
    """Replace the data of ``target`` by a prepared backup, and start it again."""
    target.stop()
    shutil.rmtree(target.datadir)
    _tool("--copy-back", f"--target-dir={folder}", f"--datadir={target.datadir}")
    target.restart()


def _tool(*arguments: str) -> None:
    done = subprocess.run(["mariadb-backup", "--no-defaults", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"mariadb-backup {' '.join(arguments[:2])}: {done.stderr[-2000:]}")
