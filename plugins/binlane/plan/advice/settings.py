"""The settings that the counts of a log speak for: each with its reason, what it promises, and what it costs.

A promise is an upper bound: it takes each byte, or each row change, to cost the target the same, and the target to have
a core for each lane. Where the counts do not tell, the setting stays as it is, and the reason says so.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator
from typing import Final

from binlane.choices import Assigner, Commit, Consistency, Divide, Reduce
from binlane.lazy_dataclass import dataclass
from binlane.model import plural
from binlane.plan.advice.counts import Counts, DividedShard, span
from binlane.plan.block.size_choice import USUAL_TRANSACTIONS
from binlane.shards.shard_list import HashMethod, ShardList, parse_shard_list

CHANNEL: Final = "channel file"
SHARD_LIST: Final = "shard list"
_GAIN: Final = 1.1
"""Times as fast: less is no reason to change a setting, since other windows have other counts."""
_GAIN_OF_DIVISION: Final = 1.4
"""Divided shards must bring more than placement: each lane opens every table, and the lanes have to meet."""
_MOST_LANES: Final = 64
_FEWEST_TRANSACTIONS: Final = 1000
"""Of a log: fewer say nothing about the next window."""
_SAME: Final = "as now"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One setting."""

    file: str
    line: str
    """To paste."""
    changes: bool
    """False: it is set so now."""
    because: str
    promises: str
    costs: str


def suggestions(counts: Counts) -> tuple[Suggestion, ...]:
    """The settings in the order in which they are decided; none for a log that is too small. Equal counts give equal
    settings."""
    if counts.transactions < _FEWEST_TRANSACTIONS or counts.total.bytes == 0:
        return ()
    listed = parse_shard_list(counts.settings.shard_list, "", lanes=counts.settings.lanes)
    divides = bool(listed.divided) or _pays_off(counts)
    placement = tuple(_placement(counts, listed, divides))
    by_load = listed.hash_method is HashMethod.LOAD or placement[-1].changes
    lanes = (*_tenants(counts), *placement, _count(counts, divides, by_load))
    return (*lanes, *_division(counts, listed, divides), _reduce(counts, divides), _level(counts, divides))


def too_few(counts: Counts) -> str:
    """Why there are no suggestions."""
    return (
        f"{plural(counts.transactions, 'transaction')} with {plural(counts.total.rows, 'row change')}: too few to "
        f"speak for any setting; count a log of {_FEWEST_TRANSACTIONS:,} or more"
    )


def _pays_off(counts: Counts) -> bool:
    """Whether the biggest shard should be divided."""
    return counts.divided is not None and _gain_of_division(counts) >= _GAIN_OF_DIVISION


def _gain_of_division(counts: Counts) -> float:
    found = _found(counts)
    assert found is not None
    whole = min(counts.as_set.span(counts.transactions), counts.by_load.span(counts.transactions))
    return whole / found.span(counts.transactions)


def _found(counts: Counts) -> DividedShard | None:
    """The division that is told about: by shares that commit together, or alone."""
    return counts.together if _commits_together(counts) else counts.divided


def _commits_together(counts: Counts) -> bool:
    """Whether shares should commit together: they do so now, or the barriers that this saves are worth the waits."""
    return counts.settings.commits_together or _gain_of_together(counts) >= _GAIN


def _gain_of_together(counts: Counts) -> float:
    if counts.divided is None or counts.together is None:
        return 1.0
    return counts.divided.span(counts.transactions) / counts.together.span(counts.transactions)


def _tenants(counts: Counts) -> Iterator[Suggestion]:
    """The assigner, where transactions over several databases of one tenant make barriers."""
    if counts.tenants is None:
        return
    now, found = counts.by_load, counts.tenants.lanes
    gain = now.span(counts.transactions) / found.span(counts.transactions)
    if gain < _GAIN:
        return
    because = (
        f"{now.serialized:,} of {plural(counts.transactions, 'transaction')} are inside barriers as it is, and "
        f"{found.serialized:,} if databases that the pattern puts together are one shard"
    )
    promise, cost = f"at most {gain:.1f} times as fast", "the databases of one shard share a lane"
    yield Suggestion(CHANNEL, f"lanes.assigner = {json.dumps(Assigner.PATTERN)}", True, because, promise, cost)
    line = "(pattern)=" + counts.tenants.pattern.replace("\\", "\\\\")
    yield Suggestion(SHARD_LIST, line, True, "as lanes.assigner", promise, "the list names shards, not their databases")


