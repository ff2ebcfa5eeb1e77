"""SHOW CREATE TABLE in parts, and the ALTER TABLE that a part's difference takes."""

import pytest

from binlane.verify.show_create import alter_statement, table_parts

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


@pytest.mark.parametrize(
    ("part", "source", "target", "clause"),
    [
        ("column `a`", "`a` int", None, "ADD COLUMN `a` int"),
        ("column `a`", None, "`a` int", "DROP COLUMN `a`"),
        ("column `a`", "`a` int", "`a` bigint", "MODIFY COLUMN `a` int"),
        ("index `a``b`", "KEY `a``b` (`c`)", "KEY `a``b` (`d`)", "DROP INDEX `a``b`, ADD KEY `a``b` (`c`)"),
        ("primary key", "PRIMARY KEY (`a`)", None, "ADD PRIMARY KEY (`a`)"),
        ("foreign key `f`", None, "CONSTRAINT `f` FOREIGN KEY ...", "DROP FOREIGN KEY `f`"),
        ("check `c`", None, "CONSTRAINT `c` CHECK (1)", "DROP CONSTRAINT `c`"),
        ("option DEFAULT CHARSET", "latin1", "utf8mb4", "DEFAULT CHARSET=latin1"),
        ("option COMMENT", None, "'x'", ""),
        ("partitions", "PARTITION BY HASH (`a`)", None, ""),
    ],
)
def test_the_statement_gives_the_target_the_sources_part(
    part: str, source: str | None, target: str | None, clause: str
) -> None:
    assert alter_statement("`d`.`t`", part, source, target) == (f"ALTER TABLE `d`.`t` {clause}" if clause else "")
