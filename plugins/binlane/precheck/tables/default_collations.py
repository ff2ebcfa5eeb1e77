"""Default collations of databases, where a statement of the window makes something that has its database's.

CREATE TABLE without a character set takes its database's default, on either server its own: no log says it. The file of
a LOAD DATA without one is read in the character set of the session's database. The source
tells its default of now, which is that of the statement unless the log behind the window alters the database. What the
statement has made tells it, too: an ALTER DATABASE alters no table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.precheck.situation.finding import Finding
from binlane.precheck.situation.situation import DefaultCollation, Situation
from binlane.schema.compare import Severity
from binlane.schema.letter_case import lower
from binlane.schema.normalize import charset_name
from binlane.servers.catalog import read_table_collation
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.facts import StatementKind
from binlane.sql.requirements import DATABASE_CHARSET, DATABASE_DEFAULT, DATABASE_SET

_DATABASE = frozenset({"DATABASE", "SCHEMA"})
_HEAD = 4
"""Words of a statement that say what it is about: CREATE OR REPLACE DATABASE."""


def check_default_collations(situation: Situation) -> Iterator[Finding]:
    """Databases whose default collation differs on the target, where a statement depends on it.

    A database that the window makes, alters or drops is passed over: what it was meanwhile, neither server knows. Of a
    default that the target does not know (another family's) the log is told only. An archive tells of none.
    """
    past = _Past(situation)
    asked = _asked(situation, DATABASE_DEFAULT)
    for each in situation.default_collations(asked):
        yield from past.findings(each, asked[each.name])
    loads = _asked(situation, DATABASE_CHARSET)
    for each in situation.default_collations(loads):
        yield from past.of_file(each, loads[each.name])


def _asked(situation: Situation, feature: str) -> Mapping[str, int]:
    """The databases that statements ask a default of, each with the first seqno."""
    requirements = situation.plan.requirements
    asked = {
        requirement.subject: seqno
        for requirement, first in requirements.items()
        if requirement.feature == feature and (seqno := situation.made_at(requirement, first)) is not None
    }
    for requirement in requirements:
        if requirement.feature == DATABASE_SET:
            asked.pop(requirement.subject, None)
    return asked


@dataclass(frozen=True)
class _Past:
    """What the source's databases were at the window's statements."""

    # no slots: cached_property keeps what the log has

    situation: Situation

    def findings(self, default: DefaultCollation, seqno: int) -> Iterator[Finding]:
        """Of a database whose default the statement of ``seqno`` takes."""
        key = self._table_made_at(seqno, default.name)
        made = None if key is None else self._collation(TableKey(default.source, key.table))
        if default.ours == default.expected and made in (None, default.expected):
            return
        if not self._is_altered_behind(default.source):
            if default.ours != default.expected:
                given = "as on the source"
                if default.expected != default.theirs:
                    given = f"which [collations] gives for {default.theirs}"
                yield self._finding(default, seqno, default.expected, given)
        elif made is None or key is None or self._is_named_behind(TableKey(default.source, key.table)):
            # a log that is not read tells neither; what both servers have is believed then
            if made != default.ours or self._behind is not None:
                yield self._unknown(default, seqno)
        elif default.ours != made:
            yield self._finding(default, seqno, made, f"as the source has {key}; it has altered the database since")

    def of_file(self, default: DefaultCollation, seqno: int) -> Iterator[Finding]:
        """Of a database in whose character set a LOAD DATA of ``seqno`` reads its file."""
        ours, expected = (charset_name(name.partition("_")[0]) or "" for name in (default.ours, default.expected))
        if self._is_altered_behind(default.source):
            yield self._unknown(default, seqno)
        elif ours != expected:
            todo = (
                f"the LOAD DATA of seqno {seqno} reads its file in it: ALTER DATABASE `{default.name}` CHARACTER SET "
                f"{expected} on the target, which alters none of its tables, and let such statements name the file's "
                "(CHARACTER SET behind the table)"
            )
            where = f"{default.name}: default character set"
            yield Finding(Severity.FATAL, where, f"{expected}, as on the source", ours, todo)

    def _finding(self, default: DefaultCollation, seqno: int, expected: str, why: str) -> Finding:
        todo = (
            f"the statement of seqno {seqno} makes what has the default: ALTER DATABASE `{default.name}` "
            f"CHARACTER SET {expected.split('_')[0]} COLLATE {expected} on the target, which alters none of its tables"
        )
        severity = Severity.FATAL if expected in self.situation.tables.collations else Severity.INFO
        return Finding(severity, f"{default.name}: default collation", f"{expected}, {why}", default.ours, todo)

    def _unknown(self, default: DefaultCollation, seqno: int) -> Finding:
        todo = (
            f"if {default.ours} is what the database had there, by its last CREATE or ALTER DATABASE in front of that "
            "statement, set allow_unsafe in the channel's file for this window; else ALTER DATABASE "
            f"`{default.name}` on the target to what it had"
        )
        severity = Severity.INFO if self.situation.channel.apply.allow_unsafe else Severity.FATAL
        expected = f"the source's of seqno {seqno}, which it has altered behind the window (now {default.theirs})"
        return Finding(severity, f"{default.name}: default collation", expected, default.ours, todo)

    def _table_made_at(self, seqno: int, database: str) -> TableKey | None:
        """The table that a statement makes in the database, if no later one of the window may alter it."""
        texts = self.situation.every_text
        # a trigger takes the default, too, and may stand on a table of any age
        made = (
            each.facts.first
            for each in texts
            if each.seqno == seqno and each.facts.first in each.facts.defines and not each.facts.triggered
        )
        key = next((key for key in made if key is not None and key.database == database), None)
        return None if key is None or _is_named([each for each in texts if each.seqno > seqno], key) else key

    def _collation(self, key: TableKey) -> str | None:
        """A table's default on the source, as the channel gives it; None if it is not there."""
        assert self.situation.source is not None
        collation = self.situation.source.ask(read_table_collation, key)
        return None if collation is None else self.situation.given_collation(collation)

    @cached_property
    def _behind(self) -> Sequence[LoggedText] | None:
        assert self.situation.source is not None
        return self.situation.source.definitions_behind()

    def _is_altered_behind(self, database: str) -> bool:
        return self._behind is None or any(
            not _DATABASE.isdisjoint(text.words[:_HEAD]) and lower(database) in map(lower, text.facts.databases)
            for text in self._behind
        )

    def _is_named_behind(self, key: TableKey) -> bool:
        return self._behind is None or _is_named(self._behind, key)


def _is_named(texts: Sequence[LoggedText], key: TableKey) -> bool:
    """Whether one of the statements may alter the table."""
    name = lower(str(key))
    return any(
        text.facts.kind is StatementKind.UNKNOWN or name in (lower(str(each)) for each in text.facts.tables)
        for text in texts
    )
