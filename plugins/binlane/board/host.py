"""The board's interface to Airflow, and the CSRF check of actions. Does not import Airflow."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from fastapi import HTTPException, Request, status

from binlane.connections import Resolver
from binlane.health.airflow_runs import AirflowRuns
from binlane.lazy_dataclass import dataclass

COOKIE: Final = "_token"
"""Airflow's session cookie; its value is a signed token, unknown to every other site."""
TOKEN_HEADER: Final = "X-Binlane-Token"
READ, EDIT = "GET", "PUT"


@dataclass(frozen=True, slots=True)
class TriggeredRun:
    """A triggered run of a DAG."""

    run_id: str
    is_paused: bool
    """The DAG is paused: the run waits until it is unpaused."""


class Trigger(Protocol):
    """Triggers a run of a DAG in a user's name."""

    def __call__(self, user: Any, dag_id: str, conf: Mapping[str, Any]) -> TriggeredRun:
        """Raises PermissionError if the user may not trigger the DAG, ConfigError if Airflow has no such DAG."""
        ...


class MayDo(Protocol):
    """Whether a user may read (method GET) or edit (PUT) a DAG."""

    def __call__(self, user: Any, method: str, dag_id: str) -> bool:
        """Ask Airflow's auth manager."""
        ...


@dataclass(frozen=True, slots=True)
class Host:
    """The Airflow around the board."""

    get_user: Callable[..., Any]
    """A FastAPI dependency: the user of a request; answers 401 if there is none."""
    user_name: Callable[[Any], str]
    may: MayDo
    resolve: Resolver
    channels: Callable[[], Path]
    """The folder of the channel files."""
    runs: Callable[[str], AirflowRuns]
    """The runs of a DAG, by its id."""
    scheduler_silent: Callable[[], float | None]
    """Seconds since the heartbeat of Airflow's scheduler; None: it is alive."""
    trigger: Trigger
    database_error: type[Exception] = ConnectionError
    """Raised while a database does not answer; another try may succeed."""


def session_token(request: Request) -> str:
    """The token that the page sends with each action. Another site can neither read nor compute it."""
    cookie = request.cookies.get(COOKIE, "")
    return hmac.new(cookie.encode(), b"binlane.board", hashlib.sha256).hexdigest() if cookie else ""


def guard_action(request: Request) -> None:
    """Refuse a request that another site made a browser send (403): a cookie alone does not authorise an action."""
    scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
    if COOKIE not in request.cookies and scheme.lower() == "bearer" and credentials.strip():
        # a browser never adds a bearer token by itself; with a cookie or an empty token, Airflow may use the cookie
        return
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None and site != "same-origin":
        _refuse(f"the request comes from another site ({site})")
    if site is None and origin is not None and urlsplit(origin).netloc != request.headers.get("Host"):
        _refuse(f"the request comes from {origin}")
    expected, found = session_token(request), request.headers.get(TOKEN_HEADER, "")
    if not expected or not hmac.compare_digest(expected.encode(), found.encode()):
        _refuse(f"expected the header {TOKEN_HEADER} with the token of api/session, or a bearer token and no cookie")


def _refuse(why: str) -> None:
    raise HTTPException(status.HTTP_403_FORBIDDEN, f"refused: {why}")
