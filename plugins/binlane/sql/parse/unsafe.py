"""Parts of a statement that are unsafe for statement-based replication: another server gives other values.

The source warns of such statements and logs them all the same. Lists: MySQL "Determination of Safe and Unsafe
Statements in Binary Logging" and MariaDB "Unsafe Statements for Statement-based Replication". Variables that the QUERY,
INTVAR and RAND events carry are safe. The bodies of routines, triggers and views are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from binlane.model import Flavor
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, Unreadable, lex

_FUNCTION_NAMES: Final = """
UUID UUID_SHORT UUID_V4 UUID_V7 SYS_GUID RANDOM_BYTES SLEEP SYSDATE FOUND_ROWS ROW_COUNT LOAD_FILE VERSION CURRENT_USER
CURRENT_ROLE USER SESSION_USER SYSTEM_USER GET_LOCK RELEASE_LOCK RELEASE_ALL_LOCKS IS_FREE_LOCK IS_USED_LOCK
"""
_WAITING: Final = ("MASTER_POS_WAIT", "SOURCE_POS_WAIT", "MASTER_GTID_WAIT", "WAIT_FOR_EXECUTED_GTID_SET")
WAITING: Final = frozenset(f"{name}()" for name in _WAITING)
"""Unsafe parts that wait for the server's own place as a replica, which a target of binlane does not have."""
_LOGGED: Final = """
auto_increment_increment auto_increment_offset character_set_client character_set_connection character_set_database
character_set_server check_constraint_checks collation_connection collation_database collation_server
default_collation_for_utf8mb4 default_table_encryption explicit_defaults_for_timestamp foreign_key_checks identity
insert_id last_insert_id lc_time_names pseudo_thread_id rand_seed1 rand_seed2 sql_auto_is_null sql_mode
sql_require_primary_key time_zone timestamp unique_checks
"""
_FUNCTIONS: Final = frozenset((*_FUNCTION_NAMES.split(), *_WAITING))
NEW_DEFAULT: Final = " as the default of a new column"
"""End of the name of an unsafe part that is a column's default."""
LOGGED_IN_PART: Final = " with binlog_row_image MINIMAL or NOBLOB"
"""End of the name of rows of which the log lacks values: not a statement's, but as unsafe."""
_OF_EACH_ROW: Final = frozenset({"RAND", "NEXTVAL", "LASTVAL", "CONNECTION_ID"})
"""Safe in statements, whose log has the seeds or rows, and not in a DDL."""
_OF_FAMILY: Final = {
    # block_encryption_mode is not logged; MySQL warns of these functions, MariaDB has the variable since 11.2
    Flavor.MYSQL: _FUNCTIONS | {"AES_ENCRYPT", "AES_DECRYPT"},
    Flavor.MARIADB: _FUNCTIONS,
}
_LOGGED_VARIABLES: Final = frozenset(_LOGGED.split())
_WITHOUT_CALL: Final = frozenset({"CURRENT_USER", "CURRENT_ROLE"})
_SCOPES: Final = ("session.", "local.")


def unsafe_part(tokens: Sequence[Token], facts: StatementFacts, flavor: Flavor) -> str | None:
    """The first unsafe part of a statement that changes rows, or None. Tokens as ``lexer.lex`` gives them."""
    if facts.kind is StatementKind.DDL and tokens and tokens[0].upper == "ALTER":
        return _unsafe_default(tokens, flavor)
    if facts.kind not in (StatementKind.DML, StatementKind.LOAD_DATA, StatementKind.UNKNOWN) and not (
        facts.create_select and facts.commits_implicitly
    ):
        return None
    if facts.kind is StatementKind.UNKNOWN and facts.commits_implicitly:
        return None
    for at, token in enumerate(tokens):
        if token.kind is TokenKind.VARIABLE and token.text.startswith("@@"):
            name = token.text[2:].lower()
            for scope in _SCOPES:
                name = name.removeprefix(scope)
            if name.strip("`") not in _LOGGED_VARIABLES:
                return token.text
        elif token.kind is TokenKind.WORD and token.upper in _OF_FAMILY[flavor] and _is_called(tokens, at):
            return f"{token.upper}()"
    return _unordered_limit(tokens)


