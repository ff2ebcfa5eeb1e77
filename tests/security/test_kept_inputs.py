"""A window whose folder is lost takes no database and no code from the target's row of its plan's inputs.

Attacker: whoever can UPDATE the schema ``binlane`` on the target.
"""

from __future__ import annotations

import json
import zlib
from typing import Any, Final

import pytest

from binlane.errors import PlanError
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.servers.engines import engine_of
from binlane.state.carried.kept_inputs import KeptInputs
from binlane.work.files import WorkFolder, digest_of
from binlane.work.plan_job.job import InProcess, run_plan_job
from tests.integration.window.conftest import CHANNEL, Channel, run_on

NOW: Final = WindowRequest("now")
ATTACKS: Final[tuple[dict[str, Any], ...]] = (
    {"renames": [["shop", "hr"]]},
    {"renames": [["shop", "hr", "x"]]},
    {"filters": {"exclude_databases": ["shop"]}},
    {"collations": [["utf8mb4_bin", "utf8mb4_general_ci"]]},
    {"folds_names": True},
    {"assigner": "tests.security.test_kept_inputs:called"},
    {"consistency": "tests.security.test_kept_inputs:called"},
    {"epoch_seconds": 1},
    {"target": "mysql"},
    {"channel": "other"},
    {"window": "w1"},
)
"""On the channel.json of the row. A line more is an attack more."""
CALLS: Final[list[object]] = []


def called(*arguments: object) -> None:
    CALLS.append(arguments)


def _kept(channel: Channel, window: str) -> KeptInputs:
    with engine_of(channel.endpoints.target).connect() as connection:
        kept = KeptInputs.read(connection, CHANNEL, window)
    assert kept is not None
    return kept


def _store(channel: Channel, window: str, kept: KeptInputs) -> None:
    parts = (kept.manifest.to_json(), kept.channel, digest_of(kept.schema).encode())
    packed = zlib.compress(b"\0".join(parts))
    with channel.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE binlane.windows SET files = '{}' WHERE window_id = %s", (window,))
        cursor.execute("DELETE FROM binlane.kept_inputs WHERE part = 'window' AND chunk > 0")
        changed = cursor.execute(
            "UPDATE binlane.kept_inputs SET data = %s WHERE part = 'window' AND name = %s", (packed, window)
        )
    assert changed == 1


def test_no_database_and_no_code_comes_from_the_row(channel: Channel) -> None:
    run_on(channel.source, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
    channel.run()
    run_on(channel.target, "CREATE DATABASE hr", "CREATE TABLE hr.t (id INT PRIMARY KEY)", log=False)
    run_on(channel.source, "INSERT INTO shop.t VALUES (1)")
    extracted = steps.extract(channel.config, channel.endpoints, NOW)
    run_plan_job(WorkFolder(extracted["work"]), InProcess())
    steps.adopt_plan(channel.config, channel.endpoints, extracted["work"])
    window = extracted["window"]
    kept = _kept(channel, window)
    reached = list[object]()
    for attack in ATTACKS:
        settings = json.dumps({**json.loads(kept.channel), **attack}).encode()
        _store(channel, window, KeptInputs(kept.manifest, settings, kept.schema))
        try:
            again = steps.extract(channel.config, channel.endpoints, NOW)
            run_plan_job(WorkFolder(again["work"]), InProcess())
            reached.append(attack)
        except PlanError as exc:
            said = f"binlane.kept_inputs of channel {CHANNEL}, window {window}"
            if said not in str(exc):
                reached.append((attack, str(exc)))
    assert not reached
    assert not CALLS
    assert channel.target.query("SELECT COUNT(*) FROM hr.t") == [(0,)]
    _store(channel, window, kept)
    channel.run()
    run_on(channel.target, "DROP DATABASE hr", log=False)
    channel.assert_equal()


def test_a_renamed_database_is_that_of_the_channel_s_file(channel: Channel) -> None:
    """The file is changed while the window is open, and put back."""
    run_on(channel.source, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
    window = steps.extract(channel.config, channel.endpoints, NOW)
    run_plan_job(WorkFolder(window["work"]), InProcess())
    steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    channel.target.query("UPDATE binlane.windows SET files = '{}'")
    channel.write_channel('[rename]\nshop = "hr"')
    with pytest.raises(PlanError, match=r"\[rename\] or \[collations\] as .* put it back as it was, run, and change"):
        steps.extract(channel.config, channel.endpoints, NOW)
    channel.write_channel()
    channel.run()
    channel.assert_equal()
