"""Records as JSON values and back: the one codec of a window's files and of the state's JSON columns. No I/O."""
