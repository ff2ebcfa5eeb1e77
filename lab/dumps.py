"""The servers' own dump programs, with the lab's account."""

from __future__ import annotations

from binlane.model import Flavor
from lab.servers import PrivateServer


def dump_command(server: PrivateServer) -> list[str]:
    """A dump program of the server's family."""
    family = ["--set-gtid-purged=OFF"] if server.flavor is Flavor.MYSQL else []
    account = [
        f"--host={server.host}",
        f"--port={server.port}",
        f"--user={server.user}",
        f"--password={server.password}",
    ]
    return [str(server.tool("dump")), "--no-defaults", *account, *family]
