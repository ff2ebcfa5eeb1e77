"""The set of transactions in a log up to a position, in the servers' notation.

MySQL: ``uuid:1-5:7,uuid:tag:1-3``, every transaction. MariaDB: ``0-1-100,1-1-7``, the newest of each domain. In front
of it stands what the source has of this domain and its log does not: ``0-7-500,0-1-100`` is a source with 0-1-100 in
its log, which got everything up to 0-7-500 by a dump that set gtid_slave_pos. Its next transaction has a higher number.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Set
from operator import itemgetter
from typing import Final, Protocol

from binlane.binlog.events import parse_body
from binlane.binlog.format_description import FormatDescription
from binlane.binlog.gtids import Gtid, MariadbGtid, MariadbGtidList, PreviousGtids
from binlane.binlog.wire import RawEvent, type_name, where
from binlane.errors import BinlogError, SourceError
from binlane.model import Flavor

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_INTERVAL: Final = re.compile(r"(\d{1,20})(?:-(\d{1,20}))?")
_TAG: Final = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_LEFT_OUT: Final = 100
"""Transactions in a row that a MariaDB replica's log may lack because they have changed nothing: more of them are what
a dump has put in."""
_TRIPLE: Final = re.compile(r"(\d{1,10})-(\d{1,10})-(\d{1,20})")


def gtids_in(
    event: RawEvent, log_format: FormatDescription, name: str
) -> Gtid | MariadbGtid | PreviousGtids | MariadbGtidList:
    """What an event with GTIDs says. Raises BinlogError for one of the other family, whose GTIDs are in no set of this
    log's."""
    found = parse_body(event, log_format, name)
    if log_format.flavor is Flavor.MYSQL:
        if isinstance(found, Gtid | PreviousGtids):
            return found
    elif isinstance(found, MariadbGtid | MariadbGtidList):
        return found
    raise BinlogError(
        f"{where(name, event.offset)}{type_name(event.header.type_code)}: no server of version "
        f"{log_format.server_version!r} writes it; the file is damaged here"
    )


class GtidSet(Protocol):
    """A set that transactions of a log are added to; ``str`` is canonical."""

    def add(self, gtid: Gtid | MariadbGtid, server_id: int) -> None:
        """Add a transaction by its GTID event; ``server_id`` is that of its header."""

    def add_through(self, first: Gtid | MariadbGtid, last: Gtid | MariadbGtid, server_id: int) -> None:
        """Add all consecutive transactions from ``first`` to ``last``, of one server and, in MariaDB, of one domain."""

    def add_head(self, head: PreviousGtids | MariadbGtidList) -> None:
        """Add the transactions of all earlier files, as the head of a file lists them."""

    def holds(self, gtid: Gtid | MariadbGtid) -> bool:
        """Whether the transaction is in the set."""

    def holds_head(self, head: PreviousGtids | MariadbGtidList) -> bool:
        """Whether all transactions before a file are in the set."""

    def repeats(self, first: Gtid | MariadbGtid, last: Gtid | MariadbGtid) -> bool:
        """Whether the set holds one of these consecutive transactions, so that a log would have it twice. False where a
        family's servers may log numbers out of order."""

    def without(self, other: GtidSet) -> GtidSet:
        """What is in this set and not in the other one; MariaDB: the newest of each domain that differs."""

    def ahead_of(self, other: GtidSet) -> GtidSet:
        """The same; MariaDB: the newest of each domain whose number is higher than in the other set."""


