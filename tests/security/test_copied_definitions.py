"""The stored definition of a copied temporary table makes a temporary table out of columns and keys, and nothing else.

Attackers: whoever can UPDATE ``binlane.temporary`` on the target, and whoever can make a table in the schema
``binlane``, whose name is a part of the statement that drops a copy. The lane's account runs the text.
"""

from __future__ import annotations

from typing import Final

import pytest

from binlane.apply.session.connection import SessionLimits
from binlane.apply.stored_definition import require_columns_alone
from binlane.apply.temporary_copies import CopyKeeper
from binlane.errors import StateSchemaError
from binlane.model import Flavor
from binlane.servers.engines import engine_of
from binlane.state.carried.temporary_tables import copy_name
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, ChannelOf, run_on

_BEGIN: Final = "CREATE TEMPORARY TABLE "
HARMLESS: Final = (
    "`t` (\n  `a` int(11) NOT NULL,\n  PRIMARY KEY (`a`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
    "`select` (\n  `like` varchar(9) DEFAULT 'as select 1; --',\n  KEY `union` (`like`)\n) ENGINE=MyISAM",
    "`t` (\n  `a` int,\n  `b` int GENERATED ALWAYS AS (`a` + 1) VIRTUAL\n) ENGINE=InnoDB",
    "`t` (\n  `a` int DEFAULT NULL CHECK (`a` like 'x%')\n) ENGINE=Aria COMMENT='union=(x)'",
    "`t` (\n  `a` int /*!80023 INVISIBLE */\n) ENGINE=MEMORY AUTO_INCREMENT=7 ROW_FORMAT=DYNAMIC",
    "`t` (\n  `nextval` char(36) DEFAULT (uuid()),\n  KEY `x` (`nextval`(9)) USING HASH\n) ENGINE=MEMORY",
)
ATTACKS: Final = (
    "DROP DATABASE app",
    "CREATE TABLE `t` (a int) ENGINE=InnoDB",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=InnoDB AS SELECT app.evil() AS a",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=InnoDB SELECT * FROM mysql.user",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=InnoDB IGNORE SELECT 1",
    "CREATE TEMPORARY TABLE `t` ENGINE=InnoDB SELECT 1 AS a",
    "CREATE TEMPORARY TABLE `t` SELECT app.evil()",
    "CREATE TEMPORARY TABLE `t` (SELECT app.evil())",
    "CREATE TEMPORARY TABLE `t` LIKE mysql.user",
    "CREATE TEMPORARY TABLE `t` (LIKE mysql.user)",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=MERGE UNION=(app.victim) INSERT_METHOD=LAST",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=MRG_MyISAM",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=FEDERATED CONNECTION='mysql://evil/x'",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=CONNECT TABLE_TYPE=CSV FILE_NAME='/etc/passwd'",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE 'SPIDER'",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=InnoDB DATA DIRECTORY='/tmp'",
    "CREATE TEMPORARY TABLE `t` (`a` int)",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=InnoDB TABLE app.victim",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=InnoDB VALUES ROW(1)",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=InnoDB (TABLE app.victim)",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=InnoDB ((TABLE app.victim))",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=InnoDB (VALUES (app.evil()))",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=InnoDB (VALUES ROW(app.evil()))",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=InnoDB; DROP DATABASE app",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=InnoDB /*!50000 AS SELECT 1 */",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=InnoDB /*M! AS SELECT 1 */",
    "CREATE TEMPORARY TABLE `t` (`a` int DEFAULT (@@secure_file_priv)) ENGINE=InnoDB",
    "CREATE TEMPORARY TABLE `t` (`a` int DEFAULT (@x := 1)) ENGINE=InnoDB",
    "CREATE TEMPORARY TABLE `t` (`a` int, `b` bigint DEFAULT setval(`other`.`s`, 99)) ENGINE=InnoDB",
    "CREATE TEMPORARY TABLE `t` (`a` int, `b` bigint DEFAULT (1 + nextval(`other`.`s`))) ENGINE=InnoDB",
    "CREATE TEMPORARY TABLE `t` (`a` int, `b` bigint DEFAULT NEXT VALUE FOR `other`.`s`) ENGINE=InnoDB",
    "CREATE TEMPORARY TABLE `t` (`a` int, `b` text DEFAULT sys_eval('id')) ENGINE=InnoDB",
    "CREATE TEMPORARY TABLE `t` (`a` int, `b` text DEFAULT (concat(`sys_eval`('id')))) ENGINE=InnoDB",
    "CREATE TEMPORARY TABLE `t` (`a` int, `b` text GENERATED ALWAYS AS (sys_eval('id')) VIRTUAL) ENGINE=InnoDB",
    "CREATE TEMPORARY TABLE `t` (`a` int, CHECK (app.evil(`a`))) ENGINE=InnoDB",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=InnoDB COMMENT='unterminated",
    "CREATE TEMPORARY TABLE `t` (`a` int) ENGINE=InnoDB (",
    "CREATE TEMPORARY TABLE ",
    "",
)
"""Texts in place of a definition. A line more is an attack more."""


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("text", HARMLESS)
def test_what_a_server_shows_is_accepted(text: str, flavor: Flavor) -> None:
    require_columns_alone(_BEGIN + text, flavor)


@pytest.mark.parametrize("text", [each for each in ATTACKS if "M!" not in each])
@pytest.mark.parametrize("flavor", Flavor)
def test_a_definition_that_is_more_than_columns_is_not_run(text: str, flavor: Flavor) -> None:
    with pytest.raises(StateSchemaError, match=r"binlane\.temporary\.definition: expected CREATE TEMPORARY TABLE"):
        require_columns_alone(text, flavor)


def test_a_comment_of_mariadb_is_read_as_mariadb_reads_it() -> None:
    [text] = (each for each in ATTACKS if "M!" in each)
    with pytest.raises(StateSchemaError):
        require_columns_alone(text, Flavor.MARIADB)


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_the_name_of_a_table_drops_no_other_table(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    copy = copy_name(CHANNEL, 1, 1, "0a0a0a0a")
    hostile = (f"{copy}`,`app`.`victim", f"{copy}`,app.victim -- x", f"{copy} `")
    quoted = [f"binlane.`{name.replace('`', '``')}`" for name in hostile]
    tables = [f"CREATE TABLE {name} (n INT)" for name in (*quoted, f"binlane.`{copy}`")]
    run_on(channel.target, "CREATE DATABASE app", "CREATE TABLE app.victim (n INT)", *tables, log=False)
    try:
        CopyKeeper(engine_of(channel.endpoints.target), SessionLimits(), CHANNEL).sweep(10)
        found = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_name LIKE %s"
        assert channel.target.query(found, ("app", "victim")) == [("victim",)]
        assert channel.target.query(found, ("binlane", copy)) == []
    finally:
        run_on(channel.target, f"DROP TABLE IF EXISTS {', '.join(quoted)}", log=False)
