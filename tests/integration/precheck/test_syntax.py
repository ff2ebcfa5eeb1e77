"""What a server's parser says of texts that it is kept from executing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from binlane.precheck.situation.syntax import SyntaxParser, syntax_parser
from binlane.servers.engines import engine_at
from lab.servers import PrivateServer

STATEMENTS: Final = (
    (b"RENAME TABLE `p\xe9` TO q, victim.t TO a.stolen -- x` TO y", "gbk", 0),
    (b"UPDATE `p\xe9`, victim.t v -- x` v SET c = 1 WHERE id = 1 /*\nSET v.c = 0 -- */", "gbk", 0),
    (b"UPDATE shared.t, (SELECT 1 AS `\xe9`) d SET secret = 0 -- `) d SET mine = 1", "gbk", 0),
    (b'UPDATE nosuch.t SET a = nosuch.f(1) WHERE nosuch IN (SELECT COUNT (1) FROM "a b")', "latin1", 4),
    (b"CREATE PROCEDURE p() BEGIN SET @a = 1; UPDATE t SET n = 1; END;", "latin1", 0),
    (b"CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 7 -- x", "utf8mb4", 0),
    (b"CREATE TABLE made_by_a_question (a INT) SELECT 1 AS a # x", "sjis", 0),
    (b"DROP TABLE IF EXISTS a.b, c", "big5", 0),
)
NOISE: Final = (
    ("CREATE TABLE `产品` (`编号` int COMMENT '编号', `名称` varchar(10) COMMENT '名称')", "sjis"),
    ("CREATE SQL SECURITY DEFINER VIEW `ビュー` AS select `名` from `表`", "gbk"),
    ("ALTER TABLE `주문` ADD `이름` varchar(10) COMMENT '이름', ADD KEY `이름` (`이름`)", "sjis"),
    ("INSERT INTO `表` (`名`) VALUES ('表'), ('名')", "big5"),
    ("RENAME TABLE `中` TO `文`", "gbk"),
    ("INSERT INTO t (n) SELECT 10 AS `中` UNION SELECT '中' AS `中文` FROM t WHERE `k` IS NULL", "gbk"),
    ("UPDATE t SET a = (1", "latin1"),
    ("UPDATE t SET a = 1 /* ", "latin1"),
    ("UPDATE t SET a = '1", "latin1"),
    ("DO 1) binlane_end", "latin1"),
)


@pytest.fixture
def parser(server: PrivateServer) -> Iterator[SyntaxParser]:
    engine = engine_at(server.url())
    with syntax_parser(engine) as found:
        yield found
    engine.dispose()


def test_a_statement_is_read_to_its_end_and_has_no_effect(parser: SyntaxParser, server: PrivateServer) -> None:
    for text, charset, mode in STATEMENTS:
        assert parser.takes(text, charset, mode), text
    assert server.query("SELECT COUNT(*) FROM information_schema.tables WHERE table_name LIKE 'made_by%'") == [(0,)]


def test_noise_is_no_statement(parser: SyntaxParser) -> None:
    for text, charset in NOISE:
        assert not parser.takes(text.encode(), charset, 0), text
