"""What the precheck leaves beside the plan for the lanes: a task each, on any machine."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Final

from binlane.apply.lane.block_writers import Checked
from binlane.errors import SourceError
from binlane.json_codec.codec import Codec
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.plan.settings import PlanSettings
from binlane.plan.transaction.channel_rules import AS_LOGGED, ChannelRules
from binlane.plan.transaction.rename import renamed_alterations
from binlane.precheck.bodies.body_parts import runs_bodies
from binlane.precheck.definitions.noted import partitioned_as_it_is, read_definitions
from binlane.precheck.definitions.program_checks import keep_known
from binlane.precheck.situation.facts import Source
from binlane.precheck.situation.situation import Situation, databases_of
from binlane.precheck.statements.sights import Sights, sees_variables
from binlane.precheck.statements.window_statements import (
    alike_behind,
    changed_by_window,
    first_reached,
    marks_of_window,
    views_of_window,
)
from binlane.schema.canonical import canonical_json
from binlane.schema.codec import schema_from_json, schema_to_json
from binlane.schema.model import Schema
from binlane.schema.programs import Program
from binlane.sql.parse.facts import StatementKind
from binlane.sql.programs.comparison import Difference, as_difference
from binlane.sql.programs.known import KnownPrograms
from binlane.sql.programs.marks import ProgramMark, ReachedPrograms, mark_of
from binlane.sql.programs.reach import folded
from binlane.sql.session_variables import own_values
from binlane.work import files
from binlane.work.files import Digests, WorkFolder


@dataclass(frozen=True, slots=True)
class PartitionedTables:
    """partitioned.json: the target's partitioned tables whose rows the window writes."""

    partitioned: frozenset[TableKey]


@dataclass(frozen=True, slots=True)
class TargetVariables:
    """variables.json: the target's global variables that may decide what the window does, with which it was checked."""

    variables: Mapping[str, str]


LEFT: Final = Codec("remove the file and run the task again", rows=frozenset({TableKey}))


def keep_for_lanes(situation: Situation) -> Digests:
    """Write what the lanes need to know beside the plan; what an earlier check has left and the target knows, stays.
    Returns the digests of what it has written."""
    plan, plans, written = situation.plan, situation.plans, dict[str, str]()
    altered = _known_definitions(situation)
    if altered.tables:
        written |= plans.replace(files.SOURCE_TABLES, schema_to_json(altered))
    # MariaDB counts the rows of partitioned tables twice; a lane without the file asks
    if situation.target.flavor is Flavor.MARIADB and not _is_left(plans, files.PARTITIONED):
        known = read_definitions(plans.window)
        tables = situation.target.ask(partitioned_as_it_is, databases_of(plan), known) & plan.applied_tables
        written |= plans.replace(files.PARTITIONED, canonical_json(LEFT.dump(PartitionedTables(tables))))
    if (reached := _reached(situation)) is not None:
        written |= plans.replace(files.REACHED, canonical_json(LEFT.dump(reached)))
    if variables := _variables(situation):
        written |= plans.replace(files.VARIABLES, canonical_json(LEFT.dump(TargetVariables(variables))))
    return written


def _variables(situation: Situation) -> Mapping[str, str]:
    """Those of the target that decide what the window does; none where nothing sees them or any will do, and where an
    earlier check of a window that has begun has left them."""
    is_left = situation.begun and _is_left(situation.plans, files.VARIABLES)
    if is_left or situation.channel.apply.allow_unsafe or not sees_variables(situation):
        return {}
    values, flavor, needs = situation.target.variables, situation.target.flavor, situation.needs
    # what bodies see, and many statements, would be a pass over all of them for each variable
    if any(map(runs_bodies, situation.every_text)):
        return own_values(values, flavor)
    if not (needs.statements or needs.loads):
        return own_values(values, flavor, Sights(situation).by_definitions)
    # of a statement that is not read nobody knows the tables, and so their triggers
    is_unread = StatementKind.UNKNOWN in situation.plan.kinds
    if situation.asked.forms is None or is_unread or situation.may_reach_programs or _fires_triggers(situation):
        return own_values(values, flavor)
    return own_values(values, flavor, Sights(situation).without_bodies)


def _fires_triggers(situation: Situation) -> bool:
    """Whether the window's statements may fire triggers of the target, of its own or of the window."""
    fired = {folded(each.key) for each in situation.target.triggers}
    fired.update(folded(key) for text in situation.every_text for key in text.facts.triggered)
    written = {*situation.plan.written, *situation.plan.loaded}
    return bool(fired) and (situation.fires_by_cascades or not fired.isdisjoint(map(folded, written)))


