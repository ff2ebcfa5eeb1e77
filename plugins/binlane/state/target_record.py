"""The record of a channel's target in the work folder: which server it is, and how far it has come.

A clone of the target, a replica, a backup that was restored have all that the target has recorded of itself, at an
older watermark perhaps, and fit in themselves. So a second place has to know: runs leave a record beside the windows'
folders, and every command that opens the target asks it (``apply.target_state``). It decides nothing but a refusal:
without a record, or where the work folder cannot be read (in time, by who only looks or gives an order), the target
alone is asked.
"""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from binlane.errors import NO_RECORD, ConfigError
from binlane.regular_files import open_regular
from binlane.sessions.server_proof import TargetProof

if TYPE_CHECKING:
    from binlane.state.channels import Channel
    from binlane.work.files import WorkFolder

log = logging.getLogger(__name__)
_MOST_BYTES: Final = 1 << 16
"""Of a record, which has some two hundred."""


def file_of(channel: str) -> str:
    """The record's name in the work folder, beside the folder with the channel's windows."""
    return f"{channel}.target.json"


def place_of(proof: TargetProof) -> str:
    """The record's place, for messages."""
    return f"{proof.work.rstrip('/')}/{file_of(proof.channel)}"


def recorded(proof: TargetProof, *, is_remote_asked: bool = True, waits: bool = True) -> TargetProof:
    """``proof`` with what the work folder has recorded; as it is if there is no record. ``is_remote_asked``: also a
    work folder that is not on this machine; ``waits``: for as long as it takes to answer, as a run does, which cannot
    go on without it. Raises ConfigError for a file that is no record."""
    data = _read(proof, is_remote_asked=is_remote_asked) if waits else _read_in_time(proof, is_remote_asked)
    if data is None:
        return proof
    try:
        found = json.loads(data)
        return replace(
            proof, identity=str(found["identity"]), incarnation=str(found["incarnation"]), seqno=int(found["seqno"])
        )
    except NO_RECORD as exc:
        raise ConfigError(
            f"{place_of(proof)}: expected the record of the channel's target, got {exc!r}: the file was changed or is "
            "damaged; compare the watermark of `binlane status CHANNEL` with the last run's, remove the file, and run "
            "again"
        ) from exc


def record_target(work: str, state: Channel) -> None:
    """Leave the record of the channel's state, if there is another one or none."""
    proof = TargetProof(state.name, work, state.target_identity, state.incarnation, state.watermark.seqno)
    known = recorded(TargetProof(state.name, work))
    if (known, known.incarnation, known.seqno) != (proof, proof.incarnation, proof.seqno):
        values = {"identity": proof.identity, "incarnation": proof.incarnation, "seqno": proof.seqno}
        _folder(proof).replace(file_of(proof.channel), json.dumps(values).encode() + b"\n")


def forget_target(proof: TargetProof) -> None:
    """Remove the record."""
    _folder(proof).remove_file(file_of(proof.channel))


def _folder(proof: TargetProof) -> WorkFolder:
    # imports a library of file systems, for which commands that only read the target's state would wait
    from binlane.work.files import WorkFolder

    return WorkFolder(proof.work)


def _read_in_time(proof: TargetProof, is_remote_asked: bool) -> bytes | None:
    # windows need none of it
    from binlane.work.slow_folders import answered_in_time

    try:
        return answered_in_time(partial(_read, proof, is_remote_asked=is_remote_asked))
    except TimeoutError:
        log.warning("%s: the work folder does not answer: the target alone is asked", place_of(proof))
        return None


def _read(proof: TargetProof, *, is_remote_asked: bool) -> bytes | None:
    if "://" not in proof.work:
        try:
            with open_regular(Path(proof.work) / file_of(proof.channel)) as file:
                return file.read(_MOST_BYTES)
        except OSError:
            return None
    if not is_remote_asked:
        return None
    try:
        folder, name = _folder(proof), file_of(proof.channel)
        return folder.read(name, _MOST_BYTES) if folder.exists(name) else None
    except Exception:  # no such protocol, no credentials: every file system has its own errors, and a run meets them
        return None
