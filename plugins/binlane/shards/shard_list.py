"""Shard -> lane, by Tungsten Replicator's ``shard.list`` format; shard_list/README.md describes it.

Stricter than Tungsten: a lane out of range is an error (Tungsten silently loses the shard's events), and so is a
repeated key (Java keeps the last).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final

from binlane.errors import ConfigError, PlanError
from binlane.lazy_dataclass import dataclass
from binlane.model import GLOBAL_SHARD, SPECIAL_SHARDS, UNKNOWN_SHARD, plural
from binlane.schema.letter_case import AS_TYPED, LetterCase
from binlane.shards.properties import Property, escape_key, parse_properties
from binlane.shards.renaming import AS_THEY_ARE, Renaming

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,9}")
_LONGEST: Final = 200
"""Characters of a name or value that an error quotes."""
_NAME_SEPARATORS: Final = re.compile(r"[,\s]+")
_GLOB_CHARACTERS: Final = frozenset("*?[")
_SPECIAL: Final = (GLOBAL_SHARD, UNKNOWN_SHARD)


class HashMethod(StrEnum):
    """How shards without an entry find their lane."""

    STRING_HASH = "string-hash"
    ROUND_ROBIN = "round-robin"
    LOAD = "load"


@dataclass(frozen=True, slots=True)
class Entry:
    """``shard=lane`` or ``glob=lane``."""

    key: str
    lane: int
    line: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class ShardList:
    """A parsed shard list."""

    path: str = field(default="", compare=False)
    explicit: Mapping[str, Entry] = field(default_factory=lambda: MappingProxyType({}))
    globs: tuple[Entry, ...] = ()
    """In the order of the file: the first match wins."""
    default: int | None = None
    """``(*)``: the lane of shards without an entry; None: by hash."""
    critical: frozenset[str] = frozenset()
    """``(critical)``: reference shards; ``#GLOBAL`` and ``#UNKNOWN`` are critical without being named."""
    divided: frozenset[str] = frozenset()
    """``(divided)``: names and globs of shards whose changes are dealt to all parallel lanes."""
    hash_method: HashMethod = HashMethod.STRING_HASH
    pattern: str | None = None
    """``(pattern)``: the regular expression of the "pattern" assigner (``database_pattern``)."""
    lines: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), compare=False)
    """The line of each key."""

    def named_shards(self) -> Iterator[tuple[str, int]]:
        """The shards that the list names in full, each with its line."""
        for entry in self.explicit.values():
            if entry.key not in _SPECIAL:
                yield entry.key, entry.line
        for name in sorted(self.divided):
            if _GLOB_CHARACTERS.isdisjoint(name):
                yield name, self.lines.get("(divided)", 0)

    def entry_of(self, shard: str) -> Entry | None:
        """The entry of a shard: its own, else the first glob that matches. Globs never match ``#`` shards."""
        entry = self.explicit.get(shard)
        if entry is not None or shard in _SPECIAL:
            return entry
        return next((glob for glob in self.globs if fnmatchcase(shard, glob.key)), None)

    def divides(self, shard: str) -> bool:
        """Whether ``(divided)`` names the shard. Globs never match ``#`` shards."""
        return shard not in _SPECIAL and any(fnmatchcase(shard, pattern) for pattern in self.divided)

    def compared(self, letter_case: LetterCase) -> ShardList:
        """The list with its names and globs in the form that ``letter_case`` compares.

        Raises ConfigError if two names become equal and have different lanes.
        """
        explicit: dict[str, Entry] = {}
        for key, entry in self.explicit.items():
            name = key if key in _SPECIAL else letter_case.name(key)
            known = explicit.setdefault(name, replace(entry, key=name))
            if known.lane != entry.lane:
                raise ConfigError(
                    f"{self.path}:{entry.line}: {key!r} is the name of line {known.line} in another letter case, which "
                    f"the target ignores: expected lane {known.lane}, got {entry.lane}; give both the same lane"
                )
        globs = tuple(replace(glob, key=letter_case.name(glob.key)) for glob in self.globs)
        critical, divided = letter_case.names(self.critical), letter_case.names(self.divided)
        return replace(self, explicit=explicit, globs=globs, critical=critical, divided=divided)

    def text(self) -> str:
        """The list in its own format; equal for lists with the same meaning."""
        lines = [f"(hash-method)={self.hash_method}", f"(*)={-1 if self.default is None else self.default}"]
        if self.critical:
            lines.append("(critical)=" + ",".join(name.replace("\\", "\\\\") for name in sorted(self.critical)))
        if self.divided:
            lines.append("(divided)=" + ",".join(name.replace("\\", "\\\\") for name in sorted(self.divided)))
        if self.pattern is not None:
            lines.append("(pattern)=" + self.pattern.replace("\\", "\\\\"))
        entries = [*(self.explicit[key] for key in sorted(self.explicit)), *self.globs]
        lines += [f"{escape_key(entry.key)}={entry.lane}" for entry in entries]
        return "".join(line + "\n" for line in lines)

    def digest(self) -> str:
        """SHA-256 of ``text``, in hex: the same in every process and on every machine."""
        return hashlib.sha256(self.text().encode()).hexdigest()


