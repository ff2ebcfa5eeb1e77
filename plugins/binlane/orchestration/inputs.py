"""The inputs of the plan job besides the segments: the target's schema, the channel's settings, the manifest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from binlane.apply.rows.writers import sends_row_events
from binlane.binlog.rows_payload import payload_limit
from binlane.choices import Commit, Consistency, Reduce
from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.errors import ConfigError, PlanError
from binlane.formats import OF_WINDOW
from binlane.garbage import uncollected
from binlane.model import Flavor
from binlane.orchestration.effective_rules import changed_rules, renaming_of, selection_of, shard_list_text
from binlane.orchestration.request import WindowRequest
from binlane.plan.manifest import Manifest
from binlane.plan.settings import PlanSettings
from binlane.plan.transaction.collations import Collations
from binlane.plan.transaction.rename import name_of, renamed_schema
from binlane.precheck.account.row_writer import chosen_writer
from binlane.precheck.definitions.kept import definitions_for
from binlane.precheck.definitions.noted import note_definitions, read_definitions, target_as_it_is
from binlane.schema.codec import schema_to_json
from binlane.schema.compare import compare_schemas, not_reduced, rules_for
from binlane.schema.model import Schema
from binlane.servers.catalog import read_databases, read_schema
from binlane.servers.engines import engine_of
from binlane.sessions.server_proof import ServerProof
from binlane.shards.assigners import AssignerRules, Shards
from binlane.shards.renaming import Renaming
from binlane.shards.shard_list import Partitioner, ShardList, parse_shard_list
from binlane.state.carried.kept_inputs import KeptInputs
from binlane.work import files
from binlane.work.files import Digests, WorkFolder, digest_of
from binlane.work.folder_formats import write_formats
from binlane.work.plan_inputs import read_inputs

_PAYLOAD_BYTES: Final = 1 << 20
"""The usual number of bytes of events in one BINLOG statement."""
_DEFAULT_PACKET: Final = 16 << 20


@uncollected()
def write_inputs(
    channel: ChannelConfig,
    endpoints: Endpoints,
    request: WindowRequest,
    folder: WorkFolder,
    manifest: Manifest,
    record: Callable[[Digests], None] | None = None,
) -> Digests:
    """Write everything that the plan job reads besides the segments; the files' digests. The manifest comes last and
    completes the folder; ``record`` is called with the digests before that.

    Raises ConfigError for an invalid shard list. An open window keeps the list that it has.
    """
    endpoints = endpoints.proving(ServerProof(manifest.identity))
    with engine_of(endpoints.target).connect() as connection:
        # without renames the case of names does not count
        renaming = renaming_of(channel, read_schema(connection, ())) if channel.rename else Renaming()
        found = definitions_for(channel, endpoints, connection, renaming)
        schema = found.target
        by_sql = not sends_row_events(chosen_writer(connection, channel.apply.writer))
    check_collations(channel, schema)
    differing = _tables_with_other_keys(found.source, schema, renaming, Collations(channel.collations).given)
    flavors = {segment.flavor for segment in manifest.segments}
    settings, shard_list = _divided(
        channel, settings_of(channel, request, manifest.window, flavors, schema, differing, by_sql)
    )
    check_division(channel, shard_list)
    rules = AssignerRules(shard_list, settings.renaming, schema.letter_case)
    shards = Shards(settings.assigner, rules, schema.known().foreign_key_groups)
    Partitioner(shard_list, settings.lanes, (), shards.joined, settings.renaming, schema.letter_case)
    write_formats(folder, OF_WINDOW, last=files.MANIFEST)
    digests = note_definitions(folder, found.read, schema, found.source)
    return _complete(folder, schema_to_json(schema), settings.to_json(), manifest, digests, record)


def write_kept(
    channel: ChannelConfig,
    endpoints: Endpoints,
    folder: WorkFolder,
    kept: KeptInputs,
    manifest: Manifest,
    record: Callable[[Digests], None],
) -> Digests:
    """As ``write_inputs``, of a window that has a plan: what it was made from. ``manifest``: as the log was read again.

    The definitions of both servers are none to take again: the window's own DDL may have run since. Raises PlanError
    for settings that decide what is written where, or name code to call, and are not those of the channel's file.
    """
    _require_rules(channel, endpoints, kept, manifest)
    write_formats(folder, OF_WINDOW, last=files.MANIFEST)
    return _complete(folder, kept.schema, kept.channel, kept.manifest_with(manifest), {}, record)


def _require_rules(channel: ChannelConfig, endpoints: Endpoints, kept: KeptInputs, manifest: Manifest) -> None:
    """The target's rows are input: whoever can write to the schema ``binlane`` must not choose the databases that a
    channel writes, nor the code that it runs."""
    where = f"binlane.kept_inputs of channel {channel.name}, window {manifest.window}"
    settings = PlanSettings.from_json(kept.channel, where)
    with engine_of(endpoints.target).connect() as connection:
        schema = read_schema(connection, ())
    changed = changed_rules(channel, settings, schema)
    if not changed and settings.target != schema.flavor.value:
        changed = "the target"
    if not changed and (settings.channel, settings.window) != (channel.name, manifest.window):
        changed = "the window's name"
    if changed:
        raise PlanError(
            f"{where}: its files are gone from the work folder, and of the settings that its plan was made with, "
            f"expected {changed} as {channel.file} says, found other ones; nothing was written. If {channel.file} was "
            "changed since the window was planned, put it back as it was, run, and change it afterwards; if not, "
            "another program has changed these rows: see who can write to the schema binlane"
        )


def _complete(
    folder: WorkFolder,
    schema: bytes,
    settings: bytes,
    manifest: Manifest,
    others: Digests,
    record: Callable[[Digests], None] | None,
) -> Digests:
    data = manifest.to_json()
    digests = {
        **others,
        **folder.write_once(files.SCHEMA, schema),
        **folder.write_once(files.CHANNEL, settings),
        files.MANIFEST: digest_of(data),
    }
    if record is not None:
        record(digests)
    folder.write_once(files.MANIFEST, data)
    return digests


def target_has_changed(endpoints: Endpoints, folder: WorkFolder) -> bool:
    """Whether the target has other tables than those that a window's plan is made for, or takes longer statements."""
    inputs = read_inputs(folder)
    then = inputs.schema
    with engine_of(endpoints.target).connect() as connection:
        if read_databases(connection) != then.databases:
            return True
        now = target_as_it_is(connection, then.databases, read_definitions(folder).target, then)
    longer = payload_limit(now.max_allowed_packet or _DEFAULT_PACKET) > inputs.settings.largest_bytes
    return longer or now.tables != then.tables


