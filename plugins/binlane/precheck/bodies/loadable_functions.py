"""Functions of libraries, plugins and components that routines, views and triggers behind a window's statements call.

No server looks a function up when it makes a routine or a trigger, and no log has the library: 1305 would come with the
first statement that reaches it. What statements call themselves the target's parser is asked about.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from binlane.precheck.bodies.body_parts import Body, BodyPart, reaching
from binlane.precheck.situation.facts import called_from_libraries
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation, programs_made_by
from binlane.safe_text import shown
from binlane.schema.compare import Severity
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import TokenKind
from binlane.sql.program_names import folded_name

_MOST_FINDINGS: Final = 20
_TODO: Final = (
    "make it on the target as on the source, out of the target's binlog: CREATE FUNCTION ... SONAME, INSTALL COMPONENT "
    "or INSTALL PLUGIN; or log such statements as rows (binlog_format=ROW)"
)


def check_called(situation: Situation) -> Iterator[Finding]:
    """Loadable functions behind the window's statements that the source has and the target has not."""
    needs, source = situation.needs, situation.source
    if source is None or not (needs.statements or needs.loads):
        return
    makes = any(True for text in situation.every_text for _ in programs_made_by(text))
    if not (makes or any(situation.stored_triggers) or situation.program_names):
        return
    ours, theirs = source.ask(called_from_libraries), situation.target.called_from_libraries
    if ours is None or theirs is None:
        return
    # what the window makes, other checks look at
    missing = {name for name in ours - theirs if folded_name(name) not in situation.asked.made}
    if not missing:
        return

    def find(body: Body) -> Iterator[BodyPart]:
        for at, token in enumerate(body.tokens[:-1]):
            is_name = token.kind in (TokenKind.WORD, TokenKind.NAME) and token.text.lower() in missing
            is_called = is_symbol(body.tokens[at + 1], "(") and not (at and is_symbol(body.tokens[at - 1], "."))
            if is_name and is_called:
                yield BodyPart(token.text, needs_rows=False)

    found = dict[tuple[str, int], Finding]()
    for _, logged, program, part in reaching(situation, find):
        header = logged.header
        where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
        what = f"none, which {program} calls"
        expected = f"the loadable function {part.what}"
        finding = Finding(Severity.FATAL, where, expected, what, _TODO, header.first_seqno)
        found.setdefault((part.what, header.first_seqno), finding)
    yield from islice(found.values(), _MOST_FINDINGS)
