"""The view of the snapshots of the target that are states of the source (docs/consistency.md)."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, text

from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition
from binlane.state.tables import SCHEMA


def _place(name: str, in_window: str) -> str:
    """A column of a seqno's place in the source's log: the watermark's, an epoch's or the open window's end's."""
    mark = f"WHEN c.watermark_seqno = COALESCE(p.seqno, c.watermark_seqno) THEN c.{name}"
    return f"CASE {mark} WHEN w.last_seqno = p.seqno THEN w.{in_window} ELSE e.{name} END AS {name}"


CONSISTENT: Final = "consistent"
"""The view of the snapshots that readers can trust. INVOKER: its readers need SELECT on its tables, and no account of
binlane must stay for it."""
CONSISTENT_COLUMNS: Final = (
    *("channel", "seqno", "source_identity", "source_file", "source_offset", "gtid_set", "source_time", "skipped"),
)
_CONSISTENT: Final = f"""SELECT c.channel, COALESCE(p.seqno, c.watermark_seqno) AS seqno, c.source_identity,
  {_place("source_file", "end_file")}, {_place("source_offset", "end_offset")}, {_place("gtid_set", "end_gtid_set")},
  {_place("source_time", "end_time")},
  (SELECT COUNT(*) FROM {SCHEMA}.skips AS s WHERE s.channel = c.channel AND s.state = 'skipped') AS skipped
FROM {SCHEMA}.channels AS c
LEFT JOIN (
  SELECT channel, MIN(seqno) AS seqno, MAX(seqno) AS last_seqno, MAX(begun) AS begun, MAX(window_id) AS window_id
  FROM {SCHEMA}.positions GROUP BY channel
) AS p ON p.channel = c.channel
LEFT JOIN {SCHEMA}.windows AS w ON w.channel = c.channel AND w.window_id = p.window_id AND w.last_seqno = p.seqno
LEFT JOIN {SCHEMA}.epochs AS e ON e.channel = c.channel AND e.seqno = p.seqno
WHERE p.channel IS NULL OR (p.seqno = p.last_seqno AND p.begun <= p.seqno)"""
"""A channel has a row where all its positions are equal and no DDL runs, and where it has none, before its first window
(docs/consistency.md). The seqno's place in the source's log is NULL where the state does not have it."""
CONSISTENT_VIEW: Final = f"SQL SECURITY INVOKER VIEW {SCHEMA}.{CONSISTENT} AS\n{_CONSISTENT}"
_STATE: Final = text(
    f"SELECT v.seqno, v.source_identity, v.source_file, v.source_offset, v.gtid_set, v.source_time, v.skipped, "
    f"EXISTS (SELECT 1 FROM {SCHEMA}.epochs AS e WHERE e.channel = v.channel AND e.seqno = v.seqno) AS is_epoch, "
    f"EXISTS (SELECT 1 FROM {SCHEMA}.windows AS w WHERE w.channel = v.channel AND w.state = 'open' "
    "AND w.plan_digest IS NOT NULL AND w.last_seqno > v.seqno) AS is_moving, "
    f"(SELECT c.stopped FROM {SCHEMA}.channels AS c WHERE c.channel = v.channel) AS stopped "
    # not from the view: somebody else's may have taken its place, and would run as who reads it
    f"FROM ({_CONSISTENT}) AS v WHERE v.channel = :channel"
)


@dataclass(frozen=True, slots=True)
class ConsistentState:
    """A state of the source that the target is in, at a known place of the source's log."""

    seqno: int
    source_identity: str
    source: LogPosition
    gtid_set: str
    source_time: float
    skipped: int
    """Transactions by which the target differs from the source."""
    rests: bool
    """The target stays there for now: between windows, at the end of an epoch, or where the channel is stopped."""


def read_consistent_state(connection: Connection, channel: str) -> ConsistentState | None:
    """The state in which the target is, in autocommit; None if it is in none, or at no known place."""
    row = connection.execute(_STATE, {"channel": channel}).first()
    if row is None or row.source_file is None:
        return None
    rests = not row.is_moving or bool(row.is_epoch) or row.stopped is not None
    source = LogPosition(row.source_file, row.source_offset)
    return ConsistentState(row.seqno, row.source_identity, source, row.gtid_set, row.source_time, row.skipped, rests)