def _placement(counts: Counts, listed: ShardList, divides: bool) -> Iterator[Suggestion]:
    now, best = counts.as_set, counts.by_load
    gain = now.span(counts.transactions) / best.span(counts.transactions)
    told = (
        f"the busiest lane has {now.busiest:.0%} of the bytes as it is, and {best.busiest:.0%} by load; "
        f"{now.serialized:,} of {plural(counts.transactions, 'transaction')} are inside barriers"
    )
    if divides or listed.hash_method is HashMethod.LOAD or gain < _GAIN:
        because = "all lanes share a divided shard" if divides else told
        yield Suggestion(SHARD_LIST, f"(hash-method)={listed.hash_method}", False, because, _SAME, "nothing more")
        return
    cost = "a shard may be in another lane in each window; entries of the list still win"
    promise = f"at most {gain:.1f} times as fast"
    if listed.default is not None:
        because = f"lane {listed.default} has all shards without an entry, and none of them is placed by load"
        yield Suggestion(SHARD_LIST, "(*)=-1", True, because, "as (hash-method)", "nothing more")
    yield Suggestion(SHARD_LIST, f"(hash-method)={HashMethod.LOAD}", True, told, promise, cost)


def _count(counts: Counts, divides: bool, by_load: bool) -> Suggestion:
    now, biggest = counts.settings.lanes, counts.shards[0]
    share = biggest.load.bytes / counts.total.bytes
    needed = lanes_needed(shard.load.bytes for shard in counts.shards)
    because, line = f"{biggest.name}, the biggest shard, has {share:.0%} of the bytes", f"lanes.count = {now}"
    promise, cost = _SAME, "nothing more"
    if divides:
        because = "a divided shard takes all lanes; for how many the target has cores, the log does not tell"
    elif needed < now:
        because += f", and one lane: with the others {plural(needed, 'lane')} end no later, placed by load"
        if by_load:
            line, cost = (
                f"lanes.count = {needed}",
                "entries for other lanes have to change; other windows have other counts",
            )
    elif needed > now:
        serialized = counts.by_load.serialized / counts.transactions
        gain = counts.as_set.span(counts.transactions) / span(max(share, 1 / needed), serialized)
        because += "; for how many lanes the target has cores, the log does not tell"
        promise = f"as now; with {needed} lanes, by load, at most {gain:.1f} times as fast"
        cost = "a connection and a core of the target for each lane"
    return Suggestion(CHANNEL, line, by_load and needed < now and not divides, because, promise, cost)


