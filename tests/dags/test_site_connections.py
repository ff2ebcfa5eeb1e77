"""Where an Airflow has a connection, without a word of the connection itself."""

import pytest

from binlane.orchestration.airflow.site_connections import stores_of_site


def test_an_error_never_quotes_a_part_of_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    # its slash is not escaped, so the rest of the password stands where a port is expected
    monkeypatch.setenv("AIRFLOW_CONN_BROKEN", "mysql://writer:Pw-77/x@host:3306/")

    found = stores_of_site()("broken")

    assert found.kept == ()
    assert found.silent[0] == "AIRFLOW_CONN_BROKEN of this shell: ValueError"
    assert "Pw-77" not in repr(found)
