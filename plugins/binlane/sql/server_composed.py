"""Statements that a server composes for its log, with parts that differ from the client's text.

Names, comments and whole tables come from the server's dictionary: UTF-8, with backslashes doubled, whatever the
session's character set and sql_mode are. Parts copied from the client's text follow the session. The servers' own
replicas read the whole text by the session's rules. Tried with MariaDB 10.11 and MySQL 9.7; sources: ``sp_head``,
``sp.cc`` (``create_string``), ``sql_view.cc`` (``mysql_create_view``), ``sql_show.cc`` (``store_create_info``).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from binlane.binlog.types.collations import UTF8MB4_GENERAL_CI, charset_name, collation_name
from binlane.model import Flavor, SessionContext
from binlane.sql.charset import dialect_of, has_plain_backslashes, placed
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, Unreadable, lex
from binlane.sql.words import words_of

_FILLED_BELOW: Final = re.compile(rb"(?<=\n\)) START TRANSACTION(?=[ \n]|\Z)")
"""Stands between the columns and the options. The server writes a line break inside a literal as ``\\n``."""
_COMPOSED_TABLE: Final = re.compile(rb"CREATE (?:OR REPLACE )?TABLE ")
_QUOTED: Final = rb"`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\""
"""Double quotes under ANSI_QUOTES."""
_NAME: Final = rb"(?:" + _QUOTED + rb"|[\w$\x80-\xff]+)"
"""Without quotes under ``sql_quote_show_create = 0``."""
QUOTED_PART: Final = rb"`[^`]*`|\"[^\"]*\""
"""For repetitions: a name with a doubled quote is two parts, one behind the other. ``_QUOTED`` could take it as one or
as two, and a text with n of them that does not match would be tried 2 to the n times."""
_IN_DATABASE: Final = _NAME + rb"(?:\." + _NAME + rb")?"
"""Servers write the database where it is not the session's, or was given."""
_LIKE_COMPOSED: Final = re.compile(
    rb"CREATE (?:OR REPLACE )?(?:TEMPORARY )?TABLE (?:IF NOT EXISTS )?"
    + _IN_DATABASE
    + rb" \(\n  (?:[`\"]|[\w$\x80-\xff]+ [a-z])"
)
"""The format of ``store_create_info``, in which CREATE TABLE ... LIKE a temporary table is logged; clients may use it,
too."""
_DEFINER: Final = re.compile(rb"(?:CREATE|ALTER)\b[^`'\"]*?DEFINER=(?P<spelled>" + _NAME + rb"@" + _NAME + rb")")
_VIEW: Final = re.compile(
    rb"(?:CREATE|ALTER) .*?\bVIEW (?:IF NOT EXISTS )?(?P<spelled>" + _IN_DATABASE + rb"(?:\([^)]*\))?) AS ", re.S
)
_ROUTINE: Final = re.compile(
    rb"CREATE .*?\b(?:PROCEDURE|FUNCTION) (?:IF NOT EXISTS )?(?P<spelled>" + _IN_DATABASE + rb")\(", re.S
)
_ACCOUNT: Final = re.compile(
    rb"\s*(?P<spelled>(?:CREATE\s+USER|ALTER\s+USER|SET\s+PASSWORD|GRANT\b.*?\bON)\b.*)", re.S | re.I
)
"""Account statements that MySQL rewrites (``rewrite_query``); it logs GRANT role, REVOKE, RENAME and DROP unchanged."""
_COMPOSED_GRANT: Final = re.compile(
    # up to the first ON, which no later one is tried for
    rb"\s*+GRANT\b(?:" + QUOTED_PART + rb"|(?! ON )[^'`\"])* ON (?:" + QUOTED_PART + rb"|[^'`\"])*? TO '",
    re.I,
)
_GIVES: Final = re.compile(rb"GRANT\b", re.I)
_REWRITES_GRANTS: Final = (5, 7, 0)
"""MySQL's sources of this version have ``mysql_rewrite_grant``."""
_SETS_ACCOUNT: Final = {
    Flavor.MARIADB: re.compile(rb"SET\s+(?:PASSWORD|DEFAULT\s+ROLE)\b", re.I),
    Flavor.MYSQL: re.compile(rb"SET\s+PASSWORD\b", re.I),
}
"""MySQL logs SET DEFAULT ROLE as it came, and from 5.7.6 on SET PASSWORD as ALTER USER."""
_NO_ESCAPE: Final = rb"'[^'\\]*'"
_UNESCAPED: Final = re.compile(
    rb"SET PASSWORD FOR " + _NO_ESCAPE + rb"@" + _NO_ESCAPE + rb"='[0-9A-Za-z*+/=.:_$-]*'"
    rb"|SET DEFAULT ROLE " + _NO_ESCAPE + rb" FOR " + _NO_ESCAPE + rb"@" + _NO_ESCAPE
)
"""MariaDB ``change_password`` and ``acl_set_default_role`` (``sql/sql_acl.cc``): ``sprintf`` with ``'%-.120s'``, so
that a quote or a backslash of a name or a password would be one of the text. Everybody may give himself a password of
41 characters of his choice, or of 16. The hashes of all plugins are of these letters: ``*`` and hexadecimal digits,
base64 of ed25519, ``P0:..:..`` of parsec, ``invalid``, nothing."""
_REWRITES: Final = (8, 0, 0)
"""From MySQL 8.0 on a GRANT of privileges has no literals, and all its names come from the server's dictionary."""
_ANY: Final = (0, 0, 0)
_SAVEPOINT: Final = re.compile(rb"(?:SAVEPOINT|ROLLBACK TO) [`\"]")
"""``binlog_savepoint_set`` and ``binlog_savepoint_rollback`` (sql/log.cc, sql/binlog.cc)."""
_FUNCTION: Final = re.compile(rb"SELECT (?P<spelled>" + _NAME + rb"\." + _NAME + rb")\(")
"""A function that changes tables, with its arguments (``sp_head::execute_function``): a text argument has an
introducer, so its bytes are the same in each character set of the text. No server logs a SELECT as it was typed."""
_WHOLE: Final = (
    (Flavor.MYSQL, _REWRITES, _COMPOSED_GRANT),
    # ``mysql_rm_table_no_locks`` (sql/sql_table.cc) writes every drop of a temporary table anew
    (Flavor.MARIADB, _ANY, re.compile(rb"DROP TEMPORARY (?:TABLE|SEQUENCE) ")),
    # ``change_password`` and ``acl_set_default_role`` (sql/sql_acl.cc)
    (Flavor.MARIADB, _ANY, re.compile(rb"SET (?:PASSWORD FOR|DEFAULT ROLE) '")),
    *((flavor, _ANY, pattern) for flavor in Flavor for pattern in (_SAVEPOINT, _FUNCTION)),
)
"""Statements that a server writes as a whole, by family and the version since which it does: no client's text has
their form in a log."""
_EMPTIED: Final = re.compile(
    rb"(?:TRUNCATE TABLE|DELETE FROM) (?P<spelled>" + _NAME + rb"\." + _NAME + rb")(?: /\* generated by server|\Z)"
)
"""A MEMORY table behind a restart (``open_table_entry_fini``, sql/sql_base.cc): a client may type the same."""
_COMMENT: Final = re.compile(rb"\n    COMMENT '(?P<spelled>(?:[^'\\]|\\.|'')*)'\n", re.S)
_VALUE: Final = rb"'(?:[^'\\]|\\.|'')*'"
_RETURNED: Final = re.compile(rb"\) RETURNS (?P<spelled>(?:enum|set)\(" + _VALUE + rb"(?:," + _VALUE + rb")*\))", re.S)
"""``sp_returns_type`` (``sql/sp.cc``) of both families: a column's type, as SHOW CREATE TABLE prints it."""
_IN_ROUTINES: Final = (_COMMENT, _RETURNED)
_IS_ROUTINE: Final = re.compile(rb"CREATE (?:" + QUOTED_PART + rb"|[^\n(`\"])*?\b(?:PROCEDURE|FUNCTION|PACKAGE) ")
_AS_GIVEN: Final = {
    "DIRECTORY": frozenset({"", "INDEX", "PARTITION"}),
    "SECONDARY_ENGINE": frozenset({"", "SECONDARY_ENGINE_ATTRIBUTE", "PARTITION"}),
}
"""Options that servers print as they were given, each with the words that they print behind it."""
_UTF8: Final = frozenset({"utf8mb3", "utf8mb4", "binary"})
_WHAT_TO_DO: Final = (
    "(skip it, and make it on the target by hand or on the source from a client with SET NAMES utf8mb4 and without "
    "NO_BACKSLASH_ESCAPES)"
)
_OTHERWISE: Final = (
    "(skip it, and make the table on the target by hand; one made for a query can be made in two statements)"
)


