"""What stands against a window's statements: unsafe ones, those that the target's parser refuses, missing libraries,
temporary tables of routines.

A server tells of its libraries only by the functions that it has of them (``mysql.func``); no log holds a library. What
is there as it is logged, the lanes leave as it is (``apply.ddl``).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from binlane.model import Flavor
from binlane.precheck.definers import check_definers, check_statement_privileges
from binlane.precheck.facts import LoadableFunction
from binlane.precheck.finding import Finding
from binlane.precheck.parser import Verdict
from binlane.precheck.portability import check_features
from binlane.precheck.situation import Situation
from binlane.precheck.sql_writer import check_packets
from binlane.schema.compare import Severity
from binlane.sql.logged_statement import LoggedText, hides_secrets, shown
from binlane.sql.parse.lexer import Dialect
from binlane.sql.parse.unsafe import WAITING
from binlane.work.logged_statements import Logged

if TYPE_CHECKING:
    from binlane.sql.temporary_routines import Bodies, Call

log = logging.getLogger(__name__)

_MOST_FINDINGS: Final = 20
_TODO: Final = (
    "let the source do without it, or leave it out (docs/filters.md), or end a window before it (--until with its "
    "GTID), run a statement of the same effect on the target and begin the channel behind it"
)
_TODO_UNSAFE: Final = (
    "the target would write other values than the source did: log it as rows (binlog_format=MIXED), or set "
    "allow_unsafe in the channel's file and compare the rows afterwards"
)
_TODO_WAITING: Final = (
    f"the target would wait for transactions that it never has under the source's GTIDs or positions: {_TODO}"
)
_TODO_TEMPORARY: Final = (
    "the log does not show when that table ends, and the target's connection may be another one then: log such calls "
    f"as rows (binlog_format=MIXED), or {_TODO}"
)
_SONAME: Final = re.compile(
    r"\bRETURNS\s+(?P<returns>\w+)\s+SONAME\s+(?P<quote>['\"])(?P<library>[^'\"]+)(?P=quote)", re.I
)
_RETURNS: Final = {"STRING": 0, "REAL": 1, "INT": 2, "INTEGER": 2, "DECIMAL": 4}
"""``mysql.func.ret``: Item_result."""
_SINCE_IF_NOT_EXISTS: Final = {Flavor.MARIADB: (10, 1, 3), Flavor.MYSQL: (8, 0, 29)}
_CONDITION: Final = frozenset({"IF", "NOT", "EXISTS"})


def check_unsafe(situation: Situation) -> Iterator[Finding]:
    """Statements whose result differs from server to server, such as UUID()."""
    for name, seqno in sorted(situation.plan.unsafe.items()):
        waits = name in WAITING
        if situation.channel.apply.allow_unsafe and not waits:
            continue
        todo = _TODO_WAITING if waits else _TODO_UNSAFE
        yield Finding(
            Severity.FATAL, f"statement of seqno {seqno}", "what every server answers alike", name, todo, seqno
        )


_NAMING: Final = (check_statement_privileges, check_definers, check_packets, check_unsafe, check_features)
"""Checks that name statements with a better reason than the parser's."""


def check_syntax(situation: Situation) -> Iterator[Finding]:
    """Statements that the target's parser refuses and that no other check names."""
    asked = situation.asked
    if not asked.refused:
        return
    named = {finding.seqno for check in _NAMING for finding in check(situation)}
    found = [
        (logged, verdict)
        for logged, verdict in asked.refused
        if verdict.routine not in asked.made and named.isdisjoint(logged.seqnos)
    ]
    found.sort(key=lambda each: each[0].header.first_seqno)
    if len(found) > _MOST_FINDINGS:
        more = len(found) - _MOST_FINDINGS
        log.warning("precheck: the target refuses %d more statements, which are not shown", more)
    for logged, verdict in found[:_MOST_FINDINGS]:
        yield _refusal(situation, logged, verdict)


def _refusal(situation: Situation, logged: Logged, verdict: Verdict) -> Finding:
    header = situation.transaction_of(logged)
    text, message = logged.beginning, verdict.message
    message = message.split(" near ")[0] if hides_secrets(text) else message
    return Finding(
        Severity.FATAL,
        f"{header.source}: statement of seqno {header.first_seqno}, GTID {header.gtid or '-'}, {shown(text)}",
        "what the target's parser takes",
        f"{verdict.what} that it refuses ({verdict.code}: {' '.join(message.split())})",
        _TODO,
        header.first_seqno,
    )