def is_row_order_open(sql: str, dialect: Dialect) -> bool:
    """Whether the server chooses the order in which a statement that changes rows takes them.

    The order is in the text for a list of rows, for ORDER BY, and where there is no table to read.
    """
    tokens: list[Token] = []
    try:
        lex(sql, dialect, tokens)
    except Unreadable:
        return True
    verb = tokens[0].upper if tokens else ""
    if verb in ("SELECT", "DO"):
        return any(token.upper == "FROM" for token in tokens)
    depth, ordered, queried = 0, False, False
    for at, token in enumerate(tokens):
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if token.upper in ("SELECT", "TABLE", "WITH"):
            queried, ordered = True, ordered and depth > 0
        elif token.upper == "UNION" and depth == 0:
            ordered = False
        elif token.upper in ("VALUES", "SET") and depth == 0 and not queried and verb in ("INSERT", "REPLACE"):
            # a query behind it is in one of the values
            return False
        elif token.upper == "ORDER" and depth == 0 and at + 1 < len(tokens) and tokens[at + 1].upper == "BY":
            ordered = True
    return not ordered and (queried or verb not in ("INSERT", "REPLACE"))


def is_refused_by_mysql(name: str) -> bool:
    """Whether MySQL refuses the statement with this unsafe part (1674) where it logs in ROW or MIXED.

    Tried on 9.7: every function that it knows and takes as a default, but for these two. With STATEMENT it warns.
    """
    return name.endswith(NEW_DEFAULT) and not name.startswith(("CONNECTION_ID()", "CURRENT_ROLE()"))


def _unsafe_default(tokens: Sequence[Token], flavor: Flavor) -> str | None:
    """The default of a column that an ALTER TABLE adds, if each server would fill the rows there are with other values:
    MariaDB runs and logs such a statement, MySQL with ``binlog_format = STATEMENT`` alone."""
    depth, adds, has_default = 0, False, False
    for at, token in enumerate(tokens):
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if depth == 0 and is_symbol(token, ","):
            adds = has_default = False
        elif token.kind is not TokenKind.WORD:
            continue
        elif depth == 0 and token.upper == "ADD":
            adds = True
        elif token.upper == "DEFAULT":
            has_default = adds
        elif has_default and (
            (token.upper in _OF_FAMILY[flavor] | _OF_EACH_ROW and _is_called(tokens, at))
            or [each.upper for each in tokens[at : at + 3]] == ["NEXT", "VALUE", "FOR"]
        ):
            return f"{token.upper}(){NEW_DEFAULT}"
    return None


def _is_called(tokens: Sequence[Token], at: int) -> bool:
    if at > 0 and is_symbol(tokens[at - 1], "."):
        return False
    if at + 1 < len(tokens) and is_symbol(tokens[at + 1], "("):
        # a column list behind INSERT INTO version (...) is no call
        return at == 0 or tokens[at - 1].upper not in ("INTO", "TABLE", "UPDATE", "FROM", "JOIN", "REPLACE", "INSERT")
    return tokens[at].upper in _WITHOUT_CALL


def _unordered_limit(tokens: Sequence[Token]) -> str | None:
    """LIMIT without ORDER BY before it in the same parentheses: the server chooses the rows."""
    ordered = [False]
    for at, token in enumerate(tokens):
        if is_symbol(token, "("):
            ordered.append(False)
        elif is_symbol(token, ")"):
            if len(ordered) > 1:
                ordered.pop()
        elif token.upper in ("SELECT", "UNION"):
            ordered[-1] = False
        elif token.upper == "ORDER" and at + 1 < len(tokens) and tokens[at + 1].upper == "BY":
            ordered[-1] = True
        elif token.upper == "LIMIT" and not ordered[-1] and _takes_some(tokens[at + 1 : at + 4]):
            return "LIMIT without ORDER BY"
    return None


def _takes_some(behind: Sequence[Token]) -> bool:
    """Whether a LIMIT may give a row, by the three tokens behind it: ``count`` or ``offset, count``; 0 gives none."""
    kinds = (TokenKind.NUMBER, TokenKind.VARIABLE)
    if not behind or behind[0].kind not in kinds:
        return False
    has_offset = len(behind) == 3 and is_symbol(behind[1], ",") and behind[2].kind in kinds
    count = behind[2] if has_offset else behind[0]
    return count.text != "0"
