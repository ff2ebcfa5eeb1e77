"""What binlane does not read to its end is not sent: no attack stands behind a construct that no reader knows."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from typing import Final

import pytest

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import transactions
from binlane.errors import UnsupportedEventError
from binlane.model import Flavor
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.plan.transaction.decode import LogFormat, dissect, statement_facts
from binlane.plan.transaction.parts import StatementPart
from binlane.shards.renaming import Renaming
from binlane.shards.selection import Selection
from binlane.sql.parse.facts import UNREAD, StatementKind
from tests.unit.plan.logs import alone, segment_of, statements
from tests.unit.sql.parse.test_statements import NOT_READ

STATEMENTS: Final = (
    "INSERT INTO t SELECT {unread} {attack}",
    "INSERT INTO t (a) VALUES ({unread}) {attack}",
    "REPLACE INTO t SELECT a FROM u WHERE {unread} {attack}",
    "UPDATE t SET a = {unread} {attack}",
    "UPDATE t, u {attack} SET t.a = {unread}",
    "DELETE FROM t WHERE {unread} {attack}",
    "WITH c AS (SELECT {unread} AS x) DELETE t FROM t JOIN c {attack}",
    "CREATE VIEW v AS SELECT {unread} {attack}",
    "CREATE TABLE n AS SELECT {unread} {attack}",
    "CREATE TABLE n (a INT CHECK (a = {unread})) {attack}",
    "ALTER TABLE t ADD b INT DEFAULT ({unread}) {attack}",
    "LOAD DATA INFILE 'x' INTO TABLE t SET a = {unread} {attack}",
    "DO {unread} {attack}",
    "DROP TABLE t {unread} {attack}",
    "RENAME TABLE t TO u {unread} {attack}",
    "SET STATEMENT sort_buffer_size = {unread} FOR INSERT INTO t VALUES (1) {attack}",
)
"""Every reader of a verb; a line more is a reader more."""
UNREAD_PARTS: Final = (
    NOT_READ,
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY a) OVER (PARTITION BY b)",
    "SUBSTR('x', 1 NOT IN (0))",
    "s.nextval",
    "(SELECT 1 FROM a.b.c)",
    "1 FROBNICATE 2",
    "((1)",
    "'x",
    "?",
    "1; DROP TABLE victim.t;",
    "/*!99999 1 /*!99999 2 */ */",
    "{{d}}",
)
"""What no reader knows, or what is no SQL; a line more is a construct more."""
ATTACKS: Final = (
    "",
    "FROM victim.t",
    ", victim.t",
    "UNION SELECT * FROM victim.t",
    "INTO OUTFILE '/tmp/x'",
    "FROM t PROCEDURE ANALYSE(victim.f())",
    "WHERE victim.f(1)",
    "ORDER BY `binlane`.f()",
    "; DROP DATABASE victim",
    "/* , */ , `victim`.t TO `app`.`t`",
)
VIEW_OF_NO_KNOWN_KIND: Final = "CREATE STRANGE VIEW v AS SELECT * FROM victim.t"
FILTERED: Final = {
    "by database": ChannelRules(Selection(exclude_databases=("victim",))),
    "by database, allowed": ChannelRules(Selection(include_databases=("app",), allowed=(UNREAD,))),
    "by table": ChannelRules(Selection(exclude_tables=("victim.*",), allowed=(UNREAD,))),
    "by kind": ChannelRules(Selection(kinds=(("delete", "refuse"),), allowed=(UNREAD,))),
    "renamed": ChannelRules(renaming=Renaming((("app", "shop"),)), selection=Selection(allowed=(UNREAD,))),
}
CHANNELS: Final = {"of all": ChannelRules(), **FILTERED}
TEXTS: Final = (
    VIEW_OF_NO_KNOWN_KIND,
    *(
        one.format(unread=part, attack=attack)
        for one, part, attack in itertools.product(STATEMENTS, UNREAD_PARTS, ATTACKS)
    ),
)


def taken(text: str, rules: ChannelRules) -> StatementPart | None:
    """What lanes get of a logged statement of the database app; None if it is left out. Raises BinlaneError."""
    is_alone = text.split()[0] in ("CREATE", "ALTER", "DROP", "RENAME")
    data, segment = segment_of([alone(1, text, "app") if is_alone else statements(1, text, database="app")])
    reader = LogReader(data, segment.source_file)
    log = LogFormat(reader.format, "binlog.000007", 0, Flavor.MARIADB, rules)
    parts = [part for part in dissect(next(transactions(reader)), log) if isinstance(part, StatementPart)]
    return parts[0] if parts else None


@pytest.mark.parametrize("channel", CHANNELS)
def test_no_text_is_sent_that_is_not_read(channel: str) -> None:
    seen = Counter[str]()
    for text in TEXTS:
        part = None
        with contextlib.suppress(UnsupportedEventError):
            part = taken(text, CHANNELS[channel])
        if part is not None:
            read = statement_facts(part.sql, part.context, Flavor.MARIADB)
            assert part.facts.is_read, text
            assert read.kind is not StatementKind.UNKNOWN, text
        seen["refused" if part is None else "read"] += 1
    # most of them are not read, or the sweep would show nothing
    assert seen["refused"] > len(TEXTS) * 0.8, seen


@pytest.mark.parametrize("channel", CHANNELS)
def test_what_a_list_of_databases_says_makes_no_text_a_read_one(channel: str) -> None:
    """The list is only as true as the log."""
    with pytest.raises(UnsupportedEventError, match="reads to its end"):
        taken(f"UPDATE t SET a = {NOT_READ}", CHANNELS[channel])


def test_a_channel_that_promises_nothing_takes_them_by_name() -> None:
    text = f"UPDATE t SET a = {NOT_READ}"
    part = taken(text, ChannelRules(Selection(allowed=(UNREAD,))))
    assert part is not None
    assert part.sql == text.encode()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (VIEW_OF_NO_KNOWN_KIND, "'CREATE STRANGE VIEW v AS SELECT * FROM victim.t': reading stops at 'STRANGE' "),
        (
            "DROP TABLE t u",
            "'DROP TABLE t u': reading stops at 'u' (text behind the end of the statement as it is known)",
        ),
        ("CREATE USER x; DROP TABLE t 'x", "a quote without an end"),
        pytest.param(
            "UPDATE t SET a = 1 WHERE " + " OR ".join("a" * 100_001),
            "more than 200,000 words and signs beside literal rows and long lists of literals; nothing of the window "
            "was written; divide it into shorter statements on the source",
            id="long",
        ),
        pytest.param(
            f"UPDATE t SET a = (WITH c AS (SELECT 1) SELECT 1 FROM c WHERE {' OR '.join('a' * 25_001)})",
            "more than 50,000 words and signs beside literal rows and long lists of literals; nothing of the window "
            "was written; divide it into shorter statements on the source",
            id="long-behind-with",
        ),
    ],
)
def test_the_refusal_says_where_reading_stopped_and_what_to_do(text: str, found: str) -> None:
    with pytest.raises(UnsupportedEventError) as refused:
        taken(text, ChannelRules())
    said = str(refused.value)
    assert said.startswith("binlog.000007:")
    assert found in said or "OTHER" in said
    assert "skip it and run on the target" in said or "OTHER" in said
