"""Rows of one table on both servers: paired, read, counted and hashed, and spelled as text."""
