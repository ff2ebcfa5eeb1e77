"""Compares definitions of source and target: differences that servers accept without an error when rows are written.

Servers of one version print a definition alike, so all of it is compared (``Depth.EXACT``). Other versions of the
family spell types, views and modes differently, the other family nearly everything: there only facts are compared whose
spelling is known for both. Definitions that an account cannot see are not compared, but reported.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, field, replace
from enum import IntEnum
from functools import cached_property, partial
from typing import Final

import pymysql

from binlane.binlog.types.literals import identifier, quoted
from binlane.choices import FilterKind, FilterPolicy
from binlane.errors import SourceError
from binlane.lazy_dataclass import dataclass
from binlane.model import SchemaObject, TableKey
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.plan.transaction.rename import is_alias, meant, name_of, renamed_schema
from binlane.schema.compare import Rules
from binlane.schema.letter_case import LetterCase, lower
from binlane.schema.model import Schema, Table
from binlane.schema.normalize import SAME_COLLATION, across_families
from binlane.servers.stored_bodies import is_gone
from binlane.servers.variables import version_number
from binlane.shards.left_out_parents import keys_left_out
from binlane.shards.renaming import Renaming
from binlane.shards.selection import Extent, Selection
from binlane.sql.parse.lexer import QUALIFIER
from binlane.sql.programs.equivalence import Equivalence
from binlane.verify.definitions import accounts
from binlane.verify.definitions.definition_reader import (
    DATABASE,
    ORDER,
    SEQUENCE,
    TABLE,
    TRIGGER,
    VIEW,
    Facts,
    privilege_to_see,
    read_objects,
    read_sequences,
    read_table_collations,
    table_statement,
)
from binlane.verify.definitions.mend import Mend, nothing
from binlane.verify.definitions.mend import one as one_statement
from binlane.verify.definitions.object_mends import Creation, removal
from binlane.verify.definitions.show_create import parts_of_both, sequence_mend, table_mend, without_collation
from binlane.verify.definitions.table_facts import TableFacts, differing_parts, read_table_facts
from binlane.verify.definitions.table_mends import TableTexts
from binlane.verify.definitions.visibility import Visibility
from binlane.verify.rows.sides import Pair

NAMED: Final = frozenset({TABLE, SEQUENCE, VIEW})
"""Kinds of objects that the parser of statements finds by name."""
_WIDTH: Final = 200
"""Characters of a definition shown in a message; all of it is stored."""
_EVERY_ACCOUNT: Final = SchemaObject(accounts.KIND, "", "")
_HIDDEN: Final = frozenset({"definition", "body"})
"""Facts that an account may not be allowed to see although it sees the object."""


class Depth(IntEnum):
    """How much of the two servers' definitions is spelled alike."""

    FAMILIES = 0
    VERSIONS = 1
    EXACT = 2


@dataclass(frozen=True, slots=True)
class DefinitionDifference:
    """One fact of a definition that differs between the servers."""

    schema_object: SchemaObject
    """With the target's names."""
    what: str
    """The fact, such as ``index `k```; empty: the object itself."""
    source: str | None
    """None: missing there."""
    target: str | None
    mend: Mend
    table: TableKey | None = None
    """A trigger's table: few statements give the trigger's own name."""

    def __str__(self) -> str:
        mend, name = f"; {self.mend}" if str(self.mend) else "", str(self.schema_object).rstrip()
        if not self.what:
            there, lacking = ("source", "target") if self.target is None else ("target", "source")
            return f"{name}: exists on the {there} and not on the {lacking}{mend}"
        source, target = (_shown(value) for value in (self.source, self.target))
        return f"{name}: {self.what}: source {source}, target {target}{mend}"


