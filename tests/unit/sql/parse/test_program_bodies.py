"""Bodies of stored programs are read to their end by the grammar of the servers, or not at all."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.model import Flavor
from binlane.sql.parse.lexer import Dialect, Token, Unreadable, lex
from binlane.sql.parse.program_bodies import read_program
from tests.unit.sql.parse.test_statements import NOT_READ

BOTH: Final = """
RETURN 1
RETURN (SELECT MAX(a) FROM e.u WHERE b = x)
SET @x = 1, y := 2, NEW.c = CASE WHEN OLD.c > 1 THEN f(1) ELSE 2 END, SESSION sort_buffer_size = 9
SET @@SESSION.foreign_key_checks = ON
INSERT INTO e.u SELECT NEW.a, COUNT(*) FROM t GROUP BY b
BEGIN END
l: BEGIN DECLARE a, b INT UNSIGNED DEFAULT 1 + 2; LEAVE l; END l
BEGIN DECLARE s VARCHAR(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT 'x'; DECLARE e ENUM('a', \
'b'); SET s = e; END
BEGIN DECLARE c CURSOR FOR SELECT a FROM t FOR UPDATE; DECLARE CONTINUE HANDLER FOR NOT FOUND, 1062, \
SQLSTATE VALUE '23000', no SET d = 1; \
OPEN c; FETCH NEXT FROM c INTO x, y; FETCH c INTO x; CLOSE c; END
BEGIN DECLARE no CONDITION FOR SQLSTATE '45000'; SIGNAL no SET MESSAGE_TEXT = CONCAT('a', x), MYSQL_ERRNO = \
3; RESIGNAL; END
BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN GET CURRENT DIAGNOSTICS CONDITION 1 @p = MESSAGE_TEXT, @q \
= MYSQL_ERRNO; END; SELECT 1 INTO @a; END
IF (a) THEN SET b = 1; ELSEIF CASE a WHEN 1 THEN 2 END = 2 THEN DELETE FROM t; ELSE IF b THEN UPDATE t SET \
a = 1; END IF; END IF
CASE WHEN a IN (SELECT b FROM t) THEN SET c = 1; ELSE BEGIN END; END CASE
CASE a + 1 WHEN 1 THEN SET c = 1; WHEN 2 THEN SET c = 2; END CASE
BEGIN l: LOOP IF a THEN ITERATE l; END IF; LEAVE l; END LOOP l; WHILE a < 3 DO SET a = a + 1; END WHILE; \
REPEAT SET a = 1; UNTIL a END REPEAT; END
SELECT a, b INTO x, NEW.y FROM t WHERE c = 1 LIMIT 1
SELECT a FROM t ORDER BY b LIMIT 1 INTO @x
BEGIN CREATE TEMPORARY TABLE IF NOT EXISTS x (a INT); DROP TEMPORARY TABLE x; CALL p(1, @x); DO f(2); END
CREATE DEFINER=`a`@`%` FUNCTION f(a SET('x','y'), b INT) RETURNS VARCHAR(9) CHARSET utf8mb4 DETERMINISTIC \
NO SQL SQL SECURITY INVOKER COMMENT 'x' RETURN 1
CREATE DEFINER=`trigger`@`view` TRIGGER d.g BEFORE INSERT ON t FOR EACH ROW FOLLOWS other SET NEW.a = 1
CREATE PROCEDURE d.p(IN a INT, OUT b TEXT) MODIFIES SQL DATA BEGIN SELECT 1; COMMIT; END
CREATE OR REPLACE ALGORITHM=MERGE DEFINER=a@b SQL SECURITY DEFINER VIEW v (x) AS SELECT a FROM t WHERE b \
WITH CASCADED CHECK OPTION
select `t`.`a` AS `a` from `d`.`t`
""".strip()
MARIADB: Final = """
FOR i IN 1..10 DO SET a = i; END FOR
FOR i IN REVERSE 1 .. x DO SET a = i; END FOR
FOR r IN (SELECT a FROM t) DO INSERT INTO u VALUES (r.a); END FOR
FOR r IN c DO SET a = r.a; END FOR
BEGIN DECLARE c CURSOR (p INT) FOR SELECT a FROM t WHERE b = p; DECLARE r ROW TYPE OF c; DECLARE n TYPE OF \
t.a; OPEN c(3); END
SET STATEMENT max_statement_time = 1 FOR INSERT INTO t VALUES (1)
BEGIN LOOP FETCH GROUP NEXT ROW; END LOOP; END
BEGIN NOT ATOMIC SET @a = 1; END
""".strip()
UNREAD: Final = {
    "EXECUTE s": "EXECUTE",
    "BEGIN SET @s = 'DROP DATABASE victim'; PREPARE s FROM @s; EXECUTE s; END": "PREPARE",
    "BEGIN DEALLOCATE PREPARE s; END": "DEALLOCATE",
    "BEGIN EXECUTE IMMEDIATE 'x'; END": "EXECUTE",
    "SHOW TABLES": "SHOW",
    "BEGIN HANDLER t OPEN; END": "HANDLER",
    "SET PASSWORD = 'x'": "PASSWORD",
    "SET NAMES gbk": "gbk",
    "SET ROLE admin": "admin",
    "SET SESSION TRANSACTION READ ONLY": "READ",
    "SELECT a FROM t INTO OUTFILE '/tmp/x'": "",
    "SELECT a INTO DUMPFILE '/tmp/x' FROM t": "",
    "INSTALL PLUGIN p SONAME 'x'; SET a = 1": ";",
    "BEGIN SET a = 1 END": "",
    "BEGIN SET a = 1; END; DROP TABLE victim.t": ";",
    "BEGIN IF a THEN SET b = 1; END; END": ";",
    "IF a SET b = 1; END IF": ";",
    "BEGIN l: l: SET a = 1; END": "l",
    "BEGIN a := 1; END": "a",
    "BEGIN WHATEVER victim.t; END": "WHATEVER",
    f"RETURN {NOT_READ}": "",
    "CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS $$ x $$": "JAVASCRIPT",
    "CREATE PROCEDURE p() BEGIN END GARBAGE x": "x",
}
"""With the word at which reading stops."""


def read(text: str, flavor: Flavor) -> None:
    tokens: list[Token] = []
    lex(text, Dialect(flavor), tokens)
    read_program(tokens, Dialect(flavor), "d")


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("text", BOTH.splitlines())
def test_bodies_of_both_families_are_read(text: str, flavor: Flavor) -> None:
    read(text, flavor)
    # a part of one is none, but for a few that end with what may be left out
    words = text.split()
    if text.startswith(("BEGIN", "IF", "CASE", "l:")) and len(words) > 3:
        with pytest.raises(Unreadable):
            read(" ".join(words[:-2]), flavor)


@pytest.mark.parametrize("text", MARIADB.splitlines())
def test_bodies_of_mariadb_are_read(text: str) -> None:
    read(text, Flavor.MARIADB)


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("text", UNREAD)
def test_a_body_with_a_statement_that_no_reader_knows_is_not_read(text: str, flavor: Flavor) -> None:
    with pytest.raises(Unreadable) as unreadable:
        read(text, flavor)
    assert unreadable.value.word == UNREAD[text]


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(
    "front",
    [
        "BEGIN {} END",
        "IF a THEN {} END IF",
        "l: LOOP {} END LOOP",
        "CASE WHEN a THEN {} END CASE",
        "REPEAT {} UNTIL a END REPEAT",
        "BEGIN DECLARE EXIT HANDLER FOR 1062 BEGIN {} END; END",
    ],
)
@pytest.mark.parametrize("attack", [text for text in UNREAD if text.startswith(("EXECUTE", "SHOW", "SET", "SELECT"))])
def test_no_block_hides_such_a_statement(attack: str, front: str, flavor: Flavor) -> None:
    with pytest.raises(Unreadable):
        read(front.format(f"SET b = 1; {attack};"), flavor)
    read(front.format("SET b = 1; SET c = 2;"), flavor)


@pytest.mark.parametrize("flavor", Flavor)
def test_deep_blocks_are_no_error_of_python(flavor: Flavor) -> None:
    with pytest.raises(Unreadable, match="nested too deeply"):
        read("BEGIN " * 5_000 + "END; " * 5_000, flavor)
