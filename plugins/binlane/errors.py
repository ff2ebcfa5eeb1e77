"""Every error binlane raises: one tree, each saying where, what was expected, what was found, what to do.

BinlaneError
├── ConfigError             a channel file, a shard list or an argument is wrong; exit code 2
├── BinlogError             the log's bytes; the message begins with the file and offset
│   ├── TruncatedEventError    the bytes end inside an event
│   ├── ChecksumError          an event's CRC32 does not match
│   ├── EncryptedLogError      the file is encrypted: the source must decrypt it
│   ├── IncidentError          the source itself declares a gap in its log
│   ├── UnknownEventError      a type this version does not know, without the ignorable flag
│   └── UnsupportedEventError  known, but this version cannot apply it exactly
├── SourceError             the source server or archive
│   ├── SourceUnavailableError   cannot be reached now (retryable)
│   ├── WindowOpenError          the window's end has not come on the source yet (retryable)
│   ├── ServerIdInUseError       another reader is registered with the channel's server id (retryable)
│   ├── MissingLogError          a binlog file that the window needs is gone
│   └── SourceIdentityError      not the log that the watermark belongs to
├── WorkError               the work folder has no room, or cannot be written (retryable)
├── PlanError               the window's files do not fit each other or the stored digest
├── PrecheckError           source, target and channel do not fit; nothing has been written
├── TargetError             the target server
│   ├── TargetUnavailableError   cannot be reached, or a transient error outlived its retries (retryable)
│   ├── ApplyError               a statement or row event the target refuses
│   ├── TableMismatchError       behind a DDL of the window, a table is not as the log says
│   ├── StateSchemaError         the schema binlane is of another version, damaged, or another program's
│   ├── DriftError               rows on the target are not what the source's log expects
│   └── UndecidableError         a DDL may or may not have run: a person has to look
├── LaneEndedError          the process of a lane is gone (retryable)
├── PositionError           a compare-and-set that must hold does not: state was changed by somebody else
├── WindowBusyError         another run has this channel's window (retryable)
├── BarrierTimeoutError     a participant did not reach a barrier in time (retryable)
└── StopRequestedError      the channel was asked to stop (retryable: a later run goes on)
"""

from __future__ import annotations

from typing import ClassVar

from binlane.safe_text import printable


class BinlaneError(Exception):
    """Base of all errors. ``retryable``: the same step may succeed if it is simply run again.

    A message names what logs and servers hold, and is shown on terminals, in tasks' logs, notes and on the board.
    """

    retryable: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1

    def __str__(self) -> str:
        return printable(super().__str__())


class ConfigError(BinlaneError):
    """A channel file, shard list or argument is wrong: the message names file and key."""

    exit_code = 2


class BinlogError(BinlaneError):
    """The bytes of a log are not what they must be. Messages begin with ``<file>:<offset>: ``."""


class TruncatedEventError(BinlogError):
    """The bytes end inside an event."""


class ChecksumError(BinlogError):
    """The stored CRC32 of an event is not the computed one."""


class EncryptedLogError(BinlogError):
    """The file, or all of it after its header, is encrypted."""


class IncidentError(BinlogError):
    """The source wrote INCIDENT: changes are missing from its log."""


class UnknownEventError(BinlogError):
    """An event type that this version does not know and that may not be ignored."""


class UnsupportedEventError(BinlogError):
    """An event that is understood but that this version cannot apply exactly."""


class SourceError(BinlaneError):
    """The source server or archive."""


class SourceUnavailableError(SourceError):
    """The source cannot be reached now."""

    retryable = True


class WindowOpenError(SourceError):
    """The source can still write transactions that belong to the window."""

    retryable = True


class ServerIdInUseError(SourceError):
    """Another reader is registered at the source with the channel's server id; it may be a run that is about to end."""

    retryable = True


class MissingLogError(SourceError):
    """A binlog file that the window needs is gone."""


class SourceIdentityError(SourceError):
    """The source is not the one that the watermark was taken from, or its log was rewritten."""


class WorkError(BinlaneError):
    """The work folder's disk is full, its quota is used up, or it is read-only."""

    retryable = True


class PlanError(BinlaneError):
    """Files of a window contradict each other or the digest stored on the target."""


class PrecheckError(BinlaneError):
    """Source, target and channel do not fit. Raised before the first write of a window."""


class TargetError(BinlaneError):
    """The target server."""


class TargetUnavailableError(TargetError):
    """The target cannot be reached, or a transient error outlived its retries."""

    retryable = True


class ApplyError(TargetError):
    """The target refuses a statement or row event; its block was rolled back."""


class TableMismatchError(TargetError):
    """Behind a DDL of the window a table of the target is not the one that the next rows were written to."""


class StateSchemaError(TargetError):
    """The schema ``binlane`` on the target is not the one that this build works with; nothing was read or written."""


class DriftError(TargetError):
    """Rows on the target are not what the source's log expects (1032, 1062, or a wrong count)."""


class UndecidableError(TargetError):
    """A DDL may or may not have run; running it again could undo it."""


class LaneEndedError(BinlaneError):
    """The process of a lane is gone, killed or out of memory: what it had not committed was rolled back."""

    retryable = True


class PositionError(BinlaneError):
    """State on the target was moved by somebody else, or does not fit the plan."""


class WindowBusyError(BinlaneError):
    """Another run holds this channel's unfinished window with another plan."""

    retryable = True


class BarrierTimeoutError(BinlaneError):
    """A lane did not reach a barrier in time."""

    retryable = True


class StopRequestedError(BinlaneError):
    """The channel was asked to stop; a later run goes on from the positions."""

    retryable = True
