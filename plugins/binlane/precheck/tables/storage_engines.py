"""Engines and row formats of tables: those without transactions, and settings of the target that decide on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

from binlane.model import ANY_TABLE, Flavor, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.transaction.collations import Collations
from binlane.plan.transaction.rename import renamed_alterations
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation, programs_made_by
from binlane.precheck.statements.window_statements import (
    first_reached,
)
from binlane.schema.compare import Difference, Severity, compare_schemas, rules_for
from binlane.schema.model import TRANSACTIONAL_ENGINES, Schema, Table
from binlane.servers.variables import global_variables
from binlane.sql.logged_statement import LoggedText, index_of
from binlane.sql.programs.comparison import Difference as ProgramDifference
from binlane.sql.programs.comparison import as_difference

if TYPE_CHECKING:
    from binlane.sql.told_engines import ToldEngines

_Variables = Mapping[str, str]
_INNODB: Final = "INNODB"
_MOST_FINDINGS: Final = 20
_TODO_FULLTEXT: Final = (
    "set blocks.transactions = 1 and remove the window's folder, or, if no row that it may find is of the transactions "
    "before, set allow_unsafe in the channel's file; log such statements as rows (binlog_format = ROW)"
)
_AGAINST: Final = "AGAINST"
_BLOCK_SIZE: Final = re.compile(r"\bKEY_BLOCK_SIZE\s*+(?:=\s*+)?(?P<size>\d+)", re.I)
_SIZES: Final = frozenset({"0", "1", "2", "4", "8", "16"})
_KIND_TODO: Final = "give the target's an engine of that kind until the window is applied"
_DEFAULT_TODO: Final = "SET GLOBAL default_storage_engine on the target to the source's until the window is applied"
_EACH: Final = re.compile(b"")
_UNKNOWN_TODO: Final = "apply up to the statement (--until), then the statement by hand, and skip it"
_ADVICE_MADE: Final = (
    "ALTER TABLE .. ENGINE=InnoDB on the target before the window, or set apply.allow_nontransactional "
    "(docs/compatibility.md describes the risk)"
)


def check_rolled_back_engines(situation: Situation) -> Iterator[Finding]:
    """Tables of a statement that failed or was rolled back, if only one server's is transactional or has a key.

    An error or a rollback leaves what tables without transactions keep, and another key would be met at another row.
    Where statements may have changed tables that they do not name, these are all tables.
    """
    source, target, keys = situation.source_tables, situation.tables, situation.plan.undone_tables
    yield from _of_other_kinds(source, target, keys)
    yield from _given_in_the_window(situation, source, keys)
    yield from _given_since(situation, target, keys)
    yield from _differing(situation, source, target, {key for key in keys if target.table(key) is not None})
    if not _reaches_further(situation):
        return
    if situation.target.grants.missing(("SELECT",)):
        expected = "SELECT on *.*, to see the tables behind a routine, trigger or view of a failed statement"
        yield Finding(Severity.FATAL, "target: privilege SELECT", expected, "not on all databases", "grant it")
    source, target = situation.everything
    if source is not None:
        letters = target.letter_case
        theirs = letters.names(frozenset(source.databases))
        target = target.of({name for name in target.databases if letters.name(name) in theirs})
    hidden = target.tables.keys() - keys
    yield from islice(_of_other_kinds(source, target, hidden), _MOST_FINDINGS)
    yield from islice(_given_in_the_window(situation, source, keys, others=True), _MOST_FINDINGS)
    yield from islice(_given_since(situation, target, hidden), _MOST_FINDINGS)
    yield from islice(_differing(situation, source, target, hidden), _MOST_FINDINGS)


def _reaches_further(situation: Situation) -> bool:
    """Whether a failed or rolled-back statement may have changed tables that it does not name: behind a stored routine,
    behind triggers or a view of those that it names, or behind what the window's own DDL makes of them."""
    plan, servers = situation.plan, [each for each in (situation.source_tables, situation.tables) if each is not None]
    if ANY_TABLE in plan.undone:
        return True
    views = {situation.compared(key) for schema in servers for key in schema.views}
    for key in plan.undone_tables:
        if plan.altered.names(key) or situation.compared(key) in views:
            return True
        if any(table.triggers for schema in servers if (table := schema.table(key)) is not None):
            return True
    return False


