"""In which order both servers read the rows of a table: by its primary key, if both have it in InnoDB without
partitions."""

from __future__ import annotations

from binlane.precheck.situation.situation import Situation
from binlane.schema.model import Table
from binlane.schema.order_proof import PARTITIONED
from binlane.servers.catalog import is_partitioned

_IN_KEY_ORDER = "innodb"


def common_engine(situation: Situation, target: Table) -> str:
    """The engine by which both servers read a table, ``PARTITIONED`` for one that both have in partitions; "" where
    they read it otherwise, or where nothing tells: of an archive, or of a table that the source does not have any more.
    Raises SourceError."""
    theirs, engine = situation.source_tables, target.engine.lower()
    source = None if theirs is None else theirs.table(target.key)
    if source is None or source.engine.lower() != engine:
        return ""
    if situation.source is None or engine != _IN_KEY_ORDER:
        return engine
    named = situation.on_source(target.key)
    partitioned = situation.target.ask(is_partitioned, target.key), situation.source.ask(is_partitioned, named)
    if partitioned[0] != partitioned[1]:
        return ""
    return PARTITIONED if all(partitioned) else engine


def is_in_key_order(situation: Situation, target: Table) -> bool:
    """Whether the rows of a table lie in the order of one primary key on both servers. In a window that is begun the
    source is not asked again. Raises SourceError."""
    if target.primary_key is None or situation.begun:
        return target.primary_key is not None and target.engine.lower() == _IN_KEY_ORDER
    theirs = situation.source_tables
    source = None if theirs is None else theirs.table(target.key)
    # which key the source had before the window has given it another one, nothing tells
    is_another = any("PRIMARY" in text.words and target.key in text.facts.tables for text in situation.every_text)
    has_same = source is not None and source.primary_key == target.primary_key
    return (has_same or is_another) and common_engine(situation, target) == _IN_KEY_ORDER
