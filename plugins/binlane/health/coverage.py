"""What verifications have proved of a channel, and how far the round over all rows is."""

from __future__ import annotations

from binlane.health.durations import span
from binlane.health.unshown import told
from binlane.lazy_dataclass import dataclass
from binlane.model import plural
from binlane.state.records.history import Snapshot, seconds_of
from binlane.state.records.verifications import PENDING, without_key


@dataclass(frozen=True, slots=True)
class FullRound:
    """An unfinished verification of all rows, which may be read in slices. Durations are seconds."""

    begun_at: float
    """Seconds since the epoch, by the target's clock."""
    rows: int
    """Rows compared so far, in all slices."""
    expected: int
    """Approximate rows of all tables; 0: not known."""
    reading: float
    """The time that its slices have taken."""
    reading_left: float | None
    """The time that the rows that are left will take to be read at the rate so far; None: not known."""
    left: float | None
    """The time to the end of the round, pauses between slices included, at the pace since its beginning."""

    @property
    def share(self) -> float | None:
        """From 0 to 1; None: not known."""
        return min(1.0, self.rows / self.expected) if self.expected else None

    @property
    def told(self) -> str:
        """As text."""
        share = self.share
        if share is None:
            return f"{plural(self.rows, 'row')} compared"
        told = f"{self.rows:,} of about {plural(self.expected, 'row')} compared ({share:.0%})"
        if self.reading_left is not None:
            told += f", {span(self.reading_left)} of reading left"
        return told if self.left is None else f"{told}, done in {span(self.left)} at the pace since its begin"


@dataclass(frozen=True, slots=True)
class Coverage:
    """Times are seconds since the epoch, by the target's clock."""

    through: int
    """Every change up to this seqno was compared."""
    rows_after: int
    rows_through: int
    """The rows of all windows in this range were compared, too."""
    full_through: int | None
    full_at: float | None
    """All rows of all tables were compared, at this watermark or later ones; None: never."""
    equal_rows: int
    """Rows that the last verification has proved equal."""
    pending: int
    """Rows that differed and that the source has changed since."""
    pending_since: float | None
    """When the oldest of them was first found different."""
    pending_without_key: int
    """Those in tables whose rows only their values tell apart."""
    unshown: tuple[str, ...]
    """For each reason why some of them are, or will be, pending again: which, why, and what to do."""
    drilled: str | None
    """The state of the newest drill that has ended and was not interrupted; None: there is none."""
    drilled_at: float | None
    """When the last drill ended that found restores equal; None: never."""
    round: FullRound | None


def coverage_of(snapshot: Snapshot) -> Coverage:
    """The coverage at the moment of the snapshot."""
    status = snapshot.status
    covered, since = status.covered, status.pending_since
    return Coverage(
        through=min(covered.through, status.channel.watermark.seqno),
        rows_after=covered.rows_after,
        rows_through=covered.rows_through,
        full_through=covered.full_through,
        full_at=snapshot.full_at,
        equal_rows=status.equal_rows,
        pending=status.suspects.get(PENDING, 0),
        pending_since=None if since is None else seconds_of(since),
        pending_without_key=without_key(status.unshown),
        unshown=told(status.unshown, status.channel.name),
        drilled=None if snapshot.drills is None else snapshot.drills.state,
        drilled_at=snapshot.drilled_at,
        round=_round(snapshot),
    )


def _round(snapshot: Snapshot) -> FullRound | None:
    found = snapshot.round
    if found is None:
        return None
    begun = seconds_of(found.started_at)
    missing, elapsed = max(0, found.expected - found.rows), max(0.0, snapshot.clock - begun)
    known = found.expected > 0 and found.rows > 0
    return FullRound(
        begun_at=begun,
        rows=found.rows,
        expected=found.expected,
        reading=found.seconds,
        reading_left=missing * found.seconds / found.rows if known and found.seconds else None,
        left=missing * elapsed / found.rows if known else None,
    )
