"""The kinds of values of keys: their check, and their description in errors and in docs/configuration.md."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from zoneinfo import ZoneInfo

from binlane.choices import DDL, DDL_KINDS, FilterKind, FilterPolicy, Word
from binlane.config.node import Node
from binlane.errors import has_secret
from binlane.extension import is_class_path
from binlane.lazy_dataclass import dataclass

CRON_PRESETS: Final = ("@hourly", "@daily", "@weekly", "@monthly", "@yearly")
AUTO: Final = "auto"
"""In place of a number: binlane chooses it."""
BY_HAND: Final = "none"
"""The value of ``window.schedule`` for a channel whose runs are all triggered by hand."""
CONTINUOUS: Final = "continuous"
"""The value of ``window.schedule`` for windows back to back."""
_CRON_FIELD: Final = re.compile(r"[0-9A-Za-z*,/#?-]+")
_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)
_LINK: Final = re.compile(r"https?://(?![^\s/]*@)[^\s/]+\S*|mailto:\S+")
_SESSION: Final = re.compile(r"\d+:\d+@[^:]+\.\d+:\d+", re.ASCII)
# of a dot inside [..], fnmatch's class, ``shards.selection.split_pattern`` divides nothing
_CLASS: Final = r"\[!?(?:\][^\]]*|[^\]]+)\]"
_NAME_PATTERN: Final = rf"(?:{_CLASS}|(?!{_CLASS})[^.])+"
_TABLE_PATTERN: Final = re.compile(rf"{_NAME_PATTERN}\.{_NAME_PATTERN}")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of values. ``read`` raises ConfigError for a value of another kind."""

    title: str
    """The type with its range, for docs/configuration.md."""
    expected: str
    """The expected value, for errors."""
    accepts: Callable[[Any], object]
    """Whether a value of the TOML file is allowed."""
    converted: Callable[[Any], Any] = lambda value: value
    """Converts an allowed value for ``ChannelConfig``."""
    shown: Callable[[Any], str] = "`{}`".format
    """Formats a default for docs/configuration.md."""
    words: tuple[Word, ...] = ()
    """The words of a choice."""

    def read(self, node: Node, key: str) -> Any:
        """The key's value; the key must be there."""
        if key not in node.value or not self.accepts(node.value[key]):
            node.wrong(key, self.expected)
        return self.converted(node.value[key])


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer(Kind):
    """Whole numbers from ``low`` to ``high``; None: without a limit."""

    low: int
    high: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Automatic(Kind):
    """Whole numbers, or "auto": binlane chooses the number."""

    number: Integer


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Kind):
    """A table of texts; errors name its entries."""

    entries: Callable[[Node], Any]

    def read(self, node: Node, key: str) -> Any:
        """The table's value."""
        return self.entries(node.table(key))


def integer(low: int, high: int | None = None, shown: Callable[[int], str] = "{:,}".format) -> Integer:
    """A whole number; ``true`` is refused, although bool is a subclass of int."""
    return Integer(
        f"integer, {shown(low)} " + ("or more" if high is None else f"to {shown(high)}"),
        f"an integer of {low:,} or more" if high is None else f"an integer {low:,}..{high:,}",
        lambda value: type(value) is int and low <= value and (high is None or value <= high),
        shown=shown,
        low=low,
        high=high,
    )


def automatic(number: Integer) -> Automatic:
    """A whole number, or "auto"."""
    return Automatic(
        f'{number.title}, or `"{AUTO}"`',
        f'{number.expected}, or "{AUTO}"',
        lambda value: value == AUTO or number.accepts(value),
        shown=lambda default: f'`"{AUTO}"`' if default == AUTO else number.shown(default),
        number=number,
    )


def size(low: int, high: int) -> Integer:
    """A number of bytes; the docs print KiB, MiB or GiB."""
    return integer(low, high, _in_units)


def text(expected: str = "text", fits: Callable[[str], object] = bool) -> Kind:
    """Text that is not empty; ``fits``: a further check, which ``expected`` describes."""
    return Kind("text", expected, lambda value: isinstance(value, str) and value.strip() and fits(value))


def texts(expected: str = "a list of texts", fits: Callable[[str], object] = bool) -> Kind:
    """A list of texts that are not empty; the default is an empty list."""
    return Kind(
        "list of texts",
        expected,
        lambda value: isinstance(value, list) and all(isinstance(each, str) and each and fits(each) for each in value),
        tuple,
        lambda default: "none",
    )


def short_text(length: int) -> Kind:
    """Text of at most ``length`` characters."""
    return replace(
        text(f"text of at most {length:,} characters", lambda value: len(value) <= length),
        title=f"text, up to {length:,} characters",
    )


def short_texts(length: int) -> Kind:
    """A list of texts of at most ``length`` characters each."""
    return replace(
        texts(f"a list of texts of at most {length:,} characters", lambda each: len(each) <= length),
        title=f"list of texts, up to {length:,} characters each",
    )


def choice(words: type[Word]) -> Kind:
    """One word of ``binlane.choices``."""
    *others, last = (f'`"{word}"`' for word in words)
    title = f"{', '.join(others)} or {last}" if others else last
    shown = '`"{}"`'.format
    return Kind(title, f"one of {', '.join(words)}", list(words).__contains__, words, shown, tuple(words))


