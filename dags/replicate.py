"""One DAG per channel file: dags/channels/<channel>.toml becomes the DAG replicate_<channel>."""

from pathlib import Path

from binlane.orchestration.airflow.replicate_dag import build_dags

# Airflow imports a file only if its text has the words "airflow" and "dag"
globals().update(build_dags(Path(__file__).parent / "channels"))
