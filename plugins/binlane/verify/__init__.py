"""Source against target, row by row: what no log can tell."""
