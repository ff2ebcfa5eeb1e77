"""What MariaDB servers of two series answer otherwise: named before the first write, by what the text shows."""

from __future__ import annotations

import pytest

from binlane.errors import PrecheckError
from tests.integration.window.conftest import Channel, ChannelOf, run_on

T = (
    "CREATE DATABASE app",
    "CREATE TABLE app.t (id INT PRIMARY KEY, j LONGTEXT, n BIGINT, d DATETIME, a INET6, "
    "g VARCHAR(40) AS (JSON_VALUE(j, '$.b[last]')) VIRTUAL)",
    'INSERT INTO app.t (id, j) VALUES (1, \'{"a": [1, 2], "b": [3, 4]}\')',
)
PATH = "a JSON path with an index from the end, or with a range"
TIME = "a Unix time behind 2036"
OLDER = {
    "UPDATE IGNORE app.t SET j = JSON_SET(j, '$.a[-1]', 9)": PATH,
    'UPDATE app.t SET n = JSON_VALUE(j, "$.a[last]")': PATH,
    "UPDATE app.t SET n = JSON_LENGTH(j, '$.\"a\"[0 to 1]') WHERE id = 1": PATH,
    "INSERT INTO app.t (id, n) VALUES (2, app.f())": f"{PATH} in function app.f",
}
NEWER = {
    "UPDATE app.t SET d = FROM_UNIXTIME(2147483648)": TIME,
    "UPDATE app.t SET n = UNIX_TIMESTAMP('2039-01-01')": TIME,
    "UPDATE app.t SET d = CONVERT_TZ('2040-01-01', '+00:00', '+01:00')": TIME,
    "INSERT INTO app.t (id, a) VALUES (3, '1.2.3.4')": "an IPv4 address for an INET6",
    "UPDATE app.t SET j = DATE_FORMAT('2024-01-01', '%z')": "DATE_FORMAT() with %z or %Z",
}
ALIKE = (
    "UPDATE app.t SET j = JSON_SET('[-1, 2]', '$[0]', 9)",
    "UPDATE app.t SET n = UNIX_TIMESTAMP('2037-01-01'), d = FROM_UNIXTIME(2000000000)",
    "UPDATE app.t SET a = '::1', j = '$[last] FROM_UNIXTIME'",
    # a literal is read where it stands
    "UPDATE app.t SET j = CONCAT(JSON_VALUE('[1]', '$[0]'), '$.a[last]')",
    "UPDATE app.t SET j = CONCAT(DATE_FORMAT('2024-01-01', '%Y'), '%z') WHERE j <> 'FROM_UNIXTIME(2147483648)'",
    "UPDATE app.t SET j = JSON_SET('{}', '$.a', 'x $[last]', '$.b', DATE_FORMAT('2024-01-01', '%Y')) WHERE j <> '%z'",
)


def window_of(channel: Channel, *logged: str) -> None:
    function = (
        "CREATE FUNCTION app.f() RETURNS INT READS SQL DATA RETURN (SELECT JSON_VALUE(MAX(j), '$.a[-2]') FROM app.t)"
    )
    channel.on_both(*T, function)
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", *logged)


@pytest.mark.parametrize(("source", "answers"), [("10.5", OLDER), ("11.8", NEWER)])
def test_what_another_series_answers_otherwise_is_named(
    channel_of: ChannelOf, source: str, answers: dict[str, str]
) -> None:
    channel = channel_of(source, "mariadb")
    window_of(channel, *answers)
    with pytest.raises(PrecheckError) as refused:
        channel.run()
    said = str(refused.value)
    for statement, what in answers.items():
        assert f"{what}, which MariaDB answers otherwise" in said, statement
    assert "[other-versions]" in said
    assert ("app.t.g: expected" in said) is (source == "10.5")
    assert channel.target.query("SELECT COUNT(*) FROM app.t") == [(1,)]


def test_what_every_series_answers_alike_is_applied(channel_of: ChannelOf) -> None:
    channel = channel_of("11.8", "mariadb")
    window_of(channel, *ALIKE)
    assert channel.run() is not None
    query = "SELECT id, j, n, d, a FROM app.t"
    assert channel.target.query(query) == channel.source.query(query)