def without_transaction_clause(sql: bytes) -> bytes:
    """MySQL's CREATE TABLE ... START TRANSACTION, whose rows follow, without that clause.

    With the clause, the target would accept only row events next. Raises ValueError, whose text is part of an error
    message, if the clause is not found exactly once.
    """
    found = list(_FILLED_BELOW.finditer(sql))
    if len(found) != 1:
        raise ValueError(f"CREATE TABLE .. SELECT with {len(found)} places that may be its START TRANSACTION clause,")
    return sql[: found[0].start()] + sql[found[0].end() :]


def in_its_charset(
    sql: bytes, context: SessionContext, flavor: Flavor, version: tuple[int, int, int]
) -> SessionContext:
    """The context with the character set of the statement's text: servers write some statements in UTF-8, whatever the
    session's character set is."""
    if sql.isascii() or not _is_utf8(sql):
        return context
    is_composed = any(
        flavor is family and version >= since and pattern.match(sql) is not None for family, since, pattern in _WHOLE
    )
    return replace(context, charset_client=UTF8MB4_GENERAL_CI) if is_composed else context


def is_composed_table(sql: bytes) -> bool:
    """Whether a CREATE TABLE may be the server's own text, for a table that the same transaction's rows fill."""
    return _COMPOSED_TABLE.match(sql) is not None


