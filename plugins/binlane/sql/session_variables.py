"""Variables of a session or a server that may decide what a logged change does on another server: ``VARIABLES``.

A log has some of them with each statement. Of the others a replica has its own server's values, whatever the source's
session had, and so have lanes (``apply.session.cached_state``): where the two servers differ, so would the data, in
silence. Each was tried on MySQL 9.7, MariaDB 10.11 and 11.8, with the server's own replica beside binlane; decision 25
has the table. ``tests/integration/window/statements/test_session_variables.py`` tries each of them again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SessionContext
from binlane.schema.model import TRANSACTIONAL_ENGINES
from binlane.sql.parse.cursor import called_name, is_name, is_symbol
from binlane.sql.parse.lexer import Token, TokenKind


class Fate(StrEnum):
    """What becomes of a variable between the source's session and the target's."""

    LOGGED = "in the log where it matters, and set for the statement, or for the rows that the target computes"
    IN_TEXT = "what it does is in the text that the source logs"
    SET = "set by lanes, whatever the two servers have"
    COMPARED = "the target's own; a window with statements or tables that see it is refused if the source's is another"
    STORAGE = "the target's own: how a table is stored, not what it holds; told if the source's is another"
    STRICTER = "the target's own: where it forbids a statement, the server's error stops the lane"
    WITHOUT_EFFECT = "changes nothing of a statement that is logged"


class Globals(NamedTuple):
    """The global variables of a server, by name in lower case, and its version's numbers."""

    values: Mapping[str, str]
    number: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Sight:
    """Which texts see a variable."""

    sees: Callable[[str], bool]
    """Of a text as ``plain`` writes it."""
    hint: re.Pattern[bytes]
    """Occurs in each text that sees it, as it is logged."""
    expressions: bool = True
    """An expression of a table sees it, too: of a generated column, a key, or, where statements write, a default."""
    lax_only: bool = False
    """Only without strict modes: with them the difference is an error."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable and its fate."""

    name: str
    fate: Fate
    flavors: frozenset[Flavor] = frozenset(Flavor)
    """The families that have it."""
    sight: Sight | None = None
    """For COMPARED and STORAGE."""
    absent: str | None = None
    """What a server that does not have it does; None: nothing that can be compared."""
    value: Callable[[str], str] = str.upper
    """What of its value matters."""
    only_less: bool = False
    """Only a target with a smaller number does something else."""
    since: tuple[int, int, int] | None = None
    """The first MariaDB whose value says this; before, ``absent`` holds."""
    is_renewed: bool = False
    """Lanes set it to the server's present global value: sessions keep the one with which they began."""

    def differing(self, source: Globals, target: Globals) -> tuple[str, str] | None:
        """The servers' global values, if a text may do something else by the target's. None if they are alike."""
        ours, theirs = self._of(source), self._of(target)
        if ours is None or theirs is None or self.value(ours) == self.value(theirs):
            return None
        return None if self.only_less and int(ours) < int(theirs) else (ours, theirs)

    def _of(self, server: Globals) -> str | None:
        is_older = self.since is not None and server.number < self.since
        return self.absent if is_older else server.values.get(self.name, self.absent)


_STRICT: Final = 1 << 21 | 1 << 22
"""STRICT_TRANS_TABLES and STRICT_ALL_TABLES."""


def is_lax(context: SessionContext) -> bool:
    """Whether the session has no strict mode, or the log does not tell."""
    return not (context.sql_mode or 0) & _STRICT


def plain(tokens: Sequence[Token]) -> str:
    """A text as words in capitals and symbols, with ``?`` for each literal, variable and quoted name; one in front of a
    parenthesis, which may be that of a function, is there in capitals and backquotes."""
    return " ".join(token.upper or _plain(tokens, at) for at, token in enumerate(tokens))


def _plain(tokens: Sequence[Token], at: int) -> str:
    if tokens[at].kind is TokenKind.SYMBOL:
        return tokens[at].text
    name = called_name(tokens, at)
    return f"`{name}`" if _NAME.fullmatch(name) is not None else "?"


_NAME: Final = re.compile(r"\w+", re.ASCII)
_CALLED: Final = re.compile(r"`\w+`", re.ASCII)
_GRAMMAR: Final = frozenset(
    {"GROUP_CONCAT", "INSERT", "JSON_ARRAYAGG", "JSON_OBJECTAGG", "REPEAT", "REPLACE", "WEIGHT_STRING"}
)
"""Functions that are words of the grammar: a quoted one is another name, of a table, a key or a stored function (tried
on MySQL 9.7 and MariaDB 10.11)."""


