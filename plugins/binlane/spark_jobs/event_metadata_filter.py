"""The plan job on Spark: ``spark-submit event_metadata_filter.py --work <window folder>``.

Only arguments, source and sink: ``binlane.work.plan_job.job`` does the work and is tested without a JVM. Maps over the
names of segments, each a job of one stage without a shuffle; payloads never enter the JVM.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

from binlane.errors import BinlaneError
from binlane.spark_engine import SubmittedEngine
from binlane.work.files import WorkFolder
from binlane.work.plan_job.errors import as_line
from binlane.work.plan_job.job import run_plan_job
from binlane.work.plan_job.made import TOKEN, answer


def main(argv: Sequence[str] | None = None) -> None:
    """Plan the window in the folder ``--work``. An error is printed in one line, with exit code 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--work", required=True, help="URI of the window's folder: manifest.json, channel.json, schema.json"
    )
    parser.add_argument(
        "--digests",
        type=_digests,
        help="SHA-256 of manifest.json, channel.json and schema.json, as the target has recorded them: a JSON object. "
        "Without it the files are taken as they are, and channel.json may name no code",
    )
    arguments = parser.parse_args(argv)
    spark = SparkSession.builder.appName("binlane.event_metadata_filter").getOrCreate()
    try:
        plan = run_plan_job(WorkFolder.of_window(arguments.work, arguments.digests), SubmittedEngine(spark))
        if (token := spark.conf.get(TOKEN, None)) is not None:
            answer(arguments.work, token)
    except BinlaneError as exc:
        print(as_line(exc))  # noqa: T201
        sys.exit(1)
    finally:
        spark.stop()
    print(f"binlane: planned seqno {plan.first_seqno:,} to {plan.last_seqno:,}, digest {plan.digest}")  # noqa: T201


def _digests(text: str) -> dict[str, str]:
    """Raises ValueError, of which argparse makes an error, for another form."""
    found = json.loads(text)
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise ValueError(text)
    return found


if __name__ == "__main__":
    main()
