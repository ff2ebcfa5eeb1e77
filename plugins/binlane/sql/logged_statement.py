"""A statement with an implicit commit, as tokens for the precheck."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, Item, LogPosition, SessionContext, TableKey
from binlane.safe_text import shown
from binlane.schema.letter_case import LetterCase
from binlane.sql.accounts import StatementAccounts, definer
from binlane.sql.charset import decoded, dialect_of
from binlane.sql.parse.analyze import analyze
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, Unreadable, is_floating, lex, with_numbers
from binlane.sql.parse.set_statement import clause_of, computed

_DATABASE: Final = frozenset({"DATABASE", "SCHEMA"})


@dataclass(frozen=True, slots=True)
class LoggedText:
    """A statement, its position in the source's log and its tokens, without those of MariaDB's ``SET STATEMENT .. FOR``
    in front: the first one is the verb."""

    seqno: int
    source: LogPosition
    sql: str
    tokens: Sequence[Token]
    context: SessionContext
    flavor: Flavor
    """The source's family."""
    places: Sequence[tuple[int, int]]
    """First character of each token and the character behind it."""
    clause_values: Sequence[Token] = ()
    """Values of the clause in front that may call functions or read tables, separated by commas."""

    @classmethod
    def of(cls, seqno: int, source: LogPosition, item: Item, flavor: Flavor) -> LoggedText | None:
        """None if the lexer cannot read the text. ``flavor``: the source's."""
        context = SessionContext() if item.context is None else item.context
        sql, tokens, places = decoded(item.payload, context), list[Token](), list[tuple[int, int]]()
        try:
            lex(sql, dialect_of(context, flavor), tokens, places)
            clause = clause_of(tokens)
        except Unreadable:
            return None
        values = computed(tokens, clause)
        return cls(seqno, source, sql, tokens[clause.body :], context, flavor, places[clause.body :], values)

    @property
    def every_token(self) -> Sequence[Token]:
        """The tokens, and in front of them the values of the clause that may name functions and tables."""
        return [*self.clause_values, *self.tokens]

    @property
    def words(self) -> tuple[str, ...]:
        """The tokens in capitals; "" for each token that is not a word."""
        return tuple(token.upper for token in self.tokens)

    @property
    def tokens_with_places(self) -> Sequence[Token]:
        """The tokens, with the text of numbers that an ORDER BY may name columns by: ``ORDER BY 1, 2``, and of those
        with an exponent, which make an expression a floating-point number."""
        found, is_list = list(self.tokens), False
        for at, token in enumerate(found):
            is_list = token.upper == "BY" or (is_list and token.upper != "SELECT")
            before = found[at - 1]
            if token.kind is not TokenKind.NUMBER:
                continue
            text = self.sql[slice(*self.places[at])]
            if is_list and (before.upper == "BY" or before.text == ","):
                found[at] = token._replace(text=text)
            elif is_floating(text):
                # one text for all of them: statements that differ in literals alone are read once
                found[at] = token._replace(text="1e0")
        return found

    @property
    def tokens_with_numbers(self) -> Sequence[Token]:
        """The tokens, with the text of all numbers: lengths of columns."""
        return with_numbers(self.sql, self.tokens, self.places)

    @property
    def dialect(self) -> Dialect:
        """How the text is split into tokens."""
        return dialect_of(self.context, self.flavor)

    @property
    def facts(self) -> StatementFacts:
        """The databases and objects that the statement names and changes."""
        dialect = self.dialect
        return analyze(
            self.sql,
            database=self.context.database,
            sql_mode_ansi_quotes=dialect.ansi_quotes,
            no_backslash_escapes=dialect.no_backslash_escapes,
            oracle=dialect.oracle,
            flavor=self.flavor,
        )

    @property
    def dropped_databases(self) -> frozenset[str]:
        """The databases of which it leaves nothing: of DROP DATABASE, and of CREATE OR REPLACE DATABASE."""
        words = self.words
        is_whole = words[:1] == ("DROP",) or words[:3] == ("CREATE", "OR", "REPLACE")
        return self.facts.databases if is_whole and self._is_of_database else frozenset()

    @property
    def made_databases(self) -> frozenset[str]:
        """The databases that are there behind it, whether they were before or not."""
        return self.facts.databases if self.words[:1] == ("CREATE",) and self._is_of_database else frozenset()

    @property
    def is_only_if_missing(self) -> bool:
        """CREATE DATABASE IF NOT EXISTS."""
        return self.words[2:5] == ("IF", "NOT", "EXISTS")

    @property
    def made_if_missing(self) -> TableKey | None:
        """The table of CREATE TABLE IF NOT EXISTS."""
        words = self.words
        return self.facts.first if words[:1] == ("CREATE",) and ("TABLE", "IF") in pairwise(words[:8]) else None

    @property
    def is_of_new_table(self) -> bool:
        """CREATE TABLE."""
        words = self.words
        return words[:1] == ("CREATE",) and "TABLE" in words[1:4]

    @property
    def _is_of_database(self) -> bool:
        words = self.words
        return not _DATABASE.isdisjoint(words[1:4:2] if words[1:2] == ("OR",) else words[1:2])

    @property
    def definer(self) -> str | None:
        """``user@host`` of a definition; None if it names none."""
        return definer(self._accounts)

    @property
    def accounts(self) -> Iterator[str]:
        """``user@host`` of each account that the statement names with its host."""
        return self._accounts.with_host()

    @property
    def accounts_without_host(self) -> Iterator[str]:
        """``user@%`` of each account or role that the statement changes and names without its host."""
        return self._accounts.without_host()

    def account(self, at: int) -> str:
        """``user@host`` of the account, or of the role, that begins with a token; without a host it is any host's."""
        found = self._accounts.account(at)
        return "?" if found is None else found.name

    @property
    def _accounts(self) -> StatementAccounts:
        return StatementAccounts(self.sql, self.tokens, self.places, self.dialect)

    @property
    def where(self) -> str:
        """The beginning of a finding."""
        return f"{self.source}: statement of seqno {self.seqno}, {shown(self.sql)}"


