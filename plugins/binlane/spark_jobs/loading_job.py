"""A small job of the plan job's kind, for the archive of its JVM's classes."""

from __future__ import annotations

from pyspark.sql import SparkSession

if __name__ == "__main__":
    spark = SparkSession.builder.appName("binlane classes").getOrCreate()
    spark.range(2, numPartitions=2).mapInArrow(lambda batches: batches, "id long").collect()
    spark.stop()