def _differing(
    situation: Situation, source: Schema | None, target: Schema, keys: Collection[TableKey]
) -> Iterator[Finding]:
    """What else of the tables differs, as far as ``tables.check_definitions`` does not say it: a failed statement that
    meets another key has the same error, behind other rows."""
    rules = rules_for(
        source,
        target,
        complete_images=False,
        allow_non_transactional=situation.allow_nontransactional,
        collations=Collations(situation.channel.collations).given,
    )

    def found(*alterations: Alterations) -> list[Difference]:
        altered = {key for key in keys if any(each.names(key) for each in alterations)}
        differences = compare_schemas(source, target, keys, rules, altered=altered)
        return [each for each in differences if _ends_it_elsewhere(each, known=each.table in situation.touched)]

    altered = situation.plan.altered
    differences = found(altered)
    if differences and situation.source is not None:
        behind = situation.source.altered_behind(whole=True)
        differences = differences if behind is None else found(altered, renamed_alterations(behind, situation.renaming))
    for each in differences:
        todo = f"{each.hint}: a statement in the source's log ended with an error, and would end at another row there"
        yield Finding(Severity.FATAL, f"{each.where}: {each.what}", each.expected, each.found, todo)


def _ends_it_elsewhere(difference: Difference, *, known: bool) -> bool:
    """``known``: the table's fatal differences are found by another check."""
    if difference.severity is Severity.FATAL:
        return not known
    return difference.severity is Severity.NOT_REDUCED and difference.what in ("unique keys", "foreign key")


def _of_other_kinds(source: Schema | None, target: Schema, keys: Collection[TableKey]) -> Iterator[Finding]:
    """Tables that are transactional on one server only. ``source``: None for an archive."""
    for key in sorted(keys, key=str):
        theirs, ours = target.table(key), None if source is None else source.table(key)
        if theirs is None or (ours is not None and ours.transactional == theirs.transactional):
            continue
        expected = "unknown: an archive does not say it" if source is None else "unknown: no such table now"
        todo = (
            "the source's log holds a statement that changed it, or may have changed it behind a routine, trigger or "
            "view, and that ended with an error or was rolled back, after which each engine keeps something else: "
            + (_KIND_TODO if ours is not None else _UNKNOWN_TODO)
        )
        found = ours.engine if ours is not None else expected
        yield Finding(Severity.FATAL, f"{key}: engine", f"a kind as on the source ({found})", theirs.engine, todo)


def _given_in_the_window(
    situation: Situation, source: Schema | None, keys: Collection[TableKey], *, others: bool = False
) -> Iterator[Finding]:
    """Tables that get their engines in the window: by a server's own default, or others than they had before.

    ``source``: None for an archive. ``others``: all but ``keys``.
    """
    named, told = set(map(situation.compared, keys)), None
    for statement in situation.asked.texts:
        words, engine = statement.words, _option(statement, "ENGINE")
        if words[:1] not in (("CREATE",), ("ALTER",)) or "TABLE" not in words[:6]:
            continue
        for key in sorted(statement.facts.tables, key=str):
            if (situation.compared(key) in named) is others:
                continue
            ours = None if source is None else source.table(key)
            if words[0] == "ALTER" and engine is not None:
                expected = "one engine in the whole window, where a statement had an error or was rolled back"
                found = f"perhaps another one up to {statement.where}"
                yield Finding(Severity.FATAL, f"{key}: engine", expected, found, _UNKNOWN_TODO)
            elif _is_new(statement) and engine is None:
                told = _told(situation) if told is None else told
                yield from _made_by_default(situation, statement, key, ours, told)


