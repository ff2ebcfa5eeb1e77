"""Programs behind a window's statements that could do as the lane's account what their caller could not.

Such a program runs on the target as that account. Under a filter it could change what the filter leaves out, without a
trace of that in the log: if it asks who runs it, or on which server. In every channel it could change the target's
accounts, and the channel's state: if it runs with its invoker's privileges and names their tables, or a view over them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from binlane.model import OWN_SCHEMA, Flavor, TableKey
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation, programs_made_by
from binlane.precheck.statements.window_statements import (
    first_reached,
    reaching_statements,
)
from binlane.safe_text import shown
from binlane.schema.compare import Severity
from binlane.schema.letter_case import lower
from binlane.schema.programs import SECURITY, Program
from binlane.servers.names import among, values_of
from binlane.shards.selection import Extent
from binlane.sql.charset import dialect_in
from binlane.sql.logged_kinds import SYSTEM_TABLES
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.facts import StatementKind
from binlane.sql.parse.lexer import Token
from binlane.sql.program_names import folded_name
from binlane.sql.programs.changes import object_of
from binlane.sql.programs.comparison import Difference, as_difference
from binlane.sql.programs.of_server import (
    NOTHING_LEFT_OUT,
    OF_INVOKER,
    SYSTEM_NAMES,
    LeftOut,
    changed_data,
    described,
    is_kept,
    kept_database,
    own_value,
)
from binlane.sql.programs.reach import folded, names_in, plain_name

_TABLES: Final = (
    f"SELECT table_schema, table_name FROM information_schema.tables WHERE {among('table_schema', ':names')}"
)
_MOST_FINDINGS: Final = 20
_HEAD: Final = 16
"""Tokens of an ALTER in which the name of its routine is."""
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


_TODO_KEPT: Final = (
    "on the target it runs as the channel's account, which may change them: make it SQL SECURITY DEFINER on both "
    "servers, or log such statements as rows (binlog_format=MIXED or ROW), or skip the transaction (docs/control.md) "
    f'and make its changes on the target by hand; for the server\'s own, filter.allow_statements = ["{SYSTEM_TABLES}"]'
)
_TODO_THROUGH: Final = (
    "skip the transaction (docs/control.md) and make its changes on the target by hand; for the server's own, "
    f'filter.allow_statements = ["{SYSTEM_TABLES}"]'
)
_TODO_LISTED: Final = (
    "a statement that calls it is taken by the databases that the log lists with it, and a list may be made: log such "
    "statements as rows (binlog_format=MIXED or ROW), or leave its database out (docs/filters.md), or skip the "
    "transaction (docs/control.md) and make its changes on the target by hand"
)
_TODO_RESTORE: Final = (
    "on the target that database is in use, and of another moment: if the program only writes there, `binlane restore "
    "--drop CHANNEL` and begin it anew with a copy of the dump without it, to be made by hand at the end; else "
    "end before the statement, or skip its transaction (docs/control.md) and make its changes by hand"
)
_UNREAD: Final = re.compile(
    rf"mysql|performance_schema|{OWN_SCHEMA}|binlog|kill|global|persist|purge|shutdown|outfile|dumpfile", re.I
)
"""Occurs in a text that may name what ``kept_database`` looks for."""


def check_account_programs(situation: Situation) -> Iterator[Finding]:
    """Routines, views and triggers behind the window's statements that ask which account or server runs them, in a
    channel with a filter, routines of their invoker's privileges that name the target's accounts or ``binlane``, or
    change something and name a view over them, and statements that change rows of such a view; also with
    ``allow_unsafe``: their caller's privileges are not the target's account's. In a restore all that name a database
    that it does not restore: the log has what they did to the source's, and the target's is in use."""
    runs, opens_views = _runs_programs(situation), situation.needs.ddl and situation.target.flavor is Flavor.MARIADB
    if runs or opens_views:
        views = _kept_views(situation)
        found = list(_naming_kept(situation, views))
        yield from _findings(situation, found, _TODO_KEPT, by_definitions=opens_views)
        yield from _made_invokers(situation, found) if opens_views else ()
        yield from islice(_written_views(situation, views), _MOST_FINDINGS)
    if runs and situation.selection.looks_at_statements:
        yield from _findings(situation, list(_asking(situation)), _TODO)
    if runs and situation.of_restore:
        yield from _findings(situation, list(_naming_left_out(situation)), _TODO_RESTORE)
    elif runs and situation.selection.selects and situation.plan.flavor is Flavor.MYSQL:
        yield from _findings(situation, list(_naming_left_out(situation)), _TODO_LISTED)


def _findings(
    situation: Situation, found: Sequence[Difference], plain: str, *, by_definitions: bool = False
) -> Iterator[Finding]:
    if not found:
        return
    reached = first_reached(situation, situation.reach, found, by_definitions=by_definitions)
    seen = set[str]()
    for each in islice((each for each in found if each.key in reached), _MOST_FINDINGS):
        if each.where not in seen:
            seen.add(each.where)
            seqno, where = reached[each.key]
            todo = _TODO_HIDDEN if each.is_hidden else plain
            yield Finding(Severity.FATAL, each.where, each.expected, each.found, f"{where} reaches it: {todo}", seqno)


def _made_invokers(situation: Situation, found: Sequence[Difference]) -> Iterator[Finding]:
    """The same routines where the window makes one, or gives it its invoker's privileges: whoever looks at a view on
    MariaDB, even at its columns, has its functions called, and verify and a later first copy do."""
    of_key = {each.key: each for each in found}
    for text in situation.every_text:
        if OF_INVOKER.isdisjoint(text.words) or object_of(text.tokens) == "VIEW":
            continue
        words = {folded_name(token.text) for token in text.tokens[:_HEAD]}
        keys = {key for key, _ in programs_made_by(text)}
        for key, each in of_key.items():
            if key in keys or (text.words[:1] == ("ALTER",) and folded_name(plain_name(key)) in words):
                todo = f"a view can have it called: {_TODO_KEPT}"
                yield Finding(Severity.FATAL, text.where, each.expected, each.found, todo, text.seqno)


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
    called = situation.stored_programs if situation.may_reach_programs else ()
    for side in (*situation.stored_triggers, *called):
        for each in side:
            if (difference := _of_program(each, flavor)) is not None:
                yield difference
    for text in situation.every_text:
        yield from _of_text(text, flavor)


def _naming_kept(situation: Situation, views: Mapping[TableKey, str]) -> Iterator[Difference]:
    """Routines with their invoker's privileges that name tables of the target's accounts, of the channel's state, or
    that the filter leaves out, or that change something and name a view of ``_kept_views``."""
    # few windows need it
    from binlane.sql.temporary_routines import tokens_of

    flavor, allowed = situation.plan.flavor, situation.selection.allowed
    # asked where a routine with its invoker's privileges is met
    left_out = functools.cache(lambda: _left_out(situation))
    # a statement of the window may change whose privileges those have that there are
    may_be_altered = any(text.words[:1] == ("ALTER",) and _INVOKER in text.words for text in situation.every_text)
    for side in situation.stored_programs if situation.may_reach_programs else ():
        for each in side:
            if each.kind != "view" and (may_be_altered or each.facts.get(SECURITY) == _INVOKER):
                tokens = tokens_of(each.text, flavor, each.sql_mode)
                if tokens is None:
                    what = _hidden_name(each.text)
                else:
                    what = kept_database(tokens, left_out(), each.key.database)
                    what = what or _through_view(tokens, each.key.database, views)
                if _is_refused(what, allowed):
                    yield _naming(as_difference(each), what)
    for text in situation.every_text:
        if not OF_INVOKER.isdisjoint(text.words):
            for key, database in programs_made_by(text):
                what = kept_database(text.tokens, left_out(), database)
                what = what or _through_view(text.tokens, database, views)
                if _is_refused(what, allowed):
                    yield _naming(Difference(key, text.where, "", "", is_trigger=key in text.facts.triggered), what)


def _kept_views(situation: Situation) -> dict[TableKey, str]:
    """The views of both servers and of the window through which tables of the target's accounts, or of the channel's
    state, can be changed, each with the database of these; also under another name that the window gives one."""
    # few windows need it
    from binlane.sql.temporary_routines import tokens_of

    flavor, found, behind = situation.plan.flavor, dict[TableKey, str](), list[tuple[TableKey, frozenset[TableKey]]]()

    def add(key: TableKey, tokens: Sequence[Token], database: str, tables: Iterable[TableKey] = ()) -> None:
        if is_kept(key.database):
            return  # whoever names it names these databases
        behind.append((folded(key), frozenset(names_in(tokens, database))))
        named = kept_database(tokens) or next((lower(each.database) for each in tables if is_kept(each.database)), None)
        if named is not None:
            found[folded(key)] = named

    for side in situation.stored_programs if situation.may_reach_programs else ():
        for each in side:
            tokens = tokens_of(each.text, flavor, each.sql_mode) if each.kind == "view" else None
            if tokens is not None:
                add(each.key, tokens, each.key.database)
    for text in situation.every_text:
        for key in text.facts.views:
            add(key, text.tokens, text.context.database or "", text.facts.tables)
        for old, new in text.facts.renames:
            # a catalogue has the name from before the window, or from behind it
            behind += [(folded(new), frozenset({folded(old)})), (folded(old), frozenset({folded(new)}))]
    while more := {key: found[name] for key, names in behind if key not in found for name in names & found.keys()}:
        found |= more
    return found


def _through_view(tokens: Sequence[Token], database: str, views: Mapping[TableKey, str]) -> str | None:
    """The database of a view that a routine names which changes rows."""
    if not views or changed_data(tokens) is None:
        return None
    return next((views[name] for name in names_in(tokens, database) if name in views), None)


def _written_views(situation: Situation, views: Mapping[TableKey, str]) -> Iterator[Finding]:
    """Statements that change rows of such a view: for one of the server's own tables they are of no kind that is
    applied."""
    allowed = situation.selection.allowed
    refused = {key: name for key, name in views.items() if _is_refused(name, allowed)}
    wanted = [Difference(key, f"view {key}", "", "") for key in refused]
    for text, logged, keys, _ in reaching_statements(situation, situation.reach, wanted) if wanted else ():
        # one that cannot be read may change any
        is_read = text is not None and text.facts.kind is not StatementKind.UNKNOWN and text.facts.may_change_rows
        for key in map(folded, text.facts.written) if text is not None and is_read else keys:
            if key in refused:
                expected = f"no change of {described(refused[key])} through a view, whatever privileges it has"
                header = logged.header
                where = f"{header.source}: statement of seqno {header.first_seqno}, {shown(logged.beginning)}"
                found = f"one through {key}"
                yield Finding(Severity.FATAL, where, expected, found, _TODO_THROUGH, header.first_seqno)


def _naming_left_out(situation: Situation) -> Iterator[Difference]:
    """Routines and views that name tables that the filter leaves out. MySQL lists all databases of a statement that
    calls one, and the filter goes by the list, which is whatever the writer of the log makes it; triggers are fired
    whatever they write, but for those of a restore, which has made them itself."""
    # few windows need it
    from binlane.sql.temporary_routines import tokens_of

    flavor, left_out = situation.plan.flavor, functools.cache(lambda: _left_out(situation))
    of_restore = situation.of_restore
    sides = situation.stored_programs if situation.may_reach_programs else ()
    if of_restore:
        # the source's run nowhere here
        sides = (*sides[1:], situation.stored_triggers[1])
    for side in sides:
        for each in side:
            tokens = tokens_of(each.text, flavor, each.sql_mode)
            if tokens is not None:
                what = kept_database(tokens, left_out(), each.key.database, by_definer=True)
                if what is not None:
                    yield _with_left_out(as_difference(each), what)
    for text in situation.every_text:
        for key, database in programs_made_by(text):
            what = kept_database(text.tokens, left_out(), database, by_definer=True)
            is_trigger = key in text.facts.triggered
            if what is not None and (of_restore or not is_trigger):
                yield _with_left_out(Difference(key, text.where, "", "", is_trigger=is_trigger), what)


def _with_left_out(difference: Difference, database: str) -> Difference:
    expected = "no table that the filter leaves out behind a statement that it takes"
    return difference._replace(expected=expected, found=described(database))


def _left_out(situation: Situation) -> LeftOut:
    """The target's databases that the filter leaves out as a whole, and the tables of the others that it leaves out."""
    selection, target = situation.selection, situation.target
    if not selection.selects:
        return NOTHING_LEFT_OUT
    names = [str(name) for (name,) in target.rows("SELECT schema_name FROM information_schema.schemata")]
    sources = {name: situation.renaming.source(name) for name in names if lower(name) not in SYSTEM_NAMES}
    # a name that no database of the source becomes is not the channel's
    on_source = {name: source for name, source in sources.items() if source is not None}
    extents = {name: selection.database(source)[0] for name, source in on_source.items()}
    databases = [name for name in sources if extents.get(name, Extent.NONE) is Extent.NONE]
    partly = [name for name, extent in extents.items() if extent is Extent.SOME]
    found = target.rows(_TABLES, names=values_of(partly)) if partly else []
    tables = [
        (str(name), str(table))
        for name, table in found
        if name in on_source and selection.table(TableKey(on_source[name], table)) is not None
    ]
    return LeftOut.of(databases, tables)


