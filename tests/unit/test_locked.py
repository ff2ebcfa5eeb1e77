"""What is installed and run to build binlane is named by hashes: in uv.lock, in deploy/uv.txt, in CI's workflow."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
SETUP: Final = ("Dockerfile", "lab/setup.sh")
"""Files that install something. A line more is a file more."""


def commands(file: str) -> list[str]:
    """The lines of a file without comments, those that are continued as one."""
    text = re.sub(r"^\s*#.*$", "", (ROOT / file).read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [line for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("file", SETUP)
def test_nothing_is_installed_that_no_hash_names(file: str) -> None:
    pip = [line for line in commands(file) if re.search(r"\bpip install\b", line)]
    assert pip
    assert [line for line in pip if "--require-hashes" not in line] == []
    synced = [line for line in commands(file) if "uv sync" in line]
    assert synced
    assert [line for line in synced if "--frozen" not in line] == []
    # an isolated build installs what the registry has that day, and runs it
    builds = [line for line in synced if "--no-install-project" not in line]
    assert [line for line in builds if "--no-build-isolation-package binlane" not in line] == []


def test_what_builds_the_wheel_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(project["build-system"]["requires"]) <= set(project["dependency-groups"]["build"])
    assert {"include-group": "build"} in project["dependency-groups"]["dev"]
    locked = {each["name"]: each for each in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    for requirement in project["dependency-groups"]["build"]:
        name = re.split(r"[^a-z]", requirement)[0]
        assert all(wheel["hash"].startswith("sha256:") for wheel in locked[name]["wheels"]), name


def test_uv_and_the_steps_of_ci_are_named_by_hashes() -> None:
    [uv] = [line for line in commands("deploy/uv.txt") if line.startswith("uv==")]
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", uv)) >= 4
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        for used in re.findall(r"uses: (\S+)", workflow.read_text()):
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", used), used
