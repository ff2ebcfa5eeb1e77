"""The board and Prometheus's metrics of a trial's channels, as a user of Airflow who may do everything sees them."""

from __future__ import annotations

from fastapi.testclient import TestClient

from binlane.board.api import build_app
from binlane.board.host import Host, TriggeredRun
from binlane.connections import environment_resolver
from binlane.health.airflow_runs import AirflowRuns
from lab.trial.shell import Done, TrialError
from lab.trial.site import Site


def lists_repairs(site: Site, channel: str, count: int) -> None:
    """Raises TrialError unless the page of repairs and the first copy has both."""
    records = _client(site).get(f"/api/channels/{channel}/records").json()
    if len(records["repairs"]) != count or records["first_copy"] is None:
        raise TrialError(
            f"channel {channel}: expected {count} repairs and the first copy on the board, found {records}"
        )


def shows(site: Site, channel: str, state: str) -> None:
    """Raises TrialError unless the list of channels, the channel's page and the metrics all have this state."""
    client = _client(site)
    [card] = [each for each in client.get("/api/channels").json() if each["name"] == channel]
    page = client.get(f"/api/channels/{channel}").json()["card"]
    metrics = client.get("/metrics").text.splitlines()
    metric = f'binlane_health_state{{channel="{channel}",state="{state}"}} 1.0'
    found = (card["state"], page["state"], metric in metrics)
    if found != (state, state, True):
        raise TrialError(f"channel {channel}: expected the board and the metrics to show {state}, found {found}")


def metrics(site: Site, channel: str) -> Done:
    """Prometheus's metrics of a channel, without the states that do not hold."""
    lines = _client(site).get("/metrics").text.splitlines()
    kept = [
        line for line in lines if f'channel="{channel}"' in line and not ("_state{" in line and line.endswith(" 0.0"))
    ]
    command = 'curl -sH "Authorization: Bearer $TOKEN" http://127.0.0.1:8080/binlane/metrics'
    return Done(f"{command} | grep '\"{channel}\"' | grep -v 'state=.* 0.0'", 0, "".join(f"{line}\n" for line in kept))


def _client(site: Site) -> TestClient:
    folder = site.shell.folder / "dags" / "channels"
    host = Host(
        get_user=lambda: "anna", user_name=str, may=lambda *_: True,
        resolve=environment_resolver(site.shell.environment), channels=lambda: folder, runs=lambda _: AirflowRuns(),
        scheduler_silent=lambda: None, trigger=lambda *_: TriggeredRun("", is_paused=False),
    )  # fmt: skip
    return TestClient(build_app(host))
