"""All errors of binlane, in one tree. Each message says where, what was expected, what was found, and the next step.

BinlaneError
├── ConfigError             a channel file, a shard list or an argument is wrong; exit code 2
├── BinlogError             the log's bytes; the message begins with the file and offset
│   ├── TruncatedEventError    the bytes end inside an event
│   ├── ChecksumError          an event's CRC32 does not match
│   ├── EncryptedLogError      the file is encrypted: the source must decrypt it
│   ├── IncidentError          the source itself declares a gap in its log
│   ├── UnknownEventError      an unknown event type without the ignorable flag
│   └── UnsupportedEventError  a known event that this version cannot apply exactly
├── SourceError             the source server or archive
│   ├── SourceUnavailableError   cannot be reached now (retryable)
│   ├── WindowOpenError          the window's end has not come on the source yet (retryable)
│   ├── ServerIdInUseError       another reader is registered with the channel's server id (retryable)
│   ├── MissingLogError          a binlog file that the window needs is gone
│   └── SourceIdentityError      not the log that the watermark belongs to
├── WorkError               the work folder has no room, or cannot be written (retryable)
├── PlanError               the window's files do not fit each other or the stored digest
├── PrecheckError           source, target and channel do not fit
├── TargetError             the target server
│   ├── TargetUnavailableError   cannot be reached, or a transient error outlived its retries (retryable)
│   ├── ApplyError               a statement or row event the target refuses
│   ├── TableMismatchError       after a DDL of the window, a table differs from its logged definition
│   ├── StateSchemaError         the schema binlane is of another version, damaged, or another program's
│   ├── TargetIdentityError      not the server that has the channel's state, or an older copy of it
│   ├── DriftError               rows on the target are not what the source's log expects
│   └── UndecidableError         a DDL may or may not have run: an operator has to decide
├── LaneEndedError          the process of a lane is gone (retryable)
├── ExecutorsLostError      the plan job's executors, or processes, are gone (retryable)
├── SparkServerError        the Spark Connect server cannot be reached, or has failed (retryable)
├── PositionError           a compare-and-set failed: the state was changed by another program or by hand
├── WindowBusyError         another run has this channel's window (retryable)
├── SnapshotError           a command of `binlane read-at` did not read one state of the source (retryable)
├── BarrierTimeoutError     a participant did not reach a barrier in time (retryable)
└── StopRequestedError      the channel was asked to stop (retryable: a later run continues)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Final

from binlane.safe_text import cut, printable

SAME_AS_ABOVE: Final = "the same of: "
"""Begins a line of a PrecheckError that has no finding of its own, only places of the one above it."""
LONGEST_MESSAGE: Final = 1 << 18
"""Characters of a message: what it quotes of a log, a server or a file may have gigabytes."""
_COMMAND: Final = re.compile(r"(`binlane [\w-]+(?: --[\w-]+)?) CHANNEL\b")


def with_channel(text: str, channel: str) -> str:
    """The text of an error or finding, with the channel's name in commands whose maker does not know it."""
    return _COMMAND.sub(lambda found: f"{found[1]} {channel}", text)


@contextmanager
def naming(channel: str) -> Iterator[None]:
    """Errors of the block name the channel in the commands of their next steps. Every program that shows errors of a
    channel is around its work."""
    try:
        yield
    except BinlaneError as exc:
        if exc.args and isinstance(exc.args[0], str):
            exc.args = (with_channel(exc.args[0], channel), *exc.args[1:])
        raise


_PUBLIC_USERS: Final = "abfss?|wasbs?|az|adl|oci|oss|gcs|gs|alluxio|sftp|ssh|ftp|hdfs|webhdfs|smb|cifs"
"""Schemes in whose URIs a name in front of the host is no secret: of a bucket or container, or of a user with a key."""
_HOST: Final = r"(?:\[[^]/@]*\]|[^]/:@,[]*)"
_PORT: Final = ":[0-9]{1,5}"
"""Of HDFS a URI may have a list of hosts: behind the first port each has its own, or it may be a password's end."""
_SECRET: Final = re.compile(
    # an account whose password may have a slash or a blank
    rf"://(?!(?:[^/:@]*@)?{_HOST}(?:,{_HOST})*(?:{_PORT}(?:,{_HOST}{_PORT})*)?/)[^/:]*:.*@"
    # a token in place of an account
    rf"|(?<![a-z])(?!(?:{_PUBLIC_USERS})://)[a-z][a-z0-9+.-]*+://[^/]*@"
    # signatures and codes; a query that is known to be none
    r"|://[^?]*\?(?!versionId=[^&=]*\Z).|://[^#]*#.*=",
    re.IGNORECASE | re.DOTALL,
)
_LONGEST: Final = 4096
"""Characters of a URI that is looked at; a longer one may have anything in it. Each of its ``://`` may begin one, and
is looked at to the end."""
_SHOWN_IN_URL: Final = re.compile(r"(?<=://).*(?=@)|(?<=\?).*|(?<=#).*=.*", re.DOTALL)


