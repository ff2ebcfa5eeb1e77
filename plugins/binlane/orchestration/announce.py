"""Tells of a watermark that has moved, where no Airflow task does: by the channel's own command."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any, Final

from binlane.errors import ConfigError
from binlane.orchestration.spark import without_airflow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from binlane.config import ChannelConfig

SECONDS: Final = 60
_KEYS: Final = ("seqno", "gtid", "time", "window")
"""Of a watermark, as in the asset event."""


def announce(channel: ChannelConfig, summary: Mapping[str, Any]) -> None:
    """Run ``announce.command``, without a shell, with the watermark as one JSON object on its standard input.
    ``summary``: the result of ``steps.advance``.

    Raises ConfigError if the command cannot be run, fails, or runs for too long; the watermark has moved all the same.
    """
    command = channel.announce.command
    if not command:
        return
    told = json.dumps({"channel": channel.name, **{key: summary.get(key) for key in _KEYS}})
    try:
        ended = subprocess.run(
            command, input=told, text=True, errors="replace", capture_output=True, timeout=SECONDS, check=False,
            env=without_airflow(os.environ),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        # the error itself shows all arguments, which may be secret
        raise _failed(channel, summary, f"{command[0]}: timed out after {SECONDS} seconds") from None
    except (OSError, ValueError) as exc:
        raise _failed(channel, summary, str(exc)) from exc
    if ended.returncode:
        said = (ended.stderr.strip().splitlines() or [""])[-1]
        raise _failed(channel, summary, f"exit code {ended.returncode}: {said}")


def _failed(channel: ChannelConfig, summary: Mapping[str, Any], problem: str) -> ConfigError:
    return ConfigError(
        f"{channel.file}: announce.command: {problem}; the watermark is at seqno {summary.get('seqno'):,}, and "
        "nobody was told. Correct the command; the next window announces its watermark again"
    )
