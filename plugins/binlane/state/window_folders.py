"""Where the files of a channel's windows are: in the work folder that its channel file names, by the windows' names.

The target records the place of each window, and whoever can write to the schema ``binlane`` can change it; steps hand
it on to the next ones, and whoever may edit Airflow's XComs can change that. So neither decides anything: no file is
read, fetched or removed at a place that only they name.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from binlane.errors import PlanError
from binlane.lazy_dataclass import dataclass
from binlane.model import FolderRecord
from binlane.work import files
from binlane.work.files import WorkFolder

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_KEY: Final = re.compile(r"[0-9a-f]{16}")
"""The name of a plan's folder (``work.plan_inputs``)."""
_EXTRACTED: Final = re.compile(r"(\d{12,})-[0-9a-f]{8}")
"""The name of a window that was extracted: its first seqno and a random part."""


def first_seqno_in(window: str) -> int | None:
    """The first seqno in the name of an extracted window; None for another name."""
    found = _EXTRACTED.fullmatch(window)
    return None if found is None else int(found[1])


@dataclass(frozen=True, slots=True)
class WindowFolders:
    """The folders of a channel's windows."""

    uri: str
    """``work.uri`` of the channel file."""
    channel: str

    @property
    def all(self) -> WorkFolder:
        """The folder that holds the windows' folders."""
        return WorkFolder(self.uri).child(self.channel)

    def named(self, window: str) -> WorkFolder:
        """The folder of a window, whatever is recorded of it. Raises PlanError for a name that is a path."""
        if _NAME.fullmatch(window) is None:
            raise PlanError(
                f"channel {self.channel}: expected the name of a window, found {window!r}: another program has changed "
                "the schema binlane on the target; restore it from a backup"
            )
        return self.all.child(window)

    def at(self, uri: str, is_finished: Callable[[str], bool] = lambda _: False) -> WorkFolder:
        """The folder of a window that an earlier step has named. Raises PlanError for another place than a window's.

        ``is_finished``: whether the target has finished the window of a name. That one's files are not needed, so the
        place may be of before a change of ``work.uri``; the answer is by the name."""
        name = posixpath.basename(uri)
        folder = self.all.child(name) if _NAME.fullmatch(name) is not None else None
        if folder is None or (folder.uri != uri and not is_finished(name)):
            raise PlanError(
                f"channel {self.channel}: expected the folder of a window, {self.all.uri}/WINDOW, by work.uri of the "
                f"channel file, found {uri[:200]!r} as an earlier step's answer; it is not read, because who may edit "
                "Airflow's XComs can change that answer. If work.uri (or BINLANE_WORK) was changed meanwhile, set it "
                "back; else begin with extract_segments again"
            )
        return folder

    def plans_at(self, uri: str, is_finished: Callable[[str], bool] = lambda _: False) -> WorkFolder:
        """The folder of a plan that an earlier step has named, in its window's. As ``at``."""
        window, key = posixpath.split(uri)
        folder = self.at(window, is_finished)
        if _KEY.fullmatch(key) is None:
            raise PlanError(
                f"{folder.uri}: expected the folder of a plan, found {key[:80]!r} as an earlier step's answer, which "
                "somebody has changed; begin with extract_segments again"
            )
        return folder.plans(key)

    def of(self, window: str, record: FolderRecord) -> WorkFolder:
        """The folder of a window whose files are needed: those of the recorded digests. Raises PlanError if the record
        names another place, and the window's files are not at its own."""
        folder = replace(self.named(window), digests=record.digests)
        if record.uri == folder.uri or folder.exists(files.MANIFEST):
            return folder
        raise PlanError(
            f"channel {self.channel}, window {window}: expected its files in {folder.uri}, by work.uri of the channel "
            f"file, and found none there; binlane.windows.work names {record.uri[:200]!r}, which is not "
            "read, because it could be changed on the target. If work.uri (or BINLANE_WORK) was changed while the "
            "window was open, set it back, or move the window's folder to the expected place. If the files are lost, "
            f"run on the target: UPDATE binlane.windows SET work = '{_quoted(folder.uri)}' WHERE channel = "
            f"'{self.channel}' AND window_id = '{window}'; the next run reads them again from the source"
        )

    def found(self, window: str, record: FolderRecord) -> WorkFolder | None:
        """The folder of a window whose files are of use; None if they were removed, whatever the record says: a target
        that was restored has an older one than the work folder, and somebody may have removed files by hand."""
        if record.is_removed or _NAME.fullmatch(window) is None:
            return None
        folder = replace(self.named(window), digests=record.digests)
        return folder if folder.exists(files.MANIFEST) else None


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "''")
