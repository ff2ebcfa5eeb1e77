"""The filter job without its engine: its driver, the tasks its workers run, their errors."""
