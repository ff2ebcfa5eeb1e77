"""The metrics reach a StatsD server: Airflow's client, from the extra ``statsd``, met by a UDP socket."""

import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from binlane.orchestration.airflow.notify import GAUGES
from tests.dags.test_otel_metrics import PLUGINS, SENT

pytestmark = pytest.mark.trial

VALUES = {
    "binlane.lag_seconds": "60.0|g", "binlane.reduction_ratio": "2.0|g", "binlane.watermark_seqno": "7|g",
    "binlane.window_seconds": "50.0|g", "binlane.transactions": "3|c", "binlane.rows": "2|c",
    "binlane.row_changes": "4|c",
}  # fmt: skip


@pytest.mark.skipif(find_spec("statsd") is None, reason="statsd is not installed: `make setup`")
@pytest.mark.parametrize("tagged", [False, True], ids=["names alone", "tags of InfluxDB"])
def test_each_metric_is_a_datagram_with_its_name_and_value(tmp_path: Path, tagged: bool) -> None:
    assert VALUES.keys() >= {f"binlane.{gauge}" for gauge in GAUGES}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(30)
        settings = {
            "AIRFLOW_HOME": str(tmp_path),
            "AIRFLOW__METRICS__STATSD_ON": "True",
            "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
            "AIRFLOW__METRICS__STATSD_PORT": str(server.getsockname()[1]),
            "AIRFLOW__METRICS__STATSD_PREFIX": "airflow",
            "AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED": str(tagged),
            "PYTHONPATH": str(PLUGINS),
        }
        subprocess.run([sys.executable, "-c", SENT], env={**os.environ, **settings}, check=True, timeout=300)
        tag = ",channel=shop" if tagged else ""
        # each is sent twice: with the tag, and with the channel in its name
        wanted = {f"airflow.{name}{each}:{value}" for name, value in VALUES.items() for each in (tag, ".shop")}
        # Airflow sends some of its own
        while wanted:
            wanted.discard(server.recv(4_096).decode())
