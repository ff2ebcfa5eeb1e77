"""Frames of the compressed protocol: every stream of packets comes out as it went in, and nothing else does."""

from __future__ import annotations

import io
import random
import zlib

import pytest

from binlane.driver.compression import InflatedStream, frames_of

NOISE = random.Random(5).randbytes(20_000)
CASES = [b"", b"a", b"a" * 49, b"a" * 50, NOISE, b"ab" * 40_000 + NOISE, b"c" * ((1 << 24) + 5)]


def inflated(frames: bytes) -> bytes:
    return io.BufferedReader(InflatedStream(io.BufferedReader(io.BytesIO(frames)))).read()


@pytest.mark.parametrize("data", CASES, ids=len)
def test_a_stream_comes_out_as_it_went_in(data: bytes) -> None:
    frames = list(frames_of(data, 254))
    assert inflated(b"".join(frames)) == data
    assert [frame[3] for frame in frames] == [254, 255][: len(frames)]
    assert sum(map(len, frames)) <= len(data) + 7 * len(frames)


def test_what_compresses_well_is_short_and_what_does_not_stays() -> None:
    [short], [long] = frames_of(b"a" * 10_000, 0), frames_of(NOISE, 0)
    assert len(short) < 100
    assert long[7:] == NOISE


@pytest.mark.parametrize("end", range(1, 20))
def test_a_stream_that_ends_within_a_frame_is_an_error(end: int) -> None:
    [frame] = frames_of(b"a" * 1_000, 0)
    assert len(frame) > 20
    with pytest.raises(OSError, match="ends within"):
        inflated(frame[:end])


@pytest.mark.parametrize("said", [999, 1_001])
def test_a_frame_of_another_length_than_it_says_is_an_error(said: int) -> None:
    packed = zlib.compress(b"a" * 1_000)
    frame = len(packed).to_bytes(3, "little") + b"\0" + said.to_bytes(3, "little") + packed
    with pytest.raises(OSError, match=f"expected a compressed packet of {said:,} bytes"):
        inflated(frame)


def test_a_damaged_frame_is_an_error() -> None:
    [frame] = frames_of(b"a" * 1_000, 0)
    with pytest.raises(OSError, match="cannot be inflated"):
        inflated(frame[:7] + b"xx" + frame[9:])
