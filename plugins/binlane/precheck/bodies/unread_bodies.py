"""Routines, views and triggers behind statements whose text binlane does not read to its end.

All checks of bodies look for what they know. A statement in a body that no reader knows is therefore no statement that
may run: only those of ``sql.parse.program_bodies`` are. A package of MariaDB is not read as one body.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from binlane.model import Flavor
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.precheck.bodies.body_parts import Body, BodyPart, bodies, reaching
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.safe_text import shown
from binlane.schema.compare import Severity
from binlane.sql.parse.facts import UNREAD
from binlane.sql.parse.lexer import Dialect, Token, Unreadable
from binlane.sql.parse.program_bodies import read_program
from binlane.work.logged_statements import LaneStatement

_MOST_FINDINGS: Final = 20
_EXPECTED: Final = "a body that binlane reads to its end"
_TODO: Final = (
    "write it in another form on both servers, or log such statements as rows (binlog_format=ROW), or skip the "
    "transaction (docs/control.md) and make its changes on the target by hand"
)
_OR_ALLOW: Final = f', or set filter.allow_statements = ["{UNREAD}"] in the channel\'s file'
_HEAD: Final = 12
"""Words in front of the kind of what a statement makes, at most."""


def check_unread_bodies(situation: Situation) -> Iterator[Finding]:
    """Routines, views and triggers behind the window's statements with a statement that binlane does not read, such as
    one whose text the server builds when it runs."""
    needs, rules = situation.needs, ChannelRules(situation.selection, situation.renaming)
    looks_at_views = needs.ddl and situation.target.flavor is Flavor.MARIADB
    if not (needs.statements or needs.loads or looks_at_views) or rules.takes_unread(UNREAD):
        return
    yield from islice(_findings(situation, _TODO if rules.promises else _TODO + _OR_ALLOW), _MOST_FINDINGS)


def _findings(situation: Situation, todo: str) -> Iterator[Finding]:
    # to read all bodies of a server takes long: only those that statements reach are read
    every, read = list(bodies(situation)), dict[str, str | None]()
    numbers = {id(body): str(number) for number, body in enumerate(every)}

    def number_of(body: Body) -> Iterator[BodyPart]:
        yield BodyPart(numbers[id(body)], needs_rows=False)

    opens_views = situation.target.flavor is Flavor.MARIADB
    for _, logged, program, part in reaching(situation, number_of, by_definitions=opens_views, every=every):
        if part.what not in read:
            read[part.what] = why = _unread(every[int(part.what)], situation.plan.flavor)
            if why is not None:
                yield _finding(logged, f"{program}, of which {why}", todo)


def _unread(body: Body, flavor: Flavor) -> str | None:
    """Where the reading of a body stops, and why; None for one that is read, and for one that has no words at all,
    which ``unsafe-bodies`` names."""
    if body.is_unread or _is_package(body.tokens, body.difference.where):
        return None
    try:
        read_program(body.tokens, Dialect(flavor), body.database)
    except Unreadable as unreadable:
        place = f"at {shown(unreadable.word)!r} " if unreadable.word else ""
        return f"reading stops {place}({unreadable})"
    return None


def _is_package(tokens: Sequence[Token], where: str) -> bool:
    is_made = tokens[:1] and tokens[0].upper == "CREATE"
    return where.startswith("package") or bool(is_made and "PACKAGE" in [token.upper for token in tokens[:_HEAD]])


def _finding(logged: LaneStatement, found: str, todo: str) -> Finding:
    header = logged.header
    where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
    return Finding(Severity.FATAL, where, _EXPECTED, found, todo, header.first_seqno)
