"""A session's settings, by its kind (``sessions.pins``), and the proof that the server is the expected one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from pymysql import err
from pymysql.cursors import Cursor

from binlane.driver.login import LoginConnection
from binlane.errors import PrecheckError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, LogPosition
from binlane.sessions.pins import Server, SessionKind, assignments, changes, is_as_pinned, pins_of
from binlane.sessions.server_proof import NO_LOG, ServerProof, TargetProof, state_query

LEAST_PACKET: Final = 1 << 18
"""Bytes of a packet that a source must take."""
_UNKNOWN: Final = frozenset({1193, 1286})
"""A variable that the server does not have; a storage engine that it does not have (MariaDB, innodb = OFF)."""
NOT_SETTABLE: Final = _UNKNOWN | {1227, 1238}
"""And no privilege; read-only in this version."""
_IN_TRANSACTION: Final = 1766
"""MySQL: a variable that an open transaction protects; ``init_connect`` has begun it."""
_RESET_CONNECTION: Final = 0x1F
"""COM_RESET_CONNECTION: MySQL 5.7.3, MariaDB 10.2.4."""


@dataclass(frozen=True, slots=True)
class _Unset:
    """Pins that the sessions of one account cannot set."""

    unknown: frozenset[str] = frozenset()
    """Variables that this server does not have, or whose value it does not have."""
    refused: frozenset[str] = frozenset()
    """Variables that have to be as pinned already."""

    @property
    def names(self) -> frozenset[str]:
        return self.unknown | self.refused


_NOTHING: Final = _Unset()
_unset: Final[dict[tuple[object, ...], _Unset]] = {}
"""By server and account, as it was when somebody tried."""


class PinnedConnection(LoginConnection):
    """A session with the settings of its kind."""

    def __init__(
        self,
        *,
        kind: SessionKind = SessionKind.STATE,
        proof: ServerProof | TargetProof | None = None,
        **named: Any,
    ) -> None:
        """``kind``: decides the session's settings. ``proof``: what the server must be. The others: as
        ``LoginConnection``'s."""
        self.kind = kind
        self.proof = proof
        self._commits_itself = False
        super().__init__(**named)

    @property
    def flavor(self) -> Flavor:
        """The server's family, by the version in its handshake."""
        return self._server.flavor

    def set_character_set(self, charset: str, collation: str | None = None) -> None:
        """PyMySQL's first statement after the login: all of the session's settings, and the character set with them.

        Whatever ``init_connect`` did before is undone: its transaction, its temporary tables and its variables.
        """
        try:
            self._pin()
        except err.MySQLError as exc:
            if exc.args[0] != _IN_TRANSACTION:
                raise
            self._reset()
            self.prove()
            return
        # behind the settings, or one of them could hide the answer
        if self.prove("@@GLOBAL.init_connect"):
            self._reset()

    def _reset(self) -> None:
        with self.turn:
            self._execute_command(_RESET_CONNECTION, b"")
            self._read_ok_packet()  # type: ignore[attr-defined]
        self._pin()

    def autocommit(self, value: bool | None) -> None:
        """As PyMySQL's, which believes a flag of answers: MySQL has it on where the global value is OFF."""
        if bool(value) != self._commits_itself:
            self.query(f"SET autocommit = {int(bool(value))}")
            self._commits_itself = bool(value)
        self.autocommit_mode = value

    def use_as(self, kind: SessionKind) -> None:
        """Make the session one of another kind; its transaction goes on."""
        if kind is self.kind:
            return
        before, self.kind = self.kind, kind
        self._set(lambda without: changes(self._server, before, kind, without))

    def _pin(self) -> None:
        self._commits_itself = bool(self.autocommit_mode)
        login = (
            f"NAMES {self.charset} COLLATE {self.charset}_general_ci",
            f"autocommit = {int(self._commits_itself)}",
        )
        self._set(lambda without: (*login, *assignments(self._server, self.kind, without)))

    def _set(self, parts: Callable[[frozenset[str]], tuple[str, ...]]) -> None:
        """Set all ``parts`` by one statement, but what is known not to go: that has to be as pinned already."""
        unset = _unset.get(self._account, _NOTHING)
        try:
            self.query(f"SET {', '.join(parts(unset.names))}")
        except err.MySQLError as exc:
            if exc.args[0] not in NOT_SETTABLE:
                raise
            unset = self._set_each(parts(unset.unknown), unset.unknown)
            _unset[self._account] = unset
        if unset.refused:
            self._prove(unset.refused)

    def _set_each(self, parts: Iterable[str], unknown: frozenset[str]) -> _Unset:
        """Set each part by a statement of its own; returns the names of those that cannot be set."""
        refused: set[str] = set()
        for part in parts:
            try:
                self.query(f"SET {part}")
            except err.MySQLError as exc:
                if exc.args[0] not in NOT_SETTABLE:
                    raise
                name = part.partition(" ")[0].removeprefix("@@SESSION.")
                if exc.args[0] in _UNKNOWN:
                    unknown |= {name}
                else:
                    refused.add(name)
        return _Unset(unknown, frozenset(refused) | (_unset.get(self._account, _NOTHING).refused))

    def _prove(self, refused: Iterable[str]) -> None:
        names = ", ".join(f"'{name}'" for name in sorted(refused))
        rows = self._texts(f"SHOW SESSION VARIABLES WHERE variable_name IN ({names})")
        found = {name.lower(): value for name, value in rows}
        for pin in pins_of(self._server, self.kind):
            if pin.name in found and not is_as_pinned(pin, self.flavor, self.kind, found[pin.name]):
                _unset.pop(self._account, None)
                value = pin.value_of(self.flavor, self.kind)
                raise PrecheckError(
                    f"{self._place}: expected {pin.name} = {value} in binlane's session ({pin.reason}), found "
                    f"{found[pin.name]!r}, which this account may not change: SET GLOBAL {pin.name} = {value} on the "
                    "server, or give the account the privilege to change it (MySQL: SESSION_VARIABLES_ADMIN; MariaDB: "
                    "SUPER)"
                )

    @property
    def _unsettable(self) -> frozenset[str]:
        """Settings that this account's sessions cannot make, or that the server does not have."""
        return _unset.get(self._account, _NOTHING).names

    @property
    def _server(self) -> Server:
        return Server.of(str(self.get_server_info()))  # type: ignore[no-untyped-call]

    @property
    def _account(self) -> tuple[object, ...]:
        return (self.host, self.port, self.user, self._server)

    def prove(self, besides: str = "''") -> str:
        """Ask the server whether it is the one that ``proof`` names; returns the value of ``besides``, an expression.

        Raises SourceIdentityError if it is another one, or one from before the watermark; TargetIdentityError for
        another target.
        """
        proof = self.proof
        columns, arguments = ("''", ()) if proof is None else proof.query(self.flavor)
        settings = "@@SESSION.max_allowed_packet, @@GLOBAL.log_bin"
        [values] = self._texts(f"SELECT {besides}, {settings}, {columns}", arguments)
        if proof is not None:
            if isinstance(proof, ServerProof) and values[2] != "1":
                raise PrecheckError(f"{self._place}: {NO_LOG}")
            if isinstance(proof, ServerProof) and int(values[1]) < LEAST_PACKET:
                raise PrecheckError(
                    f"{self._place}: expected max_allowed_packet of at least {LEAST_PACKET}, for statements that name "
                    f"many tables, found {values[1]}, with which the server ends the connection: SET GLOBAL "
                    "max_allowed_packet = 67108864 on the source"
                )
            why = proof.refusal(self.flavor, values[3:])
            if why is None and isinstance(proof, ServerProof) and proof.position is not None and not proof.gtid_set:
                why = proof.refused_end(self._log_end())
            if why is not None:
                raise proof.error(self._place, why)
        return values[0]

    def own_proof(self) -> ServerProof:
        """What every later connection must find to reach this server, no earlier than now."""
        [values] = self._texts(f"SELECT {state_query(self.flavor)}")
        try:
            end = self._log_end()
        except err.OperationalError:  # whoever reads the log says what privilege the account lacks
            end = LogPosition("", 0)
        return ServerProof.of(self.flavor, values, end if end.file else None)

    def _log_end(self) -> LogPosition:
        try:
            rows = self._texts("SHOW BINARY LOG STATUS")
        except err.ProgrammingError:
            rows = self._texts("SHOW MASTER STATUS")
        return LogPosition(rows[0][0], int(rows[0][1])) if rows else LogPosition("", 0)

    def _texts(self, query: str, arguments: tuple[str, ...] = ()) -> list[list[str]]:
        with self.cursor(Cursor) as cursor:
            cursor.execute(query, arguments or None)
            return [["" if value is None else text_of(value) for value in row] for row in cursor.fetchall()]


def text_of(value: object) -> str:
    """A value of a connection with or without conversions."""
    return value.decode() if isinstance(value, bytes) else str(value)
