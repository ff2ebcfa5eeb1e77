"""formats.json of a window's folders: written before their other files, asked before these are read."""

from __future__ import annotations

from collections.abc import Collection

from binlane.formats import FORMATS_FILE, require_formats, written_formats
from binlane.work.files import SMALL, WorkFolder


def write_formats(folder: WorkFolder, names: Collection[str], *, last: str) -> None:
    """Note this binlane's formats in a folder that it begins to fill, perhaps again behind another release.

    A folder that has its ``last`` file is complete, and keeps what it has.
    """
    data = written_formats(names)
    if folder.exists(last) or read_formats(folder) == data:
        return
    with folder.create(FORMATS_FILE) as file:
        file.write(data)


def check_formats(folder: WorkFolder) -> None:
    """Raises PlanError unless this binlane reads the folder's files, naming the release that has written them. A folder
    without formats.json, which is written first, has no other files: who reads them says so."""
    if (data := read_formats(folder)) is not None:
        require_formats(data, folder.uri)


def read_formats(folder: WorkFolder) -> bytes | None:
    """formats.json; None if the folder has none. The target has no digest of it: it decides nothing but a refusal."""
    return WorkFolder(folder.uri).read(FORMATS_FILE, SMALL) if folder.exists(FORMATS_FILE) else None