def spelled_twice(sql: bytes, context: SessionContext, flavor: Flavor, *, composed: bool) -> str | None:
    """The part of a statement that a replica would misread, with the reason and the next step; None if there is none.

    ``composed``: the server wrote the whole text."""
    charset = charset_name(collation_name(context.charset_client, Flavor.MYSQL) or "") if context.charset_client else ""
    other_charset = charset not in ("", *_UTF8)
    plain_backslashes = has_plain_backslashes(context)
    if not other_charset and not plain_backslashes:
        return None
    if composed:
        return _named("the text of CREATE TABLE .. SELECT", sql, other_charset, plain_backslashes)
    if _LIKE_COMPOSED.match(sql) is not None and _is_utf8(sql):
        what = "a table's text, which the server writes for CREATE TABLE .. LIKE a temporary table"
        return _named(what, sql, other_charset, plain_backslashes)
    emptied = _EMPTIED.match(sql)
    if emptied is not None and _is_utf8(emptied["spelled"]):
        return _named(
            "a table that may be one in memory, emptied behind a restart", emptied["spelled"], other_charset, False
        )
    for what, pattern, is_escaped, flavors in _PARTS:
        if pattern in _IN_ROUTINES and _IS_ROUTINE.match(sql) is None:
            continue
        match = pattern.search(sql) if pattern in _IN_ROUTINES else pattern.match(sql)
        if match is None or flavor not in flavors:
            continue
        said = _named(what, match["spelled"], other_charset, plain_backslashes and is_escaped)
        if said is not None:
            return said
    return None


def unlike_composed(sql: bytes, flavor: Flavor) -> str | None:
    """What may be another statement than the source has executed, of one about an account that servers write without
    escapes; None for any other statement, and for one that needs none."""
    if _SETS_ACCOUNT[flavor].match(sql) is None or _UNESCAPED.fullmatch(sql) is not None:
        return None
    return (
        "an account's password or role in a text that a server writes without escapes, and that is neither SET "
        "PASSWORD FOR 'user'@'host'='hash' nor SET DEFAULT ROLE 'role' FOR 'user'@'host': what its owner has chosen "
        "may be SQL there (skip it, and set the account's password, or its role, again on the source: SET PASSWORD "
        "FOR .. = PASSWORD('..'))"
    )


