"""Channel files and shard lists that say too much end in one error of a few lines, soon.

Attacker: whoever can put a file into the folder of channels, which Airflow parses every minute and the board reads.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

import pytest

from binlane.config import declared_channels, load_channel
from binlane.errors import ConfigError
from binlane.orchestration.effective_rules import shard_list_text
from binlane.shards.shard_list import parse_shard_list

CHANNEL: Final = b'[source]\nconnection = "s"\n[target]\nconnection = "t"\n'
_LAUGHS: Final = b"[variables]\n" + b"".join(
    b'v%d = "%s"\n' % (level, b"${v%d}" % (level + 1) * 10) for level in range(30)
)
_LISTS: Final = b"[variables]\n" + b"".join(
    b"v%d = [%s]\n" % (level, b",".join([b'"${v%d}"' % (level + 1)] * 10)) for level in range(30)
)
FILES: Final = {
    "deep lists": CHANNEL + b"tags = " + b"[" * 5_000 + b"]" * 5_000,
    "deep inline tables": CHANNEL + b"[rename]\na = " + b"{a = " * 5_000 + b"1" + b"}" * 5_000,
    "deep dotted keys": b"owner" + b".a" * 200_000 + b" = 1\n" + CHANNEL,
    "deep dotted keys of a section": CHANNEL + b"[rename]\na" + b".a" * 200_000 + b" = 1\n",
    "deep headers": CHANNEL + b"[rename" + b".a" * 200_000 + b"]\n",
    "a key of a megabyte": CHANNEL + b"[filter]\n" + b"k" * 1_000_000 + b" = 1\n",
    "a text of a megabyte": CHANNEL + b'[window]\nschedule = "' + b"x" * 1_000_000 + b'"\n',
    "a file of nine megabytes": CHANNEL + b"# " + b"x" * 9_000_000,
    "a number of 5,000 digits": CHANNEL + b"[lanes]\ncount = " + b"9" * 5_000,
    "a number of 4,000 digits": CHANNEL + b"[lanes]\ncount = " + b"9" * 4_000,
    "a key twice": CHANNEL + b"[target]\nconnection = 'x'\n",
    "UTF-16": CHANNEL.decode().encode("utf-16"),
    "latin1": CHANNEL + "owner = '\xe9'".encode("latin-1"),
    "a mark of UTF-8": b"\xef\xbb\xbf" + CHANNEL,
    "NUL": CHANNEL + b"\x00",
    "an escape": b"\x1b[2J" + CHANNEL,
    "values with variables with variables": _LAUGHS + b'[instances.a]\n[source]\nconnection = "${v0}"\n',
    "lists with variables with variables": _LISTS + b'[instances.a]\n[filter]\ninclude_databases = "${v0}"\n',
    "a name of an instance with an escape": b'[instances."\\u001b[2J"]\n' + CHANNEL,
    "an instance's name of a megabyte": b"[instances." + b"x" * 1_000_000 + b"]\n" + CHANNEL,
}
"""A line more is an attack more."""
LISTS: Final = {
    "a lane of 5,000 digits": b"a=" + b"9" * 5_000,
    "a name of a megabyte": b"x" * 1_000_000 + b"=q",
    "a pattern with many groups": b"(pattern)=" + b"(?<shard>a)" + b"(a)" * 5_000,
    "a pattern that repeats repetitions": b"(pattern)=(?<shard>((a{1,1000}){1,1000}){1,1000})",
    "a pattern of nested groups": b"(pattern)=" + b"(" * 490 + b"?<shard>" + b")" * 490,
}
LONGEST: Final = 2_000
"""Characters of an error, or it would fill logs and notes."""
SECONDS: Final = 60
"""Far from what an exponential one would take, also on a busy machine."""


@pytest.mark.parametrize("name", FILES)
def test_a_channel_file_of_an_attacker_is_one_short_error(name: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    file.write_bytes(FILES[name])
    begun = time.process_time()
    [found] = declared_channels(tmp_path)
    with pytest.raises(ConfigError, match=r"shop\.toml") as refused:
        load_channel(found, {})
    assert len(str(refused.value)) < LONGEST
    assert "\x1b" not in str(refused.value)
    assert time.process_time() - begun < SECONDS


def test_a_channel_file_that_is_no_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.toml")
    (tmp_path / "device.toml").symlink_to("/dev/zero")
    (tmp_path / "folder.toml").mkdir()
    found = {each.name: each.problem for each in declared_channels(tmp_path)}
    assert {name: problem.rpartition("found ")[2] for name, problem in found.items()} == {
        "fifo": "a FIFO", "device": "a device", "folder": "a folder",
    }  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_a_shard_list_of_an_attacker_is_one_short_error(name: str) -> None:
    with pytest.raises(ConfigError, match=r"shop\.list:1") as refused:
        parse_shard_list(LISTS[name], "shop.list", lanes=4)
    assert len(str(refused.value)) < LONGEST


def test_a_shard_list_that_is_no_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "channels" / "shop.toml"
    file.parent.mkdir()
    file.write_bytes(CHANNEL)
    channel = load_channel(file, {})
    channel.shard_list_file.parent.mkdir()
    assert shard_list_text(channel) == ""
    os.mkfifo(channel.shard_list_file)
    with pytest.raises(ConfigError, match=r"shop\.list: cannot be read: expected a file, found a FIFO"):
        shard_list_text(channel)
