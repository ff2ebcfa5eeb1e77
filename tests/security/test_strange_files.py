"""A name of the work folder that is no file, or a file without an end, is named: no step waits for it or reads on.

Attacker: whoever can write to the work folder. test_window_files has the attacks by files with another content.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import pytest

from binlane.errors import BinlaneError
from binlane.formats import FORMATS_FILE
from binlane.sessions.server_proof import TargetProof
from binlane.state.target_record import file_of, recorded
from binlane.work.files import WorkFolder
from binlane.work.folder_formats import check_formats
from binlane.work.memory_map import mapped
from binlane.work.plan_job.made import ANSWER, take_answer
from tests.forked import telling

NAME: Final = "manifest.json"
SECONDS: Final = 60


def _socket(path: Path) -> None:
    # the name of a socket is shorter than a test's folder
    with socket.socket(socket.AF_UNIX) as found, pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)
        found.bind(path.name)


def _endless(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


STRANGE: Final[Mapping[str, tuple[Callable[[Path], object], str]]] = {
    "a FIFO": (os.mkfifo, "expected a file, found a FIFO"),
    "a folder": (Path.mkdir, "expected a file, found a folder"),
    "a socket": (_socket, "expected a file, found a socket"),
    "an endless device": (lambda path: path.symlink_to("/dev/zero"), "expected a file, found a device"),
    "a link to itself": (lambda path: path.symlink_to(path.name), "expected a file, found a loop of symbolic links"),
    "a link to nothing": (lambda path: path.symlink_to("nothing"), "this file of the window is missing"),
    "a file without an end": (_endless, "expected a file of a window, of at most 1,073,741,824 bytes, found"),
}
"""What has the file's name, and what is said of it. A line more is an attack more, on every way to read a file."""


def test_a_file_of_an_object_store_is_read_up_to_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("binlane.work.files._MOST_BYTES", 4)
    folder = WorkFolder(f"memory://{tmp_path.name}/window")
    folder.replace(NAME, b"1234")
    assert folder.read(NAME) == b"1234"
    folder.replace(NAME, b"12345")
    with pytest.raises(BinlaneError, match="expected a file of a window, of at most 4 bytes, found more"):
        folder.read(NAME)


def _mapped(folder: WorkFolder) -> None:
    with mapped(folder, NAME):
        pass


def _mapped_large(folder: WorkFolder) -> None:
    with mapped(folder, NAME, large=0):
        pass


WAYS: Final[Mapping[str, Callable[[WorkFolder], object]]] = {
    "read": lambda folder: folder.read(NAME),
    "read, with a digest": lambda folder: WorkFolder(folder.uri, {NAME: "0" * 64}).read(NAME),
    "open": lambda folder: folder.open(NAME),
    "digest": lambda folder: folder.digest(NAME),
    "written again": lambda folder: folder.write_once(NAME, b"1"),
    "a segment": _mapped,
    "a large segment": _mapped_large,
}
"""The ways by which steps read a file. Those of ``ANY_LENGTH`` read it piece by piece, or map it."""
ANY_LENGTH: Final = frozenset({"open", "digest", "a segment", "a large segment"})


def _said(way: str, folder: str, answer: Connection) -> None:
    try:
        WAYS[way](WorkFolder(folder))
        answer.send("nothing")
    except BinlaneError as exc:
        answer.send(str(exc))


@pytest.mark.parametrize("way", WAYS)
def test_a_name_that_is_no_file_is_named(tmp_path: Path, way: str) -> None:
    for strange, (make, expected) in STRANGE.items():
        if strange == "a file without an end" and way in ANY_LENGTH:
            continue
        folder = tmp_path / strange.replace(" ", "-")
        folder.mkdir()
        make(folder / NAME)
        if way == "written again" and strange in ("a link to nothing", "a link to itself"):
            # there is no such file, and the new one takes the link's place
            expected = "nothing"
        with telling(_said, way, str(folder)) as (_, answer):
            assert answer.poll(SECONDS), strange
            said = answer.recv()
        assert expected in said, (strange, said)
        assert expected == "nothing" or f"{folder}/{NAME}: " in said


CONTENTS: Final = (
    *(b"", b"null", b'"x"', b"[]", b"7", b"\xff\xfe\x00", b"[" * 60_000, b'{"a":' * 10_000),
    b'{"identity": 1, "incarnation": 2, "seqno": 1e999, "binlane": 1, "formats": {"a": 1e999}}',
    b'{"identity": 1, "incarnation": 2, "seqno": NaN, "binlane": 1, "formats": {"a": NaN}}',
    b'{"identity": 1, "incarnation": 2, "seqno": "%b", "binlane": 1, "formats": {"a": "%b"}}' % ((b"9" * 5_000,) * 2),
    b'{"made": "", "code": [], "binlane": 1, "formats": 7}',
)
"""In place of small records of which the target has no digest. A line more is an attack more."""
RECORDS: Final[Mapping[str, Callable[[str], object]]] = {
    file_of("shop"): lambda folder: recorded(TargetProof("shop", folder)),
    FORMATS_FILE: lambda folder: check_formats(WorkFolder(folder)),
    ANSWER: lambda folder: take_answer(folder, "token"),
}


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: repr(content[:30]))
def test_a_record_of_any_bytes_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BinlaneError, match=f"{tmp_path}/{name}: expected "):
        RECORDS[name](str(tmp_path))


@pytest.mark.parametrize("place", ["{}", "memory://{}"], ids=["here", "elsewhere"])
@pytest.mark.parametrize("name", [FORMATS_FILE, ANSWER])
def test_a_small_record_is_read_up_to_a_small_size(tmp_path: Path, name: str, place: str) -> None:
    """Its lists take twenty times the memory of its bytes, and each step, and each page of a window, reads it."""
    folder = place.format(tmp_path)
    WorkFolder(folder).replace(name, b"[" + b"[]," * (1 << 19) + b"0]")
    with pytest.raises(BinlaneError, match=f"{name}: expected a file of a window, of at most 1,048,576 bytes, found"):
        RECORDS[name](folder)


def test_a_link_is_removed_and_nothing_behind_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (tmp_path / "work" / "1").mkdir(parents=True)
    for link in (tmp_path / "work" / "1" / "lanes", tmp_path / "work" / "2"):
        link.symlink_to(outside)
    for window in ("1", "2"):
        WorkFolder(str(tmp_path / "work" / window)).remove()
    assert list((tmp_path / "work").iterdir()) == []
    assert list(outside.iterdir()) == [outside / "kept"]


def _recorded(folder: str, answer: Connection) -> None:
    try:
        answer.send(recorded(TargetProof("shop", folder)).identity or "no record")
    except BinlaneError as exc:
        answer.send(str(exc))


@pytest.mark.parametrize("strange", STRANGE)
def test_a_record_of_the_target_that_is_no_file_holds_no_command(tmp_path: Path, strange: str) -> None:
    make, _ = STRANGE[strange]
    make(tmp_path / file_of("shop"))
    with telling(_recorded, str(tmp_path)) as (_, answer):
        assert answer.poll(SECONDS)
        said = answer.recv()
    assert said == "no record" or "expected the record of the channel's target" in said
