"""Reads a server's catalogue, accounts and variables; SQLAlchemy engines. Writes nothing."""
