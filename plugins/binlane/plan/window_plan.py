"""plan.json: the facts of a window that the apply step needs, and the counts that its rows are checked against.

Reading is strict: a key that is missing, unknown or of another type is an error, so a plan written by another version
is refused and never half understood.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import pairwise
from typing import Final, Protocol

from binlane.binlog.table_map import TableMap
from binlane.errors import PlanError
from binlane.json_codec.codec import Codec
from binlane.lazy_dataclass import dataclass
from binlane.model import (
    ANY_TABLE,
    Barrier,
    BlockHeader,
    Epoch,
    Flavor,
    Item,
    LogPosition,
    RowCounts,
    TableKey,
    TemporaryCopies,
    plural,
)
from binlane.plan.block.row_size import Widest
from binlane.plan.block.size_choice import SizeChoice
from binlane.plan.division import Division, Placement
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.transaction.xa import PreparedGroup
from binlane.rename_rules import LONGEST
from binlane.schema.canonical import canonical_pieces
from binlane.sql.requirements import Requirement

_AGAIN: Final = "; run the plan job again"
_FILE: Final = re.compile(r"[0-9]{6,}\.parquet")
_TABLE_ID: Final = bytes(6)


CROSS_LANE: Final = "several lanes"
"""The cause of a barrier of a transaction whose databases are in several lanes."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block as the apply step reads it.

    ``items`` may be larger than memory: consume them once, in order, before asking for the next block.
    """

    header: BlockHeader
    format: bytes
    """The FORMAT_DESCRIPTION event to send before the items, checksum algorithm 0."""
    items: Iterable[Item]
    planned: BlockHeader | None = None
    """The block that this one was cut from, if it is a single transaction of a planned block."""


class LaneSource(Protocol):
    """The source of a lane's blocks. Asking again gives the same blocks."""

    def blocks(self, lane: int, after: int) -> Iterator[Block]:
        """The blocks of ``lane`` whose last seqno is greater than ``after``, ascending."""
        ...

    def pieces(self, lane: int, block: BlockHeader) -> Iterator[Block]:
        """The transactions of one of the lane's blocks, each as a block of its own with ``planned`` set."""
        ...

    def makes_null_now(self, first: int, last: int) -> bool:
        """Whether one of the transactions ``first`` to ``last`` is of a session that the window's log last shows
        with ``explicit_defaults_for_timestamp = OFF`` (``plan.segment.timestamp_defaults``)."""
        ...


@dataclass(frozen=True, slots=True)
class TableCounts:
    """A table's row counts, which must agree (docs/invariants.md, 5): read = filtered + folded + written."""

    read: RowCounts = field(default_factory=RowCounts)
    filtered: RowCounts = field(default_factory=RowCounts)
    folded: int = 0
    """Row changes folded away: folding changes their kinds, so only their number can be accounted for."""
    written: RowCounts = field(default_factory=RowCounts)


@dataclass(frozen=True, slots=True)
class RuleCounts:
    """Row changes and statements that a rule of the channel's filter leaves out."""

    rows: int = 0
    """Row changes."""
    statements: int = 0

    def __add__(self, other: RuleCounts) -> RuleCounts:
        return RuleCounts(self.rows + other.rows, self.statements + other.statements)


@dataclass(frozen=True, slots=True)
class LaneFile:
    """One lane file: a lane's blocks of one segment; ``name`` is its path in the plan's folder,
    ``lanes/LANE/NUMBER.parquet``."""

    name: str
    first_seqno: int
    last_seqno: int
    blocks: int
    transactions: int
    bytes: int
    blake3: str


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """Lane, transactions and row changes of a shard in a window."""

    lane: int
    transactions: int
    rows: int


