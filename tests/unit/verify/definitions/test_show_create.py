"""SHOW CREATE TABLE in parts, and the ALTER TABLE that a part's difference takes."""

import pytest

from binlane.verify.definitions.show_create import parts_of_both, sequence_mend, table_mend, table_parts
from binlane.verify.definitions.table_options import options_in

MARIADB = """CREATE TABLE `t` (
  `a``b` int(11) NOT NULL AUTO_INCREMENT COMMENT 'AUTO_INCREMENT=5, ENGINE=x',
  `from` varchar(9) DEFAULT NULL,
  PRIMARY KEY (`a``b`),
  UNIQUE KEY `KEY` (`from`),
  FULLTEXT KEY `words` (`from`),
  CONSTRAINT `to p` FOREIGN KEY (`from`) REFERENCES `p` (`s`),
  CONSTRAINT `less` CHECK (`a``b` < 9)
) ENGINE=InnoDB AUTO_INCREMENT=77 DEFAULT CHARSET=latin1 COLLATE=latin1_bin COMMENT='it''s AUTO_INCREMENT=3 ' \
WITH SYSTEM VERSIONING
 PARTITION BY SYSTEM_TIME INTERVAL 1 HOUR AUTO
PARTITIONS 3"""


def test_every_line_and_option_is_a_part_of_its_own() -> None:
    assert table_parts(MARIADB) == {
        "column `a``b`": "`a``b` int(11) NOT NULL AUTO_INCREMENT COMMENT 'AUTO_INCREMENT=5, ENGINE=x'",
        "column `from`": "`from` varchar(9) DEFAULT NULL",
        "primary key": "PRIMARY KEY (`a``b`)",
        "index `KEY`": "UNIQUE KEY `KEY` (`from`)",
        "index `words`": "FULLTEXT KEY `words` (`from`)",
        "foreign key `to p`": "CONSTRAINT `to p` FOREIGN KEY (`from`) REFERENCES `p` (`s`)",
        "check `less`": "CONSTRAINT `less` CHECK (`a``b` < 9)",
        "option ENGINE": "InnoDB",
        "option DEFAULT CHARSET": "latin1",
        "option COLLATE": "latin1_bin",
        "option COMMENT": "'it''s AUTO_INCREMENT=3 '",
        "options": "WITH SYSTEM VERSIONING",
        "partitions": "PARTITION BY SYSTEM_TIME INTERVAL 1 HOUR AUTO",
    }


@pytest.mark.parametrize("printed", ["f;``k", "f;`k"], ids=["quoted", "as MariaDB 10.11.18 prints it"])
def test_a_foreign_keys_name_is_quoted_whatever_the_server_prints(printed: str) -> None:
    parts = table_parts(
        f"CREATE TABLE `t` (\n  CONSTRAINT `{printed}` FOREIGN KEY (`p`) REFERENCES `q` (`id`)\n) ENGINE=InnoDB"
    )
    line = "CONSTRAINT `f;``k` FOREIGN KEY (`p`) REFERENCES `q` (`id`)"
    assert parts["foreign key `f;``k`"] == line
    assert table_mend("`d`.`t`", "foreign key `f;``k`", parts, {}).statements == (f"ALTER TABLE `d`.`t` ADD {line}",)


def test_the_next_id_and_automatic_history_partitions_are_no_difference() -> None:
    other = MARIADB.replace("AUTO_INCREMENT=77 ", "").replace("PARTITIONS 3", "PARTITIONS 9")
    assert other != MARIADB
    assert table_parts(other) == table_parts(MARIADB)


def test_mysqls_version_comments_are_options_and_partitions() -> None:
    parts = table_parts(
        "CREATE TABLE `t` (\n  `id` int NOT NULL\n) /*!50100 TABLESPACE `ts` */ ENGINE=InnoDB\n"
        "/*!50100 PARTITION BY HASH (`id`)\nPARTITIONS 3 */"
    )
    assert parts["options"] == "/*!50100 TABLESPACE `ts` */"
    assert parts["partitions"] == "/*!50100 PARTITION BY HASH (`id`)\nPARTITIONS 3 */"


