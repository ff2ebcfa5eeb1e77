"""Parts of a statement that are unsafe for statement-based replication: another server gives other values.

The source warns of such statements and logs them all the same. Lists: MySQL "Determination of Safe and Unsafe
Statements in Binary Logging" and MariaDB "Unsafe Statements for Statement-based Replication"; the trial
``test_unsafe_statements`` asks the servers themselves (warning 1592). Variables that the QUERY, INTVAR and RAND events
carry are safe, and so are rows in the order of an ORDER BY, as far as a key settles it (``row_order``). The bodies of
routines, triggers and views are read by the precheck (``unsafe-bodies``).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.rename_rules import lower
from binlane.sql.parse.cursor import find_word, group_end, is_list_of_rows, is_symbol
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.sql.parse.functions import OWN_SCHEMAS
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, Unreadable, lex
from binlane.sql.parse.set_statement import clause_of

_FUNCTION_NAMES: Final = """
UUID UUID_SHORT UUID_V4 UUID_V7 SYS_GUID RANDOM_BYTES SLEEP SYSDATE FOUND_ROWS ROW_COUNT LOAD_FILE VERSION CURRENT_USER
CURRENT_ROLE USER SESSION_USER SYSTEM_USER GET_LOCK RELEASE_LOCK RELEASE_ALL_LOCKS IS_FREE_LOCK IS_USED_LOCK
PS_CURRENT_THREAD_ID PS_THREAD_ID ICU_VERSION ROLES_GRAPHML STATEMENT_DIGEST STATEMENT_DIGEST_TEXT BINLOG_GTID_POS
LASTVAL ROWNUM WSREP_LAST_SEEN_GTID WSREP_LAST_WRITTEN_GTID WSREP_SYNC_WAIT_UPTO_GTID
"""
_WAITING: Final = ("MASTER_POS_WAIT", "SOURCE_POS_WAIT", "MASTER_GTID_WAIT", "WAIT_FOR_EXECUTED_GTID_SET")
WAITING: Final = frozenset(f"{name}()" for name in _WAITING)
"""Unsafe parts that wait for the server's own place as a replica, which a target of binlane does not have."""
_LOGGED: Final = """
auto_increment_increment auto_increment_offset character_set_client character_set_connection character_set_server
check_constraint_checks collation_connection collation_server default_collation_for_utf8mb4 default_table_encryption
foreign_key_checks identity last_insert_id lc_time_names pseudo_thread_id sql_auto_is_null sql_mode time_zone
unique_checks
"""
"""Variables that a statement may read: the log has their values with every statement. It has others with those alone
that depend on them: ``@@insert_id`` and ``@@rand_seed1`` are another number on the target, and
``@@collation_database``, of a session without a default database, is another collation."""
_SERVERS_OWN: Final = frozenset({"performance_schema", "information_schema", "sys", "mysql"})
"""Databases with what a server tells of itself, or has for itself."""
UNSAFE_FUNCTIONS: Final = frozenset((*_FUNCTION_NAMES.split(), *_WAITING))
NEW_DEFAULT: Final = " as the default of a new column"
"""End of the name of an unsafe part that is a column's default."""
NUMBERED: Final = "AUTO_INCREMENT for the rows there are of "
"""Beginning of the name of a definition that numbers rows: the table follows. Safe if its primary key orders them."""
TABLESPACE: Final = ("DISCARD TABLESPACE", "IMPORT TABLESPACE")
"""Definitions that throw a table's rows away, or take others from a file of the source."""
LOGGED_IN_PART: Final = " with binlog_row_image MINIMAL or NOBLOB"
"""End of the name of rows of which the log lacks values: not a statement's, but as unsafe."""
_OF_EACH_ROW: Final = frozenset({"RAND", "NEXTVAL", "LASTVAL", "CONNECTION_ID"})
"""Safe in statements, whose log has the seeds or rows, and not in a DDL."""
_OF_FAMILY: Final = {
    # block_encryption_mode is not logged; MySQL warns of these functions, MariaDB has the variable since 11.2
    Flavor.MYSQL: UNSAFE_FUNCTIONS | {"AES_ENCRYPT", "AES_DECRYPT"},
    Flavor.MARIADB: UNSAFE_FUNCTIONS,
}
_LOGGED_VARIABLES: Final = frozenset(_LOGGED.split())
_WITHOUT_CALL: Final = frozenset({"CURRENT_USER", "CURRENT_ROLE"})
_IN_ORACLE: Final = frozenset({"ROWNUM", "SYSDATE"})
_OF_SEQUENCE: Final = {"NEXTVAL": "NEXTVAL()", "CURRVAL": "LASTVAL()"}
_SCOPES: Final = ("session.", "local.")


