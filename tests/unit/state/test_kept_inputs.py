"""What the target keeps of a plan's inputs, and what a window whose folder is lost is planned from."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import Connection, Engine, create_engine, event

from binlane.errors import BinlaneError, StateSchemaError
from binlane.model import TableKey
from binlane.plan.manifest import Manifest, TemporaryDrop
from binlane.state.carried.kept_inputs import InputsToKeep, KeptInputs
from binlane.state.carried.prepared import CHUNK
from binlane.work import files
from binlane.work.files import WorkFolder, digest_of
from tests.unit.plan.test_manifest import FIRST, MANIFEST

CHANNEL, SCHEMA = b'{"channel": "demo"}', b'{"format": 1}'
NAME = MANIFEST.channel
ANSWERED = replace(
    MANIFEST,
    absent=(TableKey("app", "gone"),),
    later_drops=(TemporaryDrop(1, 7, TableKey("app", "t")),),
    lost_sessions=("1:7@binlog.000001:4",),
    waits_for_drops=True,
)
"""A window for which a live server was asked."""
LONG = random.Random(7).randbytes(3 * CHUNK).replace(b"\0", b"1")
"""As it does not shrink: definitions of four pieces."""
TABLE = """CREATE TABLE binlane.kept_inputs (channel TEXT, part TEXT, chunk INT, name TEXT, data BLOB,
PRIMARY KEY (channel, part, chunk))"""


@pytest.fixture
def target() -> Iterator[Connection]:
    """A database with the table, and what was written to it as the connection's ``info``."""
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        connection.exec_driver_sql("ATTACH ':memory:' AS binlane")
        connection.exec_driver_sql(TABLE)
        _note_writes(engine, connection.info)
        yield connection
    engine.dispose()


def _note_writes(engine: Engine, info: dict[Any, Any]) -> None:
    @event.listens_for(engine, "before_cursor_execute")
    def note(_connection: object, _cursor: object, statement: str, values: Any, *_: object) -> None:
        if not statement.startswith("SELECT"):
            sizes = [len(value) for value in values if isinstance(value, bytes | memoryview)]
            info.setdefault("bytes", []).append(sum(sizes))


def keep(target: Connection, folder: Path, window: str, schema: bytes = SCHEMA, manifest: Manifest = ANSWERED) -> int:
    """Keep a window's inputs; returns the bytes that were sent."""
    work = WorkFolder(str(folder / window))
    work.write_once(files.CHANNEL, CHANNEL)
    work.write_once(files.SCHEMA, schema)
    inputs = SimpleNamespace(manifest=manifest, digests={files.SCHEMA: digest_of(schema)})
    row = SimpleNamespace(bounds=SimpleNamespace(channel=manifest.channel, window_id=window))
    target.info["bytes"] = []
    InputsToKeep.of(target, work, cast(Any, inputs)).store(target, cast(Any, row))
    return sum(target.info["bytes"])


def read(target: Connection, window: str) -> KeptInputs:
    kept = KeptInputs.read(target, NAME, window)
    assert kept is not None
    return kept


def test_a_window_has_again_what_its_source_answered_then_and_the_segments_of_now(
    target: Connection, tmp_path: Path
) -> None:
    keep(target, tmp_path, "w1")
    again = read(target, "w1")
    assert (again.channel, again.schema) == (CHANNEL, SCHEMA)
    assert again.manifest_with(MANIFEST) == ANSWERED
    # an archive of the log has no checksums of the stream
    from_archive = replace(
        MANIFEST, segments=(replace(FIRST, checksum="NONE", blake3="b" * 64), *MANIFEST.segments[1:])
    )
    assert again.manifest_with(from_archive) == replace(ANSWERED, segments=from_archive.segments)
    assert KeptInputs.read(target, NAME, "w2") is None


