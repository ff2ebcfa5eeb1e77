"""A Java and a Spark that are shell scripts: whatever depends on which of them there are, without a JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

SPARK_SUBMIT = """#!/bin/sh
for word in $SPARK_SUBMIT_OPTS; do case $word in -XX:ArchiveClassesAtExit=*) echo classes > "${word#*=}";; esac; done
echo "$SPARK_SUBMIT_OPTS"; exit ${ENDS:-0}
"""


def spark_machine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a Java, a Spark and a cache into the folder and the environment. This spark-submit prints its JVM's options,
    writes an archive of classes as a JVM does, and ends with the exit code in ENDS."""
    java = folder / "java"
    for file in (java / "bin" / "java", java / "lib" / "server" / "libjvm.so", folder / "spark" / "jars" / "a.jar"):
        file.parent.mkdir(parents=True)
        file.write_text("1")
    program = folder / "bin" / "spark-submit"
    program.parent.mkdir()
    program.write_text(SPARK_SUBMIT)
    program.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(program.with_name("python")))
    for name, value in (
        ("JAVA_HOME", java),
        ("SPARK_HOME", folder / "spark"),
        ("XDG_CACHE_HOME", folder / "cache"),
    ):
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dmine=1")
