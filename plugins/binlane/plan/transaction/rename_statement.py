"""``[rename]`` over statements: the default database and the names in the text, or why they cannot be renamed exactly.

A name is changed where it certainly denotes a database: in front of a name's first dot, or behind CREATE, ALTER and
DROP DATABASE. Only its bytes change. If the same name also stands elsewhere, it may be a table's or an alias, so the
statement is refused. The new text is parsed again and must give the same facts with the new names (docs/renames.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SessionContext
from binlane.plan.transaction.parts import StatementPart
from binlane.shards.renaming import Renaming
from binlane.sql.parse.cursor import is_symbol
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.sql.parse.lexer import Token, TokenKind, Unreadable
from binlane.sql.words import StatementWords, words_of

Read = Callable[[bytes, SessionContext], StatementFacts]
"""Reads the facts of a session's statement."""

_NAMES: Final = (TokenKind.WORD, TokenKind.NAME)
_DATABASE: Final = ("DATABASE", "SCHEMA")
_ROUTINE: Final = frozenset({"(", "AS", "IS", "BEGIN", "RETURN", "RETURNS"})
"""Routines of sql_mode ORACLE need no parentheses."""
_BODIES: Final[Mapping[str, frozenset[str]]] = {
    "TRIGGER": frozenset({"FOR"}),
    "EVENT": frozenset({"DO"}),
    **dict.fromkeys(("PROCEDURE", "FUNCTION", "PACKAGE"), _ROUTINE),
}
"""Kinds of stored programs, and the words with which the body, or a clause in front of it, begins."""
_PREPARES: Final = ("PREPARE", "EXECUTE")
_GRANTS: Final = ("GRANT", "REVOKE")
"""In their ``name.*``, the name is a pattern."""
_ROWS: Final = ("NEW", "OLD")
"""Rows in a trigger's body, not databases."""


class Unsafe(Exception):  # noqa: N818 - internal: the caller raises the error that has the position
    """A part cannot be given the target's names exactly; the text says why."""


def _mark(token: Token) -> str:
    """A word of the grammar or a symbol; empty for a name, whatever its text."""
    return token.text if token.kind is TokenKind.SYMBOL else token.upper


def renamed_statement(part: StatementPart, renaming: Renaming, flavor: Flavor, read: Read) -> StatementPart:
    """A statement of a ``flavor`` server with the target's names. Raises Unsafe."""
    facts, context = part.facts, part.context
    default = context.database
    new = context if default is None else replace(context, database=renaming.target(default))
    if facts.kind is StatementKind.TRANSACTION:
        return replace(part, context=new)
    named = facts.databases | set(part.query.updated_databases or ()) - {""}
    for name in sorted(named):
        if (why := renaming.refusal(name)) is not None:
            raise Unsafe(why)
    changed = sorted(name for name in named | ({default} if default else set()) if renaming.changes(name))
    if changed and facts.kind is StatementKind.LOAD_DATA:
        raise Unsafe(f"LOAD DATA over {changed[0]}, which the channel renames")
    if changed and facts.temporary:
        raise Unsafe(f"a temporary table in {changed[0]}, which the channel renames")
    sql = _Words.of(part.sql, context, flavor).renamed(facts, renaming, default)
    if read(sql, new) != renaming.facts(read(part.sql, context)):
        raise Unsafe(f"a statement whose names cannot all be changed to the target's ({', '.join(changed)})")
    listed = part.query.updated_databases
    query = part.query
    if listed is not None:
        query = replace(query, updated_databases=tuple(map(renaming.target, listed)))
    return replace(part, sql=sql, context=new, facts=renaming.facts(facts), query=query)


