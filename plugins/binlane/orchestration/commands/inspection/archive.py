"""``binlane archive check``: whether an archive holds one log without gaps, before a window or a restore needs it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from binlane.activity import doing
from binlane.model import plural, size_text
from binlane.orchestration.report import moment
from binlane.orchestration.terminal import Grid, View
from binlane.source.archive import ArchiveSource
from binlane.source.archive_check import ArchivedFile, check_archive


def check(uri: str, *, as_json: bool) -> tuple[View, bool]:
    """The files of an archive with their faults, and whether there is none. Raises SourceError for a folder that is no
    archive of one log."""
    source, files = ArchiveSource(uri), list[ArchivedFile]()
    with doing(f"reading {uri}"):
        files += check_archive(source)
    is_whole = not any(file.faults for file in files)
    if as_json:
        return json.dumps(_object(uri, files, is_whole=is_whole), indent=1), is_whole
    return _view(uri, files), is_whole


def _view(uri: str, files: Sequence[ArchivedFile]) -> View:
    grid = Grid(f"{uri}: {plural(len(files), 'file')}")
    grid.columns("file", "bytes", "transactions", "begun").columns("last transaction")
    for file in files:
        last = moment(file.last) if file.last else "-"
        begun = moment(file.begun) if file.begun else "-"
        grid.row(file.name, size_text(file.bytes), f"{file.transactions:,}", begun, last)
    faults = [fault for file in files for fault in file.faults]
    total = f"{plural(sum(file.transactions for file in files), 'transaction')}, {_reach(files)}"
    names = ", ".join(file.name for file in files if file.is_believed)
    believed = f"believed: {names}: behind a start of the server, by number, server_id and time alone; no GTIDs show it"
    notes = [Grid(believed)] if names else []
    if not faults:
        return [grid, *notes, Grid(f"whole: {total}")]
    return [
        grid,
        *notes,
        *(Grid(f"fault: {fault}") for fault in faults),
        Grid(f"{plural(len(faults), 'fault')}; read: {total}"),
    ]


def _reach(files: Sequence[ArchivedFile]) -> str:
    """From the first file's beginning to the last transaction."""
    begun = next((file.begun for file in files if file.begun), 0.0)
    last = max(file.last for file in files)
    return f"from {moment(begun)} to {moment(last)}" if begun and last else "none of them with a time"


def _object(uri: str, files: Sequence[ArchivedFile], *, is_whole: bool) -> dict[str, Any]:
    return {
        "archive": uri,
        "is_whole": is_whole,
        "files": [
            {
                "name": file.name, "bytes": file.bytes, "transactions": file.transactions, "begun": file.begun or None,
                "last": file.last or None, "gtid_set": file.gtid_set, "is_believed": file.is_believed,
                "faults": file.faults,
            }
            for file in files
        ],
        # each fault names its own way on
        "next_steps": [fault for file in files for fault in file.faults],
    }  # fmt: skip
