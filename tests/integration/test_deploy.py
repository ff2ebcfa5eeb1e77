"""The account scripts of docker-compose.yml, on a real MySQL server: a channel can be begun with what they grant."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from lab.servers import PrivateServer

DEPLOY = Path(__file__).parents[2] / "deploy" / "mysql"
PASSWORD = "it's \"the composed\\ site's\""


@pytest.mark.parametrize("role", ["source", "target"])
def test_the_image_makes_the_account(role: str, tmp_path: Path, mysql_target: PrivateServer) -> None:
    before = mysql_target.query("SELECT @@GLOBAL.gtid_executed")
    try:
        _run(DEPLOY / f"{role}.sh", mysql_target, tmp_path)
        connection = mysql_target.connect(user="composed", password=PASSWORD)
        with connection, connection.cursor() as cursor:
            cursor.execute("SHOW GRANTS")
            granted = " ".join(str(row[0]) for row in cursor.fetchall())
        for privilege in ("SELECT", "TRIGGER", "EVENT", "EXECUTE"):
            assert privilege in granted
        assert ("REPLICATION SLAVE" in granted) == (role == "source")
        assert ("BINLOG_ADMIN" in granted) == (role == "target")
        assert "CREATE USER" not in granted
        assert "GRANT OPTION" not in granted
        assert mysql_target.query("SELECT @@GLOBAL.gtid_executed") == before, "the account is in the server's own log"
    finally:
        mysql_target.query("DROP USER IF EXISTS 'composed'@'%'")


def _run(script: Path, server: PrivateServer, folder: Path) -> None:
    """As the image does: sourced by bash, with the client `mysql` on its PATH; here the client finds this server."""
    client = folder / "mysql"
    client.write_text(f'#!/bin/sh\nexec "{server.tool("client")}" --no-defaults --socket="{server.socket}" "$@"\n')
    client.chmod(client.stat().st_mode | stat.S_IXUSR)
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}", "MYSQL_ROOT_PASSWORD": server.password, "BINLANE_PASSWORD": PASSWORD,
        "BINLANE_ACCOUNT": str(folder / "account.sh"),
    }  # fmt: skip

    def changed(file: Path) -> str:
        # the private server has an account of that name: its own
        text = file.read_text("utf-8").replace("--user=root", f"--user={server.user}")
        return text.replace("'binlane'@", "'composed'@")

    (folder / "account.sh").write_text(changed(DEPLOY / "account.sh"))
    command = ["bash", "-ec", changed(script)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
