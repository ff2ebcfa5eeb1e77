"""The request of one run: the end of its window, and the options of the trigger's form or the command line."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Final

from binlane.config import number
from binlane.errors import ConfigError
from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition

if TYPE_CHECKING:
    from binlane.config.kinds import Integer
    from binlane.orchestration.run_forms import RunForm

NOW: Final = "now"
HIGHEST: Final = "highest"
"""The word for a stop at the highest position of any lane."""
_UUID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
# domain-server-sequence; uuid:n or uuid:tag:n, the tag as MySQL 8.3 and newer allow it
_GTID: Final = re.compile(rf"\d{{1,10}}-\d{{1,10}}-\d{{1,20}}|{_UUID}:(?:[a-z_][a-z0-9_]{{0,31}}:)?\d{{1,20}}")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
"""A date alone, which is written like a GTID of MariaDB; a server writes no zeros in front of numbers."""


def gtid_of(text: str) -> str | None:
    """The place of a log that a person names, if it is a GTID; None for anything else. A date is none."""
    return text if _GTID.fullmatch(text) is not None and _DAY.fullmatch(text) is None else None


def time_of(text: str) -> dt.datetime | None:
    """The place of a log that a person names, if it is a time; in UTC if it names no zone. None for anything else, and
    for a time that is out of the calendar in UTC, in which times are shown."""
    try:
        time = dt.datetime.fromisoformat(text)
        time = time if time.tzinfo is not None else time.replace(tzinfo=dt.UTC)
        time.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return None
    return time


@dataclass(frozen=True, slots=True)
class WindowRequest:
    """The request of a run; raises ConfigError for an invalid value. An unfinished window is resumed in any case."""

    until: str | None = None
    """The window's end: ``now``, an ISO 8601 time (UTC if it names no zone) or a GTID."""
    interval_end: dt.datetime | None = None
    """The end of the run's data interval; None for a triggered run."""
    dry_run: bool = False
    """Only plan and show the plan; change no data on the target."""
    lanes: int | None = None
    """Overrides the channel's ``lanes.count``."""
    block_transactions: int | None = None
    """Overrides the channel's ``blocks.transactions``."""
    resume_before: dt.datetime | None = None
    """Cancel a stop that was requested before this moment; None: cancel none."""
    until_position: LogPosition | None = None
    """The window's end as a position of the source's log between two transactions."""
    of_recopy: bool = False
    """Asked by `binlane recopy`, whose lease keeps all other runs from opening a window."""
    of_restore: bool = False
    """Asked by `binlane restore`, which alone applies windows of a restore: another window would end behind its
    end."""
    by: str | None = None
    """Who asks; None: the account of this process."""

    def __post_init__(self) -> None:
        if self.interval_end is not None and self.interval_end.tzinfo is None:
            raise ConfigError(f"interval_end: expected a time with a time zone, got {self.interval_end}")
        if self.resume_before is not None and self.resume_before.tzinfo is None:
            raise ConfigError(f"resume_before: expected a time with a time zone, got {self.resume_before}")
        _check("lanes", self.lanes, number("lanes.count"))
        _check("block_transactions", self.block_transactions, number("blocks.transactions"))
        if self.until is not None:
            _parsed(self.until)

    @property
    def until_time(self) -> dt.datetime | None:
        """The window's end as a time with a zone; None if it is a GTID or now."""
        if self.until is None:
            return self.interval_end
        parsed = _parsed(self.until)
        return parsed if isinstance(parsed, dt.datetime) else None

    @property
    def until_gtid(self) -> str | None:
        """The window's end as a GTID; the window ends before its transaction."""
        return None if self.until is None else gtid_of(self.until)

    @property
    def until_now(self) -> bool:
        """Whether the window ends at the log's end at the time of the run."""
        no_end = self.until is None and self.interval_end is None and self.until_position is None
        return self.until == NOW or no_end

    def is_before(self, time: float) -> bool:
        """Whether the requested end is a time up to ``time`` (seconds since the epoch), as in a backfill over applied
        windows."""
        until = self.until_time
        return until is not None and time >= until.timestamp()


def request_of(
    form: RunForm, interval_end: dt.datetime | None, asked_at: dt.datetime | None = None, by: str | None = None
) -> WindowRequest:
    """The request of an Airflow run: its form, its interval's end (None for a triggered run), the time when it was
    triggered, and by whom: the run does not cancel a stop that was requested later, even when its tasks are retried."""
    return WindowRequest(
        until=form.until,
        interval_end=interval_end,
        dry_run=form.dry_run,
        lanes=form.lanes,
        block_transactions=form.block_size,
        resume_before=asked_at if form.resume else None,
        by=by,
    )


def _check(name: str, value: int | None, kind: Integer) -> None:
    if value is not None and not kind.accepts(value):
        raise ConfigError(f"{name}: expected {kind.expected}, got {value!r}")


def _parsed(until: str) -> dt.datetime | str:
    if until == NOW or gtid_of(until) is not None:
        return until
    time = time_of(until)
    if time is None:
        raise ConfigError(
            f'until: expected "now", a time such as 2026-01-31T12:00:00Z or a GTID (0-1-99, uuid:99), got {until!r}'
        )
    return time
