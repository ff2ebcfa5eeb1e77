"""``make dist``: wheel, sdist and constraints in dist/, then the steps of docs/install.md in empty environments.

The command line is installed from the wheel, Airflow's site from the one that the sdist gives. ``--airflow 3.1`` takes
the releases of a site with that minor release of Airflow in place of the locked ones; ``--build-only`` (``make
wheel``) installs nothing.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lab import site, wheel
from lab.programs import LabError

if TYPE_CHECKING:
    from collections.abc import Mapping

DIST: Final = wheel.PROJECT / "dist"
RELEASES: Final[Mapping[str, tuple[str, ...]]] = {
    "3.1": (
        "apache-airflow==3.1.1",
        "apache-airflow-providers-apache-spark==5.3.2",
        "pyspark==4.0.0",
        "sqlalchemy==2.0.44",
        "pandas==2.3.3",
    ),
    "3.2": (
        "apache-airflow==3.2.2",
        "apache-airflow-providers-apache-spark==6.2.0",
        "pyspark==4.1.1",
        "sqlalchemy==2.0.49",
        "pandas==2.3.3",
    ),
}
"""What a site with an older minor release of Airflow has, from the other end of the ranges on; docs/install.md has the
same. For what these need, the newest releases that fit. The newest minor release is the locked one."""
_WITH: Final[Mapping[str, tuple[str, ...]]] = {
    "3.1": ("structlog==25.4.0",),
    "3.2": ("fastapi==0.136.1", "cadwyn==7.0.0", "svcs==25.1.0"),
}
"""Airflow 3.1.1 imports a name that later releases of structlog do not have, and no task of 3.2 begins with later ones
of FastAPI and svcs; a site that is installed by Airflow's own constraints has such releases."""


def main(arguments: list[str] | None = None) -> int:
    """0 if source and target were equal behind each site's steps."""
    parser = argparse.ArgumentParser(prog="python -m lab.dist", description="build, install and try binlane")
    parser.add_argument("--airflow", choices=sorted(RELEASES), help="with an older minor release; none: as locked")
    parser.add_argument("--build-only", action="store_true", help="install and try nothing")
    given = parser.parse_args(arguments)
    try:
        # before what takes long, because it asks for uv
        locked = wheel.constraints()
        shutil.rmtree(DIST, ignore_errors=True)
        built = wheel.audited(wheel.build(DIST))
        (DIST / "constraints.txt").write_text(locked)
        for file in sorted(DIST.iterdir()):
            print(f"{file.relative_to(wheel.PROJECT)}: {file.stat().st_size:,} bytes")
        if not given.build_only:
            _try(built, locked, given.airflow)
    except LabError as exc:
        print(exc, file=sys.stderr)
        return 1
    return 0


def _try(built: wheel.Built, locked: str, release: str | None) -> None:
    pins = locked if release is None else "\n".join((*RELEASES[release], *_WITH.get(release, ())))
    with tempfile.TemporaryDirectory(prefix="binlane-dist-") as name:
        of_sdist = wheel.wheel_of(built.sdist, Path(name) / "sdist")
        sites = (
            (built.wheel, "", site.COMMAND_LINE),
            (of_sdist, "[airflow,spark,s3,statsd]", site.AIRFLOW),
        )
        for number, (file, extras, steps) in enumerate(sites):
            folder = Path(name) / str(number)
            show(wheel.install(file, folder / "environment", extras, pins), folder, steps)


def show(programs: Path, folder: Path, steps: tuple[str, ...]) -> None:
    """Run the steps of a new site and print what they say. Raises LabError for a failed one, and for a difference."""
    with site.new_site(programs, folder) as found:
        for command in steps:
            print(f"$ {command}\n{found.step(command)}", flush=True)
        if differences := found.compared().differences:
            raise LabError("\n".join(differences))


if __name__ == "__main__":
    sys.exit(main())
