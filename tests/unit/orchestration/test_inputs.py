"""Channels that must not divide the shards that their list divides."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.config import load_channel
from binlane.errors import ConfigError
from binlane.orchestration.inputs import check_division
from binlane.shards.shard_list import parse_shard_list

MINIMAL = '[source]\nconnection = "a"\n[target]\nconnection = "b"\n'
TORN = "[lanes]\nallow_torn = true\n"
TOGETHER = '[lanes]\ncommit = "together"\n'


def check(folder: Path, text: str, shard_list: str = "(divided)=shop\n") -> None:
    file = folder / "shop.toml"
    file.write_text(MINIMAL + text)
    check_division(load_channel(file, {}), parse_shard_list(shard_list, "shop.list", lanes=4))


@pytest.mark.parametrize(
    "text", [TORN, '[lanes]\nconsistency = "epoch"\n', TOGETHER, f'{TORN}[blocks]\nreduce = "window"\n']
)
def test_a_channel_divides_if_its_lanes_meet_or_it_says_so(tmp_path: Path, text: str) -> None:
    check(tmp_path, text)


def test_a_list_without_divided_shards_needs_nothing(tmp_path: Path) -> None:
    check(tmp_path, '[blocks]\nreduce = "off"\n', "(*)=1\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r'"epoch", lanes\.commit = "together" or lanes\.allow_torn = true, found lanes\.consistency = "eventual"'),
        (
            '[lanes]\nconsistency = "any_time"\n',
            r'found lanes\.consistency = "any_time", lanes\.commit = "alone" and lanes\.allow_torn = false',
        ),
        (f'{TOGETHER}[blocks]\nreduce = "window"\n', r'expected blocks\.reduce "auto" or "block"'),
        (f'{TORN}[blocks]\nreduce = "off"\n', r"shop\.list: \(divided\): only folded blocks can be divided"),
        (f"{TORN}[apply]\nallow_nontransactional = true\n", "may run outside of a block"),
        (f'{TORN}[apply]\nallow_triggers = ["shop.t"]\n', "may write tables of other lanes"),
    ],
)
def test_any_other_channel_is_refused_with_what_it_needs(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check(tmp_path, text)
