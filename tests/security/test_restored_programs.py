"""The programs that a restore has recorded on the target make nothing but programs of its own databases.

Attacker: whoever can UPDATE ``binlane.restores`` on the target. The target's account runs the texts.
"""

from __future__ import annotations

from typing import Final

import pytest

from binlane.errors import StateSchemaError
from binlane.model import Flavor
from binlane.restore.final_names import require_program
from binlane.state.records.restores import ProgramText

HARMLESS: Final = (
    (
        "VIEW",
        "CREATE ALGORITHM=UNDEFINED DEFINER=`a`@`%` SQL SECURITY DEFINER VIEW `back`.`v` AS select 1 AS `1`",
        "utf8mb4",
    ),
    ("VIEW", "CREATE VIEW `v` AS select `other`.`t`.`a` AS `a` from `other`.`t`", "latin1"),
    ("TRIGGER", "CREATE DEFINER=`a`@`%` TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.v = 1 /* c */", "utf8mb4"),
    ("PROCEDURE", "CREATE DEFINER=`a`@`%` PROCEDURE `p`()\nBEGIN SELECT ';'; END", "latin1"),
    ("EVENT", "CREATE DEFINER=`a`@`%` EVENT `e` ON SCHEDULE EVERY 1 DAY DISABLE DO DELETE FROM a", "utf8mb4"),
)
ATTACKS: Final = (
    ("TABLE", "CREATE OR REPLACE TABLE mysql.global_priv (a INT)", ""),
    ("TABLE", "CREATE TABLE `t` (a INT)", ""),
    ("TABLE `other`.`victim` -- ", "CREATE TABLE `t` (a INT)", ""),
    ("VIEW", "CREATE OR REPLACE VIEW other.v AS SELECT 1", ""),
    ("PROCEDURE", "CREATE PROCEDURE other.p() SELECT 1", ""),
    ("PROCEDURE", "CREATE PROCEDURE /*!999999 back.p() SELECT 1 */ other.p() SELECT 1", ""),
    ("PROCEDURE", "CREATE PROCEDURE /*!00000 other. */ p() SELECT 1", ""),
    ("PROCEDURE", "CREATE PROCEDURE p() SELECT 1", "utf8mb4, GLOBAL read_only=0"),
    ("FUNCTION", "CREATE FUNCTION run RETURNS INT SONAME 'lib.so'", ""),
    ("TRIGGER", "CREATE TRIGGER other.r BEFORE INSERT ON other.t FOR EACH ROW SET @a = 1", ""),
    ("EVENT", "ALTER EVENT other.e ENABLE", ""),
    ("VIEW", "DROP DATABASE back", ""),
    # read in one session, and sent in another
    ("PROCEDURE", "CREATE DEFINER=`a`@`%` PROCEDURE `p`() DO 1", ""),
    ("PROCEDURE", "CREATE DEFINER=`a`@`%` PROCEDURE `p`() DO 1", "28"),
    ("PROCEDURE", "CREATE DEFINER=`a`@`%` PROCEDURE `p`() DO 1", "DEFAULT"),
)
"""Kind, text and character set of the client. A line more is an attack more."""


def _require(attack: tuple[str, str, str], flavor: Flavor) -> None:
    kind, statement, client = attack
    require_program(
        ProgramText(kind, "back", "p", statement, client, client and "utf8mb4_bin", "", "", ""), {"back"}, flavor
    )


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize("attack", ATTACKS)
def test_another_statement_is_refused_by_its_column(attack: tuple[str, str, str], flavor: Flavor) -> None:
    with pytest.raises(StateSchemaError, match=r"binlane\.restores\.programs"):
        _require(attack, flavor)


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize("program", HARMLESS)
def test_what_servers_show_is_made(program: tuple[str, str, str], flavor: Flavor) -> None:
    _require(program, flavor)


EVENT: Final = 'CREATE DEFINER=`a`@`%` EVENT `e` ON SCHEDULE EVERY "1\\" DAY DO x" SECOND DO GRANT ALL ON *.* TO x -- "'


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(("client", "mode"), [("", "ANSI_QUOTES"), ("utf8mb4", "ansi_quotes"), ("utf8mb4", "X ,ANSI")])
def test_a_session_that_no_server_lists_is_refused(client: str, mode: str, flavor: Flavor) -> None:
    program = ProgramText("EVENT", "back", "e", EVENT, client, client and "utf8mb4_bin", mode, "", "")
    with pytest.raises(StateSchemaError, match=r"binlane\.restores\.programs"):
        require_program(program, {"back"}, flavor)
