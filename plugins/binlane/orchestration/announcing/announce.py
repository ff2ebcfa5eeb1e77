"""Tells of a watermark that has moved, where no Airflow task does: by a command, and by an event in an Airflow.

What was told last is recorded in the work folder. A run that finds nothing to apply tells of the newest window if an
earlier run was killed, or failed, before it had: who waits for a watermark waits for no other window.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, Final

from binlane.errors import NO_RECORD, BinlaneError, ConfigError
from binlane.orchestration.announcing.redaction import redacted, secret_arguments
from binlane.orchestration.plan_job.spark_submit import without_airflow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from binlane.config import ChannelConfig
    from binlane.connections import Endpoints
    from binlane.work.files import WorkFolder

SECONDS: Final = 60
_MOST_BYTES: Final = 1 << 16
"""Of the record of what was told."""
_KEYS: Final = ("seqno", "gtid", "time", "window")
"""Of a watermark, as in the asset event."""
_PLACE: Final = ("window", "seqno")
"""What tells one announcement from another: a stop inside a window is announced as well as its end."""


def asset_name(channel: str) -> str:
    """The asset that stands for the target's data up to the channel's watermark."""
    return f"binlane_{channel}"


def announce(channel: ChannelConfig, summary: Mapping[str, Any]) -> None:
    """Run ``announce.command``, and send the asset event to the Airflow of ``announce.airflow``; both are tried.
    ``summary``: the result of ``steps.advance``.

    Raises ConfigError if one of them fails; the watermark has moved all the same, and the next run tells of it.
    """
    if not _is_asked(channel):
        return
    problems = list[str]()
    for way in (_run_command, _send_event):
        try:
            way(channel, {key: summary.get(key) for key in _KEYS})
        except ConfigError as exc:
            problems.append(str(exc))
    if problems:
        raise ConfigError(
            f"{channel.file}: {'; '.join(problems)}; the watermark is at seqno {summary.get('seqno'):,}, and not all "
            "were told. Correct what is named; the next run announces its watermark again"
        )
    _folder(channel).replace(_file_of(channel), json.dumps({key: summary.get(key) for key in _PLACE}).encode())


def announce_missed(channel: ChannelConfig, endpoints: Endpoints) -> None:
    """Announce the watermark of the channel's newest window, if it was applied and not announced. Raises as
    ``announce``."""
    if not _is_asked(channel):
        return
    # for the few channels that announce
    from binlane.servers.engines import engine_of
    from binlane.state.records.history import read_history

    with engine_of(endpoints.target).connect() as connection:
        newest = read_history(connection, channel.name, limit=1)
    for window in newest:
        found = {"seqno": window.last_seqno, "gtid": window.end_gtid_set, "time": window.end_time}
        found["window"] = window.window_id
        if window.finished_at is not None and [found[key] for key in _PLACE] != _announced(channel):
            announce(channel, found)


def _is_asked(channel: ChannelConfig) -> bool:
    return bool(channel.announce.command) or channel.announce.airflow is not None


def _announced(channel: ChannelConfig) -> list[Any] | None:
    """The values of ``_PLACE`` that were announced last; None if nothing is known: then it is announced once more."""
    folder, name = _folder(channel), _file_of(channel)
    try:
        if not folder.exists(name):
            return None
        told = json.loads(folder.read(name, _MOST_BYTES))
        return [told[key] for key in _PLACE]
    except (BinlaneError, *NO_RECORD):
        return None


def _folder(channel: ChannelConfig) -> WorkFolder:
    # as above
    from binlane.work.files import WorkFolder

    return WorkFolder(channel.work.uri)


def _file_of(channel: ChannelConfig) -> str:
    return f"{channel.name}.announced.json"


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
