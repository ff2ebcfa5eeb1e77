"""The inputs of a window's plan, without its segments, kept on the target until another window has a plan.

A window whose folder is lost is planned again, and its plan must be the same. Only the log tells twice what it has told
once: the target's definitions may be those behind the window's own DDL by then (a foreign key that joined two databases
is gone), the channel may have other files, and what the source itself has answered it may answer otherwise, or not at
all.

The definitions are most of it, and of most windows they are those of the window before: they are written when they
differ. They stand beside the window's row, each change of which is logged as a whole, and in pieces, which fit into
every statement.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Final

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from binlane.lazy_dataclass import dataclass
from binlane.plan.manifest import Manifest
from binlane.state.carried.prepared import CHUNK
from binlane.state.stored_values import unexpected
from binlane.state.tables import kept_inputs
from binlane.state.windows import Window
from binlane.work import files
from binlane.work.files import WorkFolder, digest_of
from binlane.work.plan_inputs import Inputs

_MOST_BYTES: Final = 1 << 30
"""Of the inputs as files."""
_LEVEL: Final = 1
"""Definitions of tenants shrink to a twentieth by it."""
_WINDOW: Final = "window"
_SCHEMA: Final = "schema"


@dataclass(frozen=True, slots=True)
class InputsToKeep:
    """What is to be written of a window's inputs."""

    window: bytes
    """The manifest, channel.json and the digest of schema.json."""
    digest: str
    schema: bytes | None
    """schema.json; None: the target has it from an earlier window."""
    known: frozenset[tuple[str, int]]
    """The pieces of earlier windows, by part and number."""

    @classmethod
    def of(cls, connection: Connection, folder: WorkFolder, inputs: Inputs) -> InputsToKeep:
        """Of a window's folder, and what was read there. Nothing is written."""
        whole = inputs.manifest
        # segments are read from the log again, perhaps from an archive of it
        manifest = replace(whole, segments=(), carried=(), last_seqno=whole.first_seqno - 1)
        digest = inputs.digests[files.SCHEMA]
        # JSON has no NUL
        window = b"\0".join((manifest.to_json(), folder.read(files.CHANNEL), digest.encode()))
        columns = (kept_inputs.c.part, kept_inputs.c.chunk, kept_inputs.c.name)
        rows = connection.execute(select(*columns).where(kept_inputs.c.channel == whole.channel)).all()
        is_there = any((row.part, row.name) == (_SCHEMA, digest) for row in rows)
        schema = None if is_there else _packed(folder.read(files.SCHEMA))
        return cls(_packed(window), digest, schema, frozenset((row.part, row.chunk) for row in rows))

    def store(self, connection: Connection, window: Window) -> None:
        """For ``set_plan``: write it over what an earlier window has left."""
        self._write(connection, window.bounds.channel, _WINDOW, window.bounds.window_id, self.window)
        if self.schema is not None:
            self._write(connection, window.bounds.channel, _SCHEMA, self.digest, self.schema)

    def _write(self, connection: Connection, channel: str, part: str, name: str, data: bytes) -> None:
        """Row by row: to delete and insert ranges of keys, as other channels do at the same time, is a deadlock."""
        pieces = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
        for chunk, piece in enumerate(pieces):
            values = {"name": name, "data": piece}
            if (part, chunk) in self.known:
                changed = connection.execute(update(kept_inputs).where(*_key(channel, part, chunk)).values(**values))
                if changed.rowcount == 1:
                    continue
            connection.execute(insert(kept_inputs).values(channel=channel, part=part, chunk=chunk, **values))
        for of, chunk in self.known:
            if of == part and chunk >= len(pieces):
                connection.execute(delete(kept_inputs).where(*_key(channel, part, chunk)))


def _packed(data: bytes) -> bytes:
    return zlib.compress(data, _LEVEL)


def _key(channel: str, part: str, chunk: int) -> tuple[ColumnElement[bool], ...]:
    return (kept_inputs.c.channel == channel, kept_inputs.c.part == part, kept_inputs.c.chunk == chunk)


@dataclass(frozen=True, slots=True)
class KeptInputs:
    """What the plan job reads of a window besides its segments."""

    manifest: Manifest
    """As of an empty window: segments are read from the log again, perhaps from an archive of it."""
    channel: bytes
    """channel.json."""
    schema: bytes
    """schema.json."""

    @classmethod
    def read(cls, connection: Connection, channel: str, window_id: str) -> KeptInputs | None:
        """Of the channel's newest window with a plan; None if nothing is kept of it. Raises StateSchemaError or
        PlanError for rows that ``InputsToKeep`` does not write."""
        where = f"binlane.kept_inputs of channel {channel}, window {window_id}"
        packed = _read(connection, channel, _WINDOW, window_id)
        if packed is None:
            return None
        parts = _unpacked(packed, where).split(b"\0")
        if len(parts) != 3:
            raise unexpected(where, "the inputs of a window's plan", packed)
        manifest, settings, digest = parts
        name = digest.decode("ascii", "replace")
        stored = _read(connection, channel, _SCHEMA, name)
        schema = b"" if stored is None else _unpacked(stored, where)
        if digest_of(schema) != name:
            raise unexpected(where, f"the definitions {name}", stored)
        return cls(Manifest.from_json(manifest, where), settings, schema)

    def manifest_with(self, read: Manifest) -> Manifest:
        """The window's manifest, by one that the same part of the log has given again."""
        return replace(
            self.manifest,
            channel=read.channel,
            window=read.window,
            first_seqno=read.first_seqno,
            last_seqno=read.last_seqno,
            start=read.start,
            end=read.end,
            gtid_set=read.gtid_set,
            segments=read.segments,
            carried=read.carried,
        )


def _read(connection: Connection, channel: str, part: str, name: str) -> bytes | None:
    this = (kept_inputs.c.channel == channel, kept_inputs.c.part == part, kept_inputs.c.name == name)
    query = select(kept_inputs.c.data).where(*this).order_by(kept_inputs.c.chunk)
    pieces = connection.execute(query).scalars().all()
    return b"".join(map(bytes, pieces)) if pieces else None


def _unpacked(data: bytes, where: str) -> bytes:
    stream = zlib.decompressobj()
    try:
        found = stream.decompress(data, _MOST_BYTES)
    except zlib.error as exc:
        raise unexpected(where, "the inputs of a window's plan", data) from exc
    if not stream.eof:
        raise unexpected(where, "the inputs of a window's plan", data)
    return found
