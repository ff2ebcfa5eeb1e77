"""What the precheck leaves for the lanes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from binlane.apply.rows.named_objects import NamedObjects
from binlane.errors import SourceError, TableMismatchError
from binlane.model import Flavor, SessionContext, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.transaction.decode import statement_facts
from binlane.precheck.results import checked_of, keep_for_lanes
from binlane.precheck.situation.situation import Needs
from binlane.schema.model import Column, Schema, Table
from binlane.servers.programs import read_views
from binlane.work.files import WorkFolder
from tests.unit.precheck.situations import PLAN, schema, situation

KEY = TableKey("shop", "t")
THEN = schema(Table(KEY, "InnoDB", (Column("a", 1, "int"),)))
NOW = schema(Table(KEY, "InnoDB", (Column("a", 1, "bigint"),)))
ALTERED = replace(PLAN, written=frozenset({KEY}), altered=Alterations({KEY: (5,)}))


def kept(folder: WorkFolder, source: Schema, *, begun: bool, behind: Alterations | None = None) -> WorkFolder:
    """The folder behind the check of a window that alters the table."""
    made = situation(plan=ALTERED, tables=source, source=source, plans=folder, begun=begun)
    vars(made).update(source=SimpleNamespace(altered_behind=lambda **_: behind or Alterations()))
    return replace(folder, digests={**(folder.digests or {}), **keep_for_lanes(made)})


def test_a_window_that_is_begun_keeps_what_the_check_before_it_has_left(tmp_path: Path) -> None:
    folder = kept(WorkFolder(str(tmp_path), digests={}), THEN, begun=False)
    assert checked_of(kept(folder, NOW, begun=True), selects=False).definitions == THEN


@pytest.mark.parametrize(("behind", "found"), [(Alterations(), THEN), (Alterations({KEY: (0,)}), None)])
def test_the_definitions_are_asked_again_where_the_folder_of_a_begun_window_was_lost(
    tmp_path: Path, behind: Alterations, found: Schema | None
) -> None:
    folder = kept(WorkFolder(str(tmp_path), digests={}), THEN, begun=True, behind=behind)
    assert checked_of(folder, selects=False).definitions == found


@pytest.mark.parametrize("begun", [True, False])
def test_only_a_window_that_is_begun_goes_on_without_its_source(tmp_path: Path, begun: bool) -> None:
    made = situation(plan=ALTERED, tables=THEN, plans=WorkFolder(str(tmp_path), digests={}), begun=begun)
    vars(made).update(source=SimpleNamespace(read_schema=_gone))
    if begun:
        assert keep_for_lanes(made) == {}
    else:
        with pytest.raises(SourceError, match="no answer"):
            keep_for_lanes(made)


def test_behind_a_text_that_nobody_can_read_a_lane_knows_the_views_that_are_there(tmp_path: Path) -> None:
    """A version comment inside another one, which servers take; the text has no name of a routine or view."""
    sql = b"INSERT INTO t VALUES (1) /*!50100 , (2) /*!50000 , (3) */ */"
    facts = statement_facts(sql, SessionContext(database="shop"), Flavor.MYSQL)
    views = [TableKey("reports", "Monthly")]
    folder = WorkFolder(str(tmp_path), digests={})
    made = situation(plan=replace(PLAN, kinds={facts.kind: 1}), plans=folder, needs=Needs(statements=True))
    vars(made).update(may_reach_programs=False)
    vars(made.target).update(ask=lambda question, *_: views if question is read_views else None)
    left = checked_of(replace(folder, digests=keep_for_lanes(made)), selects=False)

    lane = NamedObjects(lambda _: (), left.reached, lambda _: views, left.reached_file)
    lane.begin()
    lane.hold(lambda _: None, facts, lambda: None)
    lane.end()
    views.append(TableKey("shop", "t"))
    with pytest.raises(TableMismatchError, match=r"shop\.t: expected no view"):
        lane.hold(lambda _: None, facts, lambda: None)


def _gone() -> None:
    raise SourceError("no answer")
