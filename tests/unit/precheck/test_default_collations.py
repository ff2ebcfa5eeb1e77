"""The check ``default-collations``: what a database had at a statement, not what the source has made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from binlane.model import Flavor, Item, ItemKind, LogPosition, SessionContext
from binlane.sql.logged_statement import LoggedText
from binlane.sql.requirements import DATABASE_DEFAULT, Requirement
from tests.unit.precheck.situations import PLAN, applying, findings, schema, situation, target_of

LATIN, UTF8, OTHER = "latin1_swedish_ci", "utf8mb4_general_ci", "latin2_general_ci"
MAKES = "CREATE TABLE t (c VARCHAR(9))"
ALTERS = "ALTER DATABASE app COLLATE utf8mb4_general_ci"


def texts_of(*statements: str) -> list[LoggedText]:
    items = (Item(ItemKind.DDL, each.encode(), context=SessionContext(database="app")) for each in statements)
    found = (LoggedText.of(n, LogPosition("b.1", n), item, Flavor.MARIADB) for n, item in enumerate(items, 1))
    return [text for text in found if text is not None]


def said(
    ours: str, behind: Sequence[str] | None = (), *, made: str | None = None, then: Sequence[str] = (),
    first: str = MAKES, **changes: Any,
) -> str:  # fmt: skip
    """The source has UTF8 now. ``made``: the collation of its table; ``then``: later statements of the window."""
    target = target_of(Flavor.MARIADB, default_collations=lambda _: {"app": ours})
    asked = {Requirement(DATABASE_DEFAULT, "app"): 1}
    tables = schema(flavor=Flavor.MARIADB, collations=frozenset({LATIN, UTF8, OTHER}))
    looked = situation(target, replace(PLAN, requirements=asked), tables, texts=texts_of(first, *then), **changes)
    source = SimpleNamespace(
        default_collations=lambda _: {"app": UTF8}, ask=lambda *_: made,
        definitions_behind=lambda: None if behind is None else texts_of(*behind),
    )  # fmt: skip
    vars(looked).update(source=source)
    return "\n".join(f"{each.severity.name}: {each}" for each in findings(looked, "default-collations"))


def test_what_the_source_has_now_counts_unless_it_has_altered_the_database_since() -> None:
    assert said(UTF8) == ""
    assert said(UTF8, made=UTF8) == ""
    # the statement had a default of its own, or the table was altered
    assert said(UTF8, made=LATIN) == ""
    expected = f"FATAL: app: default collation: expected {UTF8}, as on the source, found {LATIN}"
    assert said(LATIN, ["ALTER DATABASE other COLLATE utf8mb4_bin", "ALTER TABLE t ADD d INT"]).startswith(expected)


def test_a_table_that_was_converted_behind_the_window_proves_no_default() -> None:
    found = said(LATIN, ["ALTER TABLE app.t CONVERT TO CHARACTER SET latin1"], made=LATIN)
    assert found.startswith(f"FATAL: app: default collation: expected {UTF8}, as on the source, found {LATIN}")


@pytest.mark.parametrize("alters", [ALTERS, "CREATE OR REPLACE DATABASE app", "DROP SCHEMA app", None])
def test_a_database_that_the_source_alters_behind_the_window_was_what_its_tables_are(alters: str | None) -> None:
    behind = None if alters is None else [alters]
    assert said(LATIN, behind, made=LATIN) == ""
    if behind is None:
        return
    found = said(UTF8, behind, made=LATIN)
    assert found.startswith(f"FATAL: app: default collation: expected {LATIN}, as the source has app.t; it has altered")
    assert f"ALTER DATABASE `app` CHARACTER SET latin1 COLLATE {LATIN} on the target" in found


UNKNOWN: dict[str, dict[str, Any]] = {
    "gone": {"behind": [ALTERS]},
    "another one": {"behind": [ALTERS], "made": OTHER, "then": ["ALTER TABLE t CHARACTER SET latin2"]},
    "altered behind": {"behind": ["ALTER TABLE app.t CONVERT TO CHARACTER SET latin2", ALTERS], "made": OTHER},
    "converted to the target's": {
        "behind": ["ALTER TABLE app.t CONVERT TO CHARACTER SET latin1", ALTERS],
        "made": LATIN,
    },
    "not read": {"behind": None},
    "no table": {"behind": [ALTERS], "first": "CREATE PROCEDURE p() SELECT 1"},
    "a trigger": {
        "behind": [ALTERS],
        "made": LATIN,
        "first": "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.c = 1",
    },
}


@pytest.mark.parametrize("case", UNKNOWN.values(), ids=UNKNOWN)
def test_a_default_that_nothing_tells_is_left_to_whoever_knows_it(case: dict[str, Any]) -> None:
    found = said(LATIN, **case)
    assert found.startswith("FATAL: app: default collation: expected the source's of seqno 1, which it has altered")
    assert "set allow_unsafe in the channel's file for this window" in found
    allowed = said(LATIN, **case, channel=applying(allow_unsafe=True))
    assert allowed.startswith("INFO: ")
