"""A limit of an account that is reached is said with the statement that lifts it."""

from __future__ import annotations

import pymysql
import pytest

from binlane.apply.refusals import limit_advice, target_errors
from binlane.errors import TargetError


@pytest.mark.parametrize(
    ("limit", "option"),
    [
        ("max_user_connections", "MAX_USER_CONNECTIONS"),
        ("max_connections_per_hour", "MAX_CONNECTIONS_PER_HOUR"),
        ("max_questions", "MAX_QUERIES_PER_HOUR"),
        ("max_updates_per_hour", "MAX_UPDATES_PER_HOUR"),
    ],
)
def test_each_limit_has_its_option(limit: str, option: str) -> None:
    error = pymysql.err.OperationalError(1226, f"User 'x' has exceeded the '{limit}' resource (current value: 1)")
    with pytest.raises(TargetError, match=f"ALTER USER 'x'@HOST WITH {option} 0 "), target_errors("the target"):
        raise error
    assert limit_advice(pymysql.err.OperationalError(1203, "too many")) == ""
