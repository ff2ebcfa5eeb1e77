"""Who gets a password: TLS, the server's keys, plugins for authentication, and what a refused login means."""

from __future__ import annotations

import functools
import ipaddress
import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pymysql import err
from pymysql.constants import CR

from binlane.driver.wire import UNREADABLE, WHOLE_LOGIN, LateError, WireConnection
from binlane.errors import ConfigError, PrecheckError

_IN_CLEAR: Final = frozenset({b"mysql_clear_password", b"dialog"})
_OLD_PASSWORD: Final = b"mysql_old_password"
_LOGIN_REFUSED: Final = frozenset({1045, 1130, 1698, 3118, 3955, 4151})
_INIT_CONNECT_FAILED: Final = 1184
_PEM: Final = {"ca": "ssl_ca", "cert": "ssl_cert", "key": "ssl_key"}
_log = logging.getLogger(__name__)


class LoginRefusedError(err.OperationalError):
    """The server refused the login: a wrong account or password, a host that may not connect, a locked account.

    Servers have the same numbers for privileges that are missing later.
    """


class LoginConnection(WireConnection):
    """A connection that sends its password only where nobody but the server can read it.

    TLS without verification shares one context a process: PyMySQL would create one for each connection and load all
    certificate authorities of the machine into it, which takes 0.1 s of CPU.
    """

    def __init__(
        self,
        *,
        password: str | bytes = "",
        public_key_file: str | None = None,
        get_server_public_key: bool = False,
        **named: Any,
    ) -> None:
        """``public_key_file``: PEM file of the server's RSA key; ``get_server_public_key``: accept the key that the
        server sends. The others: as ``WireConnection``'s and PyMySQL's."""
        self._has_key_file = public_key_file is not None
        self._takes_key = get_server_public_key
        if public_key_file is not None:
            named["server_public_key"] = _file(public_key_file, "server_public_key")
        # servers compare the password's bytes, which are utf8mb4 from CREATE USER; PyMySQL would send latin-1
        secret = password.encode() if isinstance(password, str) else password
        super().__init__(password=secret, **named)

    def connect(self, sock: Any = None) -> None:
        """As PyMySQL's. Raises ConfigError, which is not retried, for a certificate that does not verify."""
        try:
            super().connect(sock)
        except err.OperationalError as exc:
            cause = getattr(exc, "original_exception", None)
            if isinstance(cause, ssl.SSLCertVerificationError):
                raise ConfigError(
                    f"{self._place}: the server's certificate does not verify: {cause.verify_message}; compare "
                    "ssl_ca and host of the connection with the certificate, and check that ssl_mode is the "
                    "intended one"
                ) from exc
            if exc.args[0] == CR.CR_SERVER_LOST and isinstance(exc.__context__, LateError):
                raise err.OperationalError(
                    CR.CR_SERVER_LOST,
                    f"the server has not answered the whole login within {WHOLE_LOGIN * self._greeting_seconds:g} s: "
                    "it is overloaded, or it is no MySQL or MariaDB server; look at host and port of the connection",
                ) from exc
            if exc.args[0] == CR.CR_SERVER_LOST and isinstance(exc.__context__, TimeoutError):
                raise err.OperationalError(
                    CR.CR_SERVER_LOST,
                    f"the server accepts connections and sends nothing for {self._greeting_seconds:g} s: it is "
                    "frozen or overloaded",
                ) from exc
            if exc.args[0] in _LOGIN_REFUSED:
                raise LoginRefusedError(*exc.args) from exc
            if exc.args[0] == _INIT_CONNECT_FAILED:
                raise PrecheckError(
                    f"{self._place}: expected a session, found that the server ends it: init_connect, which the server "
                    f"runs for accounts without administrator's privileges, fails ({exc.args[1]}): mend it there, or "
                    "GRANT CONNECTION_ADMIN (MariaDB: CONNECTION ADMIN) ON *.* to the account, for which it does not "
                    "run"
                ) from exc
            raise
        except UNREADABLE as exc:
            self._force_close()  # type: ignore[attr-defined]
            raise err.OperationalError(
                CR.CR_SERVER_HANDSHAKE_ERR,
                f"the server's answer to the login cannot be read ({exc}): it is no MySQL or MariaDB server, or a "
                "program between changes what it says; look at host and port of the connection",
            ) from exc
        if not self._secure and not _is_loopback(self._sock):
            _warn_in_clear(self._place)

    def _create_ssl_ctx(self, sslp: Mapping[str, Any]) -> ssl.SSLContext:
        if not sslp:
            return _unverified()
        for part, extra in _PEM.items():
            if (name := sslp.get(part)) is not None:
                _file(name, extra)
        try:
            context: ssl.SSLContext = super()._create_ssl_ctx(sslp)  # type: ignore[misc]  # the stubs leave it out
        except ssl.SSLError as exc:
            files = ", ".join(f"{extra} {sslp[part]}" for part, extra in _PEM.items() if sslp.get(part) is not None)
            raise ConfigError(f"{files}: expected PEM, and the key that belongs to the certificate: {exc}") from exc
        if sslp.get("check_hostname") and context.verify_mode is ssl.CERT_REQUIRED:
            # PyMySQL does not check the host name with the machine's own certificate authorities
            context.check_hostname = True
        return context

    @property
    def server_public_key(self) -> bytes | None:
        """The RSA key that encrypts the password on an unencrypted connection; None: no key yet."""
        return self._public_key

    @server_public_key.setter
    def server_public_key(self, key: bytes | None) -> None:
        # PyMySQL sets the attribute at its start, and to every key that a server sends
        if self._closed or self._sock is None:
            self._public_key = key
        elif not self._takes_key and not self._has_key_file:
            raise ConfigError(
                f"{self._place}: the connection is not encrypted, and the server requests the password encrypted "
                "by an RSA key that it has just sent, which an attacker on the network can replace: enable TLS "
                "on the server (ssl_mode=required, better verify_identity), or name the server's key (extra "
                "server_public_key: a PEM file), or accept the risk (extra get_server_public_key: true)"
            )
        elif not self._has_key_file:
            self._public_key = key

    def _process_auth(self, plugin_name: bytes, auth_packet: Any, handler: Any = None) -> Any:
        if plugin_name in _IN_CLEAR and not self._secure:
            raise ConfigError(
                f"{self._place}: the server requests the password in clear text ({plugin_name.decode()}) over a "
                "connection that is not encrypted: enable TLS on the server (ssl_mode=required, better "
                "verify_identity), or use another authentication plugin for the account"
            )
        if plugin_name == _OLD_PASSWORD:
            raise ConfigError(
                f"{self._place}: the server asks for the password by mysql_old_password, whose hash is as good as the "
                "password itself, and which no server since MySQL 5.7 and MariaDB 10.4 needs: set the account's "
                "password again with mysql_native_password or a newer plugin; if its plugin is another one, this is "
                "not the server"
            )
        return super()._process_auth(plugin_name, auth_packet, handler)  # type: ignore[misc]


def _file(name: str, extra: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as exc:
        raise ConfigError(f"extra {extra} of the connection: {name}: {exc.strerror}") from exc


def _is_loopback(peer: Any) -> bool:
    address = peer.getpeername()
    return not isinstance(address, tuple) or ipaddress.ip_address(address[0].partition("%")[0]).is_loopback


@functools.cache
def _warn_in_clear(place: str) -> None:
    """Warn once for each process and account."""
    _log.warning(
        "%s: the connection is not encrypted: an eavesdropper can read all rows, and an attacker who changes "
        "packets can take over the connection; enable TLS on the server and set ssl_mode=verify_identity "
        "(docs/security.md#connections)",
        place,
    )


@functools.cache
def _unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
