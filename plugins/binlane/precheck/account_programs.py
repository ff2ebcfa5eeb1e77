"""Under a filter: programs behind a window's statements that ask who runs them, or on which server.

Such a program runs on the target as the lane's account, which may do more than its caller on the source. It could
change what the filter leaves out, without a trace of that in the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from binlane.model import Flavor
from binlane.precheck.finding import Finding
from binlane.precheck.situation import Situation
from binlane.precheck.statements import first_reached, may_reach_programs, programs_made_by, reach_of_window
from binlane.schema.compare import Severity
from binlane.schema.programs import SECURITY, Program
from binlane.sql.logged_statement import LoggedText
from binlane.sql.programs.comparison import Difference, as_difference
from binlane.sql.programs.of_server import own_value

_MOST_FINDINGS: Final = 20
_INVOKER: Final = "INVOKER"
_TODO: Final = (
    "on the target it runs as the channel's account, whose privileges are not its caller's, so the filter cannot tell "
    "what it changes there: log such statements as rows (binlog_format=MIXED or ROW), or leave its database out "
    "(docs/filters.md), or skip the transaction (docs/control.md) and make its changes on the target by hand"
)
_TODO_HIDDEN: Final = (
    "the filter cannot tell what it changes on the target: GRANT what docs/accounts.md lists for texts of routines, "
    "views and triggers to the account on each server, or log such statements as rows (binlog_format=MIXED or ROW)"
)


def check_account_programs(situation: Situation) -> Iterator[Finding]:
    """Routines, views and triggers behind the window's statements that ask which account or server runs them, in a
    channel with a filter, also with ``allow_unsafe``: their caller's privileges are not the target's account's."""
    if situation.begun or not situation.selection.looks_at_statements or not _runs_programs(situation):
        return
    found = list(_asking(situation))
    if not found:
        return
    reached = first_reached(situation, reach_of_window(situation), found)
    seen = set[str]()
    for each in islice((each for each in found if each.key in reached), _MOST_FINDINGS):
        if each.where not in seen:
            seen.add(each.where)
            seqno, where = reached[each.key]
            todo = _TODO_HIDDEN if each.is_hidden else _TODO
            yield Finding(Severity.FATAL, each.where, each.expected, each.found, f"{where} reaches it: {todo}", seqno)


def _runs_programs(situation: Situation) -> bool:
    needs = situation.needs
    return (
        needs.statements
        or needs.loads
        or (needs.ddl and any(each.facts.create_select for each in situation.every_text))
    )


def _asking(situation: Situation) -> Iterator[Difference]:
    """Programs of both servers, and of the window, that ask for what is a server's or an account's own."""
    flavor = situation.plan.flavor
    called = situation.stored_programs if may_reach_programs(situation) else ()
    for side in (*situation.stored_triggers, *called):
        for each in side:
            if (difference := _of_program(each, flavor)) is not None:
                yield difference
    for text in situation.every_text:
        yield from _of_text(text, flavor)


def _of_program(program: Program, flavor: Flavor) -> Difference | None:
    # few windows need it
    from binlane.sql.temporary_routines import tokens_of

    difference = as_difference(program)
    tokens = tokens_of(program.text, flavor, program.sql_mode)
    if tokens is None:
        return _with(difference, "a text that the account may not read", is_hidden=True)
    by_definer = program.kind == "trigger" or program.facts.get(SECURITY) != _INVOKER
    what = own_value(tokens, flavor, by_definer=by_definer)
    return None if what is None else _with(difference, what)


def _of_text(text: LoggedText, flavor: Flavor) -> Iterator[Difference]:
    words: Sequence[str] = text.words
    for key, _ in programs_made_by(text):
        what = own_value(text.tokens, flavor, by_definer=_INVOKER not in words)
        if what is not None:
            is_trigger = key in text.facts.triggered
            yield _with(Difference(key, f"{text.where}", "", "", is_trigger=is_trigger), what)


def _with(difference: Difference, what: str, *, is_hidden: bool = False) -> Difference:
    return difference._replace(expected="what is alike for every account and server", found=what, is_hidden=is_hidden)
