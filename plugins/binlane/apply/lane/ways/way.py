"""The names of the ways to apply a block, and the states of a block between them (``table``)."""

from __future__ import annotations

from enum import Enum


class Way(Enum):
    """How a block is applied. The classes are in ``table.CLASSES``."""

    NEW = "nothing is known but the block itself"
    TRANSACTION = "in one transaction of the target"
    TRANSACTION_NULL_NOW = "in one transaction, where NULL for a TIMESTAMP is the current time"
    NONTRANSACTIONAL = "behind a note, or outside of any transaction of the target"
    NONTRANSACTIONAL_NULL_NOW = "behind a note, or outside of any transaction, where NULL is the current time"
    ROW_BY_ROW = "in one transaction, row by row, as the channel's conflict policy says"
    ROW_BY_ROW_NULL_NOW = "row by row, where NULL for a TIMESTAMP is the current time"
    PIECES = "its transactions, each as a block of its own"
    SHARES_ALONE = "the shares of all lanes in one transaction, by one lane"
    BARRIER = "all blocks of a barrier in one transaction"
    BARRIER_NOTE = "all blocks of a barrier in one transaction, behind a note"
