"""What a body leaves that runs once for each row of a statement, where it depends on which row comes first.

Plain INSERTs of different rows, sums and DELETEs by a value leave the same in any order, each by itself. Others do not:
rows that meet on a key (REPLACE, IGNORE, ON DUPLICATE KEY UPDATE), values that are no sums, errors that a handler
takes, and whatever reads, changes or deletes what the body has written for the rows before (``row_changes``).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple

from binlane.model import TableKey
from binlane.rename_rules import lower
from binlane.sql.parse.cursor import RESERVED, is_symbol
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.parse.query_blocks import Block, Column, Source, blocks, call_end, columns_in, items, plain_column
from binlane.sql.parse.row_order import Inserted, inserted_in, written_in

_SETTING: Final = frozenset({"CALL", "FETCH", "GET"})
"""Statements that may set what they name."""
FIRING: Final = ("new", "old")
"""The qualifiers of the row that fires a trigger."""
_EVENT_WORDS: Final = frozenset({"inserting", "updating", "deleting"})
_OF_THE_ROW: Final = _EVENT_WORDS.union(FIRING)
_CONSTANTS: Final = frozenset(
    {"NULL", "TRUE", "FALSE", "(", ")", "-", "NOW", "CURDATE", "UTC_TIMESTAMP", "CURRENT_TIMESTAMP", "CURRENT_DATE"}
)
"""What values consist of, besides literals, that are the same for each row of a statement."""
_NO_COLUMNS: Final = RESERVED | {"TRUE", "FALSE", "CURRENT_TIMESTAMP", "CURRENT_DATE"}
"""Words that are no columns without quotes."""
_CHANGES: Final = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE"})
_INSERT_WORDS: Final = frozenset({"INTO", "IGNORE", "LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED"})
_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)
_ADDED: Final = ("+", "-")
_OF_TERMS: Final = ("+", "-", "*", "/", "%", ",", ".", "(", ")")
_WORDS_OF_CONDITIONS: Final = frozenset(
    {
        "AND",
        "OR",
        "XOR",
        "NOT",
        "IS",
        "LIKE",
        "IN",
        "BETWEEN",
        "REGEXP",
        "RLIKE",
        "CASE",
        "SELECT",
        "COLLATE",
        "INTERVAL",
    }
)
_SET_OPERATORS: Final = frozenset({"UNION", "EXCEPT", "INTERSECT", "MINUS"})
_BEHIND_LIST: Final = frozenset({"FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "FOR", "LOCK", "INTO"})
"""Words that end a select list."""
OR_NULL: Final = frozenset({"IFNULL", "COALESCE", "NVL"})
"""Functions that have another value in place of NULL."""
PLAIN: Final = "INSERT"
"""What is said of an INSERT whose rows meet on no key without an error."""
IGNORING: Final = "INSERT IGNORE"
_ROUTINES: Final = ("PROCEDURE", "FUNCTION")
_MODES: Final = frozenset({"IN", "OUT", "INOUT"})


class Upsert(NamedTuple):
    """An INSERT or REPLACE. All but a plain one have rows that may meet on a key."""

    what: str
    key: TableKey
    columns: tuple[str, ...]
    """In lower case; empty: all, as the table has them."""
    values: tuple[Sequence[Token], ...] | None
    """Of its one row; None for any other form."""
    updates: tuple[tuple[str, Sequence[Token]], ...]
    """What ON DUPLICATE KEY UPDATE sets."""
    selected: tuple[Sequence[Token], ...] = ()
    """The select list, if its rows are those of one SELECT."""


class Change(Enum):
    """What a value does to its column. Several of one kind, but for ``OTHER``, leave the same in any order."""

    SUM = auto()
    """Something is added to the column, or subtracted from it."""
    GREATEST = auto()
    LEAST = auto()
    OTHER = auto()


_COMPARED: Final = {"GREATEST": Change.GREATEST, "LEAST": Change.LEAST}


class Assignment(NamedTuple):
    """A value that an UPDATE gives a column of rows that several rows at hand may find."""

    table: TableKey | None
    """None if the UPDATE has several."""
    column: str
    change: Change
    is_fired: bool
    """The value is another one for each row at hand, or decides about the rows that the next one finds."""
    read: frozenset[str]
    """Names in the value that may be columns of the table, in lower case, the assigned column left out."""
    added: tuple[Column, ...]
    """Names in what is added to the column, or compared with it, beside those of the firing row."""
    value: Sequence[Token]
    found_by: frozenset[tuple[str, Column]]
    """Columns that have the values of the firing row's, by which the UPDATE finds its rows, before and behind it."""
    constant: tuple[str, ...]
    """The text of a value that is the same wherever it stands in the body; empty if that cannot be said."""


