"""CREATE EVENT is disabled where it stands, and every other byte of it stays."""

from __future__ import annotations

import pytest

from binlane.errors import PlanError
from binlane.model import Flavor
from binlane.sql.charset import dialect_in
from binlane.sql.parse.lexer import Dialect
from binlane.sql.scheduled_event import disabled, schedule_call

HEAD = b"CREATE EVENT e ON SCHEDULE EVERY 1 DAY"


@pytest.mark.parametrize(
    ("charset", "body"),
    [
        pytest.param("utf8mb4", "COMMENT 'ß \xa0 DO' DO SELECT 'à'".encode(), id="utf8mb4"),
        pytest.param("cp932", b"COMMENT '\x95\x5c' DO SELECT '\xed\x40'", id="two spellings, one has a backslash"),
        pytest.param("sjis", b"COMMENT '\x83\x5c' DO SELECT 1", id="sjis"),
        pytest.param("gbk", b"COMMENT '\xbf\x27' DO SELECT '", id="no character, so a quote"),
        pytest.param("gbk", b"COMMENT '\xbf\x5c' DO SELECT 1", id="gbk"),
        pytest.param("big5", b"COMMENT '\xa5\x5c' DO SELECT 1", id="big5"),
        pytest.param("gb18030", b"COMMENT '\x81\x30\x81\x30\x81\x5c' DO SELECT 1", id="gb18030"),
        pytest.param("euckr", b"COMMENT '\xb0\xa1\xff' DO SELECT 1", id="euckr"),
    ],
)
def test_the_status_stands_in_front_of_the_comment(charset: str, body: bytes) -> None:
    assert disabled(HEAD + b" " + body, charset, Dialect(Flavor.MYSQL)) == HEAD + b"  DISABLE ON SLAVE " + body


@pytest.mark.parametrize(
    ("charset", "name"),
    [("cp932", b"\x95\x5c"), ("sjis", b"\x83\x5c"), ("gbk", b"\xbf\x5c"), ("big5", b"\xa5\x5c")],
)
def test_a_backslash_that_is_half_a_character_hides_nothing_behind_it(charset: str, name: bytes) -> None:
    statement = b"CREATE DEFINER='" + name + b"'@'%' EVENT e ON SCHEDULE EVERY 1 DAY ENABLE DO SELECT '" + name + b"'"

    assert disabled(statement, charset, Dialect(Flavor.MARIADB)) == statement.replace(
        b" ENABLE DO", b"  DISABLE ON SLAVE  DO"
    )


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(
    ("statement", "modes"),
    [
        ("ALTER EVENT e ENABLE /*M DISABLE */ DO SELECT 1", ""),
        ("ALTER EVENT e ENABLE /* DISABLE */ DO SELECT 1", ""),
        ("ALTER EVENT e /*M COMMENT */ ENABLE DO SELECT 1", ""),
        ("ALTER EVENT e ENABLE --\x0bDISABLE\n DO SELECT 1", ""),
        ("ALTER EVENT e ENABLE # DISABLE\n DO SELECT 1", ""),
        ("ALTER EVENT e ON SCHEDULE AT CONCAT('x', LEFT('\\', 0)) ENABLE DO SELECT 'x'", "NO_BACKSLASH_ESCAPES"),
        ('ALTER EVENT "e\\" ENABLE COMMENT "x"', "ANSI_QUOTES,NO_BACKSLASH_ESCAPES"),
        ('CREATE EVENT "do" ON SCHEDULE EVERY 1 DAY ENABLE DO SELECT "x"', "ANSI_QUOTES"),
    ],
)
def test_what_the_target_takes_for_a_comment_or_a_string_hides_no_status(
    statement: str, modes: str, flavor: Flavor
) -> None:
    # the grammar of MySQL 8.0 and 8.1 has no REPLICA here
    status = " DISABLE ON SLAVE "
    found = disabled(statement.encode(), "utf8mb4", dialect_in(modes, flavor)).decode()
    assert found == statement.replace("ENABLE", status, 1)


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY ON COMPLETION PRESERVE DISABLE COMMENT 'ENABLE' DO SELECT 'ENABLE'",
        "ALTER EVENT e DISABLE",
        "ALTER EVENT enable DISABLE RENAME TO enable",
        "alter event e disable /* ENABLE */ do select 1",
    ],
)
def test_an_event_that_the_source_has_disabled_stays_so(statement: str, flavor: Flavor) -> None:
    """Which events ran on the source, the target alone keeps."""
    assert disabled(statement.encode(), "utf8mb4", Dialect(flavor)) == statement.encode()


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("ALTER EVENT e ENABLE DISABLE", "ALTER EVENT e ENABLE  DISABLE ON SLAVE "),
        ("ALTER EVENT e DISABLE ENABLE", "ALTER EVENT e DISABLE  DISABLE ON SLAVE "),
        ("ALTER EVENT e DISABLE ON SLAVE", "ALTER EVENT e  DISABLE ON SLAVE "),
    ],
)
def test_a_text_with_two_statuses_is_none_that_is_disabled(statement: str, expected: str) -> None:
    assert disabled(statement.encode(), "utf8mb4", Dialect(Flavor.MARIADB)).decode() == expected


