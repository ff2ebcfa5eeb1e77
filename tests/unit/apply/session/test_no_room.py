"""A session that the server has no room for is tried again, whichever of its limits it is."""

from __future__ import annotations

import pymysql
import pytest

from binlane.apply.session.retry_verdicts import Verdict, judge

LIMIT = "User 'lane' has exceeded the '{}' resource (current value: 6)"


@pytest.mark.parametrize(
    ("code", "said", "verdict"),
    [
        (1040, "Too many connections", Verdict.RETRY),
        (1203, "User lane already has more than 'max_user_connections' active connections", Verdict.RETRY),
        (1226, LIMIT.format("max_user_connections"), Verdict.RETRY),
        # an hour is no pause between two attempts
        (1226, LIMIT.format("max_connections_per_hour"), Verdict.FATAL),
        (1226, LIMIT.format("max_questions"), Verdict.FATAL),
    ],
)
def test_a_limit_of_sessions_at_once_is_worth_another_try(code: int, said: str, verdict: Verdict) -> None:
    assert judge(pymysql.err.OperationalError(code, said)) is verdict
