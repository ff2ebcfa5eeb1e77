"""``dataclass`` of the standard library, with methods that are compiled when they are first called.

The standard decorator compiles up to six methods of a class where the class is made: 0.4 ms for each of the 400 classes
that a command imports, most of which it never makes a value of. Here the class gets its fields, its slots and its
``__match_args__`` from the standard decorator, and for each method a function that compiles the method, takes its
place, and calls it. Fields, ``replace``, pickles and errors are the same, and so are the methods that the class has
itself. Not the same: ``inspect.signature`` of a class, and a *standard* frozen dataclass cannot be derived from such a
class.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    # type checkers know what this one means
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        eq: bool = True,
        order: bool = False,
        frozen: bool = False,
        kw_only: bool = False,
        slots: bool = False,
    ) -> Any:
        """As the standard decorator; options that no class of binlane has are not known."""

        def decorate(cls: type) -> type:
            own = dict(cls.__dict__)
            made = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only, slots=slots)(cls)
            _add_methods(made, own, eq=eq, order=order, frozen=frozen, slots=slots)
            return made

        return decorate if cls is None else decorate(cls)


_Names = dict[str, Any]
_ORDERS: Final = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}
_NO_VALUE: Final = object()
"""The default of a parameter whose field has a factory."""


def _add_methods(cls: type, own: _Names, *, eq: bool, order: bool, frozen: bool, slots: bool) -> None:
    """``own``: what the class's body has defined, which stays as it is."""
    known = dataclasses.fields(cls)
    compared = [field.name for field in known if field.compare]

    def add(name: str, source: Callable[[_Names], str]) -> None:
        if name not in own:
            setattr(cls, name, _compiled_when_called(cls, name, source))

    add("__init__", lambda names: _init(cls, known, names, frozen=frozen, slots=slots))
    add("__repr__", lambda _: _repr([field.name for field in known if field.repr]))
    if eq:
        add("__eq__", lambda _: _comparison("__eq__", "==", compared))
    for name, operator in _ORDERS.items() if order else ():
        add(name, lambda _, name=name, operator=operator: _comparison(name, operator, compared))  # type: ignore[misc]
    # a class with __eq__ and without __hash__ has the __hash__ None
    if eq and (own.get("__hash__") is None):
        if frozen:
            hashed = [field.name for field in known if (field.compare if field.hash is None else field.hash)]
            setattr(cls, "__hash__", _compiled_when_called(cls, "__hash__", lambda _: _hash(hashed)))  # noqa: B010
        else:
            cls.__hash__ = None  # type: ignore[assignment]
    if frozen:
        _freeze(cls, frozenset(field.name for field in known))
        if slots:
            _add_state(cls, own, [field.name for field in known])


def _compiled_when_called(cls: type, name: str, source: Callable[[_Names], str]) -> Callable[..., Any]:
    """``source``: the method's text; it puts the values that the text names into the mapping that it gets."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        names: _Names = {}
        text = source(names)
        # the text has no names but those of fields, which are identifiers
        exec(text, names)
        made = names[name]
        if name == "__repr__":
            made = recursive_repr()(made)
        made.__qualname__ = f"{cls.__qualname__}.{name}"
        made.__module__ = cls.__module__
        setattr(cls, name, made)
        return made(self, *args, **options)

    method.__name__, method.__qualname__, method.__module__ = name, f"{cls.__qualname__}.{name}", cls.__module__
    return method


def _init(cls: type, known: Iterable[dataclasses.Field[Any]], names: _Names, *, frozen: bool, slots: bool) -> str:
    names.update(_set=object.__setattr__, _no_value=_NO_VALUE)
    positional, named, lines = list[str](), list[str](), list[str]()
    for field in known:
        value = field.name
        parameter = value
        if field.default_factory is not dataclasses.MISSING:
            names[f"_new_{value}"] = field.default_factory
            parameter = f"{value}=_no_value"
            made = f"_new_{value}()"
            value = f"{made} if {value} is _no_value else {value}" if field.init else made
        elif field.default is not dataclasses.MISSING:
            names[f"_default_{value}"] = field.default
            parameter = f"{value}=_default_{value}"
            if not field.init:
                # without slots the class has the default
                value = f"_default_{value}" if slots else ""
        elif not field.init:
            value = ""
        if field.init:
            (named if field.kw_only else positional).append(parameter)
        if value:
            lines.append(f"_set(self, {field.name!r}, {value})" if frozen else f"self.{field.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(("self", *positional, *(("*", *named) if named else ())))
    return f"def __init__({parameters}):\n  " + "\n  ".join(lines or ["pass"])


def _repr(shown: Iterable[str]) -> str:
    values = ", ".join(f"{name}={{self.{name}!r}}" for name in shown)
    return f'def __repr__(self):\n  return self.__class__.__qualname__ + f"({values})"'


def _comparison(name: str, operator: str, compared: Iterable[str]) -> str:
    ours, theirs = _tuple_of("self", compared), _tuple_of("other", compared)
    return (
        f"def {name}(self, other):\n  if other.__class__ is self.__class__:\n    return {ours} {operator} {theirs}\n"
        "  return NotImplemented"
    )


def _hash(hashed: Iterable[str]) -> str:
    return f"def __hash__(self):\n  return hash({_tuple_of('self', hashed)})"


def _tuple_of(value: str, names: Iterable[str]) -> str:
    return f"({''.join(f'{value}.{name}, ' for name in names)})"


def _freeze(cls: Any, names: frozenset[str]) -> None:
    def __setattr__(self: Any, name: str, value: object) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = __setattr__, __delattr__


def _add_state(cls: Any, own: _Names, names: list[str]) -> None:
    """For pickles and copies, which would otherwise set the slots of a frozen value."""

    def __getstate__(self: Any) -> list[object]:  # noqa: N807
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: Iterable[object]) -> None:  # noqa: N807
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    for method in (__getstate__, __setstate__):
        if method.__name__ not in own:
            setattr(cls, method.__name__, method)
