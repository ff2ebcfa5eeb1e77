"""Which MariaDB servers are given the rows of sequences."""

from __future__ import annotations

import pytest

from binlane.precheck.tables.differences import takes_sequence_rows
from binlane.servers.variables import version_number


@pytest.mark.parametrize(
    ("version", "taken"),
    [
        ("10.4.34-MariaDB", False),
        ("10.5.23-MariaDB-0+deb11u1-log", False),
        ("10.5.24-MariaDB", False),
        ("10.5.25-MariaDB", True),
        ("10.6.17-MariaDB", False),
        ("10.6.18-MariaDB", True),
        ("10.7.8-MariaDB", False),
        ("10.11.7-MariaDB", False),
        ("10.11.18-MariaDB-log", True),
        ("11.0.6-MariaDB", True),
        ("11.3.2-MariaDB", False),
        ("11.4.2-MariaDB", False),
        ("11.4.3-MariaDB", True),
        ("11.8.6-MariaDB-0+deb13u1-log", True),
        ("12.0.2-MariaDB", True),
    ],
)
def test_a_target_takes_them_where_the_fix_is_known_to_be(version: str, taken: bool) -> None:
    assert takes_sequence_rows(version_number(version)) is taken
