"""A skipped transaction is kept on the target, and its replay changes rows of users' tables alone.

Attacker: whoever can write to the schema ``binlane`` on the target, and a user of the source who changes a routine
behind a statement of a transaction that was skipped. The operator replays it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from binlane.errors import DriftError
from binlane.model import Flavor
from binlane.orchestration import steps
from binlane.orchestration.plan_file import read_plan
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.integration.window.control.test_skip import items
from tests.integration.window.control.test_stop import apply_all, planned

_ROWS, _TEXT = "SET SESSION binlog_format = ROW", "SET SESSION binlog_format = STATEMENT"
_GRANT: Final = "INSERT INTO mysql.db (Host, Db, User) VALUES ('%', 'x', 'test_evil')"
_REVOKE: Final = "DELETE FROM mysql.db WHERE User = 'test_evil'"
MADE: Final = (
    "CREATE TABLE tenant_1.w (n INT)",
    "CREATE FUNCTION tenant_1.f() RETURNS INT DETERMINISTIC MODIFIES SQL DATA SQL SECURITY INVOKER "
    f"BEGIN {_GRANT}; RETURN 1; END",
    "CREATE SQL SECURITY INVOKER VIEW tenant_1.v AS SELECT tenant_1.f() AS n",
    "CREATE TABLE tenant_1.triggering (n INT)",
    "CREATE TRIGGER tenant_1.r BEFORE INSERT ON tenant_1.triggering FOR EACH ROW SET NEW.n = tenant_1.f()",
)
ATTACKS: Final[Mapping[str, tuple[Sequence[str], str]]] = {
    "rows of the server's grants": ((_ROWS, _GRANT), "a change of mysql.db"),
    "a statement on the server's grants": ((_TEXT, _GRANT), "a statement that changes the server's own tables"),
    "a function of its invoker": ((_TEXT, "INSERT INTO tenant_1.w VALUES (tenant_1.f())"), "calls a routine"),
    "a function without a database": (
        (_TEXT, "USE tenant_1", "INSERT INTO w VALUES (f())"), "calls a routine"
    ),
    "a view of its invoker": (
        (_TEXT, "INSERT INTO tenant_1.w SELECT n FROM tenant_1.v"), "a statement on tenant_1.v, which is a view"
    ),
    "a trigger": ((_TEXT, "INSERT INTO tenant_1.triggering VALUES (1)"), "triggering, which is a view or has triggers"),
}  # fmt: skip
"""What the transaction is that stands in place of the skipped one, and what is said of it. A line more is an attack
more."""
HARMLESS: Final = ((_ROWS, "INSERT INTO tenant_1.w VALUES (1)"), (_TEXT, "INSERT INTO tenant_1.w SELECT 1 + 1"))


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_replay_changes_rows_of_users_alone(
    family: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(family, family)
    seqno = _skipped(channel)
    for server in (channel.source, channel.target):
        run_on(server, *MADE, log=False)
    try:
        for name, (statements, said) in ATTACKS.items():
            _record(channel, _log_of(channel.source, *statements))
            run_on(channel.source, _REVOKE, log=False)
            assert channel.cli("replay-skipped", CHANNEL, str(seqno)) == 1, name
            assert said in " ".join(capsys.readouterr().err.split()), name
            assert channel.target.query("SELECT User FROM mysql.db WHERE User = 'test_evil'") == [], name
        for statements in HARMLESS:
            _record(channel, _log_of(channel.source, *statements))
            assert channel.cli("replay-skipped", CHANNEL, str(seqno), "--yes") == 0, capsys.readouterr().err
        assert channel.target.query("SELECT n FROM tenant_1.w ORDER BY n") == [(1,), (2,)]
    finally:
        for server in (channel.source, channel.target):
            run_on(server, _REVOKE, log=False)


def _skipped(channel: Channel) -> int:
    """The seqno of a transaction that was skipped in a finished window."""
    items(channel)
    adopted = planned(channel)
    with pytest.raises(DriftError):
        apply_all(channel, adopted)
    seqno = read_plan(adopted["plan"]).first_seqno + 6
    assert channel.cli("skip", CHANNEL, "--seqno", str(seqno), "--reason", "x") == 0
    apply_all(channel, adopted)
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    return seqno


def _log_of(server: PrivateServer, *statements: str) -> bytes:
    """The log's head, and what the server logs of the statements."""
    status = "SHOW BINARY LOG STATUS" if server.flavor is Flavor.MYSQL else "SHOW MASTER STATUS"
    [(file, offset, *_)] = server.query(status)
    run_on(server, *statements)
    log: bytes = (server.datadir / file).read_bytes()
    [size] = struct.unpack_from("<I", log, 4 + 9)
    return log[: 4 + size] + log[int(offset) :]


def _record(channel: Channel, log: bytes) -> None:
    """UPDATE by whoever can write to the schema."""
    with channel.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE binlane.skipped_events SET data = %s", (log,))
        digest = hashlib.sha256(log).hexdigest()
        cursor.execute("UPDATE binlane.skips SET sha256 = %s, state = 'skipped'", (digest,))
