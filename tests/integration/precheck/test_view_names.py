"""A lane looks for views by their names, and a server opens no other tables of their databases for that."""

from __future__ import annotations

from binlane.model import Flavor, TableKey
from binlane.servers import programs
from binlane.servers.programs import read_views
from binlane.sql.programs.reach import folded
from lab.servers import PrivateServer
from tests.integration.precheck.helpers import connected, run

VIEWS = (
    TableKey("app", "Seen"),
    TableKey("app", "gesehen\u00df"),
    TableKey("app", "other"),
    TableKey("b\u00e9", "seen"),
)


def test_views_are_found_by_their_names_without_opening_other_tables(server: PrivateServer) -> None:
    run(server, "CREATE DATABASE app", "CREATE DATABASE `b\u00e9`")
    run(server, *(f"CREATE TABLE app.t{number} (n INT)" for number in range(20)))
    run(server, *(f"CREATE VIEW `{view.database}`.`{view.table}` AS SELECT 1 AS n" for view in VIEWS))
    opened = "SHOW SESSION STATUS LIKE 'Opened_table_definitions'"

    def read(*wanted: TableKey) -> tuple[set[TableKey], int]:
        run(server, "FLUSH TABLES")
        with connected(server) as connection:
            before = int(connection.exec_driver_sql(opened).one()[1])
            keys = set(map(folded, wanted))
            databases, names = {key.database for key in keys}, {key.table for key in keys}
            views = read_views(connection, lambda name: folded(TableKey(name, "")).database in databases, names)
            found = {key for key in views if key in VIEWS}
            return found, int(connection.exec_driver_sql(opened).one()[1]) - before

    # what is not ASCII is shown as well: how it is folded is the reader's own rule
    named, few = read(TableKey("APP", "sEEN"), TableKey("app", "never there"), TableKey("app", "t1"))
    assert named == {VIEWS[0], VIEWS[1]}
    assert read(TableKey("app", "GESEHEN\u1e9e"))[0] == {VIEWS[1]}
    assert read(VIEWS[3])[0] == {VIEWS[3]}
    assert read()[0] == set()
    wanted = [TableKey("app", f"x{number}") for number in range(programs._MOST_NAMES + 1)]
    whole, many = read(*wanted)
    assert whole == {*VIEWS[:3]}
    if server.flavor is Flavor.MARIADB:
        assert few <= 4 < 20 <= many
    with connected(server) as connection:
        assert {*VIEWS} <= {*read_views(connection, lambda _: True)}
