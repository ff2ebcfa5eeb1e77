"""Variables of a trigger that have a value of the row at hand wherever they are used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.parse.row_changes import branches_before
from binlane.sql.parse.row_effects import FIRING

_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)
_COMPARED: Final = ("=", "<", ">", "<=", ">=", "<>", "!=")


def with_row_values(
    tokens: Sequence[Token], variables: Mapping[str, Sequence[Token]], holds: Callable[[str, Sequence[Token]], bool]
) -> Sequence[Token]:
    """The tokens with ``NEW.x`` in place of each variable that one ``SET v = NEW.x``, in front of every branch, has
    given its value, and that stands only behind a comparison or in VALUES from then on.

    ``variables``: with the tokens of their types. ``holds``: whether a variable of a type has each value of a column
    of the row as it is.
    """
    found = {name: value for name, value in _given(tokens) if holds(value[2].text, variables.get(name, ()))}
    # VALUES(x) of an upsert has a column
    if not found or any(token.upper == "DUPLICATE" for token in tokens):
        return tokens
    in_rows = _in_rows(tokens)
    for name, value in list(found.items()):
        begin = next(at for at, token in enumerate(tokens) if token is value[0])
        places = [at for at in _places(tokens, name) if tokens[at - 1].upper not in ("DECLARE", "SET") or at > begin]
        if not all(at > begin and _is_value(tokens, at, in_rows) for at in places):
            del found[name]
    replaced = list[Token]()
    for at, token in enumerate(tokens):
        row_value = found.get(token.text.lower()) if token.kind in _NAMES else None
        is_read = row_value is not None and _is_value(tokens, at, in_rows)
        replaced += row_value if row_value is not None and is_read else [token]
    return replaced


def _given(tokens: Sequence[Token]) -> Iterator[tuple[str, Sequence[Token]]]:
    """The variables of each ``SET v = NEW.x`` that the body reaches, whatever way it goes, with the value's tokens."""
    branches = branches_before(tokens)
    for at in range(1, len(tokens) - 6):
        is_first = is_symbol(tokens[at - 1], ";") or tokens[at - 1].upper == "BEGIN"
        is_set = tokens[at].upper == "SET" and tokens[at + 1].kind in _NAMES and is_symbol(tokens[at + 2], "=", ":=")
        is_of_row = tokens[at + 3].text.lower() in FIRING and is_symbol(tokens[at + 4], ".")
        if is_first and is_set and is_of_row and is_symbol(tokens[at + 6], ";") and not branches[at]:
            yield tokens[at + 1].text.lower(), tokens[at + 3 : at + 6]


def _places(tokens: Sequence[Token], name: str) -> Iterator[int]:
    for at, token in enumerate(tokens):
        if token.kind in _NAMES and token.text.lower() == name and not (at and is_symbol(tokens[at - 1], ".")):
            yield at


def _is_value(tokens: Sequence[Token], at: int, in_rows: Sequence[bool]) -> bool:
    """Whether a name stands where it can be nothing but a value that is read."""
    before, behind = tokens[at - 1] if at else tokens[at], tokens[at + 1] if at + 1 < len(tokens) else None
    if behind is not None and is_symbol(behind, ".", "("):
        return False
    if is_symbol(before, *_COMPARED):
        return True
    return in_rows[at] and is_symbol(before, "(", ",") and behind is not None and is_symbol(behind, ",", ")")


def _in_rows(tokens: Sequence[Token]) -> Sequence[bool]:
    """For each token whether it stands in the parentheses of VALUES itself."""
    found, inside = list[bool](), [False]
    for at, token in enumerate(tokens):
        if is_symbol(token, ")") and len(inside) > 1:
            inside.pop()
        found.append(inside[-1])
        if is_symbol(token, "("):
            inside.append(at > 0 and tokens[at - 1].upper in ("VALUES", "VALUE"))
    return found
