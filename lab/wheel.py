"""The wheel and the sdist, the constraints of uv.lock, and virtual environments that a wheel is installed into."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lab.programs import LabError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROJECT: Final = Path(__file__).resolve().parents[1]
_TOOLS: Final = (Path.home() / ".local" / "bin", PROJECT / ".binlane" / "tools" / "bin")
"""Where lab/setup.sh finds or puts uv, behind PATH."""
_SPARK_FILES: Final = "pyspark-client ; sys_platform == 'never'\n"
"""The Spark provider asks for pyspark-client, which overwrites pyspark's own files with those of its own version."""


@dataclass(frozen=True, slots=True)
class Built:
    """Two files of one version."""

    wheel: Path
    sdist: Path


def build(folder: Path, project: Path = PROJECT) -> Built:
    """Build both into ``folder`` with the hatchling and Cython of this environment: no registry is asked. Raises
    LabError."""
    run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=project)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Built(wheel, sdist)


def audited(built: Built) -> Built:
    """With the wheel replaced by one that has the libraries of its compiled modules, and a name that says which systems
    it is for (``manylinux``); a wheel without compiled modules stays. Raises LabError."""
    if built.wheel.name.endswith("-none-any.whl"):
        return built
    programs = Path(sys.executable).parent
    path = os.pathsep.join((str(programs), os.environ.get("PATH", "")))
    folder = built.wheel.parent
    run([str(programs / "auditwheel"), "repair", "-w", str(folder), str(built.wheel)], env={**os.environ, "PATH": path})
    built.wheel.unlink()
    (wheel,) = folder.glob("*.whl")
    return Built(wheel, built.sdist)


def wheel_of(sdist: Path, folder: Path) -> Path:
    """The wheel that is built from the unpacked sdist alone."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (project,) = folder.iterdir()
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "wheel")], cwd=project)
    (wheel,) = (folder / "wheel").iterdir()
    return wheel


def constraints(project: Path = PROJECT) -> str:
    """The locked version of each package that binlane and its extras need, as a constraints file for pip and uv."""
    arguments = ("--frozen", "--no-dev", "--all-extras", "--no-hashes", "--no-emit-project", "--no-annotate")
    return run([uv(), "export", "-q", *arguments, "--no-header"], cwd=project)


def install(wheel: Path, folder: Path, extras: str, pins: str) -> Path:
    """Install the wheel and what it needs into a new virtual environment; its programs. Raises LabError.

    ``extras``: such as ``[airflow,spark]``, or none. ``pins``: the text of a constraints file.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    run([uv(), "venv", "-q", "--python", sys.executable, str(folder)])
    pinned, overridden = folder / "constraints.txt", folder / "overrides.txt"
    pinned.write_text(pins)
    overridden.write_text(_SPARK_FILES)
    chosen = ["--constraints", str(pinned), "--overrides", str(overridden), f"binlane{extras} @ {wheel.as_uri()}"]
    # from the cache, as far as it goes
    run([uv(), "pip", "install", "-q", "--link-mode", "hardlink", "--python", str(folder / "bin" / "python"), *chosen])
    return folder / "bin"


def uv() -> str:
    """The program that `make setup` uses."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *map(str, _TOOLS)])
    found = shutil.which("uv", path=path)
    if found is None:
        # `make setup` brings it only where it makes .venv
        tools = _TOOLS[-1].parent
        raise LabError(f"uv: expected it on {path}, found none; `python3 -m pip install --target {tools} uv` brings it")
    return found


def run(command: Sequence[str], cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """A command's output. Raises LabError with all that it said if it fails."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(
            f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        )
    return done.stdout
