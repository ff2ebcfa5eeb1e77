"""No file of the current folder is executed, whatever its name is, when a command starts other processes.

Attacker: whoever can write to the folder in which somebody calls binlane.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

PLUGINS: Final = Path(__file__).parents[2] / "plugins"
NAMES: Final = sorted(
    {each for each in sys.stdlib_module_names if not each.startswith("_")}
    | {"binlane", "sitecustomize", "usercustomize", "numpy", "pyarrow", "zstandard", "blake3", "fsspec", "pyspark"}
)
"""Of the modules in the folder; a name more is an attack more."""
WAYS: Final[Mapping[str, str]] = {
    "the fork server of a command": """
from binlane.work.plan_job.fork_server import fork_server_here
fork_server_here("binlane.work.plan_job.tasks")
""",
    "the fork server of a program with threads": """
import threading
from binlane.work.plan_job.fork_server import fork_server_here
threading.Thread(target=threading.Event().wait, args=(1,)).start()
fork_server_here("binlane.work.plan_job.tasks")
""",
    "processes of the plan job": """
from binlane.work.plan_job.job import LocalProcesses
engine = LocalProcesses(2)
print(list(engine.run("scan", len, [["a"], ["bc"]])))
engine.close()
""",
    "processes of lanes": """
from concurrent.futures import wait
from binlane.orchestration.lane_processes import LaneProcesses
with LaneProcesses() as lanes:
    wait([lanes._started(1).submit(int)])
""",
    "Spark's workers": """
import os, subprocess, sys
from binlane.orchestration.plan_job.jvm_options import with_jvm_options
subprocess.run([sys.executable, "-m", "binlane.blas_threads"], env=with_jvm_options(os.environ), check=True)
""",
}
"""What a command starts. A line more is a way more."""


@pytest.mark.parametrize("way", WAYS)
def test_no_file_of_the_current_folder_is_executed(tmp_path: Path, way: str) -> None:
    shared, program, touched = tmp_path / "shared", tmp_path / "own" / "program.py", tmp_path / "touched"
    shared.mkdir()
    program.parent.mkdir()
    for name in NAMES:
        (shared / f"{name}.py").write_text(f"open({str(touched)!r}, 'a').write(__name__ + ' ')\nraise ImportError\n")
    program.write_text(f'if __name__ == "__main__":\n{textwrap.indent(WAYS[way], "    ")}')
    # who runs the tests may have it, and the attack would be none
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=shared, env={**inherited, "PYTHONPATH": str(PLUGINS)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not touched.exists(), touched.read_text()