def unsafe_part(tokens: Sequence[Token], facts: StatementFacts, flavor: Flavor, *, oracle: bool = False) -> str | None:
    """The first unsafe part of a statement that changes rows, or None. Tokens as ``lexer.lex`` gives them. ``oracle``:
    under MariaDB's sql_mode ORACLE."""
    if facts.kind is StatementKind.DDL and (altered := _altered(tokens)):
        return _unsafe_definition(altered, facts) or _unsafe_default(altered, flavor, oracle=oracle)
    if not facts.may_change_rows:
        return None
    for at in range(len(tokens)):
        if (found := of_server(tokens, at, flavor, oracle=oracle)) is not None:
            return found
    words = _Words.of(tokens, facts)
    form = next((name for name, is_one in UNSAFE_FORMS.items() if is_one(words)), None)
    # whether a key settles which rows these are, the tables' definitions tell: the precheck's ``row-order``
    limit = None if facts.kind is StatementKind.DML and words.limits_own_rows else unordered_limit(tokens)
    return form or limit or _own_tables(facts)


@dataclass(frozen=True, slots=True)
class _Words:
    """A statement that changes rows, as ``UNSAFE_FORMS`` look at it."""

    verb: str
    head: frozenset[str]
    """The words of its own, before its values or its query."""
    every: Sequence[str]
    takes_rows: bool
    """It takes rows of tables in an order that is not in its text."""
    replaces: bool
    """Of a CREATE TABLE: rows of its query replace others (``REPLACE SELECT``)."""

    @classmethod
    def of(cls, tokens: Sequence[Token], facts: StatementFacts) -> _Words:
        words = [token.upper for token in tokens]
        begin = 0
        with contextlib.suppress(Unreadable):
            begin = clause_of(tokens).body
        if words[begin : begin + 1] == ["WITH"]:
            verbs = (at for at, word in enumerate(words) if at > begin and word in ("UPDATE", "DELETE"))
            begin = next(verbs, begin)
        verb = words[begin] if begin < len(words) else ""
        if verb == "CREATE":
            ends = (at for at, word in enumerate(words) if word == "SELECT" or is_list_of_rows(tokens, at))
        else:
            ends = (at for at, word in enumerate(words) if at > begin and word in _HEAD_ENDS)
        end = next(ends, len(words))
        reads = verb in ("UPDATE", "DELETE") or "FROM" in words or "TABLE" in words[end:]
        open_rows = is_order_open(tokens[begin:]) if verb != "CREATE" else _is_query_open(tokens[begin:])
        return cls(verb, frozenset(words[begin:end]), words[begin:], reads and open_rows, _replaces(tokens[:end]))

    def has(self, *words: str) -> bool:
        """Whether these words follow each other in it."""
        return any(tuple(self.every[at : at + len(words)]) == words for at in range(len(self.every)))

    @property
    def limits_own_rows(self) -> bool:
        """Whether it is an UPDATE or a DELETE whose only LIMIT is that of the rows that it changes."""
        if self.verb not in ("UPDATE", "DELETE") or self.every.count("LIMIT") != 1 or self.has("ROWS", "EXAMINED"):
            return False
        return {"SELECT", "TABLE", "FETCH", "UNION"}.isdisjoint(self.every)

    @property
    def is_query(self) -> bool:
        """Whether it changes rows by a query."""
        return self.verb in ("INSERT", "REPLACE", "CREATE") and self.takes_rows


