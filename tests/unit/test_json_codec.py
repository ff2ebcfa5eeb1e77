"""Every record of a window's files comes back as it was, and what differs is refused with its path."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import types
import typing
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binlane.errors import PlanError
from binlane.json_codec.codec import Codec
from binlane.json_codec.layout import LISTS, hints_of
from binlane.model import SessionContext, TableKey
from binlane.plan.manifest import MANIFEST, Manifest
from binlane.plan.routing import CONTEXT, Routing
from binlane.plan.settings import SETTINGS, PlanSettings
from binlane.plan.window_facts import FACTS, WindowFacts
from binlane.plan.window_plan import PLAN, WindowPlan
from binlane.schema.codec import SCHEMA
from binlane.schema.model import Schema
from binlane.shards.selection import SELECTION, Selection
from binlane.work.lane_files import SESSION
from tests.tiers import examples

FILES: list[tuple[Codec, type]] = [
    (MANIFEST, Manifest),
    (SETTINGS, PlanSettings),
    (SELECTION, Selection),
    (SCHEMA, Schema),
    (CONTEXT, Routing),
    (PLAN, WindowPlan),
    (FACTS, WindowFacts),
    (SESSION, SessionContext),
]


def records_in(hint: Any) -> Iterator[type]:
    """The dataclasses that a type is made of, itself first."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        yield hint
        for each in hints_of(hint).values():
            yield from records_in(each)
    for each in typing.get_args(hint):
        yield from records_in(each)


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    scalars = {str: st.text(max_size=4), int: st.integers(), bool: st.booleans(), float: st.floats(allow_nan=False)}
    if hint in scalars:
        return scalars[hint]
    if hint is Any:
        return st.none() | st.integers()
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return st.builds(hint, **{name: values_of(each) for name, each in hints_of(hint).items()})
    if origin is types.UnionType:
        return st.none() | values_of(arguments[0])
    if origin is tuple and arguments[-1] is not Ellipsis:
        return st.tuples(*map(values_of, arguments))
    if origin is Mapping:
        return st.dictionaries(values_of(arguments[0]), values_of(arguments[1]), max_size=3)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return st.sampled_from(list(hint))
    items = st.lists(values_of(arguments[0]), max_size=3)
    return items if origin is list else items.map(LISTS[origin])


RECORDS = {
    f"{root.__name__}: {kind.__name__}": (codec, kind)
    for codec, root in FILES
    for kind in records_in(root)
    if kind is not WindowPlan
}
# a plan is checked as a whole (test_window_plan): here each of its fields alone
RECORDS |= {
    f"WindowPlan.{one.name}": (
        PLAN,
        dataclasses.make_dataclass(
            "Alone", [(one.name, hints_of(WindowPlan)[one.name], dataclasses.field(default=one.default))]
        ),
    )
    for one in dataclasses.fields(WindowPlan)
}


@pytest.mark.parametrize(("codec", "kind"), RECORDS.values(), ids=RECORDS)
@settings(max_examples=examples(20), deadline=None)
@given(data=st.data())
def test_a_record_comes_back_as_it_was_and_with_the_same_bytes(codec: Codec, kind: type, data: st.DataObject) -> None:
    record = data.draw(values_of(kind))
    text = json.dumps(codec.dump(record), default=list)
    again: object = codec.load(kind, json.loads(text), "file")
    assert again == record
    assert json.dumps(codec.dump(again), default=list) == text


def change_one(value: Any, data: st.DataObject) -> Any:
    """Another type of value somewhere."""
    inside = [*value] if isinstance(value, dict) else [*range(len(value))] if isinstance(value, list) else []
    if not inside or data.draw(st.booleans()):
        return {"no": "such"} if isinstance(value, list) else ["no", "such", "value", "here", None]
    place = data.draw(st.sampled_from(inside))
    value[place] = change_one(value[place], data)
    return value


