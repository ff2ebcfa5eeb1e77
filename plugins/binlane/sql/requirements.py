"""The features, privileges and settings that a window's DDL and account statements need and not every server has.

Read from the statements' tokens, so that the precheck can refuse a window by name before the first write. The tables
below are not complete: the precheck also shows every statement to the target's own parser. Grammar: ``sql/sql_yacc.yy``
of MySQL 9 and MariaDB 11.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Final

from binlane.binlog.types.collations import (
    UTF8MB4_GENERAL_CI,
    charset_name,
    collation_id,
    collation_name,
    is_charset,
    is_collation,
)
from binlane.binlog.variables import value_collation
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SessionContext
from binlane.schema.letter_case import lower
from binlane.schema.normalize import charset_name as full_charset_name
from binlane.sql.accounts import StatementAccounts, defined, definer, is_owned
from binlane.sql.parse.cursor import find_word, group_end, is_name, is_symbol
from binlane.sql.parse.engines import engine_places
from binlane.sql.parse.facts import StatementFacts, StatementKind
from binlane.sql.parse.lexer import Dialect, Token, TokenKind, Unreadable, lex
from binlane.sql.parse.set_statement import clause_of
from binlane.sql.server_words import (
    ACCOUNT_OPTIONS,
    CLAUSES,
    ENGINES,
    OBJECTS,
    OPTIONS,
    OWN_OBJECTS,
    PRIVILEGES_OF_MARIADB,
    TYPES,
)

ENGINE: Final = "storage engine"
COLLATION: Final = "collation"
CHARSET: Final = "character set"
BARE_CHARSET: Final = "character set without COLLATE"
"""``detail``: the character set, with its default collation in the source's session if that is not the built-in one."""
CONVERTED: Final = "conversion without COLLATE"
"""The same of a statement on rows; on MySQL, ``default_collation_for_utf8mb4`` is the default of utf8mb4."""
PLUGIN: Final = "authentication plugin"
TRUSTED_FUNCTION: Final = "function that is not DETERMINISTIC"
TRUSTED_MAKER: Final = "trigger or function"
DEFINER: Final = "definer"
"""``subject``: kind and name of the object, ``detail``: ``user@host`` (``precheck.definers``)."""
CHANGED: Final = "object or account of somebody"
"""Altered, replaced or dropped; ``subject``: kind and name of the object, or ``account user@host``."""
SESSION_COLLATION: Final = "collation of a session"
"""``detail``: the number of the collation, or of a character set's default collation."""
LOOSE_VARIABLE: Final = "user variable with an empty name, one of more than 64 letters, or one that ends in a blank"
DATABASE_DEFAULT: Final = "default collation of a database"
"""An object without a character set of its own is created with this default; ``subject``: the database."""
DATABASE_CHARSET: Final = "default character set of a database"
"""LOAD DATA without a character set reads its file in this one; ``subject``: the session's default database."""
DATABASE_SET: Final = "database"
"""A database that is created, altered or dropped; ``subject``: its name."""
PRIVILEGE: Final = "privilege"
"""``subject``: the database that the privilege is needed on, "" for all; ``detail``: the privilege's name."""
JSON_TABLE: Final = "JSON_TABLE for a document that holds bytes, bits or a TIMESTAMP"
"""Needed for rows that are written as statements."""
LATE_TIMESTAMP: Final = "TIMESTAMP beyond 2038-01-19 03:14:07 UTC"
"""Needed for rows, whichever writer writes them."""
LONG_DEFAULT: Final = "default of a BLOB, TEXT or JSON column"
"""A literal default: MariaDB takes it; MySQL refuses it, or drops it where the sql_mode is not strict."""
HISTORY_BY_TRANSACTION: Final = "history by transaction ids"
"""A system-versioned table whose ROW START is a BIGINT; ``subject``: the table."""
ENCRYPTED: Final = "encrypted table"
"""A table, database or tablespace that the server encrypts; ``detail``: MariaDB's options, which name a key."""
BY_SESSION: Final = "by default_table_encryption"
CASCADE_TRIGGERS: Final = "enable_cascade_triggers"
COMPUTED_MODE: Final = "rows that are computed under sql_mode"
"""Of tables whose generated columns may see it; ``detail``: all modes of the session that change a value."""
COMPUTED_ZONE: Final = "rows that are computed in a time zone"
"""Of tables whose generated columns may see it; ``detail``: the session's, empty if the log does not have it."""
COMPUTED_LOCALE: Final = "rows that are computed under lc_time_names"
"""The same; ``detail``: its number. The log leaves out en_US."""
UNLOGGED_LENGTH: Final = "fraction in MariaDB 5.3's format"
"""Rows that only a server can read, by its own table; ``subject``: the table."""
_LONGEST_VARIABLE: Final = 64
_BLANKS: Final = " \t\n\v\f\r"
UNSPELLED: Final = "JSON document without an SQL expression"
"""Needed for rows, whichever writer writes them; ``detail`` says why the document has no expression."""


