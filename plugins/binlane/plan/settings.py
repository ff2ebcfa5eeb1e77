"""channel.json: the settings of a channel that decide a window's plan.

They, the segments and the schema are the only input of the plan job: equal input gives equal plans, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Final

from binlane.binlog.rows_payload import PACKET_SHARE
from binlane.choices import Reduce
from binlane.json_codec.codec import Codec
from binlane.lazy_dataclass import dataclass
from binlane.plan.block.builder import BlockLimits
from binlane.plan.block.size_choice import USUAL_TRANSACTIONS, SizeChoice
from binlane.plan.consistency import ConsistencyLevel, level_of
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.plan.transaction.collations import Collations
from binlane.schema.canonical import canonical_json
from binlane.shards.renaming import Renaming
from binlane.shards.selection import EVERYTHING, Selection
from binlane.shards.shard_list import HashMethod, parse_shard_list


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """The channel's settings, as they stood when the window was extracted."""

    channel: str
    window: str
    lanes: int
    """Number of parallel lanes, and so also the number of the serialized lane, which follows them."""
    shard_list: str
    """The text of the shard list."""
    shard_list_path: str
    """Where the shard list was read from; for messages."""
    assigner: str
    consistency: str
    epoch_seconds: int
    fold_gap: int
    """Barriers with at most this many transactions between them, and about one block's bytes, are joined."""
    block_transactions: int | None
    """None: chosen by what the window changes (``plan.window.size_choice``)."""
    block_bytes: int
    block_seconds: int
    """Longest source time in one block; 0: no limit."""
    payload_bytes: int
    """Usual bytes of events in one BINLOG statement."""
    largest_bytes: int
    """Most bytes of events in one BINLOG statement: the target takes no more."""
    reduce: str
    """``off``: row events go to the target as logged; ``block``: each block is folded to its net effect; ``window``: so
    are all changes of a lane between two barriers, across blocks and segments; ``auto``: ``block`` or
    ``window``, chosen as ``block_transactions`` is."""
    window_bytes: int
    """Bytes of events that ``window`` folds at once."""
    not_reduced: list[list[str]]
    """Databases and tables whose keys differ between source and target: their changes are not folded."""
    target: str
    """The target's flavor; literals of user variables are written for it."""
    target_version: str
    filters: Mapping[str, Any] = field(default_factory=dict)
    """The channel's filter, as ``Selection.to_values`` writes it; empty if it takes everything."""

    renames: list[list[str]] = field(default_factory=list)
    """The channel's ``[rename]``: source name and target name of each rule, in order."""
    collations: list[list[str]] = field(default_factory=list)
    """The channel's ``[collations]``: source collation and target collation of each rule."""
    folds_names: bool = False
    """The target compares names of databases and tables without regard to case."""
    epoch_transactions: int | None = None
    """``lanes.epoch_transactions``; the manifest has the epochs."""
    divide: str | None = None
    """``lanes.divide``; None without divided shards."""
    commits_together: bool = False
    """``lanes.commit`` is "together"; False without divided shards."""
    measures_rows: bool = True
    """Rows of some tables are sent as statements, so the plan records their lengths (``WindowPlan.widest``)."""
    small_blocks: str | None = None
    """Why blocks must not be chosen larger than usual; None if they may be, or if nothing is chosen."""

    @property
    def renaming(self) -> Renaming:
        """Names of the log's databases on the target."""
        return Renaming(tuple((old, new) for old, new in self.renames), self.folds_names and bool(self.renames))

    @property
    def rules(self) -> ChannelRules:
        """The channel's filter, renames and collations."""
        collations = Collations(tuple((old, new) for old, new in self.collations))
        return ChannelRules(self.selection, self.renaming, collations)

    @property
    def selection(self) -> Selection:
        """The channel's filter."""
        return Selection.of(self.filters) if self.filters else replace(EVERYTHING, folds_names=self.folds_names)

    @property
    def level(self) -> ConsistencyLevel:
        """The consistency level. Raises ConfigError if the site's own class cannot be imported."""
        return level_of(self.consistency, self.epoch_seconds)

    @property
    def chooses_size(self) -> bool:
        """Whether "auto" stands for the size of blocks, or for what is folded."""
        return self.reduce == Reduce.AUTO or self.block_transactions is None

    @property
    def places_by_load(self) -> bool:
        """Whether the shard list places shards by their share of the window."""
        return parse_shard_list(self.shard_list, self.shard_list_path, lanes=self.lanes).hash_method is HashMethod.LOAD

    @property
    def limits(self) -> BlockLimits:
        """The limits at which a block ends, once its size is chosen (``chosen``)."""
        transactions = USUAL_TRANSACTIONS if self.block_transactions is None else self.block_transactions
        return BlockLimits(transactions, self.block_bytes, self.payload_bytes, self.largest_bytes, self.block_seconds)

    def chosen(self, choice: SizeChoice | None) -> PlanSettings:
        """The settings with what the plan job chose; None: the channel's file says everything."""
        if choice is None:
            return self
        return replace(self, reduce=choice.reduce, block_transactions=choice.transactions)

    @property
    def packet(self) -> int:
        """The target's max_allowed_packet that the window was planned for, approximately."""
        return int(self.largest_bytes / PACKET_SHARE)

    def to_json(self) -> bytes:
        """Canonical bytes of channel.json."""
        return canonical_json(SETTINGS.dump(self))

    @classmethod
    def from_json(cls, data: bytes, where: str) -> PlanSettings:
        """Raises PlanError, naming ``where``, for anything that ``to_json`` does not write."""
        return SETTINGS.load(cls, SETTINGS.parsed(data, where), where)


SETTINGS: Final = Codec(
    "extract the window again",
)
"""Codec of channel.json."""
