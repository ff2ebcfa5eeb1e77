"""Where the servers are: Airflow's connections, read with or without Airflow.

Outside Airflow a connection comes from the environment, as Airflow itself reads it: ``AIRFLOW_CONN_<ID>`` holds a URI
(``mysql://user:password@host:port/?ssl_mode=required``) or JSON (``{"conn_type": "mysql", "host": ...}``):
https://airflow.apache.org/docs/apache-airflow/stable/howto/connection.html
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from binlane.errors import ConfigError

if TYPE_CHECKING:
    from binlane.config import ChannelConfig

PREFIX: Final = "AIRFLOW_CONN_"
CONNECTION_TYPES: Final = ("mysql", "mariadb")
DEFAULT_PORT: Final = 3306
SSL_MODES: Final = ("disabled", "preferred", "required", "verify_ca", "verify_identity")
_SSL_KEYS: Final = ("ssl_mode", "ssl_ca", "ssl_cert", "ssl_key")


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS as the connection asks for it; modes as in MySQL's ``--ssl-mode``, files in PEM."""

    mode: str = "preferred"
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def arguments(self) -> dict[str, Any]:
        """PyMySQL's keyword arguments. Without any, PyMySQL encrypts if the server can and goes on in clear if not."""
        if self.mode == "disabled":
            return {"ssl_disabled": True}
        if self.mode == "preferred":
            return {}
        files = {name: file for name in ("ca", "cert", "key") if (file := getattr(self, name)) is not None}
        verified = self.mode in ("verify_ca", "verify_identity")
        return {"ssl": {**files, "verify_mode": verified, "check_hostname": self.mode == "verify_identity"}}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server and the account to use there. The password is in no representation."""

    name: str
    """The connection's id; for messages."""
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    tls: Tls = field(default_factory=Tls)

    def __str__(self) -> str:
        return f"{self.name} ({self.user}@{self.host}:{self.port})"

    def pymysql_arguments(self) -> dict[str, Any]:
        """Keyword arguments of ``pymysql.connect``: place, account, TLS and ``charset``."""
        place = {"host": self.host, "port": self.port, "user": self.user, "password": self.password}
        return {**place, "charset": "utf8mb4", **self.tls.arguments()}

    def sqlalchemy_url(self) -> str:
        """For ``create_engine(url, connect_args=endpoint.tls.arguments())``. It holds the password: never print it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        account = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        return f"mysql+pymysql://{account}@{host}:{self.port}/?charset=utf8mb4"


@dataclass(frozen=True, slots=True)
class Endpoints:
    """A channel's servers; ``source`` is None if it reads an archive."""

    source: Endpoint | None
    target: Endpoint


Resolver: TypeAlias = Callable[[str], Endpoint]
"""Connection id to endpoint; raises ConfigError if there is no such connection or it cannot be used."""


def resolve_endpoints(channel: ChannelConfig, resolve: Resolver) -> Endpoints:
    """The servers of a channel; raises ConfigError that names the channel's file."""
    try:
        source = None if channel.source.connection is None else resolve(channel.source.connection)
        return Endpoints(source, resolve(channel.target.connection))
    except ConfigError as exc:
        raise ConfigError(f"{channel.file}: {exc}") from exc


def environment_resolver(environment: Mapping[str, str] | None = None) -> Resolver:
    """Resolves by ``AIRFLOW_CONN_<ID>`` variables, without Airflow."""
    variables = os.environ if environment is None else environment

    def resolve(connection_id: str) -> Endpoint:
        variable = PREFIX + connection_id.upper()
        value = variables.get(variable)
        if value is None:
            raise ConfigError(
                f"connection {connection_id!r}: expected the environment variable {variable}, found none; "
                f"set it to mysql://user:password@host:port/"
            )
        return parse_connection(connection_id, value)

    return resolve


def parse_connection(connection_id: str, value: str) -> Endpoint:
    """An endpoint from a connection's URI or JSON, as Airflow writes them."""
    where = f"connection {connection_id!r}"
    if value.lstrip().startswith("{"):
        return _from_json(connection_id, value, where)
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        # the parser's message can quote a part of the password
        raise ConfigError(
            f"{where}: expected mysql://user:password@host:port/ (special characters as %XX) or JSON, cannot parse it"
        ) from None
    return endpoint(
        connection_id,
        conn_type=parts.scheme,
        # urlsplit lowers the host's case and keeps it quoted
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
        raise ConfigError(f"{where}: expected type {' or '.join(CONNECTION_TYPES)}, got {conn_type!r}")
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
    except (ValueError, AttributeError, TypeError):
        # the decoder's message would quote the text, and the text holds the password
        raise ConfigError(f"{where}: expected JSON with conn_type, host, port, login, password and extra") from None


def _uri_extra(query: str, where: str) -> Mapping[str, Any]:
    pairs = dict(parse_qsl(query, keep_blank_values=True))
    if (packed := pairs.pop("__extra__", None)) is None:
        return pairs
    try:
        unpacked = json.loads(packed)
    except ValueError:
        raise ConfigError(f"{where}: __extra__: expected JSON") from None
    return {**pairs, **unpacked}


def _tls(extra: Mapping[str, Any], where: str) -> Tls:
    """TLS from ``ssl_*`` keys or Airflow's ``ssl`` object of ca, cert and key; other keys belong to other tools."""
    packed = extra.get("ssl", {})
    try:
        packed = json.loads(packed) if isinstance(packed, str) else packed
        named = {f"ssl_{key}": value for key, value in packed.items()}
    except (ValueError, AttributeError):
        raise ConfigError(f'{where}: extra ssl: expected an object such as {{"ca": "ca.pem"}}') from None
    named |= {key: value for key, value in extra.items() if key.startswith("ssl_")}
    # a mistyped TLS option that is ignored would be a connection in clear
    if unknown := sorted(named.keys() - set(_SSL_KEYS)):
        raise ConfigError(f"{where}: extra {unknown[0]}: unknown TLS option; known: {', '.join(_SSL_KEYS)}")
    files = {key: named.get(f"ssl_{key}") for key in ("ca", "cert", "key")}
    asked = "preferred" if files == {"ca": None, "cert": None, "key": None} else "required"
    mode = str(named.get("ssl_mode", "verify_ca" if files["ca"] else asked)).lower().replace("-", "_")
    if mode not in SSL_MODES:
        raise ConfigError(f"{where}: extra ssl_mode: expected one of {', '.join(SSL_MODES)}, got {mode!r}")
    return Tls(mode, files["ca"], files["cert"], files["key"])