@dataclass(frozen=True, slots=True, order=True)
class Requirement:
    """One feature, privilege or setting that a server must have to execute a statement."""

    feature: str
    """A key of ``portability.FEATURES``, or a constant of this module, for which the precheck queries the target."""
    subject: str
    """``table`` or ``table.column``; verb and kind for a statement without a table."""
    detail: str = ""
    unless: str = ""
    """For CREATE TABLE IF NOT EXISTS: the table. If it exists the statement does nothing, and is logged all the
    same."""


def requirements_of(sql: str, facts: StatementFacts, dialect: Dialect) -> frozenset[Requirement]:
    """The known requirements of a statement; none if the lexer cannot read its text."""
    tokens: list[Token] = []
    places: list[tuple[int, int]] = []
    try:
        lex(sql, dialect, tokens, places)
    except Unreadable:
        return frozenset()
    opened = [is_symbol(token, "(") - is_symbol(token, ")") for token in tokens]
    try:
        words = _Words(sql, tokens, facts, (0, *accumulate(opened)), places, dialect)
        if dialect.flavor is Flavor.MARIADB and (body := clause_of(tokens).body):
            own = Requirement("SET STATEMENT", words.subject() or "SET STATEMENT")
            return requirements_of(sql[places[body][0] :], facts, dialect) | {own}
        return frozenset(replace(requirement, unless=words.unless()) for requirement in words.requirements())
    except Unreadable:
        return frozenset()


def without_missing(sql: str, facts: StatementFacts, context: SessionContext) -> Iterator[Requirement]:
    """What a RENAME asks for whose session leaves out tables that do not exist (MariaDB's ``sql_if_exists``). To a DROP
    IF EXISTS is added (``plan.transaction.error_outcome``); an ALTER TABLE is in the log only if its table exists, and
    for the table's parts the variable changes nothing (tried on MariaDB 10.5 to 11.8)."""
    if context.if_exists and facts.kind is StatementKind.DDL and _LEAVES_OUT.match(sql) is not None:
        yield Requirement("IF EXISTS", min(map(str, facts.tables), default="session"), "by sql_if_exists")


def requirements_of_session(context: SessionContext, facts: StatementFacts) -> Iterator[Requirement]:
    """Requirements of every statement: its session's collations, and SELECT on the databases that it only reads."""
    yield from _collations(
        context.charset_client,
        context.collation_connection,
        context.collation_server,
        context.default_collation_for_utf8mb4,
        context.collation_database,
    )
    for name, value in context.user_variables:
        yield from _user_variable(name, value)
    if context.cascade_triggers and facts.kind not in (StatementKind.DDL, StatementKind.GLOBAL):
        yield Requirement(CASCADE_TRIGGERS, "session")
    if facts.kind in (StatementKind.DML, StatementKind.LOAD_DATA):
        for database in facts.databases - {key.database for key in facts.written}:
            if database and lower(database) != "information_schema":  # no privileges exist on information_schema
                yield Requirement(PRIVILEGE, database, "SELECT")


def _user_variable(name: str, value: str) -> Iterator[Requirement]:
    if len(name) > _LONGEST_VARIABLE or name != name.rstrip(_BLANKS) or not name:
        yield Requirement(LOOSE_VARIABLE, "session")
    numbers = (collation_id(value_collation(value) or "", flavor) for flavor in Flavor)
    number = next((number for number in numbers if number is not None), None)
    if number is not None:
        yield Requirement(SESSION_COLLATION, f"user variable {name}", str(number))


