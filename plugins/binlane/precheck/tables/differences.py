"""Databases and tables: source against target, the log against the target, and rows that the target would not keep."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from binlane.binlog.types.literals import identifier, quoted
from binlane.choices import Reduce
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey, plural
from binlane.precheck.situation.finding import Finding, findings_of
from binlane.precheck.situation.situation import Situation
from binlane.precheck.tables.definition_mends import mends_of_tables
from binlane.precheck.tables.lost_tables import copied_together
from binlane.safe_text import shown
from binlane.schema.compare import Severity
from binlane.schema.followers import acts
from binlane.schema.model import ForeignKey, Generated, Schema, Table
from binlane.schema.shell_names import shell_name
from binlane.shards.selection import Extent, Selection, pattern_of
from binlane.sql.logged_statement import LoggedText
from binlane.sql.requirements import HISTORY_BY_TRANSACTION, UNLOGGED_LENGTH
from binlane.state.records.databases import forgetting

_FIXED: Final[Mapping[tuple[int, int], int]] = {
    (10, 5): 25,
    (10, 6): 18,
    (10, 11): 8,
    (11, 0): 6,
    (11, 1): 6,
    (11, 2): 5,
    (11, 4): 3,
    (11, 8): 2,
}
"""By series, the first release that is known to have the fix: the release notes of 10.5.25 and 11.0.6 name it, and the
changelogs of the others include one of these, some by way of another. Tried: 10.5.23 ends; 10.11.18 and 11.8.6 do not.
What is older, and a series that is not here, may end, too, and is refused."""
_NEWER: Final = (11, 9)
"""Later series were branched from ones with the fix."""
_NEVER: Final = 1 << 16
_OPTION: Final = re.compile(r"\bREAD\s++ONLY\s*+(?:=\s*+)?(0|1|DEFAULT)\b", re.IGNORECASE)
_DEFAULTS: Final = frozenset({"COLLATE", "CHARACTER", "CHAR", "CHARSET", "ENCRYPTION"})
"""Words of the other options of ALTER DATABASE."""
_FIRST_COLUMN: Final = "next_not_cached_value"
_TODO_SEQUENCE: Final = (
    "upgrade the target; or leave the sequence out (docs/filters.md) and set it there by hand with SETVAL()"
)
_ENDS_IN_2106: Final = (11, 5, 1)
_ENDS: Final = {False: "2038-01-19 03:14:07.999999", True: "2106-02-07 06:28:15.999999"}
_ONE_BY_ONE: Final = frozenset({Reduce.OFF, Reduce.BLOCK})
_TODO_HISTORY: Final = (
    'set [blocks] transactions = 1 and reduce = "off" (slower); or leave the table out (docs/filters.md); or give it '
    "TIMESTAMP(6) for ROW START and ROW END on both servers"
)
_TODO_VERSIONED: Final = (
    "current rows of the one are history to the other: leave the table out (docs/filters.md), or let both servers be "
    "older than 11.5, or both newer"
)


def check_definitions(situation: Situation) -> Sequence[Finding]:
    """Tables whose definitions differ between source and target; for an archive, what the target's alone show."""
    # whoever may read no column of a table is told so by ``visibility``
    differences = tuple(one for one in situation.definition_differences if not _is_hidden(situation, one.table))
    if any(one.what == "table" for one in differences):
        # of a table that statements read, too, another check names the command
        lost = copied_together(situation).lacking
        differences = tuple(one for one in differences if one.what != "table" or one.table not in lost)
    if not any(one.severity is Severity.FATAL for one in differences):
        return findings_of(differences)
    mends, told = mends_of_tables(situation), set[TableKey]()
    found = []
    for one in differences:
        if one.severity is Severity.FATAL and one.table in mends and one.table not in told:
            told.add(one.table)
            one = replace(one, hint=f"{one.hint}; on the target: {mends[one.table]}")
        found.append(one)
    return findings_of(found)


def _is_hidden(situation: Situation, key: TableKey) -> bool:
    """Whether the source shows the table's name and none of its columns."""
    if situation.begun:
        return False
    table = None if situation.source_tables is None else situation.source_tables.table(key)
    return table is not None and not table.columns


