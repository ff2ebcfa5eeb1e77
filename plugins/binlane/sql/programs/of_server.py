"""Programs that do on another server, or as another account, what they have not done on the source: ``own_value``.

A statement of the log runs as the lane's account. A routine that asks who runs it, or on which server, may take another
branch there, and change what its caller could not; so may one that catches the error for a missing privilege. No list
of functions is complete for two families, so tables that only the lane's account may change are looked for by name.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import OWN_SCHEMA, Flavor
from binlane.schema.letter_case import lower
from binlane.sessions.pins import PINS, UNPINNED
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.engines import engine_elsewhere, folder_named
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.parse.unsafe import WAITING, of_server
from binlane.sql.program_names import folded_name
from binlane.sql.programs.changes import object_at

OF_INVOKER: Final = frozenset({"INVOKER", "AUTHID"})
"""Words of a routine that runs with its invoker's privileges; the second is that of sql_mode ORACLE (AUTHID
CURRENT_USER)."""
_OF_DEFINER: Final = "CURRENT_USER()"
"""Of a program that runs with its definer's privileges: the definer, on both servers."""
_WITHOUT_BRANCH: Final = "SLEEP()"
_CALLED: Final = frozenset({"CONNECTION_ID", "ROLES_GRAPHML"})
SYSTEM_NAMES: Final = frozenset({"mysql", "performance_schema", "information_schema", "sys"})
"""The server's own databases."""
_KEPT_THERE: Final = frozenset({OWN_SCHEMA, "mysql", "performance_schema"})
"""Databases in which a server, or the channel, keeps what decides who may do what."""
_SYS: Final = "sys"
_SERVERS_OWN: Final = frozenset({"INFORMATION_SCHEMA", "PERFORMANCE_SCHEMA", "MYSQL", "SYS"})
SET_GLOBAL: Final = "SET GLOBAL"
_BODY_END: Final = Token(TokenKind.SYMBOL, ";")
_END: Final = frozenset({";", "END"})
_SERVERS_VERBS: Final[Mapping[str, frozenset[str]]] = {
    "PURGE": frozenset({"BINARY", "MASTER"}),
    "CHANGE": frozenset({"MASTER", "REPLICATION"}),
    "START": frozenset({"SLAVE", "REPLICA", "ALL", "GROUP_REPLICATION"}),
    "STOP": frozenset({"SLAVE", "REPLICA", "ALL", "GROUP_REPLICATION"}),
    "RESET": frozenset({"MASTER", "SLAVE", "REPLICA", "BINARY", "PERSIST"}),
    "SHUTDOWN": frozenset({"WAIT", *_END}),
    "RESTART": _END,
    "INTO": frozenset({"OUTFILE", "DUMPFILE"}),
    "CREATE": frozenset({"SERVER"}),
    "ALTER": frozenset({"SERVER", "INSTANCE"}),
    "DROP": frozenset({"SERVER"}),
    "CLONE": frozenset({"LOCAL", "INSTANCE"}),
    "IMPORT": frozenset({"TABLE"}),
    "SET": frozenset({"RESOURCE", "DEFAULT"}),
    # the session keeps it, and the DDL of every other one waits
    "LOCK": frozenset({"INSTANCE"}),
}
"""First words of statements that a body may have and that change the server and not data, each with what is behind it;
BINLOG, whose rows are of any table, and KILL have rules of their own."""
_SESSIONS_VERBS: Final[Mapping[str, frozenset[str]]] = {
    "FLUSH": frozenset(
        {
            *("TABLES", "TABLE", "PRIVILEGES", "LOGS", "BINARY", "ENGINE", "ERROR", "GENERAL", "RELAY", "SLOW"),
            *("HOSTS", "LOCAL", "NO_WRITE_TO_BINLOG", "STATUS", "USER_RESOURCES", "OPTIMIZER_COSTS", "QUERY"),
        }
    ),
    "LOCK": frozenset({"TABLES", "TABLE"}),
    "UNLOCK": frozenset({"TABLES", "TABLE", "INSTANCE"}),
    "INSTALL": frozenset({"PLUGIN", "SONAME", "COMPONENT"}),
    "UNINSTALL": frozenset({"PLUGIN", "SONAME", "COMPONENT"}),
    "XA": frozenset({"START", "BEGIN", "END", "PREPARE", "COMMIT", "ROLLBACK", "RECOVER"}),
}
"""Statements that end or hold up a session's transaction, its locks or those of others. SAVEPOINT is none: a body has
savepoints of its own."""
_OF_TABLES: Final = frozenset(
    {"TABLE", "TABLES", "DATABASE", "SCHEMA", "INDEX", "USER", "ROLE", "SEQUENCE", "TABLESPACE"}
)
_OF_PROGRAMS: Final = frozenset({"VIEW", "EVENT", "TRIGGER", "PROCEDURE", "FUNCTION", "PACKAGE"})
_HEADS: Final = frozenset({"DEFINER", "SQL", "ALGORITHM", "AGGREGATE"})
_COMMITTING_VERBS: Final = {
    "CREATE": _OF_TABLES | _OF_PROGRAMS | _HEADS | {"UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR"},
    "ALTER": _OF_TABLES | _OF_PROGRAMS | _HEADS | {"ONLINE", "IGNORE"},
    "DROP": _OF_TABLES | _OF_PROGRAMS,
    "RENAME": frozenset({"TABLE", "TABLES", "USER"}),
    "TRUNCATE": frozenset({"TABLE"}),
}
"""Statements with an implicit commit, which servers refuse (1422) when a function or a trigger comes to them, in a
procedure that it calls. Of temporary tables they are allowed."""
_OF_ACCOUNTS: Final = frozenset({"GRANT", "REVOKE"})
"""Reserved words, which commit, too."""
_SESSIONS_CALLS: Final = WAITING | {"RELEASE_ALL_LOCKS()"}
"""The lane's lease is such a lock, and so is what readers wait for; the others never end."""
_SETS: Final = frozenset({"ROLE", "TRANSACTION", "NAMES", "CHARACTER", "CHAR", "CHARSET", "DEFAULT"})
"""Behind SET, or behind a comma of it: what stays of the session, or of the account."""
_OF_SESSION: Final = frozenset({"SESSION", "LOCAL"})
_RESTORED_NAMES: Final = """
auto_increment_increment auto_increment_offset character_set_client check_constraint_checks collation_connection
collation_database collation_server default_collation_for_utf8mb4 default_table_encryption foreign_key_checks
identity last_insert_id lc_time_names sql_auto_is_null sql_if_exists sql_mode sql_require_primary_key time_zone
timestamp unique_checks
"""
_RESTORED: Final = frozenset(_RESTORED_NAMES.split())
"""Variables that a lane sets anew for each statement (``apply.session.context``)."""
_HARMLESS: Final = frozenset({"max_sp_recursion_depth", "optimizer_switch"})
_NOT_INHERITED_NAMES: Final = """
debug_dbug debug_sync default_master_connection gtid_domain_id gtid_next gtid_next_list gtid_seq_no
immediate_server_version innodb_lock_wait_timeout insert_id original_commit_timestamp original_server_version
pseudo_replica_mode pseudo_slave_mode pseudo_thread_id rand_seed1 rand_seed2 require_row_format
resultset_metadata server_id show_create_table_skip_secondary_engine skip_parallel_replication skip_replication
sql_log_bin transaction_allow_batching use_secondary_engine
"""
_NOT_INHERITED: Final = frozenset(_NOT_INHERITED_NAMES.split())
"""Variables of a session that has no global value, or cannot be asked for it."""
_LASTING: Final = ({pin.name for pin in PINS} | UNPINNED.keys() | _NOT_INHERITED) - _RESTORED - _HARMLESS
"""Variables whose value would decide on later statements of other users in a lane's session."""
_HEAD: Final = 24
"""Tokens in which a definition has the kind of its object."""
_ROUTINES: Final = frozenset({"FUNCTION", "PROCEDURE"})
_BEFORE_PARAMETERS: Final = 8
"""Tokens from a routine's kind to its parameters: FUNCTION IF NOT EXISTS `d` . `f` (."""
_BODY_BEGINS: Final = frozenset(
    {"AS", "BEGIN", "RETURN", "SELECT", "WITH", "INSERT", "REPLACE", "UPDATE", "DELETE", "CALL", "DO", "IF", "CASE"}
)
"""Words that end the head of a routine. None is a word of a type or of a characteristic."""
_BEGINS: Final = frozenset({"BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT"})
_CHANGES: Final = frozenset({"UPDATE", "INSERT", "REPLACE", "LOAD"})
_CHANGES_ROWS: Final = frozenset({"UPDATE", "DELETE"})
_CHANGES_OR_CALLS: Final = frozenset({"INSERT", "REPLACE"})
"""Behind which a parenthesis makes them functions of strings."""
_MOVES_SEQUENCES: Final = frozenset({"SETVAL", "NEXTVAL", "NEXT"})
_ASSIGNS: Final = ("=", ":=")
_PAYLOAD: Final = (TokenKind.STRING, TokenKind.VARIABLE)
"""Behind BINLOG."""
_SCOPES: Final = frozenset({"GLOBAL", "PERSIST", "PERSIST_ONLY"})
_GLOBAL: Final = re.compile(r"@@`?(?:global|persist|persist_only)\b", re.I)
_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)
_HANDLERS: Final = {"HANDLER": "FOR", "EXCEPTION": "WHEN"}
"""The second is that of sql_mode ORACLE."""
_NO_ROW: Final = (("NOT", "FOUND"), ("NO_DATA_FOUND", "THEN"))
"""Conditions that are no error."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What of the target a filter leaves out, in lower case."""

    databases: frozenset[str] = frozenset()
    """Those of which it takes nothing."""
    tables: frozenset[tuple[str, str]] = frozenset()
    """Database and name of those of the other databases."""

    @classmethod
    def of(cls, databases: Iterable[str], tables: Iterable[tuple[str, str]] = ()) -> LeftOut:
        """By names as the target has them: each spelling that a server takes for them."""
        spellings = (lower, folded_name)
        return cls(
            frozenset(spelled(name) for name in databases for spelled in spellings),
            frozenset((spelled(name), lower(table)) for name, table in tables for spelled in spellings),
        )


