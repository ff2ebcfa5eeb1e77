"""A watermark as an asset event, by Airflow's REST API, from a machine where no Airflow task runs."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from binlane.connections import PREFIX
from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass
from binlane.orchestration.announcing.redaction import redacted

SECONDS: Final = 30.0
"""For one answer of Airflow, from the first byte that is sent to the last one that is read."""
_SCHEMES: Final = ("http", "https")
_MOST: Final = 1 << 20
"""Bytes of an answer that are read."""
_MOST_OF_ERROR: Final = 1 << 16
"""The same of an error, which is looked through for secrets."""
_SHOWN: Final = 500
"""Characters of an answer that are shown."""
_HOST: Final = re.compile(r"[^\s@/?#\\]+")
_OWN_MACHINE: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AirflowSite:
    """An Airflow and its account. ``repr`` shows no secret."""

    url: str
    """Without a slash at its end."""
    user: str
    password: str = field(repr=False)
    token: str = field(default="", repr=False)
    """Used instead of a login; empty: none."""


def site_of(connection_id: str, environment: Mapping[str, str] | None = None) -> AirflowSite:
    """The Airflow that ``AIRFLOW_CONN_<ID>`` names: ``https://user:password@host:port/path``, or JSON with conn_type,
    host, port, schema, login, password and extra (token, path). Raises ConfigError, never with a secret."""
    variable = PREFIX + connection_id.upper()
    value = (os.environ if environment is None else environment).get(variable, "")
    where = f"connection {connection_id!r} ({variable})"
    if not value:
        raise ConfigError(f"{where}: expected https://user:password@host:port/, found none")
    try:
        found = _of_json(value) if value.lstrip().startswith("{") else _of_uri(value)
    except (ValueError, AttributeError, TypeError, OverflowError, RecursionError):
        # the parser's message may quote the password
        raise ConfigError(
            f"{where}: expected https://user:password@host:port/ or JSON, cannot parse the value"
        ) from None
    if not found.token and not (found.user and found.password):
        raise ConfigError(f"{where}: expected a login and a password, or a token in the extra")
    return found


def _of_uri(value: str) -> AirflowSite:
    parts = urlsplit(value)
    path = parts.path.strip("/")
    # Airflow's own form of a connection over TLS: http://host:443/https
    scheme, path = (path, "") if path in _SCHEMES else (parts.scheme, path)
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return AirflowSite(_url(scheme, host, parts.port, path), user, password)


def _of_json(value: str) -> AirflowSite:
    fields = json.loads(value)
    extra = fields.get("extra") or {}
    extra = json.loads(extra) if isinstance(extra, str) else extra
    url = _url(
        fields.get("schema") or fields.get("conn_type"), fields.get("host"), fields.get("port"), extra.get("path")
    )
    user, password = str(fields.get("login") or ""), str(fields.get("password") or "")
    return AirflowSite(url, user, password, str(extra.get("token") or ""))


def _url(scheme: str | None, host: str | None, port: int | str | None, path: str | None) -> str:
    # a host with an account in it would be shown in errors
    if scheme not in _SCHEMES or not host or not _HOST.fullmatch(host):
        raise ValueError("no URL of an Airflow")
    place = f"{scheme}://{host}" + (f":{int(port)}" if port is not None else "")
    inner = (path or "").strip("/")
    return f"{place}/{inner}" if inner else place


def send_event(site: AirflowSite, name: str, extra: Mapping[str, Any]) -> None:
    """Create an event of the asset ``name``. Raises ConfigError if Airflow does not answer, refuses the event, or does
    not have the asset, which comes from the channel's DAG or from a DAG that is scheduled by it."""
    if urlsplit(site.url).scheme == "http" and urlsplit(site.url).hostname not in _OWN_MACHINE:
        _warn_in_clear(site.url)
    token = site.token or _login(site)
    found = _call(site, "GET", f"/api/v2/assets?limit=1000&name_pattern={quote(name, safe='')}", token=token)
    try:
        numbers = [each["id"] for each in found.get("assets", ()) if each.get("name") == name]
    except (AttributeError, KeyError, TypeError):
        raise ConfigError(f"{site.url}: GET /api/v2/assets: expected an answer of Airflow, got another one") from None
    if not numbers:
        raise ConfigError(f"{site.url}: expected the asset {name}, found none: no DAG of this Airflow has it")
    _call(site, "POST", "/api/v2/assets/events", {"asset_id": numbers[0], "extra": dict(extra)}, token=token)