class MysqlGtidSet:
    """Intervals by UUID and tag."""

    def __init__(self) -> None:
        self._intervals: dict[tuple[str, str], list[list[int]]] = {}

    @classmethod
    def parse(cls, text: str) -> MysqlGtidSet:
        """Raises SourceError for a text that is not a GTID set."""
        found = cls()
        for part in filter(None, (one.strip() for one in text.split(","))):
            sid, *rest = (item.strip() for item in part.split(":"))
            # a UUID and a tag need at least one interval
            if _UUID.fullmatch(sid) is None or not rest or _INTERVAL.fullmatch(rest[-1]) is None:
                raise SourceError(f"expected a GTID set such as uuid:1-5, got {text!r}")
            tag = ""
            for item in rest:
                if match := _INTERVAL.fullmatch(item):
                    found._add_range(sid.lower(), tag, int(match[1]), int(match[2] or match[1]))
                elif _TAG.fullmatch(item):
                    tag = item
                else:
                    raise SourceError(f"expected a GTID set such as uuid:1-5, got {text!r}")
        return found

    def add(self, gtid: Gtid | MariadbGtid, server_id: int) -> None:
        """See GtidSet. Anonymous transactions, number 0, are in no set."""
        self.add_through(gtid, gtid, server_id)

    def add_through(self, first: Gtid | MariadbGtid, last: Gtid | MariadbGtid, server_id: int) -> None:
        """See GtidSet."""
        assert isinstance(first, Gtid)
        assert isinstance(last, Gtid)
        if first.gno:
            self._add_range(first.sid, first.tag, first.gno, last.gno)

    def add_head(self, head: PreviousGtids | MariadbGtidList) -> None:
        """See GtidSet."""
        assert isinstance(head, PreviousGtids)
        for sid, tag, intervals in head.sets:
            for first, last in intervals:
                self._add_range(sid, tag, first, last)

    def holds(self, gtid: Gtid | MariadbGtid) -> bool:
        """See GtidSet."""
        assert isinstance(gtid, Gtid)
        return self._holds_range(gtid.sid, gtid.tag, gtid.gno, gtid.gno)

    def holds_head(self, head: PreviousGtids | MariadbGtidList) -> bool:
        """See GtidSet."""
        assert isinstance(head, PreviousGtids)
        return all(
            self._holds_range(sid, tag, first, last) for sid, tag, intervals in head.sets for first, last in intervals
        )

    def repeats(self, first: Gtid | MariadbGtid, last: Gtid | MariadbGtid) -> bool:
        """See GtidSet."""
        assert isinstance(first, Gtid)
        assert isinstance(last, Gtid)
        ranges = self._intervals.get((first.sid, first.tag), [])
        if not ranges or ranges[-1][1] < first.gno:
            return False
        at = bisect_right(ranges, last.gno, key=itemgetter(0)) - 1
        return at >= 0 and ranges[at][1] >= first.gno

    def without(self, other: GtidSet) -> MysqlGtidSet:
        """See GtidSet."""
        assert isinstance(other, MysqlGtidSet)
        rest = MysqlGtidSet()
        for key, ranges in self._intervals.items():
            removed = other._intervals.get(key, [])
            at = 0
            for low, high in ranges:
                while at < len(removed) and removed[at][1] < low:
                    at += 1
                begin, behind = low, at
                while begin <= high and behind < len(removed) and removed[behind][0] <= high:
                    if removed[behind][0] > begin:
                        rest._add_range(*key, begin, removed[behind][0] - 1)
                    begin, behind = removed[behind][1] + 1, behind + 1
                if begin <= high:
                    rest._add_range(*key, begin, high)
        return rest

    def ahead_of(self, other: GtidSet) -> MysqlGtidSet:
        """See GtidSet."""
        return self.without(other)

    def _add_range(self, sid: str, tag: str, first: int, last: int) -> None:
        ranges = self._intervals.setdefault((sid, tag), [])
        if ranges and ranges[-1][1] + 1 == first:
            ranges[-1][1] = last
            return
        begin = end = bisect_right(ranges, [first, last])
        if begin and ranges[begin - 1][1] + 1 >= first:
            begin -= 1
            first, last = ranges[begin][0], max(last, ranges[begin][1])
        # only those that it touches: a log may have its numbers in any order
        while end < len(ranges) and ranges[end][0] <= last + 1:
            last = max(last, ranges[end][1])
            end += 1
        ranges[begin:end] = [[first, last]]

    def _holds_range(self, sid: str, tag: str, first: int, last: int) -> bool:
        ranges = self._intervals.get((sid, tag), [])
        at = bisect_right(ranges, first, key=itemgetter(0)) - 1
        return at >= 0 and last <= ranges[at][1]

    def __str__(self) -> str:
        return ",".join(
            ":".join((*filter(None, key), *(str(a) if a == b else f"{a}-{b}" for a, b in ranges)))
            for key, ranges in sorted(self._intervals.items())
        )