CALLS = {
    "AT CURRENT_TIMESTAMP + INTERVAL 1 + 0*RELEASE_ALL_LOCKS() DAY": "RELEASE_ALL_LOCKS()",
    "AT sys_eval('id')": "sys_eval()",
    "AT `now` ()": "now()",
    "AT app.now()": "now()",
    "EVERY 1 DAY STARTS NOW() + INTERVAL SLEEP(100) SECOND": "SLEEP()",
    "EVERY (SELECT 1) DAY": "SELECT",
    "EVERY @a := 1 DAY": ":=",
    "EVERY NEXT VALUE FOR s DAY": "NEXT",
    "EVERY 1 + BENCHMARK(1000000000, SHA1(1)) DAY": "BENCHMARK()",
    "AT NOW() ENDS GET_LOCK('x', 1)": "GET_LOCK()",
}


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(
    "head",
    [
        *("CREATE EVENT app.e", "ALTER EVENT do", "CREATE DEFINER = `f`@`x` EVENT IF NOT EXISTS comment"),
        *("CREATE EVENT app.do", "ALTER EVENT app . comment", "CREATE EVENT IF NOT EXISTS do.comment"),
    ],
)
@pytest.mark.parametrize("schedule", CALLS)
def test_a_schedule_that_runs_something_when_the_event_is_made_is_refused(
    schedule: str, head: str, flavor: Flavor
) -> None:
    statement = f"{head} ON SCHEDULE {schedule} DO DELETE FROM t".encode()
    assert schedule_call(statement, "utf8mb4", Dialect(flavor)) == CALLS[schedule]
    with pytest.raises(PlanError, match="expected a schedule of times"):
        disabled(statement, "utf8mb4", Dialect(flavor))


@pytest.mark.parametrize(
    "schedule",
    [
        "AT '2026-01-01 00:00:00'",
        "AT CURRENT_TIMESTAMP(6) + INTERVAL (1 + 2) DAY",
        "EVERY '1:30' HOUR_MINUTE STARTS DATE_ADD(NOW(), INTERVAL 1 DAY) ENDS TIMESTAMP('2030-01-01')",
        "EVERY @n DAY",
        "EVERY DAYNAME(NOW()) DAY STARTS PERIOD_ADD(200801, 2)",
    ],
)
def test_a_schedule_of_times_is_none(schedule: str) -> None:
    statement = f"CREATE EVENT e ON SCHEDULE {schedule} ON COMPLETION PRESERVE COMMENT 'x' DO DO RELEASE_ALL_LOCKS()"
    assert schedule_call(statement.encode(), "utf8mb4", Dialect(Flavor.MYSQL)) is None
    assert b"DISABLE ON SLAVE" in disabled(statement.encode(), "utf8mb4", Dialect(Flavor.MYSQL))


@pytest.mark.parametrize("name", ["next", "previous", "app.next", "value", "event", "event.do", "comment.disable"])
def test_an_event_may_have_any_name(name: str) -> None:
    statement = f"CREATE EVENT {name} ON SCHEDULE EVERY 1 DAY DO DO SLEEP(1)"
    assert schedule_call(statement.encode(), "utf8mb4", Dialect(Flavor.MARIADB)) is None
    for rest in ("COMMENT 'x' DO SELECT 1", "DO SELECT 1", "ON COMPLETION PRESERVE RENAME TO app.do DO SELECT 1"):
        altered = f"ALTER EVENT {name} {rest}"
        at = altered.index("DO SELECT" if rest.startswith("ON") else rest)
        expected = f"{altered[:at]} DISABLE ON SLAVE {altered[at:]}"
        assert disabled(altered.encode(), "utf8mb4", Dialect(Flavor.MARIADB)).decode() == expected


DEFINERS = (
    *("u@", "u@/**/", "`u`@", "'u'@ ", "u@`%`", "u @`%`", "'u'@''", "u@event.sql", "event@event", "sql", "`sql`@`sql`"),
    *("`=`", "`@`", "'='@'='", "`(`", "CURRENT_USER", "CURRENT_USER()", "u@10.0.0.1", "u@_.view"),
)


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("front", ["", "SET STATEMENT max_sort_length = 100 FOR "])
@pytest.mark.parametrize("definer", DEFINERS)
def test_whoever_the_definer_is_the_event_is_disabled_and_its_schedule_is_read(
    definer: str, front: str, flavor: Flavor
) -> None:
    dialect = Dialect(flavor)
    enabled = f"{front}ALTER DEFINER={definer} EVENT app.e ENABLE"
    assert disabled(enabled.encode(), "utf8mb4", dialect).decode() == enabled.replace("ENABLE", " DISABLE ON SLAVE ")
    made = f"{front}CREATE OR REPLACE DEFINER = {definer} EVENT e ON SCHEDULE EVERY SLEEP(1) DAY DO SELECT 1"
    assert schedule_call(made.encode(), "utf8mb4", dialect) == "SLEEP()"
