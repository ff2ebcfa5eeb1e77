"""The first days: from an empty folder to verified windows, and what each command has to answer."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import time
from typing import Final

import pymysql

from binlane.model import Flavor
from lab.servers import PrivateServer
from lab.trial.shell import Done, TrialError
from lab.trial.site import Site, Size

_MENDS: Final = re.compile(r"^\s*(\S.*?);  -- on the (source|target)$", re.MULTILINE)
_PENDING: Final = re.compile(r"^[\d,]+ pending since ([\d :-]+) UTC", re.MULTILINE)
_HEAD: Final = re.compile(r"^-- (source|target): ", re.MULTILINE)


_ANNOUNCE: Final = """
[announce]
command = ["dd", "of=watermarks", "oflag=append", "conv=notrunc", "status=none"]
"""
_REACHED: Final = "SELECT 1 FROM binlane.bootstrap_objects WHERE object_name = 'archive' AND reached_rows > 10000"
_BETWEEN: Final = 10
"""Seconds of traffic behind a dump, from which a drill takes its moments."""
_OF_DOCTOR: Final = ("^ok    (source|target)-(airflow-)?connection", "^      ", "^channel")


def ready(site: Site) -> None:
    """A channel file, accounts with the printed grants, and a doctor that finds nothing more."""
    shell = site.shell
    made = shell("binlane new shop --source shop_source --target shop_target").says("export AIRFLOW_CONN_SHOP_SOURCE=")
    with (shell.folder / "dags" / "channels" / "shop.toml").open("a") as file:
        file.write(_ANNOUNCE)
    before = shell("binlane grants shop --users").says("CREATE USER")
    site.create_accounts()
    bare = shell("binlane doctor shop --users", expected=1).says("FAIL source-privileges", "GRANT REPLICATION")
    shell.show("doctor-bare", bare, only=("^FAIL", "^note  others", "^      GRANT", "^channel"))
    servers = {"source": site.source, "target": site.target}
    grant(before, **servers)
    # definers and accounts of the source can be read only now
    after = shell("binlane grants shop --users")
    grant(after, **servers)
    shell.show("grants", after)
    found = shell("binlane doctor shop --users", expected=1).says(
        "function crm.twice", "log_bin_trust_function_creators"
    )
    shell.show("doctor-not-ready", found, only=(*_OF_DOCTOR, "^FAIL", "^note"))
    refused = shell("binlane bootstrap shop --users", expected=1)
    shell.show("bootstrap-refused", refused.says("not ready", "crm.twice", "nothing was written"))
    for statement, part in _MENDS.findall(found.output):
        site.on(part, statement)
    well = shell("binlane doctor shop --users").says("channel shop: ready")
    shell.show("new", made)
    shell.show("doctor", well, only=(*_OF_DOCTOR, "^note"))


def copied(site: Site) -> None:
    """A first copy that is killed inside the largest table, and resumed."""
    shell = site.shell

    def is_inside_the_largest() -> bool:
        with contextlib.suppress(pymysql.Error):
            return site.target.query(_REACHED) != []
        return False

    shell("binlane check shop", expected=3).says("UNKNOWN: shop: new")
    shell.kill_when("binlane bootstrap shop --users --chunk-rows 5000", is_inside_the_largest)
    status = shell("binlane status shop").says("interrupted", "crm.archive")
    shell.show("copy-interrupted", status)
    done = shell("binlane bootstrap shop --users --chunk-rows 5000").says(
        "continued from an earlier attempt", "watermark"
    )
    shell.show("copy-resumed", done)
    shell("binlane bootstrap shop --users", expected=1)
    shell("binlane status shop").says("idle")


def windows(site: Site, size: Size) -> None:
    """Windows in a loop, each verified: no row is pending for more than three of them."""
    shell, began = site.shell, list[str]()
    shell("binlane init shop").says("watermark")
    shell.show("plan", shell("binlane plan shop").says("precheck: passed"))
    shell.kill_when("binlane run shop", lambda: _is_planned(site))
    shell.show("progress", shell("binlane status shop").says("unfinished"))
    for number in range(size.windows):
        began.append(str(site.target.query("SELECT UTC_TIMESTAMP()")[0][0]))
        ran = shell("binlane run shop").says("seqno")
        verified = shell("binlane verify shop").says("equal through seqno")
        oldest = _PENDING.search(verified.output)
        if oldest is not None and number >= 3 and oldest[1] < began[number - 3]:
            raise TrialError(f"{verified.output}\nexpected every row settled within three windows")
        if number == size.windows - 1:
            shell.show("run", ran)
            shell.show("window", verified)
    announced = [json.loads(line) for line in (shell.folder / "watermarks").read_text("utf-8").splitlines()]
    if [one["channel"] for one in announced] != ["shop"] * size.windows:
        raise TrialError(f"[announce]: expected {size.windows} watermarks of shop, found {announced}")
    whole = shell("binlane verify shop --full").says("equal through seqno")
    shell.show("full", whole)
    well = shell("binlane check shop --max-lag 2h --max-unverified 7d").says("BINLANE OK")
    late = shell("binlane check shop --max-lag 1s", expected=2).says("BINLANE CRITICAL", "behind")
    shell.show("check", well, late)
    shell.show("status", shell("binlane status shop").says("idle"))
    shell.show("follow", shell("binlane follow shop --for 5s").says("committed on the source"))
    part = shell("binlane verify shop --full --for 1s --rows-per-second 20000").says(
        "not finished", "the next full verification continues"
    )
    shell.show("slice", part)
    shell.show("slice-status", shell("binlane status shop").says("full round"), only=("^\\$", "verified", "full round"))


def drilled(site: Site) -> None:
    """Random tenants restored from a dump and an archive of the log, beside the running channel."""
    shell, source = site.shell, site.source
    folder = shell.folder / "backup"
    (folder / "binlog").mkdir(parents=True)
    is_mysql = source.flavor is Flavor.MYSQL
    place = ["--source-data=2"] if is_mysql else ["--master-data=2", "--gtid"]
    tenants = [name for (name,) in source.query("SHOW DATABASES") if name.startswith("tenant_")]
    account = [f"--host={source.host}", f"--port={source.port}", f"--user={source.user}"]
    command = [str(source.tool("dump")), "--no-defaults", *account, f"--password={source.password}", *place]
    command += ["--single-transaction", "--routines", "--events", "--databases", *tenants]
    (folder / "tenants.sql").write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
    time.sleep(_BETWEEN)
    shell("binlane run shop")
    site.on("source", "FLUSH BINARY LOGS")
    for file in sorted(source.datadir.glob("binlog.[0-9]*"))[:-1]:
        shutil.copy(file, folder / "binlog")
    done = shell("binlane drill shop --tenants 3 --seed 5 --from backup/tenants.sql --log backup/binlog/")
    shell.show("drill", done.says("equal: 3 of 3 restored databases"), only=("^\\$", "^ *[┏┃┡│└]", "^channel", "again"))
    shell("binlane drill shop --list").says("3 of 3 equal")
    [largest] = sorted((folder / "binlog").iterdir(), key=lambda file: file.stat().st_size)[-1:]
    data = bytearray(largest.read_bytes())
    data[len(data) // 2] ^= 1
    largest.write_bytes(data)
    bad = shell("binlane drill shop --from backup/tenants.sql --log backup/binlog/", expected=1)
    shell.show("drill-failed", bad.says("fault of the archive", largest.name))


def grant(printed: Done, **servers: PrivateServer) -> None:
    """Run the GRANT statements that ``binlane grants`` has printed for each of its two servers."""
    parts = _HEAD.split(printed.output)
    for part, text in zip(parts[1::2], parts[2::2], strict=True):
        for line in text.splitlines():
            if line.startswith("GRANT "):
                servers[part].query(line.split(";  -- ")[0])


def _is_planned(site: Site) -> bool:
    return site.target.query("SELECT 1 FROM binlane.windows WHERE state = 'open' AND plan_digest IS NOT NULL") != []
