"""Column types: how each one's bytes are read, spelled as SQL and compared. No events, no I/O."""
