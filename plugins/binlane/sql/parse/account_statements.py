"""Reads what servers log about accounts, and FLUSH, to the end: CREATE, ALTER, DROP and RENAME of users and roles,
GRANT, REVOKE, SET PASSWORD and SET DEFAULT ROLE.

Servers write some of these texts themselves, and not all of them escape what an account's owner has chosen: a password
of MariaDB's ``SET PASSWORD`` can end its literal and have further assignments behind it. So nothing may stand in such a
text that its grammar does not know. The readers take the clauses of both families in any order: a server has parsed the
text, and what counts is that each token belongs to one statement about accounts. Grammar: ``sql/sql_yacc.yy`` of MySQL
9 and MariaDB 12.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from binlane.sql.parse.cursor import Cursor, FactsBuilder, account_end, is_name, is_symbol
from binlane.sql.parse.facts import StatementKind
from binlane.sql.parse.lexer import TokenKind, Unreadable

_Step = Callable[[Cursor], None]

_CALLED: Final = frozenset({"CURRENT_USER", "CURRENT_ROLE", "USER", "SESSION_USER", "SYSTEM_USER"})
"""Accounts that may be written as calls."""
_ENDS: Final = ("ON", "TO", "FROM")
"""Reserved words behind the privileges of a GRANT or REVOKE."""
_GRANTED: Final = frozenset({"TABLE", "FUNCTION", "PROCEDURE", "PACKAGE", "LIBRARY"})
_RESOURCES: Final = (
    "MAX_QUERIES_PER_HOUR", "MAX_UPDATES_PER_HOUR", "MAX_CONNECTIONS_PER_HOUR", "MAX_USER_CONNECTIONS",
    "MAX_STATEMENT_TIME",
)  # fmt: skip
_PROOFS: Final = (("IDENTIFIED",), ("AND", "IDENTIFIED"), ("INITIAL", "AUTHENTICATION", "IDENTIFIED"))
_VERBS: Final = ("CREATE", "ALTER", "DROP", "RENAME")


def is_about_accounts(words: Sequence[str]) -> bool:
    """Whether a statement with these words, in capitals, is about accounts or a FLUSH, whether it is read or not."""
    verb, behind = words[0] if words else "", list(words[1:4])
    if verb in _VERBS:
        return behind[2 if behind[:2] == ["OR", "REPLACE"] else 0 :][:1] in (["USER"], ["ROLE"])
    if verb == "SET":
        return behind[:1] == ["PASSWORD"] or behind[:2] == ["DEFAULT", "ROLE"]
    return verb in ("GRANT", "REVOKE", "FLUSH")


def _read(step: _Step) -> Callable[[Cursor, FactsBuilder], None]:
    """A reader of ``analyze``: what the step leaves is not known."""

    def read(cursor: Cursor, reading: FactsBuilder) -> None:
        reading.kind = StatementKind.GLOBAL
        step(cursor)
        cursor.finished()

    return read


def _list(cursor: Cursor, step: _Step) -> None:
    step(cursor)
    while cursor.symbol(","):
        step(cursor)


def _account(cursor: Cursor) -> None:
    """An account or a role."""
    token, behind = cursor.peek(), cursor.peek(1)
    cursor.expect("an account", found=is_name(token) or token.kind is TokenKind.STRING)
    if is_symbol(behind, "(") and token.upper not in _CALLED:
        raise Unreadable("expected an account", behind.text)
    cursor.at = account_end(cursor.tokens, cursor.at)


def _accounts(cursor: Cursor) -> None:
    _list(cursor, _account)


def _text(cursor: Cursor) -> None:
    """A literal; MySQL may write a password's hash as a hexadecimal number."""
    cursor.expect("a literal", found=cursor.peek().kind in (TokenKind.STRING, TokenKind.NUMBER))
    cursor.next()


def _number(cursor: Cursor) -> None:
    cursor.symbol("-")
    cursor.expect("a number", found=cursor.peek().kind is TokenKind.NUMBER)
    cursor.next()


def _name_or_text(cursor: Cursor) -> None:
    token = cursor.next()
    if not is_name(token) and token.kind is not TokenKind.STRING:
        raise Unreadable("expected a name", token.text)


def _password(cursor: Cursor) -> None:
    """A literal, or one in PASSWORD() or OLD_PASSWORD()."""
    if cursor.any_word("PASSWORD", "OLD_PASSWORD") is not None and cursor.symbol("("):
        _text(cursor)
        cursor.expect(")", found=cursor.symbol(")"))
        return
    _text(cursor)


def _plugin(cursor: Cursor) -> None:
    _name_or_text(cursor)
    if cursor.any_word("AS", "USING") is not None:
        _password(cursor)
    elif cursor.words("BY") and not cursor.words("RANDOM", "PASSWORD"):
        _text(cursor)


