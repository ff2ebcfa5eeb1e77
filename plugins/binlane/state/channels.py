"""Channels: a source, a target, and the watermark, up to which the target holds every transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import (
    ColumnClause,
    Connection,
    Engine,
    Row,
    String,
    Table,
    delete,
    insert,
    literal_column,
    select,
    text,
    update,
)

from binlane.errors import PositionError, PrecheckError, SourceIdentityError, TargetIdentityError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, LogPosition
from binlane.sessions.server_proof import ServerProof, TargetProof, elsewhere, identity_expression, is_another_source
from binlane.sessions.state_guard import view_in_place
from binlane.state.json_columns import optional_value_of, text_of
from binlane.state.tables import NOW, OF_CHANNELS, bootstraps, channels


@dataclass(frozen=True, slots=True)
class Watermark:
    """The target holds every transaction up to ``seqno``."""

    seqno: int
    source: LogPosition
    """Source coordinates where the next transaction begins."""
    gtid_set: str
    source_time: float
    fingerprint: str
    """Fingerprint of the last transaction, to detect that the source's log was replaced."""


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel's row."""

    name: str
    uuid: str
    source_identity: str
    watermark: Watermark
    windows: int
    """The number of windows so far."""
    stopped: str | None = None
    """Who asked the channel to stop, when and where; None: it may run."""
    older_sessions: int = 0
    """The highest id of a source's connection that may be older than the channel."""
    lost_sessions: tuple[str, ...] = ()
    """The source's connections that an earlier window has taken for ended, because the source said so, as
    ``SessionEnd`` writes them."""
    target_identity: str = ""
    """The server whose rows the state speaks of."""
    incarnation: str = ""
    """Random; new with each server that has been adopted as the channel's target."""
    selection: dict[str, Any] | None = None
    """The filter of the newest window, as ``Selection.to_values``; None: there was no window."""
    synced_since: float | None = None
    """Since when, in seconds since the epoch by the source's clock, each reading of its log has found ``sync_binlog``
    1; None: the last one has not, or there was none."""

    @property
    def proof(self) -> ServerProof:
        """What a connection to the source must find: the channel's server, with everything up to the watermark."""
        return ServerProof(self.source_identity, self.watermark.gtid_set, self.watermark.source)


def create_channel(
    engine: Engine,
    name: str,
    source_identity: str,
    start: Watermark,
    keep: Collection[Table] = (),
    *,
    older_sessions: int = 0,
    uuid: str | None = None,
    takes_over: Callable[[Connection], None] | None = None,
) -> Channel:
    """Create the channel's row. An existing row of the same source is returned unchanged, whatever its watermark.

    A new channel starts with no rows of an earlier channel of its name: seqnos begin again at 1, so an old order to
    skip or an old XA transaction would match a new seqno. Rows in the tables ``keep`` stay: they belong to the new
    channel. ``uuid``: of a new row; None: made here. ``takes_over``: in the transaction of a new channel, gives it what
    another one has.

    Raises SourceIdentityError if the channel exists and belongs to another source, PrecheckError if an unfinished first
    copy would not be among those that ``keep`` names: its tables lack rows, and nothing would say so any more.
    """
    with engine.begin() as connection:
        row = connection.execute(select(channels).where(channels.c.channel == name).with_for_update()).one_or_none()
        if row is None:
            if bootstraps not in keep and (copying := unfinished_copy(connection, name, start.source)):
                raise PrecheckError(
                    f"channel {name}: expected no other beginning, found {copying}; nothing was written. If the "
                    f"data was loaded otherwise since: DELETE FROM {bootstraps.fullname} WHERE channel = '{name}', "
                    "then the same command again"
                )
            for table in OF_CHANNELS:
                if table not in keep:
                    connection.execute(delete(table).where(table.c.channel == name))
            connection.execute(
                insert(channels).values(
                    channel=name,
                    uuid=uuid or str(uuid4()),
                    target_identity=identity_of(connection),
                    incarnation=str(uuid4()),
                    source_identity=source_identity,
                    **watermark_values(start),
                    windows=0,
                    older_sessions=older_sessions,
                    created_at=NOW,
                    updated_at=NOW,
                )
            )
            if takes_over is not None:
                takes_over(connection)
        elif is_another_source(row.source_identity, source_identity):
            raise SourceIdentityError(
                f"channel {name}: belongs to source {row.source_identity}, got {source_identity}; a new source "
                f"needs a new channel: `binlane init NEW --after {name}`"
            )
        return read_channel(connection, name)


