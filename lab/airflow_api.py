"""A small client of Airflow's REST API (``/api/v2``) for the demo and the tests, with the standard library."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

FINAL_STATES: Final = ("success", "failed")
_SECONDS: Final = 90.0
"""Longer than Airflow waits for its metadata database."""
_TRIES: Final = 6
_LOCKED: Final = re.compile(r": 50[03] ")

# no proxy for servers on 127.0.0.1, whatever the environment says
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ApiError(RuntimeError):
    """Airflow refused a request or does not answer; the message holds its answer."""


@dataclass(slots=True)
class AirflowApi:
    """A login at one Airflow. Every method raises ApiError."""

    url: str
    user: str
    password: str = field(repr=False)
    _token: str | None = field(default=None, repr=False)

    def health(self) -> dict[str, str]:
        """Status by component: "healthy", "unhealthy" or none."""
        answer = self._call("GET", "/api/v2/monitor/health", authorized=False)
        return {name: part["status"] for name, part in answer.items() if isinstance(part, dict)}

    def dag_ids(self) -> set[str]:
        """The DAGs that the dag-processor has registered."""
        return {dag["dag_id"] for dag in self._call("GET", "/api/v2/dags?limit=1000")["dags"]}

    def import_errors(self) -> dict[str, str]:
        """Error text by file name."""
        errors = self._call("GET", "/api/v2/importErrors")["import_errors"]
        return {error["filename"]: error["stack_trace"] for error in errors}

    def unpause(self, dag_id: str) -> None:
        """Let the scheduler start the DAG's runs."""
        self._call("PATCH", f"/api/v2/dags/{quote(dag_id)}", {"is_paused": False})

    def trigger(self, dag_id: str, conf: dict[str, Any] | None = None) -> str:
        """Trigger a run; its id. ``conf``: the form's values."""
        body = {"logical_date": None, "conf": conf or {}}
        run_id: str = self._call("POST", f"/api/v2/dags/{quote(dag_id)}/dagRuns", body)["dag_run_id"]
        return run_id

    def run(self, dag_id: str, run_id: str) -> dict[str, Any]:
        """A run: ``state``, ``start_date``, ``end_date`` and more."""
        answer: dict[str, Any] = self._call("GET", self._run_path(dag_id, run_id))
        return answer

    def running(self, dag_id: str) -> list[str]:
        """The ids of the DAG's runs that have not ended."""
        answer = self._call("GET", f"/api/v2/dags/{quote(dag_id)}/dagRuns?state=running&state=queued&limit=100")
        return [str(run["dag_run_id"]) for run in answer["dag_runs"]]

    def mark(self, dag_id: str, run_id: str, state: str) -> None:
        """Mark a run as the buttons of the UI do: "failed" or "success"."""
        self._patiently("PATCH", self._run_path(dag_id, run_id), {"state": state})

    def task_instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """The run's task instances: ``task_id``, ``map_index``, ``rendered_map_index``, ``state``, ``duration``."""
        answer = self._call("GET", self._run_path(dag_id, run_id) + "/taskInstances?limit=1000")
        return list(answer["task_instances"])

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value", map_index: int = -1) -> Any:
        """One XCom value; None if there is none."""
        path = f"{self._run_path(dag_id, run_id)}/taskInstances/{quote(task_id)}/xcomEntries/{quote(key)}"
        try:
            value = self._call("GET", f"{path}?map_index={map_index}&deserialize=true")["value"]
        except ApiError as exc:
            if "404" in str(exc):
                return None
            raise
        return json.loads(value) if isinstance(value, str) and value[:1] in "{[" else value

    def log(self, dag_id: str, run_id: str, task_id: str, try_number: int, map_index: int = -1) -> str:
        """A try's log as lines of text."""
        path = f"{self._run_path(dag_id, run_id)}/taskInstances/{quote(task_id)}/logs/{try_number}"
        answer = self._call("GET", f"{path}?map_index={map_index}&full_content=true")
        return "\n".join(_log_line(entry) for entry in answer["content"])

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """A request to any path of this Airflow, with the login's token; its answer as JSON."""
        return self._patiently(method, path, body)

    def _patiently(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        """Airflow on SQLite answers 500, and the board 503, while another of its processes has the database locked: the
        request is repeated."""
        for left in reversed(range(_TRIES)):
            try:
                return self._call(method, path, body)
            except ApiError as exc:
                if left == 0 or _LOCKED.search(str(exc)) is None:
                    raise
                time.sleep(1)
        raise AssertionError("the last try returns or raises")

    def _run_path(self, dag_id: str, run_id: str) -> str:
        return f"/api/v2/dags/{quote(dag_id)}/dagRuns/{quote(run_id, safe='')}"

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None, *, authorized: bool = True) -> Any:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if authorized:
            headers["Authorization"] = f"Bearer {self._login()}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with _OPENER.open(request, timeout=_SECONDS) as response:
                return json.load(response)
        except urllib.error.HTTPError as exc:
            raise ApiError(f"{method} {path}: {exc.code} {exc.read().decode(errors='replace')[:500]}") from exc
        except (OSError, ValueError) as exc:
            raise ApiError(f"{method} {path}: {exc}") from exc

    def _login(self) -> str:
        if self._token is None:
            account = {"username": self.user, "password": self.password}
            self._token = str(self._call("POST", "/auth/token", account, authorized=False)["access_token"])
        return self._token


def _log_line(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(entry)
    text = " ".join(str(entry[key]) for key in ("timestamp", "level", "event") if entry.get(key))
    for error in entry.get("error_detail") or ():
        text += f"\n    {error.get('exc_type')}: {error.get('exc_value')}"
    return text
