"""Which pairs of servers make the filter look at every TIMESTAMP."""

from __future__ import annotations

import pytest

from binlane.binlog.format_description import FormatDescription
from binlane.model import Flavor
from binlane.plan.block.row_size import ends_earlier


@pytest.mark.parametrize(
    ("source", "target", "earlier"),
    [
        ("11.8.6-MariaDB-log", "10.11.18-MariaDB", True),
        ("11.8.6-MariaDB-log", "11.4.3-MariaDB", True),
        ("11.5.1-MariaDB", "11.8.6-MariaDB", False),
        ("11.8.6-MariaDB-log", "9.7.0", True),
        ("11.4.3-MariaDB", "10.5.23-MariaDB", False),
        ("9.7.0", "10.11.18-MariaDB", False),
        ("8.0.31", "9.7.0", False),
    ],
)
def test_a_target_s_timestamps_end_earlier(source: str, target: str, earlier: bool) -> None:
    flavor = Flavor.MARIADB if "MariaDB" in target else Flavor.MYSQL
    assert ends_earlier(FormatDescription(source), flavor, target) is earlier