def parse_shard_list(content: str | bytes, path: str, *, lanes: int) -> ShardList:
    """Parse a list for ``lanes`` parallel lanes. ``path``: for error messages.

    Raises ConfigError with file and line for a lane out of range or no integer, a repeated key, an unknown key in
    parentheses, an unknown hash method, a bad escape, a pattern that cannot be read, or bytes that are not UTF-8.
    """
    reader = _Reader(path, lanes)
    for entry in parse_properties(_decoded(content, path), path):
        reader.read(entry)
    reader.check_divided()
    return ShardList(
        path=path,
        explicit=MappingProxyType(reader.explicit),
        globs=tuple(reader.globs),
        default=reader.default,
        critical=reader.critical,
        divided=reader.divided,
        hash_method=reader.hash_method,
        pattern=reader.pattern,
        lines=MappingProxyType(reader.lines),
    )


def _decoded(content: str | bytes, path: str) -> str:
    try:
        text = content if isinstance(content, str) else content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: not UTF-8; save the file as UTF-8, or write \\u escapes") from None
    return text.removeprefix("\ufeff")


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _LONGEST else f"{text[:_LONGEST]!r} ..."


class _Reader:
    def __init__(self, path: str, lanes: int) -> None:
        self.path = path
        self.lanes = lanes
        self.lines: dict[str, int] = {}
        self.explicit: dict[str, Entry] = {}
        self.globs: list[Entry] = []
        self.default: int | None = None
        self.critical: frozenset[str] = frozenset()
        self.divided: frozenset[str] = frozenset()
        self.hash_method = HashMethod.STRING_HASH
        self.pattern: str | None = None

    def read(self, entry: Property) -> None:
        where = f"{self.path}:{entry.line}: "
        if entry.key == "":
            raise ConfigError(f"{where}a line without a key; expected shard=lane")
        if entry.key in self.lines:
            raise ConfigError(f"{where}{entry.key!r} is already in line {self.lines[entry.key]}; remove one of them")
        self.lines[entry.key] = entry.line
        special = SPECIAL_KEYS.get(entry.key)
        if special is not None:
            special(self, where, entry.value)
        elif entry.key.startswith("(") and entry.key.endswith(")"):
            raise ConfigError(f"{where}unknown key {entry.key}; known: {', '.join(SPECIAL_KEYS)}")
        else:
            placed = Entry(entry.key, self._lane(where, entry.key, entry.value, 0), entry.line)
            if _GLOB_CHARACTERS.isdisjoint(entry.key):
                self.explicit[entry.key] = placed
            else:
                self.globs.append(placed)

    def _lane(self, where: str, key: str, value: str, lowest: int) -> int:
        expected = f"a lane {lowest}..{self.lanes - 1}"
        if _INTEGER.fullmatch(value) is None:
            raise ConfigError(
                f"{where}{_shown(key)}: expected {expected}, got {_shown(value)}; blanks, '=' and ':' in a name, and "
                "'#' at its beginning, must have a backslash before them"
            )
        lane = int(value)
        if not lowest <= lane < self.lanes:
            raise ConfigError(
                f"{where}{key!r}: expected {expected}, got {lane}; the channel has {plural(self.lanes, 'lane')}"
            )
        return lane

    def _default(self, where: str, value: str) -> None:
        lane = self._lane(where, "(*)", value, -1)
        self.default = None if lane < 0 else lane

    def _critical(self, _where: str, value: str) -> None:
        self.critical = frozenset(_NAME_SEPARATORS.split(value)) - {""}

    def _divided(self, _where: str, value: str) -> None:
        self.divided = frozenset(_NAME_SEPARATORS.split(value)) - {""}

    def _pattern(self, where: str, value: str) -> None:
        # PyArrow is loaded for lists with a pattern only
        from binlane.database_pattern import DatabasePattern

        try:
            DatabasePattern(value)
            if not value.isprintable():
                raise ValueError("a character that cannot be printed")
        except ValueError as error:
            raise ConfigError(
                f"{where}(pattern): expected a regular expression in RE2's dialect with a group (?<shard>...), such as "
                rf"^(?<shard>[a-z0-9]+)_(main|stats)$, with each backslash doubled; got {_shown(value)}: {error}"
            ) from None
        self.pattern = value

    def check_divided(self) -> None:
        """Raises ConfigError for an entry or a critical shard that contradicts ``(divided)``."""
        if not self.divided:
            return
        where = f"{self.path}:{self.lines['(divided)']}: (divided)"
        for name in sorted(self.critical):
            if any(fnmatchcase(name, pattern) for pattern in self.divided):
                raise ConfigError(
                    f"{where}: {name!r} is also in (critical), whose transactions one lane applies alone; remove it "
                    "from one of them"
                )
        for entry in self.explicit.values():
            if entry.key in _SPECIAL or entry.key in self.critical:
                raise ConfigError(
                    f"{where}: {entry.key!r} has a lane in line {entry.line}; with divided shards the serialized lane "
                    "applies all barriers; remove that line"
                )
            if any(fnmatchcase(entry.key, pattern) for pattern in self.divided):
                raise ConfigError(
                    f"{where}: {entry.key!r} has a lane in line {entry.line}, and a divided shard has all lanes; "
                    "remove one of them"
                )

    def _hash_method(self, where: str, value: str) -> None:
        try:
            self.hash_method = HashMethod(value)
        except ValueError:
            known = " or ".join(HashMethod)
            raise ConfigError(f"{where}unknown hash method {value!r}; expected {known}") from None


