"""A full verification sees every definition that is not the same, and none that is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor
from binlane.orchestration.commands.verify import outcome_text, verify_channel
from binlane.verify.definitions.comparison import DefinitionDifference, Definitions
from binlane.verify.outcome import Options, Outcome
from lab.servers import PrivateServer, private_server
from tests.conftest import requires_mysql
from tests.integration.window.conftest import (
    CHANNEL,
    Channel,
    ChannelOf,
    channel_of,
    clean_servers,
    run_on,
)
from tests.integration.window.ddl.test_whole_server import (
    ACCOUNTS,
    ACCOUNTS_OF_FAMILY,
    CHANGES,
    OF_FAMILY,
    PASSWORD,
    TABLES,
    without_accounts,
)

__all__ = ["channel_of", "clean_servers"]

BOTH: Final = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
STORED: Final = (
    "CREATE VIEW tenant_1.v AS SELECT id, n FROM tenant_1.parent WHERE n > 1 WITH CHECK OPTION",
    "CREATE VIEW tenant_1.named (a, b) AS SELECT id, n FROM tenant_1.parent",
    "CREATE TRIGGER tenant_1.tr BEFORE INSERT ON tenant_1.parent FOR EACH ROW SET NEW.n = NEW.n",
    "CREATE FUNCTION tenant_1.f(a VARCHAR(9), b INT) RETURNS INT DETERMINISTIC RETURN b + 1",
    "CREATE PROCEDURE tenant_1.p(INOUT x INT) SQL SECURITY INVOKER COMMENT 'it''s' SET x = x + 1",
    "CREATE EVENT tenant_1.e ON SCHEDULE EVERY 1 DAY DO SET @a = 1",
    "CREATE EVENT tenant_1.later ON SCHEDULE AT '2037-01-02 03:04:05' ON COMPLETION PRESERVE DO SET @a = 'é'",
)


def verify(channel: Channel, *, full: bool = True) -> Outcome:
    return verify_channel(channel.config, channel.endpoints, Options(full))


def drift(outcome: Outcome) -> dict[tuple[str, str], str]:
    """What of which thing, with the message."""
    assert {one.state for one in outcome.suspects} <= {"drift"}
    return {(f"{one.key[0]} {one.table}", one.columns[0]): one.note for one in outcome.suspects if one.of_definition}


@BOTH
def test_a_whole_server_is_no_drift_and_each_change_of_the_target_is(
    family: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(family, family)
    source, target = channel.source, channel.target
    told = (*ACCOUNTS, *ACCOUNTS_OF_FAMILY[source.flavor])
    with without_accounts(channel):
        run_on(source, *TABLES, *CHANGES, *OF_FAMILY[source.flavor], *STORED)
        run_on(source, *(statement.format(password=PASSWORD[source.flavor]) for statement in told))
        assert channel.run() is not None
        outcome = verify(channel)
        assert (outcome.state, outcome.suspects, outcome.unseen) == ("clean", (), ())
        assert outcome.definitions > 20

        for wrong in WRONG:
            run_on(target, wrong, log=False)
        outcome = verify(channel)
        found = drift(outcome)
        assert found.keys() >= EXPECTED.keys(), found
        for each, said in EXPECTED.items():
            assert said in found[each], found[each]
        assert channel.cli("verify", CHANNEL, "--full") == 1
        assert "ALTER TABLE `tenant_1`.`parent` ADD UNIQUE KEY `by_n` (`n`)" in capsys.readouterr().out


WRONG: Final = (
    "ALTER TABLE tenant_1.parent DROP KEY by_n, DEFAULT CHARACTER SET latin1",
    "CREATE INDEX mine ON tenant_1.checked (n)",
    "ALTER TABLE tenant_1.hidden ALTER COLUMN late SET DEFAULT 77",
    "ALTER TABLE tenant_1.by_range DROP PARTITION p2",
    "ALTER DATABASE tenant_1 CHARACTER SET utf8mb4",
    "DROP TRIGGER tenant_1.tr",
    "DROP FUNCTION tenant_1.f",
    "DROP EVENT tenant_1.later",
    "CREATE OR REPLACE VIEW tenant_1.v AS SELECT id, n FROM tenant_1.parent WHERE n > 2",
    "CREATE OR REPLACE VIEW tenant_1.named (b, a) AS SELECT id, n FROM tenant_1.parent",
    "DROP PROCEDURE tenant_1.p",
    "CREATE PROCEDURE tenant_1.p(INOUT x BIGINT) SET x = x + 2",
    "CREATE EVENT tenant_1.mine ON SCHEDULE EVERY 1 DAY DO SET @a = 1",
)
EXPECTED: Final = {
    ("table tenant_1.parent", "index `by_n`"): "source UNIQUE KEY `by_n` (`n`), target none; ALTER TABLE",
    ("table tenant_1.parent", "option DEFAULT CHARSET"): "target latin1; ALTER TABLE `tenant_1`.`parent`",
    ("table tenant_1.checked", "index `mine`"): "ALTER TABLE `tenant_1`.`checked` DROP INDEX `mine`",
    ("table tenant_1.hidden", "column `late`"): "ALTER COLUMN `late` SET DEFAULT ",
    ("table tenant_1.by_range", "partitions"): "PARTITION",
    ("database tenant_1.", "default collation"): "ALTER DATABASE `tenant_1` COLLATE latin1_swedish_ci",
    ("trigger tenant_1.tr", ""): "exists on the source and not on the target; USE `tenant_1`; SET",
    ("function tenant_1.f", ""): "exists on the source and not on the target",
    ("event tenant_1.later", ""): "exists on the source and not on the target",
    ("event tenant_1.mine", ""): "exists on the target and not on the source",
    ("view tenant_1.v", "definition"): "> 2",
    ("view tenant_1.v", "CHECK OPTION"): "source CASCADED, target NONE",
    ("view tenant_1.named", "definition"): "`id` AS `b`",
    ("procedure tenant_1.p", "body"): "source SET x = x + 1, target SET x = x + 2",
    ("procedure tenant_1.p", "parameters"): "target INOUT x bigint",
    ("procedure tenant_1.p", "SQL SECURITY"): "source INVOKER, target DEFINER",
    ("procedure tenant_1.p", "comment"): "source it's, target ''",
}


LATER: Final = (
    "ALTER TABLE tenant_1.parent ADD INDEX also (n, id)",
    "RENAME TABLE tenant_1.checked TO tenant_1.checks",
    "CREATE OR REPLACE VIEW tenant_1.v AS SELECT id FROM tenant_1.parent",
    "DROP TRIGGER tenant_1.tr",
    "CREATE TRIGGER tenant_1.tr2 BEFORE DELETE ON tenant_1.parent FOR EACH ROW SET @a = 1",
    "ALTER DATABASE tenant_2 CHARACTER SET latin1",
)


@BOTH
def test_differences_of_objects_that_the_source_has_changed_since_are_pending(
    family: str, channel_of: ChannelOf
) -> None:
    channel = channel_of(family, family)
    run_on(channel.source, *TABLES, *STORED, "CREATE DATABASE tenant_2", "CREATE TABLE tenant_2.t (a INT, KEY (a))")
    assert channel.run() is not None
    run_on(
        channel.target,
        "ALTER TABLE tenant_1.made DROP KEY u",
        "ALTER TABLE tenant_1.likeness COMMENT 'other'",
        "ALTER TABLE tenant_2.t DROP KEY a",
        log=False,
    )
    run_on(channel.source, *LATER, "INSERT INTO tenant_1.parent VALUES (1, 1)", "DELETE FROM tenant_1.parent")
    outcome = verify(channel)
    states = {(f"{one.key[0]} {one.table}", one.columns[0]): one.state for one in outcome.suspects if one.of_definition}
    assert states == {
        ("table tenant_1.parent", "index `also`"): "pending",
        ("table tenant_1.checks", ""): "pending",
        ("view tenant_1.v", "definition"): "pending",
        ("view tenant_1.v", "CHECK OPTION"): "pending",
        ("trigger tenant_1.tr", ""): "pending",
        ("trigger tenant_1.tr2", ""): "pending",
        ("database tenant_2.", "default collation"): "pending",
        ("table tenant_1.made", "index `u`"): "drift",
        ("table tenant_1.likeness", "option COMMENT"): "drift",
        ("table tenant_2.t", "index `a`"): "drift",
    }
    assert channel.run() is not None
    assert {each[0] for each in drift(verify(channel))} == {
        "table tenant_1.made", "table tenant_1.likeness", "table tenant_2.t"
    }  # fmt: skip


OF_A_MOMENT: Final = (
    "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)",
    "CREATE TABLE tenant_1.u (id INT PRIMARY KEY)",
    "CREATE TRIGGER tenant_1.tr BEFORE INSERT ON tenant_1.kept FOR EACH ROW SET NEW.id = NEW.id",
    "CREATE VIEW tenant_1.v AS SELECT id FROM tenant_1.kept",
    "CREATE FUNCTION tenant_1.f() RETURNS INT DETERMINISTIC RETURN 1",
    "CREATE PROCEDURE tenant_1.p() SET @a = 1",
    "CREATE EVENT tenant_1.e ON SCHEDULE EVERY 1 DAY DO SET @a = 1",
)
DROPS: Final = tuple(f"DROP {one.split()[1]} {one.split()[2].removesuffix('()')}" for one in OF_A_MOMENT)


@BOTH
def test_what_the_source_drops_while_its_definitions_are_compared_ends_no_verification(
    family: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = channel_of(family, family)
    for server in (channel.source, channel.target):
        run_on(server, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.kept (id INT PRIMARY KEY)", log=False)
    run_on(channel.target, OF_A_MOMENT[0].replace("(id", "(other INT, id"), log=False)
    run_on(channel.source, *OF_A_MOMENT)
    tables, read = Definitions._tables, Definitions._read

    def dropping_tables(self: Definitions, only: None) -> Iterator[DefinitionDifference]:
        run_on(channel.source, *DROPS[:2])
        return tables(self, only)

    def dropping_objects(self: Definitions, only: None) -> object:
        found = read(self, only)
        run_on(channel.source, *DROPS[2:])
        return found

    monkeypatch.setattr(Definitions, "_tables", dropping_tables)
    monkeypatch.setattr(Definitions, "_read", dropping_objects)
    outcome = verify(channel)
    left = {str(one.table): one.note for one in outcome.suspects if one.of_definition}
    assert {*left} >= {f"tenant_1.{name}" for name in ("u", "v", "f", "p", "e", "tr")}
    assert all("the source has dropped it meanwhile" in note for note in left.values())
    assert {one.state for one in outcome.suspects} == {"pending"}


SHARED: Final = (
    "CREATE DATABASE tenant_1 CHARACTER SET latin1",
    "CREATE TABLE tenant_1.p (id INT PRIMARY KEY AUTO_INCREMENT, n INT NOT NULL DEFAULT 5, "
    "s VARCHAR(19) DEFAULT 'it''s', d DECIMAL(9,2) DEFAULT 1.50, "
    "at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, "
    "g INT AS (n + 1) STORED, j JSON, UNIQUE KEY by_n (n), KEY (s(3)), KEY (g), CHECK (n < 99 AND s <> 'a b')) "
    "COMMENT 'x' CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
    "CREATE TABLE tenant_1.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
    "CREATE TABLE tenant_1.parts (id INT PRIMARY KEY) PARTITION BY RANGE (id) "
    "(PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN MAXVALUE)",
    "CREATE TABLE tenant_1.hashed (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 3",
    "CREATE VIEW tenant_1.v AS SELECT id, n FROM tenant_1.p WHERE n > 1",
    "CREATE VIEW tenant_1.printed AS SELECT NOT n AS negated FROM tenant_1.p",
    "CREATE TRIGGER tenant_1.tr BEFORE INSERT ON tenant_1.p FOR EACH ROW SET NEW.n = NEW.n",
    "CREATE FUNCTION tenant_1.f(a VARCHAR(9), b INT, c BIGINT UNSIGNED) RETURNS INT DETERMINISTIC RETURN  b + 1",
    "CREATE PROCEDURE tenant_1.pr(INOUT a INT, b CHAR(3) CHARACTER SET latin1) COMMENT 'é' "
    "BEGIN SET a = a + 1; SET @x = 'é'; END",
    "CREATE EVENT tenant_1.e ON SCHEDULE EVERY 1 DAY COMMENT 'DO' DO SET @a = 'a''b\\\\c', @b = 1",
    # of the literals' text each family's information_schema shows something else, and MySQL's nothing behind the NUL
    "CREATE PROCEDURE tenant_1.quotes() SET @a = 'a''b\\\\c', @b = \"d\"\"e\\n\", @c = N'\\0', @d = 1",
)
UNLIKE: Final = (
    "ALTER TABLE tenant_1.p DROP KEY by_n, DROP KEY s, DEFAULT CHARACTER SET latin1, ALTER COLUMN n SET DEFAULT 6, "
    "ALTER COLUMN s DROP DEFAULT, COMMENT 'y'",
    "ALTER TABLE tenant_1.c ADD KEY mine (p, id)",
    "ALTER TABLE tenant_1.c DROP FOREIGN KEY c_ibfk_1",
    "ALTER TABLE tenant_1.parts DROP PARTITION b",
    "DROP TRIGGER tenant_1.tr",
    "DROP VIEW tenant_1.v",
    "DROP FUNCTION tenant_1.f",
    "CREATE FUNCTION tenant_1.f(a VARCHAR(9), b INT, c BIGINT UNSIGNED) RETURNS BIGINT NO SQL RETURN b + 2",
    "DROP PROCEDURE tenant_1.quotes",
    "CREATE PROCEDURE tenant_1.quotes() SET @a = 'a''b\\\\c', @b = \"d\"\"e\\n\", @c = N'\\0', @d = 2",
    "DROP PROCEDURE tenant_1.pr",
    "SET SESSION sql_mode = 'ANSI_QUOTES'",
    "CREATE PROCEDURE tenant_1.pr(INOUT a BIGINT, b CHAR(3) CHARACTER SET latin1) COMMENT 'e' "
    "BEGIN SET a = a + 1; SET @x = 'é'; END",
    "ALTER DATABASE tenant_1 CHARACTER SET utf8mb4",
)


@requires_mysql
@pytest.mark.parametrize("families", [("mariadb", "mysql"), ("mysql", "mariadb")], ids="-".join)
def test_between_the_families_what_is_spelled_differently_is_equal_and_all_else_is_drift(
    families: tuple[str, str], channel_of: ChannelOf
) -> None:
    channel = channel_of(*families)
    mode = "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'"
    run_on(channel.source, "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci", mode, *SHARED)
    assert channel.run() is not None
    outcome = verify(channel)
    assert [one.note for one in outcome.suspects] == []
    assert [text.partition(": ")[0] for text in outcome.unseen] == UNDECIDED
    assert outcome.unseen[0].endswith(": the two servers print the text of views differently")
    run_on(channel.target, "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci", *UNLIKE, log=False)
    outcome = verify(channel)
    assert drift(outcome).keys() == {
        ("table tenant_1.p", "index `by_n`"),
        ("table tenant_1.p", "index `s`"),
        ("table tenant_1.p", "comment"),
        ("table tenant_1.p", "default collation"),
        ("table tenant_1.p", "column `n`: default"),
        ("table tenant_1.p", "column `s`: default"),
        ("table tenant_1.c", "index `mine`"),
        ("table tenant_1.c", "index `p`"),
        ("table tenant_1.c", "foreign key `c_ibfk_1`"),
        ("table tenant_1.parts", "partitions"),
        ("trigger tenant_1.tr", ""),
        ("view tenant_1.v", ""),
        ("function tenant_1.f", "body"),
        ("function tenant_1.f", "returned type"),
        ("function tenant_1.f", "DETERMINISTIC"),
        ("function tenant_1.f", "data access"),
        ("function tenant_1.f", "sql_mode"),
        ("procedure tenant_1.quotes", "body"),
        ("procedure tenant_1.quotes", "sql_mode"),
        ("procedure tenant_1.pr", "parameters"),
        ("procedure tenant_1.pr", "sql_mode"),
        ("procedure tenant_1.pr", "comment"),
        ("database tenant_1.", "default collation"),
    }
    # a repair runs no text of another family
    assert {kind for kind in ("view", "trigger", "function", "procedure") if is_run(outcome, kind)} == set()
    mend(channel, outcome)
    assert drift(verify(channel)) == {}


def is_run(outcome: Outcome, kind: str) -> bool:
    return any(one.mend.is_run for one in outcome.differences if one.schema_object.kind == kind)


def mend(channel: Channel, outcome: Outcome) -> None:
    """Run what is named, as an operator would."""
    for one in outcome.differences:
        assert one.mend.statements, str(one)
        run_on(channel.target, *one.mend.statements, log=False)


LIKE: Final = (
    "CREATE TABLE tenant_1.wide (id INT PRIMARY KEY, a INT COMMENT 'it''s', gone VARCHAR(9) NOT NULL, "
    "CONSTRAINT low CHECK (a > 1), CONSTRAINT high CHECK (a < 99)) ROW_FORMAT = DYNAMIC STATS_PERSISTENT = 1",
    "CREATE TABLE tenant_1.missing (id INT PRIMARY KEY, s VARCHAR(9)) CHARACTER SET latin1",
    "CREATE TRIGGER tenant_1.second BEFORE INSERT ON tenant_1.p FOR EACH ROW SET NEW.s = NEW.s",
)
UNLIKELY: Final = (
    "ALTER TABLE tenant_1.wide MODIFY a BIGINT COMMENT 'its', DROP COLUMN gone, ADD COLUMN mine INT, "
    "ROW_FORMAT = COMPACT, STATS_PERSISTENT = DEFAULT",
    "ALTER TABLE tenant_1.wide DROP CONSTRAINT low, ADD CONSTRAINT other CHECK (a > 2)",
    "ALTER TABLE tenant_1.hashed PARTITION BY HASH (id) PARTITIONS 2",
    "DROP TABLE tenant_1.missing",
    "DROP EVENT tenant_1.e",
)
UNLIKE_PAIRS: Final = [
    ("mariadb", "mysql"), ("mysql", "mariadb"), ("10.11", "11.8"), ("11.8", "10.11"),
]  # fmt: skip


@requires_mysql
@pytest.mark.parametrize("servers", UNLIKE_PAIRS, ids="-".join)
def test_what_differs_between_unlike_servers_is_mended_by_the_statements_that_are_named(
    servers: tuple[str, str],
    channel_of: ChannelOf,
) -> None:
    channel = channel_of(*servers)
    session = ("SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci", "SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION'")
    run_on(channel.source, *session, *SHARED, *LIKE)
    assert channel.run() is not None
    assert drift(verify(channel)) == {}
    run_on(channel.target, *session, *UNLIKE, *UNLIKELY, log=False)
    outcome = verify(channel)
    assert {what for thing, what in drift(outcome) if thing == "table tenant_1.wide"} >= {
        *("column `gone`", "column `mine`", "option ROW_FORMAT", "option STATS_PERSISTENT"),
    }
    mend(channel, outcome)
    left = verify(channel)
    # MODIFY stands behind the columns that are missing, and those that are there twice
    if left.differences:
        mend(channel, left)
        left = verify(channel)
    assert [one.note for one in left.suspects] == []


UNDECIDED: Final = ["definition of view tenant_1.printed", "parameters of function tenant_1.f"]


@pytest.mark.parametrize("versions", [("10.11", "11.8"), ("11.8", "10.11")], ids="-".join)
def test_between_versions_bodies_and_parameters_are_compared(
    versions: tuple[str, str],
    channel_of: ChannelOf,
) -> None:
    channel = channel_of(*versions)
    mode = "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'"
    run_on(channel.source, "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci", mode, *SHARED)
    assert channel.run() is not None
    outcome = verify(channel)
    assert [one.note for one in outcome.suspects] == []
    assert outcome.unseen == ()
    run_on(channel.target, "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci", mode, *UNLIKE, log=False)
    found = verify(channel).differences
    assert {("function", "body"), ("procedure", "parameters"), ("table", "partitions"), ("view", "")} <= {
        (one.schema_object.kind, one.what) for one in found
    }


@requires_mysql
def test_between_versions_a_check_that_is_not_enforced_is_another_one(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    # servers whose collations differ are compared as those of other versions are
    channel.write_channel('[collations]\nlatin1_danish_ci = "latin1_swedish_ci"\n')
    made = "CREATE TABLE tenant_1.checked (id INT PRIMARY KEY, CONSTRAINT one CHECK (id > 1), CHECK (id < 9))"
    run_on(channel.source, "CREATE DATABASE tenant_1", made)
    assert channel.run() is not None
    assert drift(verify(channel)) == {}
    run_on(channel.target, "ALTER TABLE tenant_1.checked ALTER CHECK one NOT ENFORCED", log=False)
    outcome = verify(channel)
    assert drift(outcome).keys() == {("table tenant_1.checked", "checks")}
    mend(channel, outcome)
    assert drift(verify(channel)) == {}


def test_renames_and_filters_and_what_the_account_may_not_see(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "mariadb")
    channel.write_channel('[rename]\n"tenant_*" = "dr_*"\n[filter]\nexclude_tables = ["tenant_1.left*"]\n')
    run_on(
        channel.source,
        *SHARED,
        "CREATE TABLE tenant_1.left_out (id INT PRIMARY KEY)",
        "CREATE DATABASE tenant_2",
        "CREATE TABLE tenant_2.c (id INT PRIMARY KEY, p INT, "
        "FOREIGN KEY (p) REFERENCES tenant_1.p (id) ON DELETE CASCADE)",
        "CREATE VIEW tenant_2.v AS SELECT tenant_1.id FROM tenant_2.c AS tenant_1",
    )
    assert channel.run() is not None
    outcome = verify(channel)
    assert (outcome.state, outcome.suspects, outcome.unseen) == ("clean", (), ())
    run_on(channel.target, "ALTER TABLE dr_1.p DROP KEY by_n", log=False)
    run_on(
        channel.source,
        "CREATE USER test_reader@'%' IDENTIFIED BY 'Aa-12345'",
        f"SET PASSWORD FOR test_reader@'%' = PASSWORD('{channel.source.password}')",
        "GRANT REPLICATION SLAVE, REPLICATION MASTER ADMIN, BINLOG MONITOR, SLAVE MONITOR, SELECT, EVENT ON *.* "
        "TO test_reader@'%'",
        log=False,
    )
    channel.connect("source_server", channel.source, user="test_reader")
    with pytest.raises(PrecheckError, match=r"foreign key c_ibfk_1 of tenant_1.c: .* GRANT TRIGGER"):
        verify(channel)
    run_on(channel.source, "GRANT INDEX ON *.* TO test_reader@'%'", log=False)
    outcome = verify(channel)
    assert drift(outcome).keys() == {("table dr_1.p", "index `by_n`")}
    text = outcome_text(outcome)
    assert "ALTER TABLE `dr_1`.`p` ADD UNIQUE KEY `by_n` (`n`)" in text
    assert "triggers of tenant_1: the source's account lacks TRIGGER there" in text
    assert "functions of tenant_1: the source's account lacks EXECUTE there" in text
    assert "definition of view dr_1.v: the source's account may not see it" in text


def test_a_server_that_ignores_the_case_of_names_ignores_no_other_case(
    mariadb_source: PrivateServer, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]
) -> None:
    clean_servers(mariadb_source)
    options = ("--lower-case-table-names=1",)
    with private_server(tmp_path / "folding", Flavor.MARIADB, options, name="folding") as target:
        channel = Channel(mariadb_source, target, tmp_path)
        channel.init()
        made = (
            "CREATE DATABASE app",
            "USE app",
            "CREATE TABLE Parents (Id INT PRIMARY KEY, kind ENUM('Odd', 'even'), s VARCHAR(19) DEFAULT 'It''s `Mine`', "
            "KEY By_s (s)) COMMENT 'Of `Parents`' CHECKSUM=1 PARTITION BY HASH (Id) PARTITIONS 2",
            "CREATE TABLE plain (id INT PRIMARY KEY)",
            "CREATE TABLE Children (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES plain (id))",
            "CREATE VIEW v AS SELECT p.s AS Text, 'Some' AS c FROM Parents p",
            "CREATE TRIGGER tr BEFORE INSERT ON Parents FOR EACH ROW SET NEW.s = CONCAT('A', NEW.s)",
            "CREATE PROCEDURE pr() SELECT 'A' FROM Parents",
        )
        for server in (channel.source, target):
            run_on(server, *made, log=False)
        assert drift(verify(channel)) == {}
        run_on(
            target,
            "USE app",
            "ALTER TABLE parents ALTER s SET DEFAULT 'it''s `Mine`', COMMENT 'of `Parents`'",
            "CREATE OR REPLACE VIEW v AS SELECT p.s AS Text, 'some' AS c FROM Parents p",
            "CREATE OR REPLACE TRIGGER tr BEFORE INSERT ON Parents FOR EACH ROW SET NEW.s = CONCAT('a', NEW.s)",
            "CREATE OR REPLACE PROCEDURE pr() SELECT 'a' FROM Parents",
            log=False,
        )
        assert set(drift(verify(channel))) == {
            ("table app.parents", "column `s`"),
            ("table app.parents", "option COMMENT"),
            ("view app.v", "definition"),
            ("trigger app.tr", "body"),
            ("procedure app.pr", "body"),
        }
