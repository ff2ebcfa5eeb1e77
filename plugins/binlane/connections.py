"""The servers' addresses and accounts: Airflow's connections, read with or without Airflow.

Outside Airflow a connection comes from the environment, in Airflow's own format: ``AIRFLOW_CONN_<ID>`` holds a URI
(``mysql://user:password@host:port/?ssl_mode=required``) or JSON (``{"conn_type": "mysql", "host": ...}``):
https://airflow.apache.org/docs/apache-airflow/stable/howto/connection.html
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass
from binlane.sessions.server_proof import ServerProof, TargetProof

if TYPE_CHECKING:
    from binlane.config import ChannelConfig

PREFIX: Final = "AIRFLOW_CONN_"
CONNECTION_TYPES: Final = ("mysql", "mariadb")
DEFAULT_PORT: Final = 3306
SSL_MODES: Final = ("disabled", "preferred", "required", "verify_ca", "verify_identity")
_KNOWN: Final = ("ssl_mode", "ssl_ca", "ssl_cert", "ssl_key", "ssl", "server_public_key", "get_server_public_key")
_OF_AIRFLOW: Final = frozenset({"charset", "cursor", "local_infile", "client"})
"""Keys of Airflow's MySQL hook without influence on binlane's connections; ignored."""
_PARTS: Final = ("ca", "cert", "key")
"""Keys of the extra ``ssl``."""
_WORD: Final = re.compile(r"[a-z]{0,12}(_[a-z]{1,12}){0,4}")
WITH_TLS: Final = (
    "where the account (REQUIRE SSL) or the server (require_secure_transport) takes TLS alone, let the connection have "
    "ssl_mode=required"
)
_WITHOUT_TLS: Final = 3159
"""MySQL's error for a connection that require_secure_transport refuses; MariaDB's is that of a wrong password."""
_ACCOUNT_LOCKED: Final = frozenset({3118, 4151})
"""MySQL's and MariaDB's numbers."""
_PASSWORD_EXPIRED: Final = frozenset({1820, 1862})
_SPENT: Final = 1226
"""A limit of the account, of its connections or of its work in an hour."""
_LIMIT: Final = re.compile(r"User '(?P<user>[^']*)' has exceeded the '(?P<limit>\w+)' resource")
_LIMITS: Final[Mapping[str, str]] = {
    "max_connections_per_hour": "MAX_CONNECTIONS_PER_HOUR",
    "max_questions": "MAX_QUERIES_PER_HOUR",
    "max_queries_per_hour": "MAX_QUERIES_PER_HOUR",
    "max_updates": "MAX_UPDATES_PER_HOUR",
    "max_updates_per_hour": "MAX_UPDATES_PER_HOUR",
}
"""The option of ALTER USER, by a server's word; MAX_USER_CONNECTIONS for any other."""
_YES: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def login_advice(code: int, said: str) -> str:
    """The next step where a server refuses an account's connection or statement for the account's limits, its lock or
    the age of its password, or for want of TLS; empty for all other errors. ``said``: the server's text."""
    if code in _ACCOUNT_LOCKED:
        return "ALTER USER the account ACCOUNT UNLOCK there, then run again"
    if code in _PASSWORD_EXPIRED:
        return (
            "the password has expired: ALTER USER the account PASSWORD EXPIRE NEVER there, or give it a new one there "
            "and in the connection, then run again"
        )
    if code == _WITHOUT_TLS:
        return WITH_TLS
    if code != _SPENT:
        return ""
    found = _LIMIT.search(said)
    option = _LIMITS.get(found["limit"].lower(), "") if found else ""
    account = "the account" if found is None else f"'{found['user']}'@HOST"
    return (
        f"it is a limit of the account, not of the server: ALTER USER {account} WITH "
        f"{option or 'MAX_USER_CONNECTIONS'} 0 (none) there, or give the channel an account without limits, then run "
        "again"
    )


