"""The board inside a real Airflow: who gets in, who may act, and that the plugin costs other processes nothing."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lab.airflow import USER, VIEWER, PrivateAirflow, new_airflow
from lab.airflow_api import AirflowApi
from lab.servers import HOST, PrivateServer, private_server

CHANNEL = "shop"
API = f"/binlane/api/channels/{CHANNEL}"


@dataclass(frozen=True, slots=True)
class Site:
    """An api-server with the board, and a channel on a real target."""

    airflow: PrivateAirflow

    def call(self, method: str, path: str, headers: dict[str, str] | None = None, body: Any = None) -> tuple[int, Any]:
        """Status and answer, JSON or text."""
        connection = http.client.HTTPConnection(HOST, self.airflow.port, timeout=60)
        sent = {"Content-Type": "application/json", **(headers or {})}
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, json.loads(text) if text[:1] in ("{", "[") else text

    def token(self, user: str) -> str:
        """A token of Airflow's own."""
        return AirflowApi(self.airflow.url, user, self.airflow.password)._login()

    def bearer(self, user: str) -> dict[str, str]:
        """As a script sends it."""
        return {"Authorization": f"Bearer {self.token(user)}"}

    def cookie(self, user: str) -> dict[str, str]:
        """As a browser sends it."""
        return {"Cookie": f"_token={self.token(user)}"}


def uri_of(server: PrivateServer) -> str:
    return f"mysql://{server.user}:{server.password}@{server.host}:{server.port}/"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("board")
    channels = home / "project" / "dags" / "channels"
    channels.mkdir(parents=True)
    (channels / f"{CHANNEL}.toml").write_text('[source]\nconnection = "source"\n[target]\nconnection = "target"\n')
    with (
        private_server(home / "source", name="board_source", durable=False) as source,
        private_server(home / "target", name="board_target", durable=False) as target,
    ):
        (home / "airflow").mkdir()
        settings = {"BINLANE_CHANNELS": str(channels)}
        airflow = new_airflow(home / "airflow", {"source": uri_of(source), "target": uri_of(target)}, settings)
        init = [sys.executable, "-c", "from binlane.cli import program; program()", "init", CHANNEL]
        subprocess.run(init, env=airflow.environment(), check=True)
        try:
            airflow.start(services=())
            yield Site(airflow)
        finally:
            airflow.stop()


METRICS = "/binlane/metrics"
PATHS = ["/binlane/", "/binlane/static/app.js", "/binlane/api/session", "/binlane/api/channels", API, METRICS]
DOCS = Path(__file__).parents[2] / "docs" / "monitoring.md"


@pytest.mark.parametrize("path", [*PATHS, f"{API}/windows", f"{API}/windows/w", "/binlane/api/openapi.json"])
def test_anonymous_gets_401(site: Site, path: str) -> None:
    assert site.call("GET", path)[0] == 401
    assert site.call("GET", path, {"Authorization": "Bearer made.up.token"})[0] in (401, 403)


@pytest.mark.parametrize("action", ["stop", "resume", "verify", "decide", "skip", "cancel-skip"])
def test_anonymous_cannot_act(site: Site, action: str) -> None:
    assert site.call("POST", f"{API}/{action}", body={"seqno": 1, "ran": True})[0] == 401


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("user", [USER, VIEWER])
def test_a_user_may_look_by_token_and_by_cookie(site: Site, user: str, path: str) -> None:
    assert site.call("GET", path, site.bearer(user))[0] == 200
    assert site.call("GET", path, site.cookie(user))[0] == 200


def test_the_channel_is_read_through_airflows_connection(site: Site) -> None:
    _, (card,) = site.call("GET", "/binlane/api/channels", site.bearer(VIEWER))
    # this Airflow has no scheduler
    assert (card["name"], card["state"], card["may_act"]) == (CHANNEL, "stalled", False)
    assert card["findings"][0]["text"].startswith("Airflow's scheduler has never shown a sign of life")
    _, (card,) = site.call("GET", "/binlane/api/channels", site.bearer(USER))
    assert card["may_act"]