@functools.cache
def _warn_in_clear(url: str) -> None:
    """Warn once for each process and Airflow."""
    _log.warning(
        "%s: the connection is not encrypted: an eavesdropper can read the password or token, and use it; write "
        "https:// in the connection of announce.airflow (docs/monitoring.md#announce)",
        url,
    )


def _login(site: AirflowSite) -> str:
    answer = _call(site, "POST", "/auth/token", {"username": site.user, "password": site.password})
    token = answer.get("access_token")
    if not isinstance(token, str):
        raise ConfigError(f"{site.url}: POST /auth/token: expected an answer of Airflow with a token, got none")
    return token


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would take the token to another place."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse."""


class _Limit:
    """Ends the connections of one call when ``SECONDS`` are over: a socket's own limit is one for each piece, of which
    a server can make a million."""

    def __init__(self) -> None:
        self.is_over = False
        self._sockets = list[socket.socket]()
        self._timer = threading.Timer(SECONDS, self._end)
        self._timer.daemon = True

    def __enter__(self) -> _Limit:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        for each in self._sockets:
            each.close()

    def add(self, connection: socket.socket) -> None:
        """A connection of this call. TLS takes the socket for its own, so another one for the same connection is
        kept."""
        self._sockets.append(connection.dup())
        if self.is_over:
            self._end()

    def _end(self) -> None:
        self.is_over = True
        for each in self._sockets:
            # closed by the other end meanwhile, or by a call that has just ended
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _opener(limit: _Limit) -> urllib.request.OpenerDirector:
    class Plain(HTTPConnection):
        def connect(self) -> None:
            super().connect()
            limit.add(self.sock)

    class Encrypted(HTTPSConnection, Plain):
        """``connect`` of HTTPSConnection calls the one above, and then begins TLS."""

    class Http(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> HTTPResponse:
            return self.do_open(Plain, req)

    class Https(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> HTTPResponse:
            return self.do_open(Encrypted, req)

    return urllib.request.build_opener(_NoRedirect(), Http(), Https())


def _call(
    site: AirflowSite, method: str, path: str, body: Mapping[str, Any] | None = None, token: str = ""
) -> dict[str, Any]:
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(site.url + path, data, headers, method=method)
    place, secrets = path.partition("?")[0], (site.password, site.token, token)
    with _Limit() as limit:
        try:
            status, reason, said = _answer(_opener(limit), request)
            if status is None:
                return dict(json.loads(said))
        except (OSError, HTTPException, ValueError, TypeError, RecursionError) as exc:
            # an error of a header quotes it
            got = f"none in {SECONDS:.0f} seconds" if limit.is_over else redacted(str(exc), secrets)[:_SHOWN]
            raise ConfigError(f"{site.url}: {method} {place}: expected an answer of Airflow, got {got}") from None
    # a validation error quotes the request
    shown = redacted(said.decode("utf-8", "replace").strip(), secrets)[:_SHOWN]
    raise ConfigError(f"{site.url}: {method} {place}: Airflow answers {status}: {shown or reason}")


def _answer(opener: urllib.request.OpenerDirector, request: urllib.request.Request) -> tuple[int | None, str, bytes]:
    """The status of an error, with its reason, or None; and the answer's body."""
    try:
        with opener.open(request, timeout=SECONDS) as answer:
            return None, "", answer.read(_MOST)
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, str(exc.reason), exc.read(_MOST_OF_ERROR)