@lru_cache(maxsize=64)
def _collations(*numbers: int | None) -> tuple[Requirement, ...]:
    return tuple(Requirement(SESSION_COLLATION, "session", str(number)) for number in numbers if number is not None)


def resolved(requirement: Requirement, context: SessionContext) -> Requirement | None:
    """The requirement, for a bare character set with the session's default collation; None if that is the built-in, or
    if the session does not encrypt what says nothing of it, or has a character set for files of its own."""
    if requirement.feature == DATABASE_CHARSET:
        is_database_s = context.database is not None and context.collation_database is None
        return replace(requirement, subject=str(context.database)) if is_database_s else None
    if requirement.feature == ENCRYPTED and requirement.detail == BY_SESSION:
        return replace(requirement, detail="") if context.default_table_encryption else None
    if requirement.feature not in (BARE_CHARSET, CONVERTED):
        return requirement
    charset = full_charset_name(requirement.detail)
    pairs = context.character_set_collations
    if requirement.feature == CONVERTED and context.default_collation_for_utf8mb4 is not None:
        pairs = ((UTF8MB4_GENERAL_CI, context.default_collation_for_utf8mb4),)
    for default, chosen in pairs:
        name = collation_name(default, Flavor.MARIADB)
        if name is not None and charset_name(name) == charset and chosen != default:
            family = Flavor.MARIADB if context.character_set_collations else Flavor.MYSQL
            return replace(requirement, detail=f"{charset} = {collation_name(chosen, family)}")
    return None


