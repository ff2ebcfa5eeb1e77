"""What the attacks share. Each module of this folder has one table of attacks on one boundary of docs/security.md: a
line more in the table is an attack more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.window.conftest import channel, channel_of, clean_servers, undone  # noqa: F401
from tests.security.witness import Witness, witness_in


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[Witness]:
    """A folder and a web server outside of every work folder, which nobody may touch."""
    with witness_in(tmp_path / "outside") as found:
        yield found
