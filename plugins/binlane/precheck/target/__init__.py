"""What stands in a window's way on the target as a server: its version, its account, its keys."""