def check_logged_tables(situation: Situation) -> Iterator[Finding]:
    """Tables whose columns in the log do not fit the target's definition."""
    for key, seqno, differences in situation.logged_differences:
        is_altered = situation.plan.altered.names(key)
        if differences is not None:
            later = _later_statement(situation, key, seqno) + _made_again(situation, key) if is_altered else ""
            yield from findings_of(
                replace(one, hint=f"{one.hint}{later}") if one.severity is Severity.FATAL else one
                for one in differences
            )
        elif is_altered:
            todo = f"rows of seqno {seqno} come before any DDL of the window that names it: "
            todo += _recopied(situation, key) or "create it as it was then"
            if any(key in text.facts.dropped for text in situation.asked.texts):
                todo += (
                    f"; or, because the window drops it, leave it out until the window is applied: [filter] "
                    f"exclude_tables = [{quoted(pattern_of(key))}]"
                )
            yield Finding(Severity.FATAL, f"{key}: table", "the table", "no such table", todo)


def _later_statement(situation: Situation, key: TableKey, seqno: int) -> str:
    """The window's first DDL of a table behind its rows of ``seqno``: somebody may have run it already."""
    for text in situation.asked.texts:
        if text.seqno > seqno and text.facts.first == key:
            return f"; if the target has this of seqno {text.seqno} already, undo it there: {shown(text.sql)}"
    return ""


def _made_again(situation: Situation, key: TableKey) -> str:
    """What leads out however the table differs: no server knows its definition at the watermark."""
    made = _recopied(situation, key)
    name = f"{identifier(key.database)}.{identifier(key.table)}"
    return f"; or SET SESSION foreign_key_checks = OFF; DROP TABLE {name} on the target: {made}" if made else ""


def _recopied(situation: Situation, key: TableKey) -> str:
    """The command that makes a table which the source still has; empty if there is none."""
    source = situation.source_tables
    if (
        source is None
        or situation.renaming
        or source.flavor is not situation.tables.flavor
        or source.table(key) is None
    ):
        return ""
    return f"`binlane recopy CHANNEL --table {shell_name(key)}` makes it with its rows"


def check_filtered_parents(situation: Situation) -> Iterator[Finding]:
    """Foreign keys with actions (CASCADE, SET NULL) from a replicated table to one that the filter leaves out.

    Servers do not log the rows that such a key changes. The keys are the source's, or for an archive the target's: of
    the databases that the window names, and where it leaves out anything, which may be a parent's rows, of all others.
    In a restore also those of the target's other databases to a table that it restores: rows in use would follow it.
    """
    tables = situation.tables_as_named.tables.items()
    keys = {key: table.foreign_keys for key, table in tables if table.foreign_keys}
    if situation.plan.filtered:
        keys |= situation.taken_foreign_keys
    yield from parents_left_out(situation.selection, keys)
    if situation.of_restore:
        yield from _followers_elsewhere(situation)


def _followers_elsewhere(situation: Situation) -> Iterator[Finding]:
    """Foreign keys with actions from a database of the target that a restore does not write to one that it does."""

    def is_restored(database: str) -> bool:
        source = situation.renaming.source(database)
        return source is not None and situation.selection.database(source)[0] is not Extent.NONE

    tables = situation.every_table.tables
    for child in sorted(tables, key=str):
        for key in () if is_restored(child.database) else tables[child].foreign_keys:
            if acts(key) and is_restored(key.parent.database):
                name = f"{identifier(child.database)}.{identifier(child.table)}"
                yield Finding(
                    Severity.FATAL,
                    f"{child}: foreign key {key.name}",
                    "no row of another database that follows those of a restore, which are of an earlier moment",
                    f"{key.parent}, ON DELETE {key.on_delete} ON UPDATE {key.on_update}",
                    f"ALTER TABLE {name} DROP FOREIGN KEY {identifier(key.name)} on the target, and make it again when "
                    "the restore is complete",
                )


def parents_left_out(selection: Selection, keys: Mapping[TableKey, Sequence[ForeignKey]]) -> Iterator[Finding]:
    """A finding for each foreign key that changes rows of a table that the filter takes with rows that it leaves out.
    ``keys``: by child, in the source's names."""
    for child in sorted(keys, key=str):
        if selection.table(child) is not None:
            continue
        for key in keys[child]:
            rule = selection.table(key.parent)
            if rule is not None and acts(key):
                yield Finding(
                    Severity.FATAL,
                    f"{child}: foreign key {key.name}",
                    "a parent that the filter takes, since servers do not log what they change by a foreign key",
                    f"{key.parent}, left out ({rule}), ON DELETE {key.on_delete} ON UPDATE {key.on_update}",
                    "take both tables or none: docs/filters.md",
                )


