"""Databases brought to a moment of the log, from a dump or from the log alone, under names of their own."""
