"""The plan job, for spark-submit from a checkout. `binlane spark-job` prints the path of the installed file."""

from binlane.spark_jobs.event_metadata_filter import main

if __name__ == "__main__":
    main()
