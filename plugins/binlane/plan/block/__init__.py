"""Blocks: built, folded (`reduce`), sized. One lane's transactions, no barriers."""
