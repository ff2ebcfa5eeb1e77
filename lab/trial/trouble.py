"""Drift, a stop, a window that fails: found, shown everywhere, and mended as the output says."""

from __future__ import annotations

from lab.trial import board
from lab.trial.site import Site


def drifted(site: Site) -> None:
    """Rows and definitions of the target that somebody has changed, also of a table without a key that the source goes
    on filling: found, shown everywhere, repaired or copied again."""
    shell = site.shell
    site.on(
        "target",
        "UPDATE tenant_003.customers SET balance = balance + 1, note = 'mine' ORDER BY id LIMIT 3",
        "DELETE FROM crm.archive ORDER BY id LIMIT 2",
        "UPDATE crm.archive SET body = 'mine' ORDER BY id DESC LIMIT 1",
        "DELETE FROM crm.visits WHERE page = 'start' AND visitor < 5",
        "DROP INDEX by_title ON crm.articles",
        "ALTER TABLE crm.articles ALTER COLUMN stock SET DEFAULT 7",
        "CREATE OR REPLACE VIEW crm.in_stock AS SELECT id FROM crm.articles",
    )
    # some rows were compared before somebody changed them, in a slice
    found = shell("binlane verify shop --full --anew", expected=1).says(
        "drift",
        "tenant_003.customers",
        "crm.archive, primary key id=1",
        "by_title",
        "crm.visits: missing on the target",
    )
    shell.show("drift", found)
    shell("binlane run shop").says("seqno")
    shell.show("check-drifted", shell("binlane check shop", expected=2).says("drifted"))
    status = shell("binlane status shop").says("drifted", "binlane verify shop --repair")
    shell.show("status-drifted", status)
    shell("binlane status --all").says("1 drifted")
    board.shows(site, "shop", "drifted")
    shell.show("metrics", board.metrics(site, "shop"))
    plan = shell("binlane verify shop --full --repair", expected=1, answer="n").says("nothing was repaired")
    shell.show("repair-plan", plan)
    command = "binlane recopy shop --table crm.visits"
    repaired = shell("binlane verify shop --full --repair --yes", expected=1).says("still drifted", f"`{command}`")
    shell.show("repair", repaired, only=("^\\$", "^channel shop: .* inserted", "^still drifted", "^  .*not repaired"))
    shell.show("recopy", shell(command, answer="y").says("equal on both servers"))
    shell("binlane verify shop --full").says("equal through seqno")
    shell("binlane check shop").says("BINLANE OK")
    board.shows(site, "shop", "idle")
    board.lists_repairs(site, "shop", 2)


def stopped(site: Site) -> None:
    """Some tables verified alone; a stop, a run that is refused, and a resume."""
    shell = site.shell
    shell("binlane verify shop --full --shard tenant_003").says("equal through seqno", "clean")
    shell("binlane verify shop --full --table crm.articles --database 'tenant_00*'").says("equal through seqno")
    stop = shell("binlane stop shop")
    run = shell("binlane run shop", expected=1).says("StopRequestedError")
    shell.show("stop", stop, run)
    shell("binlane check shop", expected=1).says("stopped")
    shell("binlane status shop").says("stopped", "binlane resume shop")
    board.shows(site, "shop", "stopped")
    shell("binlane resume shop")
    shell("binlane run shop").says("seqno")


def failed(site: Site) -> None:
    """A row of the target that is in the way of a window: failed on every page until the window is finished."""
    shell = site.shell
    [(number,)] = site.source.query("SELECT MAX(id) + 1 FROM crm.changes")
    site.on("target", f"INSERT INTO crm.changes VALUES ({number}, 1, 1)")
    run = shell("binlane run shop", expected=1).says("DriftError", "crm.changes", "1062")
    check = shell("binlane check shop", expected=2).says("BINLANE CRITICAL: shop: failed")
    shell.show("failed", run, check)
    shell("binlane status shop").says("failed", "1062")
    board.shows(site, "shop", "failed")
    site.on("target", f"DELETE FROM crm.changes WHERE id = {number}")
    shell("binlane run shop").says("seqno")
    shell("binlane status shop").says("idle")
    board.shows(site, "shop", "idle")
