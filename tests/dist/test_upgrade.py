"""An upgrade from one wheel to the next: that of a made-up version whose schema has one step more."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

from lab import wheel
from lab.programs import LabError
from lab.site import Site, new_site
from lab.traffic import run_traffic
from tests.dist.test_wheel import environment
from tests.integration.window.conftest import run_on

pytestmark = pytest.mark.trial

_KEPT: Final = ("plugins", ".binlane/kernels")
_FILES: Final = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE")
_EDITS: Final = {
    "state/stored_values.py": (
        '"stop_at": _SEQNO, "summary"',
        '"made_up": _integer(1, 9), "stop_at": _SEQNO, "summary"',
    ),
    "__init__.py": ('__version__ = "0.1.0"', '__version__ = "0.2.0"'),
    "state/tables.py": ("VERSION: Final = 1\n", "VERSION: Final = 2\n"),
    "state/migrations/steps.py": (
        """tables.migrations), VIEW),
    ),
)""",
        """tables.migrations), VIEW),
    ),
    Step("a made-up column", (AddColumn(tables.windows.c.made_up),)),
)""",
    ),
}
MADE: Final = "CREATE TABLE tenant_001.made (id INT PRIMARY KEY)"
_COLUMN: Final = ('    Column("summary", _LONG),\n', '    Column("summary", _LONG),\n    Column("made_up", Integer),\n')


def next_version(folder: Path) -> Path:
    """The wheel of the next version."""
    for name in _KEPT:
        shutil.copytree(wheel.PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in _FILES:
        shutil.copy(wheel.PROJECT / name, folder)
    package = folder / "plugins" / "binlane"
    for name, (before, after) in _EDITS.items():
        edited(package / name, before, after)
    edited(package / "state" / "tables.py", *_COLUMN)
    wheel.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")], cwd=folder)
    (made,) = (folder / "dist").glob("binlane-0.2.0-*.whl")
    return made


def edited(file: Path, before: str, after: str) -> None:
    text = file.read_text("utf-8")
    assert text.count(before) == 1, file
    file.write_text(text.replace(before, after), "utf-8")


def install(made: Path, programs: Path) -> None:
    """In place of the version that is there."""
    python = str(programs / "python")
    wheel.run([wheel.uv(), "pip", "install", "-q", "--offline", "--no-deps", "--python", python, str(made)])


def test_the_next_wheel_upgrades_the_schema_and_ends_the_window_that_was_open(tmp_path: Path) -> None:
    built = wheel.build(tmp_path / "dist")
    newer = next_version(tmp_path / "next")
    programs = environment(built.wheel, tmp_path / "environment")
    # nothing of the checkout: the wheels themselves
    packages = next((tmp_path / "environment").glob("lib/python*/site-packages"))
    (packages / "checkout.pth").unlink()
    for found in packages.glob("binlane-*.dist-info"):
        shutil.rmtree(found)
    (programs / "binlane").unlink()
    install(built.wheel, programs)
    with new_site(programs, tmp_path) as site:
        assert site.step("binlane version") == "binlane 0.1.0\n"
        site.step("binlane init shop --start oldest")
        site.step("binlane run shop")
        half_applied(site)
        install(newer, programs)
        assert site.step("binlane version") == "binlane 0.2.0\n"
        with pytest.raises(LabError, match=r"has version 1, this binlane needs 2: .*run `binlane init shop`"):
            site.step("binlane status shop")
        site.step("binlane init shop")
        assert "made_up" in {row[0] for row in site.target.query("DESCRIBE binlane.windows")}
        assert site.target.query("SELECT version FROM binlane.migrations ORDER BY version") == [(1,), (2,)]
        run_on(site.target, "DROP TABLE tenant_001.made", log=False)
        site.step("binlane run shop")
        assert site.target.query("SELECT DISTINCT state FROM binlane.windows") == [("finished",)]
        assert site.compared().differences == ()
        install(built.wheel, programs)
        with pytest.raises(LabError, match=r"has version 2, this binlane knows versions up to 1: a newer binlane"):
            site.step("binlane run shop")


def half_applied(site: Site) -> None:
    """Leave a window of which lanes have applied a part: a table is in the way of its last statement."""
    run_traffic(site.source.connect, tenants=4, transactions=60, threads=2, seed=2)
    run_on(site.target, MADE, log=False)
    run_on(site.source, MADE)
    with pytest.raises(LabError, match="1050 Table 'made' already exists"):
        site.step("binlane run shop")
    assert site.target.query("SELECT COUNT(*) FROM binlane.windows WHERE state = 'open'") == [(1,)]