@dataclass(frozen=True)
class WindowPlan:
    """The plan of a window. Seqnos are inclusive; an empty window has ``last_seqno = first_seqno - 1``."""

    # no slots: cached_property keeps what many checks ask about ten thousand tables

    channel: str
    window_id: str
    digest: str
    """SHA-256 over all input of the plan; stored on the target before the first block."""
    first_seqno: int
    last_seqno: int
    lanes: int
    """Number of parallel lanes, and so also the number of the serialized lane, which follows them."""
    barriers: tuple[Barrier, ...]
    source: str
    """The source's identity, as stored with the watermark."""
    end: LogPosition
    end_gtid_set: str
    end_time: float
    """Source commit time of the window's last transaction, seconds since the epoch."""
    lane_rows: tuple[RowCounts, ...]
    """Row changes that each lane writes, the serialized lane last."""
    tables: Mapping[TableKey, TableCounts] = field(default_factory=dict)
    files: Sequence[Sequence[LaneFile]] = ()
    """Each lane's files in the order of apply, the serialized lane last."""
    shards: Mapping[str, ShardCounts] = field(default_factory=dict)
    kinds: Mapping[str, int] = field(default_factory=dict)
    """Transactions without statements, and statements by kind."""
    flavor: Flavor = Flavor.MARIADB
    """Flavor of the server that wrote the log."""
    table_maps: Mapping[TableKey, Mapping[str, int]] = field(default_factory=dict)
    """Distinct TABLE_MAP bodies of each table, in hex, without table id, with the first seqno of each: the precheck
    compares them with the target's tables."""
    altered: Alterations = field(default_factory=Alterations)
    """Tables whose definition the window's own DDL may change: before it they may be missing or have another one."""
    defined_in: frozenset[str] = frozenset()
    """Databases that the window's DDL names, also in statements without a table, such as DROP DATABASE."""
    spelled: frozenset[TableKey] = frozenset()
    """Tables with capital letters in their names, or their databases', that statements name as they were typed, without
    temporary ones."""
    time_zones: frozenset[str] = frozenset()
    """Named session time zones of statements; the target must know them."""
    carried_in: tuple[PreparedGroup, ...] = ()
    """XA transactions that earlier windows prepared and this one ends."""
    carried_out: tuple[PreparedGroup, ...] = ()
    """XA transactions that this window prepares and does not end: the target keeps their events until a window does."""
    unsafe: Mapping[str, int] = field(default_factory=dict)
    """Parts of statements whose result depends on the server, with the first seqno of each."""
    loaded: frozenset[TableKey] = frozenset()
    """Tables that a LOAD DATA names."""
    written: frozenset[TableKey] = frozenset()
    """Tables whose rows statements change, without names of temporary tables."""
    undone: frozenset[TableKey] = frozenset()
    """Tables of failed statements and of rolled-back changes: the table's engine decides which changes remain. With
    ``ANY_TABLE`` where a stored routine was called: a binlane that does not know it looks for a table of that name, and
    refuses the window."""
    requirements: Mapping[Requirement, int] = field(default_factory=dict)
    """Features that the window needs on the target, with the first seqno of each."""
    filtered: Mapping[str, RuleCounts] = field(default_factory=dict)
    """Row changes and statements that the channel's filter leaves out, by rule."""
    widest: Mapping[TableKey, Widest] = field(default_factory=dict)
    """The longest rows as statements, of tables with rows that come near the target's max_allowed_packet."""
    longest_statement: tuple[int, int] = (0, 0)
    """Bytes of the longest logged statement, and the first seqno of that length."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Databases that the channel renames: source name -> target name. All other names in the plan are target names."""
    division: Division | None = None
    """How the parallel lanes share divided shards; None if the window has none."""
    epochs: tuple[Epoch, ...] = ()
    """The ends of epochs, ascending; each is the seqno before a barrier of all lanes."""
    size: SizeChoice | None = None
    """What "auto" stands for in the channel's ``blocks``; None if its file says everything."""

    def __post_init__(self) -> None:
        """Raises PlanError if the parts contradict each other."""
        where = f"plan of {self.channel}, window {self.window_id}"
        if self.lanes < 1 or len(self.lane_rows) != self.lanes + 1:
            raise PlanError(
                f"{where}: expected row counts of at least one lane and of the serialized lane, "
                f"got {plural(self.lanes, 'lane')} and {len(self.lane_rows)} row counts{_AGAIN}"
            )
        if self.first_seqno < 1 or self.last_seqno < self.first_seqno - 1:
            raise PlanError(f"{where}: seqnos {self.first_seqno}..{self.last_seqno} are not a range{_AGAIN}")
        for barrier in self.barriers:
            self._check_barrier(barrier, where)
        for before, after in pairwise(self.barriers):
            if after.first <= before.last:
                raise PlanError(
                    f"{where}: barriers {_range(before)} and {_range(after)} overlap or are out of order{_AGAIN}"
                )
        for table, counts in self.tables.items():
            if counts.read.total != counts.filtered.total + counts.folded + counts.written.total:
                raise PlanError(
                    f"{where}: the row counts of {table} do not agree: expected read = filtered + folded away + "
                    f"written, found {counts}; run the plan job again"
                )

    def logged(self, key: TableKey) -> Iterator[tuple[TableMap, int]]:
        """The definitions that a table's rows were logged with, each with its first seqno."""
        for body, seqno in self.table_maps.get(key, {}).items():
            yield TableMap.parse(memoryview(_TABLE_ID + bytes.fromhex(body)), flavor=self.flavor), seqno

    def _check_barrier(self, barrier: Barrier, where: str) -> None:
        lanes = barrier.participants
        if list(lanes) != sorted(set(lanes)) or not set(lanes) <= set(range(self.lanes + 1)):
            raise PlanError(f"{where}: barrier {_range(barrier)}: participants {lanes} are not ascending lanes{_AGAIN}")
        if barrier.owner not in lanes:
            raise PlanError(f"{where}: barrier {_range(barrier)}: owner {barrier.owner} is not a participant{_AGAIN}")
        if not self.first_seqno <= barrier.first <= barrier.last <= self.last_seqno:
            raise PlanError(f"{where}: barrier {_range(barrier)} reaches out of the window{_AGAIN}")

    @property
    def serialized(self) -> int:
        """The serialized lane's number."""
        return self.lanes

    @property
    def serialized_transactions(self) -> int:
        """Transactions inside barriers."""
        return sum(barrier.last - barrier.first + 1 for barrier in self.barriers)

    @property
    def all_lanes(self) -> range:
        """All lanes, the serialized one last."""
        return range(self.lanes + 1)

    @property
    def lanes_with_work(self) -> tuple[int, ...]:
        """The lanes that have a position in the window (``lanes_with_work``)."""
        return lanes_with_work([sum(file.blocks for file in files) for files in self.files], len(self.barriers))

    @property
    def lanes_to_run(self) -> tuple[int, ...]:
        """The lanes that need a task: those with work. If one barrier of all lanes spans the whole window, only its
        owner does: its blocks move the positions of all lanes."""
        if len(self.barriers) == 1:
            [barrier] = self.barriers
            whole = (barrier.first, barrier.last) == (self.first_seqno, self.last_seqno)
            if whole and barrier.participants == tuple(self.all_lanes):
                return (barrier.owner,)
        return self.lanes_with_work

    def is_divided(self, shard: str) -> bool:
        """Whether all parallel lanes share the shard."""
        return self.division is not None and shard in self.division.shards

    @property
    def rows(self) -> RowCounts:
        """Row changes that the window writes: the sum over its lanes."""
        return sum(self.lane_rows, RowCounts())

    @cached_property
    def applied_tables(self) -> frozenset[TableKey]:
        """Tables whose row changes are not all filtered out."""
        return frozenset(key for key, each in self.tables.items() if each.read.total > each.filtered.total)

    @property
    def undone_tables(self) -> frozenset[TableKey]:
        """The tables of ``undone`` that the window's statements name."""
        return self.undone - {ANY_TABLE}

    @property
    def complete_images(self) -> bool:
        """Whether row events log every change: no statement computes a value on the target."""
        return self.kinds.keys() <= {"rows", "ddl", "global", "transaction"}

    def indivisible(self, first: int, last: int) -> Barrier | None:
        """The first barrier that is applied as a whole and holds one of the seqnos; None if there is none."""
        return next(
            (each for each in self.barriers if each.is_indivisible and each.first <= last and first <= each.last), None
        )

    def barriers_of(self, lane: int) -> tuple[Barrier, ...]:
        """The barriers that ``lane`` takes part in, ascending."""
        return tuple(barrier for barrier in self.barriers if lane in barrier.participants)

    def to_json(self) -> bytes:
        """Canonical bytes: the same plan gives the same ones."""
        return b"".join(self.json_pieces())

    def sealed(self) -> tuple[WindowPlan, bytes]:
        """This plan with its digest, and the bytes of ``to_json``, which are spelled once: for a fleet that takes as
        long as to read its settings."""
        data = dataclasses.replace(self, digest="").to_json()
        digest = hashlib.sha256(data).hexdigest()
        return dataclasses.replace(self, digest=digest), data.replace(_NO_DIGEST, _digest_key(digest), 1)

    def json_pieces(self) -> Iterator[bytes]:
        """The bytes of ``to_json``, with the files of no more than one lane at a time."""
        values = PLAN.dump(self)
        altered, requirements = values.pop("altered"), values.pop("requirements")
        return canonical_pieces(
            values | {"altered": altered["tables"], "unread": altered["unread"], "demands": requirements}
        )

    @classmethod
    def from_json(cls, data: bytes, where: str = "plan.json") -> WindowPlan:
        """Raises PlanError, naming ``where``, for anything that ``to_json`` does not write."""
        values = PLAN.parsed(data, where)
        altered = {"tables": "altered", "unread": "unread"}
        values["altered"] = {part: values.pop(name) for part, name in altered.items() if name in values}
        if "demands" in values:
            values["requirements"] = values.pop("demands")
        plan: WindowPlan = PLAN.load(cls, values, where)
        plan._check_names(where)
        return plan

    def _check_names(self, where: str) -> None:
        """A lane file is one of its lane in the plan's folder: whoever makes a plan names no other file of a worker."""
        for lane, files in enumerate(self.files):
            begin = f"lanes/{lane:04d}/"
            for file in files:
                if not file.name.startswith(begin) or _FILE.fullmatch(file.name, len(begin)) is None:
                    expected = f"expected {begin}NNNNNN.parquet, found {file.name[:LONGEST]!r}"
                    raise PlanError(f"{where}: a file of lane {lane}: {expected}{_AGAIN}")


