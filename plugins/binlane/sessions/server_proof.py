"""Which server answers: what a connection of a channel must find, asked of the server at each login.

Of the target, the work folder has a record beside the windows' folders (``target_record``), because a copy of the
target brings along everything that the target has recorded of itself.

A name leads elsewhere after a failover, a restore or a mistake, from one connection to the next. So a source's
endpoint carries a proof, and ``driver.Connection`` asks for it with the first query of a session. Of a channel that has
a watermark the server must be the channel's own, and it must have executed everything up to the watermark, or it was
restored from an older copy. Before that, the server that answers first must answer every later connection.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field

from binlane.errors import BinlaneError, SourceIdentityError, TargetIdentityError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, LogPosition

_NUMBER: dict[Flavor, tuple[str, str]] = {
    Flavor.MYSQL: ("mysql server_uuid", "@@GLOBAL.server_uuid"),
    Flavor.MARIADB: ("mariadb server_id", "@@GLOBAL.server_id"),
}
NO_LOG = (
    "expected a binary log to read, found log_bin = OFF: start the source with log_bin, under its log's former name; "
    "what it changes until then is in no log, and `binlane verify CHANNEL --full --repair` finds it afterwards"
)
_GTID = re.compile(r"(\d{1,10})-(\d{1,10})-(\d{1,20})", re.ASCII)
_ARCHIVE = "archive of server_id"


def mariadb_identity(server_id: int) -> str:
    """``LogState.identity`` of a MariaDB server."""
    return f"{_NUMBER[Flavor.MARIADB][0]} {server_id}"


def archive_identity(flavor: Flavor, server_id: int) -> str:
    """``LogState.identity`` of an archive, by one of its files."""
    return f"{flavor.value} {_ARCHIVE} {server_id}"


def is_another_source(expected: str, found: str) -> bool:
    """Whether two identities, as ``LogState.identity``, are of two sources.

    Of an archive it tells nothing but the family: its files name the server by an id, which a server may change from
    one file to the next. Only the log's fingerprint tells whether an archive's log is that of another archive or of a
    server.
    """
    if expected == found:
        return False
    one, other = expected.split(" ", 1), found.split(" ", 1)
    return one[0] != other[0] or not any(each[-1].startswith(_ARCHIVE) for each in (one, other))


@dataclass(frozen=True, slots=True)
class ServerProof:
    """A server, and how far it must be at least."""

    identity: str
    """As ``LogState.identity``."""
    gtid_set: str = field(default="", compare=False)
    """GTIDs that it must have executed; not compared: endpoints of one server share an engine."""
    position: LogPosition | None = field(default=None, compare=False)
    """The place that its log must have reached; asked where there is no GTID set."""

    @classmethod
    def of(cls, flavor: Flavor, values: Sequence[str], end: LogPosition | None) -> ServerProof:
        """The proof of a server that answered just now: all later connections must be answered by it. ``values``: the
        answer to ``state_query``; ``end``: of its log."""
        number, gtids = values
        return cls(f"{_NUMBER[flavor][0]} {number}", gtids.replace("\n", ""), end)

    def query(self, flavor: Flavor) -> tuple[str, tuple[str, ...]]:
        """The columns of a SELECT for ``refusal``, and their arguments."""
        _, number = _NUMBER[flavor]
        if flavor is Flavor.MARIADB:
            # what a dump has put in is in no log: a server of MariaDB asks itself for both, too
            return f"{number}, @@GLOBAL.gtid_binlog_state, @@GLOBAL.gtid_slave_pos", ()
        return f"{number}, GTID_SUBSET(%s, @@GLOBAL.gtid_executed), @@GLOBAL.server_id", (self.gtid_set,)

    def refusal(self, flavor: Flavor, values: Sequence[str]) -> str | None:
        """Why this is not the server; None if it is."""
        number, reached, besides = values
        is_mysql = flavor is Flavor.MYSQL
        found = f"{_NUMBER[flavor][0]} {number}"
        same = "" if is_mysql else " (if it is the same server, give it that server_id back)"
        if _ARCHIVE in self.identity:
            # the channel was read from an archive until now
            found = f"{flavor.value} {_ARCHIVE} {besides if is_mysql else number}"
            same = " (if its server_id was changed, read the archive first, up to a file of behind the change)"
        if found != self.identity:
            return f"expected the channel's server, {self.identity}, found {found}{same}"
        if flavor is Flavor.MYSQL:
            is_behind = reached != "1"
            reached = "one that has not executed all of them"
        else:
            is_behind = _is_behind(reached, besides, self.gtid_set)
            reached = ",".join(filter(None, (reached, besides)))
        if is_behind:
            return (
                f"expected a server that has executed the channel's transactions up to its watermark, {self.gtid_set}, "
                f"found {reached or 'an empty log'}"
            )
        return None

    def error(self, place: str, why: str) -> BinlaneError:
        """The error for the answer ``why`` of the server at ``place``."""
        return SourceIdentityError(
            f"{place}: {why}: the connection leads to another server, or the server was restored from an "
            "older copy, or its log was reset; nothing was read from it. Point the connection at the channel's "
            "server; a new server needs a new channel (docs/recovery.md, `The source was replaced`)"
        )

    def refused_end(self, end: LogPosition) -> str | None:
        """Why a server whose log ends there is not the server; None if it may be."""
        at = self.position
        if at is None or not at.is_behind(end):
            return None
        return f"expected a log that has reached the channel's watermark, {at}, found one that ends at {end}"


@dataclass(frozen=True, slots=True)
class TargetProof:
    """The channel's target, and how far it must be at least. A record of the work folder."""

    channel: str
    work: str
    """``work.uri`` of the channel."""
    identity: str = ""
    """As ``LogState.identity``; empty: not known."""
    incarnation: str = field(default="", compare=False)
    """As ``Channel.incarnation``."""
    seqno: int = field(default=0, compare=False)

    def query(self, flavor: Flavor) -> tuple[str, tuple[str, ...]]:
        """The columns of a SELECT for ``refusal``, and their arguments."""
        return identity_expression(flavor), ()

    def refusal(self, _flavor: Flavor, values: Sequence[str]) -> str | None:
        """Why this is not the server; None if it is, or if none is known."""
        [found] = values
        if self.identity in ("", found):
            return None
        return f"channel {self.channel}: expected the channel's target, {self.identity}, found {found}"

    def error(self, place: str, why: str) -> BinlaneError:
        """The error for the answer ``why`` of the server at ``place``."""
        return TargetIdentityError(f"{place}: {why}: {elsewhere(self.channel)}")


