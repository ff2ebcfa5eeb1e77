"""Options of accounts on servers of other versions or families: read from SHOW CREATE USER, compared by meaning.

Compared are those that both families have: TLS, limits of resources, lock, expiry of the password. Of a password it is
compared whether there is one, and the hash where both accounts have the same plugin. What one of the two families
alone has is named as not compared, where an account has it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Final

from binlane.lazy_dataclass import dataclass

_STRING: Final = r"'(?:[^'\\]|''|\\.)*'"
_LIMITS: Final = (
    *("MAX_QUERIES_PER_HOUR", "MAX_UPDATES_PER_HOUR", "MAX_CONNECTIONS_PER_HOUR", "MAX_USER_CONNECTIONS"),
)
_OF_ONE: Final = (
    *("MAX_STATEMENT_TIME", "PASSWORD HISTORY", "PASSWORD REUSE INTERVAL", "PASSWORD REQUIRE CURRENT"),
    *("FAILED_LOGIN_ATTEMPTS", "PASSWORD_LOCK_TIME", "ATTRIBUTE"),
)
"""Options of one family alone."""
_ROLE: Final = "DEFAULT ROLE"
"""Of both families; MariaDB shows it among the privileges."""
_OPTIONS: Final = re.compile(
    rf"{_STRING}|`(?:[^`]|``)*`|"
    rf"\b(?P<name>REQUIRE|{'|'.join((*_LIMITS, *_OF_ONE, _ROLE))}|ACCOUNT|PASSWORD EXPIRE)\b",
    re.DOTALL,
)
_TLS: Final = re.compile(rf"\b(SUBJECT|ISSUER|CIPHER) ({_STRING})", re.DOTALL)
_SECRET: Final = rf"(?P<secret>{_STRING}|0x[0-9A-Fa-f]*)"
_MYSQL_PLUGIN: Final = re.compile(rf"IDENTIFIED WITH '(?P<plugin>\w+)'(?: AS {_SECRET})?", re.DOTALL)
_MARIADB_PASSWORD: Final = re.compile(rf"IDENTIFIED BY PASSWORD {_SECRET}", re.DOTALL)
_MARIADB_PLUGINS: Final = re.compile(rf"IDENTIFIED VIA (?P<ways>(?:\w+(?: USING {_STRING})?(?: OR )?)+)", re.DOTALL)
_WAY: Final = re.compile(rf"(?P<plugin>(?<!\w)\w++)(?: USING {_SECRET})?(?: OR |$)", re.DOTALL)
_NATIVE: Final = "mysql_native_password"
_TAKES_NOTHING: Final = frozenset({_NATIVE, "caching_sha2_password", "sha256_password"})
"""Plugins that let everybody in if there is no hash."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to log in."""

    plugin: str
    secret: bytes
    """For comparison only: never in a message."""


@dataclass(frozen=True)
class AccountOptions:
    """The options of one account. ``repr`` shows no secret."""

    statement: str
    """SHOW CREATE USER, with its hashes: never in a message."""

    def __repr__(self) -> str:
        return "AccountOptions(...)"

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """How to log in; of an account without a password, which everybody may use, none."""
        return tuple(way for way in self._ways() if way.secret or way.plugin not in _TAKES_NOTHING)

    def _ways(self) -> Iterator[Way]:
        if (found := _MYSQL_PLUGIN.search(self.statement)) is not None:
            yield Way(found["plugin"], _bytes(found["secret"]))
        elif (found := _MARIADB_PASSWORD.search(self.statement)) is not None:
            yield Way(_NATIVE, _bytes(found["secret"]))
        elif (found := _MARIADB_PLUGINS.search(self.statement)) is not None:
            for way in _WAY.finditer(found["ways"]):
                yield Way(way["plugin"], _bytes(way["secret"]))

    @cached_property
    def options(self) -> Mapping[str, str]:
        """The options that are not their default, by the words that ALTER USER has for them."""
        found = {name: text for name, text in self._given() if text not in _DEFAULTS.get(name, _DEFAULT)}
        if "REQUIRE" in found:
            parts = sorted(f"{name} {text}" for name, text in _TLS.findall(found["REQUIRE"]))
            found["REQUIRE"] = " AND ".join(parts) or found["REQUIRE"].split()[0]
        return found

    def _given(self) -> Iterator[tuple[str, str]]:
        names = [each for each in _OPTIONS.finditer(self.statement) if each["name"]]
        for at, each in enumerate(names):
            end = names[at + 1].start() if at + 1 < len(names) else len(self.statement)
            yield each["name"], self.statement[each.end() : end].removesuffix(" WITH ").strip()


