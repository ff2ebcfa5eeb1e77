"""A note of changes that no rollback undoes is removed only where nothing has stayed."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from binlane.apply.session.rollback import undo_all

LEFT = ("Warning", 1196, "Some non-transactional changed tables couldn't be rolled back")


class Session:
    """Answers SHOW WARNINGS before and behind the ROLLBACK."""

    def __init__(self, before: list[Any], behind: list[Any]) -> None:
        self.warnings, self._behind = before, behind

    def rows(self, _: str) -> list[Any]:
        return self.warnings

    def rollback(self) -> None:
        self.warnings = self._behind


@pytest.mark.parametrize("code", [1020, 1205, 1206, 1213])
def test_changes_that_the_server_has_left_itself_are_named_at_the_failed_statement_alone(code: int) -> None:
    """As MySQL 9.7 answers behind a deadlock, and behind a lock wait with innodb_rollback_on_timeout."""
    error, own = pymysql.err.OperationalError(code, "failed"), ("Error", code, "failed")
    assert undo_all(_session([own], []), error)
    assert not undo_all(_session([own, LEFT], []), error)
    # another statement has run since
    assert not undo_all(_session([], []), error)


def test_any_other_error_leaves_the_answer_to_the_rollback() -> None:
    error = pymysql.err.IntegrityError(1062, "duplicate")
    for reason in (error, None, KeyboardInterrupt()):
        assert undo_all(_session([], []), reason)
        assert not undo_all(_session([], [LEFT]), reason)


def _session(before: list[Any], behind: list[Any]) -> Any:
    return Session(before, behind)