def _made_by_default(
    situation: Situation, statement: LoggedText, key: TableKey, ours: Table | None, told: ToldEngines
) -> Iterator[Finding]:
    """A table whose engine may be of another kind on the source, if a statement had an error or was rolled back while
    it was there. ``ours``: the source's, if it has it now."""
    undone = told.first_undone(statement, key)
    if undone is None:
        return
    default = situation.target.variables.get("default_storage_engine", _INNODB)
    if told.is_ended(statement, key) or _has_another_since(situation, key):
        ours = None
    found = f"{default}, the target's default, since {statement.where} names none"
    if _is_of_kind(ours, default):
        return
    known, todo = "unknown: no such table now, or another" if ours is None else ours.engine, _DEFAULT_TODO
    if ours is None and told.is_without_transactions(statement, key):
        if default.lower() not in TRANSACTIONAL_ENGINES:
            return
        known = f"one without transactions, since the failed statement of seqno {undone} is in the log"
    elif ours is None:
        # no default of the target would be known to be the source's
        todo = f"seqno {undone} failed or was rolled back behind it: {_UNKNOWN_TODO}"
    yield Finding(Severity.FATAL, f"{key}: engine", f"a kind as on the source ({known})", found, todo)


def _has_another_since(situation: Situation, key: TableKey) -> bool:
    """Whether the source may have given a table another engine behind the window."""
    if situation.source is None:
        return False
    behind = situation.source.engines_behind()
    return behind is None or renamed_alterations(behind, situation.renaming).names(key)


def _told(situation: Situation) -> ToldEngines:
    """Reads all statements of the window."""
    # few windows need it
    from binlane.sql.told_engines import ToldEngines

    found = situation.transactions_with(_EACH)
    statements = ((logged.header.last_seqno, logged.header.source, logged.item) for logged, _ in found)
    is_clear = not situation.target.makes_temporary_tables
    letters = situation.tables.letter_case
    return ToldEngines.of(situation.every_text, statements, situation.plan.flavor, letters, is_clear=is_clear)


def _given_since(situation: Situation, target: Schema, keys: Collection[TableKey]) -> Iterator[Finding]:
    """Tables that may have had another engine on the source when the window was logged."""
    keys = sorted((key for key in keys if target.table(key) is not None), key=str)
    if situation.source is None or not keys:
        return
    behind = situation.source.engines_behind()
    since = None if behind is None else renamed_alterations(behind, situation.renaming)
    for key in keys:
        if since is None or since.names(key):
            expected = "the source's engine as it was in the window, where a statement had an error or was rolled back"
            yield Finding(Severity.FATAL, f"{key}: engine", expected, "perhaps another one since", _UNKNOWN_TODO)


def _is_of_kind(table: Table | None, engine: str) -> bool:
    return table is not None and table.transactional == (engine.lower() in TRANSACTIONAL_ENGINES)


def check_gtid_consistency(situation: Situation) -> Iterator[Finding]:
    """Non-transactional tables on a target with ``enforce_gtid_consistency``.

    A channel that allows them writes those by BINLOG alone, under a GTID (``apply.nontransactional``).
    """
    if situation.tables.settings.get("enforce_gtid_consistency", "OFF") != "ON":
        return
    gtids_are_on = situation.target.flavor is Flavor.MYSQL and situation.target.value("gtid_mode") == "ON"
    by_gtid = situation.allow_nontransactional and gtids_are_on
    for key, table in _nontransactional(situation):
        if not by_gtid or key in situation.by_sql:
            todo = (
                "such a target takes no change of it beside the lane's position (1785): ALTER TABLE .. ENGINE=InnoDB, "
                'or set apply.allow_nontransactional, with apply.writer = "binlog"'
            )
            expected = "a transactional one, with enforce_gtid_consistency=ON"
            yield Finding(Severity.FATAL, f"{key}: engine", expected, table.engine, todo)


