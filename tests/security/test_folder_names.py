"""MariaDB finds `x` under the name `#mysql50#x`, too: no door of binlane takes such a name, whoever gives it.

Attacker: a user of the source, whoever runs the plan job, whoever names a restore. (Statements and default databases:
``test_lying_events``; replays: ``unit/apply/lane/test_replayed_items.py``; dumps: ``test_dump_statements``.)
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from binlane.errors import BinlaneError, PlanError
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from tests.integration.restore.scene import scene_of
from tests.integration.window.conftest import Channel, run_on
from tests.security.test_lane_files import edited

_TENANT: Final = "tenant_123456"
_HIDDEN: Final = "#mysql50#hide"
assert len(_TENANT) == len(_HIDDEN)
_FILTER: Final = '[filter]\nexclude_databases = ["hide"]\n'


def test_mariadb_takes_the_two_names_for_one(channel: Channel) -> None:
    """Why the tests below are needed; the names are written into the log as they were given."""
    source = channel.source
    run_on(
        source, "CREATE DATABASE hide", "CREATE TABLE hide.t (id INT PRIMARY KEY)", "CREATE TABLE hide.fired (n INT)"
    )
    run_on(source, "CREATE TRIGGER hide.r AFTER INSERT ON hide.t FOR EACH ROW INSERT INTO hide.fired VALUES (NEW.id)")
    [(file, offset, *_)] = source.query("SHOW MASTER STATUS")
    run_on(source, "INSERT INTO hide.`#mysql50#t` VALUES (1)", "INSERT INTO `#mysql50#hide`.t VALUES (2)")
    assert source.query("SELECT id FROM hide.t ORDER BY id") == [(1,), (2,)]
    assert source.query("SELECT n FROM hide.fired ORDER BY n") == [(1,), (2,)]
    log = (source.datadir / file).read_bytes()[int(offset) :]
    assert b"\x0d#mysql50#hide\0\x01t\0" in log
    assert b"\x04hide\0\x0a#mysql50#t\0" in log
    run_on(source, "FLUSH TABLES", "DROP DATABASE `#mysql50#hide`")
    assert source.query("SHOW DATABASES LIKE 'hide'") == []


@pytest.mark.parametrize("name", ["`#mysql50#hide`.t", "tenant_123456.`#mysql50#secret`"])
def test_rows_of_a_user_under_such_a_name_end_the_window(name: str, channel: Channel) -> None:
    channel.write_channel(_FILTER + 'exclude_tables = ["tenant_123456.secret"]\n')
    channel.on_both("CREATE DATABASE hide", "CREATE TABLE hide.t (id INT PRIMARY KEY)", f"CREATE DATABASE {_TENANT}")
    channel.on_both(f"CREATE TABLE {_TENANT}.secret (id INT PRIMARY KEY)")
    run_on(channel.source, f"INSERT INTO {name} VALUES (1)")

    with pytest.raises(BinlaneError, match=r"TABLE_MAP: rows under '#mysql50#\w+'"):
        channel.run()

    assert channel.target.query(f"SELECT * FROM hide.t UNION SELECT * FROM {_TENANT}.secret") == []
    # the server keeps the table open under the other name, and drops no database of which one is open (1205)
    run_on(channel.source, "FLUSH TABLES")


def test_rows_of_a_lane_file_under_such_a_name_are_not_sent(channel: Channel) -> None:
    channel.write_channel(_FILTER)
    for database in (_TENANT, "hide"):
        channel.on_both(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
    run_on(channel.source, f"INSERT INTO {_TENANT}.t VALUES (1)")
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    folder = WorkFolder(window["work"])
    run_plan_job(folder, InProcess())

    def hidden(kinds: list[Any], payloads: list[Any]) -> bool:
        for at, kind in enumerate(kinds):
            if kind == "rows":
                payloads[at] = payloads[at].replace(_TENANT.encode(), _HIDDEN.encode())
        return "rows" in kinds

    edited(folder, hidden)
    adopted = steps.adopt_plan(channel.config, channel.endpoints, folder.uri)

    with pytest.raises(PlanError, match=r"rows under '#mysql50#hide'.*it was not sent"):
        steps.apply_lane(channel.config, channel.endpoints, adopted["plan"], adopted["lanes"][0]["lane"])

    assert channel.target.query("SELECT * FROM hide.t") == []


def test_no_restore_drops_a_database_by_such_a_name(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    scene = scene_of(channel)
    run_on(channel.target, "CREATE DATABASE back_unfinished", "CREATE TABLE back_unfinished.t (a INT)")
    command = [*scene.command("one.sql")]
    command[command.index("--as") + 1] = "#mysql50#back"

    assert channel.cli(*command, "r1", "--yes") != 0

    assert "begins with #mysql50#" in capsys.readouterr().err
    assert channel.target.query("SELECT * FROM back_unfinished.t") == []
