"""MySQL's expression for a JSON column and the text of a decoded document agree on which values are no JSON."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable
from contextlib import closing
from typing import Final

import pytest

from binlane.binlog.types.json_binary import Json, JsonObject, Opaque, json_text
from binlane.binlog.types.json_sql import expression
from binlane.binlog.types.json_typed import spelled_with_types, typed_json
from binlane.binlog.types.type_codes import ColumnType
from lab.servers import PrivateServer
from tests.integration.window.conftest import clean_servers, run_on

__all__ = ["clean_servers"]

EXAMPLES: Final = 200 * int(os.environ.get("BINLANE_EXAMPLES", "1"))
DAY: Final = Opaque(ColumnType.DATETIME, struct.pack("<q", ((2026 * 13 + 5) << 5 | 6) << 41))
LEAVES: Final[tuple[Json, ...]] = (
    *(None, True, 1, -7, 1.5, "", "2026-05-06", json_text(DAY)[1:-1], "base64:type15:AP8="),
    *(DAY, DAY, Opaque(ColumnType.VARCHAR, b"\0\xff"), Opaque(ColumnType.NEWDECIMAL, b"\2\1\x81\5")),
)


def document(draw: random.Random, depth: int) -> Json:
    kind = draw.randrange(3) if depth else 0
    if kind == 0:
        return draw.choice(LEAVES)
    values = [document(draw, depth - 1) for _ in range(draw.randint(0, 3))]
    if kind == 1:
        return values
    # as MySQL orders them: shorter names first
    names = sorted(draw.sample(("a", "b", "aa", "ab", "$", "x.y", ""), len(values)), key=lambda name: (len(name), name))
    return JsonObject(tuple(zip(names, values, strict=True)))


@pytest.mark.parametrize("column", ["v", "n", "each_value", "a`b"])
def test_the_server_and_the_decoded_document_have_one_text(
    column: str, mysql_target: PrivateServer, clean_servers: Callable[[PrivateServer], None]
) -> None:
    clean_servers(mysql_target)
    draw, name = random.Random(column), column.replace("`", "``")
    documents = [document(draw, 4) for _ in range(EXAMPLES)]
    run_on(mysql_target, "CREATE DATABASE app", f"CREATE TABLE app.t (id INT PRIMARY KEY, `{name}` JSON)")
    with closing(mysql_target.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION time_zone = '+00:00'")
        for number, each in enumerate(documents):
            cursor.execute(f"INSERT INTO app.t VALUES ({number}, {expression(each)})")
        cursor.execute(f"SELECT {typed_json(column)} FROM app.t ORDER BY id")
        found = [row[0] if isinstance(row[0], str) else row[0].decode() for row in cursor.fetchall()]
    assert found == list(map(spelled_with_types, documents))
    typed = [text for text in found if "+" in text]
    assert EXAMPLES / 5 < len(typed) < EXAMPLES