NOTHING_LEFT_OUT: Final = LeftOut()


def is_kept(database: str) -> bool:
    """Whether a database is one of the target's accounts or of the channel's state, by its name as typed."""
    return not _KEPT_THERE.isdisjoint((lower(database), folded_name(database)))


def described(what: str) -> str:
    """What ``kept_database`` has found, for people."""
    return what if what.isupper() else f"a table of {what}"


def own_value(tokens: Sequence[Token], flavor: Flavor, *, by_definer: bool, oracle: bool = False) -> str | None:
    """What in a body or a query may give another branch on another server; None if nothing does."""
    for at, token in enumerate(tokens):
        found = of_server(tokens, at, flavor, oracle=oracle)
        if found not in (None, _WITHOUT_BRANCH) and not (by_definer and found == _OF_DEFINER):
            return found
        if token.kind not in _NAMES:
            continue
        name, behind = token.text.upper(), tokens[at + 1 : at + 5]
        if name in _CALLED and behind and is_symbol(behind[0], "("):
            return f"{name}()"
        if name in _SERVERS_OWN and behind and is_symbol(behind[0], "."):
            return f"a table of {name.lower()}"
        if _catches_errors(token.upper, behind):
            return f"{token.upper}, which catches errors"
    return None


def kept_database(
    tokens: Sequence[Token], others: LeftOut = NOTHING_LEFT_OUT, own: str = "", *, by_definer: bool = False
) -> str | None:
    """The database of the target's accounts, of the channel's state, or of what is left out, that a body names, in
    lower case; the statement that changes the server, if it has one (SET GLOBAL, BINLOG, KILL ...); None for neither.

    ``own``: the routine's database, in which a name without one is. ``by_definer``: it runs with its definer's
    privileges, so only what is left out is looked for.
    """
    tokens = (*tokens, _BODY_END, _BODY_END, _BODY_END)
    kept = frozenset[str]() if by_definer else _KEPT_THERE
    for at, token in enumerate(tokens[:-3]):
        if not by_definer and (verb := _servers_verb(tokens, at)) is not None:
            return verb
        if token.kind not in _NAMES or (at > 0 and is_symbol(tokens[at - 1], ".")):
            continue
        if not is_symbol(tokens[at + 1], "."):
            table = lower(own), lower(token.text)
            if table in others.tables:
                return table[0]
            continue
        if not by_definer and lower(token.text) == _SYS and _changes_server(tokens, at):
            return _SYS
        # as the servers compare databases, and MySQL those of routines
        for name in (lower(token.text), folded_name(token.text)):
            if name in kept or name in others.databases or (name, lower(tokens[at + 2].text)) in others.tables:
                return name
    return None


