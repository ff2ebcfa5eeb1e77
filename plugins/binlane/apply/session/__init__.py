"""A lane's connection to the target: its state, its context, its errors. Writes no rows."""
