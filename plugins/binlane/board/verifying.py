"""Starts a verification from the board, as a run of the channel's DAG, since it can take hours."""

from __future__ import annotations

from typing import Any

from binlane.board.board_reader import BoardReader, Place
from binlane.board.host import Host
from binlane.choices import VerifyScope
from binlane.errors import ConfigError, WindowBusyError
from binlane.orchestration.run_forms import run_params


def start_verification(host: Host, reading: BoardReader, user: Any, place: Place, kind: str) -> str:
    """Trigger the run; a message that says when it begins.

    Raises ConfigError for a channel that reads an archive, WindowBusyError if a window is open and no run works on it
    (the verification would fail), PermissionError if the user may not start runs.
    """
    name = place.channel.name
    if place.channel.source.connection is None:
        raise ConfigError(
            f"{place.channel.file}: source: expected a live server to compare with, the channel has an archive"
        )
    if kind not in run_params(place.channel)["verify"]["enum"]:
        raise ConfigError(
            f"channel {name}: its windows run back to back, and the work folder keeps the files of the newest alone: "
            "expected a verification of all tables, found one of the rows that windows touched; choose all tables"
        )
    window, active = reading.open_window(place), host.runs(place.dag_id).active
    if window is not None and (active is None or not active.applies):
        raise WindowBusyError(
            f"channel {name}: window {window} is unfinished, and rows can be compared only while the target stands at "
            f"its watermark; run {place.dag_id} to the window's end first"
        )
    asked = host.trigger(user, place.dag_id, {"verify": kind, "verify_only": True})
    what = "every row of every table" if kind == VerifyScope.FULL else "the rows of the last window"
    begins = (
        "when the DAG is unpaused in Airflow" if asked.is_paused else "as soon as no other run of the DAG is active"
    )
    return f"channel {name}: run {asked.run_id} of {place.dag_id} compares {what}; it begins {begins}"
