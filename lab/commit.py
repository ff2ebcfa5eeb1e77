"""The commit that is stored with a trial's results."""

from __future__ import annotations

import subprocess
from pathlib import Path


def commit() -> str:
    """The project's commit, short; empty outside a clone."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return done.stdout.strip()
