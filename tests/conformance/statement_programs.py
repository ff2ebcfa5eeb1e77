"""Routines, views and triggers that the window's own log replaces."""

from __future__ import annotations

from typing import Final

from tests.conformance.rows import Row, refused, supported

_PROGRAMS: Final = "tests/integration/window/statements/test_stored_programs.py"
_REPLACED: Final = "tests/integration/window/statements/test_replaced_programs.py"
_FIRED: Final = "tests/integration/window/statements/test_fired_triggers.py"

REPLACED_PROGRAMS: Final[tuple[Row, ...]] = (
    supported(
        "Routines, views and triggers that the window, or the source's log behind it, drops or replaces behind a "
        "logged statement that needs them, if an earlier window has compared them or made them",
        "do on the target what they did on the source",
        f"{_REPLACED}::test_programs_that_an_earlier_window_has_made_are_replaced_behind_their_use",
        f"{_PROGRAMS}::test_programs_that_are_alike_and_those_of_the_log_do_the_same_on_both",
        f"{_FIRED}::test_triggers_that_are_alike_and_those_of_the_log_fire_on_both",
    ),
    refused(
        "The same if no earlier window knows them, or its files are gone, or the target's text has changed since: the "
        "source's text of then is in no catalogue any more",
        "named before the window begins, with the statement that needs it, unless `allow_unsafe` is set",
        "PrecheckError",
        f"{_REPLACED}::test_programs_that_the_log_replaces_behind_their_use_are_named",
        f"{_REPLACED}::test_what_an_earlier_window_knows_is_taken_only_while_it_holds",
    ),
)
