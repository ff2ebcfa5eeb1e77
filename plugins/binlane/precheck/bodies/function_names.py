"""Names of functions that one server has built in, or has from a library, and the other has not.

A call without a database is a server's own function if the server has one of that name, and otherwise a stored function
of the default database. Families and versions have other functions built in, and a library is one server's alone. So
whoever may make functions in one database of the source could have the target call another function than the source:
``setval(other.seq, 9)`` is a function of his on MySQL, and moves a sequence of another database on MariaDB. So does
``mariadb_schema.setval(other.seq, 9)`` there, while a database of MySQL may be called so.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from binlane.apply.session.retry_verdicts import error_code, is_lost
from binlane.binlog.types.literals import identifier
from binlane.model import Flavor, ItemKind
from binlane.precheck.bodies.body_parts import Body, BodyPart, bodies, reaching
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation, programs_made_by
from binlane.safe_text import shown
from binlane.schema.compare import Severity
from binlane.schema.letter_case import lower
from binlane.servers.function_answers import NOT_OWN, NOTHING_PREPARED
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.cursor import Cursor, find_word, is_symbol
from binlane.sql.parse.definitions import query_start
from binlane.sql.parse.engines import defines_table
from binlane.sql.parse.functions import ADJACENT_ONLY, BEFORE_PARENTHESIS, BUILTIN, OWN_SCHEMAS
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.parse.table_calls import calls_elsewhere
from binlane.sql.program_names import folded_name
from binlane.sql.programs.reach import naming, plain_name
from binlane.work.logged_statements import LaneStatement

_MOST_FINDINGS: Final = 20
_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)
_NO_CALL: Final = frozenset({"INTO", "TABLE", "CALL", "PROCEDURE", "FUNCTION"})
"""Words behind which a name in front of a parenthesis is not a function's."""
_WORDS_OF_BODIES: Final = BEFORE_PARENTHESIS | {"AGAINST"}
"""Words in front of a parenthesis that are no calls: all but DATETIME and AGAINST are reserved in both families. A
server answers to them as to a function of its own (1064), and an archive has no server to ask."""
_STORED: Final = "a stored function, or none,"
_OWN: Final = "a function of the server's own"
_TODO: Final = (
    "write the function's database in front of its name (`app`.`{name}`()) where the stored one is meant, or give it "
    "another name; log such statements as rows (binlog_format=MIXED or ROW), or skip the transaction "
    "(docs/control.md) and make its changes on the target by hand"
)

_TODO_OF_SCHEMA: Final = (
    "MariaDB calls its own functions behind this name, whether or not there is such a database: have the function in a "
    "database of another name; log such statements as rows (binlog_format=MIXED or ROW), or skip the transaction "
    "(docs/control.md) and make its changes on the target by hand"
)
_TODO_OF_TABLE: Final = (
    "make the table on the target by hand, without that function, and leave the statement out (binlane skip), or "
    "exclude the table"
)


class NamedCall(NamedTuple):
    """A call of a function by its name alone, or behind one of MariaDB's own schemas."""

    name: str
    is_quoted: bool
    has_gap: bool
    """A blank is in front of the parenthesis: some functions are built in only without one, unless the sql_mode has
    IGNORE_SPACE."""
    schema: str = ""
    """The one in front of the name."""

    @property
    def shown(self) -> str:
        """As a message names it."""
        return f"{self.schema}.{self.name}" if self.schema else self.name

    @property
    def spellings(self) -> tuple[str, ...]:
        """The call by its name, without arguments; both ways if a blank may decide."""
        name = identifier(self.name) if self.is_quoted else self.name
        return (f"{name}()", f"{name} ()") if self.has_gap else (f"{name}()",)