def check_libraries(situation: Situation) -> Iterator[Finding]:
    """Loadable functions whose library the target does not have, or whose name is taken there."""
    target = situation.target
    made: list[tuple[LoggedText, str, LoadableFunction]] = []
    dropped: dict[str, int] = {}
    for statement in situation.asked.texts:
        name = _name(statement)
        if name is not None and statement.words[0] == "DROP":
            dropped.setdefault(name, statement.seqno)
        elif name is not None and (match := _SONAME.search(statement.sql)) is not None:
            returns, is_aggregate = _RETURNS.get(match["returns"].upper()), "AGGREGATE" in statement.words[:4]
            made.append((statement, name, LoadableFunction(returns, match["library"], is_aggregate)))
    if not made or target.grants.missing(("SELECT",), "mysql"):
        return  # which has a finding of its own
    there = target.loadable_functions
    libraries = {each.library for each in there.values()}
    for statement, name, function in made:
        found = there.get(name) if dropped.get(name, statement.seqno) >= statement.seqno else None
        if function.library not in libraries:
            todo = (
                f"copy the library into {target.variables['plugin_dir']} of the target and make the function there by "
                "hand, out of its binlog: where it is, the window leaves it"
            )
            yield Finding(Severity.FATAL, statement.where, f"the library {function.library}", "no function of it", todo)
        elif found is not None and (found != function or target.number < _SINCE_IF_NOT_EXISTS[target.flavor]):
            what = f"one of {found.library}, which returns another type" if found != function else "the same"
            todo = f"DROP FUNCTION {name} on the target, out of its binlog: the server refuses the statement (1125)"
            yield Finding(Severity.FATAL, statement.where, f"no other loadable function {name}", what, todo)


def check_temporary_tables(situation: Situation) -> Iterator[Finding]:
    """Temporary tables that a routine or trigger leaves to another transaction, in MySQL's log of statements.

    The log has the calls alone, so the plan does not keep them together. Statements of one block are one transaction of
    the target. Where the account may not read a routine's text, nothing is known of it.
    """
    plan, target = situation.plan, situation.target
    if situation.begun or plan.flavor is not Flavor.MYSQL or not (situation.needs.statements or situation.needs.ddl):
        return
    texts = situation.every_text
    if not target.makes_temporary_tables and not any("TEMPORARY" in each.words for each in texts):
        return
    # few windows need it
    from binlane.sql.temporary_routines import Bodies, Body, doubts, tokens_of

    bodies = Bodies()
    for kind, database, name, body in target.bodies:
        add = bodies.add_routine if kind == "routine" else bodies.add_trigger
        add(database, name, Body(0, database, tokens_of(body, Dialect(target.flavor))))
    for each in texts:
        bodies.add_statement(each.tokens, each.context.database or "", each.seqno)
    made = {str(key).casefold() for key in plan.altered.tables}
    found = doubts(_calls(situation, bodies), lambda key: str(key) in made or target.has_table(key))
    refused = (each for each in found if each.fails or not situation.channel.apply.allow_unsafe)
    for doubt in islice(refused, _MOST_FINDINGS):
        header = doubt.place.header
        before = "before this window" if doubt.before is None else f"in seqno {doubt.before.header.first_seqno}"
        yield Finding(
            Severity.FATAL,
            f"{header.source}: statement of seqno {header.first_seqno}, {shown(doubt.place.beginning)}",
            "no temporary table behind a routine or trigger but those of its own transaction",
            f"{doubt.table}, which a routine or trigger has made {before}",
            _TODO_TEMPORARY,
            header.first_seqno,
        )


def _calls(situation: Situation, bodies: Bodies) -> Iterator[Call[Logged]]:
    """The statements with temporary tables, in the log's order."""
    from binlane.sql.temporary_routines import Call, defined

    names = bodies.concerned
    if not names:
        return
    words = (*(re.escape(name.encode()) for name in sorted(names | bodies.temporary)), b"TEMPORARY")
    found = situation.transactions_with(re.compile(b"|".join(words), re.I))
    for logged, block in sorted(found, key=lambda each: each[0].header.first_seqno):
        header, plan = logged.header, situation.plan
        text = LoggedText.of(header.first_seqno, header.source, logged.item, plan.flavor)
        if text is None or defined(text.tokens) not in ("", "TABLE"):
            continue
        whole = plan.indivisible(header.first_seqno, header.last_seqno)
        # a block that changes a table without transactions is applied transaction by transaction
        first = header.first_seqno if situation.allow_nontransactional else block.first_seqno
        together = (logged.lane, whole.first if whole is not None and whole.together else first)
        database = text.context.database or ""
        behind = tuple(bodies.behind(text.tokens, database, header.last_seqno))
        yield Call(logged, text.context.thread_id, together, tuple(bodies.own(text.tokens, database)), behind)


def _name(statement: LoggedText) -> str | None:
    """Of a function that is made or dropped without a database, in lower case."""
    words = statement.words[:8]
    if not words or words[0] not in ("CREATE", "DROP") or "FUNCTION" not in words:
        return None
    rest = [token for token in statement.tokens[words.index("FUNCTION") + 1 :][:4] if token.upper not in _CONDITION]
    if not rest or (len(rest) > 1 and rest[1].text == "."):
        return None
    return rest[0].text.lower()
