"""A target that the servers' own tools have copied: MySQL's CLONE, mariadb-backup, Percona XtraBackup.

The tool has recorded the place of the source's log that belongs to the copied data. Everything that can be asked of the
source, the target and the backup is compared with it before the channel begins there:
https://dev.mysql.com/doc/refman/9.0/en/clone-plugin-monitoring.html,
https://mariadb.com/kb/en/files-created-by-mariadb-backup/
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

import pymysql

from binlane.binlog.types.literals import quoted
from binlane.bootstrap.scheduled_events import running_events
from binlane.bootstrap.sessions import Session
from binlane.errors import ConfigError, PrecheckError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, LogPosition, TableKey
from binlane.regular_files import open_regular
from binlane.schema.letter_case import LetterCase
from binlane.source.copy_times import CopyTimes
from binlane.source.gtid_set import is_at
from binlane.source.identity import Start
from binlane.sql.scheduled_event import DISABLED

_INFO: Final = ("mariadb_backup_binlog_info", "xtrabackup_binlog_info")
_CHECKPOINTS: Final = ("mariadb_backup_checkpoints", "xtrabackup_checkpoints")
_TIMES: Final = ("mariadb_backup_info", "xtrabackup_info")
_PREPARED: Final = frozenset({"log-applied", "full-prepared"})
_PLACE: Final = re.compile(r"([!-~]{1,512})\s++(\d{1,19})(?:\s++([!-~\s]*+))?", re.ASCII)
_GTIDS: Final = re.compile(
    r"(?:\d{1,10}-\d{1,10}-\d{1,20}(?:,|\Z))*|(?:[0-9a-f-]{36}(?::[0-9a-z_-]{1,65})+(?:,|\Z))*",
    re.ASCII | re.IGNORECASE,
)
"""Without blanks, of either family."""
_FACT: Final = re.compile(r"^(\w+) = (.*)$", re.MULTILINE | re.ASCII)
_LSN: Final = re.compile(r"\d{1,20}", re.ASCII)
_SEQUENCE_NUMBER: Final = re.compile(r"^Log sequence number\s+(\d{1,20})$", re.MULTILINE | re.ASCII)
_LARGEST: Final = 1 << 20
"""Bytes of a file: a GTID set of some ten thousand servers."""
_ENCODED: Final = re.compile(r"@([0-9a-f]{4})")
_SERVER: Final = frozenset({"mysql", "sys", "performance_schema", "information_schema"})
_SHOWN: Final = 10
_DENIED: Final = frozenset({1142, 1227, 1401})
"""The account lacks a privilege."""


@dataclass(frozen=True, slots=True)
class CopyPlace:
    """The place in the source's log that belongs to a copy."""

    where: str
    """What has recorded it, for messages."""
    position: LogPosition
    gtid_set: str
    """Empty: the source logs without GTIDs."""
    lsn: int = 0
    """The redo log position up to which the copy goes; 0: not known."""
    tables: frozenset[TableKey] = frozenset()
    """Tables of which the copy has files; empty: not known."""
    is_of_target: bool = False
    """The target itself has recorded it."""
    times: CopyTimes = CopyTimes()


def read_clone(target: Session) -> CopyPlace:
    """What CLONE has recorded on the server that it has filled. Raises PrecheckError if there is no complete clone."""
    _require_family(target, Flavor.MYSQL, "--from-clone")
    rows = target.texts(
        "SELECT state, source, error_no, error_message, binlog_file, binlog_position, gtid_executed, "
        "CAST(begin_time AS CHAR), CAST(end_time AS CHAR) "
        "FROM performance_schema.clone_status"
        if target.texts("SELECT 1 FROM information_schema.plugins WHERE plugin_name = 'clone'")
        else "SELECT 1 FROM DUAL WHERE FALSE"
    )
    if not rows:
        raise PrecheckError(
            "target: expected a server that CLONE INSTANCE FROM has filled, found no clone in "
            "performance_schema.clone_status (the plugin has to be loaded: plugin_load_add = mysql_clone.so)"
        )
    [(state, source, number, text, file, offset, gtids, begun, ended)] = rows
    where = f"the target's clone of {source}"
    if state != "Completed":
        raise PrecheckError(f"{where}: expected state Completed, found {state} {text} ({number}); clone again")
    if source == "LOCAL INSTANCE":
        raise PrecheckError("target: expected a clone of the source, found a local one (CLONE LOCAL); clone again")
    times = CopyTimes.of(begun or "", ended or "")
    return CopyPlace(where, LogPosition(file, int(offset)), "".join(gtids.split()), is_of_target=True, times=times)