def _changes_server(tokens: Sequence[Token], at: int) -> bool:
    """Whether a name of ``sys`` is its table of settings, or one of its procedures, which change what the server
    records. Its functions and views only read."""
    return lower(tokens[at + 2].text) == "sys_config" or (at > 0 and tokens[at - 1].upper == "CALL")


def server_statement(tokens: Sequence[Token]) -> str | None:
    """The statement of a body that changes the server, other sessions, or tables that it does not name."""
    tokens = (*tokens, _BODY_END)
    return next(filter(None, (_servers_verb(tokens, at) for at in range(len(tokens) - 1))), None)


def changed_data(tokens: Sequence[Token]) -> str | None:
    """The statement of a body that changes rows, or a sequence; None if there is none."""
    before = ""
    for token, behind in itertools.pairwise((*tokens, _BODY_END)):
        is_call, is_lock = is_symbol(behind, "("), (before, token.upper) == ("FOR", "UPDATE")
        before = token.upper
        if is_lock:
            continue
        if token.upper in _CHANGES_ROWS or (token.upper in _CHANGES_OR_CALLS and not is_call):
            return token.upper
        if token.upper in _MOVES_SEQUENCES and (is_call or behind.upper == "VALUE"):
            return token.upper
    return None


def never_in_lane(tokens: Sequence[Token], *, is_body: bool = True) -> str | None:
    """What in a body, or in a statement of the log, must not run in a lane's session, whatever the channel allows; None
    if nothing does: what changes the server or ends the session (``_SERVERS_VERBS``), gives up what the session holds,
    stays in it, or reaches rows that are elsewhere."""
    if (language := _other_language(tokens)) is not None:
        # its text runs SQL that stands nowhere
        return f"LANGUAGE {language}"
    tokens = (*tokens, _BODY_END, _BODY_END, _BODY_END)
    for at, token in enumerate(tokens[:-3]):
        call = f"{token.text.upper()}()" if token.kind in _NAMES and is_symbol(tokens[at + 1], "(") else ""
        if call in _SESSIONS_CALLS:
            return call
        found = _servers_verb(tokens, at) or _servers_verb(tokens, at, _SESSIONS_VERBS) or _lasting(tokens, at)
        if found is None and is_body:
            found = _of_accounts(tokens, at)
        if found is None and is_body and _is_begin(tokens, at):
            found = _servers_verb(tokens, at, _COMMITTING_VERBS)
        if found is not None:
            return found
    return engine_elsewhere(tokens) or folder_named(tokens) if is_body else None


