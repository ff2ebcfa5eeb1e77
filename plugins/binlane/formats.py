"""The formats of the files that one binlane leaves for another: each format's version is declared here.

A window's files may be read by another release: by the run that finishes a window behind an upgrade, by a worker that
still runs the older one. So each folder of a window has formats.json, with the release that has written the folder and
the versions of its files, and every reader asks it first. The tables on the target have a version of their own
(``state.tables``).

Every change of a record or a column that is written raises its format's version, an addition too: an older binlane
must refuse such a file by name. ``oldest`` stays for as long as this binlane reads the earlier versions exactly.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Final

import binlane
from binlane.errors import NO_RECORD, PlanError
from binlane.lazy_dataclass import dataclass

FORMATS_FILE: Final = "formats.json"
RELEASE: Final = binlane.__version__
_LONGEST: Final = 100
"""Characters of a release, or of a format's name, that are read."""


@dataclass(frozen=True, slots=True)
class Format:
    """The versions of one kind of file."""

    version: int
    """The version that is written."""
    oldest: int
    """The lowest version that is read."""

    def reads(self, version: object) -> bool:
        """Whether this binlane reads files of a version."""
        return isinstance(version, int) and self.oldest <= version <= self.version

    @property
    def versions(self) -> str:
        """The versions that are read, in words."""
        return f"{self.oldest}" if self.oldest == self.version else f"{self.oldest} to {self.version}"


FORMATS: Final[Mapping[str, Format]] = {
    "segments": Format(1, oldest=1),
    "manifest.json": Format(1, oldest=1),
    "channel.json": Format(1, oldest=1),
    "schema.json": Format(1, oldest=1),
    "definitions.json": Format(1, oldest=1),
    "programs.json": Format(1, oldest=1),
    "context.json": Format(1, oldest=1),
    "lane files": Format(1, oldest=1),
    "databases.json": Format(1, oldest=1),
    "partitioned.json": Format(1, oldest=1),
    "reached.json": Format(1, oldest=1),
    "variables.json": Format(1, oldest=1),
    "plan.json": Format(1, oldest=1),
    "repair plans": Format(1, oldest=1),
    "archive index": Format(1, oldest=1),
    "archive keys": Format(1, oldest=1),
}
OF_WINDOW: Final = ("segments", "manifest.json", "channel.json", "schema.json", "definitions.json", "programs.json")
"""The formats in a window's folder."""
OF_PLAN: Final = (
    *("context.json", "lane files", "databases.json", "partitioned.json", "reached.json", "variables.json"),
    "plan.json",
)
"""The formats in the folder of a window's plan."""


def written_formats(names: Collection[str]) -> bytes:
    """formats.json for a folder that this binlane writes."""
    versions = {name: FORMATS[name].version for name in names}
    return json.dumps({"binlane": RELEASE, "formats": versions}, indent=1).encode() + b"\n"


def require_formats(data: bytes, where: str) -> None:
    """Raises PlanError unless this binlane reads all of a folder's files, naming the release that has written them.

    ``data``: formats.json. ``where``: the folder.
    """
    release, versions = _read(data, where)
    unread = [name for name in versions if name not in FORMATS or not FORMATS[name].reads(versions[name])]
    if not unread:
        return
    name, known = unread[0], FORMATS.get(unread[0])
    reads = "does not know such files" if known is None else f"reads version {known.versions}"
    raise PlanError(
        f"{where}: binlane {release} has written {name} in version {versions[name]}, and this binlane, {RELEASE}, "
        f"{reads}; nothing was changed. Finish the window with binlane {release}; or, if "
        "`binlane status CHANNEL` shows that it has no plan yet, remove its folder and run again: it is read and "
        "planned anew"
    )


def _read(data: bytes, where: str) -> tuple[str, Mapping[str, int]]:
    try:
        found = json.loads(data)
        release, versions = str(found["binlane"]), found["formats"]
        # an error quotes them
        return release[:_LONGEST], {str(name)[:_LONGEST]: int(version) for name, version in versions.items()}
    except NO_RECORD as exc:
        raise PlanError(
            f"{where}/{FORMATS_FILE}: expected a release and the versions of the folder's formats, got {exc!r}: the "
            "file was changed or is damaged; remove the window's folder and run again: the same part of the log is read"
        ) from exc