class MariadbGtidSet:
    """The newest transaction of each domain; besides, a higher one that was put in without the log."""

    def __init__(self) -> None:
        self._newest: dict[int, tuple[int, int]] = {}
        self._put_in: dict[int, tuple[int, int]] = {}

    @classmethod
    def parse(cls, text: str) -> MariadbGtidSet:
        """Raises SourceError for a text that is not a GTID position."""
        found = cls()
        for part in filter(None, (one.strip() for one in text.split(","))):
            match = _TRIPLE.fullmatch(part)
            if match is None:
                raise SourceError(f"expected a GTID position such as 0-1-100, got {text!r}")
            domain = int(match[1])
            before = found._newest.get(domain)
            found._set(domain, int(match[2]), int(match[3]))
            if before is not None:
                found._put(domain, before)
        return found

    def add(self, gtid: Gtid | MariadbGtid, server_id: int) -> None:
        """See GtidSet."""
        assert isinstance(gtid, MariadbGtid)
        self._set(gtid.domain_id, server_id, gtid.seq_no)

    def add_through(self, first: Gtid | MariadbGtid, last: Gtid | MariadbGtid, server_id: int) -> None:
        """See GtidSet."""
        self.add(last, server_id)

    def add_head(self, head: PreviousGtids | MariadbGtidList) -> None:
        """See GtidSet. If a domain has several servers, the newest transaction's is the last."""
        assert isinstance(head, MariadbGtidList)
        for domain, server_id, seq_no in head.gtids:
            self._set(domain, server_id, seq_no)

    def holds(self, gtid: Gtid | MariadbGtid) -> bool:
        """See GtidSet."""
        assert isinstance(gtid, MariadbGtid)
        return gtid.seq_no <= self._newest.get(gtid.domain_id, (0, 0))[1]

    def holds_head(self, head: PreviousGtids | MariadbGtidList) -> bool:
        """See GtidSet."""
        assert isinstance(head, MariadbGtidList)
        return all(seq_no <= self._newest.get(domain, (0, 0))[1] for domain, _, seq_no in head.gtids)

    def repeats(self, first: Gtid | MariadbGtid, last: Gtid | MariadbGtid) -> bool:
        """See GtidSet. False: without gtid_strict_mode a domain's numbers may come in any order, and twice."""
        return False

    def without(self, other: GtidSet) -> MariadbGtidSet:
        """See GtidSet."""
        assert isinstance(other, MariadbGtidSet)
        rest = MariadbGtidSet()
        rest._newest = {each: newest for each, newest in self._newest.items() if other._newest.get(each) != newest}
        return rest

    def ahead_of(self, other: GtidSet) -> MariadbGtidSet:
        """See GtidSet."""
        assert isinstance(other, MariadbGtidSet)
        rest = MariadbGtidSet()
        rest._newest = {
            each: newest for each, newest in self._whole().items() if newest[1] > other._whole().get(each, (0, 0))[1]
        }
        return rest

    def with_put_in(self, other: MariadbGtidSet) -> MariadbGtidSet:
        """This set of a log, and what was put in besides."""
        found = MariadbGtidSet.parse(str(self))
        for domain, newest in other._whole().items():
            if domain in found._newest:
                found._put(domain, newest)
            else:
                found._newest[domain] = newest
        return found

    def logged(self) -> MariadbGtidSet:
        """Without what was put in, in each domain of which the log has a transaction."""
        found = MariadbGtidSet()
        found._newest = self._newest
        return found

    def reached(self) -> MariadbGtidSet:
        """The highest of each domain, logged or put in, as a server's gtid_current_pos has it."""
        found = MariadbGtidSet()
        found._newest = self._whole()
        return found

    def passed_over(
        self, positions: MariadbGtidSet, gtid: MariadbGtid, server_id: int, *, is_own: bool, begins_file: bool
    ) -> str:
        """The newest transaction that one server has numbered between its newest one here and ``gtid``, which follows
        it in the log of a source with these ``positions`` (gtid_slave_pos); empty if the log lacks none. ``is_own``:
        that server is the source. ``begins_file``: ``gtid`` is a file's first.

        A replica's log leaves out numbers on its own: of what changes no row, and of temporary tables. How many proves
        nothing within one file, between two of which a replica that was copied anew has been started.
        """
        before, reached = self._newest.get(gtid.domain_id), positions._newest.get(gtid.domain_id)
        if before is None or reached is None or before[0] != server_id:
            return ""
        last = min(reached[1], gtid.seq_no - 1)
        # a server leaves out none of its own numbers
        is_put_in = is_own and reached == (server_id, last)
        missed = last - self._whole()[gtid.domain_id][1]
        is_lost = missed > 0 if is_put_in else begins_file and missed > _LEFT_OUT
        return f"{gtid.domain_id}-{server_id}-{last}" if is_lost else ""

    def domains(self) -> Set[int]:
        """The domains that have a transaction."""
        return self._newest.keys()

    def _set(self, domain: int, server_id: int, seq_no: int) -> None:
        self._newest[domain] = server_id, seq_no
        if self._put_in and self._put_in.get(domain, (0, 0))[1] <= seq_no:
            self._put_in.pop(domain, None)

    def _put(self, domain: int, other: tuple[int, int]) -> None:
        if other[1] > self._whole()[domain][1]:
            self._put_in[domain] = other

    def _whole(self) -> dict[int, tuple[int, int]]:
        return self._newest | self._put_in

    def __str__(self) -> str:
        gtids = sorted(
            [(domain, 1, each) for domain, each in self._newest.items()]
            + [(domain, 0, each) for domain, each in self._put_in.items()]
        )
        return ",".join(f"{domain}-{server}-{seq_no}" for domain, _, (server, seq_no) in gtids)