_HEAD_ENDS: Final = frozenset({"SELECT", "VALUES", "VALUE", "SET", "WITH"})
UNSAFE_FORMS: Final[Mapping[str, Callable[[_Words], bool]]] = {
    "INSERT IGNORE ... SELECT": lambda it: it.is_query and it.verb == "INSERT" and "IGNORE" in it.head,
    "REPLACE ... SELECT": lambda it: it.is_query and it.verb == "REPLACE",
    "INSERT ... SELECT ... ON DUPLICATE KEY UPDATE": lambda it: (
        it.is_query and it.verb == "INSERT" and it.has("ON", "DUPLICATE", "KEY", "UPDATE")
    ),
    "CREATE TABLE ... IGNORE SELECT": lambda it: it.is_query and it.verb == "CREATE" and "IGNORE" in it.head,
    "CREATE TABLE ... REPLACE SELECT": lambda it: it.is_query and it.verb == "CREATE" and it.replaces,
    "CREATE TABLE ... SELECT with AUTO_INCREMENT": lambda it: (
        it.is_query and it.verb == "CREATE" and "AUTO_INCREMENT" in it.head
    ),
    "UPDATE IGNORE": lambda it: it.verb == "UPDATE" and "IGNORE" in it.head and it.takes_rows,
    "SKIP LOCKED": lambda it: it.has("SKIP", "LOCKED"),
    "NOWAIT": lambda it: it.verb in ("INSERT", "REPLACE", "CREATE", "UPDATE", "DELETE") and it.has("UPDATE", "NOWAIT"),
}
"""Statements that change rows, and whose result depends on the order in which a server takes rows, or on its locks."""


def _replaces(head: Sequence[Token]) -> bool:
    """Whether REPLACE stands before the query of a CREATE TABLE: not in its columns, nor as OR REPLACE."""
    depth, before = 0, ""
    for token in head:
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if depth == 0 and token.upper == "REPLACE" and before != "OR":
            return True
        before = token.upper
    return False


def _own_tables(facts: StatementFacts) -> str | None:
    names = set(map(lower, facts.databases)) & _SERVERS_OWN
    names -= {lower(key.database) for key in facts.written}
    return f"tables of {min(names)}" if names else None


def _has_second_argument(tokens: Sequence[Token], opened: int) -> bool:
    depth = 0
    for token in tokens[opened:]:
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if depth == 0 or (depth == 1 and is_symbol(token, ",")):
            return depth == 1
    return False


def _altered(tokens: Sequence[Token]) -> Sequence[Token]:
    """An ALTER without the SET STATEMENT in front of it; empty for any other statement."""
    with contextlib.suppress(Unreadable):
        tokens = tokens[clause_of(tokens).body :]
    return tokens if tokens and tokens[0].upper == "ALTER" else ()


def _unsafe_definition(tokens: Sequence[Token], facts: StatementFacts) -> str | None:
    """A part of an ALTER TABLE whose result depends on the order of rows, or on a file of the source."""
    words = [token.upper if token.kind is TokenKind.WORD else token.text for token in tokens]
    for what in TABLESPACE:
        verb = what.split()[0]
        if any(word == verb and "TABLESPACE" in words[at + 1 :] for at, word in enumerate(words)):
            return what
    if "IGNORE" in words[1:3] and not {"UNIQUE", "PRIMARY"}.isdisjoint(words):
        return "ALTER IGNORE ... ADD UNIQUE"
    for at, word in enumerate(words):
        is_option = words[at + 1 : at + 2] == ["="] or (
            at + 1 < len(tokens) and tokens[at + 1].kind is TokenKind.NUMBER
        )
        if word == "AUTO_INCREMENT" and not is_option and facts.tables:
            # a parent in REFERENCES stands behind it
            place = {each.text: number for number, each in reversed(list(enumerate(tokens)))}
            return f"{NUMBERED}{min(facts.tables, key=lambda key: place.get(key.table, len(tokens)))}"
    return None


