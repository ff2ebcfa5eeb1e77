"""Can the target take what the window's statements ask for, and hold what its rows were logged with?

Which server knows what: the release notes and manuals of MySQL 5.7 to 9 and MariaDB 10.3 to 11. What is not in the
table below the target's own parser is asked about (``statement_judge``). A server tells of its libraries only by the
functions that it has of them (``mysql.func``); no log holds a library. What is there as it is logged, the lanes leave
(``apply.ddl``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from binlane.binlog.types.column_types import LOGGED_TYPES
from binlane.model import Flavor, TableKey
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.situation.facts import LoadableFunction, Target
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.schema.compare import Severity
from binlane.schema.model import TRANSACTIONAL_ENGINES, Schema
from binlane.sql.logged_statement import LoggedText
from binlane.sql.requirements import (
    BARE_CHARSET,
    CASCADE_TRIGGERS,
    CHANGED,
    CHARSET,
    COLLATION,
    COMPUTED_LOCALE,
    COMPUTED_MODE,
    COMPUTED_ZONE,
    CONVERTED,
    DATABASE_CHARSET,
    DATABASE_DEFAULT,
    DATABASE_SET,
    DEFINER,
    ENCRYPTED,
    ENGINE,
    HISTORY_BY_TRANSACTION,
    JSON_TABLE,
    LATE_TIMESTAMP,
    LONG_DEFAULT,
    LOOSE_VARIABLE,
    PLUGIN,
    PRIVILEGE,
    SESSION_COLLATION,
    TRUSTED_FUNCTION,
    TRUSTED_MAKER,
    UNLOGGED_LENGTH,
    UNSPELLED,
    Requirement,
)

_Version = tuple[int, int, int]
_SONAME: Final = re.compile(
    r"\bRETURNS\s+(?P<returns>\w+)\s+SONAME\s+(?P<quote>['\"])(?P<library>[^'\"]+)(?P=quote)", re.I
)
_RETURNS: Final = {"STRING": 0, "REAL": 1, "INT": 2, "INTEGER": 2, "DECIMAL": 4}
"""``mysql.func.ret``: Item_result."""
_SINCE_IF_NOT_EXISTS: Final = {Flavor.MARIADB: (10, 1, 3), Flavor.MYSQL: (8, 0, 29)}
_CONDITION: Final = frozenset({"IF", "NOT", "EXISTS"})


class Feature(NamedTuple):
    """Since when each family has something; None: it has not."""

    mysql: _Version | None
    mariadb: _Version | None
    todo: str = ""
    """What to do, where it is not what is always said."""
    one_family: bool = False
    """Both have it, but not as the same bytes."""


def check_features(situation: Situation) -> Iterator[Finding]:
    """Types, collations, engines, plugins and syntax that the window uses and the target does not have.

    CREATE TABLE IF NOT EXISTS of a table that is there asks for nothing.
    """
    plan, tables = situation.plan, situation.tables
    written = tuple(f"{key}." for key in situation.by_sql)
    for requirement, first in plan.requirements.items():
        if requirement.feature in OF_OTHERS or (
            requirement.feature in _OF_ROWS and not requirement.subject.startswith(written)
        ):
            continue
        if (seqno := situation.made_at(requirement, first)) is None:
            continue
        missing = unsupported(requirement, situation.target, situation.plan.flavor, situation.tables.collations)
        if missing is None and requirement.feature == ENGINE and not situation.allow_nontransactional:
            missing = None if requirement.detail in TRANSACTIONAL_ENGINES else _NOT_TRANSACTIONAL
        if missing is not None:
            found, todo = missing
            what = f"{requirement.feature} {requirement.detail}".rstrip()
            kind = "rows" if requirement.feature in (*_OF_ROWS, LATE_TIMESTAMP) else "statement"
            subject = _with_column(requirement.subject, plan, tables) if kind == "rows" else requirement.subject
            where = f"{subject.rstrip('.')}: {what}, in the {kind} of seqno {seqno}"
            yield Finding(Severity.FATAL, where, "a target that supports it", found, todo, seqno)


def _with_column(subject: str, plan: WindowPlan, tables: Schema) -> str:
    """``shop.orders.@3``, all that a log without names says, with the name that the target has at that place."""
    table, _, label = subject.rpartition(".@")
    found = next((one for key, one in tables.tables.items() if str(key) == table), None) if label.isdigit() else None
    if found is None or plan.altered.names(found.key) or not 0 < int(label) <= len(found.columns):
        return subject
    return f"{table}.{found.columns[int(label) - 1].name}"


def check_logged_types(situation: Situation) -> Iterator[Finding]:
    """Column types in the log that the target's family does not have."""
    plan, target = situation.plan, situation.tables.flavor
    if plan.flavor is target:
        return
    seen: set[tuple[TableKey, str]] = set()
    for key in plan.table_maps:
        for logged, seqno in plan.logged(key):
            for at, code in enumerate(logged.column_types):
                name = LOGGED_TYPES[code].one_family
                if name is not None:
                    names = logged.optional.column_names
                    column = f"{key}.{names[at]}" if names is not None else f"{key}, column {at + 1}"
                    if (key, column) not in seen:
                        seen.add((key, column))
                        where = f"{column}: type, in the rows of seqno {seqno}"
                        yield Finding(Severity.FATAL, where, f"a type that {target} has, too", name, _ADVICE_TYPE)


