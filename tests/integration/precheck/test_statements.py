"""Loadable functions of the window, held against those that the target has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lab.servers import PrivateServer
from tests.integration.precheck.helpers import asked, run
from tests.integration.precheck.test_grants import logged
from tests.unit.precheck.situations import said, situation

MAKE = "CREATE FUNCTION {} RETURNS {} SONAME '{}'"

CASES: Sequence[tuple[tuple[str, ...], str | None]] = [
    ((MAKE.format("libraries_new", "INT", "libraries.so"),), None),
    ((MAKE.format("libraries_new", "INT", "unknown.so"),), "no function of it; copy the library into "),
    ((MAKE.format("LIBRARIES_F", "INTEGER", "libraries.so"),), None),
    ((MAKE.format("libraries_f", "STRING", "libraries.so"),), "DROP FUNCTION libraries_f on the target"),
    ((MAKE.format("libraries_f", "INT", "unknown.so"),), "no function of it"),
    ((MAKE.format("libraries_g", "INT", "libraries.so"),), "DROP FUNCTION libraries_g on the target"),
    (("DROP FUNCTION libraries_f", MAKE.format("libraries_f", "STRING", "libraries.so")), None),
    (
        ("DROP FUNCTION IF EXISTS other.libraries_f", MAKE.format("`libraries_f`", "REAL", "libraries.so")),
        "on the target",
    ),
    (("CREATE FUNCTION f() RETURNS INT RETURN 1", "DROP FUNCTION f", "DROP FUNCTION"), None),
]


def test_a_library_is_known_by_the_functions_that_the_target_has_of_it(server: PrivateServer) -> None:
    # a row alone: the server looks at the table when it starts
    rows = "('libraries_f', 2, 'libraries.so', 'function'), ('libraries_g', 2, 'other.so', 'function')"
    run(server, "SET SESSION sql_log_bin = 0", f"INSERT INTO mysql.func VALUES {rows}")
    different = {}
    try:
        with asked(server) as target:
            for statements, expected in CASES:
                texts = [replace(logged(each, server.flavor), seqno=5 + at) for at, each in enumerate(statements)]
                found = said(situation(target, texts=texts), "libraries")
                if len(found) != (expected is not None) or any(expected not in one for one in found if expected):
                    different[statements] = found
    finally:
        run(server, "SET SESSION sql_log_bin = 0", "DELETE FROM mysql.func WHERE name LIKE 'libraries%'")
    assert different == {}
