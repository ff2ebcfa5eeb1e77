"""Definitions of databases and tables as values: the model, names, comparison, codec. Reads no server."""