def has_channel(connection: Connection, name: str) -> bool:
    """Whether this target has the channel; it need not have the schema."""
    return is_named_in(channels, connection, name)


def unfinished_copy(connection: Connection, name: str, start: LogPosition | None = None) -> str:
    """That the channel has an unfinished first copy on this target, and what continues it; empty if it has none, or if
    only the channel is left to begin and ``start`` is its place. The schema need not be there."""
    if not is_named_in(bootstraps, connection, name):
        return ""
    row = connection.execute(select(bootstraps).where(bootstraps.c.channel == name)).one()
    place = LogPosition(row.source_file, row.source_offset)
    if row.finished_for is not None or (row.outcome is not None and place == start):
        return ""
    lacks = "whose tables lack rows" if row.outcome is None else f"whose channel begins at {place}"
    return (
        f"an unfinished first copy, attempt {row.attempts}, {lacks}: `binlane bootstrap {name}` with the same options "
        "continues it"
    )


def is_table(table: Table, connection: Connection) -> bool:
    """Whether this target has a table of the state. Raises StateSchemaError for a view of its name."""
    query = text("SELECT table_type FROM information_schema.tables WHERE table_schema = :schema AND table_name = :name")
    kind = connection.execute(query, {"schema": table.schema, "name": table.name}).scalar()
    if kind == "VIEW":
        raise view_in_place(table.name)
    return kind is not None


def is_named_in(table: Table, connection: Connection, name: str) -> bool:
    """Whether a table of the state has a row for the channel; the table need not be there."""
    if not is_table(table, connection):
        return False
    return connection.execute(select(table.c.channel).where(table.c.channel == name)).first() is not None


def read_channel(
    connection: Connection, name: str, *, for_update: bool = False, of_any_server: bool = False
) -> Channel:
    """The channel's row. Raises PositionError if this target has no such channel, TargetIdentityError if the row came
    here from another server, unless it may be ``of_any_server``."""
    query = select(channels, _identity_here(connection).label("here")).where(channels.c.channel == name)
    row = connection.execute(query.with_for_update() if for_update else query).one_or_none()
    if row is None:
        begins = f"`binlane bootstrap {name}` or `binlane init {name}` begins it"
        raise PositionError(f"channel {name}: unknown on this target; {unfinished_copy(connection, name) or begins}")
    if row.here != row.target_identity and not of_any_server:
        raise TargetIdentityError(
            f"channel {name}: expected the server that its state was written on, {row.target_identity}, found "
            f"{row.here}: {elsewhere(name)}"
        )
    older, lost = row.older_sessions or 0, tuple(filter(None, (row.lost_sessions or "").split(",")))
    return Channel(
        row.channel, row.uuid, row.source_identity, watermark_of(row), row.windows, row.stopped, older,
        lost, row.target_identity, row.incarnation,
        optional_value_of(dict[str, Any], row.selection, channels.c.selection), row.synced_since,
    )  # fmt: skip


def identity_of(connection: Connection) -> str:
    """The server of a connection, as ``LogState.identity``."""
    return str(connection.execute(select(_identity_here(connection))).scalar_one())


def _identity_here(connection: Connection) -> ColumnClause[str]:
    is_mariadb = bool(getattr(connection.dialect, "is_mariadb", False))
    return literal_column(identity_expression(Flavor.MARIADB if is_mariadb else Flavor.MYSQL), String)


def adopt(connection: Connection, name: str) -> Channel:
    """Make the server of the connection the channel's target. The former one's state is another one from now on."""
    values = {"target_identity": identity_of(connection), "incarnation": str(uuid4()), "updated_at": NOW}
    connection.execute(update(channels).where(channels.c.channel == name).values(**values))
    return read_channel(connection, name)