@dataclass(frozen=True, slots=True)
class _Words(StatementWords):
    """The words of a statement whose databases get the target's names."""

    @classmethod
    def of(cls, sql: bytes, context: SessionContext, flavor: Flavor) -> _Words:
        """Raises Unsafe for a statement that cannot be split into tokens."""
        try:
            words = words_of(sql, context, flavor)
        except Unreadable as unreadable:
            raise Unsafe(f"a statement that cannot be split into tokens ({unreadable})") from None
        return cls(words.sql, words.tokens, words.places, words.encode)

    def renamed(self, facts: StatementFacts, renaming: Renaming, default: str | None) -> bytes:
        """The statement's bytes with the target's names. Raises Unsafe."""
        if facts.kind is StatementKind.GLOBAL:
            self._check_global(renaming, default)
            return self.sql
        over = facts.databases | ({default} if default else set())
        self._check_dynamic(is_renamed=any(map(renaming.changes, over)))
        body = self._body()
        own = self._database_at()
        edits: dict[int, bytes] = {}
        for number in self._qualifiers(own):
            token = self.tokens[number]
            if number > body and token.upper in _ROWS:
                continue
            if number > body and not renaming.changes(token.text) and renaming.refusal(token.text) is not None:
                raise Unsafe(
                    f"the body of a stored program that names {token.text}, a name that the channel gives to another "
                    "database"
                )
            if not renaming.changes(token.text):
                continue
            if number > body:  # names in a body are not parsed: it may be a variable or the database
                raise Unsafe(f"the body of a stored program that names {token.text}, which the channel renames")
            if self._elsewhere(token, own):
                if token.text in facts.databases:
                    raise Unsafe(f"the name {token.text} denotes a database and possibly something else")
                continue
            if token.text not in facts.databases:
                raise Unsafe(
                    f"the name {token.text}, which the channel renames, may denote a database or something else"
                )
            edits[number] = self._spelled(number, renaming.target(token.text))
        return self.replaced(edits)

    def _qualifiers(self, own: int | None) -> Iterator[int]:
        """Names that are followed by a dot and not preceded by one, and the name at ``own``."""
        for number, token in enumerate(self.tokens):
            if token.kind in _NAMES and (number == own or self._is_first(number)):
                yield number

    def _is_first(self, number: int) -> bool:
        behind = number + 1 < len(self.tokens) and is_symbol(self.tokens[number + 1], ".")
        return behind and not (number > 0 and is_symbol(self.tokens[number - 1], "."))

    def _elsewhere(self, name: Token, own: int | None) -> bool:
        """Whether the name also stands where it is not a database's; names of accounts do not count."""
        for number, token in enumerate(self.tokens):
            if token.kind not in _NAMES or token.text.lower() != name.text.lower():
                continue
            follower = self.tokens[number + 1] if number + 1 < len(self.tokens) else None
            is_account = follower is not None and follower.kind is TokenKind.VARIABLE
            if number != own and not self._is_first(number) and not is_account:
                return True
        return False

    def _database_at(self) -> int | None:
        """Index of the database's name in CREATE, ALTER or DROP DATABASE."""
        head = [token.upper for token in self.tokens[:8]]
        if not head or head[0] not in ("CREATE", "ALTER", "DROP"):
            return None
        number = 3 if head[1:3] == ["OR", "REPLACE"] else 1
        if len(head) <= number or head[number] not in _DATABASE:
            return None
        number += 1
        while number < len(head) and head[number] in ("IF", "NOT", "EXISTS"):
            number += 1
        return number if number < len(self.tokens) else None

    def _body(self) -> int:
        """Index of the token in front of a stored program's body; for other statements the number of tokens."""
        everything = len(self.tokens)
        if not self.tokens or self.tokens[0].upper not in ("CREATE", "ALTER"):
            return everything
        for number, token in enumerate(self.tokens[1:], 1):
            if token.upper in ("TABLE", "VIEW", "INDEX", *_DATABASE):
                return everything
            if token.upper in _BODIES:
                marks = _BODIES[token.upper]
                found = (n for n in range(number, everything) if _mark(self.tokens[n]) in marks)
                return next(found, everything)
        return everything

    def _check_dynamic(self, *, is_renamed: bool) -> None:
        """Raises Unsafe for constructs that find out or build a database's name at run time."""
        body = self._body()
        for number, token in enumerate(self.tokens):
            calls = number + 1 < len(self.tokens) and is_symbol(self.tokens[number + 1], "(")
            if token.upper in _DATABASE and calls and is_renamed:
                raise Unsafe(
                    f"{token.upper}(), whose value is the database's name, in a database that the channel renames"
                )
            if number > body and token.upper in _PREPARES:
                raise Unsafe(
                    "a stored program that prepares statements: the databases that these name cannot be determined"
                )

    def _check_global(self, renaming: Renaming, default: str | None) -> None:
        """Raises Unsafe for privileges on renamed databases, by name or pattern, and for other uses of their names."""
        grants = self.tokens[0].upper in _GRANTS
        for number, token in enumerate(self.tokens):
            if grants and self._is_all_of_default(number) and default and renaming.changes(default):
                raise Unsafe(f"an account's statement about * in {default}, which the channel renames")
            if token.kind not in _NAMES or not self._is_first(number):
                continue
            name = token.text.replace("\\_", "_").replace("\\%", "%")
            if renaming.changes(name) or renaming.refusal(name) is not None:
                raise Unsafe(f"an account's or server-wide statement that names {token.text}")
            is_all = is_symbol(self.tokens[number + 2], "*") if number + 2 < len(self.tokens) else False
            if grants and is_all and (rule := renaming.touched(token.text)) is not None:
                raise Unsafe(
                    f"an account's statement about {token.text}, a pattern that matches renamed databases ({rule})"
                )

    def _is_all_of_default(self, number: int) -> bool:
        """Whether the token is the ``*`` of ``ON *``: all tables of the default database."""
        if number == 0 or not is_symbol(self.tokens[number], "*") or self.tokens[number - 1].upper != "ON":
            return False
        return number + 1 == len(self.tokens) or not is_symbol(self.tokens[number + 1], ".")

    def _spelled(self, number: int, name: str) -> bytes:
        """The new name, quoted as the old one; in backticks if the old one was not quoted."""
        token, start = self.tokens[number], self.places[number][0]
        quote = self.sql[start : start + 1].decode() if token.kind is TokenKind.NAME else "`"
        spelled = self.encode(f"{quote}{name.replace(quote, 2 * quote)}{quote}")
        if spelled is None:
            raise Unsafe(f"the name {name!r} in a statement of a character set that may not contain it")
        return spelled
