"""The wheel that `make dist` builds: what is in it, and that its command line needs what it declares and no more."""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
import venv
import zipfile
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from lab import dist, wheel
from lab.site import COMMAND_LINE, new_site

PACKAGE: Final = wheel.PROJECT / "plugins" / "binlane"
COMMAND: Final = """#!{python}
import sys
from importlib.metadata import entry_points
if __name__ == "__main__":
    (command,) = entry_points(group="console_scripts", name="binlane")
    sys.exit(command.load()())
"""
ABSENT: Final = ("airflow", "pyspark", "pandas", "s3fs", "statsd", "fastapi")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> wheel.Built:
    return wheel.build(tmp_path_factory.mktemp("dist"))


def ranges() -> dict[str, SpecifierSet]:
    """What the project and its extras ask for, by the package's name."""
    project = tomllib.loads((wheel.PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    return {canonicalize_name(each.name): each.specifier for each in map(Requirement, asked)}


def files_of(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_and_the_one_made_of_the_sdist_hold_the_package_and_nothing_else(
    built: wheel.Built, tmp_path: Path
) -> None:
    ours = {
        path.relative_to(PACKAGE.parent).as_posix(): path.read_bytes()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"binlane/board/static/index.html", "binlane/spark_jobs/event_metadata_filter.py"} <= set(ours)
    found = files_of(built.wheel)
    assert {name: data for name, data in found.items() if ".dist-info/" not in name} == ours
    assert files_of(wheel.wheel_of(built.sdist, tmp_path)) == found


def test_the_wheel_of_a_release_needs_no_library_of_the_system(built: wheel.Built, tmp_path: Path) -> None:
    given = wheel.Built(Path(shutil.copy(built.wheel, tmp_path)), built.sdist)
    found = wheel.audited(given)
    assert "-cp311-abi3-manylinux" in found.wheel.name
    assert any("libisal" in name for name in files_of(found.wheel))
    assert not given.wheel.exists()


def test_the_constraints_pin_every_package_that_the_wheel_and_its_extras_name() -> None:
    pins = [Requirement(line) for line in wheel.constraints().splitlines()]
    assert all(str(pin.specifier).startswith("==") for pin in pins)
    assert set(ranges()) <= {canonicalize_name(pin.name) for pin in pins}


@pytest.mark.parametrize("release", sorted(dist.RELEASES))
def test_the_releases_that_were_tried_are_in_the_ranges_and_in_the_page(release: str) -> None:
    asked = ranges()
    page = (wheel.PROJECT / "docs" / "install.md").read_text("utf-8")
    for pin in map(Requirement, dist.RELEASES[release]):
        (version,) = (each.version for each in pin.specifier)
        assert asked[canonicalize_name(pin.name)].contains(version), pin
        assert f"| {version} |" in page, pin


def test_every_minor_release_of_airflow_in_the_range_is_tried() -> None:
    asked = ranges()["apache-airflow"]
    (locked,) = (pin for pin in map(Requirement, wheel.constraints().splitlines()) if pin.name == "apache-airflow")
    newest = Version(next(iter(locked.specifier)).version)
    # the first release of the next minor one is not in the range until it has been tried
    assert not asked.contains(f"{newest.major}.{newest.minor + 1}.0")
    minors = [f"{newest.major}.{minor}" for minor in range(newest.minor) if asked.contains(f"3.{minor}.99")]
    assert sorted(dist.RELEASES) == minors


def test_the_command_line_runs_a_window_where_only_its_dependencies_are(built: wheel.Built, tmp_path: Path) -> None:
    programs = environment(built.wheel, tmp_path / "environment")
    python = str(programs / "python")
    missing = "import importlib.util as u, sys; print([name for name in sys.argv[1:] if u.find_spec(name)])"
    assert wheel.run([python, "-c", missing, *ABSENT]) == "[]\n"
    with new_site(programs, tmp_path) as site:
        for command in COMMAND_LINE:
            site.step(command)
        (log, *_) = (site.source.datadir / row[0] for row in site.source.query("SHOW BINARY LOGS"))
        assert "tenant_001" in site.step(f"binlane inspect {log}")
        assert site.step("binlane spark-job") == f"{PACKAGE / 'spark_jobs' / 'event_metadata_filter.py'}\n"
        assert site.compared().differences == ()


def environment(file: Path, folder: Path) -> Path:
    """A virtual environment with the wheel's metadata, links to what it depends on without extras, and the checkout's
    package; its programs."""
    venv.create(folder, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    for entry in sorted(needed()):
        (packages / entry.name).symlink_to(entry)
    with zipfile.ZipFile(file) as archive:
        archive.extractall(packages, [name for name in archive.namelist() if ".dist-info/" in name])
    (packages / "checkout.pth").write_text(f"{PACKAGE.parent}\n")
    command = folder / "bin" / "binlane"
    command.write_text(COMMAND.format(python=folder / "bin" / "python"))
    command.chmod(0o755)
    return folder / "bin"


def needed() -> set[Path]:
    """Files and folders in this environment's site-packages of the packages that binlane alone needs."""
    project = tomllib.loads((wheel.PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    todo = [Requirement(each) for each in project["dependencies"]]
    seen, found = set[tuple[str, str]](), set[Path]()
    while todo:
        asked = todo.pop()
        for extra in ("", *asked.extras):
            if (asked.name, extra) in seen:
                continue
            seen.add((asked.name, extra))
            package = metadata.distribution(asked.name)
            for each in map(Requirement, package.requires or []):
                if each.marker is None or each.marker.evaluate({"extra": extra}):
                    todo.append(each)
            for file in package.files or ():
                if file.parts[0] not in (os.pardir, "__pycache__"):
                    found.add(Path(str(package.locate_file(file.parts[0]))))
    assert sys.prefix in str(next(iter(found)))
    return found
