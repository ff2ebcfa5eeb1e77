"""The index of an archive, for spark-submit from a checkout."""

from binlane.spark_jobs.archive_index import main

if __name__ == "__main__":
    main()