def _hidden_name(text: str | None) -> str | None:
    """A name that may be one of them, in a text that cannot be split into words; None if there is none."""
    found = None if text is None else _UNREAD.search(text)
    return None if found is None else found.group().lower()


def _is_refused(database: str | None, allowed: Collection[str]) -> bool:
    is_allowed = SYSTEM_TABLES in allowed and database in SYSTEM_NAMES
    return database is not None and not is_allowed


def _naming(difference: Difference, database: str | None) -> Difference:
    expected = (
        "no table of the target's accounts, of the channel's state or that the filter leaves out, and no statement "
        "that changes the server or unnamed tables, in a routine with its invoker's privileges"
    )
    return difference._replace(expected=expected, found=described(database or ""))


def _of_program(program: Program, flavor: Flavor) -> Difference | None:
    # few windows need it
    from binlane.sql.temporary_routines import tokens_of

    difference = as_difference(program)
    tokens = tokens_of(program.text, flavor, program.sql_mode)
    if tokens is None:
        return _with(difference, "a text that the account may not read", is_hidden=True)
    by_definer = program.kind == "trigger" or program.facts.get(SECURITY) != _INVOKER
    what = own_value(tokens, flavor, by_definer=by_definer, oracle=dialect_in(program.sql_mode, flavor).oracle)
    return None if what is None else _with(difference, what)


def _of_text(text: LoggedText, flavor: Flavor) -> Iterator[Difference]:
    words: Sequence[str] = text.words
    for key, _ in programs_made_by(text):
        what = own_value(text.tokens, flavor, by_definer=OF_INVOKER.isdisjoint(words), oracle=text.dialect.oracle)
        if what is not None:
            is_trigger = key in text.facts.triggered
            yield _with(Difference(key, f"{text.where}", "", "", is_trigger=is_trigger), what)


def _with(difference: Difference, what: str, *, is_hidden: bool = False) -> Difference:
    return difference._replace(expected="what is alike for every account and server", found=what, is_hidden=is_hidden)
