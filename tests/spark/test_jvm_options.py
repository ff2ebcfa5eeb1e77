"""The archive of classes, with a real JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from binlane.orchestration.plan_job.jvm_options import LOADING_JOB, OPTIONS, with_jvm_options, write_class_archive
from binlane.readiness.machine import spark_submit


def test_a_jvm_reads_its_classes_from_the_archive(tmp_path: Path) -> None:
    program, path = spark_submit()
    assert program is not None
    given = {**os.environ, "PATH": path, "PYSPARK_PYTHON": sys.executable}
    # the tests' own environment may have the option already
    given.pop(OPTIONS, None)
    if "SharedArchiveFile" not in with_jvm_options(given)[OPTIONS]:
        write_class_archive()
    environment = with_jvm_options(given)
    environment[OPTIONS] += f" -Xlog:class+load:file={tmp_path}/classes"
    subprocess.run(
        [program, "--master", "local[2]", str(LOADING_JOB)], env=environment, check=True, capture_output=True
    )
    loaded = (tmp_path / "classes").read_text().splitlines()
    archived = [line for line in loaded if "source: shared objects file" in line]
    assert len(archived) > len(loaded) * 3 // 4
