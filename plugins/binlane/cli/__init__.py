"""The program ``binlane``: its commands and their arguments. The work is in ``orchestration.commands``."""

from binlane.cli.commands import app, main
from binlane.cli.entry import program

__all__ = ["app", "main", "program"]