@dataclass(frozen=True, slots=True)
class _Words:
    sql: str
    tokens: Sequence[Token]
    facts: StatementFacts
    depths: Sequence[int]
    """Parentheses open before each token."""
    places: Sequence[tuple[int, int]]
    """Begin and end of each token in the text: tokens of literals are empty."""
    dialect: Dialect

    def unless(self) -> str:
        head = [token.upper for token in self.tokens[:8]]
        conditional = self._upper(0) == "CREATE" and ("TABLE", "IF") in pairwise(head)
        return self.subject() if conditional else ""

    def requirements(self) -> Iterator[Requirement]:
        verb, head = self._upper(0), [token.upper for token in self.tokens[:8]]
        if verb in ("CREATE", "ALTER", "DROP"):
            # ALGORITHM, DEFINER and SQL SECURITY stand before VIEW
            words = [token.upper for token in self.tokens[1 : 16 if self.facts.views else 8]]
            kind = next((word for word in words if word in OBJECTS), "")
            yield from self._object(verb, kind, head)
            yield from self._operators(verb, kind)
            if kind == "TABLE":
                yield from self._definition()
            if kind in ("TABLE", "INDEX"):
                yield from self._keys()
            if (verb, kind) == ("CREATE", "FUNCTION") and self._is_trusted():
                yield Requirement(TRUSTED_FUNCTION, self.subject())
            if (
                verb == "CREATE"
                and kind in ("TRIGGER", "FUNCTION")
                and not any(t.upper == "SONAME" for t in self.tokens)
            ):
                yield Requirement(TRUSTED_MAKER, self.subject(), kind)
            yield from self._owners(verb, kind, head)
            if kind in ("TABLE", "DATABASE", "SCHEMA"):
                yield from self._options()
            yield from self._encryption(verb, kind)
            yield from self._bare_charsets(verb, kind)
            yield from self._database_defaults(verb, kind)
            if kind in ("USER", "ROLE"):
                yield from self._account()
        elif verb == "ANALYZE" and any(token.upper == "HISTOGRAM" for token in self.tokens):
            yield Requirement("histogram", self.subject())
        elif verb == "SET" and self._upper(1) in ("PERSIST", "PERSIST_ONLY"):
            yield Requirement("persisted variable", "SET PERSIST")
        elif verb in ("GRANT", "REVOKE", "RENAME", "SET", "FLUSH") and self.facts.kind is StatementKind.GLOBAL:
            yield from self._server_wide(verb)
        elif self.facts.kind in (StatementKind.DML, StatementKind.LOAD_DATA):
            yield from self._of_rows(verb)

    def _of_rows(self, verb: str) -> Iterator[Requirement]:
        yield from self._operators(verb, "")
        yield from self._one_family(verb)
        yield from self._converted(verb)
        if self.facts.kind is StatementKind.LOAD_DATA and not self._names_charset_of_file():
            yield Requirement(DATABASE_CHARSET, "")

    def _object(self, verb: str, kind: str, head: Sequence[str]) -> Iterator[Requirement]:
        subject = self.subject() or f"{verb} {kind}"
        if kind in OWN_OBJECTS:
            yield Requirement(OWN_OBJECTS[kind], subject)
        if kind in ("DATABASE", "SCHEMA"):
            yield from self._of_database()
        if ("SPATIAL", "REFERENCE") in pairwise(head):
            yield Requirement("spatial reference system", f"{verb} SPATIAL REFERENCE SYSTEM")
        elif verb == "CREATE" and head[1:3] == ["OR", "REPLACE"] and kind not in ("", "VIEW", *OWN_OBJECTS):
            yield Requirement("OR REPLACE", subject)
        if (kind, "IF") in pairwise(head) and (kind == "INDEX" or (verb, kind) == ("ALTER", "TABLE")):
            yield Requirement("IF EXISTS", subject)

    def _owners(self, verb: str, kind: str, head: Sequence[str]) -> Iterator[Requirement]:
        """The accounts whose privileges the statement needs: its definer, and the definer of the object it changes."""
        if kind == "USER":
            yield from (Requirement(CHANGED, f"account {each}") for each in self._accounts().with_host())
            return
        who = definer(self._accounts())
        for name in defined(verb, kind, self.tokens, self.facts) if who is not None or verb != "CREATE" else ():
            if who is not None:
                yield Requirement(DEFINER, name, who)
            if is_owned(verb, kind, head):
                yield Requirement(CHANGED, name)

    def _accounts(self) -> StatementAccounts:
        return StatementAccounts(self.sql, self.tokens, self.places, self.dialect)

    def _server_wide(self, verb: str) -> Iterator[Requirement]:
        if verb == "FLUSH":
            yield Requirement(PRIVILEGE, "", "RELOAD")
            return
        yield from (Requirement(CHANGED, f"account {each}") for each in self._accounts().with_host())
        if verb == "GRANT":
            yield from self._account()
            yield from self._privileges()

    def _definition(self) -> Iterator[Requirement]:
        """The columns and clauses of CREATE TABLE and ALTER TABLE."""
        for at, token in enumerate(self.tokens):
            following = [one.upper for one in self.tokens[at + 1 : at + 4]]
            if token.upper in TYPES and self._is_type(at):
                yield Requirement(TYPES[token.upper], f"{self.subject()}.{self.tokens[at - 1].text}")
            clause = CLAUSES.get((token.upper, self._upper(at + 1)))
            if clause is not None:
                yield Requirement(clause, self.subject())
            if (token.upper, following[:1]) == ("ROW", ["START"]) and self._is_in_column_of(at, _BIGINT):
                yield Requirement(HISTORY_BY_TRANSACTION, self.subject())
            if token.upper == "SRID" and self._kind(at + 1) is TokenKind.NUMBER:
                yield Requirement("SRID", self.subject())
            if token.upper == "REF_SYSTEM_ID" and self._text(at + 1) == "=":
                yield Requirement("REF_SYSTEM_ID", self.subject())
            if token.upper in _CHANGED and (following[:2] == ["IF", "EXISTS"] or following == ["IF", "NOT", "EXISTS"]):
                yield Requirement("IF EXISTS", self.subject())
            if token.upper == "DEFAULT" and self._is_default_of_long(at):
                yield Requirement(LONG_DEFAULT, self.subject())
            if token.upper == "COMPRESSED" and (self._text(at - 1) == ")" or self._upper(at - 1) in LONG_TYPES):
                yield Requirement("compressed column", self.subject())

    def _operators(self, verb: str, kind: str) -> Iterator[Requirement]:
        """JSON operators and types, wherever an expression may stand: in columns, keys, views, bodies, and in DML."""
        subject = self.subject() or f"{verb} {kind}".rstrip()
        for at, token in enumerate(self.tokens):
            if is_symbol(token, "->") or is_symbol(token, "->>"):
                yield Requirement("JSON operator", subject, token.text)
            if token.upper == "JSON" and self._upper(at - 1) == "AS" and self._text(at + 1) == ")":
                yield Requirement("CAST AS JSON", subject)

    def _one_family(self, verb: str) -> Iterator[Requirement]:
        """DML syntax that only MySQL or only MariaDB has."""
        subject = self.subject() or verb
        for at, token in enumerate(self.tokens):
            following = self._upper(at + 1)
            if token.upper == "RETURNING" and self.depths[at] == 0:
                yield Requirement("RETURNING", subject)
            elif token.upper == "PORTION" and following == "OF" and self._upper(at - 1) == "FOR":
                yield Requirement("period", subject)
            elif token.upper == "VALUES" and following == "ROW" and self._text(at + 2) == "(":
                yield Requirement("VALUES ROW", subject)
            elif token.upper == "AS" and self._text(at - 1) == ")" and self._upper(at + 2) == "ON" and verb == "INSERT":
                yield Requirement("alias of inserted rows", subject)
            elif verb == "WITH" and self.depths[at] == 0 and token.upper in ("UPDATE", "DELETE"):
                yield Requirement("WITH in front of UPDATE or DELETE", subject)

    def _is_trusted(self) -> bool:
        """Whether a stored function lacks DETERMINISTIC, NO SQL and READS SQL DATA
        (log_bin_trust_function_creators)."""
        words = [token.upper for token in self.tokens]
        said = {"DETERMINISTIC", "SONAME"} & set(words) or ("NO", "SQL") in pairwise(words)
        return not said and ("READS", "SQL") not in pairwise(words)

    def _is_in_column_of(self, at: int, types: frozenset[str]) -> bool:
        """Whether the definition of a column up to a token has one of these types."""
        for before in range(at - 1, 0, -1):
            if self.depths[before] < self.depths[at] or self._text(before) == ",":
                return False
            if self.tokens[before].upper in types:
                return True
        return False

    def _is_default_of_long(self, at: int) -> bool:
        """Whether DEFAULT gives a literal to a BLOB, TEXT or JSON column, where MySQL takes expressions only."""
        behind = self._kind(at + 1)
        literal = behind in (TokenKind.STRING, TokenKind.NUMBER) or self._upper(at + 1) in ("TRUE", "FALSE")
        for before in range(at - 1, 0, -1):
            if not literal or self.depths[before] < self.depths[at] or self._text(before) == ",":
                return False
            if self.depths[before] == self.depths[at] and self._upper(before) in (*LONG_TYPES, "JSON"):
                return is_name(self.tokens[before - 1]) and self._upper(before - 1) not in _NO_COLUMN
        return False

    def _is_type(self, at: int) -> bool:
        """Whether the word is a column's type, by its neighbours: a column name before, a type's attribute behind."""
        if at == 0 or not is_name(self.tokens[at - 1]) or self.tokens[at - 1].upper in _NO_COLUMN:
            return False
        if self._text(at + 1) == "(":
            return self._upper(at) == "VECTOR"
        return at + 1 == len(self.tokens) or self._text(at + 1) in (",", ")") or self._upper(at + 1) in _BEHIND_TYPE

    def _keys(self) -> Iterator[Requirement]:
        for start, end in self._key_lists():
            inside = range(start + 1, end)
            if any(self._text(at) == "(" and self._text(at - 1) in ("(", ",") for at in inside):
                yield Requirement("functional key", self.subject())
            for at in range(end, len(self.tokens)):
                if self.depths[at] == self.depths[start] and self._text(at) in (",", ")"):
                    break
                if self.depths[at] < self.depths[start]:
                    break
                if self._upper(at) in _UNUSED:
                    yield Requirement(_UNUSED[self._upper(at)], self.subject())
        for at, token in enumerate(self.tokens):
            if token.upper in _UNUSED and self._upper(at - 2) in ("INDEX", "KEY") and self._upper(at - 3) == "ALTER":
                yield Requirement(_UNUSED[token.upper], self.subject())

    def _key_lists(self) -> Iterator[tuple[int, int]]:
        """Each list of key parts: the index of its opening parenthesis, and the index after the closing one."""
        for at, token in enumerate(self.tokens):
            if is_symbol(token, "(") and self._begins_key(at):
                yield at, group_end(self.tokens, at)

    def _begins_key(self, at: int) -> bool:
        """Whether the parenthesis stands behind KEY, INDEX or UNIQUE [name] [USING ..], or ON table."""
        if self._upper(at - 2) == "USING":
            at -= 2
        if self._upper(at - 1) in _KEY_WORDS or self._upper(at - 2) in (*_KEY_WORDS, "ON"):
            return True
        return self._upper(at - 4) == "ON" and self._text(at - 2) == "."

    def _options(self) -> Iterator[Requirement]:
        """Engines, character sets and collations by name, and options that only MySQL or only MariaDB has.

        An option's word may also be a column's name: it counts only with a known value of that option.
        """
        for at in engine_places(self.tokens):
            if (engine := self._written(at).lower()) in ENGINES:
                yield Requirement(ENGINE, self.subject(), engine)
        for at, token in enumerate(self.tokens):
            value = self._value(at)
            if token.upper == "COLLATE" and value is not None and is_collation(value):
                yield Requirement(COLLATION, self.subject(), value)
            elif token.upper in ("CHARSET", "SET") and value is not None and is_charset(value):
                yield Requirement(CHARSET, self.subject(), value)
            elif self.depths[at] == 0 and self._text(at + 1) == "=":
                # MariaDB logs engines' own options quoted, as it does in SHOW CREATE TABLE
                option = token.upper or (token.text.upper() if token.kind is TokenKind.NAME else "")
                if option in OPTIONS:
                    yield Requirement(OPTIONS[option], self.subject(), option)

    def _encryption(self, verb: str, kind: str) -> Iterator[Requirement]:
        """Keys that the server must have: MySQL's one master key, or one of MariaDB's by its number."""
        if kind not in _ENCRYPTED_KINDS:
            return
        values = dict[str, str]()
        for at, token in enumerate(self.tokens):
            option = token.upper or (token.text.upper() if token.kind is TokenKind.NAME else "")
            if self.depths[at] == 0 and option in ("ENCRYPTION", "ENCRYPTED", "ENCRYPTION_KEY_ID"):
                values[option] = self._written(at + 2 if self._text(at + 1) == "=" else at + 1)
        rotates = kind == "INSTANCE" and any(token.upper == "INNODB" for token in self.tokens)
        if values.get("ENCRYPTION") == "Y" or rotates:
            yield Requirement(ENCRYPTED, self.subject() or f"{verb} {kind}")
        elif "ENCRYPTED" in values or "ENCRYPTION_KEY_ID" in values:
            words = (f"{name}={value}" for name, value in values.items() if value.isalnum())
            yield Requirement(ENCRYPTED, self.subject(), " ".join(words))
        elif verb == "CREATE" and kind != "TABLE" and "ENCRYPTION" not in values:
            yield Requirement(ENCRYPTED, self.subject() or f"{verb} {kind}", BY_SESSION)

    def _bare_charsets(self, verb: str, kind: str) -> Iterator[Requirement]:
        """Character sets without COLLATE, of columns, variables and conversions: the session decides their
        collation."""
        for at, token in enumerate(self.tokens):
            if token.upper in ("CHARSET", "SET", "USING"):
                value = self._value(at)
                # of an object: COLLATE may stand anywhere among its options; of a column: beside the character set
                whole = self.depths[at] == 0 and verb == "CREATE" and kind in ("TABLE", "DATABASE", "SCHEMA")
                if value is not None and is_charset(value) and not self._has_collation(at, whole):
                    yield Requirement(BARE_CHARSET, self.subject() or f"{verb} {kind}".rstrip(), value)

    def _converted(self, verb: str) -> Iterator[Requirement]:
        """Character sets of conversions and literals without COLLATE, in statements on rows: the session decides what
        they are compared by."""
        for at, token in enumerate(self.tokens):
            value, behind = None, at + 2
            if token.upper in ("USING", "CHARSET", "SET") and self.depths[at]:
                value, behind = self._value(at), at
                while behind < len(self.tokens) and self.depths[behind] >= self.depths[at]:
                    behind += 1
            elif token.upper.startswith("_") and self._kind(at + 1) is TokenKind.STRING:
                value = token.text[1:].lower()
            if value is not None and is_charset(value) and self._upper(behind) != "COLLATE":
                yield Requirement(CONVERTED, self.subject() or verb, value)

    def _database_defaults(self, verb: str, kind: str) -> Iterator[Requirement]:
        """Databases whose default collation a new object inherits, and databases whose default collation changes."""
        facts = self.facts
        if kind in ("DATABASE", "SCHEMA"):
            yield from (Requirement(DATABASE_SET, name) for name in facts.databases)
        elif kind == "TABLE" and (self._takes_default_charset() or (verb == "CREATE" and not self._has_charset())):
            place = self.subject().partition(".")[0]
            yield from (Requirement(DATABASE_DEFAULT, name) for name in facts.databases if name == place)
        elif verb == "CREATE" and kind in ("TRIGGER", "PROCEDURE", "FUNCTION", "PACKAGE"):
            names = facts.routine_databases | {key.database for key in facts.triggered}
            yield from (Requirement(DATABASE_DEFAULT, name) for name in names)

    def _takes_default_charset(self) -> bool:
        """Whether a table's option is CHARACTER SET DEFAULT: its database's."""
        for at in range(len(self.tokens)):
            is_set = self._upper(at) == "CHARSET" or (self._upper(at - 1), self._upper(at)) == ("CHARACTER", "SET")
            if is_set and self.depths[at] == 0:
                behind = at + 2 if self._text(at + 1) == "=" else at + 1
                if self._upper(behind) == "DEFAULT":
                    return True
        return False

    def _names_charset_of_file(self) -> bool:
        """Whether CHARACTER SET stands behind the table of a LOAD DATA, and its partitions."""
        at = next((at for at in range(len(self.tokens)) if self._upper(at) == "TABLE"), len(self.tokens)) + 2
        while self._text(at) == ".":
            at += 2
        if self._upper(at) == "PARTITION":
            at = group_end(self.tokens, at + 1)
        return self._upper(at) in ("CHARACTER", "CHARSET")

    def _has_charset(self) -> bool:
        """Whether CREATE TABLE has a character set or collation of its own: an option, or copied by LIKE."""
        words = [self._upper(at) for at in range(len(self.tokens)) if self.depths[at] == 0]
        inside = self._upper(next((at + 1 for at, one in enumerate(self.tokens) if is_symbol(one, "(")), 0))
        is_set = ("CHARACTER", "SET") in pairwise(words) or not {"CHARSET", "COLLATE"}.isdisjoint(words)
        return is_set or "LIKE" in (*words[:10], inside)

    def _has_collation(self, at: int, whole: bool) -> bool:
        depth = self.depths[at]
        for behind in range(0 if whole else at, len(self.tokens)):
            if self.depths[behind] == depth:
                if self._upper(behind) == "COLLATE":
                    return True
                if not whole and self._text(behind) in (",", ")", ";"):
                    return False
        return False

    def _of_database(self) -> Iterator[Requirement]:
        for at, token in enumerate(self.tokens):
            if token.upper == "COMMENT":
                yield Requirement("comment of a database", self.subject())
            if token.upper == "READ" and self._upper(at + 1) == "ONLY":
                yield Requirement("option of MySQL", self.subject(), "READ ONLY")

    def _value(self, at: int) -> str | None:
        """The name behind a word and an optional equals sign, in lower case."""
        behind = at + 2 if self._text(at + 1) == "=" else at + 1
        return self._text(behind).lower() if self._kind(behind) in (TokenKind.WORD, TokenKind.NAME) else None

    def _account(self) -> Iterator[Requirement]:
        words, who = [token.upper for token in self.tokens], f"{self._upper(0)} {self._upper(1)}".strip()
        if words[:2] == ["CREATE", "ROLE"] and "ADMIN" in words:
            yield Requirement("role administrator", who)
        for at, word in enumerate(words):
            if word == "IDENTIFIED" and words[at + 1 : at + 3] == ["BY", "PASSWORD"]:
                yield Requirement("IDENTIFIED BY PASSWORD", who)
            if word == "IDENTIFIED" and words[at + 1 : at + 2] == ["VIA"]:
                yield Requirement("IDENTIFIED VIA", who)
            if word in ACCOUNT_OPTIONS or (words[1:2] == ["USER"] and words[at : at + 2] == ["DEFAULT", "ROLE"]):
                yield Requirement("account option", who, "DEFAULT ROLE" if word == "DEFAULT" else word)
            if word in ("WITH", "VIA") and words[at - 1] == "IDENTIFIED" and at + 1 < len(words):
                yield Requirement(PLUGIN, who, self._written(at + 1).lower())

    def _privileges(self) -> Iterator[Requirement]:
        end = find_word(self.tokens, "ON", start=1)
        names = " ".join(token.text.upper() for token in self.tokens[1:end])
        for name in (one.strip() for one in names.split(",")):
            if name in PRIVILEGES_OF_MARIADB:
                yield Requirement("privilege of MariaDB", "GRANT", name)
            elif re.fullmatch(r"[A-Z]+(?:_[A-Z]+)+", name) and any(token.upper == "ON" for token in self.tokens):
                yield Requirement("privilege of MySQL", "GRANT", name)

    def subject(self) -> str:
        """The first table of the statement; its databases if it names no table."""
        at = {token.text: place for place, token in reversed(list(enumerate(self.tokens)))}
        tables = sorted(self.facts.tables, key=lambda key: (at.get(key.table, len(self.tokens)), str(key)))
        return str(tables[0]) if tables else ", ".join(sorted(self.facts.databases))

    def _upper(self, at: int) -> str:
        return self.tokens[at].upper if 0 <= at < len(self.tokens) else ""

    def _text(self, at: int) -> str:
        return self.tokens[at].text if 0 <= at < len(self.tokens) else ""

    def _written(self, at: int) -> str:
        """A literal or word as the text has it, without quotes, in capitals."""
        begin, end = self.places[at] if at < len(self.places) else (0, 0)
        return self.sql[begin:end].strip("'\"`").upper()

    def _kind(self, at: int) -> TokenKind | None:
        return self.tokens[at].kind if 0 <= at < len(self.tokens) else None