def test_definitions_are_written_when_they_differ(target: Connection, tmp_path: Path) -> None:
    assert keep(target, tmp_path, "w1", LONG) > len(LONG)
    assert keep(target, tmp_path, "w2", LONG) < CHUNK
    assert read(target, "w2").schema == LONG
    assert KeptInputs.read(target, NAME, "w1") is None
    other = LONG + b"0"
    assert keep(target, tmp_path, "w3", other) > len(LONG)
    assert read(target, "w3").schema == other


def test_no_piece_of_longer_inputs_is_left_and_no_other_channel_s_is_touched(
    target: Connection, tmp_path: Path
) -> None:
    keep(target, tmp_path, "w0", LONG, replace(ANSWERED, channel="other"))
    keep(target, tmp_path, "w1", LONG)
    keep(target, tmp_path, "w2", SCHEMA)
    assert read(target, "w2").schema == SCHEMA
    rows = target.exec_driver_sql("SELECT channel, part, COUNT(*) FROM binlane.kept_inputs GROUP BY 1, 2 ORDER BY 1, 2")
    assert {tuple(row) for row in rows} == {
        ("other", "schema", 4), ("other", "window", 1), (NAME, "schema", 1), (NAME, "window", 1)
    }  # fmt: skip


def test_pieces_that_somebody_has_deleted_meanwhile_are_written(target: Connection, tmp_path: Path) -> None:
    keep(target, tmp_path, "w1")
    work = WorkFolder(str(tmp_path / "w1"))
    inputs = SimpleNamespace(manifest=ANSWERED, digests={files.SCHEMA: digest_of(SCHEMA)})
    to_keep = InputsToKeep.of(target, work, cast(Any, inputs))
    target.exec_driver_sql("DELETE FROM binlane.kept_inputs WHERE part = 'window'")
    to_keep.store(target, cast(Any, SimpleNamespace(bounds=SimpleNamespace(channel=NAME, window_id="w1"))))
    assert read(target, "w1").channel == CHANNEL


@pytest.mark.parametrize("part", ["window", "schema"])
@pytest.mark.parametrize(
    "data",
    [
        b"words", zlib.compress(b"one\0two"), zlib.compress(b"1\0002\0003\0004"), zlib.compress(b"{}\0{}\0{}"),
        zlib.compress(b"{}")[:-1],
    ],
)  # fmt: skip
def test_what_another_program_has_written_there_is_named(
    data: bytes, part: str, target: Connection, tmp_path: Path
) -> None:
    keep(target, tmp_path, "w1")
    target.exec_driver_sql("UPDATE binlane.kept_inputs SET data = ? WHERE part = ?", (data, part))
    with pytest.raises(BinlaneError, match=rf"binlane\.kept_inputs of channel {NAME}, window w1"):
        KeptInputs.read(target, NAME, "w1")


def test_definitions_that_are_gone_are_named(target: Connection, tmp_path: Path) -> None:
    keep(target, tmp_path, "w1", LONG)
    target.exec_driver_sql("DELETE FROM binlane.kept_inputs WHERE part = 'schema' AND chunk = 2")
    with pytest.raises(StateSchemaError, match="window w1: expected "):
        KeptInputs.read(target, NAME, "w1")
    target.exec_driver_sql("DELETE FROM binlane.kept_inputs WHERE part = 'schema'")
    with pytest.raises(StateSchemaError, match=f"window w1: expected the definitions {digest_of(LONG)}"):
        KeptInputs.read(target, NAME, "w1")


def test_every_cut_is_named(target: Connection, tmp_path: Path) -> None:
    keep(target, tmp_path, "w1")
    [(packed,)] = target.exec_driver_sql("SELECT data FROM binlane.kept_inputs WHERE part = 'window'")
    for end in range(len(packed)):
        cut = (packed[:end],)
        target.exec_driver_sql("UPDATE binlane.kept_inputs SET data = ? WHERE part = 'window'", cut)
        with pytest.raises(
            StateSchemaError, match=f"channel {NAME}, window w1: expected the inputs of a window's plan"
        ):
            KeptInputs.read(target, NAME, "w1")