def _identified(cursor: Cursor) -> None:
    """What stands behind IDENTIFIED: BY a password, or WITH plugins, of which MariaDB has several (OR)."""
    if cursor.words("BY"):
        if not cursor.words("RANDOM", "PASSWORD"):
            _password(cursor)
        return
    cursor.expect("BY, WITH or VIA", found=cursor.any_word("WITH", "VIA") is not None)
    _plugin(cursor)
    while cursor.words("OR"):
        _plugin(cursor)


def _factor(cursor: Cursor) -> None:
    _number(cursor)
    cursor.expect("FACTOR", found=cursor.words("FACTOR"))
    if cursor.words("FINISH", "REGISTRATION"):
        cursor.expect("CHALLENGE_RESPONSE AS", found=cursor.words("SET", "CHALLENGE_RESPONSE", "AS"))
        _text(cursor)
    elif not cursor.words("INITIATE", "REGISTRATION"):
        cursor.words("UNREGISTER")


def _user(cursor: Cursor) -> None:
    """An account with the ways in which it proves who it is."""
    _account(cursor)
    while True:
        if any(cursor.words(*words) for words in _PROOFS):
            _identified(cursor)
        elif cursor.words("REPLACE"):
            _text(cursor)
        elif cursor.any_word("ADD", "MODIFY", "DROP") is not None or cursor.peek().kind is TokenKind.NUMBER:
            _factor(cursor)
        elif not (cursor.words("RETAIN", "CURRENT", "PASSWORD") or cursor.words("DISCARD", "OLD", "PASSWORD")):
            return


def _require(cursor: Cursor) -> None:
    if cursor.any_word("NONE", "SSL", "X509") is not None:
        return
    is_first = True
    while cursor.words("AND") or is_first or cursor.peek().upper in ("CIPHER", "ISSUER", "SUBJECT"):
        found = cursor.any_word("CIPHER", "ISSUER", "SUBJECT") is not None
        cursor.expect("CIPHER, ISSUER or SUBJECT", found=found)
        _text(cursor)
        is_first = False


def _limits(cursor: Cursor) -> None:
    """What stands behind WITH."""
    is_first = True
    while True:
        if cursor.any_word(*_RESOURCES) is not None:
            _number(cursor)
        elif not (cursor.words("GRANT", "OPTION") or cursor.words("ADMIN", "OPTION")):
            cursor.expect("a limit of the account", found=not is_first)
            return
        is_first = False


def _days(cursor: Cursor) -> None:
    if not cursor.words("DEFAULT"):
        _number(cursor)
        cursor.words("DAY")


def _about_password(cursor: Cursor) -> None:
    """What stands behind PASSWORD, as an option of an account."""
    if cursor.words("EXPIRE"):
        if cursor.words("INTERVAL"):
            _days(cursor)
        else:
            cursor.any_word("DEFAULT", "NEVER")
    elif cursor.words("HISTORY") or cursor.words("REUSE", "INTERVAL"):
        _days(cursor)
    else:
        cursor.expect("an option of a password", found=cursor.words("REQUIRE", "CURRENT"))
        cursor.any_word("DEFAULT", "OPTIONAL")


def _unlocked_after(cursor: Cursor) -> None:
    if not cursor.words("UNBOUNDED"):
        _number(cursor)


def _lock(cursor: Cursor) -> None:
    cursor.expect("LOCK or UNLOCK", found=cursor.any_word("LOCK", "UNLOCK") is not None)


def _roles(cursor: Cursor) -> None:
    """NONE, DEFAULT, ALL or a list of roles."""
    if cursor.any_word("NONE", "DEFAULT") is not None:
        return
    if not cursor.words("ALL") or cursor.words("EXCEPT"):
        _accounts(cursor)


def _default_roles(cursor: Cursor) -> None:
    cursor.expect("ROLE", found=cursor.words("ROLE"))
    _roles(cursor)


_OPTIONS: Final[Mapping[str, _Step]] = {
    "REQUIRE": _require,
    "WITH": _limits,
    "PASSWORD": _about_password,
    "ACCOUNT": _lock,
    "FAILED_LOGIN_ATTEMPTS": _number,
    "PASSWORD_LOCK_TIME": _unlocked_after,
    "DEFAULT": _default_roles,
    "COMMENT": _text,
    "ATTRIBUTE": _text,
}
"""The options behind the accounts, each with the reader of what follows its word."""


def _options(cursor: Cursor) -> None:
    while (step := _OPTIONS.get(cursor.peek().upper)) is not None:
        cursor.next()
        step(cursor)


def _if_exists(cursor: Cursor) -> None:
    if not cursor.words("IF", "EXISTS"):
        cursor.words("IF", "NOT", "EXISTS")


def _users(cursor: Cursor) -> None:
    """CREATE USER and ALTER USER."""
    _if_exists(cursor)
    _list(cursor, _user)
    _options(cursor)


def _new_roles(cursor: Cursor) -> None:
    _if_exists(cursor)
    _accounts(cursor)
    if cursor.words("WITH", "ADMIN"):
        _account(cursor)


def _dropped(cursor: Cursor) -> None:
    _if_exists(cursor)
    _accounts(cursor)
    cursor.words("IGNORE", "UNKNOWN", "USER")


