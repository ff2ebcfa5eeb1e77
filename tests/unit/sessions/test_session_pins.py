"""What a session of a version is given."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.sessions.pins import Server, SessionKind, assignments

NULL_OF_TIMESTAMPS = "@@SESSION.explicit_defaults_for_timestamp = 1"


@pytest.mark.parametrize(
    ("number", "is_of_session"),
    [
        ((10, 4, 34), False),
        ((10, 5, 16), False),
        ((10, 5, 17), True),
        ((10, 6, 8), False),
        ((10, 6, 18), True),
        ((10, 9, 1), False),
        ((10, 9, 2), True),
        ((10, 11, 18), True),
    ],
)
def test_definitions_are_made_with_explicit_defaults_wherever_a_session_may_have_them(
    number: tuple[int, int, int], is_of_session: bool
) -> None:
    """A TIMESTAMP NOT NULL without a default gets one of OFF, the default of MariaDB before 10.10."""
    found = assignments(Server(Flavor.MARIADB, number), SessionKind.WRITE)
    assert (NULL_OF_TIMESTAMPS in found) == is_of_session