def check_sequences(situation: Situation) -> Iterator[Finding]:
    """Sequences, for a MariaDB target that row events of a sequence would crash (MDEV-31779)."""
    plan, target = situation.plan, situation.tables
    if target.flavor is not Flavor.MARIADB or takes_sequence_rows(situation.target.number):
        return
    made = {requirement.subject for requirement in plan.requirements if requirement.feature == "sequence"}
    for key in sorted(plan.table_maps, key=str):
        if key not in situation.by_sql and (str(key) in made or _is_sequence(target.table(key))):
            expected = "a target that accepts its rows"
            found = f"{target.version}, not known to have the fix of MDEV-31779: without it the server ends at them"
            yield Finding(Severity.FATAL, f"{key}: sequence", expected, found, _TODO_SEQUENCE)


def takes_sequence_rows(number: tuple[int, int, int]) -> bool:
    """Whether a MariaDB of that version is known to have the fix."""
    return number[:2] >= _NEWER or number[2] >= _FIXED.get(number[:2], _NEVER)


def _is_sequence(table: Table | None) -> bool:
    return table is not None and bool(table.columns) and table.columns[0].name == _FIRST_COLUMN


def check_versioning(situation: Situation) -> Iterator[Finding]:
    """System-versioned tables between a MariaDB before 11.5 and a newer one.

    A row that is current ends at the greatest TIMESTAMP: 2038-01-19 03:14:07.999999 up to 11.4, 2106-02-07
    06:28:15.999999 from 11.5 on (MDEV-32188, 64-bit servers). Row events carry it as any other value, so to a newer
    server the current rows of an older one would be history (tried on 10.11 and 11.8: SELECT finds none of them),
    without any error.
    """
    plan, target = situation.plan, situation.tables
    if (plan.flavor, target.flavor) != (Flavor.MARIADB, Flavor.MARIADB):
        return
    ours = situation.target.number >= _ENDS_IN_2106
    versions = situation.logged_versions
    others = sorted(version for version in versions if (versions[version] >= _ENDS_IN_2106) is not ours)
    if not others:
        return
    made = {requirement.subject for requirement in plan.requirements if requirement.feature == "system versioning"}
    for key in sorted(plan.table_maps, key=str):
        table = target.table(key)
        if str(key) in made or (table is not None and _ends_by_time(table)):
            expected = f"{_ENDS[not ours]}, as {others[0]} has it"
            yield Finding(
                Severity.FATAL,
                f"{key}: end of current rows",
                expected,
                f"{_ENDS[ours]} on {target.version}",
                _TODO_VERSIONED,
            )


def _ends_by_time(table: Table) -> bool:
    """Not by transaction ids, which end alike everywhere."""
    return table.system_versioned and not _has_history_by_transaction(table)


def _has_history_by_transaction(table: Table) -> bool:
    return any(column.generated is Generated.ROW_END and column.data_type == "bigint" for column in table.columns)


def check_transaction_histories(situation: Situation) -> Iterator[Finding]:
    """System-versioned tables whose versions are of transaction ids, in blocks of several transactions.

    MariaDB keeps one version of a row for each transaction of its own. A block is one transaction on the target, so of
    the versions that its source transactions have made only the last would stay.
    """
    plan, target = situation.plan, situation.tables
    settings = situation.settings.chosen(plan.size)
    if target.flavor is not Flavor.MARIADB or (settings.block_transactions == 1 and settings.reduce in _ONE_BY_ONE):
        return
    there = {key for key, table in target.tables.items() if _has_history_by_transaction(table)}
    made = {one.subject for one in plan.requirements if one.feature == HISTORY_BY_TRANSACTION}
    # CREATE TABLE ... LIKE it, or RENAME, gives another table its columns
    passed_on = any(plan.altered.names(key) for key in there) or (
        bool(there) and any(old in there for text in situation.every_text for old, _ in text.facts.copies)
    )
    # servers log statements for these tables, whatever binlog_format says
    for key in sorted({*situation.touched, *plan.written}, key=str):
        if key in there or str(key) in made or (passed_on and plan.altered.names(key)):
            yield Finding(
                Severity.FATAL,
                f"{key}: history by transaction ids",
                "a transaction of the target for each of the source's, or versions would be lost",
                f"blocks of up to {plural(settings.limits.transactions, 'transaction')}",
                _TODO_HISTORY,
            )


