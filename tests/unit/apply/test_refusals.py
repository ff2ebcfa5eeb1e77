"""What a target's refusals say is to be done."""

from __future__ import annotations

import re

import pymysql
import pytest

from binlane.apply.refusals import space_advice, target_errors
from binlane.errors import SourceError, TargetError, TargetUnavailableError
from binlane.source.server import translated

REFUSALS = [
    (
        1146,
        TargetError,
        r"^t: the server says: said \(1146\); .*`binlane bootstrap CHANNEL` copies.*`The schema binlane is lost`",
    ),
    (1049, TargetError, r"`binlane init CHANNEL` begins it without a copy"),
    (1045, TargetError, r"check user and password of the connection; .*REQUIRE SSL.*ssl_mode=required"),
    (3159, TargetError, r"require_secure_transport.*ssl_mode=required"),
    (3118, TargetError, r"; ALTER USER the account ACCOUNT UNLOCK there, then run again$"),
    (4151, TargetError, r"; ALTER USER the account ACCOUNT UNLOCK there, then run again$"),
    (1862, TargetError, r"the password has expired: .* there, or give it a new one there and in the connection"),
    (1227, TargetError, r"GRANT the account what the server names"),
    (1064, TargetError, r"look at the target, then run again: what is committed stays"),
    (1114, TargetError, r"free space on the target, then run again: what is committed stays"),
    (2003, TargetUnavailableError, r"check host and port"),
]


@pytest.mark.parametrize(("code", "error", "message"), REFUSALS)
def test_a_refusal_names_the_server_and_the_way_out(code: int, error: type[TargetError], message: str) -> None:
    with pytest.raises(error, match=message), target_errors("t"):
        raise pymysql.err.OperationalError(code, "said")


@pytest.mark.parametrize(
    ("limit", "option"),
    [
        ("max_user_connections", "MAX_USER_CONNECTIONS"),
        ("max_connections_per_hour", "MAX_CONNECTIONS_PER_HOUR"),
        ("max_questions", "MAX_QUERIES_PER_HOUR"),
        ("max_updates_per_hour", "MAX_UPDATES_PER_HOUR"),
    ],
)
def test_a_limit_of_an_account_is_named_with_the_option_that_lifts_it(limit: str, option: str) -> None:
    said = f"User 'x' has exceeded the '{limit}' resource (current value: 1)"
    for side in (target_errors("the target"), translated("the source")):
        with pytest.raises((TargetError, SourceError), match=f"ALTER USER 'x'@HOST WITH {option} 0 "), side:
            raise pymysql.err.OperationalError(1226, said)


@pytest.mark.parametrize(
    ("code", "said", "advice"),
    [
        (1114, "The table 'heap' is full", "free space on the target, .*a MEMORY table needs a larger"),
        (
            1026,
            "Error writing file './shop/t.frm' (Errcode: 28 \"No space left on device\")",
            "free space on the target",
        ),
        (1005, 'Can\'t create table `shop`.`t` (errno: 28 "No space left on device")', "free space on the target"),
        (1030, "Got error 28 from storage engine, errno: 28", "free space on the target"),
        (1005, 'Can\'t create table `shop`.`t` (errno: 150 "Foreign key constraint")', ""),
        (1064, "near 'errno: 280'", ""),
    ],
)
def test_a_full_disk_is_no_fault_of_the_transaction(code: int, said: str, advice: str) -> None:
    assert re.match(advice or "$", space_advice(code, said))
