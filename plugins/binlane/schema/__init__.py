"""Definitions of databases and tables as values: model, names, comparison, codec. Queries no server."""
