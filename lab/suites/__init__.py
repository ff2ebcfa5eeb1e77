"""The servers' own replication and binlog suites as a trial: ``make suites``."""