def choice_or_class(words: type[Word]) -> Kind:
    """One word of ``binlane.choices``, or a class of your own (``extension``)."""
    known = choice(words)
    return Kind(
        f"{known.title}, or [a class of your own](architecture.md#where-the-next-feature-goes)",
        f"{known.expected}, or package.module:Class",
        lambda value: known.accepts(value) or is_class_path(value),
        lambda value: words(value) if known.accepts(value) else value,
        known.shown,
        known.words,
    )


def table(entries: Callable[[Node], Any]) -> Table:
    """A table inside a section or at the top level; the default is an empty table."""
    return Table("table", "a table", lambda value: isinstance(value, Mapping), shown=lambda _: "none", entries=entries)


def rules(problem_of: Callable[[Sequence[tuple[str, str]]], tuple[str, str] | None]) -> Table:
    """Names of the source and of the target, in the file's order. ``problem_of`` finds an invalid rule."""

    def entries(node: Node) -> tuple[tuple[str, str], ...]:
        found = tuple(_texts_of(node).items())
        if (problem := problem_of(found)) is not None:
            node.wrong(*problem)
        return found

    return table(entries)


def _texts_of(node: Node) -> dict[str, str]:
    return {key: TEXT.read(node, key) for key in node.value}


def _policies(node: Node) -> Mapping[str, str]:
    """Policy by kind of statement; ``ddl`` stands for several kinds. Kinds without a policy are applied."""
    node.only((DDL, *FilterKind))
    given = {kind: choice(FilterPolicy).read(node, kind) for kind in node.value}
    policy = given.pop(DDL, FilterPolicy.APPLY)
    # an explicit "apply" stays in the result: it applies DROP DATABASE even if some of its tables are left out
    return given if policy is FilterPolicy.APPLY else dict.fromkeys(DDL_KINDS, policy) | given


def _is_schedule(value: str) -> bool:
    fields = value.split()
    is_cron = len(fields) == 5 and all(_CRON_FIELD.fullmatch(field) for field in fields)
    return is_cron or value in (BY_HAND, CONTINUOUS, *CRON_PRESETS)


def _is_time_zone(value: str) -> bool:
    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        return False
    return True


def _is_day(value: object) -> bool:
    """A date with a time is refused: its zone could contradict ``window.timezone``."""
    return isinstance(value, dt.date) and not isinstance(value, dt.datetime)


def _in_units(count: int) -> str:
    unit, name = next(each for each in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")) if count % each[0] == 0)
    return f"{count // unit} {name}"


TEXT: Final = text()
CONNECTION: Final = text(
    "the id of a connection, not its URL (that belongs into Airflow, or into the variable AIRFLOW_CONN_<ID>)",
    lambda value: "://" not in value,
)
_WITHOUT: Final = (
    "its URI without a password, a token and a query (give these to the storage's own configuration on each machine: "
    "variables such as AWS_SECRET_ACCESS_KEY, or fsspec's files in ~/.config/fsspec)"
)
ASSET: Final = text(
    "the URI of an Airflow asset without a password, a token and a query", lambda value: not has_secret(value)
)
FOLDER: Final = text(f"a folder, or {_WITHOUT}", lambda value: not has_secret(value))
PLACE: Final = text(f"a folder, {_WITHOUT}, or the id of a connection", lambda value: not has_secret(value))
PLACES: Final = texts(
    f"a list of folders, each by its path or {_WITHOUT}, or of ids of connections", lambda each: not has_secret(each)
)
CONNECTIONS: Final = texts("a list of ids of connections, not of their URLs", lambda each: "://" not in each)
TEXTS: Final = texts()
BOOLEAN: Final = Kind(
    "boolean", "true or false", lambda value: isinstance(value, bool), shown=lambda default: f"`{str(default).lower()}`"
)
DAY: Final = Kind("date", "a date such as 2026-01-01", _is_day)
TABLE: Final = table(_texts_of)
FILTER_KINDS: Final = table(_policies)
SCHEDULE: Final = text(
    f'a cron expression of five fields, {", ".join(CRON_PRESETS)}, "{CONTINUOUS}" or "{BY_HAND}"', _is_schedule
)
TIME_ZONE: Final = text("the name of a time zone such as UTC or Europe/Berlin", _is_time_zone)
OWNER: Final = short_text(500)
"""The lengths of owners, their links and tags are those of the columns in Airflow's database."""
TAGS: Final = short_texts(100)
LINK: Final = text(
    "a link of at most 500 characters, without an account: https://host/..., http://host/... or mailto:name@host",
    lambda value: len(value) <= 500 and _LINK.fullmatch(value),
)
CALLABLE: Final = text("the dotted path of a function, such as company.alerts.page", _DOTTED.fullmatch)
SESSIONS: Final = texts(
    "a list of server_id:connection@file:offset, as the message of a window that cannot end names them",
    _SESSION.fullmatch,
)
TABLE_PATTERNS: Final = texts(
    "a list of database.table, patterns with one dot each ([.] stands for a dot in a name)", _TABLE_PATTERN.fullmatch
)


def place_of(option: str, value: str) -> str:
    """A folder, a URI or a connection that a person gives on the command line. Raises ConfigError as the keys of a
    channel's file, before the value is stored or shown."""
    return str(PLACE.read(Node({option: value}, "the command line"), option))
