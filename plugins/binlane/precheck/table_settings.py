"""Settings of the target by which a CREATE or ALTER TABLE of the window fails there, or makes another table.

The log does not hold the source's own values of them. Tried on MariaDB 10.11 and MySQL 9.7 (errors 1005, 1031, 1173,
1290, 3161, 4047). ``sql_require_primary_key`` and ``sql_generate_invisible_primary_key`` are the lanes' to set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final

from sqlalchemy import Connection

from binlane.precheck.finding import Finding
from binlane.schema.compare import Severity
from binlane.schema.model import TRANSACTIONAL_ENGINES
from binlane.servers.catalog import global_variables
from binlane.sql.logged_statement import LoggedText, index_of

_Variables = Mapping[str, str]
_INNODB: Final = "INNODB"
_BLOCK_SIZE: Final = re.compile(r"\bKEY_BLOCK_SIZE\s*=?\s*(?P<size>\d+)", re.I)
_SIZES: Final = frozenset({"0", "1", "2", "4", "8", "16"})


def check_settings(
    connection: Connection, statements: Iterable[LoggedText], *, allow_nontransactional: bool
) -> Iterator[Finding]:
    """What the target's settings make of the window's tables, each finding by its statement. Only reads."""
    variables: _Variables | None = None
    for statement in statements:
        if statement.words[:1] not in (("CREATE",), ("ALTER",)) or "TABLE" not in statement.words[:6]:
            continue
        if variables is None:
            variables = global_variables(connection, _NAMES)
        for name, is_against, expected, todo in _RULES:
            if name == "default_storage_engine" and allow_nontransactional:
                continue
            if variables.get(name) is not None and is_against(statement, variables):
                where = f"{statement.where}: {name} of the target"
                yield Finding(Severity.FATAL, where, expected, variables[name] or "nothing", todo)


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
)
_NAMES: Final = (*(name for name, *_ in _RULES), "innodb_page_size")
