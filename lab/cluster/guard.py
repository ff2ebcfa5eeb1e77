"""``python -m lab.cluster.guard FOLDER``: waits until its input ends, which it does with the process that started it,
however that ends; then stops every Airflow under the folder and removes the folder."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from lab import airflow


def main(folder: Path) -> None:
    """See the module."""
    sys.stdin.buffer.read()
    for home in (path for path in folder.iterdir() if path.is_dir()):
        airflow.find(home).stop()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