def _nontransactional(situation: Situation) -> Iterator[tuple[TableKey, Table]]:
    """The target's tables without transactions that the window may change, by name."""
    plan = situation.plan
    for key in sorted({*plan.applied_tables, *plan.undone_tables, *plan.written}, key=str):
        table = situation.tables.table(key)
        if table is not None and not table.transactional:
            yield key, table


_FLUSH: Final = "innodb_flush_log_at_trx_commit"
_FLUSHES: Final = {Flavor.MYSQL: ("1",), Flavor.MARIADB: ("1", "3")}
"""Its values under which a COMMIT is durable."""


def check_lost_notes(situation: Situation) -> Iterator[Finding]:
    """Non-transactional tables on a target that may forget commits: their changes could be made twice (advice).

    What tells whether such a change was made, its note and the lane's position, is in InnoDB, and the change is not.
    """
    value = situation.target.value(_FLUSH)
    if not situation.allow_nontransactional or value in ("", *_FLUSHES[situation.target.flavor]):
        return
    for key, table in islice(_nontransactional(situation), 1):
        todo = (
            f"SET GLOBAL {_FLUSH} = 1 on the target while windows change such tables ({key}: {table.engine}): where "
            "the server is killed, or its machine loses power, it forgets the last second's notes and positions and "
            "keeps these changes, which are then made twice"
        )
        expected = " or ".join(_FLUSHES[situation.target.flavor])
        yield Finding(Severity.INFO, f"target: {_FLUSH}", expected, value, todo)


def check_copied_engines(situation: Situation) -> Iterator[Finding]:
    """Tables that become non-transactional by CREATE .. LIKE or RENAME in the window.

    No ENGINE in the text of the window's DDL tells of it.
    """
    if situation.allow_nontransactional:
        return
    plan, compared = situation.plan, situation.compared
    written = {compared(key) for key in (*plan.applied_tables, *plan.written, *plan.loaded, *plan.undone_tables)}
    known = {compared(key) for key, table in situation.tables.tables.items() if not table.transactional}
    for statement in situation.asked.texts if known else ():
        for key in _made(statement, known, compared):
            if compared(key) in written:
                where = f"{statement.where}: engine of {key}"
                yield Finding(Severity.FATAL, where, "a transactional one", "one without transactions", _ADVICE_MADE)


def _made(statement: LoggedText, known: set[TableKey], compared: Callable[[TableKey], TableKey]) -> Iterator[TableKey]:
    """The tables that the statement makes of those that are ``known``, which follows."""
    words, facts = statement.words, statement.facts
    if words[:1] not in (("CREATE",), ("ALTER",), ("RENAME",), ("DROP",)) or facts.temporary:
        return
    old = _likeness(statement, facts.tables, compared) if words[0] == "CREATE" else None
    made = [key for key in facts.tables if key != old] if old is not None and compared(old) in known else []
    engine = index_of(words, "ENGINE")
    is_safe = engine is not None and {*map(str.lower, words[engine + 1 : engine + 3])} & TRANSACTIONAL_ENGINES
    if words[0] in ("CREATE", "DROP") or (words[0] == "ALTER" and is_safe):
        known -= {compared(key) for key in facts.tables if key != old}
    for before, after in facts.moves:
        if compared(before) in known:
            known.discard(compared(before))
            made.append(after)
    known |= {compared(key) for key in made}
    yield from made


def _likeness(
    statement: LoggedText, tables: frozenset[TableKey], compared: Callable[[TableKey], TableKey]
) -> TableKey | None:
    """What CREATE TABLE .. LIKE names."""
    at = index_of(statement.words, "LIKE")
    if at is None:
        return None
    texts = [token.text for token in statement.tokens[at + 1 : at + 4]]
    whole = TableKey(texts[0], texts[2]) if len(texts) == 3 and texts[1] == "." else None
    key = whole or TableKey(statement.context.database or "", texts[0] if texts else "")
    return next((table for table in tables if compared(table) == compared(key)), None)


