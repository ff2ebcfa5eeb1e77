"""The functions that the definition of a table calls: in defaults, generated columns, checks, keys and partitions.

MariaDB takes a function of a library there (in a default, or in a virtual column), and calls it for rows of whoever
writes or reads them, as the server's own account. A stored function is taken by no server. So what the family has not
built in is one of a library, or one of a later version than binlane knows.
(``Item_udf_func::check_vcol_func_processor`` of MariaDB; MySQL refuses both, error 3770 and its like.)

The INTERVAL of ``PARTITION BY SYSTEM_TIME`` is any expression, and MariaDB computes it while it parses the text, in
whichever session that is, also if it only prepares it (``partition_info::vers_set_interval``): literals alone are no
risk there, and servers show nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from binlane.model import Flavor
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.functions import BEFORE_PARENTHESIS, BUILTIN, LATER, OWN_SCHEMAS
from binlane.sql.parse.lexer import Token, TokenKind

_TYPES: Final = """
BIT ENUM FIXED FLOAT4 FLOAT8 LONG NATIONAL NCHAR NUMBER NVARCHAR RAW TEXT VARCHAR2 VARCHARACTER VARYING VECTOR
"""
_CLAUSES: Final = """
ADD ALWAYS AUTO BTREE COLUMN COLUMNS DEFAULT FULLTEXT HASH INTO LINEAR LIST MAXVALUE NULL PERIOD RANGE RTREE SPATIAL
SYSTEM_TIME THAN
"""
_UNITS: Final = "SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR"
_INTERVALS: Final = frozenset(
    f"{_UNITS} MICROSECOND SECOND_MICROSECOND MINUTE_MICROSECOND MINUTE_SECOND HOUR_MICROSECOND HOUR_SECOND "
    "HOUR_MINUTE DAY_MICROSECOND DAY_SECOND DAY_MINUTE DAY_HOUR YEAR_MONTH".split()
)
_NO_CALL: Final = BEFORE_PARENTHESIS | frozenset(f"{_TYPES} {_CLAUSES} {_UNITS}".split())
"""Words in front of a parenthesis that are no calls."""
_KEYS: Final = frozenset({"KEY", "INDEX", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR"})
_OBJECTS: Final = _KEYS | {"TABLE", "EXISTS", "REFERENCES", "PARTITION", "SUBPARTITION"}
"""Words behind which the name of a table, key or partition stands. None of them is an operator in front of a call."""
_KEY_TYPES: Final = frozenset({"BTREE", "HASH", "RTREE"})
_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)
_QUERIES: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})
"""First words of a query."""
_SEQUENCE_CALLS: Final = frozenset({"NEXTVAL", "LASTVAL", "SETVAL"})


def called_elsewhere(tokens: Sequence[Token], flavor: Flavor) -> str | None:
    """The first function in a CREATE or ALTER TABLE that servers of the family have not built in, as the text names it,
    with ``()``, or what ``computed_interval`` finds; None if there is none."""
    if (interval := computed_interval(tokens)) is not None:
        return interval
    return next((f"{tokens[at].text}()" for at in calls_elsewhere(tokens, flavor)), None)


def computed_interval(tokens: Sequence[Token]) -> str | None:
    """What the INTERVAL of PARTITION BY SYSTEM_TIME has besides literals, for messages; None if there is nothing."""
    for at, token in enumerate(tokens):
        if token.upper != "INTERVAL" or [each.upper for each in tokens[max(at - 2, 0) : at]] != ["BY", "SYSTEM_TIME"]:
            continue
        words = (n for n in range(at + 1, len(tokens)) if tokens[n].kind in (*_NAMES, TokenKind.VARIABLE))
        unit = next(words, None)
        if unit is None:
            return "no unit in the INTERVAL of PARTITION BY SYSTEM_TIME"
        before = tokens[unit - 1]
        is_behind_value = before.kind in (TokenKind.NUMBER, TokenKind.STRING) or is_symbol(before, ")")
        if not (is_behind_value and tokens[unit].upper in _INTERVALS):
            return f"{tokens[unit].text} in the INTERVAL of PARTITION BY SYSTEM_TIME"
    return None


def calls_elsewhere(tokens: Sequence[Token], flavor: Flavor) -> Iterator[int]:
    """The places of the names of all of these functions."""
    lists = list[bool]()
    for at, token in enumerate(tokens):
        if is_symbol(token, ")") and lists:
            lists.pop()
        if not is_symbol(token, "("):
            continue
        is_named = at > 0 and tokens[at - 1].kind in _NAMES and not _is_known(tokens, at - 1, flavor)
        if is_named and not (lists and lists[-1] and _is_length(tokens, at)):
            yield at - 1
        lists.append(_is_list_of_columns(tokens, at))


def in_no_copy(tokens: Sequence[Token]) -> str | None:
    """What the columns of a CREATE TEMPORARY TABLE have by its text, as an error names it, that no server of either
    family can repeat: a sequence, or a function that is built in nowhere; None if there is neither."""
    columns = _columns_of(tokens)
    for at, token in enumerate(columns):
        behind = columns[at + 1 : at + 2]
        is_call = token.upper in _SEQUENCE_CALLS and behind and is_symbol(behind[0], "(")
        if is_call or (token.upper in ("NEXT", "PREVIOUS") and behind and behind[0].upper == "VALUE"):
            return f"a sequence, by {token.upper}"
    called = {flavor: called_elsewhere(columns, flavor) for flavor in Flavor}
    return called[Flavor.MARIADB] if all(called.values()) else None


def _columns_of(tokens: Sequence[Token]) -> Sequence[Token]:
    """The list of columns and keys, from its parenthesis on."""
    begin = next((at + 1 for at, token in enumerate(tokens) if token.upper == "TABLE"), len(tokens))
    begin += 3 if [token.upper for token in tokens[begin : begin + 3]] == ["IF", "NOT", "EXISTS"] else 0
    begin += 3 if len(tokens) > begin + 1 and is_symbol(tokens[begin + 1], ".") else 1
    if tokens[begin + 1 : begin + 2] and (tokens[begin + 1].upper in _QUERIES or is_symbol(tokens[begin + 1], "(")):
        return ()
    depth = 0
    for at in range(begin, len(tokens)):
        depth += is_symbol(tokens[at], "(") - is_symbol(tokens[at], ")")
        if depth == 0:
            return tokens[begin:at]
    return ()


def _is_known(tokens: Sequence[Token], at: int, flavor: Flavor) -> bool:
    """Whether what stands in front of a parenthesis is no call, or one of a function that is built in."""
    named = tokens[at]
    begin = at
    while begin > 1 and is_symbol(tokens[begin - 1], "."):
        begin -= 2
    if begin > 0 and tokens[begin - 1].upper in _OBJECTS:
        return True
    if begin > 1 and tokens[begin - 1].upper == "FOR" and tokens[begin - 2].upper == "PERIOD":
        return True
    if begin < at:
        # as MariaDB shows them in sql_mode=ORACLE, and takes them in each: mariadb_schema.concat("a",'x')
        is_own = flavor is Flavor.MARIADB and begin == at - 2 and tokens[begin].text.lower() in OWN_SCHEMAS
        return is_own and _is_built_in(named, flavor)
    if named.upper == "OF" and at > 0 and tokens[at - 1].upper == "MEMBER":
        # MySQL's operator for JSON arrays; MariaDB has the word for names
        return True
    return named.upper in _NO_CALL or _is_built_in(named, flavor)


def _is_built_in(name: Token, flavor: Flavor) -> bool:
    return name.text.upper() in BUILTIN[flavor] or name.text.upper() in LATER[flavor]


def _is_list_of_columns(tokens: Sequence[Token], at: int) -> bool:
    """Whether the parenthesis at ``at`` has the columns of a key, some of them with a length."""
    before = [token.upper for token in tokens[max(at - 3, 0) : at]]
    if before[-1:] and before[-1] in _KEY_TYPES:
        return before[-2:-1] in (["USING"], ["TYPE"])
    return not _KEYS.isdisjoint(before[-2:])


def _is_length(tokens: Sequence[Token], at: int) -> bool:
    """Whether the parenthesis at ``at``, behind a column's name, has a number alone."""
    inside = tokens[at + 1 : at + 3]
    return len(inside) == 2 and inside[0].kind is TokenKind.NUMBER and is_symbol(inside[1], ")")
