"""What a target's refusals say is to be done."""

from __future__ import annotations

import pymysql
import pytest

from binlane.apply.refusals import target_errors
from binlane.errors import TargetError, TargetUnavailableError

REFUSALS = [
    (1146, TargetError, r"^t: the server says: said \(1146\); run `binlane init` first.*`The schema binlane is lost`"),
    (1049, TargetError, r"run `binlane init` first: it creates the state tables"),
    (1045, TargetError, r"check user and password of the connection"),
    (1064, TargetError, r"look at the target, then run again: what is committed stays"),
    (1114, TargetError, r"free space on the target, then run again: what is committed stays"),
    (2003, TargetUnavailableError, r"check host and port"),
]


@pytest.mark.parametrize(("code", "error", "message"), REFUSALS)
def test_a_refusal_names_the_server_and_the_way_out(code: int, error: type[TargetError], message: str) -> None:
    with pytest.raises(error, match=message), target_errors("t"):
        raise pymysql.err.OperationalError(code, "said")