@dataclass(frozen=True, slots=True)
class Tls:
    """The connection's TLS settings; modes as in MySQL's ``--ssl-mode``, files in PEM."""

    mode: str = "preferred"
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    public_key: str | None = None
    """File with the server's RSA key, which encrypts the password on an unencrypted connection."""
    get_public_key: bool = False
    """Accept the RSA key that the server sends, without authentication."""

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of ``driver.Connection``; without any, TLS is used only if the server offers it."""
        keys = {"public_key_file": self.public_key} if self.public_key is not None else {}
        return {**self._encryption(), **keys, **({"get_server_public_key": True} if self.get_public_key else {})}

    def _encryption(self) -> dict[str, Any]:
        if self.mode == "disabled":
            return {"ssl_disabled": True}
        if self.mode == "preferred":
            return {}
        files = {name: file for name in ("ca", "cert", "key") if (file := getattr(self, name)) is not None}
        verified = self.mode in ("verify_ca", "verify_identity")
        return {"ssl": {**files, "verify_mode": verified, "check_hostname": self.mode == "verify_identity"}}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server and its account. ``repr`` and ``str`` do not show the password."""

    name: str
    """The connection's id; for messages."""
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    tls: Tls = field(default_factory=Tls)
    proof: ServerProof | TargetProof | None = field(default=None, repr=False)
    """What each of its connections must find; None: a server of which nothing is known yet."""

    def __str__(self) -> str:
        return f"{self.name} ({self.user}@{self.host}:{self.port})"

    def pymysql_arguments(self) -> dict[str, Any]:
        """Keyword arguments of ``pymysql.connect``: place, account, TLS and ``charset``."""
        place = {"host": self.host, "port": self.port, "user": self.user, "password": self.password}
        return {**place, "charset": "utf8mb4", **self.driver_arguments()}

    def driver_arguments(self) -> dict[str, Any]:
        """Those of ``driver.Connection`` that a URL does not hold."""
        return {**self.tls.arguments(), **({} if self.proof is None else {"proof": self.proof})}

    def sqlalchemy_url(self) -> str:
        """For ``engine_at(url, connect_args=endpoint.driver_arguments())``. Contains the password: never print it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        account = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        return f"mysql+pymysql://{account}@{host}:{self.port}/?charset=utf8mb4"


@dataclass(frozen=True, slots=True)
class Endpoints:
    """A channel's servers; ``source`` is None if it reads an archive."""

    source: Endpoint | None
    target: Endpoint

    def proving(self, proof: ServerProof) -> Endpoints:
        """These, of which each connection to the source asks which server answers."""
        return self if self.source is None else replace(self, source=replace(self.source, proof=proof))


Resolver: TypeAlias = Callable[[str], Endpoint]
"""Connection id to endpoint; raises ConfigError if there is no such connection or it cannot be used."""


@dataclass(frozen=True, slots=True)
class StoredConnection:
    """A connection, as one of an Airflow's stores keeps it."""

    place: str
    """The store, in words."""
    in_shell: bool
    """Whether the store is this process's environment."""
    conn_type: str
    endpoint: Callable[[], Endpoint]
    """Raises ConfigError if it is no connection to a server."""


@dataclass(frozen=True, slots=True)
class ConnectionStores:
    """One connection in all stores of an Airflow, in the order in which its tasks look."""

    kept: tuple[StoredConnection, ...] = ()
    """Where it is; a task takes the first."""
    silent: tuple[str, ...] = ()
    """Stores that could not be asked, each with its error."""


AskStores: TypeAlias = Callable[[str], ConnectionStores]
"""Connection id to what the stores of an Airflow say of it."""


def resolve_endpoints(channel: ChannelConfig, resolve: Resolver) -> Endpoints:
    """The servers of a channel; raises ConfigError that names the channel's file."""
    try:
        source = None if channel.source.connection is None else resolve(channel.source.connection)
        proof = TargetProof(channel.name, channel.work.uri)
        return Endpoints(source, replace(resolve(channel.target.connection), proof=proof))
    except ConfigError as exc:
        raise ConfigError(f"{channel.file}: {exc}") from exc


def environment_resolver(environment: Mapping[str, str] | None = None) -> Resolver:
    """Resolves by ``AIRFLOW_CONN_<ID>`` variables: this process's, and behind them by what ``also_by`` was given; or
    those of ``environment`` alone."""
    variables = os.environ if environment is None else environment

    def resolve(connection_id: str) -> Endpoint:
        variable = PREFIX + connection_id.upper()
        value = variables.get(variable)
        if value is not None:
            return parse_connection(connection_id, value)
        for other in _others if environment is None else ():
            if (found := other(connection_id)) is not None:
                return found
        raise ConfigError(
            f"connection {connection_id!r}: expected the environment variable {variable}, found none; "
            f"set it to mysql://user:password@host:port/"
        )

    return resolve


def also_by(other: Callable[[str], Endpoint | None]) -> None:
    """Whom ``environment_resolver`` asks for what this process's environment lacks, until the next call: the program
    knows an Airflow, this module does not. ``other`` may raise ConfigError; None: it has no say."""
    _others[:] = [other]


_others: Final[list[Callable[[str], Endpoint | None]]] = []


def parse_connection(connection_id: str, value: str) -> Endpoint:
    """An endpoint from a connection's URI or JSON in Airflow's format."""
    where = f"connection {connection_id!r}"
    if value.lstrip().startswith("{"):
        return _from_json(connection_id, value, where)
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        # the parser's message may quote a part of the password
        raise ConfigError(
            f"{where}: expected mysql://user:password@host:port/ (special characters as %XX) or JSON, cannot "
            "parse the value"
        ) from None
    return endpoint(
        connection_id,
        conn_type=parts.scheme,
        # urlsplit lowers the host's case and does not unquote it
        host=unquote(parts.hostname or ""),
        port=port,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        extra=_uri_extra(parts.query, where),
    )