def _reached(situation: Situation) -> ReachedPrograms | None:
    """Those that the window's statements reach, as the target has them; None where nothing reaches any, and where an
    earlier check of a window that has begun has left them: what was exchanged since is seen so. Whoever has mended one
    removes the file."""
    needs = situation.needs
    if not (needs.statements or needs.loads) or (situation.begun and has_left_programs(situation)):
        return None
    if not situation.may_reach_programs:
        return ReachedPrograms()
    # their texts as the lane finds them: the checks compare renamed ones
    programs, reach = [(each, as_difference(each)) for each in situation.target.programs], situation.reach
    own, made = changed_by_window(situation), {(each.kind, each.name): each for each in marks_of_window(situation)}
    there = [mark_of(each) for each, _ in programs]
    new = [each for place, each in made.items() if place not in {(mark.kind, mark.name) for mark in there}]
    differences = [*(each for _, each in programs), *(Difference(each.name, "", "", "") for each in new)]
    reached = first_reached(situation, reach, differences)

    def marked(program: Program, mark: ProgramMark) -> ProgramMark:
        if not own(program):
            return mark
        # what the server has not shown may be anything in front of the window's own statements
        sent = made.get((mark.kind, mark.name)) if mark.digest else None
        return ProgramMark(mark.kind, mark.key) if sent is None else replace(mark, sent=sent.sent)

    marks = [
        marked(program, mark)
        for (program, difference), mark in zip(programs, there, strict=True)
        if difference.key in reached
    ]
    marks += (each for each in new if each.name in reached)
    return ReachedPrograms.of(marks, reach, views_of_window(situation))


def has_left_programs(situation: Situation) -> bool:
    """Whether an earlier check has left what the statements reach, or nothing reaches any."""
    needs = situation.needs
    return not (needs.statements or needs.loads) or _is_left(situation.plans, files.REACHED)


def _is_left(plans: WorkFolder, name: str) -> bool:
    """Whether an earlier check has left a file, and the folder has not been lost since."""
    return plans.has(name) and plans.exists(name)


def keep_for_next_window(situation: Situation) -> Digests:
    """Write what this precheck knows and the next one cannot ask; a window that has begun has it already. Returns the
    digests of what it has written."""
    folder = situation.plans.window
    if situation.begun or situation.source is None or folder.has(files.PROGRAMS):
        return {}
    programs, plan = alike_behind(situation), situation.plan
    return keep_known(folder, KnownPrograms(plan.source, plan.last_seqno, programs)) if programs else {}


def _known_definitions(situation: Situation) -> Schema:
    """The source's tables that the window alters, and nothing since, in the target's names; none where an earlier check
    has left them.

    Without those whose parents were altered since: their foreign keys may have other names since then.
    """
    unknown = Schema(situation.plan.flavor, "")
    altered = [key for key in situation.touched if situation.plan.altered.names(key)]
    if situation.source is None or not altered or _is_left(situation.plans, files.SOURCE_TABLES):
        return unknown
    # a begun window is finished whatever has become of the source
    with suppress(SourceError) if situation.begun else nullcontext():
        return _unaltered_since(situation, situation.source, altered) or unknown
    return unknown


def _unaltered_since(situation: Situation, asked: Source, altered: Collection[TableKey]) -> Schema | None:
    """Of ``altered`` the source's tables; None if it cannot be told. Raises SourceError."""
    source, behind = situation.source_tables, asked.altered_behind(whole=False)
    if source is None or behind is None:
        return None
    behind = renamed_alterations(behind, situation.renaming)
    found = ((key, table) for key in altered if (table := source.table(key)) is not None)
    tables = {
        key: table
        for key, table in found
        if not any(map(behind.names, (key, *(each.parent for each in table.foreign_keys))))
    }
    return Schema(source.flavor, source.version, source.settings, tables=tables)


def checked_of(plans: WorkFolder, *, selects: bool) -> Checked:
    """What was left. ``selects``: the channel leaves out tables, so the window's rules are read, too. Raises PlanError
    for a damaged file."""
    definitions = partitioned = None
    if plans.has(files.SOURCE_TABLES):
        definitions = schema_from_json(plans.read(files.SOURCE_TABLES), plans.path(files.SOURCE_TABLES))
    if plans.has(files.PARTITIONED):
        left = LEFT.read(PartitionedTables, plans.read(files.PARTITIONED), plans.path(files.PARTITIONED))
        partitioned = left.partitioned
    reached, place = None, plans.path(files.REACHED)
    if plans.has(files.REACHED):
        reached = LEFT.read(ReachedPrograms, plans.read(files.REACHED), place)
    variables: Mapping[str, str] = {}
    if plans.has(files.VARIABLES):
        kept = LEFT.read(TargetVariables, plans.read(files.VARIABLES), plans.path(files.VARIABLES))
        variables = kept.variables
    return Checked(definitions, partitioned, _rules_of(plans) if selects else AS_LOGGED, reached, place, variables)


def _rules_of(plans: WorkFolder) -> ChannelRules:
    """The rules with which the window was extracted: those of the channel's file count from the next one on."""
    window = plans.window
    return PlanSettings.from_json(window.read(files.CHANNEL), window.path(files.CHANNEL)).rules