def comment_in_grant(sql: bytes, context: SessionContext, flavor: Flavor, version: tuple[int, int, int]) -> str | None:
    """What may be another GRANT than the source has executed; None for any other statement. ``sql``: as it was logged.

    MySQL writes a GRANT of privileges anew, without comments; old releases write the names of columns as they are
    (``mysql_rewrite_grant`` in ``sql/sql_rewrite.cc``), so that one can end the statement and begin a comment.
    """
    if flavor is not Flavor.MYSQL or version < _REWRITES_GRANTS or _GIVES.match(sql) is None:
        return None
    text, _, _ = placed(sql, context)
    tokens, comments = list[Token](), list[tuple[int, int]]()
    try:
        lex(text, dialect_of(context, flavor), tokens, None, comments)
    except Unreadable:
        # such a text is refused anyway
        return None
    if not comments or not any(token.upper == "ON" for token in tokens):
        return None
    return (
        "a GRANT of privileges with a comment, which MySQL has not written: a column's name may hide one (upgrade the "
        "source to a release that quotes the names of columns there; for this one, skip it and run on the target what "
        "the source has executed)"
    )


def hidden_clause(sql: bytes, context: SessionContext, flavor: Flavor, *, composed: bool = False) -> str | None:
    """What a table's text has that the source may not have executed, if the server may have written it; None if it has
    nothing. ``composed``: the server wrote it, whatever its form is.

    A server prints a few parts as they were given: MariaDB folders, options of engines and the names of foreign keys,
    MySQL the secondary engine. Each can end where its owner wants it to, with any clause behind it. The server writes
    no query into such a text.
    """
    if not composed and _LIKE_COMPOSED.match(sql) is None:
        return None
    try:
        words = words_of(sql, context, flavor)
    except Unreadable:
        # such a text is refused anyway
        return None
    # few windows have such a text
    from binlane.sql.parse.shown_table import behind_option, printed_keys, query_part

    depth = 0
    for at, token in enumerate(words.tokens):
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if depth == 0 and token.upper in _AS_GIVEN and (value := words.value(at)) is not None:
            behind = words.tokens[value + 1].upper if value + 1 < len(words.tokens) else ""
            if behind not in _AS_GIVEN[token.upper]:
                return f"a table whose {token.upper} hides a clause behind it (write that option last)"
    if (flavor is Flavor.MARIADB or composed) and (word := query_part(words.tokens)) is not None:
        return f"a table in the form in which a server logs it, with {word}, which hides in a part of it {_OTHERWISE}"
    if flavor is Flavor.MYSQL:
        return None
    if (word := behind_option(words.tokens)) is not None:
        return f"a table whose options hide a clause behind them ({word}; write the options of its engine last)"
    text = sql.decode("latin-1")
    if (
        composed
        and "FOREIGN KEY (" in text
        and not text.count("FOREIGN KEY") == text.count("REFERENCES") == printed_keys(text)
    ):
        return f"a table whose foreign keys hide a clause behind them {_OTHERWISE}"
    return None


def _is_utf8(text: bytes) -> bool:
    """Whether the text may come from the dictionary: text in another character set is hardly ever valid UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _named(what: str, text: bytes, other_charset: bool, plain_backslashes: bool) -> str | None:
    if other_charset and not text.isascii():
        return f"{what}, which the source logged in another character set than the rest {_WHAT_TO_DO}"
    if plain_backslashes and b"\\" in text:
        return f"{what}, which the source logged with escapes that its sql_mode does not have {_WHAT_TO_DO}"
    return None


_BOTH: Final = frozenset(Flavor)
_MYSQL: Final = frozenset({Flavor.MYSQL})
_PARTS: Final[tuple[tuple[str, re.Pattern[bytes], bool, frozenset[Flavor]], ...]] = (
    ("a definer's name", _DEFINER, False, _BOTH),
    ("a view's name and columns", _VIEW, False, _MYSQL),
    ("a routine's name", _ROUTINE, False, _MYSQL),
    ("a routine's comment", _COMMENT, True, _BOTH),
    ("the values that a function returns", _RETURNED, True, _BOTH),
    ("an account statement", _ACCOUNT, False, _MYSQL),
    ("a function's name", _FUNCTION, False, _BOTH),
)
"""Name of the part, its pattern, whether its backslashes are doubled, and the families that log it in UTF-8."""
