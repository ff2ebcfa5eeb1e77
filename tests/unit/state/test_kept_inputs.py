"""What the target keeps of a plan's inputs, and what a window whose folder is lost is planned from."""

import zlib
from dataclasses import replace

import pytest

from binlane.errors import BinlaneError, StateSchemaError
from binlane.model import TableKey
from binlane.plan.manifest import Manifest, TemporaryDrop
from binlane.state.carried.kept_inputs import KeptInputs
from tests.unit.plan.test_manifest import FIRST, MANIFEST

CHANNEL, SCHEMA = b'{"channel": "demo"}', b'{"format": 1}'
ANSWERED = replace(
    MANIFEST,
    absent=(TableKey("app", "gone"),),
    later_drops=(TemporaryDrop(1, 7, TableKey("app", "t")),),
    lost_sessions=("1:7@binlog.000001:4",),
    waits_for_drops=True,
)
"""A window for which a live server was asked."""
WHERE = "binlane.windows.inputs of channel demo, window w1"


def kept(manifest: Manifest) -> KeptInputs:
    of_window = replace(manifest, segments=(), carried=(), last_seqno=manifest.first_seqno - 1)
    return KeptInputs(of_window, CHANNEL, SCHEMA)


def test_a_window_has_again_what_its_source_answered_then_and_the_segments_of_now() -> None:
    packed = kept(ANSWERED).packed(16 << 20)
    assert packed is not None
    again = KeptInputs.unpacked(packed, WHERE)
    assert (again.channel, again.schema) == (CHANNEL, SCHEMA)
    assert again.manifest_with(MANIFEST) == ANSWERED
    # an archive of the log has no checksums of the stream
    from_archive = replace(
        MANIFEST, segments=(replace(FIRST, checksum="NONE", blake3="b" * 64), *MANIFEST.segments[1:])
    )
    assert again.manifest_with(from_archive) == replace(ANSWERED, segments=from_archive.segments)


def test_inputs_that_are_too_long_for_a_statement_are_not_kept() -> None:
    inputs = kept(ANSWERED)
    packed = inputs.packed(16 << 20)
    assert packed is not None
    assert inputs.packed(4 * len(packed)) == packed
    assert inputs.packed(4 * len(packed) - 1) is None


@pytest.mark.parametrize(
    "data",
    [b"", b"words", zlib.compress(b"one\0two"), zlib.compress(b"1\0002\0003\0004"), zlib.compress(b"{}\0{}\0{}")],
)
def test_what_another_program_has_written_there_is_named(data: bytes) -> None:
    with pytest.raises(BinlaneError, match=r"binlane\.windows\.inputs of channel demo, window w1"):
        KeptInputs.unpacked(data, WHERE)


def test_every_cut_is_named() -> None:
    packed = kept(ANSWERED).packed(16 << 20)
    assert packed is not None
    for end in range(len(packed)):
        with pytest.raises(StateSchemaError, match="channel demo, window w1: expected the inputs of a window's plan"):
            KeptInputs.unpacked(packed[:end], WHERE)
