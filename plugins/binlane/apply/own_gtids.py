"""The GTIDs of a channel on a MySQL target, and its state there: they are of one moment, or a DDL is left out.

A DDL runs under a GTID of the channel, and MySQL leaves out what it has executed. No run executes one beyond the state:
the state says before it that the statement begins. So a GTID beyond it is of other data than the state: a dump was
loaded into a server that has kept its GTIDs.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, text

from binlane.apply import nontransactional
from binlane.apply.ddl.run import gtid_uuid
from binlane.errors import TargetIdentityError
from binlane.state.channels import Channel
from binlane.state.positions import begun_seqno

_LAST: Final = 2**63 - 2
"""The highest number of a GTID."""
_EXECUTED: Final = "SELECT GTID_SUBTRACT(:own, GTID_SUBTRACT(:own, @@GLOBAL.gtid_executed))"


def own_gtids_beyond(connection: Connection, channel: Channel) -> str:
    """The channel's GTIDs that the server has executed, of seqnos that its state has not begun; empty on MariaDB."""
    if getattr(connection.dialect, "is_mariadb", False):
        return ""
    first = max(channel.watermark.seqno, begun_seqno(connection, channel.name)) + 1
    uuids = gtid_uuid(channel.uuid), nontransactional.gtid_uuid(channel.uuid, 0)
    own = ",".join(f"{uuid}:{first}-{_LAST}" for uuid in uuids)
    return str(connection.execute(text(_EXECUTED), {"own": own}).scalar_one()).replace("\n", "")


def require_own_gtids(connection: Connection, channel: Channel) -> None:
    """Raises TargetIdentityError for a server with GTIDs beyond its state."""
    beyond = own_gtids_beyond(connection, channel)
    if beyond:
        raise TargetIdentityError(
            f"channel {channel.name}: expected a server whose executed GTIDs are of the moment of its state, which has "
            f"reached seqno {channel.watermark.seqno:,}, found {beyond} executed: the DDL of these seqnos would be "
            "left out. If its rows and its schema binlane were copied at one moment at which no window was open, "
            "forget its GTIDs (RESET BINARY LOGS AND GTIDS, before MySQL 8.4 RESET MASTER; its replicas are to be made "
            "anew) and adopt it then; else begin the channel again (docs/recovery.md, `Begin a channel again`)"
        )
