"""``binlane adopt-target``: a server that has replaced the channel's target on purpose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from binlane.apply.own_gtids import require_own_gtids
from binlane.apply.refusals import target_errors
from binlane.apply.target_state import target_state
from binlane.connections import Resolver
from binlane.orchestration.audited import audited
from binlane.orchestration.commands.channel import load
from binlane.servers.engines import engine_of
from binlane.sessions.server_proof import TargetProof
from binlane.state.channels import Channel, adopt, has_channel, identity_of, read_channel, unfinished_copy
from binlane.state.records.coverage import forget_verified
from binlane.state.target_record import forget_target, place_of, record_target, recorded


def adopt_target(name: str, folder: Path, *, yes: bool, resolve: Resolver | None = None) -> str:
    """Make the server that answers the channel's target, or, without ``yes``, show what it has. On a server without the
    channel only the record of the former target is removed, so that a channel can begin there."""
    channel, endpoints = load(name, folder, resolve)
    proof = recorded(TargetProof(name, channel.work.uri))
    target = replace(endpoints.target, proof=None)
    lines = [f"channel {name}: {_former(proof)}"]
    with target_errors(str(target)), engine_of(target).connect() as connection:
        here, has, copying = identity_of(connection), has_channel(connection, name), unfinished_copy(connection, name)
    if not has:
        lines.append(f"{target.name}: is {here}, and does not have the channel")
        begins = f"`binlane bootstrap {name}` or `init` begins here"
        doing = f"the record of the former target is removed, and {f'here is {copying}' if copying else begins}"
        if yes:
            forget_target(proof)
    else:
        with target_state(target) as engine:
            with engine.connect() as connection:
                state = read_channel(connection, name, of_any_server=True)
                require_own_gtids(connection, state)
            lines.append(_found(target.name, here, state))
            doing = (
                f"it is the target from now on: what the source has logged behind seqno {state.watermark.seqno:,} is "
                "applied to it, the former target is refused, and nothing counts as verified: run `binlane verify "
                f"{name} --full`"
            )
            if yes:
                with audited(target, name, "adopt-target"), engine.begin() as connection:
                    read_channel(connection, name, for_update=True, of_any_server=True)
                    state = adopt(connection, name)
                    forget_verified(connection, name)
        # behind the COMMIT, or a record could name a server that is none
        if yes:
            record_target(channel.work.uri, state)
    if yes:
        return "\n".join((*lines, f"done: {doing}"))
    told = (
        f"with --yes {doing}. Its rows, its schema binlane and its executed GTIDs must be of one moment, and it must "
        "replicate no other server (docs/recovery.md, `The target was replaced`); nothing was changed"
    )
    return "\n".join((*lines, told))


def _former(proof: TargetProof) -> str:
    if not proof.identity:
        return f"no run has left a record of its target ({place_of(proof)})"
    return f"the last run's target was {proof.identity}, at seqno {proof.seqno:,} or later ({place_of(proof)})"


def _found(connection: str, here: str, state: Channel) -> str:
    written = "" if here == state.target_identity else f", written on {state.target_identity}"
    mark = state.watermark
    return f"{connection}: is {here}, with the watermark at seqno {mark.seqno:,}, {mark.source}{written}"