def settings_before(
    channel: ChannelConfig, endpoints: Endpoints, request: WindowRequest, window: str, flavor: Flavor
) -> PlanSettings:
    """The settings that ``write_inputs`` is going to write for a window of a source of this flavor, before the log has
    been read: without ``not_reduced``, which the source's definitions of then tell."""
    with engine_of(endpoints.target).connect() as connection:
        by_sql = not sends_row_events(chosen_writer(connection, channel.apply.writer))
        facts = read_schema(connection, ())
    return _divided(channel, settings_of(channel, request, window, {flavor}, facts, [], by_sql))[0]


def _divided(channel: ChannelConfig, settings: PlanSettings) -> tuple[PlanSettings, ShardList]:
    """The settings with what the channel's shard list says of divided shards, and the list."""
    shard_list = parse_shard_list(settings.shard_list, settings.shard_list_path, lanes=settings.lanes)
    divides = bool(shard_list.divided)
    return replace(
        settings,
        divide=channel.lanes.divide if divides else None,
        commits_together=divides and channel.lanes.commit == Commit.TOGETHER,
    ), shard_list


def shards_of(channel: ChannelConfig, target: Schema) -> dict[str, str]:
    """The shard of each of the target's databases, by the channel's present shard list."""
    shard_list = parse_shard_list(shard_list_text(channel), channel.lanes.shard_list, lanes=channel.lanes.count)
    facts = target.known()
    rules = AssignerRules(shard_list, renaming_of(channel, target), facts.letter_case)
    shards = Shards(channel.lanes.assigner, rules, facts.foreign_key_groups)
    return {name: shards.shard_of(facts.group_of(name)) for name in target.databases}


