"""Which databases of the target belong to the channel although the source has them no more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.plan.transaction.channel_rules import AS_LOGGED, ChannelRules
from binlane.shards.renaming import Renaming
from binlane.shards.selection import Selection
from binlane.verify.definitions.lost_databases import with_lost_databases
from tests.unit.plan.logs import EMPTY_SCHEMA

SOURCE, TARGET = (
    replace(EMPTY_SCHEMA, databases=frozenset(names)) for names in (("kept", "new"), ("kept", "gone", "others"))
)
FOLDING = replace(TARGET, settings={"lower_case_table_names": "1"})


@pytest.mark.parametrize(
    ("known", "others", "expected"),
    [
        pytest.param({"kept", "gone", "dropped"}, (), {"gone"}, id="written"),
        pytest.param({"kept"}, (), set(), id="never written"),
        pytest.param({"gone"}, ("gone",), set(), id="another channel writes it"),
    ],
)
def test_a_database_that_the_channel_has_written_is_lost_if_only_the_target_has_it(
    known: set[str], others: tuple[str, ...], expected: set[str]
) -> None:
    found = with_lost_databases(SOURCE, TARGET, AS_LOGGED, known, others)
    assert found.databases - SOURCE.databases == expected
    ignoring = ChannelRules(Selection(kinds=(("drop_database", "ignore"),)))
    assert with_lost_databases(SOURCE, TARGET, ignoring, known, others) == SOURCE


def test_names_are_those_of_the_source_and_compared_as_the_target_compares_them() -> None:
    source = replace(SOURCE, databases=frozenset({"KEPT"}))
    assert with_lost_databases(source, FOLDING, AS_LOGGED, {"kept", "Gone"}, ()).databases == {"KEPT", "Gone"}
    assert with_lost_databases(source, TARGET, AS_LOGGED, {"kept", "gone"}, ()).databases == {"KEPT", "kept", "gone"}
    renaming = ChannelRules(renaming=Renaming((("was_gone", "gone"),)))
    assert with_lost_databases(SOURCE, TARGET, renaming, {"gone"}, ()).databases == {"kept", "new", "was_gone"}