def _matching(pattern: str, hint: str, **changes: bool) -> Sight:
    """Of words; a quoted name is none."""
    found = re.compile(pattern)
    return Sight(
        lambda text: found.search(_CALLED.sub("?", text)) is not None, re.compile(hint.encode(), re.I), **changes
    )


def calls_of(*names: str, **changes: bool) -> Sight:
    """Of these functions, of which those that are no words of the grammar may be quoted."""
    quoted = "|".join(name for name in names if name not in _GRAMMAR)
    either = "|".join(names)
    calls = re.compile(rf"(?:\b(?:{either})|`(?:{quoted})`) \(" if quoted else rf"\b(?:{either}) \(")
    return Sight(lambda text: calls.search(text) is not None, re.compile(either.encode(), re.I), **changes)


def _sees_week(text: str) -> bool:
    """WEEK() with one argument, or EXTRACT(WEEK FROM ..): with two the mode of the week is in the text. A quoted one is
    a function to MariaDB."""
    if re.search(r"\bEXTRACT \( WEEK FROM\b", text) is not None:
        return True
    return any(_has_one_argument(text, match.end()) for match in re.finditer(r"\bWEEK`? \(", text))


def _has_one_argument(text: str, at: int) -> bool:
    depth = 0
    for character in text[at:]:
        if depth == 0 and character in ",)":
            return character == ")"
        depth += (character == "(") - (character == ")")
    return True


_TABLE: Final = r"^CREATE (?:OR REPLACE )?(?:TEMPORARY )?TABLE\b"
_WITHOUT_ENGINE: Final = r"(?!.*\bENGINE\b)(?!.*\bLIKE\b)"
_NEW_TABLE: Final = _matching(_TABLE, "table", expressions=False)
_EVERY: Final = _matching("", "", expressions=False)
_DIVISION: Final = _matching(r"/|\b(?:AVG|STD|STDDEV\w*|VAR_\w+|VARIANCE) ?\(", "/|avg|std|var")
_RECURSION: Final = _matching(r"\bWITH RECURSIVE\b", "recursive", expressions=False)
_FULLTEXT: Final = _matching(r"\b(?:MATCH|FULLTEXT)\b", "match|fulltext", expressions=False)
_REGEXP: Final = Sight(
    # the functions may be quoted
    lambda text: re.search(r"(?<!`)\bR(?:LIKE|EGEXP)\b|\bREGEXP_\w+", text) is not None,
    re.compile(rb"rlike|regexp", re.I),
)
_MYSQL: Final = frozenset({Flavor.MYSQL})
_MARIADB: Final = frozenset({Flavor.MARIADB})
_UTF8: Final = "UTF8_IS_UTF8MB3"
_ZERO_DATE: Final = "ZERO_DATE_TIME_CAST"


def _flag(name: str) -> Callable[[str], str]:
    return lambda value: name if name in value.upper().split(",") else ""


def _kind(engine: str) -> str:
    """What a rollback leaves of a table; nothing: MariaDB takes default_storage_engine."""
    return "" if engine.lower() in ("", *TRANSACTIONAL_ENGINES) else engine.upper()


def _all(
    fate: Fate, *names: str, flavors: frozenset[Flavor] = frozenset(Flavor), is_renewed: bool = False
) -> list[Variable]:
    return [Variable(name, fate, flavors, is_renewed=is_renewed) for name in names]


