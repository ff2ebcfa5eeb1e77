"""What a person reads later: history, journal, conflicts, repairs, verifications, first copies. Decides nothing."""
