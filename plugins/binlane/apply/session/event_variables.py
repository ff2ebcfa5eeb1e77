"""Events for MariaDB's ``BINLOG @a, @b``: sent as a value of the binary protocol, which no parser reads.

The parser of a server reads a BINLOG statement's literal byte by byte, and asks the session's character set about each
of them: a sixth of the CPU that MariaDB 10.11 spent on wide rows (docs/decisions/0017). MariaDB joins two user
variables to what it would have read, and empties them, whether it accepts the events or not. So an error in between
leaves nothing that could be applied twice: a BINLOG statement of empty variables fails with 1149.

PyMySQL has no prepared statements of the server. MariaDB's documentation describes the packets, COM_STMT_PREPARE and
COM_STMT_EXECUTE ("Client/Server Protocol").
"""

from __future__ import annotations

import struct
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from pymysql import err
from pymysql.constants import ER

from binlane.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

BINLOG_OF_VARIABLES: Final = b"BINLOG @binlane_events_1, @binlane_events_2"
"""Executes the events that ``store`` has sent."""
_SET: Final = b"SET @binlane_events_1 = ?, @binlane_events_2 = ''"
_PREPARE: Final = 0x16
_EXECUTE: Final = 0x17
_HEAD: Final = struct.Struct("<xI4x")
"""Of the answer to COM_STMT_PREPARE: the statement's id, then its columns and parameters."""
_TYPED_VALUE: Final = struct.Struct("<IBIBBHBQ")
"""Id, flags, iterations, NULL bits, whether types follow, the type, then the length of the value."""
_LONG_BLOB: Final = 0xFB
_LENGTH_OF_8_BYTES: Final = 0xFE
_SECONDS_A_BYTE: Final = 2e-9
"""CPU of the server for a byte of a literal, without its decoding: 0.27 s for 137 MB on a 2.5 GHz AMD EPYC."""


@dataclass(slots=True)
class EventVariables:
    """Stores events in user variables of one session."""

    connection: Connection[Cursor]
    _statement: int | None = None
    _is_refused: bool = False

    @staticmethod
    def are_worth_it(length: int, round_trip: float) -> bool:
        """Whether the server's parser would need more time for a literal of ``length`` bytes than storing takes: one
        more round trip, of so many seconds."""
        return length * _SECONDS_A_BYTE > round_trip

    def store(self, encoded: bytes, largest: int) -> bool:
        """Store events as base64 for ``BINLOG_OF_VARIABLES``. False, and nothing is stored, if they need a packet of
        more than ``largest`` bytes, or if the server has as many prepared statements as it allows.

        Raises the driver's errors.
        """
        if _TYPED_VALUE.size + len(encoded) + 1 > largest or not self._is_prepared():
            return False
        head = _TYPED_VALUE.pack(self._statement, 0, 1, 0, 1, _LONG_BLOB, _LENGTH_OF_8_BYTES, len(encoded))
        with self._turn:
            self._command(_EXECUTE, head + encoded)
        return True

    def _is_prepared(self) -> bool:
        if self._statement is None and not self._is_refused:
            try:
                with self._turn:
                    answer = self._command(_PREPARE, _SET)
                    # the parameter's description and what ends it
                    self._packet()
                    self._packet()
            except err.MySQLError as exc:
                if exc.args[0] != ER.MAX_PREPARED_STMT_COUNT_REACHED:
                    raise
                self._is_refused = True
                return False
            (self._statement,) = _HEAD.unpack_from(answer)
        return self._statement is not None

    @property
    def _turn(self) -> AbstractContextManager[None]:
        connection: Any = self.connection
        turn: AbstractContextManager[None] = connection.turn
        return turn

    def _command(self, command: int, data: bytes) -> bytes:
        connection: Any = self.connection
        connection._execute_command(command, data)
        return self._packet()

    def _packet(self) -> bytes:
        connection: Any = self.connection
        # raises for an error packet
        data: bytes = connection._read_packet().get_all_data()
        return data