@pytest.mark.parametrize(("codec", "kind"), RECORDS.values(), ids=RECORDS)
@settings(max_examples=examples(20), deadline=None)
@given(data=st.data())
def test_a_value_of_another_type_raises_only_plan_errors(codec: Codec, kind: type, data: st.DataObject) -> None:
    written = json.loads(json.dumps(codec.dump(data.draw(values_of(kind))), default=list))
    with contextlib.suppress(PlanError):
        codec.load(kind, change_one(written, data), "file")


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    file: str
    at: int


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    place: Place
    names: Mapping[str, tuple[int, ...]]
    first: bool = False
    more: Mapping[Place, int] = dataclasses.field(default_factory=dict)
    why: str | None = None


ROWS = Codec("do it again", rows=frozenset({Place}), left_out=frozenset({"why"}), numbers=frozenset({"first"}))
FOUND = Found(Place("a", 1), {"n": (1, 2)}, True, {Place("b", 2): 3, Place("a", 9): 4})
WRITTEN = {"place": ["a", 1], "names": {"n": [1, 2]}, "first": 1, "more": [["a", 9, 4], ["b", 2, 3]]}


def test_a_layout_says_what_types_do_not() -> None:
    assert json.loads(json.dumps(ROWS.dump(FOUND))) == WRITTEN
    assert ROWS.load(Found, WRITTEN, "f") == FOUND


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"place": ["a"]}, "f: $.place: expected 2 values, got 1; do it again"),
        ({"place": ["a", "1"]}, "f: $.place[1]: expected int, got '1'; do it again"),
        ({"place": ["a", True]}, "f: $.place[1]: expected int, got True; do it again"),
        ({"place": {}}, "f: $.place: expected a list, got {}; do it again"),
        ({"names": {"n": [1, "2"]}}, "f: $.names.n[1]: expected int, got '2'; do it again"),
        ({"names": []}, "f: $.names: expected an object, got []; do it again"),
        ({"first": True}, "f: $.first: expected 0 or 1, got True; do it again"),
        ({"more": [["a", 9, 4], ["b", 2, None]]}, "f: $.more[1]: expected int, got None; do it again"),
        ({"more": [["a", 9]]}, "f: $.more[0]: expected 3 values, got 2; do it again"),
        ({"more": [["a", 9, 4, 5]]}, "f: $.more[0]: expected 3 values, got 4; do it again"),
        ({"other": 1}, "f: $: unknown key 'other'; known: place, names, first, more, why; do it again"),
    ],
)
def test_an_error_has_file_path_expectation_finding_and_way_out(change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError) as caught:
        ROWS.load(Found, WRITTEN | change, "f")
    assert str(caught.value) == message


def test_only_fields_that_are_left_out_may_lack() -> None:
    with pytest.raises(PlanError, match=r"^f: \$: key 'first' is missing; do it again$"):
        ROWS.load(Found, {name: value for name, value in WRITTEN.items() if name != "first"}, "f")


def test_entries_are_sorted_by_their_keys_fields_or_by_the_text_where_the_layout_says_so() -> None:
    maps = {TableKey("a-b", "t"): 1, TableKey("a", "t"): 2}
    named = dataclasses.make_dataclass("Named", [("maps", Mapping[TableKey, int])])(maps)
    rows = frozenset({TableKey})
    assert Codec("", rows=rows).dump(named) == {"maps": [("a", "t", 2), ("a-b", "t", 1)]}
    assert Codec("", rows=rows, by_text=frozenset({"maps"})).dump(named) == {"maps": [("a-b", "t", 1), ("a", "t", 2)]}


@pytest.mark.parametrize("text", ["[[]]", "[[1]]", "[[1, 2], []]"])
def test_an_entry_without_its_key_is_named(text: str) -> None:
    with pytest.raises(PlanError, match=r"w: \$\[\d\]: expected 2 values, got [01]; make it anew"):
        Codec("make it anew").read(Mapping[int, int], text, "w")  # type: ignore[type-abstract]
