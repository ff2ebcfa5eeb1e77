"""Which engine runs the filter job of a window, and how Spark is given it. The job itself is ``work.filter``."""
