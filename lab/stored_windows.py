"""Windows of generated histories as files: the plan job's inputs, and the digests of its outputs.

    python -m lab.stored_windows make       play the histories of WINDOWS on private servers and store their windows
    python -m lab.stored_windows digests    write the digests of what today's plan job makes of the stored windows

``tests/unit/work/test_stored_windows.py`` compares the digests. Both families' servers are needed for ``make`` alone.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from binlane.model import Flavor
from binlane.orchestration import steps
from binlane.orchestration.request import NOW, WindowRequest
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from binlane.work.planned import PlannedLanes
from lab.histories.channel import Channel
from lab.histories.generator import generate
from lab.histories.history import BOTH, WINDOW, Settings
from lab.histories.play import Stage
from lab.histories.servers import empty, make_folder, prepare, start

STORED: Final = Path(__file__).parents[1] / "tests" / "unit" / "work" / "stored_windows"
DIGESTS: Final = STORED / "digests.json"
WINDOWS: Final[Mapping[str, tuple[int, Settings]]] = {
    "replayed": (1007, Settings(lanes=3, fold_gap=None, block=20, reduce="off", segment_bytes=1 << 20)),
    "many-segments": (1011, Settings(lanes=7, fold_gap=0, block=1, reduce="off", segment_bytes=1)),
    "folded": (1013, Settings(lanes=3, fold_gap=0, block=1000, reduce="block", segment_bytes=4096)),
    "folded-over-segments": (1004, Settings(lanes=7, fold_gap=0, block=1000, reduce="window", segment_bytes=2048)),
    "sql-writer": (1019, Settings(lanes=1, fold_gap=0, block=3, reduce="block", segment_bytes=4096, writer="sql")),
}
"""By name, of each family: a history's seed and its channel's settings."""
_STAMP: Final = (2026, 1, 1, 0, 0, 0)


def stored() -> list[Path]:
    """The stored windows, by name."""
    return sorted(STORED.glob("*.zip"))


def digests(window: Path, folder: Path) -> dict[str, str]:
    """Run the plan job on a stored window, unpacked into ``folder``, and return digests of its outputs.

    ``plan``: the plan's own digest, over its files; ``pieces``: over every transaction, built from the segments as a
    lane does for a block that fails.
    """
    work = unpack(window, folder)
    plan = run_plan_job(work, InProcess())
    lanes, found = PlannedLanes(plans_of(work), plan), hashlib.sha256()
    for lane in plan.all_lanes:
        for block in lanes.blocks(lane, after=0):
            for piece in lanes.pieces(lane, block.header):
                found.update(repr((lane, piece.header, piece.format, tuple(piece.items))).encode())
    return {"plan": plan.digest, "pieces": found.hexdigest()}


def unpack(window: Path, folder: Path) -> WorkFolder:
    """The work folder of a stored window, as after extraction."""
    with zipfile.ZipFile(window) as archive:
        archive.extractall(folder)
    return WorkFolder(str(folder))


def plans_of(work: WorkFolder) -> WorkFolder:
    """The folder of the window's plan."""
    (key,) = (name for name in work.children() if work.child(name).exists(files.PLAN))
    return work.child(key)


def make() -> None:
    """Play the histories of WINDOWS on private servers, and store one window of each."""
    STORED.mkdir(exist_ok=True)
    for flavor in Flavor:
        with tempfile.TemporaryDirectory(prefix="binlane-windows-") as place:
            _make(flavor, Path(place))


def _make(flavor: Flavor, folder: Path) -> None:
    make_folder(folder)
    source, target = start(flavor, folder, "source"), start(flavor, folder, "target")
    try:
        for name, (seed, settings) in WINDOWS.items():
            history = generate(flavor, seed)
            for server in (source, target):
                empty(server)
                prepare(server, [event for event in history.events if event.session == BOTH])
            place = folder / name
            channel = Channel.begin(name.replace("-", "_"), source, target, place, settings)
            with Stage(source, folder) as stage:
                for event in history.events:
                    if event.session not in (BOTH, WINDOW):
                        stage.play(event)
            answer = steps.extract(channel.config, channel.endpoints, WindowRequest(NOW, dry_run=True))
            store(Path(answer["work"]), STORED / f"{flavor.value}-{name}.zip")
    finally:
        for server in (source, target):
            server.kill()
            server.stop()


def store(work: Path, path: Path) -> None:
    """A folder as a zip archive; equal files give equal bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in sorted(each for each in work.rglob("*") if each.is_file()):
            info = zipfile.ZipInfo(str(file.relative_to(work)), _STAMP)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, file.read_bytes())


def write_digests() -> None:
    """Write the digests of what today's plan job makes of the stored windows."""
    found = {}
    for window in stored():
        with tempfile.TemporaryDirectory(prefix="binlane-windows-") as folder:
            found[window.stem] = digests(window, Path(folder))
    DIGESTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["make"]:
        make()
    elif sys.argv[1:] != ["digests"]:
        sys.exit(__doc__)
    write_digests()
