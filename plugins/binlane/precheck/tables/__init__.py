"""What stands against the tables of a window: their definitions and engines, on both servers and in the log."""
