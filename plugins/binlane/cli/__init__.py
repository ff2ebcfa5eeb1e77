"""The program ``binlane``: its commands and their arguments. The work is in ``orchestration.commands``."""

from binlane.cli.commands import app, main

__all__ = ["app", "main"]
