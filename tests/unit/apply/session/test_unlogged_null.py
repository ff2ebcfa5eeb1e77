"""Which errors may mean a NULL that the source has made the current time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pymysql
import pytest

from binlane.apply.session.unlogged_null import UnloggedNullError, refused_null
from binlane.model import Flavor, Item, ItemKind, SessionContext

REFUSED = pymysql.err.IntegrityError(1048, "Column 'at' cannot be null")
UNLOGGED = SessionContext(thread_id=8)


def judged(error: pymysql.err.MySQLError, context: SessionContext | None, flavor: Flavor) -> pymysql.err.MySQLError:
    session: Any = SimpleNamespace(flavor=flavor)
    return refused_null(error, Item(ItemKind.STATEMENT, b"INSERT INTO t VALUES (NULL)", context=context), session)


def test_a_refused_null_is_told_with_the_server_s_own_words() -> None:
    found = judged(REFUSED, UNLOGGED, Flavor.MYSQL)
    assert isinstance(found, UnloggedNullError)
    assert found.args == REFUSED.args


@pytest.mark.parametrize(
    ("error", "context", "flavor"),
    [
        pytest.param(pymysql.err.IntegrityError(1062, "Duplicate"), UNLOGGED, Flavor.MYSQL, id="another error"),
        pytest.param(REFUSED, SessionContext(error_code=1062), Flavor.MYSQL, id="an error on the source"),
        pytest.param(REFUSED, SessionContext(explicit_defaults_for_timestamp=True), Flavor.MYSQL, id="logged"),
        pytest.param(REFUSED, UNLOGGED, Flavor.MARIADB, id="mariadb"),
        pytest.param(REFUSED, None, Flavor.MYSQL, id="nothing logged"),
    ],
)
def test_other_errors_are_what_they_are(
    error: pymysql.err.MySQLError, context: SessionContext | None, flavor: Flavor
) -> None:
    assert judged(error, context, flavor) is error
