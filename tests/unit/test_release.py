"""A release: one command that changes the version and the changelog, builds, commits and tags, or changes nothing."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from lab import dist, wheel
from lab.programs import LabError
from lab.release import release

ROOT = Path(__file__).parents[2]
DAY = date(2026, 12, 1)
COPIED = ("pyproject.toml", "uv.lock", "README.md", "LICENSE", "plugins/binlane/__init__.py")
HOOK = '[tool.hatch.build.targets.wheel.hooks.custom]\npath = "hatch_build.py"\n'
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- lanes\n"


def git(project: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A clone with a package of one module, and none to compile."""
    for name in COPIED:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes((ROOT / name).read_bytes())
    settings = (tmp_path / "pyproject.toml").read_text()
    assert HOOK in settings
    (tmp_path / "pyproject.toml").write_text(settings.replace(HOOK, ""))
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / ".gitignore").write_text("/dist/\n")
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "config", "user.name", "a")
    git(tmp_path, "config", "user.email", "a@b.example")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_a_release_is_built_committed_and_tagged_with_its_notes(project: Path) -> None:
    release(project, "7.8.9", DAY)
    assert (project / "CHANGELOG.md").read_text() == CHANGELOG.replace("ed]\n", "ed]\n\n## [7.8.9] - 2026-12-01\n")
    names = {file.name for file in (project / "dist").iterdir()}
    assert names == {"binlane-7.8.9-py3-none-any.whl", "binlane-7.8.9.tar.gz", "constraints.txt"}
    assert git(project, "status", "--porcelain") == ""
    assert git(project, "tag", "-l", "-n9", "v7.8.9", "--format=%(contents)") == "binlane 7.8.9\n\n### Added\n\n- lanes"
    with pytest.raises(LabError, match=re.escape("expected one above 7.8.9, the newest tag, got 7.8.9")):
        release(project, "7.8.9", DAY)
    with pytest.raises(LabError, match="expected entries below"):
        release(project, "7.10.0", DAY)


def on_a_branch(project: Path) -> None:
    git(project, "switch", "-q", "-c", "other")


def with_a_change(project: Path) -> None:
    (project / "README.md").write_text("changed")


def with_a_package_that_cannot_be_built(project: Path) -> None:
    (project / "LICENSE").unlink()
    git(project, "rm", "-q", "--cached", "README.md")
    (project / "README.md").unlink()
    git(project, "commit", "-q", "-a", "-m", "no README")


@pytest.mark.parametrize(
    ("version", "changed", "message"),
    [
        ("1.0", None, "expected three numbers such as 0.2.0, got 1.0"),
        ("1.0.0", on_a_branch, "expected branch main, found other: git switch main"),
        ("1.0.0", with_a_change, "expected a clean tree, found changes"),
        ("1.0.0", with_a_package_that_cannot_be_built, "README.md"),
    ],
)
def test_what_cannot_be_released_changes_nothing(
    project: Path, version: str, changed: Callable[[Path], None] | None, message: str
) -> None:
    if changed is not None:
        changed(project)
    before = git(project, "status", "--porcelain"), git(project, "rev-parse", "HEAD")
    with pytest.raises(LabError, match=message):
        release(project, version, DAY)
    assert (git(project, "status", "--porcelain"), git(project, "rev-parse", "HEAD"), git(project, "tag")) == (
        *before,
        "",
    )


def test_a_build_without_uv_says_what_brings_it_and_removes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "binlane-7.8.9.tar.gz").touch()
    monkeypatch.setattr(dist, "DIST", tmp_path)
    monkeypatch.setattr(wheel, "_TOOLS", (tmp_path / "none" / "bin",))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert dist.main(["--build-only"]) == 1
    assert f"`python3 -m pip install --target {tmp_path / 'none'} uv` brings it" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["binlane-7.8.9.tar.gz"]