def _other_language(tokens: Sequence[Token]) -> str | None:
    """The language in the head of a routine, if it is not SQL: between the parameters and the body are characteristics
    in any order. ALTER changes none (MySQL 6004)."""
    if not tokens or tokens[0].upper != "CREATE":
        return None
    kind = object_at(tokens)
    if kind is None or tokens[kind].upper not in _ROUTINES:
        return None
    behind = range(kind + 1, min(kind + _BEFORE_PARAMETERS, len(tokens)))
    start = next((at for at in behind if is_symbol(tokens[at], "(")), len(tokens))
    depth, before = 0, ""
    for token, following in itertools.pairwise((*tokens[start:], _BODY_END)):
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        # SET ('a', 'b') is a type, and CHARACTER SET a part of one
        is_set = token.upper == "SET" and before not in ("CHARACTER", "CHAR") and not is_symbol(following, "(")
        if depth == 0 and (is_set or token.upper in _BODY_BEGINS):
            return None
        if depth == 0 and token.upper == "LANGUAGE" and following.upper != "SQL":
            return following.text.upper()
        before = token.upper
    return None


def _servers_verb(tokens: Sequence[Token], at: int, verbs: Mapping[str, frozenset[str]] = _SERVERS_VERBS) -> str | None:
    """The statement at a token that changes the server, other sessions, or tables that it does not name."""
    token, behind, before = tokens[at], tokens[at + 1], tokens[at - 1] if at else None
    if token.kind is TokenKind.VARIABLE:
        # a quoted name behind the scope is a token of its own
        is_set = is_symbol(behind, "=", ":=", ".") or token.text.endswith(".")
        return SET_GLOBAL if is_set and _GLOBAL.match(token.text) is not None else None
    if token.upper in _SCOPES and before is not None and (before.upper == "SET" or is_symbol(before, ",")):
        return SET_GLOBAL if behind.kind in _NAMES else None
    if before is not None and is_symbol(before, "."):
        return None
    # KILL is a reserved word, the others are also names
    is_binlog = token.upper == "BINLOG" and behind.kind in _PAYLOAD
    if token.upper == "KILL" or is_binlog:
        return token.upper
    if token.upper == "CREATE" and [each.upper for each in tokens[at + 1 : at + 3]] == ["OR", "REPLACE"]:
        behind = tokens[min(at + 3, len(tokens) - 1)]
    word = behind.upper or behind.text
    if word not in verbs.get(token.upper, ()) or _is_column(tokens, at):
        return None
    return token.upper if word in _END else f"{token.upper} {word}"


