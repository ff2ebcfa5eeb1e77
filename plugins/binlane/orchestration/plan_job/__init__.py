"""Which engine runs the plan job of a window, and how Spark is given it. The job itself is ``work.plan_job``."""
