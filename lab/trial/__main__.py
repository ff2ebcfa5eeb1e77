"""``make trial``: both families, or one; then the samples of the documentation."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from binlane.model import Flavor
from lab.trial import days, fleet, physical, samples, trouble
from lab.trial.site import Size, busy, new_site

_SMALL: Final = Size(tenants=4, before=200, archived=60_000, per_second=50, windows=4)


def main(
    family: Annotated[Flavor | None, typer.Option(help="Server of source and target; default: both, in turn.")] = None,
    small: Annotated[bool, typer.Option("--small", help="With few rows, in minutes; writes no samples.")] = False,
) -> None:
    """Live the days; an answer that is not as documented ends the trial."""
    shown: dict[str, str] = {}
    for flavor in Flavor if family is None else (family,):
        with tempfile.TemporaryDirectory(prefix="binlane-trial-") as place:
            shown |= trial(flavor, Path(place), _SMALL if small else Size())
    if not small:
        samples.store(shown)


def trial(flavor: Flavor, folder: Path, size: Size) -> Mapping[str, str]:
    """All days between two servers of one family; what the documentation may show of them."""
    with new_site(flavor, folder, size) as site, busy(site, size):
        days.ready(site)
        days.copied(site)
        days.windows(site, size)
        days.drilled(site)
        trouble.drifted(site)
        trouble.stopped(site)
        trouble.failed(site)
        fleet.several(site)
        physical.begun(site, folder / "warehouse")
        fleet.seen(site)
        return site.shell.shown


if __name__ == "__main__":
    typer.run(main)
