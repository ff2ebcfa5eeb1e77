"""The check ``granted-objects``: a server grants nothing on what it does not have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.model import TableKey
from tests.unit.precheck.situations import said, schema, situation
from tests.unit.precheck.test_checks import facts, table, text

THERE = replace(schema(table()), views=frozenset({TableKey("shop", "v")}), routines=frozenset({("shop", "p")}))


@pytest.mark.parametrize(
    ("statements", "found"),
    [
        (["GRANT SELECT ON shop.t TO y"], ""),
        (["GRANT SELECT ON t TO y"], ""),
        (["GRANT SELECT (a), UPDATE (a) ON TABLE v TO y"], ""),
        (["GRANT EXECUTE ON PROCEDURE shop.P TO y"], ""),
        (["GRANT SELECT ON shop.* TO y"], ""),
        (["GRANT SELECT ON *.* TO y"], ""),
        (["GRANT r TO y"], ""),
        (["GRANT SELECT ON mysql.gone TO y"], ""),
        (["GRANT EXECUTE ON LIBRARY shop.gone TO y"], ""),
        (["GRANT SELECT ON shop.gone TO y"], "to grant on it, found neither a table nor a view"),
        (["GRANT SELECT (a), UPDATE (a) ON gone TO y"], "shop.gone on the target"),
        (["GRANT EXECUTE ON FUNCTION shop.gone TO y"], "shop.gone on the target, to grant on it, found no routine"),
        # what the server takes for a table that is to be made
        (["GRANT SELECT, CREATE ON shop.gone TO y"], ""),
        (["GRANT ALL PRIVILEGES ON shop.gone TO y"], ""),
        (["GRANT CREATE VIEW ON shop.gone TO y"], "shop.gone on the target"),
        (["GRANT ALL ON PROCEDURE shop.gone TO y"], "found no routine"),
        # what the window makes
        (["CREATE TABLE shop.gone (a INT)", "GRANT SELECT ON shop.gone TO y"], ""),
        (["RENAME TABLE shop.t TO shop.gone", "GRANT SELECT ON shop.gone TO y"], ""),
        (["CREATE VIEW shop.gone AS SELECT 1", "GRANT SELECT ON shop.gone TO y"], ""),
        (["CREATE OR NO TABLE", "GRANT SELECT ON shop.gone TO y"], ""),
    ],
)  # fmt: skip
def test_a_grant_needs_its_table_view_or_routine(statements: list[str], found: str) -> None:
    texts = [text(statement, seqno) for seqno, statement in enumerate(statements, 5)]
    of = situation(facts(), planned=THERE, texts=texts)
    vars(of.target).update(has_table=lambda _: False, has_routine=lambda _: False)
    findings = said(of, "granted-objects")
    assert len(findings) == bool(found)
    assert all(found in each for each in findings)