def _is_begin(tokens: Sequence[Token], at: int) -> bool:
    """Whether a statement of a body begins at a token; the first one of a text may be the program's own CREATE."""
    if at > 0:
        return is_symbol(tokens[at - 1], ";") or tokens[at - 1].upper in _BEGINS
    return _OF_PROGRAMS.isdisjoint(token.upper for token in tokens[1:_HEAD])


def _is_column(tokens: Sequence[Token], at: int) -> bool:
    """Whether it is no statement that begins with SET, but the SET of an UPDATE."""
    return tokens[at].upper == "SET" and at + 2 < len(tokens) and is_symbol(tokens[at + 2], *_ASSIGNS, ".")


def _lasting(tokens: Sequence[Token], at: int) -> str | None:
    """What is set at a token that stays in the session behind the statement."""
    token, behind = tokens[at], tokens[at + 1]
    before = tokens[at - 1] if at else _BODY_END
    is_listed = before.upper in ("SET", *_OF_SESSION) or (is_symbol(before, ",") and _is_setting(tokens, at))
    if token.upper == "SET" and behind.upper in _OF_SESSION and tokens[at + 2].upper == "TRANSACTION":
        return "SET TRANSACTION"
    begins = token.upper == "SET" or (is_symbol(token, ",") and _is_setting(tokens, at) and _is_outermost(tokens, at))
    if begins and behind.upper in _SETS and not is_symbol(tokens[at + 2], *_ASSIGNS, "."):
        return f"SET {behind.upper}"
    if token.kind is TokenKind.VARIABLE and token.text.startswith("@@") and is_listed:
        scope, _, name = token.text[2:].lower().rpartition(".")
        # a quoted name behind the scope is a token of its own
        name = name or behind.text.lower()
        is_set = (bool(scope) and token.text.endswith(".")) or is_symbol(behind, *_ASSIGNS, ".")
        return f"SET {token.text}" if is_set and name.strip("`") not in _RESTORED | _HARMLESS else None
    if token.kind not in _NAMES or not is_symbol(behind, *_ASSIGNS):
        return None
    name = token.text.lower()
    if before.upper in _OF_SESSION and (at < 2 or tokens[at - 2].upper == "SET" or is_symbol(tokens[at - 2], ",")):
        return None if name in _RESTORED | _HARMLESS else f"SET SESSION {name}"
    if name not in _LASTING:
        return None
    # sql_mode ORACLE needs no SET
    is_set = is_symbol(behind, ":=") or (is_listed and _is_setting(tokens, at))
    return f"SET {name}" if is_set else None


