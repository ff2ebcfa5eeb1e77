"""Tells of a watermark that has moved, where no Airflow task does: by a command, and by an event in an Airflow."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, Final

from binlane.errors import ConfigError
from binlane.orchestration.announcing.redaction import redacted, secret_arguments
from binlane.orchestration.plan_job.spark_submit import without_airflow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from binlane.config import ChannelConfig

SECONDS: Final = 60
_KEYS: Final = ("seqno", "gtid", "time", "window")
"""Of a watermark, as in the asset event."""


def asset_name(channel: str) -> str:
    """The asset that stands for the target's data up to the channel's watermark."""
    return f"binlane_{channel}"


def announce(channel: ChannelConfig, summary: Mapping[str, Any]) -> None:
    """Run ``announce.command``, and send the asset event to the Airflow of ``announce.airflow``; both are tried.
    ``summary``: the result of ``steps.advance``.

    Raises ConfigError if one of them fails; the watermark has moved all the same.
    """
    problems = list[str]()
    for way in (_run_command, _send_event):
        try:
            way(channel, {key: summary.get(key) for key in _KEYS})
        except ConfigError as exc:
            problems.append(str(exc))
    if problems:
        raise ConfigError(
            f"{channel.file}: {'; '.join(problems)}; the watermark is at seqno {summary.get('seqno'):,}, and not all "
            "were told. Correct what is named; the next window announces its watermark again"
        )


def _send_event(channel: ChannelConfig, watermark: Mapping[str, Any]) -> None:
    """The event that ``advance_watermark`` sends in Airflow."""
    if channel.announce.airflow is None:
        return
    # most channels send none, and a client for HTTP is slow to import
    from binlane.orchestration.announcing.asset_event import send_event, site_of

    try:
        send_event(site_of(channel.announce.airflow), asset_name(channel.name), watermark)
    except ConfigError as exc:
        raise ConfigError(f"announce.airflow: {exc}") from exc


def _run_command(channel: ChannelConfig, watermark: Mapping[str, Any]) -> None:
    """Without a shell, with the watermark as one line of JSON on standard input. Raises ConfigError if the command
    cannot be run, fails, or runs for too long."""
    command = channel.announce.command
    if not command:
        return
    told = json.dumps({"channel": channel.name, **watermark}) + "\n"
    try:
        ended = subprocess.run(
            command, input=told, text=True, errors="replace", capture_output=True, timeout=SECONDS, check=False,
            env=without_airflow(os.environ),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        # the error itself shows all arguments, which may be secret
        raise ConfigError(f"announce.command: {command[0]}: timed out after {SECONDS} seconds") from None
    except (OSError, ValueError) as exc:
        raise ConfigError(f"announce.command: {redacted(str(exc), secret_arguments(command))}") from None
    if ended.returncode:
        # redacted as a whole: a secret can have line breaks
        said = (redacted(ended.stderr, secret_arguments(command)).strip().splitlines() or [""])[-1]
        raise ConfigError(f"announce.command: exit code {ended.returncode}: {said}")
