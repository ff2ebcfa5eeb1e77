"""Logged statements: what they name, change and ask of a server. No routing, no I/O."""