def read_backup(folder: Path) -> CopyPlace:
    """What a backup has recorded in its folder. Raises ConfigError if the folder is not a prepared backup, or what it
    has recorded cannot be read."""
    recorded = _recorded(folder, _INFO)
    if recorded is None:
        raise ConfigError(f"--from-backup {folder}: expected {' or '.join(_INFO)} there, found none: a backup's folder")
    info, text = recorded
    place = _PLACE.fullmatch(text)
    gtids = "" if place is None else "".join((place[3] or "").split())
    if place is None or _GTIDS.fullmatch(gtids) is None:
        raise ConfigError(
            f"{info}: expected the source's log file, offset and GTID set, found {' '.join(text.split())[:80]!r}: the "
            "source wrote no binary log when the backup was taken, or the file was changed since: take another backup"
        )
    lsn = 0
    if (recorded := _recorded(folder, _CHECKPOINTS)) is not None:
        checkpoints, text = recorded
        found = dict(_FACT.findall(text))
        if (kind := found.get("backup_type")) not in _PREPARED:
            raise ConfigError(
                f"{checkpoints}: expected a prepared backup, found {kind}: run the tool with --prepare, then copy the "
                "folder to the target, and ask again"
            )
        if _LSN.fullmatch(found.get("to_lsn", "0")) is None:
            raise ConfigError(
                f"{checkpoints}: expected a number as to_lsn, found {found['to_lsn'][:80]!r}: the file was changed "
                "since the backup: take another one"
            )
        lsn = int(found.get("to_lsn", "0"))
    files = [*folder.glob("*/*.frm"), *folder.glob("*/*.ibd")]
    tables = frozenset(
        TableKey(_decoded(each.parent.name), _decoded(each.stem))
        for each in files
        if "#" not in each.stem and not each.stem.startswith("FTS_") and each.parent.name not in _SERVER
    )
    of_tool = _recorded(folder, _TIMES)
    facts = {} if of_tool is None else dict(_FACT.findall(of_tool[1]))
    times = CopyTimes.of(facts.get("start_time", ""), facts.get("end_time", ""))
    return CopyPlace(str(info), LogPosition(place[1], int(place[2])), gtids, lsn, tables, times=times)


def _recorded(folder: Path, names: Collection[str]) -> tuple[Path, str] | None:
    """The first of these files of a backup that is there, and its text. Raises ConfigError."""
    for name in names:
        try:
            with open_regular(folder / name) as file:
                text = file.read(_LARGEST + 1)
            if len(text) > _LARGEST:
                raise OSError(errno.EFBIG, f"it has more than {_LARGEST:,} bytes")
            return folder / name, text.decode()
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else f"expected UTF-8, found {exc.object[exc.start]:#04x}"
            raise ConfigError(
                f"{folder / name}: cannot be read: {why}; name a folder that this account may read and that the backup "
                "tool has written"
            ) from exc
    return None


def _decoded(name: str) -> str:
    return _ENCODED.sub(lambda found: chr(int(found[1], 16)), name)


def require_restored(
    recorded: CopyPlace, start: Start, source: Session, target: Session, includes: Callable[[str], bool]
) -> None:
    """Raises PrecheckError, which names all of it, if the target is not what ``recorded`` says, or has gone on since.

    ``start``: what the source's log says of the recorded place. ``includes``: whether the channel has a database.
    """
    wrong = [
        *_other_history(recorded, start, source),
        *_other_server(recorded, source, target),
        *_gone_on(recorded, source, target),
        *_lacks(recorded, target, includes),
        *_enabled_events(target, includes),
        *_prepared(target),
    ]
    if wrong:
        lines = "\n".join(f"  {each}" for each in wrong)
        raise PrecheckError(f"{recorded.where}: the channel cannot begin there; nothing was written:\n{lines}")


def _other_history(recorded: CopyPlace, start: Start, source: Session) -> list[str]:
    if recorded.gtid_set and not is_at(source.flavor, recorded.gtid_set, start.gtid_set):
        return [
            f"source: expected the GTID set {recorded.gtid_set} at {recorded.position}, found "
            f"{start.gtid_set or 'none'}: the copy is of another server, or the source's log was reset since"
        ]
    return []


