"""Definitions of databases, tables, programs and accounts: read, compared, and the statements that correct them."""