@pytest.mark.parametrize("user", [USER, VIEWER])
def test_prometheus_gets_the_metrics_of_the_docs_by_the_token_of_the_docs(site: Site, user: str) -> None:
    page = DOCS.read_text("utf-8").partition("## Prometheus\n")[2].partition("\n## ")[0]
    assert "/auth/token" in page
    account = {"username": user, "password": site.airflow.password}
    status, answer = site.call("POST", "/auth/token", body=account)
    assert status == 201
    sent = urllib.request.Request(
        site.airflow.url + METRICS, headers={"Authorization": f"Bearer {answer['access_token']}"}
    )
    with urllib.request.urlopen(sent, timeout=60) as response:
        assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        families = {each.name: each for each in text_string_to_metric_families(response.read().decode())}
    table = "".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `binlane_"))
    documented = set(re.findall(r"`(binlane_\w+)`", table))
    assert families.keys() == documented
    values = {
        (name, *sample.labels.values()): sample.value for name, each in families.items() for sample in each.samples
    }
    assert {labels[0] for _, *labels in values} == {CHANNEL}
    # the channel's file has no [drill]
    assert {name for name, *_ in values} == documented - {"binlane_drill_age_seconds"}
    assert (values["binlane_up", CHANNEL], values["binlane_watermark_seqno", CHANNEL]) == (1, 0)
    # this Airflow has no scheduler
    held = {labels[-1] for (name, *labels), value in values.items() if name == "binlane_health_state" and value}
    assert held == {"stalled"}


def test_a_viewer_cannot_act(site: Site) -> None:
    assert site.call("POST", f"{API}/resume", site.bearer(VIEWER))[0] == 403
    status, answer = site.call("POST", f"{API}/resume", site.bearer(USER))
    assert (status, "is resumed" in answer["message"]) == (200, True)
    status, answer = site.call("POST", f"{API}/stop", site.bearer(USER), {})
    assert "is stopped at seqno 0" in answer["message"]
    assert site.call("POST", f"{API}/resume", site.bearer(USER))[0] == 200


def test_a_viewer_cannot_start_a_verification_and_nobody_can_of_a_dag_that_airflow_has_not(site: Site) -> None:
    """That it runs is tested in test_live_airflow.py."""
    assert site.call("POST", f"{API}/verify", site.bearer(VIEWER), {})[0] == 403
    status, answer = site.call("POST", f"{API}/verify", site.bearer(USER), {})
    assert (status, "Airflow has no such DAG" in answer["detail"]) == (409, True)


def test_a_user_who_may_edit_a_dag_but_not_trigger_it_starts_no_run(
    metadata_database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from binlane import airflow_plugin

    class Manager:
        def is_authorized_dag(self, *, access_entity: Any = None, **_: Any) -> bool:
            return access_entity is None

    monkeypatch.setattr("airflow.api_fastapi.app.get_auth_manager", Manager)
    user = SimpleNamespace(get_name=lambda: "editor")
    assert airflow_plugin._may(user, "PUT", "replicate_demo")
    with pytest.raises(PermissionError, match="does not let you start runs of the DAG replicate_demo"):
        airflow_plugin._trigger(user, "replicate_demo", {})


def test_a_cookie_alone_cannot_act(site: Site) -> None:
    cookie = site.cookie(USER)
    assert site.call("POST", f"{API}/resume", cookie)[0] == 403
    _, session = site.call("GET", "/binlane/api/session", cookie)
    assert session["user"] == USER
    token = {"X-Binlane-Token": session["token"]}
    assert site.call("POST", f"{API}/resume", {**cookie, **token})[0] == 200
    assert site.call("POST", f"{API}/resume", {**cookie, **token, "Sec-Fetch-Site": "cross-site"})[0] == 403
    assert site.call("POST", f"{API}/resume", {**site.cookie(VIEWER), **token})[0] == 403


def test_airflow_shows_the_page_in_its_navigation(site: Site) -> None:
    _, plugins = site.call("GET", "/api/v2/plugins", site.bearer(USER))
    (view,) = [view for plugin in plugins["plugins"] for view in plugin["external_views"] if view["name"]]
    assert (view["href"], view["destination"], view["url_route"]) == ("/binlane/", "nav", "replication")


def test_the_plugin_loads_no_board_before_it_is_asked() -> None:
    """Airflow imports it in every process, tasks included."""
    code = (
        "import sys, airflow.plugins_manager\n"
        "before = set(sys.modules)\nimport binlane.airflow_plugin\n"
        "print(*(name for name in sorted(set(sys.modules) - before) if name.split('.')[0] in ('airflow', 'binlane')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["airflow._shared.listeners", "airflow.listeners", "binlane.airflow_plugin"]
