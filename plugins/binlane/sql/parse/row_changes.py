"""The statements of a body that change rows of one table, and what decides about the rows that each of them finds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from binlane.model import TableKey
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import Token
from binlane.sql.parse.query_blocks import Block, Column, blocks, call_end, conditions, items, plain_column
from binlane.sql.parse.row_effects import (
    FIRING,
    Upsert,
    asked_columns,
    assigned_values,
    found_by_row,
    inserts,
    is_parted,
    row_words,
)

INSERTS: Final = "INSERT"
READS: Final = "SELECT"
INSERTED: Final = "inserted"
SET: Final = "set"
LEFT: Final = "left"
_BRANCHES: Final = frozenset(
    {"THEN", "ELSE", "ELSEIF", "ELSIF", "WHEN", "DO", "LEAVE", "ITERATE", "RETURN", "EXIT", "CONTINUE", "GOTO"}
)
"""Words behind which what follows may be left out."""


class RowChange(NamedTuple):
    """An INSERT, UPDATE or DELETE of a body; an INSERT is REPLACE, too."""

    verb: str
    """INSERT, UPDATE or DELETE; SELECT of a query, which changes nothing."""
    key: TableKey
    begin: int
    """Of its tokens among the body's; of an UPDATE or DELETE, the token of the table's name."""
    end: int
    inserted: Upsert | None = None
    found_by: frozenset[tuple[str, Column]] = frozenset()
    """Of an UPDATE or DELETE: columns of its rows that have values of the row at hand."""
    found_by_either: tuple[Sequence[tuple[str, Column]], ...] = ()
    """Of a DELETE: for each column in which all of its rows have the old value of the row at hand, or its new one,
    both."""
    asked: frozenset[str] = frozenset()
    """Of an UPDATE or DELETE: names that may be columns by which it chooses its rows."""
    assigned: frozenset[str] = frozenset()
    """The columns that an UPDATE sets."""
    condition: Sequence[Token] = ()
    """Of an UPDATE or DELETE: the tokens behind WHERE."""
    is_limited: bool = False
    """It has a LIMIT, which takes other rows if some are gone."""
    is_parted: bool = True
    """Two rows at hand do the same by it, or have to do with different rows of its table."""
    is_constant: bool = False
    """It has no word of the row at hand."""

    def meets(self, other: RowChange) -> str:
        """What ``other``, for another row at hand, may have done to the rows that this change finds (``INSERTED``,
        ``SET`` or ``LEFT``); empty if this one finds the same before and behind it."""
        if self.verb in (INSERTS, READS) or other.verb == READS or (other is self and self.is_parted):
            return ""
        if other.verb == INSERTS:
            return INSERTED
        if other.verb == "UPDATE":
            # an UPDATE by itself is one of ``row_effects.assignments``
            return SET if other is not self and not other.assigned.isdisjoint(self.asked) else ""
        return LEFT if self.is_limited else ""


def row_changes(tokens: Sequence[Token], database: str, variables: Mapping[str, object]) -> Iterator[RowChange]:
    """Every statement of a body that changes rows of one table, and each query of one, or table of a join.
    ``variables``: those of ``types_of_variables``."""
    for place, inserted in inserts(tokens, database):
        yield RowChange(INSERTS, inserted.key, place.begin, place.end, inserted)
    places = {id(token): at for at, token in enumerate(tokens)}
    for block in blocks(tokens, database):
        is_alone = len(block.sources) == 1
        for source in block.sources:
            if source.table is None:
                continue
            if is_alone and block.verb != READS:
                yield _of_block(tokens, block, source.table, places.get(id(source.name), 0), variables)
            else:
                # of a join another table may be the one whose rows are found so
                found_by = frozenset(found_by_row(block, {}, variables)) if is_alone else frozenset()
                yield RowChange(READS, source.table, 0, 0, found_by=found_by)


def _of_block(
    tokens: Sequence[Token], block: Block, key: TableKey, begin: int, variables: Mapping[str, object]
) -> RowChange:
    values = dict(assigned_values(block.clauses.get("SET", ()))) if block.verb == "UPDATE" else {}
    found_by = frozenset(found_by_row(block, values, variables))
    end = next((at for at in range(begin, len(tokens)) if is_symbol(tokens[at], ";")), len(tokens))
    return RowChange(
        block.verb,
        key,
        begin,
        end,
        None,
        found_by,
        tuple(_either(block.clauses.get("WHERE", ()), variables)) if block.verb == "DELETE" else (),
        asked_columns(block),
        frozenset(values),
        block.clauses.get("WHERE", ()),
        "LIMIT" in block.clauses,
        is_parted(block, found_by, variables),
        not row_words((token for clause in block.clauses.values() for token in clause), variables),
    )


def _either(condition: Sequence[Token], variables: Collection[str]) -> Iterator[Sequence[tuple[str, Column]]]:
    """``x IN (OLD.y, NEW.y)``, or ``x = OLD.y OR x = NEW.y`` as the whole condition."""
    found = list[tuple[Column | None, Sequence[Column | None]]]()
    middle = next((at for at, token in enumerate(condition) if token.upper == "OR"), len(condition))
    sides = [_equal(side) for side in (condition[:middle], condition[middle + 1 :])]
    if middle < len(condition) and sides[0][0] == sides[1][0]:
        found.append((sides[0][0], [other for _, other in sides]))
    for part in conditions(condition):
        at = next((at for at, token in enumerate(part) if token.upper == "IN"), len(part))
        # of a long list the lexer has no literals
        is_whole = not any(token.omits for token in part)
        if (
            is_whole
            and 0 < at < len(part) - 1
            and is_symbol(part[at + 1], "(")
            and call_end(part, at + 1) + 1 == len(part)
        ):
            found.append((plain_column(part[:at]), [plain_column(each) for each in items(part[at + 2 : -1])]))
    for column, values in found:
        is_column = column is not None and column.qualifier not in FIRING
        if column is None or not is_column or (not column.qualifier and column.name in variables):
            continue
        of_row = [each for each in values if each is not None and each.qualifier in FIRING]
        if len(of_row) == len(values) and len({each.name for each in of_row}) == 1:
            yield [(column.name, each) for each in of_row]


def _equal(tokens: Sequence[Token]) -> tuple[Column | None, Column | None]:
    """Both names of ``x = y``."""
    middle = next((at for at, token in enumerate(tokens) if is_symbol(token, "=")), len(tokens))
    if not 0 < middle < len(tokens) - 1:
        return None, None
    return plain_column(tokens[:middle]), plain_column(tokens[middle + 1 :])


def branches_before(tokens: Sequence[Token]) -> Sequence[int]:
    """For each token, how many words before it may let a body go another way."""
    found, count = list[int](), 0
    for at, token in enumerate(tokens):
        found.append(count)
        is_loop = token.upper == "LOOP" and at > 0 and tokens[at - 1].upper != "END"
        count += token.upper in _BRANCHES or is_loop
    return (*found, count)
