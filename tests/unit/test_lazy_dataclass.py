"""Our ``dataclass`` against the standard library's: the same classes, made by both, put through the same calls."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import operator
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, TypeVar

import pytest

from binlane import lazy_dataclass

BINLANE: Final = Path(__file__).parents[2] / "plugins" / "binlane"
Decorator = Callable[..., Callable[[type], Any]]
_T = TypeVar("_T")
OPTIONS: Final[tuple[dict[str, bool], ...]] = (
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "slots": True, "order": True},
    {"order": True},
    {"eq": False},
    {"frozen": True, "slots": True, "eq": False},
)


def _plain(dataclass: Decorator, options: dict[str, bool]) -> Any:
    @dataclass(**options)
    class Plain:
        """With everything that a field may be."""

        kind: ClassVar[str] = "plain"
        number: int
        text: str = "x"
        values: list[int] = field(default_factory=list)
        note: str = field(default="", compare=False, repr=False)
        weight: int = field(default=3, hash=False)
        cache: dict[str, int] = field(init=False, default_factory=dict, compare=False)
        fixed: int = field(init=False, default=7)
        last: float = field(default=0.0, kw_only=True)

    return Plain


def _empty(dataclass: Decorator, options: dict[str, bool]) -> Any:
    @dataclass(**options)
    class Empty:
        """Without a field."""

    return Empty


def _generic(dataclass: Decorator, options: dict[str, bool]) -> Any:
    @dataclass(**options)
    class Base(Generic[_T]):
        """A base."""

        number: int
        value: _T | None = None

        def doubled(self) -> int:
            return self.number * 2

    @dataclass(**options)
    class Derived(Base[str]):
        """A class with a base, and methods of its own."""

        text: str = "y"
        longest: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "longest", len(self.text))

        def __repr__(self) -> str:
            return f"<{self.number}>"

        def doubled(self) -> int:
            return super().doubled() + 1

    return Derived


def _own_methods(dataclass: Decorator, options: dict[str, bool]) -> Any:
    @dataclass(**options)
    class Own:
        """With methods that the decorator must leave alone."""

        number: int
        text: str = ""

        def __init__(self, number: int, text: str = "") -> None:
            object.__setattr__(self, "number", number + 1)
            object.__setattr__(self, "text", text)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and self.number == other.number

        def __hash__(self) -> int:
            return 5

    return Own


CLASSES: Final = (_plain, _empty, _generic, _own_methods)
ARGUMENTS: Final[tuple[tuple[tuple[Any, ...], dict[str, Any]], ...]] = (
    ((), {}),
    ((1,), {}),
    ((1, "a"), {}),
    ((1, "b"), {}),
    ((2,), {}),
    ((1,), {"text": "a"}),
    ((1, "a"), {"last": 2.0}),
    ((1, "a"), {"note": "z"}),
    ((1, "a"), {"weight": 4}),
    ((1, "a"), {"values": [1]}),
    ((1, "a", [1], "n", 2, 3, 4), {}),
    ((), {"number": 1}),
    ((), {"unknown": 1}),
)


def _outcome(call: Callable[..., object], *given: Any, **named: Any) -> object:
    """What a call gives, or the kind of its error with its text."""
    try:
        return call(*given, **named)
    except Exception as exc:
        return type(exc), str(exc)


def _behaviour(made: Any) -> Iterator[object]:
    """Everything that a caller sees of a class and its values."""
    yield made.__match_args__, [(each.name, each.kw_only, each.init) for each in dataclasses.fields(made)]
    yield made.__name__, made.__qualname__, made.__doc__, hasattr(made, "__slots__")
    known = {each.name for each in dataclasses.fields(made)}
    values = []
    for given, named in ARGUMENTS:
        value = _outcome(made, *given, **named)
        if not isinstance(value, made):
            yield value
            continue
        values.append(value)
        yield repr(value), dataclasses.asdict(value), dataclasses.astuple(value)
        yield dataclasses.asdict(copy.deepcopy(value)), _outcome(hash, value) == _outcome(hash, copy.copy(value))
        for name in ("number", "text", "unknown"):
            # of other names, the standard decorator's frozen classes with slots say that super() fails
            if name in known or not hasattr(made, "__slots__"):
                changed = copy.copy(value)
                yield _outcome(setattr, changed, name, 9), getattr(changed, name, None)
                yield _outcome(delattr, changed, name), getattr(changed, name, None)
        yield _outcome(lambda value: dataclasses.asdict(dataclasses.replace(value, number=8)), value)
    for value, other in itertools.product(values, values):
        yield value == other, value != other, value == 1
        for compare in (operator.lt, operator.le, operator.gt, operator.ge):
            yield _outcome(compare, value, other)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options) or "plain")
@pytest.mark.parametrize("make", CLASSES, ids=lambda make: make.__name__)
def test_classes_behave_as_those_of_the_standard_decorator(
    make: Callable[[Any, dict[str, bool]], Any], options: dict[str, bool]
) -> None:
    if make is _own_methods and options.get("order"):
        options = {**options, "order": False}
    expected = list(_behaviour(make(dataclasses.dataclass, options)))
    found = list(_behaviour(make(lazy_dataclass.dataclass, options)))
    assert found == expected


@lazy_dataclass.dataclass(frozen=True, slots=True)
class Pickled:
    """Of a module, so that a pickle finds it."""

    number: int
    text: str = field(default="", compare=False)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_frozen_value_with_slots_survives_a_pickle(protocol: int) -> None:
    read = pickle.loads(pickle.dumps(Pickled(1, "a"), protocol))
    assert (read, read.text) == (Pickled(1), "a")


def test_a_method_is_compiled_once_and_then_called_without_a_detour() -> None:
    made = _plain(lazy_dataclass.dataclass, {"frozen": True})
    before = made.__init__, made.__repr__
    made(1)
    first = made.__init__
    made(2)
    assert made.__init__ is first is not before[0]
    assert made.__repr__ is before[1]
    assert first.__code__.co_varnames[:2] == ("self", "number")


def test_a_value_that_holds_itself_can_be_shown() -> None:
    value = _plain(lazy_dataclass.dataclass, {})(1)
    value.text = value
    assert "text=..., " in repr(value)


def test_a_standard_class_may_be_derived() -> None:
    @dataclasses.dataclass(slots=True)
    class Derived(_plain(lazy_dataclass.dataclass, {"slots": True})):  # type: ignore[misc]
        """As a user's own class."""

        added: int = 0

    assert Derived(1, added=2) == Derived(1, added=2) != Derived(1, added=3)


def test_all_classes_of_binlane_are_made_by_it() -> None:
    standard = re.compile(r"^from dataclasses import .*\bdataclass\b|\bdataclasses\.dataclass\b", re.MULTILINE)
    users = [str(file.relative_to(BINLANE)) for file in BINLANE.rglob("*.py") if standard.search(file.read_text())]
    assert users == ["lazy_dataclass.py"]
