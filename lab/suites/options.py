"""The options of a running server of the suites, by its command line, and those of a target or replica for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_OWN: Final = (
    *("datadir", "port", "socket", "pid-file", "tmpdir", "server-id", "log-error", "log-basename", "admin-port"),
    *("general-log", "general-log-file", "slow-query-log", "slow-query-log-file", "log-output", "core-file"),
    *("log-bin", "log-bin-index", "relay-log", "relay-log-index", "report-host", "report-port", "report-user"),
    *("read-only", "super-read-only", "skip-slave-start", "skip-replica-start", "init-file", "user", "gdb"),
    *("version", "binlog-do-db", "binlog-ignore-db", "master-info-file", "relay-log-info-file", "slave-load-tmpdir"),
)
"""Options that differ for each server, and the source's options for its log."""
_OWN_PREFIXES: Final = ("replicate-", "master-", "mysqlx", "loose-mysqlx", "init-rpl")


@dataclass(frozen=True, slots=True)
class Started:
    """A server's command line in parts."""

    defaults: tuple[str, ...]
    """``--defaults-file`` and similar options, which must come first."""
    options: tuple[str, ...]


def started_with(arguments: Sequence[str]) -> Started:
    """The parts of a server's arguments, without the loader and program before the first option."""
    options = [each for each in arguments if each.startswith("--")]
    options = [each for each in options if not each.startswith(("--library-path", "--plugin-dir"))]
    defaults = tuple(each for each in options if each.startswith(("--defaults-", "--no-defaults")))
    return Started(defaults, tuple(each for each in options if each not in defaults))


def beside(source: Started, binlog_format: str) -> list[str]:
    """The options for a target or a replica of that server, without its folders, ports and names.

    If the source logs statements, ``binlog_format`` is left out as well: a MySQL server in STATEMENT format refuses
    rows.
    """
    kept = [each for each in source.options if not _is_own(_name(each))]
    if binlog_format.upper() == "STATEMENT":
        kept = [each for each in kept if _name(each) != "binlog-format"]
    return kept


def _name(option: str) -> str:
    return option.removeprefix("--").partition("=")[0].replace("_", "-").lower()


def _is_own(name: str) -> bool:
    bare = name.removeprefix("loose-").removeprefix("skip-")
    return bare in _OWN or name in _OWN or name.startswith(_OWN_PREFIXES)