def elsewhere(channel: str) -> str:
    """What it means that a target is not the expected one, and the ways on."""
    return (
        "the connection leads to a replica, a clone or a restored copy of the target, or to another server; this "
        "command writes nothing there. Point the connection at the channel's target; if this server has replaced it "
        f"on purpose, `binlane adopt-target {channel}` shows what it has, and takes it (docs/recovery.md, `The target "
        "was replaced`)"
    )


def identity_expression(flavor: Flavor) -> str:
    """An SQL expression for the identity of the server that evaluates it."""
    word, number = _NUMBER[flavor]
    return f"CONCAT('{word} ', {number})"


def state_query(flavor: Flavor) -> str:
    """The columns of a SELECT for ``ServerProof.of``."""
    executed = "@@GLOBAL.gtid_binlog_state" if flavor is Flavor.MARIADB else "@@GLOBAL.gtid_executed"
    return f"{_NUMBER[flavor][1]}, {executed}"


def _is_behind(logged: str, replicated: str, watermark: str) -> bool:
    """MariaDB: by domain and server, since numbers of several servers may come in any order, from the log's
    gtid_binlog_state. What a dump has put in has no server's number there: it is proved by the domain alone, from
    gtid_slave_pos, whose server is another one when more was replicated since.

    A domain that was deleted from the server's log tells nothing, unless none is left.
    """
    last, wanted = _by_source(logged), _by_source(watermark)
    positions = {domain: number for (domain, _), number in _by_source(replicated).items()}
    if any(each.count("-") == 2 and _GTID.fullmatch(each.strip()) is None for each in watermark.split(",")):
        # no server has executed what is no GTID: another program has changed the state
        return True
    domains = {domain for domain, _ in last} | positions.keys()
    known = [pair for pair in wanted if pair[0] in domains]
    return bool(wanted) and (
        not known or any(last.get(pair, positions.get(pair[0], -1)) < wanted[pair] for pair in known)
    )


def _by_source(gtids: str) -> dict[tuple[str, str], int]:
    found = (_GTID.fullmatch(each.strip()) for each in gtids.split(","))
    return {(each[1], each[2]): int(each[3]) for each in found if each is not None}
