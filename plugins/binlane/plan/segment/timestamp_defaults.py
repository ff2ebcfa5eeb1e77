"""Which transactions are of sessions that MySQL's log last shows with ``explicit_defaults_for_timestamp = OFF``.

With OFF, NULL for a TIMESTAMP that must not be NULL is the current time; with ON it is an error, or 0 and a warning.
MySQL logs the variable with definitions that name the type TIMESTAMP, not with the statements that it means something
to, so what a session had at an INSERT is not in the log. No session can change it inside a transaction, a function or a
trigger (tried on MySQL 9.7: 1766, 1765): all statements of a transaction have had the same value.

A session may have changed the value since it was logged, so this alone decides nothing: ``apply.session.unlogged_null``
has the proof. It keeps a column that must not be NULL on the target alone from being taken for one.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from dataclasses import field
from typing import Final

from binlane.binlog.events import ExecuteLoadQuery, Query, parse_body
from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import Ending, Transaction, transactions
from binlane.binlog.wire import Buffer, EventType
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.plan.manifest import Segment
from binlane.plan.transaction.temporary_tables import Session

_STATEMENTS: Final = frozenset({EventType.QUERY, EventType.EXECUTE_LOAD_QUERY})
_XA: Final = frozenset({Ending.XA_PREPARE, Ending.XA_COMMIT, Ending.XA_ROLLBACK})
"""The changes of such a transaction are applied at its XA COMMIT, which any session may run."""


@dataclass(slots=True)
class TimestampDefaults:
    """The transactions of such sessions. ``take`` each of a window's segments, in order."""

    _off: dict[Session, bool] = field(default_factory=dict)
    """Whether a session's last logged value is OFF."""
    _seqnos: array[int] = field(default_factory=lambda: array("q"))
    _file: str = ""

    def take(self, data: Buffer, segment: Segment) -> None:
        """Read a segment. Raises BinlogError for a damaged one."""
        if segment.flavor is not Flavor.MYSQL:
            return
        reader = LogReader(data, segment.source_file, verify=False)
        if segment.source_file != self._file:
            # a source that was started anew, which begins a file, gives its sessions the numbers of earlier ones
            self._off.clear()
            self._file = segment.source_file
        for seqno, transaction in enumerate(transactions(reader), segment.first_seqno):
            if self._is_off(transaction, reader) and transaction.ending not in _XA:
                self._seqnos.append(seqno)

    def among(self, first: int, last: int) -> bool:
        """Whether one of the transactions ``first`` to ``last`` is of a session whose last logged value is OFF."""
        at = bisect_left(self._seqnos, first)
        return at < len(self._seqnos) and self._seqnos[at] <= last

    def _is_off(self, transaction: Transaction, reader: LogReader) -> bool:
        """Note the values that the transaction logs; returns whether its session has OFF."""
        is_off = False
        for event in transaction.events:
            if event.header.type_code not in _STATEMENTS:
                continue
            found = parse_body(event, reader.format, reader.name)
            query = found.query if isinstance(found, ExecuteLoadQuery) else found
            assert isinstance(query, Query)
            session = (event.header.server_id, query.thread_id)
            if query.context.explicit_defaults_for_timestamp is not None:
                self._off[session] = not query.context.explicit_defaults_for_timestamp
            is_off = self._off.get(session, False)
        return is_off
