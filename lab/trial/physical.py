"""A channel that begins at a copy by the servers' own tools."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from binlane.model import Flavor
from lab.physical import back_up, clone, prepare, restore
from lab.servers import PrivateServer, private_server
from lab.trial.days import grant
from lab.trial.site import Site

_EVENT: Final = re.compile(r"ALTER DEFINER = 'app'@'%' EVENT `crm`\.`tidy` DISABLE ON (?:REPLICA|SLAVE)")
_OPTIONS: Final = ("--server-id=13", "--event-scheduler=OFF")


def begun(site: Site, folder: Path) -> None:
    """A third server is filled by CLONE or mariadb-backup while the source goes on writing. The channel stays behind,
    with a target that does not answer any more."""
    shell, flavor = site.shell, site.source.flavor
    with private_server(folder, flavor, _OPTIONS, name="warehouse", durable=False) as target:
        site.connect("warehouse_target", target)
        shell("binlane new warehouse --source shop_source --target warehouse_target")
        bootstrap = f"binlane bootstrap warehouse {_filled(site, target)}"
        # the accounts are the source's now
        grant(shell("binlane grants warehouse"), source=site.source, target=target)
        refused = shell(bootstrap, expected=1).says("crm.tidy")
        event = _EVENT.search(" ".join(refused.output.split()))
        assert event is not None, refused.output
        target.query(event[0])
        begun = shell(bootstrap).says("begins at", "watermark at seqno 0")
        shell.show("clone" if flavor is Flavor.MYSQL else "backup", refused, begun)
        shell("binlane run warehouse").says("seqno")
        shell("binlane verify warehouse --full").says("equal through seqno")


def _filled(site: Site, target: PrivateServer) -> str:
    """Copy the source; the option of ``binlane bootstrap``."""
    if target.flavor is Flavor.MYSQL:
        clone(site.source, target)
        return "--from-clone"
    folder = site.shell.folder / "backup"
    back_up(site.source, folder)
    prepare(folder)
    restore(folder, target)
    return "--from-backup backup"