def check_table_settings(situation: Situation) -> Iterator[Finding]:
    """Settings of the target under which a CREATE or ALTER TABLE fails or makes a different table.

    The log does not hold the source's own values of them. Tried on MariaDB 10.11 and MySQL 9.7 (errors 1005, 1031,
    1173, 1290, 3161, 4047). Lanes set ``sql_require_primary_key`` and ``sql_generate_invisible_primary_key``.
    """
    for statement in situation.asked.texts:
        if statement.words[:1] not in (("CREATE",), ("ALTER",)) or "TABLE" not in statement.words[:6]:
            continue
        variables = situation.target.variables
        for name, is_against, expected, todo in _RULES:
            if name == "default_storage_engine" and situation.allow_nontransactional:
                continue
            if name == _FORMAT and _makes_old_on_source(situation):
                continue
            if variables.get(name) is not None and is_against(statement, variables):
                where = f"{statement.where}: {name} of the target"
                yield Finding(Severity.FATAL, where, expected, variables[name] or "nothing", todo)


def _makes_old_on_source(situation: Situation) -> bool:
    """Whether the source makes columns of MariaDB's older format, too; what wrote an archive cannot be asked."""
    source = situation.source
    return source is None or source.ask(global_variables, (_FORMAT,)).get(_FORMAT) != "ON"


def _is_on(variables: _Variables, name: str) -> bool:
    return variables.get(name, "OFF").upper() not in ("OFF", "0", "")


def _option(statement: LoggedText, name: str) -> str | None:
    """What a table option is set to, in capitals; None if it is not there."""
    words = [token.text.upper() for token in statement.tokens]
    at = index_of(words, name)
    if at is None:
        return None
    behind = at + 2 if words[at + 1 : at + 2] == ["="] else at + 1
    return words[behind] if behind < len(words) else None


def _is_new(statement: LoggedText) -> bool:
    """Whether it makes a table that is neither temporary nor another one's likeness."""
    return statement.words[0] == "CREATE" and not {"TEMPORARY", "LIKE"} & set(statement.words)


def _is_innodb(statement: LoggedText, variables: _Variables) -> bool:
    engine = _option(statement, "ENGINE") or variables.get("default_storage_engine", _INNODB).upper()
    return engine == _INNODB


def _lacks_key(statement: LoggedText, variables: _Variables) -> bool:
    if not _is_on(variables, "innodb_force_primary_key") or not _is_innodb(statement, variables):
        return False
    words = statement.words
    if statement.words[0] == "ALTER":
        return ("DROP", "PRIMARY") in pairwise(words) and words.count("PRIMARY") == 1 and "UNIQUE" not in words
    return _is_new(statement) and not {"PRIMARY", "UNIQUE"} & set(words)


def _is_forced(statement: LoggedText, variables: _Variables) -> bool:
    forced, wanted = variables["enforce_storage_engine"].upper(), _option(statement, "ENGINE")
    if not forced or (statement.words[0] == "ALTER" and wanted is None):
        return False
    return (wanted or variables.get("default_storage_engine", _INNODB).upper()) != forced


def _is_disabled(statement: LoggedText, variables: _Variables) -> bool:
    disabled = {name.strip().upper() for name in variables["disabled_storage_engines"].split(",")}
    wanted = _option(statement, "ENGINE")
    if wanted is None and _is_new(statement):
        wanted = variables.get("default_storage_engine", _INNODB).upper()
    return wanted in disabled - {""}


def _by_default(statement: LoggedText, variables: _Variables) -> bool:
    default = variables["default_storage_engine"].lower()
    return _is_new(statement) and _option(statement, "ENGINE") is None and default not in TRANSACTIONAL_ENGINES


def _is_compressed(statement: LoggedText, variables: _Variables) -> bool:
    if not _is_on(variables, "innodb_read_only_compressed") or not _is_innodb(statement, variables):
        return False
    return _option(statement, "ROW_FORMAT") == "COMPRESSED" or (_block_size(statement) or "0") != "0"


