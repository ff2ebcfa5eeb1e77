"""The one door of commands that change data or decisions on a target: each has its row in the audit.

``tests/unit/test_audited.py`` finds such a call that does not come through here.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from binlane.connections import Endpoint
from binlane.servers.engines import engine_of
from binlane.state.records.audit import begin_entry, end_entry


def whoami() -> str:
    """The author of a request: account and machine."""
    try:
        account = getpass.getuser()
    except (KeyError, OSError):
        # Kubernetes can run a pod as a number that has no account
        account = f"uid {os.getuid()}"
    return f"{account}@{socket.gethostname()}"


@contextlib.contextmanager
def audited(
    target: Endpoint, channel: str, command: str, given: Mapping[str, object] = MappingProxyType({}),
    by: str | None = None, *, digest: str = "",
) -> Iterator[None]:  # fmt: skip
    """Record a command before its first write, and its result behind the last one. Raises the target's driver errors;
    without a row nothing is done.

    ``by``: the author, if not the account of this process. ``digest``: SHA-256 of the plan that is carried out.
    ``given``: its arguments, neither secrets nor values of rows; those that are None, False or empty are left out.
    """
    engine = engine_of(target)
    arguments = {name: str(value) for name, value in given.items() if value not in (None, False, "", ())}
    with engine.begin() as connection:
        author = whoami() if by is None else by
        number = begin_entry(connection, channel, command, arguments, by=author, digest=digest)
    try:
        yield
    except BaseException as exc:
        # the error counts, also where the target cannot be told of it: the row stays begun then
        with contextlib.suppress(Exception), engine.begin() as connection:
            end_entry(connection, number, type(exc).__name__)
        raise
    with engine.begin() as connection:
        end_entry(connection, number)