_COMPARED: Final = (
    Variable(
        "default_week_format", Fate.COMPARED, sight=Sight(_sees_week, re.compile(rb"week", re.I)), is_renewed=True
    ),
    Variable("div_precision_increment", Fate.COMPARED, sight=_DIVISION, is_renewed=True),
    Variable(
        "group_concat_max_len",
        Fate.COMPARED,
        sight=calls_of("GROUP_CONCAT", "JSON_ARRAYAGG", "JSON_OBJECTAGG"),
        is_renewed=True,
    ),
    Variable(
        "max_sort_length",
        Fate.COMPARED,
        sight=_matching(r"\b(?:ORDER BY|GROUP BY|DISTINCT)\b", "order|group|distinct", expressions=False),
        is_renewed=True,
    ),
    Variable(
        "block_encryption_mode",
        Fate.COMPARED,
        sight=calls_of("AES_ENCRYPT", "AES_DECRYPT"),
        absent="aes-128-ecb",
        is_renewed=True,
    ),
    Variable(
        "default_regex_flags",
        Fate.COMPARED,
        _MARIADB,
        _REGEXP,
        is_renewed=True,
    ),
    Variable(
        "windowing_use_high_precision",
        Fate.COMPARED,
        _MYSQL,
        _matching(r"\bOVER\b", "over", expressions=False),
        is_renewed=True,
    ),
    Variable("cte_max_recursion_depth", Fate.COMPARED, _MYSQL, _RECURSION, is_renewed=True),
    Variable("max_recursive_iterations", Fate.COMPARED, _MARIADB, _RECURSION, is_renewed=True),
    # the flag came with 10.6; before, and on MySQL, utf8 always means this
    Variable(
        "old_mode",
        Fate.COMPARED,
        _MARIADB,
        _matching(r"\b_?UTF8(?:_\w+)?\b", "utf8", expressions=False),
        absent=_UTF8,
        value=_flag(_UTF8),
        since=(10, 6, 0),
        is_renewed=True,
    ),
    Variable("old_mode", Fate.COMPARED, _MARIADB, _EVERY, absent="", value=_flag(_ZERO_DATE), is_renewed=True),
    Variable(
        "default_tmp_storage_engine",
        Fate.COMPARED,
        sight=_matching(rf"^CREATE (?:OR REPLACE )?TEMPORARY TABLE\b{_WITHOUT_ENGINE}", "temporary", expressions=False),
        value=_kind,
        is_renewed=True,
    ),
    Variable("innodb_ft_enable_stopword", Fate.COMPARED, sight=_FULLTEXT, is_renewed=True),
    *(
        Variable(name, Fate.COMPARED, sight=_FULLTEXT)
        for name in (
            *("innodb_ft_min_token_size", "innodb_ft_max_token_size", "innodb_ft_server_stopword_table"),
            *("ft_min_word_len", "ft_max_word_len", "ft_stopword_file", "ft_boolean_syntax", "ngram_token_size"),
        )
    ),
    Variable(
        "max_allowed_packet",
        Fate.COMPARED,
        sight=calls_of(
            *("REPEAT", "SPACE", "LPAD", "RPAD", "CONCAT", "CONCAT_WS", "GROUP_CONCAT", "REPLACE", "INSERT", "HEX"),
            *("UNHEX", "TO_BASE64", "FROM_BASE64", "UNCOMPRESS", "EXPORT_SET", "MAKE_SET", "WEIGHT_STRING", "QUOTE"),
            lax_only=True,
        ),
        only_less=True,
    ),
)
_STORAGE: Final = (
    Variable(
        "default_storage_engine",
        Fate.STORAGE,
        sight=_matching(rf"{_TABLE}{_WITHOUT_ENGINE}", "table", expressions=False),
        is_renewed=True,
    ),
    Variable("innodb_default_row_format", Fate.STORAGE, sight=_NEW_TABLE),
    Variable("innodb_file_per_table", Fate.STORAGE, sight=_NEW_TABLE),
    Variable("innodb_compression_default", Fate.STORAGE, _MARIADB, _NEW_TABLE, is_renewed=True),
    Variable("mysql56_temporal_format", Fate.STORAGE, _MARIADB, _NEW_TABLE),
)
VARIABLES: Final = (
    *_COMPARED,
    *_STORAGE,
    *_all(
        Fate.LOGGED,
        *("lc_time_names", "time_zone", "foreign_key_checks", "unique_checks", "sql_auto_is_null"),
        *("explicit_defaults_for_timestamp", "collation_connection"),
    ),
    *_all(
        Fate.LOGGED,
        "default_collation_for_utf8mb4",
        "sql_require_primary_key",
        "default_table_encryption",
        flavors=_MYSQL,
    ),
    *_all(
        Fate.LOGGED,
        *("check_constraint_checks", "sql_if_exists", "system_versioning_insert_history", "character_set_collations"),
        flavors=_MARIADB,
    ),
    *_all(Fate.IN_TEXT, "sql_generate_invisible_primary_key", flavors=_MYSQL),
    *_all(Fate.SET, "restrict_fk_on_non_standard_key", flavors=_MYSQL),
    *_all(Fate.SET, *("sql_safe_updates", "sql_big_selects", "max_join_size", "updatable_views_with_limit")),
    *_all(Fate.SET, "sql_select_limit"),
    *_all(
        Fate.SET,
        *("system_versioning_alter_history", "system_versioning_asof", "alter_algorithm"),
        flavors=_MARIADB,
    ),
    *_all(Fate.STRICTER, "innodb_strict_mode", is_renewed=True),
    *_all(Fate.WITHOUT_EFFECT, "optimizer_switch"),
    *_all(Fate.WITHOUT_EFFECT, "note_verbosity", flavors=_MARIADB),
    *_all(Fate.WITHOUT_EFFECT, "show_create_table_skip_secondary_engine", flavors=_MYSQL),
)
"""In the order of their findings. ``sql_mode``, ``auto_increment_*``, ``timestamp`` and other values that every log has
are ``apply.session.context``'s alone."""