def check_renamed_databases(situation: Situation) -> Iterator[Finding]:
    """Databases that would have the same name on the target after renaming."""
    for name, why in situation.rename_conflicts:
        todo = "rename it, too, or leave it out (filter.exclude_databases): docs/renames.md"
        yield Finding(Severity.FATAL, f"{name}: database", "a name of its own on the target", why, todo)


def check_other_channels(situation: Situation) -> Iterator[Finding]:
    """Databases of the window that another channel writes on the same target."""
    for database, channel in situation.other_writers:
        todo = (
            "each can overwrite rows of the other, and no snapshot of the target is a state of a source: leave the "
            "database out of one of them (filter.exclude_databases), or rename it in one of them ([rename]); if "
            f"{channel} does not write it any more: {forgetting(channel, quoted(database))}"
        )
        expected, found = f"{situation.plan.channel} as the only channel that writes it", f"channel {channel}"
        yield Finding(Severity.FATAL, f"target: database {database}", expected, found, todo)


def check_letter_case(situation: Situation) -> Iterator[Finding]:
    """Names with capital letters, where ``lower_case_table_names`` differs between source and target."""
    for name, expected, found, todo in situation.letter_case_conflicts:
        yield Finding(Severity.FATAL, f"{name}: letters' case", f"{expected} as on the source", found, todo)


@dataclass(frozen=True, slots=True)
class _Spell:
    """The seqnos behind ``first``, and before ``last`` unless it is None, at which a database is READ ONLY."""

    first: int
    last: int | None

    def has(self, seqno: int) -> bool:
        return seqno > self.first and (self.last is None or seqno < self.last)


def check_read_only_databases(situation: Situation) -> Iterator[Finding]:
    """Databases that are READ ONLY where the window changes them.

    MySQL has the option since 8.0.22 (ALTER SCHEMA .. READ ONLY = 1). It binds every session but the
    server's own replica threads, so a target that is kept safe by it, and a source that writes again after lifting it
    with ``sql_log_bin = 0``, stop a lane (3989) where a replica goes on. There is no way round it: BINLOG, procedures
    and the cascades of foreign keys are refused as well; and while a lane lifted the option, or left out what the
    source's log sets, every other session could write what it may not write on a replica.
    """
    if not _may_be_read_only(situation):
        return
    for name, spells in sorted(_spells(situation).items()):
        changed = [(seqno, spell) for spell in spells for seqno in _changes(situation, name, spell)]
        if not changed:
            continue
        seqno, spell = min(changed, key=lambda each: each[0])
        todo = f"SET sql_log_bin = 0 and ALTER SCHEMA `{name}` READ ONLY = 0 on the target"
        if spell.first:
            todo = (
                f"the source has lifted it again without its log: run a window that ends with seqno {spell.first} "
                f"(--until with the GTID or the time of seqno {spell.first + 1}), then {todo}, then go on"
            )
        yield Finding(
            Severity.FATAL,
            f"{name}: database, at seqno {seqno}",
            "one that sessions may change",
            f"READ ONLY since seqno {spell.first}" if spell.first else "READ ONLY",
            todo,
            seqno,
        )


def _may_be_read_only(situation: Situation) -> bool:
    switches = (_option(statement) for statement in situation.asked.texts)
    return bool(situation.target.read_only_databases) or any(is_on is not None for is_on in switches)


def _spells(situation: Situation) -> dict[str, list[_Spell]]:
    """By name as the target compares it, there and as the window's statements change it."""
    compared = situation.tables.letter_case.name
    switches: dict[str, list[tuple[int, bool]]] = defaultdict(list)
    for name in situation.target.read_only_databases:
        switches[compared(name)].append((0, True))
    for statement in situation.every_text:
        is_on = _option(statement)
        if is_on is not None:
            for name in statement.facts.databases:
                switches[compared(name)].append((statement.seqno, is_on))
    found: dict[str, list[_Spell]] = defaultdict(list)
    for name, given in switches.items():
        since: int | None = None
        for seqno, is_on in given:
            if since is not None and not is_on:
                found[name].append(_Spell(since, seqno))
            since = (seqno if since is None else since) if is_on else None
        if since is not None:
            found[name].append(_Spell(since, None))
    return found


