"""A window that has begun is finished by the files and the target alone, whatever has become of the source."""

from __future__ import annotations

import pytest

from binlane.errors import DriftError
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf, run_on


@pytest.mark.parametrize("flavor", [pytest.param("mysql", marks=requires_mysql), "mariadb"])
def test_a_begun_window_needs_no_source_and_meets_its_own_statements(channel_of: ChannelOf, flavor: str) -> None:
    channel = channel_of(flavor, flavor)
    channel.write_channel('writer = "sql"\n')
    channel.on_both("CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY) ENGINE=InnoDB")
    channel.on_both("CREATE TABLE tenant_1.late (id INT PRIMARY KEY) ENGINE=InnoDB")
    run_on(
        channel.source,
        "INSERT INTO tenant_1.t VALUES (1)",
        "CREATE TRIGGER tenant_1.x BEFORE INSERT ON tenant_1.t FOR EACH ROW SET NEW.id = NEW.id",
        "INSERT INTO tenant_1.late VALUES (7)",
    )
    run_on(channel.target, "INSERT INTO tenant_1.late VALUES (7)", log=False)
    with pytest.raises(DriftError, match="1062"):
        channel.run()
    made = "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = 'tenant_1'"
    assert channel.target.query(made) == [("x",)]
    run_on(channel.source, "DROP DATABASE tenant_1")
    channel.source.stop()
    run_on(channel.target, "DELETE FROM tenant_1.late", log=False)
    try:
        assert channel.run() is not None
    finally:
        channel.source.restart()
    rows = channel.target.query("SELECT id, (SELECT id FROM tenant_1.late) FROM tenant_1.t")
    assert rows == [(1, 7)]