_OWN: Final = (
    *_COMPARED,
    Variable("default_storage_engine", Fate.STORAGE, value=_kind),
    Variable("enforce_storage_engine", Fate.STORAGE, _MARIADB),
    Variable("mysql56_temporal_format", Fate.STORAGE, _MARIADB),
    Variable("explicit_defaults_for_timestamp", Fate.LOGGED, _MARIADB),
    Variable("time_zone", Fate.LOGGED),
    # of these, what the session that opens a table decides for all
    Variable("lc_time_names", Fate.LOGGED),
    Variable("sql_mode", Fate.LOGGED, value=_flag("NO_UNSIGNED_SUBTRACTION")),
)
"""Those whose global value on the target may decide what a window does there. A check has passed with it, and SET
GLOBAL, by which it may have got there, ends with the server's next start."""


def own_values(
    values: Mapping[str, str], flavor: Flavor, sees: Callable[[Sight], bool] = lambda _: True
) -> dict[str, str]:
    """Of a target's global variables those that may decide what a window does. ``sees``: whether a text of the window
    has a sight."""
    found = (each for each in _OWN if flavor in each.flavors and each.name in values)
    return {each.name: values[each.name] for each in found if each.sight is None or sees(each.sight)}


def other_values(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Of ``own_values`` of before and of now: name, value of before, value of now, where the two may differ in what
    they do. A variable that there is no more has the value ""."""
    for each in _OWN:
        ours, theirs = before.get(each.name), now.get(each.name, "")
        if ours is None or each.value(ours) == each.value(theirs):
            continue
        if not (each.only_less and theirs and int(ours) < int(theirs)):
            yield each.name, ours, theirs


def leaves_timestamps_open(tokens: Sequence[Token]) -> bool:
    """Whether a CREATE or ALTER TABLE leaves to ``explicit_defaults_for_timestamp`` whether a TIMESTAMP takes NULL, or
    what its default is: without NULL, and without NOT NULL and a DEFAULT."""
    return next(open_timestamps(tokens), None) is not None


def open_timestamps(tokens: Sequence[Token]) -> Iterator[tuple[int, bool]]:
    """Where such a type TIMESTAMP stands, and whether the column has NOT NULL."""
    for at, said in _timestamps(tokens):
        is_told = "NULL" in said and ("NOT" not in said or "DEFAULT" in said)
        if not is_told and said.isdisjoint({"AS", "GENERATED"}):
            yield at, "NOT" in said


def timestamps_not_null(tokens: Sequence[Token]) -> Iterator[str]:
    """The TIMESTAMP columns that a CREATE or ALTER TABLE says NOT NULL of, in lower case."""
    return (tokens[at - 1].text.lower() for at, said in _timestamps(tokens) if "NOT" in said)


def _timestamps(tokens: Sequence[Token]) -> Iterator[tuple[int, frozenset[str]]]:
    """Where a column's type TIMESTAMP stands, and the words behind it."""
    words = [token.upper for token in tokens]
    if words[:1] not in (["CREATE"], ["ALTER"]) or "TABLE" not in words[1:6]:
        return
    for at, word in enumerate(words):
        if at and word == "TIMESTAMP" and is_name(tokens[at - 1]):
            yield at, _said(tokens[at + 1 :])


def _said(behind: Sequence[Token]) -> frozenset[str]:
    """The words of a column's definition. ``behind``: what follows its type."""
    said, depth = set[str](), 0
    for token in behind:
        depth += is_symbol(token, "(") - is_symbol(token, ")")
        if depth < 0 or (depth == 0 and is_symbol(token, ",")):
            break
        if depth == 0:
            said.add(token.upper)
    return frozenset(said)