def _renamed(cursor: Cursor) -> None:
    _account(cursor)
    cursor.expect("TO", found=cursor.words("TO"))
    _account(cursor)


def _renames(cursor: Cursor) -> None:
    _list(cursor, _renamed)


def _column(cursor: Cursor) -> None:
    cursor.name()


def _table(cursor: Cursor) -> None:
    cursor.qualified()


def _privilege(cursor: Cursor) -> None:
    """A privilege with its columns, or a role."""
    if cursor.peek().kind in (TokenKind.NAME, TokenKind.STRING) or cursor.peek(1).kind is TokenKind.VARIABLE:
        _account(cursor)
        return
    is_first = True
    while cursor.peek().upper not in ("", *_ENDS):
        cursor.next()
        is_first = False
    cursor.expect("a privilege or a role", found=not is_first)
    if cursor.symbol("("):
        _list(cursor, _column)
        cursor.expect(")", found=cursor.symbol(")"))


def _level(cursor: Cursor) -> None:
    """What privileges are granted on."""
    if cursor.peek().upper in _GRANTED and not is_symbol(cursor.peek(1), ".") and cursor.peek(1).upper not in _ENDS:
        cursor.next()
        if cursor.peek().upper == "BODY" and not is_symbol(cursor.peek(1), ".") and cursor.peek(1).upper not in _ENDS:
            cursor.next()
    if cursor.symbol("*"):
        cursor.expect("*", found=not cursor.symbol(".") or cursor.symbol("*"))
        return
    cursor.name()
    if cursor.symbol(".") and not cursor.symbol("*"):
        token = cursor.next()
        if token.kind not in (TokenKind.NAME, TokenKind.WORD):
            raise Unreadable("expected a name", token.text)


def _granted(cursor: Cursor) -> None:
    """The privileges or roles of GRANT and REVOKE, and what they are about."""
    if cursor.words("PROXY", "ON"):
        _account(cursor)
        return
    begin = cursor.at
    _list(cursor, _privilege)
    has_columns = any(is_symbol(token, "(") for token in cursor.tokens[begin : cursor.at])
    if cursor.words("ON"):
        _level(cursor)
    else:
        cursor.expect("ON behind columns", found=not has_columns)


def _grant(cursor: Cursor) -> None:
    _granted(cursor)
    cursor.expect("TO", found=cursor.words("TO"))
    _list(cursor, _user)
    _options(cursor)
    if cursor.words("AS"):
        _account(cursor)
        if cursor.words("WITH", "ROLE"):
            _roles(cursor)


def _revoke(cursor: Cursor) -> None:
    cursor.words("IF", "EXISTS")
    cursor.words("ADMIN", "OPTION", "FOR")
    _granted(cursor)
    cursor.expect("FROM", found=cursor.words("FROM"))
    _accounts(cursor)
    cursor.words("IGNORE", "UNKNOWN", "USER")


def _set_password(cursor: Cursor) -> None:
    if cursor.words("FOR"):
        _account(cursor)
    if not cursor.words("TO", "RANDOM"):
        cursor.expect("=", found=cursor.symbol("="))
        _password(cursor)
    if cursor.words("REPLACE"):
        _text(cursor)
    cursor.words("RETAIN", "CURRENT", "PASSWORD")


def _set_default_role(cursor: Cursor) -> None:
    _roles(cursor)
    if cursor.any_word("FOR", "TO") is not None:
        _accounts(cursor)


def _flushed(cursor: Cursor) -> None:
    """One of what FLUSH names: words, with the name of a connection or channel, or with a list of numbers."""
    if cursor.any_word("TABLE", "TABLES") is not None:
        if is_name(cursor.peek()) and cursor.peek().upper != "WITH":
            _list(cursor, _table)
        cursor.words("WITH", "READ", "LOCK")
        cursor.words("AND", "DISABLE", "CHECKPOINT")
        cursor.words("FOR", "EXPORT")
        return
    kinds = (TokenKind.WORD, TokenKind.NAME, TokenKind.STRING)
    cursor.expect("what is flushed", found=cursor.peek().kind in kinds)
    while cursor.peek().kind in kinds:
        cursor.next()
    if cursor.symbol("="):
        cursor.expect("(", found=cursor.symbol("("))
        if not cursor.symbol(")"):
            _list(cursor, _number)
            cursor.expect(")", found=cursor.symbol(")"))


def _flush(cursor: Cursor) -> None:
    cursor.any_word("NO_WRITE_TO_BINLOG", "LOCAL")
    _list(cursor, _flushed)


create_user: Final = _read(_users)
alter_user: Final = _read(_users)
create_role: Final = _read(_new_roles)
drop_accounts: Final = _read(_dropped)
rename_user: Final = _read(_renames)
grant: Final = _read(_grant)
revoke: Final = _read(_revoke)
set_password: Final = _read(_set_password)
set_default_role: Final = _read(_set_default_role)
flush: Final = _read(_flush)
"""Readers of ``analyze``, each behind the words that its name says."""
