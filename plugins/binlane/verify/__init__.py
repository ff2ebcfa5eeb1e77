"""Comparison of source and target, row by row and definition by definition."""
