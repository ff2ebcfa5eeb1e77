"""State carried from one window to a later one, kept on the target: prepared XA transactions, temporary tables."""
