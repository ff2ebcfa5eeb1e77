"""``make release VERSION=0.2.0``: version, changelog, wheel, sdist and constraints in dist/, a commit and a tag.

Nothing is pushed: ``git push origin main v0.2.0`` is the last step, by hand. Run ``.ci/run`` and ``make dist`` before.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from lab import wheel
from lab.programs import LabError

VERSION_FILE: Final = Path("plugins/binlane/__init__.py")
CHANGELOG: Final = Path("CHANGELOG.md")
_VERSION: Final = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_UNRELEASED: Final = "## [Unreleased]\n"


def main(arguments: list[str] | None = None) -> int:
    """0 if the release is committed and tagged."""
    parser = argparse.ArgumentParser(prog="python -m lab.release", description="commit and tag a release")
    parser.add_argument("version", help="such as 0.2.0")
    version = parser.parse_args(arguments).version
    try:
        release(wheel.PROJECT, version, datetime.now(UTC).date())
    except LabError as exc:
        print(exc, file=sys.stderr)
        return 1
    print(f"committed and tagged v{version}; look at dist/, then: git push origin main v{version}")
    return 0


def release(project: Path, version: str, day: date) -> None:
    """Commit and tag version ``version`` of a clean clone. Raises LabError, and leaves the clone as it was then."""
    _check(project, version)
    texts = {file: (project / file).read_text("utf-8") for file in (VERSION_FILE, CHANGELOG)}
    changed = {
        VERSION_FILE: with_version(texts[VERSION_FILE], version),
        CHANGELOG: with_release(texts[CHANGELOG], version, day),
    }
    dist = project / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    try:
        for file, text in changed.items():
            (project / file).write_text(text, "utf-8")
        wheel.audited(wheel.build(dist, project))
        (dist / "constraints.txt").write_text(wheel.constraints(project))
        _git(project, "commit", "-q", "-m", f"binlane {version}", "--", *map(str, changed))
    except LabError:
        for file, text in texts.items():
            (project / file).write_text(text, "utf-8")
        raise
    _git(
        project,
        "tag",
        "-a",
        "--cleanup=verbatim",
        f"v{version}",
        "-m",
        f"binlane {version}\n\n{notes(changed[CHANGELOG], version)}",
    )


def _check(project: Path, version: str) -> None:
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise LabError(f"version: expected three numbers such as 0.2.0, got {version}")
    branch = _git(project, "branch", "--show-current")
    if branch != "main":
        raise LabError(f"{project}: expected branch main, found {branch}: git switch main")
    changes = _git(project, "status", "--porcelain")
    if changes:
        raise LabError(f"{project}: expected a clean tree, found changes: commit or stash them\n{changes}")
    tags = [tag.removeprefix("v") for tag in _git(project, "tag", "--list", "v*").split()]
    newest = max(tags, key=_numbers, default=None)
    if newest is not None and _numbers(version) <= _numbers(newest):
        raise LabError(f"version: expected one above {newest}, the newest tag, got {version}")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def with_version(text: str, version: str) -> str:
    """The package's first module with another version. Raises LabError if it declares none."""
    if not _VERSION.search(text):
        raise LabError(f'{VERSION_FILE}: expected a line __version__ = "...", found none')
    return _VERSION.sub(f'__version__ = "{version}"', text)


def with_release(text: str, version: str, day: date) -> str:
    """The changelog whose unreleased entries are those of a version. Raises LabError if there are none."""
    before, mark, entries = text.partition(_UNRELEASED)
    if not mark or not entries.partition("\n## [")[0].strip():
        raise LabError(f"{CHANGELOG}: expected entries below {_UNRELEASED.strip()}: write what the release changes")
    return f"{before}{_UNRELEASED}\n## [{version}] - {day}\n{entries}"


def notes(text: str, version: str) -> str:
    """A version's entries in the changelog."""
    _, _, rest = text.partition(f"## [{version}]")
    return rest.partition("\n")[2].partition("\n## [")[0].strip()


def _git(project: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=project, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"git {' '.join(arguments[:2])}: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
