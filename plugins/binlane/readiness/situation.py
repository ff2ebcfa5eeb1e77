"""What every check of readiness looks at: a channel, its two servers, and what there is to copy.

A ``Readiness`` is frozen. Facts are read when a check asks for them first, each once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine

from binlane.apply.refusals import driver_errors
from binlane.bootstrap.account_copy import Accounts, names_of, read_accounts
from binlane.bootstrap.copy_checks import chosen_databases
from binlane.bootstrap.definition_copy import Definition, read_programs, read_tables
from binlane.bootstrap.sessions import read_session
from binlane.config import ChannelConfig
from binlane.connections import Endpoint
from binlane.errors import PrecheckError
from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition, SchemaObject, SessionContext
from binlane.precheck.situation.facts import Server, Target
from binlane.precheck.situation.situation import Needs, TargetSituation
from binlane.readiness.needs import channel_needs
from binlane.safe_text import shown
from binlane.schema.model import Schema
from binlane.servers.catalog import read_databases, read_schema
from binlane.shards.renaming import Renaming
from binlane.shards.selection import Extent, Selection
from binlane.source.protocol import EventSource
from binlane.source.server import translated
from binlane.sql.charset import decoded, definition_context
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.analyze import analyze
from binlane.sql.parse.lexer import Dialect, Token, Unreadable, lex
from binlane.sql.requirements import Requirement, requirements_of
from binlane.state.channels import has_channel
from binlane.state.records.bootstraps import has_bootstrap

_Question = ParamSpec("_Question")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class ReadinessRequest:
    """For what readiness is asked."""

    copies: bool = True
    """For a first copy."""
    may_begin: bool = False
    """The channel may also begin without it, over data that the target has."""
    windows: bool = True
    """For everything that may be in a window; else for what is in every one."""
    users: bool = False
    """Accounts are copied, or created by the log."""
    databases: tuple[str, ...] = ("*",)
    """Of ``--databases``."""
    connections: int = 0
    """How many a first copy opens on the target."""
    replaces: bool = False
    """The first copy drops the databases of the target, or the restore keeps them under other names (``--replace``):
    their events are gone before the channel writes there."""
    made: tuple[str, ...] = ()
    """The databases that a restore makes on the target. It ends at a place of the log that is there."""


class SourceServer(Server):
    """A live source, and its place in the channel."""

    def __init__(self, engine: Engine, endpoint: Endpoint, log: EventSource) -> None:
        super().__init__(engine)
        self.endpoint = endpoint
        self.log = log

    def ask(
        self,
        question: Callable[Concatenate[Connection, _Question], _Answer],
        *arguments: _Question.args,
        **named: _Question.kwargs,
    ) -> _Answer:
        """See ``Server``. Raises SourceError and its kin."""
        with translated(str(self.endpoint)), driver_errors():
            return super().ask(question, *arguments, **named)


class _HeldStatement(LoggedText):
    """A statement that makes what the source holds now."""

    __slots__ = ()

    @property
    def where(self) -> str:
        return f"source: {shown(self.sql)}"


@dataclass(frozen=True)
class Readiness:
    """A channel before its first write."""

    channel: ChannelConfig
    source: SourceServer | None
    """None for an archive."""
    target: Target
    endpoint: Endpoint
    """The target's."""
    asked: ReadinessRequest
    read_rules: Callable[[Target], tuple[Selection, Renaming]]
    """The channel's filter and renames, by the target's settings."""

    def for_account(self, grant_lines: Sequence[str]) -> Readiness:
        """The same channel, as if the target's account held exactly these grants."""
        return replace(self, target=self.target.holding(grant_lines))

    @property
    def place(self) -> str:
        """The target's name, for errors."""
        return str(self.endpoint)

    @cached_property
    def rules(self) -> tuple[Selection, Renaming]:
        """The channel's filter and renames."""
        return self.read_rules(self.target)

    @cached_property
    def databases(self) -> tuple[str, ...]:
        """The databases of the source that the channel takes, or that are copied. None of an archive is known."""
        if self.source is None:
            return ()
        selection, _ = self.rules
        present = self.source.ask(read_databases)
        taken = [name for name in present if selection.database(name)[0] is not Extent.NONE]
        return chosen_databases(taken, self.asked.databases)

    @cached_property
    def needs(self) -> Needs:
        """What the windows and the first copy ask of the target."""
        asked, names = self.asked, frozenset[str]()
        if asked.made:
            names = frozenset(asked.made)
        elif asked.copies or asked.windows:
            _, renaming = self.rules
            names = frozenset(map(renaming.target, self.databases))
        needs = channel_needs(
            self.channel, names, copies=asked.copies, windows=asked.windows, users=asked.users,
            connections=asked.connections,
        )  # fmt: skip
        return replace(needs, allow_events=asked.replaces)

    @property
    def of_target(self) -> TargetSituation:
        """What the precheck's own checks of a target look at."""
        return TargetSituation(self.target, self.needs)

    @cached_property
    def schema(self) -> Schema:
        """The definitions of the tables that are copied."""
        assert self.source is not None
        selection, _ = self.rules
        found = self.source.ask(read_schema, self.databases)
        tables = {key: table for key, table in found.tables.items() if selection.table(key) is None}
        return replace(found, tables=tables)

    @cached_property
    def programs(self) -> tuple[Definition, ...]:
        """Views, routines, triggers and events that are copied."""
        assert self.source is not None
        with contextlib.closing(read_session(self.source.endpoint)) as session:
            return read_programs(session, self.databases, self.schema.tables, may_go=True)

    @cached_property
    def table_definitions(self) -> tuple[Definition, ...]:
        """The statements that make the tables and sequences that are copied."""
        assert self.source is not None
        with contextlib.closing(read_session(self.source.endpoint)) as session:
            return read_tables(session, self.databases, self.schema.tables, may_go=True)

    @cached_property
    def requirements(self) -> Mapping[SchemaObject, frozenset[Requirement]]:
        """What the views, routines, triggers and events ask of a server."""
        found: dict[SchemaObject, frozenset[Requirement]] = {}
        for program in self.programs:
            dialect = self._dialect(program.sql_mode)
            sql = decoded(program.statement, definition_context(program.sql_mode, program.client))
            facts = analyze(
                sql,
                database=program.database,
                sql_mode_ansi_quotes=dialect.ansi_quotes,
                no_backslash_escapes=dialect.no_backslash_escapes,
                flavor=dialect.flavor,
            )
            found[program.schema_object] = requirements_of(sql, facts, dialect)
        return found

    @cached_property
    def collations(self) -> frozenset[str]:
        """The collations that the target knows."""
        return self.target.ask(read_schema, ()).collations

    @cached_property
    def finds_its_own(self) -> bool:
        """The target already holds what this copy writes, or drops: it goes on with an earlier attempt, or replaces."""
        return self.asked.replaces or self.target.ask(has_bootstrap, self.channel.name)

    @cached_property
    def exists(self) -> bool:
        """The channel has begun on this target."""
        return self.target.ask(has_channel, self.channel.name)

    @cached_property
    def accounts(self) -> Accounts:
        """The source's accounts and roles that the target lacks; none if they are not copied. Needs SELECT on ``mysql``
        of both servers."""
        assert self.source is not None
        if not self.asked.users:
            return Accounts((), ())
        with contextlib.closing(read_session(self.source.endpoint)) as session:
            found = read_accounts(session)
        present = self.target.rows("SELECT user, host FROM mysql.user")
        return found.without(names_of((str(user), str(host)) for user, host in present))

    @cached_property
    def account_statements(self) -> tuple[LoggedText, ...]:
        """The statements that make the accounts and give them their privileges, in this order."""
        found = []
        for _, statement in (*self.accounts.made, *self.accounts.grants):
            sql = decoded(statement, definition_context(""))
            dialect, tokens, places = self._dialect(""), list[Token](), list[tuple[int, int]]()
            try:
                lex(sql, dialect, tokens, places)
            except Unreadable as exc:
                raise PrecheckError(f"source: {shown(sql)}: cannot be read: {exc}; leave accounts out") from exc
            found.append(_HeldStatement(0, LogPosition("", 0), sql, tokens, SessionContext(), dialect.flavor, places))
        return tuple(found)

    def _dialect(self, sql_mode: str) -> Dialect:
        assert self.source is not None
        modes = sql_mode.split(",")
        return Dialect(self.source.flavor, "ANSI_QUOTES" in modes, "NO_BACKSLASH_ESCAPES" in modes)