@dataclass(frozen=True)
class Definitions:
    """Compares the definitions of a channel's servers."""

    pair: Pair
    schemas: tuple[Schema, Schema]
    """Source and target."""
    rules: ChannelRules
    visibility: Visibility
    accounts: bool = False
    """Whether accounts are compared, too."""
    unseen: set[str] = field(default_factory=set)
    """Objects that were not compared, with the reason; filled by ``differences``."""
    hidden: set[tuple[SchemaObject, str]] = field(default_factory=set)
    """Parts of objects that an account was not shown; filled by ``differences``."""
    tables: dict[SchemaObject, TableKey] = field(default_factory=dict)
    """Tables of triggers, by the target's names; filled by ``differences``."""
    counted: list[int] = field(default_factory=lambda: [0])
    """Number of tables and other objects that were compared."""

    def differences(self, only: Collection[SchemaObject] | None = None) -> Iterator[DefinitionDifference]:
        """All differences, or those of some objects. Raises SourceError, and the driver's errors for the target."""
        yield from self._tables(only)
        if only is None or any(obj.kind not in (TABLE, SEQUENCE) for obj in only):
            yield from self._objects(only)
        if self.accounts if only is None else any(obj.kind.startswith(accounts.KIND) for obj in only):
            yield from self._accounts(only)

    @property
    def selection(self) -> Selection:
        """The channel's filter."""
        return self.rules.selection

    @property
    def renaming(self) -> Renaming:
        """Names of the source's databases on the target."""
        return self.rules.renaming

    @cached_property
    def depth(self) -> Depth:
        """From the two servers' families and versions."""
        source, target = self.schemas
        if source.flavor is not target.flavor:
            return Depth.FAMILIES
        same = version_number(source.version) == version_number(target.version)
        return Depth.EXACT if same and not self.rules.collations else Depth.VERSIONS

    def _tables(self, only: Collection[SchemaObject] | None) -> Iterator[DefinitionDifference]:
        source, target = self.schemas
        sequences = read_sequences(self.pair.source, source.flavor)
        collations = None if self.depth is Depth.EXACT else [read_table_collations(side) for side in self.pair.sides]
        for ours in source.tables.values():
            if self.selection.table(ours.key) is not None or self.renaming.refusal(ours.key.database) is not None:
                continue
            named = self.renaming.table(ours.key)
            theirs = target.table(named)
            kind = SEQUENCE if ours.key in sequences else TABLE
            obj = SchemaObject(kind, *((named.database, named.table) if theirs is None else astuple(theirs.key)))
            if only is not None and obj not in only:
                continue
            self.counted[0] += only is None
            if theirs is None:
                yield from self._one(obj, "", "there", None, self._creation([obj]))
            else:
                try:
                    yield from self._table(obj, ours, theirs, collations)
                except (SourceError, pymysql.err.MySQLError) as exc:
                    # dropped since the schemas were read: the comparison of rows reports it
                    if not is_gone(exc):
                        raise

    def _table(
        self, obj: SchemaObject, ours: Table, theirs: Table, collations: Sequence[Mapping[TableKey, str]] | None
    ) -> Iterator[DefinitionDifference]:
        if collations is None:
            yield from self._exactly(obj, ours, theirs)
        else:
            yield from self._known(obj, ours, theirs)
            yield from self._default(obj, collations[0].get(ours.key), collations[1].get(theirs.key))

    def _exactly(self, obj: SchemaObject, ours: Table, theirs: Table) -> Iterator[DefinitionDifference]:
        is_sequence = obj.kind == SEQUENCE
        statements = [
            table_statement(side, table.key, is_sequence=is_sequence)
            for side, table in zip(self.pair.sides, (ours, theirs), strict=True)
        ]
        source, target = (self._named(text, on_target=place == 1) for place, text in enumerate(statements))
        if source == target:
            return
        name = f"{identifier(theirs.key.database)}.{identifier(theirs.key.table)}"
        if is_sequence:
            ours_text, theirs_text = (text.split("\n", 1)[0] for text in (source, target))
            yield from self._one(obj, "definition", ours_text, theirs_text, sequence_mend(name, statements[0]))
            return
        parts = parts_of_both(source, target)
        left_out = set(self._left_out(ours, parts[1]))
        # in a statement the source's own text, which names other databases in foreign keys only
        spelled = [
            dict(zip(named, plain.values(), strict=True))
            for named, plain in zip(parts, parts_of_both(*statements), strict=True)
        ]
        alike = _of_one_collation(ours, theirs)
        for part in _of_either(*parts):
            if part in left_out:
                continue
            if part.startswith("foreign key") and part in spelled[0]:
                spelled[0][part] = self._renamed_in(spelled[0][part])
            line, other = (each.get(part) for each in parts)
            is_alike = part.lower() in alike
            if is_alike and line and other:
                line, other = without_collation(line), without_collation(other)
            mend = table_mend(name, part, *spelled, same_collation=is_alike)
            yield from self._one(obj, part, line, other, mend)

    def _left_out(self, ours: Table, theirs: Mapping[str, str]) -> Iterator[str]:
        """Foreign keys to tables that the filter leaves out and that the target does not have: it could not hold to
        them. ``theirs``: the parts of the target's table."""
        for each in keys_left_out(ours, self.selection):
            part = f"foreign key {identifier(each.name)}"
            if part not in theirs:
                yield part

    def _known(self, obj: SchemaObject, ours: Table, theirs: Table) -> Iterator[DefinitionDifference]:
        """The differences that other versions and families do not spell differently."""
        named = self._renamed.tables.get(self.renaming.table(ours.key), ours)
        there = {replace(each, name="") for each in theirs.foreign_keys}
        left_out = keys_left_out(ours, self.selection)
        keys = (
            foreign
            for each, foreign in zip(ours.foreign_keys, named.foreign_keys, strict=True)
            if each not in left_out or replace(foreign, name="") in there
        )
        named = replace(named, foreign_keys=tuple(keys))
        empty = TableFacts()
        facts = tuple(
            side.get(table.key, empty) for side, table in zip(self._facts_of_tables, (ours, theirs), strict=True)
        )
        flavors = self.schemas[0].flavor, self.schemas[1].flavor
        rules = Rules(
            flavors[0] is flavors[1],
            self.schemas[1].collations,
            allow_non_transactional=True,
            collations=self.rules.collations.given,
            letters=LetterCase(any(schema.folds_names for schema in self.schemas)),
        )
        name = f"{identifier(theirs.key.database)}.{identifier(theirs.key.table)}"
        texts = TableTexts(name, partial(self._shown, ours, theirs), self.schemas[1].collations, not rules.same_flavor)
        for part in differing_parts(named, theirs, (facts[0], facts[1]), rules, flavors, texts):
            if part.undecided:
                self.unseen.add(f"{obj}: {part.what}: {part.undecided}")
            else:
                yield from self._one(obj, part.what, part.source, part.target, part.mend)

    def _shown(self, ours: Table, theirs: Table) -> tuple[str, str]:
        source, target = zip(self.pair.sides, (ours, theirs), strict=True)
        return table_statement(source[0], source[1].key, is_sequence=False), table_statement(
            target[0], target[1].key, is_sequence=False
        )

    @cached_property
    def _facts_of_tables(self) -> tuple[dict[TableKey, TableFacts], dict[TableKey, TableFacts]]:
        ours, theirs = (
            read_table_facts(side, schema) for side, schema in zip(self.pair.sides, self.schemas, strict=True)
        )
        return ours, theirs

    def _default(self, obj: SchemaObject, ours: str | None, theirs: str | None) -> Iterator[DefinitionDifference]:
        """The default collation of a database or a table, if the target could have the source's."""
        known = self.schemas[1].collations
        given = self.rules.collations.given.get(ours or "")
        if given is not None:
            ours = given
        elif ours and self.schemas[0].flavor is not self.schemas[1].flavor:
            ours = across_families(ours, known)
        wanted = SAME_COLLATION.get(ours or "", ours)
        if not ours or not theirs or SAME_COLLATION.get(theirs, theirs) == wanted or not {ours, wanted} & known:
            return
        collation = ours if ours in known else wanted
        name = identifier(obj.database) + (f".{identifier(obj.name)}" if obj.name else "")
        yield from self._one(
            obj,
            "default collation",
            ours,
            theirs,
            one_statement(f"ALTER {obj.kind.upper()} {name} COLLATE {collation}"),
        )

    def _objects(self, only: Collection[SchemaObject] | None) -> Iterator[DefinitionDifference]:
        ours, theirs = self._read(None if only is None else {obj.database for obj in only})
        for obj in sorted(ours.keys() | theirs.keys()):
            if not (only is None or obj in only) or not self._is_seen(obj):
                continue
            self.counted[0] += only is None and obj in ours
            source, target = ours.get(obj), theirs.get(obj)
            if obj.kind == TRIGGER:
                self.tables[obj] = TableKey(obj.database, (source or target or {}).get("table") or "")
            if source is None or target is None:
                there, lacking = ("there", None) if target is None else (None, "there")
                yield from self._one(obj, "", there, lacking, self._missing(obj, ours) if source else removal(obj))
                continue
            yield from self._facts(obj, source, target, ours)

    def _accounts(self, only: Collection[SchemaObject] | None) -> Iterator[DefinitionDifference]:
        source, target = self.schemas
        # a first copy may have made them once, and no window follows what the source does to them since
        of_both = self.selection.policy(FilterKind.ACCOUNTS) == FilterPolicy.IGNORE
        exact, same_names = self.depth is Depth.EXACT and not self.renaming, not self.renaming
        flavors = source.flavor, target.flavor
        found = accounts.Accounts(self.pair.sides, flavors, exact, same_names, of_both=of_both, unseen=self.unseen)
        for part in found.differing():
            if only is None or part.account in only:
                yield DefinitionDifference(part.account, part.what, part.source, part.target, part.mend)
        if found.is_unread:
            self.hidden.add((_EVERY_ACCOUNT, ""))

    def _facts(
        self, obj: SchemaObject, source: Facts, target: Facts, present: Mapping[SchemaObject, Facts]
    ) -> Iterator[DefinitionDifference]:
        for what in _of_either(source, target):
            ours, theirs = source.get(what), target.get(what)
            if what == "default collation":
                yield from self._default(obj, ours, theirs)
            elif self.depth is not Depth.EXACT and not (what in source and what in target):
                continue  # one of the servers does not have it
            elif what in _HIDDEN and not (ours and theirs):
                side = "source" if not ours else "target"
                self.unseen.add(f"definition of {obj}: the {side}'s account may not see it")
                self.hidden.add((obj, what))
            elif ours is None or theirs is None:
                if ours != theirs:
                    yield from self._one(obj, what, ours, theirs, self._made(obj, present))
            else:
                yield from self._spelled(obj, what, ours, theirs, present)

    def _spelled(
        self, obj: SchemaObject, what: str, ours: str, theirs: str, present: Mapping[SchemaObject, Facts]
    ) -> Iterator[DefinitionDifference]:
        """The difference between two texts of a fact, if it is one."""
        if what == "definition":
            ours, theirs = self._named(ours, on_target=False), self._named(theirs, on_target=True)
        elif what == "body":
            # as typed on both servers: only qualifying names differ, where databases are renamed
            ours, theirs = self._renamed_in(ours), self._renamed_in(theirs, on_target=True)
        elif what == "table":
            ours, theirs = self._cased(ours), self._cased(theirs)
        if ours == theirs or (self.depth is not Depth.EXACT and not self._equivalence.differs(what, ours, theirs)):
            return
        undecided = "" if self.depth is Depth.EXACT else self._equivalence.undecided(what, ours, theirs)
        if undecided:
            self.unseen.add(f"{what} of {obj}: {undecided}")
        else:
            yield from self._one(obj, what, ours, theirs, self._made(obj, present))

    @cached_property
    def _equivalence(self) -> Equivalence:
        source, target = self.schemas
        return Equivalence((source.flavor, target.flavor), target.collations, self.rules.collations.given)

    def _missing(self, obj: SchemaObject, present: Mapping[SchemaObject, Facts]) -> Mend:
        return self._creation([obj]) if obj.kind == DATABASE else self._made(obj, present)

    def _made(self, obj: SchemaObject, present: Mapping[SchemaObject, Facts]) -> Mend:
        """The statements that give the target the source's object. ``present``: the source's objects.

        A trigger fires in the order of creation, so those that follow it on the source are created anew, too.
        """
        if obj.kind == DATABASE:
            comment = present[obj].get("comment")
            return one_statement(f"ALTER DATABASE {identifier(obj.database)} COMMENT = {quoted(comment or '')}")
        if obj.kind != TRIGGER:
            return self._creation([obj])
        facts = present[obj]
        group = [
            (int(other[ORDER] or 0), each)
            for each, other in present.items()
            if each.kind == TRIGGER
            and each.database == obj.database
            and (other["table"], other["time"]) == (facts["table"], facts["time"])
            and int(other[ORDER] or 0) >= int(facts[ORDER] or 0)
        ]
        return self._creation([each for _, each in sorted(group)])

    def _creation(self, objects: Sequence[SchemaObject]) -> Mend:
        """The statements that create the source's objects on the target."""
        [source, target], first = self.schemas, objects[0]
        changed = self.rules.collations or source.folds_names != target.folds_names
        if changed or self.renaming.source(first.database) != first.database:
            return nothing(f"see SHOW CREATE {first.kind.upper()} on the source: its text is not the target's")
        return Creation(self.pair.source, (source.flavor, target.flavor), target.collations).of(objects)

    def _one(
        self, obj: SchemaObject, what: str, source: str | None, target: str | None, mend: Mend
    ) -> Iterator[DefinitionDifference]:
        """The difference, if there is one and the channel's filter does not cause it."""
        if source == target:
            return
        kinds = _INTENDED_BY[source is not None, target is not None]
        if not any(self.selection.policy(kind) == FilterPolicy.IGNORE for kind in kinds):
            yield DefinitionDifference(obj, what, source, target, mend, self.tables.get(obj))

    def _read(self, only: Collection[str] | None) -> tuple[dict[SchemaObject, Facts], dict[SchemaObject, Facts]]:
        """The objects of both servers, with the target's names; ``only``: in these databases of the target."""
        source, target = self.schemas
        names = {name: self._cased(self.renaming.target(name)) for name in source.databases if self._takes(name)}
        names = {name: new for name, new in names.items() if only is None or new in only}
        there = {name for name in target.databases if self._cased(name) in names.values()}
        ours = {
            SchemaObject(obj.kind, names[obj.database], self._cased(obj.name)): facts
            for obj, facts in read_objects(self.pair.source, source.flavor, names).items()
            if self._takes_object(obj, facts)
        }
        theirs = {
            SchemaObject(obj.kind, self._cased(obj.database), self._cased(obj.name)): facts
            for obj, facts in read_objects(self.pair.target, target.flavor, there).items()
            if self._takes_object(obj._replace(database=self.renaming.source(obj.database) or ""), facts)
        }
        return ours, theirs

    def _takes(self, database: str) -> bool:
        return self.selection.database(database)[0] is not Extent.NONE and self.renaming.refusal(database) is None

    def _takes_object(self, obj: SchemaObject, facts: Facts) -> bool:
        """Whether the filter takes an object, by the source's names; a trigger follows its table."""
        if obj.kind not in (VIEW, TRIGGER):
            return True
        table = obj.name if obj.kind == VIEW else facts.get("table") or ""
        return self.selection.table(TableKey(obj.database, table)) is None

    def shows(self, obj: SchemaObject, what: str) -> bool:
        """Whether ``differences`` tells of a part of an object: both accounts see it."""
        if obj.kind.startswith(accounts.KIND):
            return (_EVERY_ACCOUNT, "") not in self.hidden
        is_table = obj.kind in (TABLE, SEQUENCE) and self.schemas[1].table(obj.key) is not None
        return (obj, what) not in self.hidden and (is_table or self._is_seen(obj))

    def _is_seen(self, obj: SchemaObject) -> bool:
        privilege = privilege_to_see(obj.kind)
        for is_source, name in (
            (True, self.renaming.source(obj.database) or ""),
            (False, obj.database),
        ):
            if not self.visibility.holds(is_source, privilege, name):
                server = "source" if is_source else "target"
                self.unseen.add(f"{obj.kind}s of {name}: the {server}'s account lacks {privilege} there")
                return False
        return True

    def _cased(self, name: str) -> str:
        return lower(name) if any(schema.folds_names for schema in self.schemas) else name

    def _named(self, text: str, *, on_target: bool) -> str:
        """A definition that a server has printed, with the target's names of databases, and with the names in backticks
        as the servers compare them. Strings stay as they are: defaults, comments, members."""
        new_name = partial(self._new_name, on_target=on_target)
        return _PRINTED.sub(lambda found: found[0] if found["string"] else self._cased(new_name(found)), text)

    def _renamed_in(self, text: str, *, on_target: bool = False) -> str:
        return QUALIFIER.sub(partial(self._new_name, on_target=on_target), text) if self._of_rules else text

    def _new_name(self, match: re.Match[str], *, on_target: bool) -> str:
        name = (match["quoted"] or match["plain"] or "").replace("``", "`")
        is_one = name in self._of_rules and not is_alias(match.string, match)
        return f"{identifier(meant(self.renaming, name, on_target=on_target))}." if is_one else match[0]

    @cached_property
    def _of_rules(self) -> frozenset[str]:
        """The names of databases with which the channel's renames have to do, of both servers."""
        renamed = [name for name in self.schemas[0].databases if self.renaming.changes(name)]
        return frozenset((*renamed, *map(self.renaming.target, renamed)))

    @cached_property
    def _renamed(self) -> Schema:
        return renamed_schema(self.schemas[0], partial(name_of, self.renaming))