def of_server(tokens: Sequence[Token], at: int, flavor: Flavor, *, oracle: bool = False) -> str | None:
    """The function or variable at a token, if its value is the server's, the account's or the session's own.
    ``oracle``: under MariaDB's sql_mode ORACLE."""
    token = tokens[at]
    if token.kind is TokenKind.VARIABLE and token.text.startswith("@@"):
        return unlogged_variable(token)
    # a function whose name is no word of the grammar may be quoted
    if token.kind not in (TokenKind.WORD, TokenKind.NAME):
        return None
    name = token.text.upper()
    if flavor is Flavor.MARIADB and is_previous_value(tokens, at):
        return "LASTVAL()"
    if oracle and (called := _called_in_oracle(tokens, at)) is not None:
        return called
    # its salt is random
    is_random = name == "ENCRYPT" and not _has_second_argument(tokens, at + 1)
    is_own = is_random or name in _OF_FAMILY[flavor]
    return f"{name}()" if is_own and _is_called(tokens, at) else None


def is_previous_value(tokens: Sequence[Token], at: int) -> bool:
    """Whether LASTVAL(name) begins there in the words of the standard: PREVIOUS VALUE FOR name."""
    return [token.upper for token in tokens[at : at + 3]] == ["PREVIOUS", "VALUE", "FOR"]


def _called_in_oracle(tokens: Sequence[Token], at: int) -> str | None:
    """The function that sql_mode ORACLE calls at a token without parentheses: ``ROWNUM``, ``SYSDATE``, ``s.nextval``,
    ``s.currval``. It has no columns of the first two names, but in quotes."""
    name, behind = tokens[at].text.upper(), tokens[at + 1 : at + 2]
    is_part = at > 0 and is_symbol(tokens[at - 1], ".")
    if behind and is_symbol(behind[0], "(", "."):
        return None
    if is_part:
        return _OF_SEQUENCE.get(name)
    is_alias = at > 0 and tokens[at - 1].upper == "AS"
    return f"{name}()" if tokens[at].upper in _IN_ORACLE and not is_alias else None


def unlogged_variable(token: Token) -> str | None:
    """The variable at a token, if no log has its value with a statement whose columns' defaults read it: each but those
    of ``_LOGGED_VARIABLES``, and the user's own."""
    if token.kind is not TokenKind.VARIABLE:
        return None
    if not token.text.startswith("@@"):
        return token.text
    name = token.text[2:].lower()
    for scope in _SCOPES:
        name = name.removeprefix(scope)
    return None if name.strip("`") in _LOGGED_VARIABLES else token.text


def is_row_order_open(sql: str, dialect: Dialect) -> bool:
    """Whether the server chooses the order in which a statement that changes rows takes them.

    The order is in the text for a list of rows, for ORDER BY, and where there is no table to read.
    """
    tokens: list[Token] = []
    try:
        lex(sql, dialect, tokens)
    except Unreadable:
        return True
    return is_order_open(tokens)


def _is_query_open(tokens: Sequence[Token]) -> bool:
    """The same of the query of a CREATE TABLE."""
    begin = next((at for at, token in enumerate(tokens) if token.upper in ("SELECT", "TABLE", "WITH") and at > 1), 0)
    return is_order_open([*tokens[:0], *tokens[begin:]], "INSERT") if begin else False


def is_order_open(tokens: Sequence[Token], verb: str = "") -> bool:
    """As ``is_row_order_open``, of tokens. ``verb``: of the statement whose query they are."""
    verb = verb or (tokens[0].upper if tokens else "")
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


def row_verb(tokens: Sequence[Token]) -> str | None:
    """The verb of a statement that changes rows or may do so by a function that it calls; None for any other."""
    begin = 0
    with contextlib.suppress(Unreadable):
        begin = clause_of(tokens).body
    words = [token.upper for token in tokens[begin : begin + 5]]
    if words[:1] == ["CREATE"]:
        return "CREATE" if "TABLE" in words else None
    if words[:1] == ["WITH"]:
        return next((token.upper for token in tokens if token.upper in ("UPDATE", "DELETE")), "SELECT")
    return words[0] if words and words[0] in _ROW_VERBS else None


_ROW_VERBS: Final = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE", "SELECT", "DO", "LOAD"})


