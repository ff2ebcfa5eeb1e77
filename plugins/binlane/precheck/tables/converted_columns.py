"""Columns whose type an ALTER TABLE changes, on a target of the other family, which converts values by its own rules.

The rows are in no log: each server converts those that it has. MySQL rounds a DATETIME(3) to a DATE and reads '1e3' as
a number where MariaDB cuts and reads 1, and so on. ``ALIKE`` has the changes of type that both make alike; the sweep
``tests/trials/test_other_answers.py`` asks servers of both families.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from binlane.model import TableKey
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import Situation
from binlane.schema.compare import Severity
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.lexer import Token, TokenKind
from binlane.sql.parse.made_table import made_table
from binlane.sql.parse.query_blocks import items

_WORDS: Final[Mapping[str, str]] = {
    "whole": "tinyint smallint mediumint int integer bigint bool boolean serial int1 int2 int3 int4 int8 middleint",
    "exact": "decimal numeric dec fixed",
    "float": "float double real float4 float8",
    "text": "char varchar tinytext text mediumtext longtext nchar nvarchar character national",
    "bytes": "binary varbinary tinyblob blob mediumblob longblob long",
    "moment": "datetime timestamp",
}
KINDS: Final[Mapping[str, str]] = {word: kind for kind, words in _WORDS.items() for word in words.split()}
"""Kinds of types by their names, in lower case; a type without one is its own kind."""
_NUMBERS: Final = ("whole", "exact", "float")
ALIKE: Final = frozenset(
    (
        *((one, other) for one in (*_NUMBERS, "year", "bit") for other in _NUMBERS),
        *((one, "text") for one in (*_NUMBERS, "year", "date", "moment", "time", "enum", "set", "json")),
        *((one, "bytes") for one in (*_NUMBERS, "year", "date", "moment", "time", "text")),
        *(("text", other) for other in ("date", "moment", "enum", "json")),
        *(("date", "moment"), ("moment", "time"), ("enum", "whole"), ("set", "whole")),
    )
)
"""Changes from one kind to another that both families make alike; besides those within a kind."""
_TODO: Final = (
    "the target would convert the rows that it has by its own rules: make the change by a new column and an UPDATE "
    "that is logged as rows, or set allow_unsafe in the channel's file and copy the table again behind the window "
    "(`binlane recopy CHANNEL --table ...`)"
)
_VERBS: Final = frozenset({"ADD", "MODIFY", "CHANGE"})
_FILLERS: Final = frozenset({"COLUMN", "IF", "NOT", "EXISTS"})


def check_converted_columns(situation: Situation) -> Iterator[Finding]:
    """Columns whose type the window changes to one that a target of the other family converts otherwise."""
    is_allowed = situation.channel.apply.allow_unsafe or situation.begun
    if is_allowed or situation.plan.flavor is situation.target.flavor:
        return
    known: dict[TableKey, dict[str, str]] = {}
    for text in situation.every_text:
        key = text.facts.first
        if key is None or "TABLE" not in text.words[:6]:
            continue
        if text.words[:1] == ("CREATE",):
            made = made_table(text.tokens)
            known[key] = {} if made is None else {each.name.lower(): kind_of(each.data_type) for each in made.columns}
        elif text.words[:1] == ("ALTER",):
            kinds = known.setdefault(key, _of_target(situation, key))
            for old, new, word in changed_types(text.tokens):
                before, after = kinds.pop(old, "unknown"), kind_of(word)
                kinds[new] = after
                if old and before != after and (before, after) not in ALIKE:
                    yield _finding(text, key, old, before, word)


def _of_target(situation: Situation, key: TableKey) -> dict[str, str]:
    table = situation.tables.table(key)
    return {} if table is None else {each.name.lower(): kind_of(each.data_type) for each in table.columns}


def kind_of(word: str) -> str:
    """The kind of a type by the first word of its name."""
    return KINDS.get(word.lower(), word.lower())


def changed_types(tokens: Sequence[Token]) -> Iterator[tuple[str, str, str]]:
    """Old name, new name and type of each column that an ALTER TABLE adds, which has no old name, or gives a type anew;
    names in lower case."""
    for item in items(tokens):
        # the first item has ALTER TABLE and the table's name before its verb
        at = next((at for at, token in enumerate(item) if token.upper in _VERBS), None)
        if at is None:
            continue
        rest = [each for each in item[at + 1 :] if each.kind is not TokenKind.WORD or each.upper not in _FILLERS]
        names = [each.text.lower() for each in rest[:3]]
        match item[at].upper, names:
            case "ADD", [name, word, *_]:
                yield "", name, word
            case "MODIFY", [name, word, *_]:
                yield name, name, word
            case "CHANGE", [old, name, word]:
                yield old, name, word


def _finding(text: LoggedText, key: TableKey, column: str, before: str, word: str) -> Finding:
    where = f"{text.where}: {key}.{column}"
    expected = "a change of type that both families make alike"
    return Finding(Severity.FATAL, where, expected, f"{before} to {word.lower()}", _TODO, text.seqno)