def _of_one_collation(source: Table, target: Table) -> frozenset[str]:
    """The parts of a table that are columns with the same collation on both servers, in lower case.

    A column's line in SHOW CREATE TABLE has its collation only where it is not the table's, and the tables' may differ.
    """
    theirs = {column.name.lower(): (column.charset, column.collation) for column in target.columns}
    return frozenset(
        f"column {identifier(column.name)}".lower()
        for column in source.columns
        if theirs.get(column.name.lower()) == (column.charset, column.collation)
    )


def _of_either(source: Mapping[str, object], target: Mapping[str, object]) -> list[str]:
    """The names in either mapping, the source's first."""
    return list(dict.fromkeys((*source, *target)))


def _shown(value: str | None) -> str:
    if value is None:
        return "none"
    return repr(value) if value == "" else value if len(value) <= _WIDTH else f"{value[:_WIDTH]}..."


_PRINTED: Final = re.compile(rf"(?P<string>'(?:[^'\\]|''|\\.)*')|{QUALIFIER.pattern}|`(?:[^`]|``)*`", re.DOTALL)
_INTENDED_BY: Final = {
    (True, False): (FilterKind.CREATE, FilterKind.ALTER, FilterKind.RENAME),
    (False, True): (FilterKind.DROP, FilterKind.DROP_DATABASE, FilterKind.ALTER, FilterKind.RENAME),
    (True, True): (FilterKind.ALTER, FilterKind.CREATE, FilterKind.DROP, FilterKind.RENAME),
}
"""By whether source and target have the object: the kinds of statements whose filter explains the difference."""
