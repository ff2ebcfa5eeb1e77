"""Logged statements: the objects that they name and change, and their requirements on a server. No routing, no I/O."""