def lanes_needed(sizes: Iterable[int]) -> int:
    """The lanes with which the biggest shard decides how long a window takes: more lanes do not help. ``sizes``: of the
    shards, not all of them 0."""
    ordered = sorted(sizes, reverse=True)
    most = min(len(ordered), _MOST_LANES)
    lanes = min(most, -(-sum(ordered) // ordered[0]))
    while lanes < most:
        full = [0] * lanes
        for size in ordered:
            heapq.heapreplace(full, full[0] + size)
        if max(full) <= _GAIN * ordered[0]:
            break
        lanes += 1
    return lanes


def _division(counts: Counts, listed: ShardList, divides: bool) -> Iterator[Suggestion]:
    found, together = _found(counts), _commits_together(counts)
    none = "# (divided): none"
    if found is None:
        because = f"not told: {counts.why_not_divided}"
        yield Suggestion(SHARD_LIST, none, False, because, "not told", "nothing more")
        return
    by_key = sum(table.rows for table in found.tables if table.lane is None)
    share = by_key / max(sum(table.rows for table in found.tables), 1)
    because = (
        f"the busiest lane has {found.busiest:.0%} of the row changes if {found.shard} is divided; "
        f"{found.serialized:,} of {plural(counts.transactions, 'transaction')} are inside barriers then"
    )
    if not divides:
        yield Suggestion(SHARD_LIST, none, False, because, _SAME, "nothing more")
        return
    seen = "while the lanes commit" if together else "until the lanes meet"
    cost = f"readers can see a part of a transaction {seen}; with fewer cores than lanes it can be slower than one lane"
    promise = _SAME if listed.divided else f"at most {_gain_of_division(counts):.1f} times as fast"
    yield Suggestion(SHARD_LIST, f"(divided)={found.shard}", not listed.divided, because, promise, cost)
    because = f"{share:.0%} of the row changes of {found.shard} go by key"
    line = f"lanes.divide = {json.dumps(counts.settings.divide or Divide.KEY.value)}"
    cost = "neighbouring keys are in different lanes, which write the same pages"
    yield Suggestion(CHANNEL, line, False, because, "as (divided)", cost)
    yield _commit(counts)


def _commit(counts: Counts) -> Suggestion:
    """When the shares of divided shards are committed."""
    alone, together, now = counts.divided, counts.together, counts.settings.commits_together
    assert alone is not None
    assert together is not None
    takes = _commits_together(counts)
    line = f"lanes.commit = {json.dumps(Commit.TOGETHER.value if takes else Commit.ALONE.value)}"
    because = (
        f"{alone.serialized:,} of {plural(counts.transactions, 'transaction')} are inside barriers if each lane "
        f"commits alone, and {together.serialized:,} if they commit together"
    )
    size = counts.settings.block_transactions or (
        USUAL_TRANSACTIONS if counts.size is None else counts.size.transactions
    )
    of_blocks = f"about {plural(-(-counts.transactions // (size * counts.settings.lanes)), 'block')}"
    seen = "readers see a part of a transaction for milliseconds only"
    waits = f"the lanes wait for one another at each of {of_blocks}"
    if not takes:
        told = f"as (divided); {json.dumps(Commit.TOGETHER.value)} instead of epochs: {seen}"
        return Suggestion(CHANNEL, line, False, because, told, f"nothing more; {json.dumps('together')}: {waits}")
    gain = _gain_of_together(counts)
    promise = f'{seen}; at most {gain:.1f} times as fast as "alone"' if gain >= _GAIN else seen
    return Suggestion(CHANNEL, line, not now, because, promise, f'{waits}, and blocks.reduce = "window" is refused')


def _reduce(counts: Counts, divides: bool) -> Suggestion:
    blocks, chosen, now = counts.blocks[-1], counts.size, counts.settings.reduce
    told = "not told: the log has no rows whose keys are known, or fewer transactions than a block"
    if blocks.rows:
        share, size = blocks.left / blocks.rows, plural(blocks.size, "transaction")
        told = f"about {share:.0%} of the row changes are left to write in blocks of {size}"
    because = "not told" if chosen is None else f'"auto" takes {chosen}'
    cost = "a reader of the target sees the state after each block, and none inside it"
    is_set = now == Reduce.AUTO or (chosen is not None and chosen.reduce == now)
    if divides and now == Reduce.WINDOW and _commits_together(counts):
        is_set, because = False, "lanes that commit together share their blocks"
    line = f"blocks.reduce = {json.dumps(now if is_set else Reduce.AUTO.value)}"
    return Suggestion(CHANNEL, line, not is_set, because, told, cost)


def _level(counts: Counts, divides: bool) -> Suggestion:
    now = counts.settings.consistency
    if divides and now != Consistency.EPOCH and not _commits_together(counts):
        because = "lanes of a divided shard have to meet, so that readers see whole transactions"
        line = f"lanes.consistency = {json.dumps(Consistency.EPOCH.value)}"
        return Suggestion(CHANNEL, line, True, because, *_LEVELS[Consistency.EPOCH.value])
    because = "which states readers of the target need is not in the log"
    line = f"lanes.consistency = {json.dumps(now)}"
    return Suggestion(CHANNEL, line, False, because, *_LEVELS.get(now, ("what your own class promises", "not told")))


_LEVELS: Final = {
    Consistency.ANY_TIME.value: ("at any time a state of the source", "one lane applies everything"),
    Consistency.EPOCH.value: ("at each epoch a state of the source", "a commit and a wait of all lanes for each epoch"),
    Consistency.EVENTUAL.value: ("whole transactions, and the source's state at a window's end", "nothing"),
}
"""docs/consistency.md: what a reader can see, and the cost."""
