"""``[collations]``: replacements for the source's collations that the target lacks.

MariaDB does not have MySQL's default, utf8mb4_0900_ai_ci. If a channel names a replacement, it is used wherever a
statement names the collation, behind a character set whose default it was, and in the session's collation variables.
Rows are copied as bytes and need no collation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import Final

from binlane.binlog.types.collations import UTF8MB4_GENERAL_CI, charset_name, collation_id, collation_name
from binlane.binlog.variables import value_collation, with_collation
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SessionContext
from binlane.schema.normalize import RENAMED_COLLATIONS
from binlane.schema.normalize import charset_name as full_charset
from binlane.schema.normalize import collation_name as full_name
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.lexer import TokenKind, Unreadable
from binlane.sql.words import StatementWords, words_of

_DEEPEST: Final = {"TABLE": 1, "DATABASE": 0, "SCHEMA": 0}
"""Depth of parentheses at which COLLATE may follow a character set: a column's or the whole object's. Deeper in, the
character set belongs to CAST or CONVERT, which take no COLLATE."""
_RETURNED: Final = 8
"""Most words of the type behind RETURNS."""


@dataclass(frozen=True)
class Collations:
    """The ``[collations]`` of a channel; without rules all collations stay."""

    rules: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rules)

    @cached_property
    def given(self) -> Mapping[str, str]:
        """Source collation -> target collation, spelled as ``schema.normalize`` does."""
        return {full_name(old) or old: full_name(new) or new for old, new in self.rules}

    def statement(
        self, sql: bytes, context: SessionContext, source: Flavor, target: Flavor
    ) -> tuple[bytes, SessionContext]:
        """A statement of a ``source`` server and its session, with the target's collations."""
        names_croatian = source is not target and b"_croatian_" in sql.lower()
        chosen = self._with_renamed(source) if names_croatian else self
        if not chosen.rules:
            return sql, context
        return chosen._text(sql, context, source), chosen._session(context, source, target)

    def _with_renamed(self, source: Flavor) -> Collations:
        """With the names of the other family for collations of a ``source`` server that it calls otherwise."""
        renamed = RENAMED_COLLATIONS.items()
        pairs = renamed if source is Flavor.MYSQL else [(theirs, ours) for ours, theirs in renamed]
        return Collations((*pairs, *self.rules))

    def _session(self, context: SessionContext, source: Flavor, target: Flavor) -> SessionContext:
        def number(known: int | None) -> int | None:
            given = None if known is None else self.given.get(collation_name(known, source) or "")
            found = None if given is None else collation_id(given, target)
            return known if found is None else found

        def value(of_variable: str) -> str:
            given = self.given.get(value_collation(of_variable) or "")
            return of_variable if given is None else with_collation(of_variable, given)

        pairs = tuple((charset, number(chosen) or chosen) for charset, chosen in context.character_set_collations)
        return replace(
            context,
            character_set_collations=pairs,
            user_variables=tuple((name, value(each)) for name, each in context.user_variables),
            collation_connection=number(context.collation_connection),
            collation_server=number(context.collation_server),
            collation_database=number(context.collation_database),
            default_collation_for_utf8mb4=number(context.default_collation_for_utf8mb4),
        )

    def _text(self, sql: bytes, context: SessionContext, flavor: Flavor) -> bytes:
        if not _may_name(sql):
            return sql
        try:
            words = words_of(sql, context, flavor)
        except Unreadable:
            return sql
        edits = dict(self._named(words))
        edits |= {number: edit for number, edit in self._added(words, context, flavor) if number not in edits}
        return words.replaced(edits)

    def _named(self, words: StatementWords) -> Iterator[tuple[int, bytes]]:
        """Collations behind COLLATE that a rule replaces, with their names on the target."""
        for number, token in enumerate(words.tokens):
            if token.upper == "COLLATE":
                at = words.value(number)
                given = None if at is None else self.given.get(full_name(words.text(at).lower()) or "")
                if at is not None and given is not None:
                    yield at, given.encode()

    def _added(self, words: StatementWords, context: SessionContext, flavor: Flavor) -> Iterator[tuple[int, bytes]]:
        """Character sets without COLLATE whose default a rule replaces, with COLLATE added behind them."""
        defaults = self._defaults(context, flavor)
        if not defaults:
            return
        for number in _charsets(words):
            at = words.value(number)
            given = None if at is None else defaults.get(full_charset(words.text(at).lower()) or "")
            if at is not None and given is not None and not words.has_collation(number):
                yield at, words.bytes_of(at) + b" COLLATE " + given.encode()

    def _defaults(self, context: SessionContext, flavor: Flavor) -> Mapping[str, str]:
        """Character set -> target collation, where a rule replaces the set's default collation in that session."""
        pairs = context.character_set_collations
        if context.default_collation_for_utf8mb4 is not None:
            pairs = ((UTF8MB4_GENERAL_CI, context.default_collation_for_utf8mb4),)
        names = (collation_name(chosen, flavor) or "" for _, chosen in pairs)
        return {charset_name(name): self.given[name] for name in names if name in self.given}


AS_NAMED: Final = Collations()
"""The rules of a channel without ``[collations]``."""


def _may_name(sql: bytes) -> bool:
    upper = sql.upper()
    return b"COLLATE" in upper or b"CHARSET" in upper or b"CHARACTER" in upper


def _charsets(words: StatementWords) -> Iterator[int]:
    """Indexes of CHARSET, and of SET in CHARACTER SET, where COLLATE may follow the character set."""
    tokens = words.tokens
    verb, kind = words.verb_and_kind()
    depths = [0, *accumulate(is_symbol(token, "(") - is_symbol(token, ")") for token in tokens)]
    if verb in ("CREATE", "ALTER") and kind in _DEEPEST:
        found: Sequence[int] = [at for at in range(len(tokens)) if depths[at] <= _DEEPEST[kind]]
    elif verb == "CREATE" and kind == "FUNCTION":
        returns = next((at for at, token in enumerate(tokens) if token.upper == "RETURNS" and not depths[at]), None)
        found = () if returns is None else range(returns, min(returns + _RETURNED, len(tokens)))
    else:
        return
    for at in found:
        is_set = tokens[at].upper == "SET" and at > 0 and tokens[at - 1].upper == "CHARACTER"
        if tokens[at].kind is TokenKind.WORD and (tokens[at].upper == "CHARSET" or is_set):
            yield at
