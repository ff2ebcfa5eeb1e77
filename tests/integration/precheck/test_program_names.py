"""Names of routines are folded as the servers compare them."""

from __future__ import annotations

from typing import Final

from binlane.sql.program_names import folded_name
from lab.servers import PrivateServer

LETTERS: Final = [code for code in range(1, 0x10000) if not 0xD800 <= code <= 0xDFFF]
BATCH: Final = 800


def test_each_letter_is_folded_as_the_server_compares_it(server: PrivateServer) -> None:
    weight = "HEX(WEIGHT_STRING(CONVERT(_ucs2 x'{:04x}' USING utf8mb3) COLLATE utf8mb3_general_ci))"
    wrong = []
    for begin in range(0, len(LETTERS), BATCH):
        batch = LETTERS[begin : begin + BATCH]
        ((*weights,),) = server.query(f"SELECT {', '.join(map(weight.format, batch))}")
        for code, found in zip(batch, weights, strict=True):
            letter = chr(int(found, 16))
            if folded_name(chr(code)) != (letter.lower() if letter.isascii() else letter):
                wrong.append(hex(code))
    assert wrong == []


def test_a_routine_is_called_by_another_spelling(server: PrivateServer) -> None:
    server.query("CREATE DATABASE IF NOT EXISTS test_names")
    try:
        server.query("CREATE PROCEDURE test_names.evil() SELECT 7")
        for spelling in ("EVIL", "\u00e9vil", "ev\u00ccl"):
            assert server.query(f"CALL test_names.`{spelling}`()") == [(7,)]
            assert folded_name(spelling) == "evil"
    finally:
        server.query("DROP DATABASE test_names")