def _other_server(recorded: CopyPlace, source: Session, target: Session) -> list[str]:
    wrong = []
    if source.flavor is not target.flavor:
        wrong.append(f"target: expected a server of the family {source.flavor}, found {target.flavor}")
    same = "SELECT CONCAT_WS(' ', @@hostname, @@port, @@datadir)"
    if source.texts(same) == target.texts(same):
        wrong.append("target: expected another server than the source, found the same one; correct the connections")
    elif target.flavor is Flavor.MYSQL and source.texts("SELECT @@server_uuid") == target.texts("SELECT @@server_uuid"):
        wrong.append(
            "target: expected a server UUID of its own, found the source's: stop it, remove auto.cnf, start it"
        )
    return [*wrong, *other_backup(recorded, target)]


def other_backup(recorded: CopyPlace, target: Session) -> list[str]:
    """Why the server may be that of an older backup, which has neither these GTIDs nor this redo log."""
    if recorded.is_of_target:
        return []
    if not recorded.lsn:
        return [
            "target: expected GTIDs or a redo log that tells this backup from another one, found that it has recorded "
            f"neither: copy {' or '.join(_CHECKPOINTS)} into its folder, which the tool has written there"
        ] * (not recorded.gtid_set)
    lsn = _redo_log(target)
    if lsn is None:
        return [
            "target: expected an account that sees the redo log (SHOW ENGINE INNODB STATUS), found none of the "
            "privilege PROCESS: grant it for this command"
        ]
    return [
        f"target: expected a redo log at {recorded.lsn} or later, found {lsn}: the server was not restored from this "
        "backup"
    ] * (lsn < recorded.lsn)


def _redo_log(target: Session) -> int | None:
    """The server's redo log position; None: the account may not see it."""
    name = "Innodb_lsn_current" if target.flavor is Flavor.MARIADB else "Innodb_redo_log_current_lsn"
    for _, lsn in target.texts(f"SHOW GLOBAL STATUS LIKE '{name}'"):
        return int(lsn)
    # MySQL before 8.0.30
    try:
        [(_, _, status)] = target.texts("SHOW ENGINE INNODB STATUS")
    except pymysql.err.MySQLError as exc:
        if exc.args[0] not in _DENIED:
            raise
        return None
    found = _SEQUENCE_NUMBER.search(status)
    return None if found is None else int(found[1])


def _gone_on(recorded: CopyPlace, source: Session, target: Session) -> list[str]:
    """Replication on the target, and changes of other servers since the copy."""
    if target.flavor is Flavor.MYSQL:
        return [*_replicates_mysql(target), *_gone_on_mysql(recorded, source, target)]
    return [*_replicates_mariadb(target), *_gone_on_mariadb(recorded, target)]


def _replicates_mysql(target: Session) -> list[str]:
    wrong = [
        _connected(f"{host}:{port}", f"RESET REPLICA ALL FOR CHANNEL {quoted(channel)}")
        for channel, host, port in target.texts(
            "SELECT channel_name, host, port FROM performance_schema.replication_connection_configuration "
            "WHERE host <> ''"
        )
    ]
    running = target.rows(
        "SELECT 1 FROM performance_schema.replication_applier_status WHERE service_state = 'ON' UNION ALL "
        "SELECT 1 FROM performance_schema.replication_connection_status WHERE service_state = 'ON'"
    )
    return wrong or ["target: expected no replication, found it running: STOP REPLICA; copy again"] * bool(running)


def _replicates_mariadb(target: Session) -> list[str]:
    try:
        found = target.named_rows("SHOW ALL SLAVES STATUS")
    except pymysql.err.MySQLError as exc:
        if exc.args[0] not in _DENIED:
            raise
        return [
            "target: expected an account that sees whether the server is a replica, found none of the privileges "
            "SLAVE MONITOR and SUPER: grant one of them for this command"
        ]
    names = "Master_Host", "Master_Port", "Connection_name"
    replicas = (((row[name] or b"").decode() for name in names) for row in found)
    return [_connected(f"{host}:{port}", f"RESET SLAVE {quoted(name)} ALL") for host, port, name in replicas]


def _prepared(target: Session) -> list[str]:
    """XA transactions that the source had prepared when it was copied: nothing in the log would end the copy's."""
    try:
        found = len(target.rows("XA RECOVER"))
    except pymysql.err.MySQLError as exc:
        if exc.args[0] not in _DENIED:
            raise
        return [
            "target: expected an account that sees prepared XA transactions, found none of the privilege "
            "XA_RECOVER_ADMIN: grant it for this command"
        ]
    return [
        f"target: expected no prepared XA transaction, found {found} (XA RECOVER): the copy holds their rows' locks. "
        "End each on the source, then in the same way here (XA COMMIT or XA ROLLBACK), and run again; the window that "
        "meets an XA COMMIT of the source names the command that records it (`binlane xa CHANNEL --done`)"
    ] * bool(found)


