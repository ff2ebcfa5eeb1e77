"""Rows that a read by ranges of the key would miss: of prefix keys under Unicode's collations, and in partitions where
they do not belong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

import pytest

from binlane.model import Flavor
from binlane.orchestration.commands.verify import verify_channel
from binlane.verify.outcome import Options
from binlane.verify.rows import pairing
from binlane.verify.rows.column_text import ComparedTable
from lab.servers import PrivateServer
from tests.integration.bootstrap.conftest import clean_servers, either
from tests.integration.verify.key_ranges import LETTERS, check, copy_and_verify, inserted
from tests.integration.window.conftest import Channel, run_on

__all__ = ["clean_servers", "either"]

TABLES: Final = {"pairs": "n % 7 = 0", "one": "n % 11 = 0"}
"""With a condition for the rows that drift."""
EXPANDING: Final = {Flavor.MARIADB: "utf8mb4_unicode_ci", Flavor.MYSQL: "utf8mb4_0900_ai_ci"}


@pytest.fixture
def begun(
    request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]
) -> Callable[[str], Channel]:
    """Makes a channel before its first copy, of MySQL or of a series of MariaDB."""

    def server(version: str, part: str) -> PrivateServer:
        if version == Flavor.MYSQL:
            return cast(PrivateServer, request.getfixturevalue(f"mysql_{part}"))
        return cast(PrivateServer, request.getfixturevalue("server_of")(version, part))

    def make(version: str) -> Channel:
        servers = server(version, "source"), server(version, "target")
        for each in servers:
            clean_servers(each)
        return Channel(*servers, tmp_path)

    return make


def test_rows_of_a_prefix_key_whose_collation_expands_letters(either: Channel) -> None:
    prefix_keys(either)
    check(either, TABLES)


def test_ranges_that_were_not_what_they_are_taken_for_would_be_noticed(
    either: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ComparedTable, "has_ranges", property(lambda table: bool(table.key)))
    prefix_keys(either)
    copy_and_verify(either, TABLES)


def test_rows_that_the_servers_order_otherwise_are_equal_where_their_keys_show_equal_rows(
    either: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an order that neither types nor collations show. The ends of the ranges follow each other in both orders, so
    that the ranges have each row once."""
    monkeypatch.setattr(pairing, "_ordered_by", lambda table: [])
    monkeypatch.setattr(pairing, "compare", lambda *tables: ())
    rows = "INSERT INTO app.t VALUES ('a', 1), ('B', 1), ('c', 1), ('D', 1), ('e', 1), ('F', 1), ('g', 1)"
    for server, collation in ((either.source, "ascii_bin"), (either.target, "ascii_general_ci")):
        table = f"CREATE TABLE app.t (k VARCHAR(9) CHARACTER SET ascii COLLATE {collation} PRIMARY KEY, n INT)"
        run_on(server, "CREATE DATABASE app", table, rows, log=False)
    either.init()

    def differing() -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        outcome = verify_channel(either.config, either.endpoints, Options(full=True, chunk_rows=2))
        return sorted((one.key, one.columns) for one in outcome.suspects if one.key != ("table",))

    assert differing() == []
    run_on(either.target, "DELETE FROM app.t WHERE k = 'c'", "UPDATE app.t SET n = 2 WHERE k = 'B'", log=False)
    assert differing() == [(("42",), ("n",)), (("63",), ())]  # B and c


def prefix_keys(either: Channel) -> None:
    """``TABLES`` on the source."""
    collation = EXPANDING[Flavor(either.source.flavor)]
    numbered = [(f"'{text}'", str(n)) for n in range(2) for text in LETTERS]
    run_on(
        either.source,
        "CREATE DATABASE app CHARACTER SET utf8mb4",
        f"CREATE TABLE app.pairs (k VARCHAR(300) COLLATE {collation}, n INT, PRIMARY KEY (k(3), n))",
        f"CREATE TABLE app.one (n INT, k TEXT COLLATE {collation}, PRIMARY KEY (n, k(4)))",
        *inserted("app.pairs", [(text, str(at)) for at, (text, _) in enumerate(numbered)]),
        *inserted("app.one", [(str(at), text) for at, (text, _) in enumerate(numbered)]),
    )


@pytest.mark.parametrize("version", [Flavor.MYSQL.value, "11.8"])
def test_rows_of_partitions_in_which_they_do_not_belong(version: str, begun: Callable[[str], Channel]) -> None:
    channel = begun(version)
    rows = [(str(n), "'x'") for n in range(300)]
    run_on(
        channel.source,
        "CREATE DATABASE app",
        "CREATE TABLE app.parts (id INT PRIMARY KEY, note VARCHAR(20)) PARTITION BY RANGE (id) "
        "(PARTITION p0 VALUES LESS THAN (100), PARTITION p1 VALUES LESS THAN (200), PARTITION p2 VALUES LESS THAN "
        "MAXVALUE)",
        *inserted("app.parts", rows),
        "CREATE TABLE app.other (id INT PRIMARY KEY, note VARCHAR(20))",
        "INSERT INTO app.other VALUES (1001, 'outside'), (1002, 'outside'), (103, 'inside')",
        "DELETE FROM app.parts WHERE id BETWEEN 100 AND 199",
        "ALTER TABLE app.parts EXCHANGE PARTITION p1 WITH TABLE app.other WITHOUT VALIDATION",
        "DROP TABLE app.other",
    )
    assert channel.source.query("SELECT COUNT(*) FROM app.parts") == [(203,)]
    check(channel, {"parts": "id = 250 OR id = 1001"}, outside=("parts",))
