"""Does the target take the source's tables? Each definition is created there once, empty, and dropped again.

What a server refuses depends on its settings, its files and its version (1118, 1709, 3510 ...): it alone can say. The
tables are created one after another in the schema ``binlane``, where the account needs the privileges anyway, and under
a name that no other table has. Equal definitions are created once. Foreign keys are left out: they would refer to other
tables of that schema, and a first copy creates them without a look at the other table.
"""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import pymysql

from binlane.activity import doing
from binlane.apply.session.retry_verdicts import Verdict, error_code, error_text, judge
from binlane.bootstrap.definition_copy import Definition
from binlane.bootstrap.kept_sessions import take_lease
from binlane.bootstrap.sessions import Session
from binlane.lazy_dataclass import dataclass
from binlane.model import SchemaObject
from binlane.servers.names import is_named
from binlane.state.carried.temporary_tables import REHEARSAL
from binlane.state.tables import SCHEMA

_DENIED: Final = frozenset({1044, 1142, 1227})
_LOCK: Final = "binlane:rehearsal"
_LOCK_SECONDS: Final = 60
_NAME: Final = re.compile(rb"^(CREATE (?:TABLE|SEQUENCE) )`(?:[^`]|``)+`")
_FOREIGN_KEY: Final = re.compile(rb",\n  CONSTRAINT `(?:[^`]|``)+` FOREIGN KEY [^\n]*?(?=,?\n)")
READ_ONLY: Final = 1036
_COMPRESSED: Final = re.compile(rb" ROW_FORMAT=COMPRESSED\b| KEY_BLOCK_SIZE=")
_READS_ONLY: Final = "SHOW GLOBAL VARIABLES LIKE 'innodb\\_read\\_only\\_compressed'"
_COMPRESSED_ROWS: Final = "SELECT @@GLOBAL.innodb_read_only_compressed"
OLD_FORMAT: Final = 1677
"""ER_SLAVE_CONVERSION_FAILED, which a replica would say of the rows."""
_TEMPORAL: Final = re.compile(rb"^  `(?:[^`]|``)+` (?:time|datetime|timestamp)\b.*$", re.MULTILINE)
_OLDER: Final = b" /* mariadb-5.3 */"
"""Behind the type of a column in the older format, as MariaDB shows it."""
_MAKES_OLD: Final = "SHOW GLOBAL VARIABLES WHERE variable_name = 'mysql56_temporal_format' AND value = 'OFF'"
_UNKNOWN_TABLE: Final = 1146
_NO_TABLE: Final = re.compile(r"Table '(.+)' doesn't exist")
_NUMBERS: Final = re.compile(rb" AUTO_INCREMENT=\d+")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Definitions that the target does not take, and what it says of them."""

    objects: tuple[SchemaObject, ...]
    code: int
    text: str


def rehearse(writer: Session, definitions: Iterable[Definition]) -> Iterator[Refusal]:
    """What the target refuses of these tables and sequences. Raises the driver's errors of anything else."""
    distinct: Mapping[bytes, list[SchemaObject]] = defaultdict(list)
    sequences = set[str]()
    for definition in definitions:
        obj = definition.schema_object
        distinct[_renamed(definition.statement)].append(obj)
        if obj.kind == "sequence":
            sequences.add(f"{obj.database}.{obj.name}")
    if not distinct:
        return
    is_read_only = bool(writer.texts(_READS_ONLY)) and writer.texts(_COMPRESSED_ROWS) == [("1",)]
    makes_old = bool(writer.texts(_MAKES_OLD))
    with _schema(writer), doing("definitions, each created once", len(distinct)) as activity:
        for statement, objects in distinct.items():
            activity.done += 1
            kind = "SEQUENCE" if objects[0].kind == "sequence" else "TABLE"
            writer.execute(f"DROP {kind} IF EXISTS {REHEARSAL}")
            try:
                writer.execute(statement)
            except pymysql.err.MySQLError as exc:
                if judge(exc) is Verdict.RETRY:
                    raise
                lacking = _NO_TABLE.search(error_text(exc)) if error_code(exc) == _UNKNOWN_TABLE else None
                # a DEFAULT may take the next value of a sequence, which is copied before the tables
                if lacking is None or lacking[1] not in sequences:
                    yield Refusal(tuple(objects), error_code(exc), error_text(exc))
            else:
                writer.execute(f"DROP {kind} {REHEARSAL}")
                if is_read_only and _COMPRESSED.search(statement):
                    yield Refusal(tuple(objects), READ_ONLY, "innodb_read_only_compressed = ON: it takes no rows")
                if makes_old and any(_OLDER not in line[0] for line in _TEMPORAL.finditer(statement)):
                    yield Refusal(tuple(objects), OLD_FORMAT, "mysql56_temporal_format = OFF: it makes an older format")


def _renamed(statement: bytes) -> bytes:
    return _NUMBERS.sub(b"", _FOREIGN_KEY.sub(b"", _NAME.sub(rb"\1`" + REHEARSAL.encode() + b"`", statement)))


@contextlib.contextmanager
def _schema(writer: Session) -> Iterator[None]:
    """The schema ``binlane`` as the session's default database; it is dropped again if it was not there.

    Where the account may, all of it stays out of the server's log: a DROP DATABASE must not reach a replica, which may
    have a schema of this name with a state of its own. Where it may not, a new schema stays, empty.
    """
    take_lease(writer, _LOCK, _LOCK_SECONDS, "target: another `binlane doctor` or `bootstrap` asks it")
    is_unlogged = True
    try:
        writer.execute("SET SESSION sql_log_bin = 0")
    except pymysql.err.MySQLError as exc:
        if error_code(exc) not in _DENIED:
            raise
        is_unlogged = False
    present = {name for (name,) in writer.texts("SELECT schema_name FROM information_schema.schemata")}
    if SCHEMA not in present:
        writer.execute(f"CREATE DATABASE IF NOT EXISTS {SCHEMA} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    writer.execute(f"USE {SCHEMA}")
    try:
        yield
    finally:
        if is_unlogged and SCHEMA not in present and not writer.texts(_TABLES):
            writer.execute(f"DROP DATABASE {SCHEMA}")


_OURS: Final = is_named("table_schema", f"'{SCHEMA}'")
_TABLES: Final = f"SELECT table_name FROM information_schema.tables WHERE {_OURS}"
