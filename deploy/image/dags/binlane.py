"""A DAG per channel file of /etc/binlane/channels."""

from binlane.orchestration.airflow.replicate_dag import build_dags

globals().update(build_dags())