def trust(target: Target) -> str:
    """The statement by which a target with a binlog takes triggers and functions from an account without SUPER."""
    return target.setting(_TRUST, "ON")


def untrusted_function(target: Target) -> tuple[str, str]:
    """What was found of a function that says neither DETERMINISTIC nor what it reads, and what to do."""
    return f"{_TRUST} = OFF with a binlog (1418)", f"{trust(target)} on the target, as the source has it"


def untrusted_account(target: Target) -> tuple[str, str]:
    """The same of a trigger or function that the account makes."""
    found = f"an account without SUPER, and {_TRUST} = OFF with a binlog (1419)"
    return found, f"{trust(target)} on the target, or GRANT SUPER ON *.* TO the account"


def unsupported(
    requirement: Requirement, target: Target, source: Flavor, collations: Collection[str]
) -> tuple[str, str] | None:
    """What stands against it on the target and what to do; None if nothing does. ``collations``: the target's."""
    known = target.knows(requirement, collations)
    if known is not None:
        return None if known else (f"{target.version}, which does not know it", _ADVICE_NAMES[requirement.feature])
    if requirement.feature == TRUSTED_FUNCTION:
        return None if target.trusts_functions else untrusted_function(target)
    if requirement.feature in (BARE_CHARSET, CONVERTED):
        advice = _ADVICE_CONVERTED if requirement.feature == CONVERTED else _ADVICE_BARE
        if target.flavor is Flavor.MARIADB:
            knows = target.number >= _CHARSET_COLLATIONS
            return None if knows else (f"{target.version}: character_set_collations came with 11.2", advice)
        # it is utf8mb4_0900_ai_ci or utf8mb4_general_ci there, as the session says (``transaction.decode``)
        is_usual = source is Flavor.MYSQL or requirement.detail.endswith(_USUAL_SINCE_11_5)
        return (
            None if is_usual else (f"{target.flavor} {target.version}, which has no character_set_collations", advice)
        )
    if requirement.feature == LONG_DEFAULT and source is Flavor.MYSQL:
        return None if target.flavor is Flavor.MYSQL else (f"{target.version}, which accepts it", _ADVICE_LEFT_OUT)
    if requirement.feature == TRUSTED_MAKER:
        return None if target.trusts_account else untrusted_account(target)
    if requirement.feature == CASCADE_TRIGGERS and target.is_on(_NATIVE_FOREIGN_KEYS):
        return f"{_NATIVE_FOREIGN_KEYS} = ON, which fires none", f"restart the target with {_NATIVE_FOREIGN_KEYS} = OFF"
    feature = FEATURES[requirement.feature]
    since = feature.mysql if target.flavor is Flavor.MYSQL else feature.mariadb
    todo = feature.todo or _ADVICE
    if since is None:
        return f"{target.flavor} {target.version}, which does not have it", todo
    if target.number < since:
        return f"{target.version}: it came with {'.'.join(map(str, since))}", f"upgrade the target; or {todo}"
    if feature.one_family and source is not target.flavor:
        return f"{target.flavor}, which keeps it as other bytes than {source}", todo
    return None