def check_division(channel: ChannelConfig, shard_list: ShardList) -> None:
    """Raises ConfigError for a channel that must not divide the shards that its list divides."""
    if not shard_list.divided:
        return
    where = f"{shard_list.path}: (divided)"
    if channel.blocks.reduce == Reduce.OFF:
        raise ConfigError(
            f'{where}: only folded blocks can be divided; expected blocks.reduce "auto", "block" or "window"'
        )
    if channel.apply.allow_nontransactional:
        raise ConfigError(
            f"{where}: with apply.allow_nontransactional a transaction may run outside of a block, and then not in "
            "shares; remove one of them"
        )
    if channel.apply.allow_triggers:
        raise ConfigError(
            f"{where}: the triggers of apply.allow_triggers may write tables of other lanes; remove one of them"
        )
    lanes = channel.lanes
    if lanes.commit == Commit.TOGETHER and channel.blocks.reduce == Reduce.WINDOW:
        raise ConfigError(
            f'{where}: lanes.commit = "together" needs blocks that all lanes share, and with blocks.reduce = "window" '
            'each lane folds blocks of its own; expected blocks.reduce "auto" or "block"'
        )
    if lanes.consistency != Consistency.EPOCH and lanes.commit != Commit.TOGETHER and not lanes.allow_torn:
        raise ConfigError(
            f"{where}: until the lanes meet, readers of the target can see a part of a transaction of a divided shard; "
            'expected lanes.consistency = "epoch", lanes.commit = "together" or lanes.allow_torn = true, found '
            f'lanes.consistency = "{lanes.consistency}", lanes.commit = "{lanes.commit}" and lanes.allow_torn = false'
        )


def check_collations(channel: ChannelConfig, schema: Schema) -> None:
    """Raises ConfigError for a rule of ``[collations]`` whose new collation the target lacks. ``schema``: the
    target's."""
    for old, new in Collations(channel.collations).given.items():
        if schema.collations and new not in schema.collations:
            raise ConfigError(
                f"{channel.file}: collations.{old}: expected a collation of {schema.flavor} {schema.version}, the "
                f"target, got {new!r}: SHOW COLLATION there lists them"
            )


def _tables_with_other_keys(
    source: Schema | None, target: Schema, renaming: Renaming, collations: Mapping[str, str]
) -> list[list[str]]:
    """Tables whose keys differ between ``source`` (in its own names) and target; their changes are not reduced."""
    if source is None:
        return []
    named = renamed_schema(source, partial(name_of, renaming)) if renaming else source
    common = [key for key in target.tables if named.table(key) is not None]
    differences = compare_schemas(named, target, common, rules_for(named, target, collations=collations))
    return sorted([key.database, key.table] for key in not_reduced(differences))


def _block_transactions(channel: ChannelConfig, request: WindowRequest) -> int | None:
    if request.block_transactions is not None:
        return request.block_transactions
    return channel.blocks.transactions if isinstance(channel.blocks.transactions, int) else None


def settings_of(
    channel: ChannelConfig,
    request: WindowRequest,
    window: str,
    flavors: Collection[Flavor],
    schema: Schema,
    differing: list[list[str]],
    by_sql: bool,
) -> PlanSettings:
    """The channel's settings for a window. ``flavors``: of its segments; ``schema``: the target's; ``differing``:
    tables with other keys on the source; ``by_sql``: rows are sent as statements."""
    packet = schema.max_allowed_packet or _DEFAULT_PACKET
    settings = PlanSettings(
        channel=channel.name,
        window=window,
        lanes=request.lanes if request.lanes is not None else channel.lanes.count,
        shard_list=shard_list_text(channel),
        shard_list_path=channel.lanes.shard_list,
        assigner=channel.lanes.assigner,
        consistency=channel.lanes.consistency,
        epoch_seconds=channel.lanes.epoch_seconds,
        epoch_transactions=channel.lanes.epoch_transactions or None,
        fold_gap=channel.lanes.fold_gap,
        block_transactions=_block_transactions(channel, request),
        block_bytes=channel.blocks.bytes,
        block_seconds=channel.blocks.seconds,
        payload_bytes=min(_PAYLOAD_BYTES, payload_limit(packet)),
        largest_bytes=payload_limit(packet),
        reduce=channel.blocks.reduce,
        window_bytes=channel.blocks.window_bytes,
        not_reduced=differing,
        target=schema.flavor.value,
        target_version=schema.version,
        filters=selection_of(channel, schema).to_values(),
        renames=[list(rule) for rule in channel.rename],
        collations=[list(rule) for rule in channel.collations],
        folds_names=schema.folds_names,
        # between the families, tables with JSON are written by statements
        measures_rows=by_sql or any(flavor is not schema.flavor for flavor in flavors),
    )
    return replace(settings, small_blocks=_why_small_blocks(channel) if settings.chooses_size else None)


def _why_small_blocks(channel: ChannelConfig) -> str | None:
    """Keys of the channel's file with which the transactions of a block may be applied one by one."""
    if channel.apply.allow_nontransactional:
        return "apply.allow_nontransactional is set"
    return f'apply.on_conflict = "{channel.apply.on_conflict}"' if channel.apply.on_conflict.overwrites else None