def check_function_names(situation: Situation) -> Iterator[Finding]:
    """Calls that are a stored function's on one of the two servers, and on the other one of the server's own; also with
    ``allow_unsafe``: the target would call another function than the source has called."""
    yield from islice(_findings_of_tables(situation), _MOST_FINDINGS)
    needs = situation.needs
    makes_views = needs.ddl and any(_runs(each) for each in situation.every_text)
    if not (needs.statements or needs.loads or makes_views):
        return
    # a trigger is a body where neither server has a routine or a view
    if not (situation.may_reach_programs or any(situation.stored_triggers)):
        return
    stored = _stored(situation)
    # a call must be in the text of a statement, or in a body that one reaches
    found = list(_calls_of_statements(situation, stored))
    called = {call for _, calls in found for call in calls}
    behind = needs.statements or needs.loads
    if behind:
        flavor = situation.plan.flavor
        called.update(call for body in bodies(situation) for call in _calls_of_body(body, stored, flavor))
    differing = _differing(situation, called) if called else {}
    if differing:
        yield from islice(_findings(situation, found, differing, stored, behind=behind), _MOST_FINDINGS)


def _findings_of_tables(situation: Situation) -> Iterator[Finding]:
    """Functions that a table's columns compute with, and that are not built in: MariaDB takes one of a library, and
    calls it for rows. No server takes a stored one there."""
    found = [(each, call) for each in situation.every_text for call in _calls_of_table(each)]
    differing = _differing(situation, {call for _, call in found}) if found else {}
    for each, call in found:
        if call in differing:
            what = f"{call.name}(): a function of the server's own, or of a library, on one of them alone"
            expected = "columns that compute by functions that both servers have"
            yield Finding(Severity.FATAL, each.where, expected, what, _TODO_OF_TABLE, each.seqno)


def _calls_of_table(logged: LoggedText) -> Iterator[NamedCall]:
    """Of its columns, keys and partitions. The query of CREATE TABLE .. SELECT is a statement like others."""
    tokens = logged.tokens
    if not defines_table(tokens):
        return
    tokens = _without_query(tokens)
    for at in calls_elsewhere(tokens, logged.flavor):
        if not (at and is_symbol(tokens[at - 1], ".")):
            yield NamedCall(tokens[at].text, tokens[at].kind is TokenKind.NAME, tokens[at + 1].gap)