_ADVICE: Final = (
    "let the source do without it, or run a statement of the same effect on the target and begin the channel behind it"
)
_ADVICE_VARIABLE: Final = (
    "let the source's sessions give it another name, or log such statements as rows (binlog_format=ROW); skip this "
    "transaction (docs/control.md) and make its changes on the target by hand"
)
_ADVICE_TYPE: Final = (
    "MODIFY the column on the source to a type that both families keep as the same bytes (BINARY or CHAR), then load"
    " the table anew"
)
_ADVICE_DEFAULT: Final = "write the default as an expression on the source, DEFAULT ('{}'), which both families take"
_ADVICE_LEFT_OUT: Final = (
    "MySQL has left the default out, since its sql_mode was not strict: let the source make the column without one"
)
_ADVICE_JSON: Final = "write it with JSON_EXTRACT, JSON_UNQUOTE on the source, or make it on the target by hand"
_ADVICE_NAMES: Final[Mapping[str, str]] = {
    ENGINE: "enable the engine on the target, or let the source create the table with another one",
    PLUGIN: "enable the plugin on the target, or give the account one that both servers have",
    COLLATION: "give the table or column a collation on the source that both servers have, or say in the channel's"
    " [collations] what stands for it (docs/collations.md)",
    SESSION_COLLATION: "let the source's sessions use one that both servers have; until then end the window before it",
    CHARSET: "give the table or column a character set on the source that both servers have",
}
_NOT_TRANSACTIONAL: Final = (
    "an engine without transactions, whose rows cannot commit with their position",
    "let the source create it with InnoDB, or set apply.allow_nontransactional "
    "(docs/compatibility.md describes the risk)",
)
_CHARSET_COLLATIONS: Final = (11, 2, 1)
_USUAL_SINCE_11_5: Final = "_uca1400_ai_ci"
"""End of the collations that MariaDB's default of character_set_collations names."""
_ADVICE_BARE: Final = (
    "write the collation beside the character set on the source, or set character_set_collations = '' there, as it was"
    " before 11.5; for this window make the object on the target by hand and begin the channel behind it"
)
_ADVICE_CONVERTED: Final = (
    "write the collation beside it on the source, or log such statements as rows (binlog_format=ROW); on MariaDB, or"
    " set character_set_collations = '' there"
)
_TRUST: Final = "log_bin_trust_function_creators"
_NATIVE_FOREIGN_KEYS: Final = "innodb_native_foreign_keys"
_OF_ROWS: Final = frozenset({JSON_TABLE, UNSPELLED})
OF_OTHERS: Final = frozenset(
    {
        DEFINER,
        CHANGED,
        PRIVILEGE,
        DATABASE_CHARSET,
        DATABASE_DEFAULT,
        DATABASE_SET,
        COMPUTED_MODE,
        COMPUTED_ZONE,
        COMPUTED_LOCALE,
        UNLOGGED_LENGTH,
        ENCRYPTED,
    }
)
"""Features that other checks are about: those of ``definers``, ``tables`` and ``encryption``."""
_ADVICE_LATE: Final = "make the column a DATETIME on both sides, or leave the table out (docs/filters.md)"
_ADVICE_ROWS: Final = 'write the rows with BINLOG statements: apply.writer = "binlog"'
_MARIADB: Final = Feature(None, (10, 3, 0))
_MYSQL: Final = Feature((8, 0, 0), None)
FEATURES: Final[Mapping[str, Feature]] = {
    JSON_TABLE: Feature((8, 0, 4), None, _ADVICE_ROWS),
    LATE_TIMESTAMP: Feature(None, (11, 5, 1), _ADVICE_LATE),
    CASCADE_TRIGGERS: Feature((9, 7, 0), None),
    UNSPELLED: Feature(None, None, _ADVICE_ROWS),
    LOOSE_VARIABLE: Feature(None, (5, 1, 0), _ADVICE_VARIABLE),
    "JSON column": Feature((5, 7, 8), (10, 2, 7), _ADVICE_TYPE),
    "VECTOR column": Feature((9, 0, 0), (11, 7, 0), _ADVICE_TYPE, one_family=True),
    "UUID column": Feature(None, (10, 7, 0), _ADVICE_TYPE),
    "INET6 column": Feature(None, (10, 5, 0), _ADVICE_TYPE),
    "INET4 column": Feature(None, (10, 10, 0), _ADVICE_TYPE),
    "XMLTYPE column": Feature(None, (12, 3, 0), _ADVICE_TYPE),
    "compressed column": _MARIADB,
    LONG_DEFAULT: Feature(None, (10, 2, 1), _ADVICE_DEFAULT),
    "JSON operator": Feature((5, 7, 9), None, _ADVICE_JSON),
    "CAST AS JSON": Feature((5, 7, 8), None, _ADVICE_JSON),
    "comment of a database": Feature(None, (10, 5, 0)),
    "RETURNING": Feature(None, (10, 5, 0)),
    "SET STATEMENT": _MARIADB,
    "VALUES ROW": Feature((8, 0, 19), None),
    "alias of inserted rows": Feature((8, 0, 19), None),
    "WITH in front of UPDATE or DELETE": _MYSQL,
    "sequence": _MARIADB,
    "package": _MARIADB,
    "system versioning": _MARIADB,
    HISTORY_BY_TRANSACTION: _MARIADB,
    "period": Feature(None, (10, 4, 3)),
    "OR REPLACE": _MARIADB,
    "IF EXISTS": _MARIADB,
    "ignored key": Feature(None, (10, 6, 0)),
    "REF_SYSTEM_ID": _MARIADB,
    "option of MariaDB": _MARIADB,
    "IDENTIFIED VIA": _MARIADB,
    "IDENTIFIED BY PASSWORD": _MARIADB,
    "role administrator": _MARIADB,
    "privilege of MariaDB": _MARIADB,
    "privilege of MySQL": _MYSQL,
    "option of MySQL": _MYSQL,
    "account option": _MYSQL,
    "functional key": Feature((8, 0, 13), None),
    "invisible key": _MYSQL,
    "check that is not enforced": Feature((8, 0, 16), None),
    "SRID": Feature((8, 0, 3), None),
    "histogram": _MYSQL,
    "persisted variable": _MYSQL,
    "spatial reference system": _MYSQL,
    "tablespace": Feature((5, 7, 0), None),
    "library": Feature((9, 2, 0), None),
    "resource group": _MYSQL,
    "instance": Feature((5, 7, 0), None),
}


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


def _name(statement: LoggedText) -> str | None:
    """Of a function that is made or dropped without a database, in lower case."""
    words = statement.words[:8]
    if not words or words[0] not in ("CREATE", "DROP") or "FUNCTION" not in words:
        return None
    rest = [token for token in statement.tokens[words.index("FUNCTION") + 1 :][:4] if token.upper not in _CONDITION]
    if not rest or (len(rest) > 1 and rest[1].text == "."):
        return None
    return rest[0].text.lower()