@dataclass(frozen=True, slots=True)
class OptionDifference:
    """An option that differs; None: its default."""

    what: str
    source: str | None
    target: str | None
    statement: str
    """Empty: nobody but an operator knows it."""


def differing_options(
    ours: AccountOptions, theirs: AccountOptions, account: str, *, same_family: bool
) -> Iterator[OptionDifference]:
    """Those that both servers have. ``account``: as the target's statements name it."""
    for name in (*_COMPARED, *(_OF_ONE if same_family else ())):
        mine, other = ours.options.get(name), theirs.options.get(name)
        if mine != other:
            value = _RESET.get(name) if mine is None else mine
            words = f"{'WITH ' if name in _WITH else ''}{name} {value}".strip()
            yield OptionDifference(name, mine, other, "" if value is None else f"ALTER USER {account} {words}")


def options_of_one(options: AccountOptions) -> str:
    """The options that an account has and that the other family does not know; empty: none."""
    return " ".join(f"{name} {text}" for name, text in options.options.items() if name in _OF_ONE)


def password_difference(ours: AccountOptions, theirs: AccountOptions) -> OptionDifference | None:
    """Another password, where that can be told: one account has none, or both have the same plugins."""
    mine, other = ours.ways, theirs.ways
    if bool(mine) != bool(other):
        texts = ["one" if each else "none" for each in (mine, other)]
        return OptionDifference("password", texts[0], texts[1], "")
    if _plugins(mine) == _plugins(other) and mine != other:
        return OptionDifference("password hash", "one", "another one", "")
    return None


def password_not_compared(ours: AccountOptions, theirs: AccountOptions, known: Collection[str]) -> str:
    """Why passwords prove nothing; empty: they were compared. ``known``: plugins of the target, in lower case."""
    mine, other = _plugins(ours.ways), _plugins(theirs.ways)
    if not mine or not other or mine == other:
        return ""
    lacking = ", ".join(name for name in mine if name not in known)
    names = " or ".join(mine), " or ".join(other)
    why = f"the target has no plugin {lacking}" if lacking else "a hash of one plugin says nothing of another's"
    return f"source {names[0]}, target {names[1]}: {why}"


def _plugins(ways: Collection[Way]) -> tuple[str, ...]:
    return tuple(way.plugin for way in ways)


def _bytes(secret: str | None) -> bytes:
    if not secret:
        return b""
    if secret.startswith("0x"):
        return bytes.fromhex(secret[2:])
    return secret[1:-1].encode()


_COMPARED: Final = ("REQUIRE", *_LIMITS, "ACCOUNT", "PASSWORD EXPIRE")
_RESET: Final[Mapping[str, str]] = {
    "REQUIRE": "NONE",
    **dict.fromkeys(_LIMITS, "0"),
    "ACCOUNT": "UNLOCK",
    "PASSWORD EXPIRE": "DEFAULT",
    **dict.fromkeys(("PASSWORD HISTORY", "PASSWORD REUSE INTERVAL", "PASSWORD REQUIRE CURRENT"), "DEFAULT"),
    **dict.fromkeys(("MAX_STATEMENT_TIME", "FAILED_LOGIN_ATTEMPTS", "PASSWORD_LOCK_TIME"), "0"),
}
"""The words of the default; an attribute has none."""
_WITH: Final = frozenset({*_LIMITS, "MAX_STATEMENT_TIME"})
_DEFAULT: Final = frozenset({"DEFAULT"})
_DEFAULTS: Final[Mapping[str, frozenset[str]]] = {
    **{name: frozenset({word}) for name, word in _RESET.items()},
    "MAX_STATEMENT_TIME": frozenset({"0", "0.000000"}),
    _ROLE: frozenset({"NONE"}),
}
