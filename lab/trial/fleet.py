"""Several channels from one template: found, verified and stopped by tag."""

from __future__ import annotations

from typing import Final

from lab.trial.site import Site

_TEMPLATE: Final = """\
tags = ["branches", "${region}"]

[instances]
branch_cork = { region = "eu" }
branch_delft = { region = "eu" }
branch_reno = { region = "us" }

[source]
connection = "shop_source"

[target]
connection = "shop_target"

[filter]
include_databases = ["${channel}"]

[filter.kinds]
accounts = "ignore"
"""
_BRANCHES: Final = ("branch_cork", "branch_delft", "branch_reno")


def several(site: Site) -> None:
    """Three channels beside the first one, whose filter leaves their databases out."""
    shell, folder = site.shell, site.shell.folder / "dags" / "channels"
    shop = (folder / "shop.toml").read_text("utf-8")
    (folder / "shop.toml").write_text(shop.replace('["mysql", "sys"]', '["mysql", "sys", "branch_*"]'), "utf-8")
    (folder / "branches.toml").write_text(_TEMPLATE, "utf-8")
    for name in _BRANCHES:
        site.on(
            "source",
            f"CREATE DATABASE {name}",
            f"CREATE TABLE {name}.sales (id INT PRIMARY KEY AUTO_INCREMENT, total INT NOT NULL)",
            f"INSERT INTO {name}.sales (total) VALUES (1), (2), (3)",
        )
    shell("binlane run shop").says("seqno")
    shell("binlane status --all").says("3 new")
    for name in _BRANCHES:
        copied = shell(f"binlane bootstrap {name}").says("watermark")
        site.on("source", f"INSERT INTO {name}.sales (total) VALUES (4)")
        shell.show("copy", copied, shell(f"binlane run {name}").says("seqno"))
    site.on("target", "UPDATE branch_delft.sales SET total = 99 WHERE id = 4")
    shell("binlane verify --tag eu", expected=1).says("branch_cork", "branch_delft.sales", "drift")
    shell("binlane stop --tag us").says("branch_reno")
    shell.show("find", shell("binlane find 'branch_*'").says("branch_cork", "branch_reno"))
    shell("binlane find '*delft*' --drifted").says("branch_delft")


def seen(site: Site) -> None:
    """All channels on one page: one drifted, one stopped, one whose target does not answer; then all is well again."""
    shell = site.shell
    fleet = shell("binlane status --all").says("5 channels", "1 unreachable", "1 drifted", "1 stopped")
    shell.show("fleet", fleet)
    shell("binlane find 'branch_*'", expected=1).says("branch_cork", "warehouse: not asked")
    shell("binlane resume --tag us").says("branch_reno")
    shell("binlane verify branch_delft --repair --yes").says("updated")
    shell("binlane verify --tag branches").says("branch_reno")
    shell("binlane status --tag branches").says("3 channels of 5, tag branches: 3 idle")
