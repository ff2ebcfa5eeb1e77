"""Records for operators: history, journal, conflicts, repairs, verifications, first copies."""
