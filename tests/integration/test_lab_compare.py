"""The demo's proof: whatever differs between two servers is found."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.compare import compare
from lab.servers import PrivateServer, private_server

SAME = """
CREATE DATABASE a CHARACTER SET latin1;
CREATE TABLE a.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20));
INSERT INTO a.t VALUES (1, 'one'), (2, 'two');
CREATE TABLE a.`odd ``name` (id INT);
CREATE TABLE a.s (id INT PRIMARY KEY, bits BIT(9), twice INT AS (2 * id) STORED);
INSERT INTO a.s (id, bits) VALUES (1, 5), (2, NULL), (3, 511);
CREATE VIEW a.v AS SELECT id FROM a.t;
CREATE PROCEDURE a.p() SELECT 1;
CREATE FUNCTION a.f() RETURNS INT DETERMINISTIC RETURN 1;
CREATE TRIGGER a.g BEFORE INSERT ON a.t FOR EACH ROW SET NEW.v = 'x';
CREATE USER 'u'@'%' IDENTIFIED BY 'secret';
GRANT SELECT ON a.* TO 'u'@'%'
"""

CHANGES = [
    pytest.param("UPDATE a.t SET v = 'ONE' WHERE id = 1", "data of a.t", id="a value, equal to the collation"),
    pytest.param("UPDATE a.s SET bits = 4 WHERE id = 1", "data of a.s", id="a value where checksums are not told"),
    pytest.param("DELETE FROM a.t WHERE id = 1", "data of a.t", id="a row"),
    pytest.param("ALTER TABLE a.t ADD INDEX (v)", "table a.t", id="an index"),
    pytest.param("DROP TABLE a.`odd ``name`", "data of a.odd `name", id="a table"),
    pytest.param("ALTER DATABASE a CHARACTER SET utf8mb4", "database a", id="a default"),
    pytest.param("CREATE DATABASE b", "database b", id="a database"),
    pytest.param("CREATE OR REPLACE VIEW a.v AS SELECT v FROM a.t", "view a.v", id="a view"),
    pytest.param("CREATE OR REPLACE PROCEDURE a.p() SELECT 2", "procedure a.p", id="a procedure"),
    pytest.param("DROP FUNCTION a.f", "function a.f", id="a function"),
    pytest.param("DROP TRIGGER a.g", "trigger a.g", id="a trigger"),
    pytest.param("SET PASSWORD FOR 'u'@'%' = PASSWORD('other')", "account 'u'@'%'", id="a password"),
    pytest.param("GRANT INSERT ON a.t TO 'u'@'%'", "account 'u'@'%'", id="a privilege"),
]


def setup(server: PrivateServer) -> None:
    statements = ["DROP DATABASE IF EXISTS a", "DROP DATABASE IF EXISTS b", "DROP USER IF EXISTS 'u'@'%'"]
    for statement in [*statements, *SAME.split(";\n")]:
        server.query(statement)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PrivateServer, PrivateServer]]:
    folder: Path = tmp_path_factory.mktemp("compare")
    with (
        private_server(folder / "left", log_bin=False, durable=False) as left,
        private_server(folder / "right", log_bin=False, durable=False) as right,
    ):
        setup(left)
        yield left, right


def test_equal_servers_have_no_difference_and_are_counted(servers: tuple[PrivateServer, PrivateServer]) -> None:
    left, right = servers
    setup(right)
    # the next id is not data
    right.query("ALTER TABLE a.t AUTO_INCREMENT = 100")
    right.query("CREATE DATABASE IF NOT EXISTS binlane")
    found = compare(left, right)
    assert (found.differences, found.tables, found.rows) == ((), 3, 5)
    assert found.others >= 6


@pytest.mark.parametrize(("change", "name"), CHANGES)
def test_a_difference_is_found_and_named(servers: tuple[PrivateServer, PrivateServer], change: str, name: str) -> None:
    left, right = servers
    setup(right)
    right.query(change)
    differences = compare(left, right).differences
    assert differences[0].startswith(f"{name}: "), differences