def _of_accounts(tokens: Sequence[Token], at: int) -> str | None:
    """The statement of a body that changes an account's password, or privileges. Servers refuse it (1445, 1422) when a
    function or a trigger comes to it."""
    token, behind = tokens[at], tokens[at + 1]
    if at > 0 and is_symbol(tokens[at - 1], "."):
        return None
    if token.upper in _OF_ACCOUNTS and behind.upper != "OPTION":
        return token.upper
    # a variable of this name must be quoted, a column need not
    is_set = token.upper == "SET" and not _is_change(tokens, at)
    is_set = is_set or (is_symbol(token, ",") and _is_setting(tokens, at) and _is_outermost(tokens, at))
    is_password = behind.upper == "PASSWORD" and not is_symbol(tokens[at + 2], ".")
    return "SET PASSWORD" if is_password and is_set else None


def _is_setting(tokens: Sequence[Token], at: int) -> bool:
    """Whether the statement around a token is a SET, and no UPDATE or INSERT ... SET."""
    for place in range(at - 1, -1, -1):
        word = tokens[place].upper
        if word == "SET":
            return not _is_change(tokens, place)
        if is_symbol(tokens[place], ";"):
            return False
    return False


def _is_outermost(tokens: Sequence[Token], at: int) -> bool:
    """Whether a comma is in no parentheses of the statement SET around it; a type and a character set are none."""
    depth = 0
    for place in range(at - 1, -1, -1):
        depth += is_symbol(tokens[place], ")") - is_symbol(tokens[place], "(")
        if depth < 0:
            return False
        if tokens[place].upper == "SET":
            is_set = place == 0 or tokens[place - 1].upper not in ("CHARACTER", "CHAR")
            return is_set and depth == 0 and not is_symbol(tokens[place + 1], "(")
    return False


def _is_change(tokens: Sequence[Token], at: int) -> bool:
    """Whether a SET belongs to a statement that changes rows; in front of a body is a trigger's FOR EACH ROW."""
    for place in range(at - 1, -1, -1):
        word, before = tokens[place].upper, tokens[place - 1].upper if place else ""
        if is_symbol(tokens[place], ";") or word in _BEGINS or (word == "ROW" and before == "EACH"):
            return False
        if word in _CHANGES:
            return True
    return False


def value_of_server(tokens: Sequence[Token], flavor: Flavor, *, by_definer: bool, oracle: bool = False) -> str | None:
    """What in a body or a query gives another value on another server; None if nothing does."""
    for at, token in enumerate(tokens):
        found = of_server(tokens, at, flavor, oracle=oracle)
        if found not in (None, _WITHOUT_BRANCH) and not (by_definer and found == _OF_DEFINER):
            return found
        is_qualifier = at + 1 < len(tokens) and is_symbol(tokens[at + 1], ".")
        if token.kind in _NAMES and token.text.upper() in _SERVERS_OWN and is_qualifier:
            return f"a table of {token.text.lower()}"
    return None


def catches_errors(tokens: Sequence[Token]) -> bool:
    """Whether a body has a handler of errors."""
    return any(_catches_errors(token.upper, tokens[at + 1 : at + 5]) for at, token in enumerate(tokens))


def _catches_errors(word: str, behind: Sequence[Token]) -> bool:
    """Whether a handler is declared there, for more than the end of a cursor."""
    upper = [token.upper for token in behind]
    if word not in _HANDLERS or upper[:1] != [_HANDLERS[word]]:
        return False
    has_more = len(behind) > 3 and is_symbol(behind[3], ",")
    return tuple(upper[1:3]) not in _NO_ROW or has_more
