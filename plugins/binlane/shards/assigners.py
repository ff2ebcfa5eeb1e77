"""Shard assigners: which databases share a shard, and with it a lane and their commit order.

The lane of a shard is ``shard_list.Partitioner.lane_of``'s: the shard list names it, or a hash of the name does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final, Protocol

from binlane.choices import Assigner
from binlane.errors import ConfigError
from binlane.extension import chosen
from binlane.lazy_dataclass import dataclass
from binlane.model import SPECIAL_SHARDS
from binlane.schema.letter_case import LetterCase
from binlane.shards.renaming import Renaming
from binlane.shards.shard_list import ShardList, critical_shards


@dataclass(frozen=True, slots=True)
class AssignerRules:
    """What an assigner may ask of its channel."""

    shard_list: ShardList
    renaming: Renaming
    letter_case: LetterCase
    """How the target compares names: databases come in the form that it compares."""


class ShardAssigner(Protocol):
    """Maps databases to shards. One object serves a whole window."""

    def __init__(self, rules: AssignerRules) -> None:
        """Raises ConfigError for rules that do not fit the assigner."""

    def shard_of(self, database: str) -> str:
        """The shard of a database's changes: the same for the same name in every window of a channel.

        ``database``: its name on the target. Never called for critical databases of the shard list, ``#GLOBAL`` and
        ``#UNKNOWN``. Shards whose databases foreign keys join become one shard. Transactions of two shards may be
        applied in any order, unless one transaction changes both shards.
        """
        ...


class DatabaseAssigner:
    """A shard is a database."""

    def __init__(self, rules: AssignerRules) -> None:
        """Raises ConfigError for a shard list with a ``(pattern)``."""
        if rules.shard_list.pattern is not None:
            raise ConfigError(
                f'{rules.shard_list.path}: (pattern): expected lanes.assigner = "{Assigner.PATTERN}" in the channel '
                f'file, found "{Assigner.DATABASE}", by which each database is a shard; change one of them'
            )

    def shard_of(self, database: str) -> str:
        """The database itself."""
        return database


class PatternAssigner:
    """A shard is the text that the group ``shard`` of the list's ``(pattern)`` matches in the source's name of the
    database, as a tenant with several databases needs it; a database that does not match is a shard of its own."""

    def __init__(self, rules: AssignerRules) -> None:
        """Raises ConfigError for a list without ``(pattern)``, and for one that names a database where it has to name
        the database's shard."""
        # it loads PyArrow's functions, which few windows need
        from binlane.database_pattern import GROUP, DatabasePattern

        listed, letter_case = rules.shard_list, rules.letter_case
        if listed.pattern is None:
            raise ConfigError(
                f"{listed.path}: expected a line (pattern)=...(?<{GROUP}>...)..., which lanes.assigner = "
                f'"{Assigner.PATTERN}" of the channel file needs, found none'
            )
        self._renaming, self._letter_case = rules.renaming, letter_case
        self._pattern = DatabasePattern(listed.pattern, folds_names=letter_case.folds)
        for name, line in listed.named_shards():
            shard = self._pattern.shard_of(letter_case.name(name))
            if shard is not None and shard != letter_case.name(name):
                raise ConfigError(
                    f"{listed.path}:{line}: expected a shard, found {name!r}, a database that (pattern) puts into the "
                    f"shard {shard!r}; write {shard} in its place"
                )

    def shard_of(self, database: str) -> str:
        """The text of the group, renamed as the channel renames databases; else the database itself."""
        source = self._renaming.source(database)
        text = None if source is None else self._pattern.shard_of(self._letter_case.name(source))
        return database if text is None else self._letter_case.name(self._renaming.target(text))


ASSIGNERS: Final[Mapping[str, type[ShardAssigner]]] = {
    Assigner.DATABASE: DatabaseAssigner,
    Assigner.PATTERN: PatternAssigner,
}
"""Assigners by their word in ``lanes.assigner``."""


class Shards:
    """The shards of a window's databases: by its assigner, and joined where foreign keys join their databases."""

    def __init__(self, assigner: str, rules: AssignerRules, groups: Mapping[str, str]) -> None:
        """``assigner``: ``lanes.assigner``. ``groups``: database -> representative of its foreign key group.

        Raises ConfigError for an assigner that is not known here or does not fit the shard list.
        """
        self._assigner = chosen(ASSIGNERS, assigner, "lanes.assigner")(rules)
        self._critical = critical_shards(rules.shard_list, groups, rules.renaming, rules.letter_case)
        members: dict[str, set[str]] = {}
        for name, group in groups.items():
            members.setdefault(group, {group}).add(name)
        alone = {name: group for name, group in groups.items() if group in self._critical}
        joined = [
            {self._assigner.shard_of(name) for name in names}
            for group, names in members.items()
            if group not in self._critical
        ]
        self.joined: Mapping[str, str] = {**_representatives(joined), **alone}
        """Shard -> the shard that stands for it and those that foreign keys join to it: ``groups`` of a
        ``Partitioner``."""

    def shard_of(self, group: str) -> str:
        """The shard of a database, or of a foreign key group by its representative. Critical groups and special
        shards are their own shard."""
        if group in SPECIAL_SHARDS or group in self._critical:
            return group
        shard = self._assigner.shard_of(group)
        return self.joined.get(shard, shard)


def _representatives(joined: Iterable[Set[str]]) -> dict[str, str]:
    """Each shard's representative: the smallest name of all that sets with a common member join."""
    sets: dict[str, set[str]] = {}
    for shards in joined:
        union = set(shards).union(*(sets[shard] for shard in shards if shard in sets))
        sets |= dict.fromkeys(union, union)
    return {shard: min(union) for shard, union in sets.items()}