def upserts(tokens: Sequence[Token], database: str) -> Iterator[Upsert]:
    """The INSERTs and REPLACEs of a body whose rows may meet on a key."""
    return (found for _, found in inserts(tokens, database) if found.what != PLAIN)


def inserts(tokens: Sequence[Token], database: str) -> Iterator[tuple[Inserted, Upsert]]:
    """All INSERTs and REPLACEs of a body, with their places."""
    for each in inserted_in(tokens, database):
        yield each, _upsert(tokens[each.begin : each.end], each.key)


def _upsert(tokens: Sequence[Token], key: TableKey) -> Upsert:
    words = [token.upper for token in tokens]
    begin = next((at for at in range(1, len(words)) if words[at] not in _INSERT_WORDS), len(words))
    doubles = next((at for at in range(len(words)) if words[at : at + 3] == ["ON", "DUPLICATE", "KEY"]), None)
    what = "REPLACE" if words[0] == "REPLACE" else IGNORING if "IGNORE" in words[:begin] else PLAIN
    if doubles is not None:
        what = "ON DUPLICATE KEY UPDATE"
    at = begin + (3 if begin + 1 < len(tokens) and is_symbol(tokens[begin + 1], ".") else 1)
    behind = doubles if doubles is not None else len(tokens)
    columns, values = row_of(tokens[at:behind])
    updates = () if doubles is None else tuple(_updates(tokens[at:behind], tokens[doubles + 4 :]))
    return Upsert(
        what, key, columns, values, updates, () if values is not None else tuple(_selected(tokens[at:behind]))
    )


def _updates(row: Sequence[Token], updates: Sequence[Token]) -> Iterator[tuple[str, Sequence[Token]]]:
    """What ON DUPLICATE KEY UPDATE sets, with ``VALUES(x)`` for a column by the row's own name: of ``VALUES (1, 2) AS
    new`` that is ``new.x``. ``row``: the tokens in front of it."""
    alias = row[-1].text.lower() if len(row) > 1 and row[-2].upper == "AS" and row[-1].kind in _NAMES else ""
    for name, value in assigned_values(updates):
        replaced, at = list[Token](), 0
        while at < len(value):
            is_qualified = at + 2 < len(value) and is_symbol(value[at + 1], ".") and not is_symbol(value[at], ".")
            if alias and is_qualified and value[at].text.lower() == alias:
                opened, closed = (Token(TokenKind.SYMBOL, text) for text in "()")
                replaced += (Token(TokenKind.WORD, "VALUES", "VALUES"), opened, value[at + 2], closed)
                at += 3
            else:
                replaced.append(value[at])
                at += 1
        yield name, replaced