def _is_too_strict(statement: LoggedText, variables: _Variables) -> bool:
    if not _is_on(variables, "innodb_strict_mode") or not _is_innodb(statement, variables):
        return False
    size, row_format = _block_size(statement), _option(statement, "ROW_FORMAT")
    page = int(variables.get("innodb_page_size", "16384"))
    if row_format == "COMPRESSED" and page > 16384:
        return True
    if row_format == "FIXED" or (size is not None and size not in _SIZES):
        return True
    if size in (None, "0"):
        return False
    return row_format not in (None, "DEFAULT", "COMPRESSED") or int(size) * 1024 > page


def _block_size(statement: LoggedText) -> str | None:
    match = _BLOCK_SIZE.search(statement.sql)
    return None if match is None else match["size"]


def _is_in_old_format(statement: LoggedText, variables: _Variables) -> bool:
    return not _is_on(variables, _FORMAT) and not _TEMPORAL.isdisjoint(statement.words)


_FORMAT: Final = "mysql56_temporal_format"
_TEMPORAL: Final = frozenset({"TIME", "DATETIME", "TIMESTAMP"})
_Rule = tuple[str, Callable[[LoggedText, _Variables], bool], str, str]
_RULES: Final[tuple[_Rule, ...]] = (
    (
        "innodb_force_primary_key",
        _lacks_key,
        "OFF for a table without a primary key",
        "SET GLOBAL innodb_force_primary_key = OFF on the target, or give the table a key on the source",
    ),
    (
        "enforce_storage_engine",
        _is_forced,
        "nothing, or the engine of the statement",
        "SET GLOBAL enforce_storage_engine = NULL on the target: it would refuse the statement, or make another table",
    ),
    (
        "disabled_storage_engines",
        _is_disabled,
        "a list without the engine of the statement",
        "restart the target with another disabled_storage_engines, or let the source take another engine",
    ),
    (
        "default_storage_engine",
        _by_default,
        "a transactional engine, since the statement names none",
        "SET GLOBAL default_storage_engine = InnoDB on the target, or set apply.allow_nontransactional",
    ),
    (
        "innodb_read_only_compressed",
        _is_compressed,
        "OFF for a compressed table",
        "SET GLOBAL innodb_read_only_compressed = OFF on the target",
    ),
    (
        "innodb_strict_mode",
        _is_too_strict,
        "OFF for a row format and block size that do not fit each other, or the server's pages",
        "SET GLOBAL innodb_strict_mode = OFF on the target, as the source has it",
    ),
    (
        _FORMAT,
        _is_in_old_format,
        "ON, as on the source: the target would not take the rows",
        "SET GLOBAL mysql56_temporal_format = ON on the target",
    ),
)


def check_fulltext_programs(situation: Situation) -> Iterator[Finding]:
    """Routines, views and triggers that ask a FULLTEXT index, behind statements whose blocks may hold the rows before
    them: InnoDB's index has no row of a transaction before it commits."""
    needs, is_allowed = situation.needs, situation.channel.apply.allow_unsafe
    if is_allowed or not (needs.statements or needs.loads):
        return
    if situation.settings.block_transactions == 1:
        return
    sides = situation.stored_triggers, situation.stored_programs if situation.may_reach_programs else ((), ())
    stored = (each for pair in sides for side in pair for each in side)
    found = [as_difference(each) for each in stored if each.text is not None and _AGAINST in each.text.upper()]
    for text in situation.every_text:
        if _AGAINST in text.words:
            fires = text.facts.triggered
            found += [
                ProgramDifference(key, str(key), "", "", is_trigger=key in fires) for key, _ in programs_made_by(text)
            ]
    if not found:
        return
    names = {each.key: each.where for each in found}
    reached = first_reached(situation, situation.reach, found)
    for key, (seqno, where) in islice(reached.items(), _MOST_FINDINGS):
        expected = "statements that ask a FULLTEXT index themselves, before which a block ends"
        yield Finding(Severity.FATAL, where.removesuffix(","), expected, f"one in {names[key]}", _TODO_FULLTEXT, seqno)
