"""The text of a temporary table's definition that is stored on the target, before the lane's account runs it.

Whoever can write to the schema ``binlane`` can change the text, and may have fewer privileges than the account. So the
text may make a temporary table out of columns and keys, and nothing else: it reads no table (SELECT, LIKE), reaches no
other table or server (MERGE, FEDERATED, CONNECT) and no file (DATA DIRECTORY), and what its columns compute moves no
sequence and calls no function of a library.
"""

from __future__ import annotations

from typing import Final

from binlane.model import Flavor
from binlane.sql.parse.engines import LOCAL_ENGINES
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, Unreadable, lex
from binlane.sql.parse.table_calls import called_elsewhere
from binlane.state.stored_values import unexpected

BEGINNING: Final = "CREATE TEMPORARY TABLE "
_ENGINES: Final = LOCAL_ENGINES - {"merge", "mrg_myisam"}
_NOWHERE: Final = frozenset({"SELECT", "INTO", "NEXT", "PREVIOUS", "NEXTVAL", "SETVAL", "LASTVAL"})
"""Words of queries and of sequences. A name is in quotes."""
_NOT_OUTSIDE: Final = frozenset(
    {"AS", "TABLE", "VALUES", "LIKE", "UNION", "CONNECTION", "DIRECTORY", "IGNORE", "REPLACE", "START", "WITH"}
)
"""Words that do not follow the list of columns and keys."""


def require_columns_alone(definition: str, flavor: Flavor) -> None:
    """Raises StateSchemaError unless the text, as SHOW CREATE TABLE shows one, makes a plain temporary table."""
    if beside_columns(definition, flavor) is not None:
        raise unexpected(
            "binlane.temporary.definition", "CREATE TEMPORARY TABLE with columns, keys and plain options", definition
        )


def beside_columns(definition: str, flavor: Flavor) -> str | None:
    """What makes the text, as SHOW CREATE TABLE shows one, more than a plain temporary table; None if nothing does."""
    tokens: list[Token] = []
    try:
        lex(definition.removeprefix(BEGINNING), Dialect(flavor), tokens)
    except Unreadable:
        return "a text that cannot be read"
    if not definition.startswith(BEGINNING) or not tokens:
        return "another statement"
    # the first token is the table's name
    return _beside_columns(tokens) or called_elsewhere(tokens[1:], flavor)


def _beside_columns(tokens: list[Token]) -> str | None:
    depth, engine = 0, False
    for at, token in enumerate(tokens):
        if token.upper in _NOWHERE or token.text == ";" or token.kind is TokenKind.VARIABLE:
            return token.upper or "a variable, or a second statement"
        if token.kind is TokenKind.SYMBOL and token.text in ("(", ")"):
            depth += 1 if token.text == "(" else -1
            if depth == 1 and token.text == "(" and at != 1:
                return "a second list in parentheses"  # a query may stand in it
            if depth == 1 and token.text == "(" and tokens[at + 1 : at + 2] and tokens[at + 1].upper == "LIKE":
                return "LIKE"
        elif depth == 0 and token.upper in _NOT_OUTSIDE:
            return token.upper
        elif depth == 0 and token.upper in ("ENGINE", "TYPE"):
            named = next((each for each in tokens[at + 1 : at + 3] if each.text != "="), None)
            engine = True
            if named is None or named.text.lower() not in _ENGINES:
                return f"ENGINE {named.text if named else ''}".rstrip()
    # the second token: the first is the table's name
    is_whole = depth == 0 and len(tokens) > 1 and tokens[1].text == "(" and engine
    return None if is_whole else "no list of columns with an engine behind it"