PLAN: Final = Codec(
    "run the plan job again",
    rows=frozenset(
        {
            *(Requirement, LaneFile, LogPosition, Placement, PreparedGroup, RowCounts),
            *(RuleCounts, ShardCounts, TableKey, TemporaryCopies, Widest),
        }
    ),
    numbers=frozenset({"together"}),
    by_text=frozenset({"table_maps"}),
)
"""Codec of plan.json, where ``altered`` is split into two members, ``altered`` and ``unread``, and ``requirements`` is
the member ``demands``."""


def lanes_with_work(blocks: Sequence[int], barriers: int) -> tuple[int, ...]:
    """The lanes that have work, by each lane's number of blocks: all of them in a window with barriers, where lanes
    meet; else those with blocks, and lane 0 if none has any.

    Only they have a position while the window is applied. A lane without work would stand at the window's end at once,
    and a stop where the foremost lane stands would be there, too.
    """
    if barriers:
        return tuple(range(len(blocks)))
    return tuple(lane for lane, count in enumerate(blocks) if count) or (0,)


def without_digest(data: bytes, digest: str) -> bytes:
    """The bytes of a plan.json as they were when its digest was taken: ``to_json`` without the digest."""
    return data.replace(_digest_key(digest), _NO_DIGEST, 1)


def _digest_key(digest: str) -> bytes:
    return b'"digest": "%s"' % digest.encode()


_NO_DIGEST: Final = _digest_key("")


def _range(barrier: Barrier) -> str:
    return f"{barrier.first}..{barrier.last}"