def _selected(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The select list of an INSERT, by the tokens behind its table, if each of its elements is one column."""
    at = call_end(tokens, 0) + 1 if tokens and is_symbol(tokens[0], "(") else 0
    if at >= len(tokens) or tokens[at].upper != "SELECT":
        return
    end, begin = len(tokens), at + 1
    while at < len(tokens):
        if tokens[at].upper in _SET_OPERATORS:
            return
        if tokens[at].upper in _BEHIND_LIST:
            end = min(end, at)
        at = (call_end(tokens, at) if is_symbol(tokens[at], "(") else at) + 1
    # of all columns nobody knows the number
    listed = list(items(tokens[begin:end]))
    if not any(token.omits for token in tokens[begin - 1 : end]) and not any(
        is_symbol(each[-1], "*") for each in listed if each
    ):
        yield from listed


def row_of(tokens: Sequence[Token]) -> tuple[tuple[str, ...], tuple[Sequence[Token], ...] | None]:
    """Columns and values of an INSERT with one row, by the tokens behind its table; no values for any other form, and
    where the lexer has left rows or values out."""
    columns, at = list[str](), 0
    if tokens and tokens[0].upper == "SET":
        assigned = list(assigned_values(tokens[1:]))
        return tuple(name for name, _ in assigned), tuple(value for _, value in assigned)
    if tokens and is_symbol(tokens[0], "("):
        end = call_end(tokens, 0)
        columns = [each[-1].text.lower() for each in items(tokens[1:end]) if each]
        at = end + 1
    if at + 1 >= len(tokens) or tokens[at].upper not in ("VALUES", "VALUE") or not is_symbol(tokens[at + 1], "("):
        return tuple(columns), None
    end = call_end(tokens, at + 1)
    if (end + 1 < len(tokens) and is_symbol(tokens[end + 1], ",")) or any(token.omits for token in tokens[at : at + 2]):
        return tuple(columns), None
    return tuple(columns), tuple(items(tokens[at + 2 : end]))


def assigned_values(tokens: Sequence[Token]) -> Iterator[tuple[str, Sequence[Token]]]:
    """What the list of a SET gives columns, by their names."""
    for item in items(tokens):
        middle = next((at for at, token in enumerate(item) if is_symbol(token, "=", ":=")), len(item))
        column = plain_column(item[:middle]) if middle else None
        if column is not None:
            yield column.name, item[middle + 1 :]


def assignments(
    tokens: Sequence[Token], database: str, *, is_trigger: bool, variables: Mapping[str, object] | None = None
) -> Iterator[Assignment]:
    """What the UPDATEs of a body set. The row at hand has the names NEW and OLD in a trigger, and those of parameters
    in a routine; both have variables for what they have made of it. ``variables``: those of ``types_of_variables``."""
    variables = types_of_variables(tokens) if variables is None else variables
    for block in blocks(tokens, database):
        if block.verb != "UPDATE" or not block.sources:
            continue
        is_alone = len(block.sources) == 1
        values = list(assigned_values(block.clauses.get("SET", ())))
        # of a join another table may be the one whose rows are found so
        found_by = frozenset(found_by_row(block, dict(values), variables)) if is_alone else frozenset()
        # the next row finds other rows by what this one sets, and does something else to them
        is_choosing = not asked_columns(block).isdisjoint(dict(values)) and not is_parted(block, found_by, variables)
        for name, value in values:
            names = [each for each in columns_in(value) if each.qualifier or each.name.upper() not in _NO_COLUMNS]
            is_felt = is_choosing and bool(names)
            is_fired = any(each.qualifier in FIRING or each.name in variables or not is_trigger for each in names)
            others = (each for each in names if each.qualifier not in FIRING)
            yield Assignment(
                block.sources[0].table if is_alone else None,
                name,
                # a variable hides the column of its name
                Change.OTHER if is_felt or name in variables else change_of(name, value),
                is_fired or is_felt,
                frozenset(each.name for each in others) - {name},
                tuple(each for each in columns_in(added(name, value) or ()) if each.qualifier not in FIRING),
                value,
                found_by,
                constant_of(value),
            )


def constant_of(value: Sequence[Token]) -> tuple[str, ...]:
    """The text of a value that is the same for each row of a statement, wherever it stands; empty for any other."""
    texts = tuple(_constant_text(token) for token in value)
    return texts if all(texts) else ()


def _constant_text(token: Token) -> str:
    if token.kind is TokenKind.NUMBER:
        return token.text
    if token.kind is TokenKind.STRING:
        return token.literal
    text = token.upper or token.text
    return text if text in _CONSTANTS else ""


def asked_columns(block: Block) -> frozenset[str]:
    """Names of an UPDATE or DELETE that may be columns by which it chooses its rows."""
    clauses = [block.clauses.get("WHERE", ())]
    if "LIMIT" in block.clauses:
        clauses.append(block.clauses.get("ORDER", ()))
    names = (column for clause in clauses for column in columns_in(clause))
    return frozenset(
        each.name
        for each in names
        if each.qualifier not in FIRING and (each.qualifier or each.name.upper() not in _NO_COLUMNS)
    )


def is_parted(block: Block, found_by: Iterable[tuple[str, Column]], variables: Collection[str]) -> bool:
    """Whether two rows at hand do the same by a statement, or have to do with different rows of its table: it has no
    word of theirs but the values by which it finds its rows."""
    return row_words((token for clause in block.clauses.values() for token in clause), variables) <= {
        value for _, value in found_by
    }


def row_words(tokens: Iterable[Token], variables: Collection[str]) -> frozenset[Column]:
    """What a text has of the row at hand: its columns, variables, which may have been made of it, and the words for
    the event that fires a trigger."""
    tokens = list(tokens)
    found = {
        each
        for each in columns_in(tokens)
        if each.qualifier in FIRING or (not each.qualifier and (each.name in variables or each.name in _OF_THE_ROW))
    }
    return frozenset(found | {Column("@", each.text.lower()) for each in tokens if each.kind is TokenKind.VARIABLE})


def found_by_row(
    block: Block, values: Mapping[str, Sequence[Token]], variables: Collection[str]
) -> Iterator[tuple[str, Column]]:
    """The columns that have values of the row at hand, by which an UPDATE or DELETE finds its rows, before and behind
    it. ``values``: what an UPDATE sets, by column."""
    for each in block.equalities:
        column, other = each.column, each.other
        if not isinstance(other, Column) or other.qualifier not in FIRING or column.qualifier in FIRING:
            continue
        if not column.qualifier and column.name in variables:
            continue
        behind = plain_column(values[column.name]) if column.name in values else other
        # the next rows may find what has got another value
        if behind is not None and behind.qualifier in FIRING and behind.name == other.name:
            yield column.name, other


def has_row_beside(tokens: Sequence[Token], tables: Collection[TableKey], known: Collection[Column] = ()) -> bool:
    """Whether a trigger's body does the same to some tables for each row at hand: only changes of the row itself,
    and of other tables, have a word of the row, or a variable, which may have been made of it. ``tables``: none if an
    UPDATE has several; then nothing names the row. ``known``: values of the row that may be named, too."""
    own_names = {lower(each.table) for each in tables}
    words = [token.upper for token in tokens]
    begin = next((at + 2 for at in range(len(words)) if words[at : at + 2] == ["EACH", "ROW"]), 0)
    for end in (*(at for at in range(begin, len(tokens)) if is_symbol(tokens[at], ";")), len(tokens)):
        statement = tokens[begin:end]
        begin = end + 1
        names = {lower(token.text) for token in statement if token.kind in _NAMES}
        has_variable = any(token.kind is TokenKind.VARIABLE for token in statement)
        words_of_row = {each for each in columns_in(statement) if each.qualifier in FIRING}
        is_known = words_of_row <= set(known) and names.isdisjoint(_EVENT_WORDS)
        if not has_variable and (names.isdisjoint(_OF_THE_ROW) or (known and is_known)):
            continue
        at = next((at for at, token in enumerate(statement) if token.upper != "BEGIN"), 0)
        # SET NEW.v = 1 leaves nothing for the rows behind
        is_own = statement[at].upper == "SET" and all(
            len(item) > 1 and item[0].text.lower() in FIRING and is_symbol(item[1], ".")
            for item in items(statement[at + 1 :])
        )
        is_beside = is_own or statement[at].upper in _CHANGES
        if not own_names or not is_beside or not own_names.isdisjoint(names):
            return False
    return True


def types_of_variables(tokens: Sequence[Token], parameters: Sequence[Token] = ()) -> Mapping[str, Sequence[Token]]:
    """The variables and parameters of a body, in lower case, with the tokens from their types on; without any for one
    that is declared several times. ``parameters``: those that stand in no head of the body."""
    every = [*_declared(tokens), *_parameters(items(parameters)), *_parameters(_in_head(tokens))]
    found = dict[str, Sequence[Token]]()
    for name, behind in every:
        found[name] = () if name in found else behind
    return found


def _in_head(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The parameters in the head of a routine."""
    words = [token.upper for token in tokens]
    at = next((at for at, word in enumerate(words) if word in _ROUTINES), len(words)) if words[:1] == ["CREATE"] else 0
    begin = next((each for each in range(at, len(tokens)) if at and is_symbol(tokens[each], "(")), len(tokens))
    if begin < len(tokens):
        yield from items(tokens[begin + 1 : call_end(tokens, begin)])


def _parameters(every: Iterator[Sequence[Token]]) -> Iterator[tuple[str, Sequence[Token]]]:
    for item in every:
        words = [token for token in item if token.upper not in _MODES]
        if words:
            yield words[0].text.lower(), words[1:]


def _declared(tokens: Sequence[Token]) -> Iterator[tuple[str, Sequence[Token]]]:
    """The variables that a body declares."""
    for at, token in enumerate(tokens):
        names, behind = list[str](), at + 1
        while token.upper == "DECLARE" and behind < len(tokens) and tokens[behind].kind in _NAMES:
            names.append(tokens[behind].text.lower())
            behind += 2
            if not (behind - 1 < len(tokens) and is_symbol(tokens[behind - 1], ",")):
                break
        if names:
            end = next((each for each in range(behind, len(tokens)) if is_symbol(tokens[each], ";")), len(tokens))
            yield from ((name, tokens[behind - 1 : end]) for name in names)


def set_of_row(tokens: Sequence[Token]) -> Iterator[str]:
    """The columns of the row that a trigger sets: ``NEW.a = ...``."""
    for at in range(len(tokens) - 3):
        is_qualified = tokens[at].text.lower() == FIRING[0] and is_symbol(tokens[at + 1], ".")
        if is_qualified and is_symbol(tokens[at + 3], "=", ":="):
            yield tokens[at + 2].text


def may_set_of_row(tokens: Sequence[Token]) -> frozenset[str] | None:
    """The columns of the row that a trigger may set, in lower case; None: any, by an argument of a procedure, say."""
    places = (at + 1 for at, token in enumerate(tokens) if token.upper == "INTO")
    into = itertools.chain.from_iterable(_targets(tokens, at) for at in places)
    if any(each.text.lower() == FIRING[0] for each in into) or any(token.upper in _SETTING for token in tokens):
        return None
    return frozenset(map(str.lower, set_of_row(tokens)))


def sets_constants(tokens: Sequence[Token]) -> bool:
    """Whether a trigger does nothing but give columns of its row values that are the same for each row:
    ``SET NEW.a = NOW(), NEW.b = 1``."""
    is_block = bool(tokens) and tokens[0].upper == "BEGIN" and tokens[-1].upper == "END"
    inner = tokens[1:-1] if is_block else tokens
    ends = [at for at, token in enumerate(inner) if is_symbol(token, ";")]
    starts = [0, *(at + 1 for at in ends)]
    statements = [inner[begin:end] for begin, end in zip(starts, [*ends, len(inner)], strict=True) if begin < end]
    return all(_sets_constant(item) for each in statements for item in items(each[1:]))


def _sets_constant(item: Sequence[Token]) -> bool:
    is_of_row = len(item) > 4 and item[0].text.lower() == FIRING[0] and is_symbol(item[1], ".")
    # literals need no text here
    values = (each.kind in (TokenKind.NUMBER, TokenKind.STRING) or bool(_constant_text(each)) for each in item[4:])
    return is_of_row and is_symbol(item[3], "=", ":=") and all(values)


def _targets(tokens: Sequence[Token], at: int) -> Iterator[Token]:
    """The first token of each name in a list that begins at ``at``."""
    while at < len(tokens):
        yield tokens[at]
        while at + 1 < len(tokens) and is_symbol(tokens[at + 1], "."):
            at += 2
        if not (at + 1 < len(tokens) and is_symbol(tokens[at + 1], ",")):
            return
        at += 2


def change_of(column: str, value: Sequence[Token]) -> Change:
    """What a value does to its column, by its form."""
    rest = added(column, value)
    if rest is None or any(each.qualifier not in FIRING for each in columns_in(rest) if each.name == column):
        return Change.OTHER
    plain = (
        token.kind in (TokenKind.NUMBER, *_NAMES) if token.kind is not TokenKind.SYMBOL else token.text in _OF_TERMS
        for token in rest
    )
    if not all(plain) or any(token.upper in _WORDS_OF_CONDITIONS or token.upper == "DIV" for token in rest):
        return Change.OTHER
    return change_by(value)


def change_by(value: Sequence[Token]) -> Change:
    """What a value does to its column, if it is of one of the kinds whose order does not show."""
    return _COMPARED.get(value[0].upper, Change.SUM)


def added(column: str, value: Sequence[Token]) -> Sequence[Token] | None:
    """What is added to the column at the beginning of a value, or compared with it by GREATEST or LEAST; None if it
    does not begin so."""
    if value and value[0].upper in _COMPARED and len(value) > 1 and call_end(value, 1) == len(value) - 1:
        first, *others = items(value[2:-1])
        named = plain_column(first)
        is_first = named is not None and named.name == column and named.qualifier not in FIRING
        return [token for each in others for token in each] if is_first else None
    if value and value[0].upper in OR_NULL and len(value) > 1 and is_symbol(value[1], "("):
        end = call_end(value, 1)
        inner = list(items(value[2:end]))
        named = plain_column(inner[0]) if inner else None
        head = end + 1 if len(inner) == 2 and inner[1][0].kind is TokenKind.NUMBER else 0
    else:
        head = 3 if len(value) > 2 and is_symbol(value[1], ".") else 1
        named = plain_column(value[:head])
    if not head or named is None or named.name != column or named.qualifier in FIRING or len(value) <= head:
        return None
    return value[head:] if is_symbol(value[head], *_ADDED) else None


def reads(tokens: Sequence[Token], database: str) -> frozenset[TableKey]:
    """The tables that a body reads, not only to find the rows that it changes."""
    found = set[TableKey]()
    for block in blocks(tokens, database):
        if block.verb == "SELECT" or len(block.sources) > 1:
            found.update(each.table for each in block.sources if each.table is not None)
    return frozenset(found)


def writes(tokens: Sequence[Token], database: str) -> frozenset[TableKey]:
    """The tables that a body changes; of a join those that its text names as changed, or all where it names none."""
    changing = (block for block in blocks(tokens, database) if block.verb in ("UPDATE", "DELETE"))
    changed = (each.table for block in changing for each in _changed_in(block) if each.table is not None)
    return frozenset(written_in(tokens, database)).union(changed)


def _changed_in(block: Block) -> Collection[Source]:
    """Of an UPDATE's tables those in front of the columns that it sets, of a DELETE's those in front of FROM or
    USING."""
    if block.verb == "UPDATE":
        named = [
            each[0].text if is_symbol(each[1], ".") else "" for each in items(block.clauses.get("SET", ())) if each[1:]
        ]
    else:
        targets = items(block.clauses["FROM" if "USING" in block.clauses else "DELETE"])
        names = ([each.text for each in target if each.kind in _NAMES] for target in targets)
        named = [each[-1] for each in names if each]
    # a name that no table of the list has is not understood
    is_known = named and all(any(source.may_be(name.lower()) for source in block.sources) for name in named)
    changed = [source for source in block.sources if any(source.may_be(name.lower()) for name in named)]
    return changed if is_known else block.sources


def finds(tokens: Sequence[Token], database: str) -> frozenset[TableKey]:
    """The tables of which a body finds rows that it changes: by UPDATE and DELETE."""
    changing = (block for block in blocks(tokens, database) if block.verb in ("UPDATE", "DELETE"))
    return frozenset(each.table for block in changing for each in block.sources if each.table is not None)
