"""The plan job without its engine: its driver, the tasks that its workers run, their errors."""
