"""``binlane archive index``: what each file of an archive holds, written beside it, so that a restore reads fewer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from binlane.activity import doing
from binlane.choices import PlanEngine
from binlane.model import plural, size_text
from binlane.orchestration.plan_job.index_engines import make_index_by
from binlane.orchestration.report import moment
from binlane.orchestration.terminal import Grid, View
from binlane.restore.archive_index import INDEX, ArchiveIndex, Indexed, folder_of
from binlane.restore.indexing import Made
from binlane.source.archive import ArchiveSource


def index(uri: str, engine: str = PlanEngine.LOCAL, *, as_json: bool) -> tuple[View, bool]:
    """Index the files of an archive that have no index yet; all of them as they are then, and whether none has a fault.
    ``engine``: "local" or "spark". Raises SourceError for a folder that is no archive of one log."""
    with doing(f"indexing {uri}"):
        made = {each.file: each for each in make_index_by(engine, uri, {})}
    found = ArchiveIndex(ArchiveSource(uri))
    files = [*map(found.of, found.files)]
    limited = {each.file: user for each in files if (user := found.limited_to(each)) is not None}
    if as_json:
        view: View = json.dumps(_object(uri, files, made, limited), indent=1)
    else:
        view = [*_view(uri, files, made), *map(Grid, _limited(uri, limited))]
    return view, not any(each.fault for each in made.values())


def told_of(uri: str, made: Sequence[Made]) -> tuple[str, tuple[str, ...]]:
    """What was done, in one line, and the faults."""
    return _done(uri, made), tuple(each.fault for each in made if each.fault)


def _done(uri: str, made: Sequence[Made]) -> str:
    new = [each for each in made if not each.fault]
    read, written = sum(each.log_bytes for each in new), sum(each.index_bytes for each in new)
    share = f", {written / read:.2%} of {size_text(read)}" if read else ""
    return f"{folder_of(uri).uri}: {plural(len(new), 'file')} new{share}"


def _view(uri: str, files: Sequence[Indexed], made: Mapping[str, Made]) -> list[Grid]:
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
    return [
        grid,
        *(Grid(f"fault: {each.fault}") for each in made.values() if each.fault),
        *(Grid(f"{each.file}: no index: {each.why}") for each in files if each.is_open),
        Grid(_done(uri, [*made.values()])),
    ]


def _limited(uri: str, limited: Mapping[str, int]) -> Iterator[str]:
    """What is to do where restores of other accounts do not use an index; nothing where they do."""
    if limited:
        users = ", ".join(map(str, sorted({*limited.values()})))
        yield (
            f"{folder_of(uri).uri}: {plural(len(limited), 'index', 'indexes')} by the user id {users}, which is "
            "neither root nor the owner of the log's files: a restore by another account does not use them. "
            "Give them to that owner (chown), or remove the folder and run `binlane archive index` as that owner"
        )


def _object(uri: str, files: Sequence[Indexed], made: Mapping[str, Made], limited: Mapping[str, int]) -> dict[str, Any]:
    faults = {each.file: each.fault for each in made.values() if each.fault}
    return {
        "archive": uri,
        "index": folder_of(uri).uri,
        "files": [
            {
                "name": each.file, "is_new": each.file in made and each.file not in faults, "why": each.why,
                "fault": faults.get(each.file), "limited_to": limited.get(each.file),
                "facts": None if each.facts is None else INDEX.dump(each.facts),
            }
            for each in files
        ],
        # each fault names its own way on
        "next_steps": [*faults.values(), *_limited(uri, limited)],
    }  # fmt: skip
