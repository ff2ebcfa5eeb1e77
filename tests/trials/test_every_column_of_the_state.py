"""Every column of the schema ``binlane`` with every hostile value: commands and the board answer, or say what is wrong.

Nothing outside of the channel's work folder is removed or read, nothing is fetched, and no answer is a traceback. The
cheap part, some values a column, is in tests/security.
"""

from __future__ import annotations

import pytest

from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf
from tests.security.conftest import witness  # noqa: F401
from tests.security.hostile_state import HOSTILE, attacked, state_of
from tests.security.witness import Witness

families = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])


@families
def test_every_column_with_every_hostile_value(channel_of: ChannelOf, family: str, witness: Witness) -> None:  # noqa: F811
    channel = channel_of(family, family)
    state = state_of(channel)
    found = [one for value in HOSTILE for one in attacked(channel, state, value)]
    witness.assert_untouched()
    assert found == []