def _connected(source: str, statement: str) -> str:
    return (
        f"target: expected a server that is no replica, found a replica of {source}: copy again if it has replicated "
        f"since the copy; if it has not (the copied server is a replica itself), STOP REPLICA and {statement}"
    )


def _gone_on_mysql(recorded: CopyPlace, source: Session, target: Session) -> list[str]:
    known = recorded.gtid_set
    if not known and source.flavor is Flavor.MYSQL:
        # a log without GTIDs: the copy may hold those of a time when the source had them
        [(known,)] = source.texts("SELECT @@GLOBAL.gtid_executed")
    given = quoted("".join(known.split()))
    [(lost, more, own)] = target.texts(
        f"SELECT GTID_SUBTRACT({given}, @@GLOBAL.gtid_executed), GTID_SUBTRACT(@@GLOBAL.gtid_executed, {given}), "
        "@@server_uuid"
    )
    others = [each for each in "".join(more.split()).split(",") if each and not each.startswith(own)]
    wrong = []
    if recorded.gtid_set and lost:
        wrong.append(f"target: expected {recorded.gtid_set} in @@gtid_executed, found that it lacks {lost}")
    if others:
        wrong.append(f"target: expected no later transaction of another server, found {','.join(others)}; copy again")
    return wrong


def copied_gtids(recorded: CopyPlace, target: Session) -> str:
    """The transactions that the copy has, logged or not: what has put them in on MariaDB is copied with the data."""
    if target.flavor is Flavor.MYSQL:
        return recorded.gtid_set
    [(replicated,)] = target.texts("SELECT @@gtid_slave_pos")
    return replicated


def _gone_on_mariadb(recorded: CopyPlace, target: Session) -> list[str]:
    """By the newest GTID of each domain, from replication (``gtid_slave_pos``) and in the target's own log."""
    copied = {domain: number for domain, _, number in _gtids(recorded.gtid_set)}
    [(replicated, logged, own)] = target.texts("SELECT @@gtid_slave_pos, @@gtid_binlog_pos, @@server_id")
    found = [*_gtids(replicated), *(each for each in _gtids(logged) if each[1] != int(own))]
    later = sorted({f"{domain}-{server}-{n}" for domain, server, n in found if n > copied.get(domain, -1)})
    return [
        f"target: expected no transaction of another server behind {recorded.gtid_set or 'the copy'}, found "
        f"{','.join(later)} in gtid_slave_pos or gtid_binlog_pos: copy again; if gtid_slave_pos was copied with the "
        "data (the copied server is a replica itself), SET GLOBAL gtid_slave_pos = '' on the target"
    ] * bool(later)


def _gtids(text: str) -> list[tuple[int, int, int]]:
    """Domain, server and number of each GTID in a position of MariaDB."""
    parts = (each.split("-") for each in filter(None, "".join(text.split()).split(",")))
    return [(int(domain), int(server), int(number)) for domain, server, number in parts]


def _lacks(recorded: CopyPlace, target: Session, includes: Callable[[str], bool]) -> list[str]:
    rows = target.texts("SELECT table_schema, table_name FROM information_schema.tables")
    letters = LetterCase(target.texts("SELECT @@lower_case_table_names") != [("0",)])
    present = {letters.table(TableKey(database, name)) for database, name in rows}
    missing = sorted(
        str(each) for each in recorded.tables if includes(each.database) and letters.table(each) not in present
    )
    return [f"target: expected the backup's tables, found no {_named(missing)}"] if missing else []


def _enabled_events(target: Session, includes: Callable[[str], bool]) -> list[str]:
    """Events that would change the target by themselves, as they do on the source."""
    found = [each for each in running_events(target) if includes(each.database)]
    return [
        f"target: event {each}: expected disabled as on a replica; {each.altered(DISABLED)}" for each in found[:_SHOWN]
    ] + [f"target: and {len(found) - _SHOWN} more events"] * (len(found) > _SHOWN)


def _named(names: Collection[str]) -> str:
    shown = ", ".join(list(names)[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN:,} more"


def _require_family(target: Session, flavor: Flavor, option: str) -> None:
    if target.flavor is not flavor:
        raise ConfigError(f"{option}: expected a target of the family {flavor}, found {target.flavor}")
