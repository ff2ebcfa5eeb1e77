"""A window's part of the source's log becomes segments."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from binlane.errors import MissingLogError, WindowOpenError
from binlane.lazy_dataclass import dataclass
from binlane.plan.consistency import EpochStarts, level_of
from binlane.servers.engines import engine_of
from binlane.shards.selection import EVERYTHING, Selection
from binlane.source.archive import ArchiveSource
from binlane.source.crashes import SourceCrashes
from binlane.source.end_position import Until, UntilPosition
from binlane.source.identity import Start
from binlane.source.load_files import LoadFileTracker
from binlane.source.segment_writer import Progress
from binlane.source.segments import extract
from binlane.source.session_end import SessionEnd
from binlane.source.stream import ServerSource
from binlane.source.temporary import TemporaryTracker
from binlane.source.xa import XaTracker
from binlane.source.xa_statements import XaStatements
from binlane.state.carried.files import with_carried
from binlane.state.carried.prepared import read_open_xa
from binlane.state.channels import forgetting_channel
from binlane.work.files import WorkFolder

if TYPE_CHECKING:
    from binlane.config import ChannelConfig
    from binlane.connections import Endpoints
    from binlane.plan.manifest import Manifest, Segment
    from binlane.source.protocol import EventSource
    from binlane.state.channels import Channel, Watermark

log = logging.getLogger(__name__)

SegmentTold = Callable[[WorkFolder, "Segment"], None]
"""Called with the window's folder and each segment that is complete."""


def source_of(channel: ChannelConfig, endpoints: Endpoints) -> EventSource:
    """The channel's source: the live server, or its archive."""
    if endpoints.source is None:
        assert channel.source.archive is not None
        trusted = frozenset(channel.source.trusted_files)
        return ArchiveSource(channel.source.archive, channel.source.event_bytes, trusted)
    endpoint = endpoints.source
    return ServerSource(
        str(endpoint), endpoint.pymysql_arguments(), channel.source.server_id, channel.name,
        event_bytes=channel.source.event_bytes, unlogged_gtids=channel.source.unlogged_gtids or "",
    )  # fmt: skip


def start_of(mark: Watermark, identity: str) -> Start:
    """The beginning of an extraction at a watermark."""
    return Start(mark.seqno, mark.source, mark.gtid_set, mark.source_time, identity, mark.fingerprint)