def endpoint(
    connection_id: str,
    *,
    conn_type: str,
    host: str,
    port: int | None,
    user: str,
    password: str,
    extra: Mapping[str, Any],
) -> Endpoint:
    """An endpoint from a connection's fields, validated; raises ConfigError that never shows the password."""
    where = f"connection {connection_id!r}"
    if conn_type.split("+")[0] not in CONNECTION_TYPES:
        raise ConfigError(f"{where}: expected type {' or '.join(CONNECTION_TYPES)}, got {_shown(conn_type)}")
    for name, text in (("host", host), ("login", user)):
        if not text:
            raise ConfigError(f"{where}: expected a {name}, got none")
    number = DEFAULT_PORT if port is None else port
    if not 1 <= number <= 65_535:
        raise ConfigError(f"{where}: expected a port 1..65535, got {number}")
    return Endpoint(connection_id, host, number, user, password, _tls(extra, where))


def _from_json(connection_id: str, value: str, where: str) -> Endpoint:
    try:
        fields = json.loads(value)
        extra = fields.get("extra") or {}
        extra = json.loads(extra) if isinstance(extra, str) else extra
        port = fields.get("port")
        return endpoint(
            connection_id,
            conn_type=str(fields.get("conn_type", "")),
            host=str(fields.get("host") or ""),
            port=None if port is None else int(port),
            user=str(fields.get("login") or ""),
            password=str(fields.get("password") or ""),
            extra=extra,
        )
    except (ValueError, AttributeError, TypeError, OverflowError, RecursionError):
        # the decoder's message would quote the text, which contains the password
        raise ConfigError(f"{where}: expected JSON with conn_type, host, port, login, password and extra") from None


def _uri_extra(query: str, where: str) -> Mapping[str, Any]:
    pairs = dict(parse_qsl(query, keep_blank_values=True))
    if (packed := pairs.pop("__extra__", None)) is None:
        return pairs
    try:
        return {**pairs, **json.loads(packed)}
    except (ValueError, TypeError, RecursionError):
        raise ConfigError(f'{where}: __extra__: expected JSON such as {{"ssl_mode": "required"}}') from None


def _tls(extra: Mapping[str, Any], where: str) -> Tls:
    """TLS from ``ssl_*`` keys or Airflow's ``ssl`` object of ca, cert and key.

    Raises ConfigError for an unknown key: ignoring a misspelled key could leave the connection unencrypted.
    """
    packed = extra.get("ssl", {})
    try:
        packed = json.loads(packed) if isinstance(packed, str) else packed
        named = {f"ssl_{key}": value for key, value in packed.items()}
    except (ValueError, AttributeError):
        raise ConfigError(f'{where}: extra ssl: expected an object such as {{"ca": "ca.pem"}}') from None
    if unknown := sorted(named.keys() - {f"ssl_{part}" for part in _PARTS}):
        raise ConfigError(f"{where}: extra ssl: unknown {_shown(unknown[0][4:])}; known: {', '.join(_PARTS)}")
    if unknown := sorted(extra.keys() - set(_KNOWN) - _OF_AIRFLOW):
        raise ConfigError(f"{where}: extra {_shown(unknown[0])}: unknown; known: {', '.join(_KNOWN)}")
    named |= {key: value for key, value in extra.items() if key.startswith("ssl_")}
    files = {key: _path(named, f"ssl_{key}", where) for key in _PARTS}
    asked = "preferred" if files == {"ca": None, "cert": None, "key": None} else "required"
    given = str(named.get("ssl_mode", "verify_ca" if files["ca"] else asked))
    mode = given.lower().replace("-", "_")
    if mode not in SSL_MODES:
        raise ConfigError(f"{where}: extra ssl_mode: expected one of {', '.join(SSL_MODES)}, got {_shown(given)}")
    takes = _YES.get(str(extra.get("get_server_public_key", False)).lower())
    if takes is None:
        raise ConfigError(f"{where}: extra get_server_public_key: expected true or false")
    return Tls(mode, files["ca"], files["cert"], files["key"], _path(extra, "server_public_key", where), takes)


def _shown(text: str) -> str:
    """A word of a connection for a message; not what may be a part of its password, which has come to another place:
    by a ``?`` or a ``/`` in it, or in the wrong field."""
    return repr(text) if _WORD.fullmatch(text) else "something else"


def _path(extra: Mapping[str, Any], key: str, where: str) -> str | None:
    value = extra.get(key)
    if value is not None and (not isinstance(value, str) or not value):
        raise ConfigError(f"{where}: extra {key}: expected the path of a PEM file")
    return value