def refuse_older(connection: Connection, proof: TargetProof, place: str) -> None:
    """Raises TargetIdentityError unless this server's state of the channel is the one of which a run has left the
    record ``proof`` in ``place``, at that watermark or a later one. A server without the channel is not judged."""
    query = select(channels.c.incarnation, channels.c.watermark_seqno, _identity_here(connection).label("here"))
    row = connection.execute(query.where(channels.c.channel == proof.channel)).one_or_none()
    if row is None:
        return
    if row.here != proof.identity:
        raise TargetIdentityError(
            f"channel {proof.channel}: expected the channel's target, {proof.identity} ({place}), found {row.here}: "
            f"{elsewhere(proof.channel)}"
        )
    if row.incarnation != proof.incarnation or row.watermark_seqno < proof.seqno:
        other = "another state of the channel, " * (row.incarnation != proof.incarnation)
        # the same server and state: innodb_flush_log_at_trx_commit may be other than 1
        lost = "" if other else "a server that was killed has lost commits that it had confirmed, or "
        raise TargetIdentityError(
            f"channel {proof.channel}: expected a target that has reached seqno {proof.seqno:,} ({place}), found "
            f"{other}a watermark at seqno {row.watermark_seqno:,}: {lost}{elsewhere(proof.channel)}"
        )


def begun_at(connection: Connection, name: str) -> float:
    """When the channel was made, in seconds since the epoch, by the target's clock."""
    found = connection.execute(select(channels.c.created_at).where(channels.c.channel == name)).scalar_one()
    return float(found.replace(tzinfo=UTC).timestamp())


NO_SESSIONS: Final[Mapping[str, Any]] = {"older_sessions": 0, "lost_sessions": None}
"""Of a channel whose source was restarted: none of its connections is older, and each number is another one's."""


def keep_sessions(connection: Connection, channel: Channel, lost: Collection[str], *, is_restarted: bool) -> None:
    """What a window says of the source's connections: ``lost`` are those that it takes for ended."""
    values = dict(NO_SESSIONS) if is_restarted else {}
    if lost:
        before = () if is_restarted else channel.lost_sessions
        values["lost_sessions"] = ",".join(dict.fromkeys((*before, *lost)))
    if values:
        connection.execute(update(channels).where(channels.c.channel == channel.name).values(**values))


def note_selection(engine: Engine, channel: Channel, selection: dict[str, Any], older_sessions: int) -> Channel:
    """Store the filter of the next window, and the highest id of a source's connection that may have been open before
    what the filter takes. Raises PositionError if the watermark has moved since the channel was read."""
    with engine.begin() as connection:
        now = read_channel(connection, channel.name, for_update=True)
        if now.watermark != channel.watermark:
            raise PositionError(
                f"channel {channel.name}: another run has moved the watermark meanwhile; run the step again"
            )
        values = {"selection": text_of(selection), "older_sessions": older_sessions}
        connection.execute(update(channels).where(channels.c.channel == channel.name).values(**values))
        return read_channel(connection, channel.name)


def keep_synced(connection: Connection, name: str, since: float | None) -> None:
    """Store ``Channel.synced_since``."""
    connection.execute(update(channels).where(channels.c.channel == name).values(synced_since=since))


def watermark_of(row: Row[Any]) -> Watermark:
    """The watermark in a channel's row."""
    return Watermark(
        seqno=row.watermark_seqno,
        source=LogPosition(row.source_file, row.source_offset),
        gtid_set=row.gtid_set,
        source_time=row.source_time,
        fingerprint=row.fingerprint,
    )


def watermark_values(mark: Watermark) -> dict[str, object]:
    """The watermark as columns of a channel's row."""
    return {
        "watermark_seqno": mark.seqno,
        "source_file": mark.source.file,
        "source_offset": mark.source.offset,
        "gtid_set": mark.gtid_set,
        "source_time": mark.source_time,
        "fingerprint": mark.fingerprint,
    }


def forgetting_channel(channel: str) -> str:
    """The statement by which an operator lets a channel begin again."""
    return f"DELETE FROM binlane.channels WHERE channel = '{channel}'"