_ENCRYPTED_KINDS: Final = frozenset({"TABLE", "DATABASE", "SCHEMA", "TABLESPACE", "INSTANCE"})
_NO_COLUMN: Final = frozenset({"ADD", "COLUMN", "MODIFY", "CHANGE", "AFTER", "TO", "AS", "RETURNING", "EXISTS"})
"""Unreserved words that may stand before a column's name."""
_BEHIND_TYPE: Final = frozenset(
    {
        *("NOT", "NULL", "DEFAULT", "COMMENT", "CHECK", "GENERATED", "AS", "VIRTUAL", "STORED", "FIRST", "AFTER"),
        *("COLLATE", "CHARACTER", "CHARSET", "INVISIBLE", "VISIBLE", "USING", "PRIMARY", "UNIQUE", "KEY", "REFERENCES"),
        *("CONSTRAINT", "COLUMN_FORMAT", "STORAGE", "WITH", "WITHOUT", "COMPRESSED", "ON", "PERSISTENT"),
    }
)
_BIGINT: Final = frozenset({"BIGINT", "INT8"})
_LEAVES_OUT: Final = re.compile(r"\s*RENAME\s+TABLES?\b", re.I)
_CHANGED: Final = frozenset({"COLUMN", "ADD", "DROP", "MODIFY", "CHANGE", "KEY", "INDEX", "CONSTRAINT"})
LONG_TYPES: Final = frozenset({f"{size}{kind}" for size in ("", "TINY", "MEDIUM", "LONG") for kind in ("TEXT", "BLOB")})
_KEY_WORDS: Final = ("KEY", "INDEX", "UNIQUE")
_UNUSED: Final = {"INVISIBLE": "invisible key", "VISIBLE": "invisible key", "IGNORED": "ignored key"}
