"""One DAG per channel file: dags/channels/<channel>.toml becomes the DAG replicate_<channel>."""

from pathlib import Path

from binlane.orchestration.airflow.replicate_dag import build_dags

# Airflow looks for "airflow" and "dag" in this text before it imports the file
globals().update(build_dags(Path(__file__).parent / "channels"))