def has_secret(uri: str) -> bool:
    """Whether a folder's URI has, or may have, an account's password, a token or a signature: errors, notes, pages and
    the state name folders. What is not known to be harmless is one."""
    return "://" in uri and (len(uri) > _LONGEST or _SECRET.search(uri) is not None)


def without_accounts(text: str) -> str:
    """A value for an error: a URL, which a user may have put in place of a connection's name, without its account and
    its query. Of a value with a URL rather too much is hidden."""
    if "://" not in text:
        return text
    return _SHOWN_IN_URL.sub("***", text) if len(text) <= _LONGEST else f"{text[: text.index('://')]}://***"


class BinlaneError(Exception):
    """Base of all errors. ``retryable``: the same step may succeed if it is repeated.

    Messages quote text from logs and servers, and are shown on terminals, in tasks' logs, in notes and on the board:
    without characters that act there, and with at most some more than ``LONGEST_MESSAGE`` characters.
    """

    retryable: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1

    def __str__(self) -> str:
        return printable(cut(super().__str__(), LONGEST_MESSAGE))


NO_RECORD: Final = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)
"""What reading a record out of any bytes raises that are said to be its JSON: nested lists without an end, an infinite
number and the like, too."""


class ConfigError(BinlaneError):
    """A channel file, shard list or argument is wrong: the message names file and key."""

    exit_code = 2


class BinlogError(BinlaneError):
    """The bytes of a log are damaged or cannot be used. Messages begin with ``<file>:<offset>: ``."""


class TruncatedEventError(BinlogError):
    """The bytes end inside an event."""


class ChecksumError(BinlogError):
    """The stored CRC32 of an event differs from the computed one."""


class EncryptedLogError(BinlogError):
    """The file, or all of it after its header, is encrypted."""


class IncidentError(BinlogError):
    """The source wrote INCIDENT: changes are missing from its log."""


class UnknownEventError(BinlogError):
    """An unknown event type without the ignorable flag."""


class UnsupportedEventError(BinlogError):
    """A known event that this version cannot apply exactly."""


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
    """The source is not the one of the watermark, or its log was reset or replaced."""


class WorkError(BinlaneError):
    """The work folder's disk is full, its quota is used up, or it is read-only."""

    retryable = True


class PlanError(BinlaneError):
    """Files of a window contradict each other or the digest stored on the target."""


class EndNotReachedError(PlanError):
    """No transaction of the log is at the end of a restore, or behind it."""


class AbsentDatabaseError(PlanError):
    """A database is not there at the end of its restore: the log has dropped it."""


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
    """A table of the target differs from the definition of the next logged rows, or cannot take them as the channel
    writes them."""


class StateSchemaError(TargetError):
    """The schema ``binlane`` on the target does not fit this build; nothing was written."""


class TargetIdentityError(TargetError):
    """The target is a replica, a clone or an older copy of the channel's target, or another server altogether."""


class UnusableAnswerError(BinlaneError):
    """A server has answered what no MySQL or MariaDB server answers; nothing was done with the answer."""


class DriftError(TargetError):
    """Rows on the target are not what the source's log expects (1032, 1062, or a wrong count)."""


class UndecidableError(TargetError):
    """A DDL may or may not have run; running it again could undo it."""


class LaneEndedError(BinlaneError):
    """The process of a lane was killed or ran out of memory; its open transaction was rolled back."""

    retryable = True


class PositionError(BinlaneError):
    """State on the target was changed by another program or by hand, or does not fit the plan."""


class ExecutorsLostError(BinlaneError):
    """The plan job's Spark application has no executors any more, and gets none; or a process of the job on this
    machine is gone."""

    retryable = True


class SparkServerError(BinlaneError):
    """The Spark Connect server cannot be reached, or the plan job has failed on it."""

    retryable = True


class WindowBusyError(BinlaneError):
    """Another run holds this channel's unfinished window with another plan."""

    retryable = True


class SnapshotError(BinlaneError):
    """The target did not rest, or went on before a command had its snapshot; the command was ended."""

    retryable = True


class BarrierTimeoutError(BinlaneError):
    """A lane did not reach a barrier in time."""

    retryable = True


class StopRequestedError(BinlaneError):
    """The channel was asked to stop; a later run continues from the positions."""

    retryable = True
