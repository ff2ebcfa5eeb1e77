"""Opens the target for every command, task and page: its state is used only after its schema version was checked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlalchemy import Engine

from binlane.apply.refusals import target_errors
from binlane.connections import Endpoint
from binlane.servers.engines import engine_of
from binlane.state.migrations.check import require_current
from binlane.state.migrations.run import bring_up


@contextlib.contextmanager
def target_state(
    target: Endpoint, *, older_is_brought_up: bool = False, timeout: int | None = None
) -> Iterator[Engine]:
    """The target's engine; errors of the target in the ``with`` block name the server.

    Raises StateSchemaError unless the schema ``binlane`` has this build's version. ``older_is_brought_up``: migrate an
    older schema, before a run, whose account may change it. ``timeout``: see ``engine_of``.
    """
    with target_errors(str(target)):
        engine = engine_of(target, timeout=timeout)
        if older_is_brought_up:
            bring_up(engine)
        with engine.connect() as connection:
            require_current(connection)
        yield engine
