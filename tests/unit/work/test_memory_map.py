"""A segment's bytes: the same from a disk and from a store, whatever is dropped meanwhile."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest

from binlane.errors import PlanError
from binlane.work import memory_map as module
from binlane.work.files import WorkFolder
from binlane.work.memory_map import mapped


@pytest.mark.parametrize("large", [1, 1 << 40], ids=["dropped behind the reader", "kept"])
@pytest.mark.parametrize("store", ["local", "memory"])
def test_the_bytes_are_those_of_the_file(
    store: str, large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_INTERVAL", 0.001)
    folder = WorkFolder(str(tmp_path) if store == "local" else f"memory://{uuid.uuid4().hex}")
    data = os.urandom(3 << 20)
    folder.write_once("segments/1", data)
    with mapped(folder, "segments/1", large) as found:
        for _ in range(20):
            assert bytes(found) == data


def test_a_missing_file_is_named() -> None:
    with pytest.raises(PlanError, match="segments/1"), mapped(WorkFolder(f"memory://{uuid.uuid4().hex}"), "segments/1"):
        raise AssertionError("nothing is there")
