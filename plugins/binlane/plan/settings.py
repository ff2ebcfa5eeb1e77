"""What a channel decides about a window's plan, as channel.json in the window's folder.

With the segments and the schema it is all that the filter job knows: the same three give the same plan, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from binlane.binlog.rows_payload import PACKET_SHARE
from binlane.extension import chosen
from binlane.json_codec.codec import Codec
from binlane.plan.block.builder import BlockLimits
from binlane.plan.consistency import LEVELS, ConsistencyLevel
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.plan.transaction.collations import Collations
from binlane.schema.canonical import canonical_json
from binlane.shards.renaming import Renaming
from binlane.shards.selection import EVERYTHING, Selection


@dataclass(frozen=True, slots=True)
class FilterSettings:
    """The channel's choices, as they stood when the window was extracted."""

    channel: str
    window: str
    lanes: int
    """Parallel lanes; the serialized lane comes on top and has this number."""
    shard_list: str
    """The text of the shard list."""
    shard_list_path: str
    """Where it was read from; for messages."""
    assigner: str
    consistency: str
    epoch_seconds: int
    fold_gap: int
    """Barriers with at most this many transactions between them, and no more of them than a block has bytes for, become
    one stretch."""
    block_transactions: int
    block_bytes: int
    block_seconds: int
    """Of source time in one block, at most; 0: any."""
    payload_bytes: int
    """Bytes of events in one BINLOG statement, usually."""
    largest_bytes: int
    """Bytes of events in the largest one that the target takes."""
    reduce: str
    """``off``: row events go to the target as they are; ``block``: each block is folded to its net effect; ``window``:
    and what a lane does between two barriers is, over blocks and segments."""
    window_bytes: int
    """Bytes of events that are folded at once for ``window``."""
    not_reduced: list[list[str]]
    """Databases and tables whose keys differ between source and target: their changes keep their order."""
    target: str
    """The target's flavor: values of user variables are spelled its way."""
    target_version: str
    filters: Mapping[str, Any] = field(default_factory=dict)
    """``Selection.to_values`` of the channel's filter; empty if it takes everything."""

    renames: list[list[str]] = field(default_factory=list)
    """The channel's ``[rename]``: the source's side and the target's of each rule, in order."""
    collations: list[list[str]] = field(default_factory=list)
    """The channel's ``[collations]``: the source's collation and the target's of each rule."""
    folds_names: bool = False
    """The target takes names in any case."""
    measures_rows: bool = True
    """Statements will write rows, of some tables at least: how long they are is worth knowing (``plan.widest``)."""

    @property
    def renaming(self) -> Renaming:
        """What the log's databases are called on the target."""
        return Renaming(tuple((old, new) for old, new in self.renames), self.folds_names and bool(self.renames))

    @property
    def rules(self) -> ChannelRules:
        """What is taken, and what it is called on the target."""
        collations = Collations(tuple((old, new) for old, new in self.collations))
        return ChannelRules(self.selection, self.renaming, collations)

    @property
    def selection(self) -> Selection:
        """What of the log is taken."""
        return Selection.of(self.filters) if self.filters else replace(EVERYTHING, folds_names=self.folds_names)

    @property
    def level(self) -> ConsistencyLevel:
        """When the lanes meet. Raises ConfigError for a class of the site that cannot be imported here."""
        return chosen(LEVELS, self.consistency, "lanes.consistency")(self.epoch_seconds)

    @property
    def limits(self) -> BlockLimits:
        """What ends a block."""
        return BlockLimits(
            self.block_transactions, self.block_bytes, self.payload_bytes, self.largest_bytes, self.block_seconds
        )

    @property
    def packet(self) -> int:
        """The target's max_allowed_packet that the window was planned for, about."""
        return int(self.largest_bytes / PACKET_SHARE)

    def to_json(self) -> bytes:
        """Canonical bytes of channel.json."""
        return canonical_json(SETTINGS.dump(self))

    @classmethod
    def from_json(cls, data: bytes, where: str) -> FilterSettings:
        """Raises PlanError, naming ``where``, for anything that ``to_json`` does not write."""
        return SETTINGS.load(cls, SETTINGS.parsed(data, where), where)


SETTINGS: Final = Codec("extract the window again", left_out=frozenset({"collations"}))
"""channel.json."""
