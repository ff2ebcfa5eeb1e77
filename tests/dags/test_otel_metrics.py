"""The metrics leave Airflow with the packages that are installed: OpenTelemetry's exporter, met by a collector."""

import http.server
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from binlane.orchestration.airflow.notify import GAUGES

pytestmark = pytest.mark.trial

PLUGINS = Path(__file__).parents[2] / "plugins"
SENT = """
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics import stats_utils
from binlane.orchestration.airflow.notify import measure

# as Airflow's task runner does
stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=False)
measure("shop", {"time": 1.0, "seqno": 7, "read": 4, "rows": 2, "transactions": 3}, 61.0, 11.0)
"""


def test_each_metric_reaches_a_collector_with_its_channel(tmp_path: Path) -> None:
    received: list[bytes] = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        settings = {
            "AIRFLOW_HOME": str(tmp_path),
            "AIRFLOW__METRICS__OTEL_ON": "True",
            "AIRFLOW__METRICS__OTEL_HOST": "127.0.0.1",
            "AIRFLOW__METRICS__OTEL_PORT": str(server.server_port),
            "PYTHONPATH": str(PLUGINS),
        }
        subprocess.run([sys.executable, "-c", SENT], env={**os.environ, **settings}, check=True, timeout=300)
        server.shutdown()
    assert received
    for name in (*(f"binlane.{gauge}" for gauge in GAUGES), "binlane.transactions", "binlane.lag_seconds.shop"):
        assert f"airflow.{name}".encode() in received[-1]
    assert b"channel" in received[-1]
