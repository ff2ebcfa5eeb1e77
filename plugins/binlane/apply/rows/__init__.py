"""Row writers: row events and decoded rows -> statements on the target. Commits nothing."""
