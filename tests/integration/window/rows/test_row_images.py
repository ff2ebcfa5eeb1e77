"""Windows with wide rows: short images leave the target as whole ones do, and drifted columns as they are."""

from __future__ import annotations

import pytest

from binlane.apply.rows import row_images
from tests.integration.window.conftest import Channel, run_on
from tests.integration.window.control.test_stop import channel

__all__ = ["channel"]

TABLE = "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, w VARCHAR(99), story TEXT, n INT, u INT UNIQUE)"
ROWS = "INSERT INTO tenant_1.t VALUES " + ", ".join(f"({n}, 'w{n}', REPEAT('x', 900), {n}, {n})" for n in range(1, 10))
CHANGES = (
    "UPDATE tenant_1.t SET n = n + 100",
    "UPDATE tenant_1.t SET story = REPEAT('y', 700) WHERE id = 2",
    "UPDATE tenant_1.t SET n = NULL, u = u + 50 WHERE id IN (2, 3)",
    "DELETE FROM tenant_1.t WHERE id = 4",
    "INSERT INTO tenant_1.t VALUES (4, 'again', REPEAT('z', 800), 4, 2)",
    "UPDATE tenant_1.t SET id = 60, n = 6 WHERE id = 6",
)


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Bytes of each payload, whole and as it is sent."""
    sizes = list[tuple[int, int]]()
    short = row_images.ShortImages.of

    def of(images: row_images.ShortImages, payload: bytes, rows: object) -> bytes:
        found = short(images, payload, rows)  # type: ignore[arg-type]
        sizes.append((len(payload), len(found)))
        return found

    monkeypatch.setattr(row_images.ShortImages, "of", of)
    monkeypatch.setattr(row_images, "_WORTH_READING", 0)
    return sizes


def begun(channel: Channel) -> None:
    for server in (channel.source, channel.target):
        run_on(server, "CREATE DATABASE tenant_1", TABLE, ROWS, log=False)
    run_on(channel.source, *CHANGES)


@pytest.mark.parametrize("reduce", ["off", "block", "window"])
def test_short_images_are_the_default_and_end_in_equal_tables(
    channel: Channel, sent: list[tuple[int, int]], reduce: str
) -> None:
    channel.write_channel("", f'reduce = "{reduce}"\n')
    begun(channel)
    assert channel.run() is not None
    channel.assert_equal()
    assert sum(found for _, found in sent) < sum(whole for whole, _ in sent)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "drifted", id="auto"),
        pytest.param('row_images = "full"\n', "w1", id="full"),
        pytest.param('on_conflict = "overwrite"\n', "w1", id="overwrite"),
    ],
)
def test_a_drifted_column_is_overwritten_only_by_whole_images(
    channel: Channel, sent: list[tuple[int, int]], text: str, expected: str
) -> None:
    channel.write_channel(text)
    begun(channel)
    run_on(channel.target, "UPDATE tenant_1.t SET w = 'drifted' WHERE id = 1")
    assert channel.run() is not None
    assert channel.target.query("SELECT w, n FROM tenant_1.t WHERE id = 1") == [(expected, 101)]
    assert bool(sent) == (expected == "drifted")
