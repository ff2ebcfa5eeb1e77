"""The inputs of a window's plan, without its segments, kept on the target until the window is finished.

A window whose folder is lost is planned again, and its plan must be the same. Only the log tells twice what it has told
once: the target's definitions may be those behind the window's own DDL by then (a foreign key that joined two databases
is gone), the channel may have other files, and what the source itself has answered it may answer otherwise, or not at
all.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.plan.manifest import Manifest
from binlane.state.stored_values import unexpected
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import Inputs

_LONGEST: Final = (16 << 20) - 1
"""Bytes of a MEDIUMBLOB."""
_MOST_BYTES: Final = 1 << 30
"""Of the inputs as files."""
_LEVEL: Final = 1
"""Definitions of tenants shrink to a twentieth by it."""


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
    def of(cls, folder: WorkFolder, inputs: Inputs) -> KeptInputs:
        """Of a window's folder, and what was read there."""
        whole = inputs.manifest
        manifest = replace(whole, segments=(), carried=(), last_seqno=whole.first_seqno - 1)
        return cls(manifest, folder.read(files.CHANNEL), folder.read(files.SCHEMA))

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

    def packed(self, packet: int) -> bytes | None:
        """For the window's row. None if that takes more than a quarter of a statement of ``packet`` bytes, which
        escapes can double: only a large fleet on a target of small statements has as many definitions."""
        # JSON has no NUL
        data = zlib.compress(b"\0".join((self.manifest.to_json(), self.channel, self.schema)), _LEVEL)
        return data if len(data) <= min(_LONGEST, packet // 4) else None

    @classmethod
    def unpacked(cls, data: bytes, where: str) -> KeptInputs:
        """Raises StateSchemaError or PlanError, naming ``where``, for anything that ``packed`` does not give."""
        stream = zlib.decompressobj()
        try:
            parts = stream.decompress(data, _MOST_BYTES).split(b"\0")
            manifest, channel, schema = parts if stream.eof else []
        except (zlib.error, ValueError) as exc:
            raise unexpected(where, "the inputs of a window's plan", data) from exc
        return cls(Manifest.from_json(manifest, where), channel, schema)