def first_made(texts: Iterable[LoggedText], tables: Iterable[TableKey], letters: LetterCase) -> dict[str, int | None]:
    """Of each table that CREATE TABLE IF NOT EXISTS names, by its name as ``letters`` has it: the first seqno at which
    such a statement may make it; None if the table is there each time. ``tables``: those that are there before the
    statements."""

    def compared(key: TableKey) -> str:
        return str(letters.table(key))

    there, found = set(map(compared, tables)), dict[str, int | None]()
    for text in texts:
        facts = text.facts
        if facts.kind is StatementKind.UNKNOWN:
            there.clear()
            continue
        if facts.temporary or text.context.error_code:
            continue
        gone = set(map(compared, facts.dropped))
        databases = {f"{letters.name(name)}." for name in text.dropped_databases}
        there -= gone
        if databases:
            there = {name for name in there if name[: name.index(".") + 1] not in databases}
        for old, new in facts.renames:
            there.discard(compared(old))
            there.add(compared(new))
        there.update(compared(new) for _, new in facts.exchanges)
        missing = text.made_if_missing
        name = "" if missing is None else compared(missing)
        if missing is not None and found.setdefault(name, None) is None and name not in there:
            found[name] = text.seqno
        if text.is_of_new_table and facts.first is not None:
            there.add(compared(facts.first))
    return found


def split(tokens: Sequence[Token], separator: str = ",") -> Iterator[Sequence[Token]]:
    """The elements of a list, separated by commas outside parentheses."""
    depth, begin = 0, 0
    for at, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.text == separator and not token.upper:
            yield tokens[begin:at]
            begin = at + 1
    yield tokens[begin:]


def index_of(words: Iterable[str], *wanted: str) -> int | None:
    """The index of the first word of ``wanted``; None if no word of it occurs."""
    return next((at for at, word in enumerate(words) if word in wanted), None)