def _without_query(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens of a CREATE TABLE in front of its query, which stands outside of all parentheses but its own; a word
    behind a dot is a name."""
    at, depth = find_word(tokens, "TABLE") + 1 if tokens[0].upper == "CREATE" else len(tokens), 0
    while (start := query_start(Cursor(tokens, at))) < len(tokens):
        depth += _opened(tokens[at:start])
        if depth == 0 and not is_symbol(tokens[start - 1], "."):
            return tokens[:start]
        word = next(index for index in range(start, len(tokens)) if not is_symbol(tokens[index], "("))
        depth += _opened(tokens[start:word])
        at = word + 1
    return tokens


def _opened(tokens: Sequence[Token]) -> int:
    return sum(is_symbol(token, "(") - is_symbol(token, ")") for token in tokens)


def _findings(
    situation: Situation,
    found: Iterable[tuple[LaneStatement, Collection[NamedCall]]],
    differing: Collection[NamedCall],
    stored: Collection[str],
    *,
    behind: bool,
) -> Iterator[Finding]:
    seen = set[tuple[int, str]]()
    for logged, calls in found:
        for call in sorted(calls):
            if call in differing and (logged.header.first_seqno, call.shown) not in seen:
                seen.add((logged.header.first_seqno, call.shown))
                yield _finding(logged, call.shown, "")

    def find(body: Body) -> Iterator[BodyPart]:
        for call in _calls_of_body(body, stored, situation.plan.flavor):
            if call in differing:
                yield BodyPart(call.shown, needs_rows=False)

    for _, logged, program, part in reaching(situation, find) if behind else ():
        if (logged.header.first_seqno, part.what) not in seen:
            seen.add((logged.header.first_seqno, part.what))
            yield _finding(logged, part.what, f" in {program}")


def _finding(logged: LaneStatement, name: str, place: str) -> Finding:
    header = logged.header
    where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
    found = f"{name}(){place}: {_STORED} on one server, {_OWN} on the other"
    expected = "calls that mean the same function on both servers"
    todo = _TODO_OF_SCHEMA if "." in name else _TODO.format(name=name)
    return Finding(Severity.FATAL, where, expected, found, todo, header.first_seqno)


def _stored(situation: Situation) -> frozenset[str]:
    """The names of stored programs of either server and of the window, as the servers compare them."""
    made = (plain_name(key) for text in situation.every_text for key, _ in programs_made_by(text))
    return frozenset(map(folded_name, (*situation.program_names, *made)))


def _calls_of_statements(
    situation: Situation, stored: Collection[str]
) -> Iterator[tuple[LaneStatement, Collection[NamedCall]]]:
    for logged, _ in situation.transactions_with(naming(stored)):
        text = LoggedText.of(logged.header.first_seqno, logged.header.source, logged.item, situation.plan.flavor)
        # of a definition no body runs
        if text is not None and (logged.item.kind is not ItemKind.DDL or _runs(text)):
            calls = frozenset(_calls(text.every_token, stored))
            if calls:
                yield logged, calls


def _runs(text: LoggedText) -> bool:
    """Whether a definition has a query that the target reads, and no body."""
    return bool(text.facts.views) or text.facts.create_select


def _calls(tokens: Sequence[Token], stored: Collection[str]) -> Iterator[NamedCall]:
    for at, token in enumerate(tokens[:-1]):
        behind, is_qualified = tokens[at + 1], at > 0 and is_symbol(tokens[at - 1], ".")
        schema = tokens[at - 2].text if is_qualified and at > 1 else ""
        if token.kind not in _NAMES or not is_symbol(behind, "("):
            continue
        # behind any other name a function is a stored one on both families
        if is_qualified and lower(schema) not in OWN_SCHEMAS:
            continue
        if folded_name(token.text) in stored:
            yield NamedCall(token.text, token.kind is TokenKind.NAME, behind.gap, schema)


def _calls_of_body(body: Body, stored: Collection[str], flavor: Flavor) -> Iterator[NamedCall]:
    """Also of names that no function of the source has: it has never come to the call, and the target's function may be
    one of a library, which does as the server's own account whatever it is made for."""
    yield from _calls(body.tokens, stored)
    for at, (token, behind) in enumerate(itertools.pairwise(body.tokens)):
        if token.kind not in _NAMES or not is_symbol(behind, "(") or token.upper in _WORDS_OF_BODIES:
            continue
        before = body.tokens[at - 1] if at else behind
        if not is_symbol(before, ".") and before.upper not in _NO_CALL and token.text.upper() not in BUILTIN[flavor]:
            yield NamedCall(token.text, token.kind is TokenKind.NAME, behind.gap)


def _differing(situation: Situation, calls: Collection[NamedCall]) -> Collection[NamedCall]:
    """The calls of a function that one server has and the other has not."""
    spellings = sorted({spelled for call in calls for spelled in call.spellings})
    theirs = situation.target.ask(own_functions, spellings)
    source, flavor = situation.source, situation.plan.flavor
    ours = source.ask(own_functions, spellings) if source is not None else _built_in(calls, flavor)
    sides = ((flavor, ours), (situation.target.flavor, theirs))

    def answers(call: NamedCall) -> set[bool]:
        # MySQL has no schemas for its own functions: behind any name stands a stored one
        return {
            spelled in own and (not call.schema or of is Flavor.MARIADB)
            for spelled in call.spellings
            for of, own in sides
        }

    return {call for call in calls if len(answers(call)) > 1}


def own_functions(connection: Connection, spellings: Iterable[str]) -> frozenset[str]:
    """The calls that are ones of the server's own functions, as its parser says: it is asked to prepare each, which
    calls nothing."""
    found = set[str]()
    for spelled in spellings:
        connection.execute(text("SET @binlane_call = :call"), {"call": f"DO {spelled}"})
        try:
            connection.execute(text("PREPARE binlane_call FROM @binlane_call"))
        except DBAPIError as exc:
            if is_lost(exc) or error_code(exc) == NOTHING_PREPARED:
                raise
            if error_code(exc) in NOT_OWN:
                continue
        else:
            connection.execute(text("DEALLOCATE PREPARE binlane_call"))
        found.add(spelled)
    return frozenset(found)


def _built_in(calls: Iterable[NamedCall], flavor: Flavor) -> frozenset[str]:
    """The same of a source that cannot be asked, as far as its family's functions are known."""
    found = set[str]()
    for call in calls:
        name = call.name.upper()
        if name in BUILTIN[flavor]:
            found.update(each for each in call.spellings if " " not in each or name not in ADJACENT_ONLY)
    return frozenset(found)
