"""A window that cannot begin: the reason is kept on the target, so that health has it where no Airflow has seen the run
fail."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from binlane.connections import Endpoint
from binlane.errors import BinlaneError, naming
from binlane.servers.engines import engine_of
from binlane.state.positions import PlanKey
from binlane.state.records.journal import WHOLE_WINDOW, forget_refusals, record_error
from binlane.state.windows import read_window

log = logging.getLogger(__name__)


@contextmanager
def recorded_refusal(target: Endpoint, channel: str, window_id: str) -> Iterator[None]:
    """An error of the block that another try would meet again is recorded, and raised. Not of a window that has a plan:
    its lanes would stop, and they record their own; nor of one that is not opened, as of a dry run."""
    try:
        with naming(channel):
            yield
    except BinlaneError as exc:
        if not exc.retryable:
            try:
                _record(target, channel, window_id, f"{type(exc).__name__}: {exc}")
            # the block's error says more than that of a target that cannot store it
            except Exception as failed:
                log.warning("channel %s: the refusal of window %s is not recorded: %s", channel, window_id, failed)
        raise


def _record(target: Endpoint, channel: str, window_id: str, message: str) -> None:
    with engine_of(target).begin() as connection:
        window = read_window(connection, channel, window_id, for_update=True)
        if window is not None and window.plan_digest is None:
            forget_refusals(connection, channel, window_id)
            record_error(connection, PlanKey(channel, window_id, ""), WHOLE_WINDOW, None, 0, message)