def is_query_of_rows(tokens: Sequence[Token]) -> bool:
    """Whether a statement has its rows from a query, or changes those of a table: not from a list in its text."""
    verb = row_verb(tokens)
    if verb not in ("INSERT", "REPLACE"):
        return verb is not None
    depth = 0
    for token in tokens:
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if token.upper in ("SELECT", "TABLE", "WITH"):
            return True
        if token.upper in ("VALUES", "VALUE", "SET") and depth == 0:
            return False
    return False


def is_one_row(tokens: Sequence[Token]) -> bool:
    """Whether a query has an aggregate without GROUP BY, and so one row."""
    words = [token.upper for token in tokens]
    if words.count("SELECT") != 1 or not {"GROUP", "OVER", "UNION"}.isdisjoint(words):
        return False
    chosen = range(words.index("SELECT"), words.index("FROM") if "FROM" in words else len(words))
    return any(words[at] in _AGGREGATES and _is_called(tokens, at) for at in chosen)


def fills_by_default(tokens: Sequence[Token], sql: str, column: str) -> bool:
    """Whether an INSERT, REPLACE or LOAD, or an UPDATE with DEFAULT, leaves a column to its default."""
    verb = row_verb(tokens)
    if _DEFAULT.search(sql) is not None:
        return True
    if verb not in ("INSERT", "REPLACE", "LOAD"):
        return False
    words = [token.upper for token in tokens]
    at = words.index("INTO") + 1 if "INTO" in words else 1
    while at < len(tokens) and not is_symbol(tokens[at], "("):
        is_charset = words[at] == "SET" and words[at - 1] in ("CHARACTER", "CHAR")
        if words[at] in ("SET", "SELECT", "VALUES", "VALUE") and not is_charset:
            break
        at += 3 if words[at] == "PARTITION" else 1
    if at < len(tokens) and words[at] == "SET":
        # few statements need it
        from binlane.sql.parse.query_blocks import items

        assigned = items(tokens[at + 1 : find_word(tokens, "ON", start=at)])
        return column.lower() not in {_assigned_name(each) for each in assigned}
    if at < len(tokens) and is_symbol(tokens[at], "(") and tokens[at + 1].upper not in ("SELECT", "WITH"):
        named = {token.text.lower() for token in tokens[at : group_end(tokens, at)]}
        return column.lower() not in named
    # rows of a file may have fewer fields than the table
    if verb == "LOAD":
        return True
    return words[at : at + 1] in (["VALUES"], ["VALUE"]) and [each.text for each in tokens[at + 1 : at + 3]] == [
        "(",
        ")",
    ]


def _assigned_name(item: Sequence[Token]) -> str:
    end = next((at for at, token in enumerate(item) if is_symbol(token, "=", ":=")), len(item))
    return item[end - 1].text.lower() if end else ""


_DEFAULT: Final = re.compile(r"\bDEFAULT\b", re.IGNORECASE)
_AGGREGATES: Final = frozenset({"COUNT", "MAX", "MIN", "SUM", "AVG", "GROUP_CONCAT"})


def is_refused_by_mysql(name: str) -> bool:
    """Whether MySQL refuses the statement with this unsafe part (1674) where it logs in ROW or MIXED.

    Tried on 9.7: every function that it knows and takes as a default, but for these two. With STATEMENT it warns.
    """
    return name.endswith(NEW_DEFAULT) and not name.startswith(("CONNECTION_ID()", "CURRENT_ROLE()"))


