"""Files that are compared with their digests, and with themselves at every later reading."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from blake3 import blake3

from binlane.errors import PlanError
from binlane.work.checked_file import CheckedFile

SIZES = (0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (5 << 19) + 7)


@pytest.mark.parametrize("size", SIZES)
def test_every_range_of_a_file_is_read(size: int) -> None:
    data = os.urandom(size)
    with io.BufferedReader(CheckedFile(io.BytesIO(data), blake3(data).hexdigest(), "w/file")) as file:
        assert file.read() == data
        for begin in {0, 1, size // 2, max(size - 3, 0), size, size + 9, (1 << 20) - 2}:
            file.seek(begin)
            assert file.read(5) == data[begin : begin + 5]
            assert file.read(1 << 21) == data[begin + 5 : begin + 5 + (1 << 21)]
        assert file.seek(-min(size, 4), io.SEEK_END) == size - min(size, 4)
        assert file.read() == data[size - min(size, 4) :]


def test_another_file_is_refused() -> None:
    with pytest.raises(PlanError, match=r"w/file: expected BLAKE3 .* found .*run the plan job again"):
        CheckedFile(io.BytesIO(b"other"), blake3(b"data").hexdigest(), "w/file")


def test_a_file_that_changes_behind_its_comparison_is_refused(tmp_path: Path) -> None:
    path, data = tmp_path / "file", os.urandom(3 << 20)
    path.write_bytes(data)
    with path.open("rb", buffering=0) as opened:
        file = CheckedFile(opened, blake3(data).hexdigest(), "w/file")
        with path.open("r+b") as attacker:
            attacker.seek(10)
            attacker.write(bytes([data[10] ^ 1]))
        file.seek(2 << 20)
        assert file.read(1 << 20) == data[2 << 20 :]
        file.seek(0)
        with pytest.raises(PlanError, match="w/file: it was changed while it was read"):
            file.read(1)