def parse_gtid_set(flavor: Flavor, text: str) -> GtidSet:
    """Parse a GTID set; an empty text is the empty set. Raises SourceError."""
    return MysqlGtidSet.parse(text) if flavor is Flavor.MYSQL else MariadbGtidSet.parse(text)


def joined(flavor: Flavor, one: str, other: str) -> str:
    """A log's GTID set, and what its source has besides."""
    first, second = parse_gtid_set(flavor, one), parse_gtid_set(flavor, other)
    if isinstance(first, MariadbGtidSet) and isinstance(second, MariadbGtidSet):
        return str(first.with_put_in(second))
    return str(parse_gtid_set(flavor, f"{one},{other}"))


def is_at(flavor: Flavor, named: str, found: str) -> bool:
    """Whether a set that a copy has recorded is that of a place, ``found``; MariaDB: also without what was put in, and
    with the highest of each domain alone."""
    place = parse_gtid_set(flavor, found)
    sets = (place.logged(), place.reached(), place) if isinstance(place, MariadbGtidSet) else (place,)
    # servers write tagged GTIDs in another spelling than this set's
    return str(parse_gtid_set(flavor, named)) in map(str, sets)


def not_logged(positions: str, logged: str) -> str:
    """MariaDB: the transactions of gtid_slave_pos that gtid_binlog_state, which has the newest one of each server in
    each domain, does not have."""
    newest = {(domain, server): int(number) for domain, server, number in _TRIPLE.findall(logged)}
    return ",".join(
        f"{domain}-{server}-{number}"
        for domain, server, number in _TRIPLE.findall(positions)
        if int(number) > newest.get((domain, server), 0)
    )


def set_of_head(head: PreviousGtids | MariadbGtidList) -> GtidSet:
    """The transactions of all files before the one that begins with this head."""
    found: GtidSet = MysqlGtidSet() if isinstance(head, PreviousGtids) else MariadbGtidSet()
    found.add_head(head)
    return found