PLAIN = "CREATE TABLE `t` (\n  `a` int NOT NULL,\n  `b` int,\n  PRIMARY KEY (`a`)\n) ENGINE=InnoDB"
CLAUSES = (
    "STATS_SAMPLE_PAGES=1,DROP`b`",
    "STATS_PERSISTENT=1,RENAME`other`.`t`",
    "COMMENT=1,DROP`b`",
    "DEFAULT CHARSET=utf8mb4,DROP`b`",
    "COLLATE=x,DROP`b`",
    "PARTITION BY HASH (a)",
    "ROW_FORMAT=DYNAMIC DATA DIRECTORY='/x'",
)


@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize(
    "tail", ["/* `x`='a {} z' */", "`x`='a {} z'", "COMMENT='a {} z'", "COMMENT='it''s {} z'", "UNION=(`a {} z`)"]
)
def test_what_a_value_or_a_comment_says_is_no_option(tail: str, clause: str) -> None:
    """A repair would run it: whoever may make a table on the source writes it."""
    text = tail.format(clause.replace("`", "``") if tail.startswith("UNION") else clause.replace("'", "''"))
    hostile = f"{PLAIN} {text}"
    for source, target in ((hostile, PLAIN), (PLAIN, hostile)):
        ours, theirs = parts_of_both(source, target)
        assert "partitions" not in {*ours, *theirs}
        differing = [part for part in dict.fromkeys((*ours, *theirs)) if ours.get(part) != theirs.get(part)]
        mends = [table_mend("`t`", part, ours, theirs) for part in differing]
        run = [statement for mend in mends if mend.is_run for statement in mend.statements]
        expected = text if source is hostile else "COMMENT=''"
        assert run == ([f"ALTER TABLE `t` {expected}"] if tail.startswith("COMMENT") else [])


@pytest.mark.parametrize("value", ["1,DROP`b`", "1, DROP COLUMN b", "'a' DROP b", "", "(`a`),DROP`b`"])
@pytest.mark.parametrize("option", ["STATS_SAMPLE_PAGES", "COMMENT", "COLLATE", "DEFAULT CHARSET", "ENGINE"])
def test_an_option_takes_one_value(option: str, value: str) -> None:
    assert table_mend("`t`", f"option {option}", {f"option {option}": value}, {}).statements == ()


def test_options_of_the_catalogue_are_none_of_their_values() -> None:
    given = "row_format=DYNAMIC `x`='a STATS_SAMPLE_PAGES=1,DROP`b` z' stats_persistent=1 partitioned"
    assert options_in(given) == {"ROW_FORMAT": "DYNAMIC", "STATS_PERSISTENT": "1"}
    assert options_in("row_format='") == {}


def test_folders_are_of_a_server_s_own_machine() -> None:
    folder, of_partition = "DATA DIRECTORY='/x''y' INDEX DIRECTORY='/z'", "DATA DIRECTORY = '/x' "
    partitions = "\n PARTITION BY RANGE (`a`)\n(PARTITION `p` VALUES LESS THAN (5) {}ENGINE = InnoDB)"
    said = "COMMENT='see DATA DIRECTORY=''/x'''"
    table = f"{PLAIN} {said} {folder}{partitions.format(of_partition)}"
    other = f"{PLAIN} {said}{partitions.format('')}"
    assert table_parts(table) == table_parts(other)
    assert table_parts(table)["option COMMENT"] == said.removeprefix("COMMENT=")


FILLS, CONVERTS, ONLY = "the new column has no values", "it may convert or refuse values", "only the target has it"
REFUSES, REBUILDS = "it may refuse rows", "it rebuilds the table"


