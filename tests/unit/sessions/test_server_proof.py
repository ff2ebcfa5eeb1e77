"""Whether a server of MariaDB has executed a watermark's transactions."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.sessions.server_proof import ServerProof


@pytest.mark.parametrize(
    ("logged", "replicated", "watermark"),
    [
        # an older copy of the source, which replicates another server by now
        ("0-1-50", "0-2-500", "0-1-100"),
        ("0-1-50,0-2-500", "0-2-500", "0-1-100"),
        ("0-1-50", "0-7-500", "0-7-500,0-1-100"),
    ],
)
def test_another_server_s_numbers_prove_nothing_of_what_the_log_has(
    logged: str, replicated: str, watermark: str
) -> None:
    refused = ServerProof("mariadb server_id 1", watermark).refusal(Flavor.MARIADB, ("1", logged, replicated))
    assert refused is not None
    assert "found 0-1-50" in refused


def test_what_was_put_in_is_proved_by_what_is_replicated_behind_it() -> None:
    proof = ServerProof("mariadb server_id 1", "0-7-500,0-1-100")
    for replicated in ("0-7-500", "0-8-501"):
        assert proof.refusal(Flavor.MARIADB, ("1", "0-1-100", replicated)) is None
    assert proof.refusal(Flavor.MARIADB, ("1", "0-1-100", "0-7-499")) is not None
