"""The console script ``binlane``: the commands, and the end of their process."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import NoReturn

from binlane.activity import doing
from binlane.cli.commands import main
from binlane.orchestration.terminal import all_flushed, break_silence


def program() -> NoReturn:
    """Run the command of the arguments, and end the process without freeing what it has imported.

    Otherwise it ends as Python does: same exit code, functions of ``atexit`` called, output written. Freeing a million
    objects takes 0.05 to 0.1 s, as long as a window's check.
    """
    code: str | int | None = 0
    if sys.argv[1:2] != ["check"]:  # a monitoring system takes what it reads for an answer
        break_silence()
    try:
        # what a terminal shows in a silence, unless a part of the command says more
        with doing(" ".join(sys.argv[1:2])):
            main()
    except SystemExit as exc:
        code = exc.code
    # Python waits for threads, prints a text, and says which output it could not write
    if threading.active_count() > 1 or isinstance(code, str):
        sys.exit(code)
    atexit._run_exitfuncs()
    if not all_flushed():
        sys.exit(code)
    os._exit(code or 0)