@pytest.mark.parametrize(
    ("part", "source", "target", "clause", "left"),
    [
        ("column `a`", "`a` int", None, "ADD COLUMN `a` int AFTER `first`", FILLS),
        ("column `a`", None, "`a` int", "DROP COLUMN `a`", "it removes the column's values"),
        ("column `a`", "`a` int", "`a` bigint", "MODIFY COLUMN `a` int", CONVERTS),
        ("column `a`", "`a` int DEFAULT 7", "`a` int DEFAULT '5'", "ALTER COLUMN `a` SET DEFAULT 7", ""),
        ("column `a`", "`a` int NOT NULL", "`a` int NOT NULL DEFAULT 5", "ALTER COLUMN `a` DROP DEFAULT", ""),
        (
            "column `a`",
            "`a` char(9) DEFAULT 'it''s' COMMENT 'b DEFAULT 5'",
            "`a` char(9) DEFAULT NULL COMMENT 'b DEFAULT 5'",
            "ALTER COLUMN `a` SET DEFAULT 'it''s'",
            "",
        ),
        (
            "column `a`",
            "`a` int DEFAULT 1 COMMENT 'x'",
            "`a` int DEFAULT 2",
            "MODIFY COLUMN `a` int DEFAULT 1 COMMENT 'x'",
            CONVERTS,
        ),
        (
            "column `a`",
            "`a` timestamp NULL DEFAULT current_timestamp()",
            "`a` timestamp NULL DEFAULT NULL",
            "MODIFY COLUMN `a` timestamp NULL DEFAULT current_timestamp()",
            CONVERTS,
        ),
        ("index `a``b`", "KEY `a``b` (`c`)", "KEY `a``b` (`d`)", "DROP INDEX `a``b`, ADD KEY `a``b` (`c`)", ""),
        ("index `k`", "KEY `k` (`c`)", None, "ADD KEY `k` (`c`)", ""),
        ("index `k`", None, "KEY `k` (`c`)", "DROP INDEX `k`", ONLY),
        ("index `k`", "UNIQUE KEY `k` (`c`)", None, "ADD UNIQUE KEY `k` (`c`)", REFUSES),
        ("index `k`", "KEY `k` (`c`)", "UNIQUE KEY `k` (`c`)", "DROP INDEX `k`, ADD KEY `k` (`c`)", REFUSES),
        ("primary key", "PRIMARY KEY (`a`)", None, "ADD PRIMARY KEY (`a`)", "it copies the table"),
        ("foreign key `f`", None, "CONSTRAINT `f` FOREIGN KEY ...", "DROP FOREIGN KEY `f`", ONLY),
        ("check `c`", None, "CONSTRAINT `c` CHECK (1)", "DROP CONSTRAINT `c`", ONLY),
        ("option DEFAULT CHARSET", "latin1", "utf8mb4", "DEFAULT CHARSET=latin1", ""),
        ("option COMMENT", None, "'x'", "COMMENT=''", ""),
        ("option ROW_FORMAT", None, "COMPRESSED", "ROW_FORMAT=DEFAULT", REBUILDS),
        ("option ENGINE", "InnoDB", "MyISAM", "ENGINE=InnoDB", REBUILDS),
        ("option WORDS", None, "1", "", "no value of WORDS"),
        ("partitions", "PARTITION BY HASH (`a`)", None, "PARTITION BY HASH (`a`)", "it copies the table"),
        ("partitions", None, "PARTITION BY HASH (`a`)", "REMOVE PARTITIONING", "it copies the table"),
        ("options", "WITH SYSTEM VERSIONING", None, "", "no single statement"),
    ],
)
def test_the_statement_gives_the_target_the_sources_part_and_only_harmless_ones_are_run(
    part: str, source: str | None, target: str | None, clause: str, left: str
) -> None:
    first = {"column `first`": "`first` int"}
    sides = [{**first, **({} if value is None else {part: value})} for value in (source, target)]
    mend = table_mend("`d`.`t`", part, *sides)
    assert mend.statements == ((f"ALTER TABLE `d`.`t` {clause}",) if clause else ())
    assert (mend.left[: len(left)], mend.is_run) == (left, not left)


def test_a_default_character_set_and_its_collation_are_one_statement() -> None:
    source = {"option DEFAULT CHARSET": "latin1", "option COLLATE": "latin1_bin"}
    target = {"option DEFAULT CHARSET": "utf8mb4", "option COLLATE": "utf8mb4_bin"}
    for part in source:
        assert str(table_mend("`t`", part, source, target)) == (
            "ALTER TABLE `t` DEFAULT CHARSET=latin1 COLLATE=latin1_bin"
        )


def test_a_sequence_keeps_its_next_value() -> None:
    shown = "CREATE SEQUENCE `it``s` start with 5 minvalue 1 maxvalue 9 increment by 2 cache 3 cycle ENGINE=InnoDB"
    assert str(sequence_mend("`d`.`it``s`", shown)) == (
        "ALTER SEQUENCE `d`.`it``s` start with 5 minvalue 1 maxvalue 9 increment by 2 cache 3 cycle"
    )