def _unsafe_default(tokens: Sequence[Token], flavor: Flavor, *, oracle: bool) -> str | None:
    """The default of a column that an ALTER TABLE adds, if each server would fill the rows there are with other values:
    MariaDB runs and logs such a statement, MySQL with ``binlog_format = STATEMENT`` alone."""
    depth, adds, has_default = 0, False, False
    for at, token in enumerate(tokens):
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if depth == 0 and is_symbol(token, ","):
            adds = has_default = False
        elif has_default and (found := unlogged_variable(token)) is not None:
            return f"{found}{NEW_DEFAULT}"
        elif token.kind not in (TokenKind.WORD, TokenKind.NAME):
            continue
        elif depth == 0 and token.upper == "ADD":
            adds = True
        elif token.upper == "DEFAULT":
            has_default = adds
        elif has_default and (
            (token.text.upper() in _OF_FAMILY[flavor] | _OF_EACH_ROW and _is_called(tokens, at))
            or [each.upper for each in tokens[at : at + 3]] == ["NEXT", "VALUE", "FOR"]
        ):
            return f"{token.text.upper()}(){NEW_DEFAULT}"
        elif has_default and (found := of_server(tokens, at, flavor, oracle=oracle)) is not None:
            return f"{found}{NEW_DEFAULT}"
    return None


def _is_called(tokens: Sequence[Token], at: int) -> bool:
    """Whether the name at ``at``, quoted or not, is a function's: not that of a table or a key in front of a list of
    columns."""
    if not (at + 1 < len(tokens) and is_symbol(tokens[at + 1], "(")):
        return tokens[at].upper in _WITHOUT_CALL
    if at > 1 and is_symbol(tokens[at - 1], ".") and tokens[at - 2].text.lower() in OWN_SCHEMAS:
        at -= 2
    before = tokens[at - 1] if at > 0 else None
    if before is not None and is_symbol(before, "."):
        return False
    if before is not None and before.upper == "ON":
        # CREATE INDEX name ON table (a): elsewhere it has a condition
        return at < 3 or tokens[at - 3].upper not in ("INDEX", "EXISTS")
    return before is None or before.upper not in _NAMED_WITH_LIST


_NAMED_WITH_LIST: Final = frozenset(
    {"INTO", "TABLE", "REPLACE", "INSERT", "EXISTS", "KEY", "INDEX", "UNIQUE", "REFERENCES", "CONSTRAINT", "WITH"}
    | {"RECURSIVE", "AS", "FULLTEXT", "SPATIAL", "DELAYED", "IGNORE", "LOW_PRIORITY", "PERIOD", "PARTITION"}
)
"""Words behind which a name in front of a parenthesis is a table's or a key's, and behind none of which an expression
begins. FROM is none of them: no list of columns follows its table, and in TRIM('x' FROM f()) an expression does."""


def unordered_limit(tokens: Sequence[Token]) -> str | None:
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
        elif token.upper == "LIMIT" and [each.upper for each in tokens[at + 1 : at + 3]] == ["ROWS", "EXAMINED"]:
            return "LIMIT ROWS EXAMINED"
        elif not ordered[-1] and (
            (token.upper == "LIMIT" and _takes_some(tokens[at + 1 : at + 4])) or _is_fetch(tokens, at)
        ):
            return "LIMIT without ORDER BY"
    return None


def limits_examined(tokens: Sequence[Token]) -> str | None:
    """MariaDB's LIMIT ROWS EXAMINED: how many rows a server reads for a query is its own."""
    words = [token.upper for token in tokens]
    found = any(words[at : at + 3] == ["LIMIT", "ROWS", "EXAMINED"] for at in range(len(words)))
    return "LIMIT ROWS EXAMINED" if found else None


def _is_fetch(tokens: Sequence[Token], at: int) -> bool:
    """Whether FETCH FIRST 3 ROWS begins there; a cursor's FETCH has no such words."""
    words = [token.upper for token in tokens[at : at + 4]]
    return words[0] == "FETCH" and words[1:2] in (["FIRST"], ["NEXT"]) and not {"ROW", "ROWS"}.isdisjoint(words)


def _takes_some(behind: Sequence[Token]) -> bool:
    """Whether a LIMIT may give a row, by the three tokens behind it: ``count`` or ``offset, count``; 0 gives none."""
    # in a body, names are parameters and variables
    kinds = (TokenKind.NUMBER, TokenKind.VARIABLE, TokenKind.WORD, TokenKind.NAME)
    if not behind or behind[0].kind not in kinds:
        return False
    has_offset = len(behind) == 3 and is_symbol(behind[1], ",") and behind[2].kind in kinds
    count = behind[2] if has_offset else behind[0]
    return count.text != "0"
