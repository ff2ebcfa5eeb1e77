"""Who may do what on the board, by every route that it has: a new one is tried by itself.

Attacker: whoever has a browser, an account of Airflow without a permission on the channel's DAG, or one that may only
read it; and another site in the browser of somebody who may edit.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from fastapi import HTTPException, Request
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from binlane.board.api import build_app
from binlane.board.host import TOKEN_HEADER, Host
from binlane.connections import Endpoint
from binlane.errors import TargetUnavailableError
from binlane.health.airflow_runs import AirflowRuns

CHANNEL: Final = "shop"
SECRET: Final = "s3cret-of-a-server"
ROLES: Final = ("nobody", "stranger", "reader", "editor")
EDITORS_READ: Final = ("/rows", "/events")
"""Ends of the GET routes that have values."""
VALUES: Final = {
    "name": CHANNEL, "window_id": "w1", "lane": "0", "first_seqno": "1", "seqno": "1",
}  # fmt: skip
BODIES: Final = {
    "stop": {"now": True}, "verify": {"full": True}, "decide": {"seqno": 1, "ran": True},
    "skip": {"seqno": 1, "reason": "x"}, "cancel-skip": {"seqno": 1}, "resume": {},
}  # fmt: skip
"""Of the actions; one that is not here fails the test that asks for it."""
FORGED: Final[Mapping[str, Mapping[str, str]]] = {
    "without a token": {},
    "another token": {TOKEN_HEADER: "0" * 64},
    "an empty token": {TOKEN_HEADER: ""},
    "a bearer token beside the cookie": {"Authorization": "Bearer x"},
    "an empty bearer token": {"Authorization": "Bearer "},
    "a form": {"Content-Type": "application/x-www-form-urlencoded"},
    "plain text": {"Content-Type": "text/plain"},
    "another site": {"Sec-Fetch-Site": "cross-site"},
    "a site beside it": {"Sec-Fetch-Site": "same-site"},
    "another origin": {"Origin": "https://evil.example"},
    "an origin of no site": {"Origin": "null"},
    "its own host as another's origin": {"Origin": "https://evil.example", "Host": "evil.example.org"},
}
"""Headers of a request that another site makes a browser send."""
CONFUSED: Final = (
    "/api/channels/{0}%2fwindows", "/api/channels/..%2f{0}", "/api/channels/%2e%2e/{0}", "/api/channels/{0};x=1",
    "/api/channels/{0}/..;/{0}", "/api//channels/{0}", "/api/channels/{0}%00", "/api/channels/{0}%0d%0a",
    "/API/channels/{0}", "/static/..%2fapi.py", "/static/%2e%2e/api.py", "/static/....//api.py", "/docs", "/redoc",
    "/openapi.json", "/api/channels/{0}/windows/..%2f..%2fetc", "/static/index.html%00.js",
)  # fmt: skip
METHODS: Final = ("PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND")


def _user(request: Request) -> str:
    user = request.cookies.get("_token", "")
    if user not in ROLES[1:]:
        raise HTTPException(401, "who are you?")
    return user


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    (tmp_path / f"{CHANNEL}.toml").write_text('[source]\nconnection = "s"\n[target]\nconnection = "t"\n')

    def may(user: Any, method: str, dag_id: str) -> bool:
        assert dag_id == f"replicate_{CHANNEL}"
        return user == "editor" or (user == "reader" and method == "GET")

    def resolve(connection: str) -> Endpoint:
        raise TargetUnavailableError(f"{connection}: {SECRET}")

    def trigger(user: Any, dag_id: str, conf: Mapping[str, Any]) -> Any:
        raise AssertionError(f"{user} has started {dag_id}")

    host = Host(
        get_user=_user, user_name=str, may=may, resolve=resolve, channels=lambda: tmp_path,
        runs=lambda _: AirflowRuns(), scheduler_silent=lambda: None, trigger=trigger,
    )  # fmt: skip
    return TestClient(build_app(host), raise_server_exceptions=True)


def _routes(client: TestClient) -> Iterator[tuple[str, str]]:
    for route in client.app.routes:  # type: ignore[attr-defined]
        if isinstance(route, APIRoute):
            path = route.path.format(**VALUES) if "static" not in route.path else "/static/app.js"
            yield from ((method, path) for method in sorted(route.methods))


def _expected(method: str, path: str, role: str) -> set[int]:
    if role == "nobody":
        return {401}
    if not path.startswith(f"/api/channels/{CHANNEL}"):
        return {200}
    if role == "stranger":
        return {404}
    if role == "reader" and (method == "POST" or path.endswith(EDITORS_READ)):
        return {403}
    # the server does not answer, and a page says so
    return {503} if path != f"/api/channels/{CHANNEL}" else {200}


def test_each_route_answers_each_role_as_it_may(client: TestClient) -> None:
    found: list[tuple[object, ...]] = []
    for (method, path), role in itertools.product(list(_routes(client)), ROLES):
        headers = {} if role == "nobody" else {"Cookie": f"_token={role}"}
        if method == "POST" and role != "nobody":
            headers[TOKEN_HEADER] = client.get("/api/session", headers=headers).json()["token"]
        body = BODIES[path.rpartition("/")[2]] if method == "POST" else None
        answer = client.request(method, path, headers=headers, json=body)
        if answer.status_code not in _expected(method, path, role):
            found.append((method, path, role, answer.status_code, answer.text[:100]))
        if role != "editor" and SECRET in answer.text:
            found.append((method, path, role, "the text of an error"))
        if answer.headers.get("Cache-Control") not in ("no-store", "no-cache"):
            found.append((method, path, role, "may be kept by a cache"))
    assert found == []


def test_no_other_site_makes_an_editor_s_browser_act(client: TestClient) -> None:
    cookie = {"Cookie": "_token=editor"}
    found = []
    for (method, path), name in itertools.product(list(_routes(client)), FORGED):
        if method == "POST":
            token = client.get("/api/session", headers=cookie).json()["token"]
            given = {TOKEN_HEADER: token} if name.startswith(("another site", "a site", "another origin")) else {}
            answer = client.post(path, headers={**cookie, **given, **FORGED[name]}, content=b"{}")
            if answer.status_code != 403:
                found.append((path, name, answer.status_code))
    assert found == []


@pytest.mark.parametrize("role", ROLES)
def test_no_spelling_of_a_path_and_no_method_reaches_more(client: TestClient, role: str) -> None:
    headers = {} if role == "nobody" else {"Cookie": f"_token={role}"}
    for path in CONFUSED:
        answer = client.get(path.format(CHANNEL), headers=headers)
        # %2f is a slash, and the route behind it asks who may
        assert answer.status_code in (401, 404, 503), (path, answer.status_code, answer.text[:100])
        assert role == "editor" or SECRET not in answer.text, path
    for (_, path), method in itertools.product(list(_routes(client)), METHODS):
        override = {"X-HTTP-Method-Override": "POST", "X-Method-Override": "POST", "X-HTTP-Method": "POST"}
        answer = client.request(method, path, headers={**headers, **override}, json={})
        assert answer.status_code in (401, 405), (method, path, answer.status_code)


@pytest.mark.parametrize("declared", [None, b"4096", b"1" + 18 * b"0", b"-1", 30 * b"9", "\u0663".encode()])
def test_no_request_without_an_end_is_kept(client: TestClient, declared: bytes | None) -> None:
    """A body is read before anybody asks who has sent it."""
    pieces, answers = itertools.count(), list[Mapping[str, Any]]()

    async def receive() -> Mapping[str, Any]:
        assert next(pieces) < 100, "the server goes on reading"
        return {"type": "http.request", "body": 4096 * b"[", "more_body": True}

    async def send(message: Mapping[str, Any]) -> None:
        answers.append(message)

    headers = [(b"content-type", b"application/json"), *([] if declared is None else [(b"content-length", declared)])]
    scope = {
        "type": "http", "method": "POST", "path": f"/api/channels/{CHANNEL}/skip", "raw_path": b"", "query_string": b"",
        "headers": headers, "root_path": "", "scheme": "http", "http_version": "1.1", "server": ("airflow", 80),
        "client": ("10.0.0.9", 1), "asgi": {"version": "3.0"},
    }  # fmt: skip
    asyncio.run(client.app(scope, receive, send))  # type: ignore[arg-type]
    assert answers[0]["status"] == 413
    assert next(pieces) <= 17
