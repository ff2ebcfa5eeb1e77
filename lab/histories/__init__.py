"""Hostile histories: generated sessions write to a source, binlane applies the log to a target, and both are compared;
if they differ, the server's own replica gets the same log."""
