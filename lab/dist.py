"""``make dist``: wheel, sdist and constraints in dist/, then the steps of docs/install.md in empty environments."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from lab import site, wheel
from lab.programs import LabError

DIST: Final = wheel.PROJECT / "dist"
SITES: Final = (("", site.COMMAND_LINE), ("[airflow,spark,s3,statsd]", site.AIRFLOW))
"""Extras, and the steps of docs/install.md that they make possible."""


def main() -> int:
    """0 if source and target were equal behind each site's steps."""
    shutil.rmtree(DIST, ignore_errors=True)
    built = wheel.build(DIST)
    (DIST / "constraints.txt").write_text(wheel.constraints())
    for file in sorted(DIST.iterdir()):
        print(f"{file.relative_to(wheel.PROJECT)}: {file.stat().st_size:,} bytes")
    for extras, steps in SITES:
        with tempfile.TemporaryDirectory(prefix="binlane-dist-") as name:
            try:
                show(wheel.install(built.wheel, Path(name) / "environment", extras), Path(name), steps)
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