def _option(statement: LoggedText) -> bool | None:
    """What ALTER DATABASE sets the option to; None for a statement that leaves it. The servers allow 0, 1 and
    DEFAULT."""
    words = statement.words
    if words[:1] != ("ALTER",) or words[1:2] not in (("DATABASE",), ("SCHEMA",)):
        return None
    found = _OPTION.findall(statement.sql)
    return found[-1] == "1" if found else None


def _sets_more(statement: LoggedText) -> bool:
    """Whether an ALTER DATABASE that leaves the database READ ONLY sets anything else: no session may (3989)."""
    return _option(statement) is True and not _DEFAULTS.isdisjoint(statement.words)


def _changes(situation: Situation, name: str, spell: _Spell) -> Iterator[int]:
    """Seqnos in the spell at which the window changes the database."""
    plan, letters = situation.plan, situation.tables.letter_case
    for key in plan.applied_tables:
        if letters.name(key.database) == name:
            seqno = situation.first_rows(key, spell.first)
            if seqno is not None and spell.has(seqno):
                yield seqno
    for statement in situation.every_text:
        if name not in letters.names(statement.facts.databases) or not spell.has(statement.seqno):
            continue
        if _option(statement) is None or _sets_more(statement):
            yield statement.seqno
    seqno = situation.first_written(lambda database: letters.name(database) == name, spell.first)
    if seqno is not None and spell.has(seqno):
        yield seqno


def check_unlogged_lengths(situation: Situation) -> Iterator[Finding]:
    """Rows with fractions in MariaDB 5.3's format, for a target that would not read them as they are, by a table of
    that format with the same fractions. No log tells these: a table that the window does not make must have them on the
    source as it is now."""
    plan = situation.plan
    asked = {each.subject: seqno for each, seqno in plan.requirements.items() if each.feature == UNLOGGED_LENGTH}
    for key in sorted(plan.applied_tables, key=str) if asked else ():
        if str(key) in asked and (other := _other_reader(situation, key)) is not None:
            yield Finding(Severity.FATAL, str(key), _IN_OLD_FORMAT, *other, asked[str(key)])


def _other_reader(situation: Situation, key: TableKey) -> tuple[str, str] | None:
    """What would read a table's rows in another way than as they were written, and what to do."""
    if key in situation.by_sql:
        return "rows that statements write", 'write the rows with BINLOG statements: apply.writer = "binlog"'
    if situation.channel.apply.on_conflict.overwrites:
        return "apply.on_conflict = overwrite, which compares them", "use apply.on_conflict = stop"
    if situation.plan.altered.names(key) and situation.target.is_on("mysql56_temporal_format"):
        todo = "SET GLOBAL mysql56_temporal_format = OFF on the target, or alter the table on the source first"
        return "mysql56_temporal_format = ON, under which the window makes another format", todo
    source = situation.source_tables
    ours, theirs = (_fractions(tables, key) for tables in (source, situation.tables))
    if theirs is None:
        return None  # the window makes it
    if ours != theirs or not theirs:
        return (
            f"{_spelled(theirs)} on the target, {_spelled(ours)} on the source",
            "ALTER TABLE on the target until both are alike, or alter the table on the source, which brings it today's "
            "format",
        )
    return None


def _fractions(tables: Schema | None, key: TableKey) -> dict[str, int | None] | None:
    """The digits of a table's columns whose length is not logged; None if there is no such table."""
    table = None if tables is None else tables.table(key)
    return (
        None if table is None else {each.name.lower(): each.fsp for each in table.columns if each.has_unlogged_length}
    )


def _spelled(fractions: dict[str, int | None] | None) -> str:
    if fractions is None:
        return "no table"
    return ", ".join(f"{name}({digits})" for name, digits in fractions.items()) or "none"


_IN_OLD_FORMAT: Final = "columns with the source's fractions in MariaDB 5.3's format, read by the server"
