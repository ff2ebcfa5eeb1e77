"""The DAG's task of the plan job, without a DAG."""

from __future__ import annotations

from typing import Any, cast

from airflow.sdk import Context

from binlane.config import ChannelConfig
from binlane.orchestration.airflow.spark_operator import PlanJobOperator
from binlane.orchestration.plan_job.window_engine import WindowEngine
from binlane.work.files import WorkFolder


class Told:
    """Stands for Airflow's task instance: keeps what a task tells."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        """As the task instance's."""
        self.values[key] = value

    @property
    def context(self) -> Context:
        """What a task gets."""
        return cast(Context, {"ti": self})


def task(channel: ChannelConfig, folder: str, word: str = "spark") -> PlanJobOperator:
    """The task for a window's folder, and the engine of ``word``."""
    return PlanJobOperator(
        task_id="filter",
        channel=channel,
        engine_of=lambda _: WindowEngine(word),
        folder_of=lambda _: WorkFolder(folder),
        properties={},
        application="job.py",
        conn_id=channel.spark.connection,
    )