SPECIAL_KEYS: Final[Mapping[str, Callable[[_Reader, str, str], None]]] = {
    "(*)": _Reader._default,
    "(critical)": _Reader._critical,
    "(divided)": _Reader._divided,
    "(hash-method)": _Reader._hash_method,
    "(pattern)": _Reader._pattern,
}
"""Keys in parentheses, each with the reader of its value."""


def string_hash(text: str) -> int:
    """Java's ``String.hashCode``: over UTF-16 code units, s[0]*31^(n-1) + ..., as a signed 32-bit integer."""
    units = text.encode("utf-16-le", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2], "little")) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def hash_lane(shard: str, lanes: int) -> int:
    """The lane by ``string-hash``, as in Tungsten; but correct for the hash -2^31, whose Java ``Math.abs`` is
    negative."""
    return abs(string_hash(shard)) % lanes


def critical_shards(
    shard_list: ShardList, groups: Mapping[str, str], renaming: Renaming, letter_case: LetterCase
) -> frozenset[str]:
    """The shards of ``(critical)`` and the databases joined to them by foreign keys; arguments as for
    ``Partitioner``."""
    names = (letter_case.name(renaming.target(name)) for name in shard_list.critical)
    return frozenset(groups.get(name, name) for name in names)


class Partitioner:
    """Shard -> lane for one window. Lanes 0 .. ``lanes`` - 1 are parallel, lane ``lanes`` is the serialized lane."""

    def __init__(
        self,
        shard_list: ShardList,
        lanes: int,
        order_of_appearance: Iterable[str],
        groups: Mapping[str, str] | None = None,
        renaming: Renaming = AS_THEY_ARE,
        letter_case: LetterCase = AS_TYPED,
        loads: Mapping[str, int] | None = None,
    ) -> None:
        """``order_of_appearance``: shards in the order in which the window first names them, for round-robin and load.
        ``groups``: shard -> the shard that stands for those that foreign keys join; a group has one lane.
        ``renaming``: the list has the source's names, shards the target's. ``letter_case``: how names are compared;
        shards are converted by it. ``loads``: the bytes of each shard in the window, for load.

        Raises ConfigError if the list gives two members of a group, or one name in two spellings, different lanes.
        """
        shard_list = shard_list.compared(letter_case) if letter_case.folds else shard_list
        self._list = shard_list
        self._letter_case = letter_case
        self._renaming = renaming
        self._lanes = lanes
        self._groups = {} if groups is None else groups
        members: dict[str, set[str]] = {}
        for name, representative in self._groups.items():
            members.setdefault(representative, {representative}).add(name)
        self._members = members
        self._entries = {representative: self._group_entry(names) for representative, names in members.items()}
        self._critical = critical_shards(shard_list, self._groups, renaming, letter_case)
        found = dict.fromkeys(map(self._shard, order_of_appearance))
        turns = [shard for shard in found if not self._is_placed(shard)]
        self._turns: Mapping[str, int] = {shard: turn % lanes for turn, shard in enumerate(turns)}
        if shard_list.hash_method is HashMethod.LOAD:
            self._turns = self._by_load(found, turns, loads or {})

    def _is_placed(self, shard: str) -> bool:
        return self._entry(shard) is not None or self.is_critical(shard) or self.is_divided(shard)

    def _by_load(self, found: Iterable[str], left: Iterable[str], loads: Mapping[str, int]) -> Mapping[str, int]:
        """The biggest of the shards ``left`` first, each to the lane that has the least so far; equal ones by name,
        equal lanes by number."""
        sizes: dict[str, int] = {}
        for name, size in loads.items():
            sizes[self._shard(name)] = sizes.get(self._shard(name), 0) + size
        full = [0] * self._lanes
        for shard in found:
            entry = None if self.is_divided(shard) else self._entry(shard)
            if entry is not None:
                full[entry.lane] += sizes.get(shard, 0)
        turns: dict[str, int] = {}
        for shard in sorted(left, key=lambda shard: (-sizes.get(shard, 0), shard)):
            turns[shard] = full.index(min(full))
            full[turns[shard]] += sizes.get(shard, 0)
        return turns

    def is_critical(self, shard: str) -> bool:
        """Whether the shard needs a barrier of all lanes: ``#GLOBAL``, ``#UNKNOWN``, reference shards and their
        groups."""
        return shard in _SPECIAL or self._shard(shard) in self._critical

    def is_divided(self, shard: str) -> bool:
        """Whether the shard's changes are dealt to all parallel lanes: ``(divided)`` names it, or a database that
        foreign keys join to it."""
        return any(self._list.divides(self._name(name)) for name in self._members.get(self._shard(shard), {shard}))

    def lane_of(self, shard: str) -> int:
        """The lane of a shard; for a critical shard without an entry, the serialized lane; for a divided one, the first
        of its lanes.

        Raises PlanError if round-robin or load meets a shard that is not in the order of appearance.
        """
        shard = self._shard(shard)
        if self.is_divided(shard):
            return 0
        entry = self._entry(shard)
        if entry is not None:
            return entry.lane
        if self.is_critical(shard):
            return self._lanes
        if self._list.default is not None:
            return self._list.default
        if self._list.hash_method is HashMethod.STRING_HASH:
            return hash_lane(self._name(shard), self._lanes)
        if shard not in self._turns:
            raise PlanError(
                f"shard {shard!r}: expected it in the window's order of appearance ({self._list.hash_method}), found "
                "it missing; run the plan job again"
            )
        return self._turns[shard]

    def _shard(self, name: str) -> str:
        return self._groups.get(name, name)

    def _name(self, shard: str) -> str:
        """The shard's name in the shard list."""
        name = None if shard in SPECIAL_SHARDS else self._renaming.source(shard)
        return shard if name is None else self._letter_case.name(name)

    def _entry(self, shard: str) -> Entry | None:
        return self._entries[shard] if shard in self._entries else self._list.entry_of(self._name(shard))

    def _group_entry(self, names: Iterable[str]) -> Entry | None:
        """The entry of a group: members' own entries before globs; all must give the same lane."""
        known = sorted(map(self._name, names))
        found = [entry for name in known if (entry := self._list.entry_of(name)) is not None]
        own = [entry for entry in found if self._list.explicit.get(entry.key) is entry]
        chosen = own if own else found
        if not chosen:
            return None
        first = chosen[0]
        for other in chosen[1:]:
            if other.lane != first.lane:
                path = self._list.path
                raise ConfigError(
                    f"{path}:{first.line}: {first.key!r} goes to lane {first.lane}, but {path}:{other.line}: "
                    f"{other.key!r} to lane {other.lane}, and foreign keys join these databases; give them one lane"
                )
        return first
