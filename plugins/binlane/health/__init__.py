"""Health of channels: facts in, states and what to do out; the same for board, command line, metrics and notes."""
