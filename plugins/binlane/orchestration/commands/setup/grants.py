"""``binlane grants``: the GRANT statements for a channel's two accounts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from binlane.apply.refusals import target_errors
from binlane.binlog.types.literals import quoted
from binlane.choices import Part
from binlane.config import ChannelConfig
from binlane.connections import Endpoint, Endpoints
from binlane.errors import ConfigError
from binlane.model import Flavor
from binlane.orchestration.commands.channel import load
from binlane.orchestration.extraction.window_reading import source_of
from binlane.orchestration.readiness import readiness_of
from binlane.precheck.account.privileges import EVERYWHERE, Need
from binlane.readiness.channel_grants import OF_THE_CHANNEL, merged, orders, scopes_of, servers_own, taken_back
from binlane.readiness.checks import answer
from binlane.readiness.held import check_accounts, check_definers
from binlane.readiness.needs import (
    COMPARED_ACCOUNTS,
    account_privileges,
    applies_accounts,
    channel_needs,
    source_privileges,
)
from binlane.readiness.situation import ReadinessRequest
from binlane.safe_text import one_line
from binlane.servers.greeting import Greeting, greet, other_account
from binlane.shards.renaming import Renaming
from binlane.source.server import translated

_ANY_HOST: Final = "%"
_OR_REVOKE: Final = "; or SET PERSIST partial_revokes = ON first"
_OF_WHAT_IS_THERE: Final = {
    "definers of the source's views, routines, triggers and events": check_definers,
    "granted to accounts of the source, and so on the target": check_accounts,
}

Lines = list[tuple[str, str]]
"""Statements and their reasons; a reason without a statement is a remark."""


def grants(
    name: str, folder: Path, *, compares_accounts: bool = False, copies_users: bool = False, on: Part | None = None
) -> str:
    """The statements as text, each with its reason. Queries the servers and writes nothing. ``compares_accounts``: also
    those of a verification that compares accounts; raises ConfigError for a channel that has none. ``copies_users``:
    also those of a first copy of accounts, for a channel whose windows leave accounts out."""
    channel, endpoints = load(name, folder)
    users, source = applies_accounts(channel) or copies_users, None
    if compares_accounts and (endpoints.source is None or not applies_accounts(channel)):
        raise ConfigError(
            f"{channel.file}: --accounts: expected a channel with a live source whose filter applies accounts; of "
            "others a verification compares no accounts"
        )
    if on is Part.SOURCE and endpoints.source is None:
        raise ConfigError(
            f"{channel.file}: --on source: expected a channel with source.connection, found one that reads an archive: "
            "its files need no account; use --on target"
        )
    compared = (COMPARED_ACCOUNTS,) if compares_accounts else ()
    if endpoints.source is not None:
        with translated(str(endpoints.source)):
            source = greet(endpoints.source)
            _require_own(endpoints.source, source.account)
    with target_errors(str(endpoints.target)):
        target = greet(endpoints.target)
        _require_own(endpoints.target, target.account)
    copies = source is not None and source.flavor is target.flavor and not channel.rename
    lines: list[str] = []
    if source is not None and endpoints.source is not None:
        scopes = scopes_of(channel, has_patterns=source.has_patterns)
        databases = None if scopes == (EVERYWHERE,) else OF_THE_CHANNEL
        needs = source_privileges(source.flavor, source.number, databases, copies=copies, users=users)
        given = [*_statements((*needs, *compared), scopes, source, endpoints.source), *_servers_own(channel, scopes)]
        if on is not Part.TARGET:
            lines += _server("source", endpoints.source, source, given)
    if on is Part.SOURCE:
        return "\n".join(lines)
    scopes = scopes_of(channel, Renaming(channel.rename), has_patterns=target.has_patterns)
    asked = channel_needs(channel, OF_THE_CHANNEL, copies=copies, users=users)
    of_target = tuple(account_privileges(target.flavor, target.number, asked))
    given = _statements((*of_target, *compared), scopes, target, endpoints.target)
    if source is not None and copies:
        held = [statement for statement, _ in given]
        given += _for_what_is_there(channel, endpoints, held, (source, target), users=users)
    if not users and scopes == (EVERYWHERE,):
        given += _without_accounts(channel.name, of_target, target, endpoints.target)
    given += _servers_own(channel, scopes)
    lines += _server("target", endpoints.target, target, given)
    return "\n".join(lines)


def _require_own(endpoint: Endpoint, account: str | None) -> None:
    """No statement is printed that gives privileges to another account than the login's, whose name the server tells:
    an administrator runs what is printed. Raises ConfigError."""
    if account is not None and (found := other_account(endpoint, account)) is not None:
        expected, told = found
        raise ConfigError(
            f"{endpoint}: expected {expected}, found {told}: no statements are printed for it; look at host, port and "
            "ssl_mode of the connection, or give the privileges of docs/accounts.md by hand"
        )


def _statements(needs: Iterable[Need], scopes: Sequence[str], greeting: Greeting, endpoint: Endpoint) -> Lines:
    account = greeting.account or f"{endpoint.user}@{_ANY_HOST}"
    return [(str(order), why) for order, why in orders(needs, scopes, account)]


def _server(part: str, endpoint: Endpoint, greeting: Greeting, statements: Lines) -> Iterator[str]:
    yield f"-- {part}: {one_line(str(endpoint))}, {greeting.flavor} {one_line(greeting.version)}"
    if greeting.account is None:
        yield f"-- the account cannot log in yet: {one_line(greeting.refusal)}"
    if greeting.lacks_account:
        yield f"-- CREATE USER {quoted(endpoint.user)}@'{_ANY_HOST}' IDENTIFIED BY '...';"
    for statement, why in statements:
        yield f"{one_line(statement)};  -- {why}" if statement else f"-- {why}"
    yield ""


def _without_accounts(channel: str, needs: Iterable[Need], target: Greeting, endpoint: Endpoint) -> Lines:
    """What keeps an account with privileges on all databases from changing accounts, which are rows of ``mysql``."""
    why = "accounts are rows of mysql.*, and the channel leaves accounts alone"
    if target.flavor is Flavor.MYSQL and not target.has_patterns:
        account = target.account or f"{endpoint.user}@{_ANY_HOST}"
        return [(str(each), why) for each in taken_back(needs, "mysql", account)]
    way = (
        f"name the channel's databases in filter.include_databases, and run `binlane grants {channel}` again"
        f"{_OR_REVOKE}"
    )
    if target.flavor is Flavor.MARIADB:
        way = way.removesuffix(_OR_REVOKE)
    return [("", f"INSERT, UPDATE and DELETE on *.* include mysql.*: {why}; to keep it from them, {way}")]


def _servers_own(channel: ChannelConfig, scopes: Sequence[str]) -> Lines:
    """That a pattern gives more than the channel takes; of all databases ``_without_accounts`` speaks."""
    if tuple(scopes) == (EVERYWHERE,):
        return []
    return [
        ("", f"{pattern!r} of the filter includes {own}.*, a database of the server's own, in what is granted above "
             "(of mysql: the rows that are accounts): name the channel's databases, or give a longer pattern")
        for pattern, own in servers_own(channel)
    ]  # fmt: skip


def _for_what_is_there(
    channel: ChannelConfig, endpoints: Endpoints, given: Sequence[str], greetings: Sequence[Greeting], *, users: bool
) -> Lines:
    """Further privileges, beside ``given``, for the definers and accounts of the source."""
    option = " --users" if users and not applies_accounts(channel) else ""
    again = f"run `binlane grants {channel.name}{option}` again when both accounts can log in and hold these grants"
    if any(each.account is None for each in greetings):
        return [("", f"definers and accounts of the source: not read yet; {again}")]
    lines: Lines = []
    asked = ReadinessRequest(users=users)
    with readiness_of(channel, endpoints, source_of(channel, endpoints), asked) as found:
        situation = found.for_account(given)
        # what it says now is what the statements name
        _require_own(endpoints.target, situation.target.account)
        for why, check in _OF_WHAT_IS_THERE.items():
            findings = answer(why, check, situation).findings
            lines += [(str(each), why) for each in merged(mend for one in findings for mend in one.mend)]
            # by hand: a role's administrator; or a privilege above is not granted yet
            lines += [("", f"{why}: {one_line(finding.found)}; {again}") for finding in findings if not finding.mend]
    return lines
