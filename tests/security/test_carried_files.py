"""``binlane.prepared`` keeps XA transactions as files; where such a file is written is not for it to say.

Attacker: whoever can UPDATE the schema ``binlane`` on the target. The bytes of the file are theirs already, so with its
place they could write any file of the worker.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from binlane.errors import StateSchemaError
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, run_on
from tests.integration.window.xa.test_xa import end, insert, prepare
from tests.security.witness import Witness

NAMES: Final[tuple[Callable[[Path], str], ...]] = (
    lambda outside: str(outside / "x"),
    lambda outside: f"../../../{outside.name}/x",
    lambda outside: f"carried/../../../../{outside.name}/x",
    lambda _: "manifest.json",
    lambda _: "carried/000000000009.binlog",
    lambda _: "",
    lambda _: ".",
    lambda outside: f"file://{outside}/x",
)
"""Names of the file, by a folder outside of the work folder. A line more is an attack more."""


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_prepared_transaction_is_written_to_its_own_file_alone(
    channel_of: ChannelOf, family: str, witness: Witness
) -> None:
    channel: Channel = channel_of(family, family)
    run_on(channel.source, "CREATE DATABASE tenant_1")
    run_on(channel.source, "CREATE TABLE tenant_1.t (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT)")
    prepare(channel, "'x'", insert(1))
    assert channel.run() is not None
    end(channel, "XA COMMIT 'x'")
    [(text,)] = channel.target.query("SELECT segment FROM binlane.prepared")

    for name in NAMES:
        record(channel, json.dumps({**json.loads(text), "name": name(witness.folder)}))
        with pytest.raises(StateSchemaError, match=r"binlane\.prepared\.segment of XA transaction .*carried/0"):
            channel.run()
        witness.assert_untouched()

    record(channel, text)
    assert channel.run() is not None
    channel.assert_equal()


def record(channel: Channel, segment: str) -> None:
    with channel.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        assert cursor.execute("UPDATE binlane.prepared SET segment = %s", (segment,)) == 1
