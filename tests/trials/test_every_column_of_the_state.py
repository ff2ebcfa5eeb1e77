"""Every column of the schema ``binlane`` with every hostile value: commands and the board answer, or say what is wrong.

Nothing outside of the channel's work folder is removed or read, nothing is fetched, and no answer is a traceback.
"""

from __future__ import annotations

import pytest

from binlane.state.tables import metadata
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf
from tests.security.conftest import witness  # noqa: F401
from tests.security.hostile_state import attacked, state_of
from tests.security.witness import Witness
from tests.trials.sampling import IS_WHOLE, sampled

FAMILIES = ["mariadb", pytest.param("mysql", marks=requires_mysql)]
SAMPLE = ("binlane.windows",)
"""The table whose texts name folders."""


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("family", FAMILIES if IS_WHOLE else FAMILIES[:1])
@pytest.mark.parametrize("table", sampled(sorted(metadata.tables), SAMPLE))
def test_every_column_with_every_hostile_value(
    channel_of: ChannelOf,
    family: str,
    table: str,
    witness: Witness,  # noqa: F811
) -> None:
    channel = channel_of(family, family)
    found = attacked(channel, state_of(channel), metadata.tables[table])
    witness.assert_untouched()
    assert found == []
