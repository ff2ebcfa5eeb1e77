"""Stored generated columns of a first copy: no statement can set them, so the target computes them, and the result is
compared.

A server computes such a column when a row is written, in the sql_mode and the time zone of that session, and then keeps
the value. The target computes all rows of a chunk in one mode, so the chunk's values are compared with the source's
before they commit; where they differ, the chunk is written again in the other modes that a source usually has. A chunk
that is equal in none of them is refused by name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pymysql

from binlane.binlog.types.literals import identifier, quoted
from binlane.bootstrap.sessions import Session
from binlane.errors import ApplyError
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.schema.model import Column, Generated, Table
from binlane.sessions.pins import WRITE_MODE
from binlane.sql.sql_modes import EVALUATED
from binlane.verify.rows.column_text import ComparedTable, shown_columns

_SAVEPOINT: Final = "binlane_chunk"
_PLAIN: Final = "NO_AUTO_VALUE_ON_ZERO"
"""Without ALLOW_INVALID_DATES, which gives an expression a date that sessions rarely get."""
_IN_MODES: Final = frozenset(EVALUATED.values()) | {"ERROR_FOR_DIVISION_BY_ZERO", "TIME_ROUND_FRACTIONAL"}
"""Modes of the source's global value that may change what an expression gives. No strict mode: rows that sessions
without it have written would be refused."""


@dataclass(frozen=True, slots=True)
class RowCopy:
    """Rows that are read from the source and written to the target, and where they are then."""

    reader: Session
    writer: Session
    table: Table
    ours: str
    """The condition for them on the source; empty: all."""
    theirs: str
    """On the target."""
    key: tuple[Column, ...] = ()

    def differing(self, *, whole: bool) -> tuple[str, ...]:
        """The computed columns whose values differ; ``whole``: of all columns. The number of rows counts, too."""
        shown = shown_columns(self.table)
        columns = tuple(one for one in shown if whole or one in self.key or one.generated is Generated.STORED)
        if self._is_equal(columns):
            return ()
        single = (one for one in columns if one not in self.key and not self._is_equal((*self.key, one)))
        return tuple(one.name for one in single) or ("the number of rows",)

    def _is_equal(self, columns: tuple[Column, ...]) -> bool:
        sides = (self.reader, self.ours), (self.writer, self.theirs)
        flavors = self.reader.flavor, self.writer.flavor
        values = ComparedTable(self.table.key, self.table.key, columns, self.key, flavors).expressions
        # equal rows, which a table without a key may have, would cancel each other
        how = "BIT_XOR" if self.key else "SUM"
        one = ", ".join(f"IFNULL({each}, 'NULL')" for each in values)
        number = f"CAST(CONV(LEFT(SHA2(CONCAT_WS(',', {one}), 256), 16), 16, 10) AS UNSIGNED)"
        query = f"SELECT COUNT(*), COALESCE({how}({number}), 0) FROM {_name(self.table.key)}"
        found = [side.rows(f"{query} WHERE {where}" if where else query) for side, where in sides]
        return found[0] == found[1]


def has_stored(table: Table) -> bool:
    """Whether the target computes and keeps a value of this table's rows."""
    return any(column.generated is Generated.STORED for column in table.columns)


def written_exactly(rows: RowCopy, write: Callable[[list[str]], int]) -> int:
    """Write the rows in the open transaction, in the first mode in which the target computes the source's values; the
    result of ``write``. It is given a list for warnings of the target that would be errors in other tables.

    Raises ApplyError if no mode does.
    """
    writer, differing, doubts = rows.writer, tuple[str, ...](), list[str]()
    writer.execute(f"SAVEPOINT {_SAVEPOINT}")
    for mode in _modes(rows.reader):
        warnings: list[str] = []
        writer.execute(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
        with _in_mode(writer, mode):
            found = write(warnings)
        now = rows.differing(whole=bool(warnings))
        if not now:
            return found
        differing, doubts = differing or now, doubts or warnings
    raise not_computed(rows.table, differing, doubts)


def not_computed(table: Table, columns: tuple[str, ...], warnings: Sequence[str]) -> ApplyError:
    """The error for columns whose values differ, with the target's first warning."""
    names, said = ", ".join(columns), f" (it says: {warnings[0]})" if warnings else ""
    return ApplyError(
        f"{table.key}: column {names}: the target computes other values than the source has stored{said}: a session of "
        "the source has computed them in a sql_mode or time zone of its own. Drop the column on the source and add it "
        "again, which computes all rows alike, leave the database out with --databases, or load a physical backup of "
        'the server instead (docs/bootstrap.md, "By the servers\' own tools")'
    )


def _modes(reader: Session) -> Iterator[str]:
    yield WRITE_MODE
    yield _PLAIN
    usual = reader.texts("SELECT @@GLOBAL.sql_mode")[0][0].split(",")
    if named := [mode for mode in usual if mode in _IN_MODES]:
        yield ",".join((_PLAIN, *named))


@contextlib.contextmanager
def _in_mode(writer: Session, mode: str) -> Iterator[None]:
    if mode == WRITE_MODE:
        yield
        return
    writer.execute(f"SET SESSION sql_mode = {quoted(mode)}")
    try:
        yield
    except BaseException:
        # a lost connection cannot be set back, and the error must be the one that it was lost with
        with contextlib.suppress(pymysql.err.MySQLError):
            writer.execute(f"SET SESSION sql_mode = '{WRITE_MODE}'")
        raise
    writer.execute(f"SET SESSION sql_mode = '{WRITE_MODE}'")


def _name(table: TableKey) -> str:
    return f"{identifier(table.database)}.{identifier(table.table)}"
