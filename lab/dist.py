"""``make dist``: wheel, sdist and constraints in dist/, then the steps of docs/install.md in empty environments.

The command line is installed from the wheel, Airflow's site from the one that the sdist gives. ``--oldest`` takes the
oldest releases that binlane's ranges allow in place of the locked ones.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from lab import site, wheel
from lab.programs import LabError

DIST: Final = wheel.PROJECT / "dist"
OLDEST: Final = (
    "apache-airflow==3.1.1",
    "apache-airflow-providers-apache-spark==5.3.2",
    "pyspark==4.0.0",
    "sqlalchemy==2.0.44",
    "pandas==2.3.3",
)
"""The other end of the ranges; docs/install.md has the same. For what these need, the newest releases that fit."""
_WITH_OLDEST: Final = ("structlog==25.4.0",)
"""Airflow 3.1.1 imports a name that later ones do not have; a site's own constraints have such a release."""


def main(arguments: list[str] | None = None) -> int:
    """0 if source and target were equal behind each site's steps."""
    parser = argparse.ArgumentParser(prog="python -m lab.dist", description="build, install and try binlane")
    parser.add_argument("--oldest", action="store_true", help="with the oldest releases of the ranges")
    oldest = parser.parse_args(arguments).oldest
    shutil.rmtree(DIST, ignore_errors=True)
    built = wheel.build(DIST)
    (DIST / "constraints.txt").write_text(wheel.constraints())
    for file in sorted(DIST.iterdir()):
        print(f"{file.relative_to(wheel.PROJECT)}: {file.stat().st_size:,} bytes")
    pins = "\n".join((*OLDEST, *_WITH_OLDEST)) if oldest else wheel.constraints()
    with tempfile.TemporaryDirectory(prefix="binlane-dist-") as name:
        of_sdist = wheel.wheel_of(built.sdist, Path(name) / "sdist")
        sites = (
            (built.wheel, "", site.COMMAND_LINE),
            (of_sdist, "[airflow,spark,s3,statsd]", site.AIRFLOW),
        )
        for number, (file, extras, steps) in enumerate(sites):
            folder = Path(name) / str(number)
            try:
                show(wheel.install(file, folder / "environment", extras, pins), folder, steps)
            except LabError as exc:
                print(exc, file=sys.stderr)
                return 1
    return 0


def show(programs: Path, folder: Path, steps: tuple[str, ...]) -> None:
    """Run the steps of a new site and print what they say. Raises LabError for a failed one, and for a difference."""
    with site.new_site(programs, folder) as found:
        for command in steps:
            print(f"$ {command}\n{found.step(command)}", flush=True)
        if differences := found.compared().differences:
            raise LabError("\n".join(differences))


if __name__ == "__main__":
    sys.exit(main())
