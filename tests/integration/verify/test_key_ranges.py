"""Stretches of keys that are compared as a range: what differs is found by its key, and other rows do not count."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from binlane.orchestration.commands.verify import verify_channel
from binlane.verify import key_batches
from binlane.verify.key_batches import Batch, KeyComparison
from binlane.verify.outcome import Options, Outcome
from binlane.verify.rows.sides import PendingHashes
from tests.integration.verify.scene import FAMILIES, found
from tests.integration.window.conftest import (
    Channel,
    ChannelOf,
    channel_of,
    clean_servers,
    run_on,
)

__all__ = ["channel_of", "clean_servers"]

NOTE = "note VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin"
TABLES = (
    "CREATE DATABASE app",
    f"CREATE TABLE app.dense (id INT PRIMARY KEY, {NOTE})",
    "CREATE TABLE app.lines (a BIGINT UNSIGNED, b SMALLINT, price DOUBLE, PRIMARY KEY (a, b))",
    f"CREATE TABLE app.sparse (id INT PRIMARY KEY, {NOTE})",
)


def rows(table: str, keys: Sequence[tuple[int, ...]], value: str) -> str:
    values = (", ".join((*map(str, key), value)) for key in keys)
    return f"INSERT INTO app.{table} VALUES {', '.join(f'({each})' for each in values)}"


def verified(channel: Channel, asked: list[Batch], options: Options | None = None) -> Outcome:
    asked.clear()
    return verify_channel(channel.config, channel.endpoints, options or Options())


@pytest.mark.parametrize("families", FAMILIES)
def test_what_differs_in_a_range_is_found_by_its_key(
    families: tuple[str, str], channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, asked = channel_of(*families), list[Batch]()
    ask = KeyComparison._ask

    def noted(self: KeyComparison, batch: Batch) -> PendingHashes:
        asked.append(batch)
        return ask(self, batch)

    monkeypatch.setattr(KeyComparison, "_ask", noted)
    monkeypatch.setattr(key_batches, "_STRETCH", 100)
    monkeypatch.setattr(key_batches, "BATCH", 40)
    there = [(n,) for n in range(201, 241)]
    for server in (channel.source, channel.target):
        run_on(server, *TABLES, rows("dense", there, "'there'"), log=False)
        run_on(server, rows("sparse", [(n,) for n in range(1, 3001)], "'there'"), "ANALYZE TABLE app.sparse", log=False)
    own = [(n,) for n in (*range(-60, 201), *range(241, 300))]
    lines = [(n // 3, n % 3) for n in range(150)] + [((1 << 64) - 1, 0)]
    run_on(
        channel.source,
        rows("dense", own, "'new'"),
        rows("lines", lines, "1 / 3"),
        "UPDATE app.sparse SET note = 'new' WHERE id % 500 = 1",
    )
    assert channel.run() is not None

    outcome = verified(channel, asked)
    ways = {(one.table.target.table, one.range is not None) for one in asked}
    assert ways == {("dense", True), ("lines", True), ("sparse", False)}
    assert (outcome.state, outcome.counts.equal) == ("clean", len(own) + len(lines) + 6)

    # a row that no window has written, in the range of those that one has
    run_on(channel.target, "UPDATE app.dense SET note = 'here' WHERE id = 220", log=False)
    outcome = verified(channel, asked)
    assert (outcome.state, outcome.counts.equal) == ("clean", len(own) + len(lines) + 6)
    run_on(
        channel.target,
        "UPDATE app.dense SET note = 'neW' WHERE id = -7",
        "DELETE FROM app.dense WHERE id = 199",
        "DELETE FROM app.dense WHERE id = 299",  # in the last stretch, of one part
        f"UPDATE app.lines SET price = 0.3333333333333334 WHERE a = {(1 << 64) - 1}",
        "DELETE FROM app.lines WHERE a = 7 AND b = 2",
        "UPDATE app.sparse SET note = 'neW' WHERE id = 1501",
        log=False,
    )
    expected = {
        ("dense", "-7"),
        ("dense", "199"),
        ("dense", "299"),
        ("lines", "7", "2"),
        ("lines", str((1 << 64) - 1), "0"),
    }
    expected |= {("sparse", "1501")}
    for options in (Options(), Options(rows_per_second=100_000)):
        outcome = verified(channel, asked, options)
        assert {(table, *key) for _, table, key in found(outcome)} == expected
        assert {state for state, _, _ in found(outcome)} == {"drift"}
