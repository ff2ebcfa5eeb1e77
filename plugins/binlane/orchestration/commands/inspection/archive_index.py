"""``binlane archive index``: what each file of an archive holds, written beside it, so that a restore reads fewer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from binlane.activity import doing
from binlane.model import plural, size_text
from binlane.orchestration.report import moment
from binlane.orchestration.terminal import Grid, View
from binlane.restore.archive_index import INDEX, ArchiveIndex, Indexed, folder_of
from binlane.restore.indexing import Made, make_index
from binlane.source.archive import ArchiveSource


def index(uri: str, *, as_json: bool) -> tuple[View, bool]:
    """Index the files of an archive that have no index yet; all of them as they are then, and whether none has a fault.
    Raises SourceError for a folder that is no archive of one log."""
    with doing(f"indexing {uri}"):
        made = {each.file: each for each in make_index(uri)}
    found = ArchiveIndex(ArchiveSource(uri))
    files = [*map(found.of, found.files)]
    if as_json:
        view: View = json.dumps(_object(uri, files, made), indent=1)
    else:
        view = _view(uri, files, made)
    return view, not any(each.fault for each in made.values())


def _view(uri: str, files: Sequence[Indexed], made: Mapping[str, Made]) -> View:
    grid = Grid(f"{uri}: {plural(len(files), 'file')}")
    grid.columns("file", "bytes", "transactions", "databases").columns("from", "to", "index")
    for each in files:
        facts = each.facts
        if facts is None:
            grid.row(each.file, "-", "-", "-", "-", "-", "none")
            continue
        databases = f"{len({one.database for one in facts.databases} | {*facts.named}):,}"
        grid.row(
            each.file, size_text(facts.bytes), f"{facts.transactions:,}", "any" if facts.of_any else databases,
            moment(facts.first_time) if facts.transactions else "-",
            moment(facts.last_time) if facts.transactions else "-",
            f"new, {size_text(made[each.file].index_bytes)}" if each.file in made else "there",
        )  # fmt: skip
    new = [each for each in made.values() if not each.fault]
    read, written = sum(each.log_bytes for each in new), sum(each.index_bytes for each in new)
    share = f", {written / read:.2%} of {size_text(read)}" if read else ""
    return [
        grid,
        *(Grid(f"fault: {each.fault}") for each in made.values() if each.fault),
        *(Grid(f"{each.file}: no index: {each.why}") for each in files if each.is_open),
        Grid(f"{folder_of(uri).uri}: {plural(len(new), 'file')} new{share}"),
    ]


def _object(uri: str, files: Sequence[Indexed], made: Mapping[str, Made]) -> dict[str, Any]:
    faults = {each.file: each.fault for each in made.values() if each.fault}
    return {
        "archive": uri,
        "index": folder_of(uri).uri,
        "files": [
            {
                "name": each.file, "is_new": each.file in made and each.file not in faults, "why": each.why,
                "fault": faults.get(each.file), "facts": None if each.facts is None else INDEX.dump(each.facts),
            }
            for each in files
        ],
        # each fault names its own way on
        "next_steps": [*faults.values()],
    }  # fmt: skip