@dataclass(frozen=True, slots=True)
class WindowReading:
    """What is read for a window, and where it goes."""

    channel: ChannelConfig
    endpoints: Endpoints
    identity: str
    """The source's."""
    begin: Watermark
    window: str
    folder: WorkFolder
    told: SegmentTold | None = None
    older_sessions: int = 0
    """See ``Manifest``."""
    selection: Selection = EVERYTHING
    """What the channel takes: a temporary table that it leaves out holds no window."""
    lost_sessions: tuple[str, ...] = ()
    """See ``Channel``: a statement of one of them is refused."""
    crashes: SourceCrashes | None = None
    """See ``extract``."""

    @property
    def _ends(self) -> tuple[SessionEnd, ...]:
        lost = (SessionEnd.of(each, is_named=False) for each in self.lost_sessions)
        return (*lost, *map(SessionEnd.of, self.channel.source.ended_sessions))

    @classmethod
    def of_next(
        cls, channel: ChannelConfig, endpoints: Endpoints, state: Channel, selection: Selection = EVERYTHING
    ) -> WindowReading:
        """The reading of a new window, behind the watermark."""
        window = f"{state.watermark.seqno + 1:012d}-{uuid.uuid4().hex[:8]}"
        folder = WorkFolder(channel.work.uri).child(channel.name).child(window)
        mark, older = state.watermark, state.older_sessions
        return cls(
            channel, endpoints, state.source_identity, mark, window, folder, None, older, selection, state.lost_sessions
        )

    def log(self, until: Until, progress: Progress) -> Manifest:
        """Segments from ``begin`` up to ``until``, and the prepared XA transactions that the window ends.

        Raises WindowOpenError if the window would be empty, because it cannot end inside what is open at its end.
        """
        channel, folder, lanes = self.channel, self.folder, self.channel.lanes
        engine = engine_of(self.endpoints.target)
        with engine.connect() as connection:
            prepared = read_open_xa(connection, channel.name)
        xa, temporary, loads = (
            XaTracker((each.xid for each in prepared), self.selection),
            TemporaryTracker(self.selection, self._ends, self.older_sessions),
            LoadFileTracker(),
        )
        source = source_of(channel, self.endpoints)
        with self._named_way_out():
            manifest = extract(
                source,
                start_of(self.begin, self.identity),
                until,
                folder,
                channel=channel.name,
                window=self.window,
                segment_bytes=channel.segments.bytes,
                progress=progress,
                xa=xa,
                temporary=temporary,
                loads=loads,
                epochs=EpochStarts(level_of(lanes.consistency, lanes.epoch_seconds), lanes.epoch_transactions or None),
                told=None if self.told is None else partial(self.told, folder),
                crashes=self.crashes,
            )
        for tracker in (temporary, xa.statements, loads):
            end = tracker.open_since
            if end is not None and tracker is temporary:
                # few windows need it
                from binlane.source.lost_sessions import lost_sessions

                lost = lost_sessions(source, manifest, temporary)
            else:
                lost = None
            if lost is not None and lost.sessions:
                end = temporary.open_since_of(temporary.owners() - lost.sessions)
                if end is None:
                    log.warning(
                        "%s: %s: its connection has ended without a DROP in the log", manifest.end, tracker.text
                    )
                    manifest = replace(
                        manifest,
                        restarts=(*manifest.restarts, manifest.last_seqno + 1),
                        lost_sessions=tuple(
                            str(each) for each in temporary.possible_ends() if each.session in lost.by_source
                        ),
                    )
            if end is None:
                continue
            log.info("%s: %s: the window ends before it", end, tracker.text)
            folder.remove()
            before = self.log(UntilPosition(end), progress) if end != self.begin.source else None
            # positions may differ without a transaction between them: a file's header may lie between
            if before is None or before.transactions == 0:
                raise WindowOpenError(
                    f"{end}: {tracker.text}: a window cannot end {tracker.inside}, and this window would be empty "
                    f"before it; run it again when {tracker.ends}{_without_asking(tracker)}"
                )
            return before
        if temporary.older.waits:
            # few windows need it
            from binlane.source.later_drops import with_later_drops

            manifest = with_later_drops(source, manifest, temporary)
        if temporary.older.names:
            from binlane.source.absent_tables import with_absent_tables

            manifest = with_absent_tables(source, manifest, temporary)
        with engine.connect() as connection:
            manifest = with_carried(connection, manifest, prepared, xa.ended, folder)
        return replace(manifest, older_sessions=self.older_sessions)

    @contextlib.contextmanager
    def _named_way_out(self) -> Iterator[None]:
        """A log that nobody has any more ends a channel: its message says what begins it again."""
        try:
            yield
        except MissingLogError as exc:
            if self.endpoints.source is None:
                raise
            name = self.channel.name
            raise MissingLogError(
                f"{exc}; or copy everything again: {forgetting_channel(name)} on the target, then "
                f"`binlane bootstrap {name} --replace`"
            ) from exc


def _without_asking(tracker: TemporaryTracker | XaStatements | LoadFileTracker) -> str:
    """The way on for connections that have ended unseen, for a message."""
    ends = tracker.possible_ends() if isinstance(tracker, TemporaryTracker) else ()
    if not ends:
        return ""
    entries = ", ".join(f'"{end}"' for end in ends)
    return (
        ". A connection that has ended without its DROP in the log (sql_log_bin = 0) is noticed where the source can "
        "be asked for its connections: a live server, whose account has PROCESS. Else, when you have seen that it has "
        f"ended: source.ended_sessions = [{entries}]"
    )
