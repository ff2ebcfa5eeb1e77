"""Opens the target for every command, task and page: its state is used only after its schema version was checked."""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from sqlalchemy import Connection, Engine

from binlane.apply.refusals import target_errors
from binlane.connections import Endpoint, Endpoints
from binlane.servers.engines import engine_of
from binlane.sessions.server_proof import TargetProof
from binlane.state.channels import has_channel, read_channel, refuse_older
from binlane.state.migrations.check import require_current
from binlane.state.migrations.upgrade import bring_up
from binlane.state.target_record import place_of, recorded


class SchemaChecks:
    """Those of a view of many channels: each server is checked once, not once a channel. For several threads."""

    def __init__(self) -> None:
        self._locks: dict[tuple[str, int], threading.Lock] = defaultdict(threading.Lock)
        self._passed: set[tuple[str, int]] = set()

    def require_current(self, target: Endpoint, connection: Connection) -> None:
        """Raises StateSchemaError as ``check.require_current``."""
        server = (target.host, target.port)
        with self._locks[server]:
            if server not in self._passed:
                require_current(connection)
                self._passed.add(server)


@contextlib.contextmanager
def target_state(
    target: Endpoint,
    *,
    brings_up: str | None = None,
    timeout: int | None = None,
    checks: SchemaChecks | None = None,
    waits: bool = True,
) -> Iterator[Engine]:
    """The target's engine; errors of the target in the ``with`` block name the server.

    Raises StateSchemaError unless the schema ``binlane`` has this build's version, TargetIdentityError for a server
    that is not the channel's target, or an older copy of it. ``brings_up``: migrate an older schema, before a run,
    whose account may change it; the work folder, as for ``bring_up``. ``timeout``: see ``engine_of``. ``checks``: those
    of a view that opens many targets. ``waits``: for a work folder that does not answer, as runs do; nobody who looks
    within ``timeout`` does.
    """
    with target_errors(str(target)):
        engine = engine_of(target, timeout=timeout)
        if brings_up is not None:
            # ends with the check of its result
            bring_up(engine, brings_up)
        else:
            with engine.connect() as connection:
                if checks is None:
                    require_current(connection)
                else:
                    checks.require_current(target, connection)
        looks = timeout is not None
        _refuse_another(target, engine, is_remote_asked=not looks, waits=waits and not looks)
        yield engine


def knowing_target(endpoints: Endpoints, *, waits: bool = True) -> Endpoints:
    """These, of which each connection to the target asks whether it is the recorded server. ``waits``: see
    ``target_state``."""
    proof = endpoints.target.proof
    if not isinstance(proof, TargetProof):
        return endpoints
    return replace(endpoints, target=replace(endpoints.target, proof=recorded(proof, waits=waits)))


def require_own_target(target: Endpoint, engine: Engine) -> None:
    """For commands that a target without the schema ``binlane`` may have: as ``target_state``, if the channel is there.
    Raises TargetIdentityError."""
    if isinstance(target.proof, TargetProof):
        with engine.connect() as connection:
            if not has_channel(connection, target.proof.channel):
                return
        _refuse_another(target, engine, is_remote_asked=True, waits=True)
        with engine.connect() as connection:
            read_channel(connection, target.proof.channel)


def require_recorded(target: Endpoint, *, timeout: int) -> None:
    """Of a server that does not have the channel, before it is told how to begin: raises TargetIdentityError if a run
    has recorded another server as its target, on this machine. ``timeout``: see ``engine_of``."""
    if isinstance(target.proof, TargetProof):
        known = replace(target, proof=recorded(target.proof, is_remote_asked=False, waits=False))
        with target_errors(str(target)), engine_of(known, timeout=timeout).connect():
            pass


def _refuse_another(target: Endpoint, engine: Engine, *, is_remote_asked: bool, waits: bool) -> None:
    """Raises TargetIdentityError for a target that is not the recorded one, or behind the record. It is read anew: a
    run that goes on for days has moved it."""
    if isinstance(target.proof, TargetProof):
        proof = recorded(target.proof, is_remote_asked=is_remote_asked, waits=waits)
        if proof.identity:
            with engine.connect() as connection:
                refuse_older(connection, proof, place_of(proof))
