"""`binlane advise`: counts of a log, and the settings that they speak for. No window depends on it."""
